"""Tests of the OLCF Test Harness become a suite.

ini.py reads a test's folder, job_script.py its template, copies.py finds tests that differ in a
number, and suite.py writes them. The formats are those of github.com/olcf/olcf-test-harness.
"""
