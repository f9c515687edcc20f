"""Compat jobs: jobs whose nodes look like a cluster of hosts with ssh. Bash, and what writes it."""
