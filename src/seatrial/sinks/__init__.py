"""Send a trial's events to other systems, from a process beside the driver.

Sinks are defined in the machine's file; see docs/how-to/sinks.md.
"""
