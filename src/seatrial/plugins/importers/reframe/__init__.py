"""Results of ReFrame become runs: of its performance logs and of its run reports.

perflog.py reads logs of 3.x and 4.x, report.py reports in JSON, entry.py has what both tell of a
run, and results.py puts them together. The formats are those that ReFrame 3.12, 4.0, 4.8 and 4.10
write.
"""
