"""Seatrial: the sea trial of a supercomputer.

    seatrial run suites/probes          # run a suite on this machine
    seatrial runs --failed              # ask what happened
    seatrial show RUN                   # one run, in full

The words and the rooms are described in ``docs/architecture.md``.
"""

__version__ = "0.1.0"
