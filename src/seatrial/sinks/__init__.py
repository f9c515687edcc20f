"""Send a trial's events to other systems, from a process beside the driver.

    standing(trials / tag)         # how far behind each sink is, and why

Sinks are defined in the machine's file; see docs/sinks.md.
"""

from __future__ import annotations

from seatrial.sinks.lag import SinkLag, sink_lags

__all__ = ["SinkLag", "sink_lags"]
