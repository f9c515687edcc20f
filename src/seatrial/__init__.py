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
    from seatrial.api.trials import Trial, expand, load_machine, load_plan, load_suite, verdict_of
    from seatrial.errors import InvalidFiles, SeatrialError, UsageError

__version__ = "0.2.0"
__all__ = [
    "Figure",
    "InvalidFiles",
    "Results",
    "SeatrialError",
    "Trial",
    "UsageError",
    "expand",
    "load_machine",
    "load_plan",
    "load_suite",
    "open_results",
    "verdict_of",
]

_PLACES = {
    "seatrial.api": ("Figure", "Results", "open_results"),
    "seatrial.errors": ("InvalidFiles", "SeatrialError", "UsageError"),
}


def __getattr__(name: str) -> Any:
    """Import what programs use when they use it: the command line starts without it."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    import importlib

    places = (module for module, names in _PLACES.items() if name in names)
    return getattr(importlib.import_module(next(places, "seatrial.api.trials")), name)
