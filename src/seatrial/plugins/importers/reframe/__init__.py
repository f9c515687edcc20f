"""ReFrame: its tests become a suite, its results become runs.

results.py reads performance logs of 3.x and 4.x and run reports in JSON, as ReFrame 3.12, 4.0, 4.8
and 4.10 write them. Tests are read from syntax trees: classes.py finds classes and their bases,
evaluate.py evaluates statements, tests.py runs the hooks of each case, texts.py says where cases
differ and makes checks and metrics, writer.py and suite.py write the suite.
"""
