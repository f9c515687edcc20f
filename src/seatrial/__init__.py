"""Seatrial: the sea trial of a supercomputer.

    seatrial run suites/probes          # run a suite on this machine
    seatrial runs --failed              # ask what happened
    seatrial show RUN                   # one run, in full

    import seatrial                     # the same results in Python
    results = seatrial.open_results("trials")

The words and the rooms are described in ``docs/architecture.md``.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from seatrial.api import Figure, Results, open_results
    from seatrial.errors import SeatrialError, UsageError

__version__ = "0.2.0"
__all__ = ["Figure", "Results", "SeatrialError", "UsageError", "open_results"]

_ERRORS = ("SeatrialError", "UsageError")


def __getattr__(name: str) -> Any:
    """Import what programs use when they use it: the command line starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    module = "seatrial.errors" if name in _ERRORS else "seatrial.api"
    return getattr(importlib.import_module(module), name)
