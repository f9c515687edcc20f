"""Sinks: pushes of a trial's events to other systems, by a process beside the driver.

    standing(trials / tag)         # how far behind each sink is, and why

A sink is named in the machine's file; docs/sinks.md tells how.
"""

from __future__ import annotations

from seatrial.sinks.lag import SinkLag, sink_lags

__all__ = ["SinkLag", "sink_lags"]
