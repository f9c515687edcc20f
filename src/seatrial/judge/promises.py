"""What was promised of figures, and the share of it that they reach.

    found = beside(promises_of(machine, test, "/scratch/trials/t"), "write", 47120, "MiB/s")
    found.share, found.words     # 0.988, "scratch advertises write: 50 GB/s = 47684 MiB/s"

Plug-ins know what was promised (the hook ``seatrial_promises``). Every table with such a figure has
a column with the share, and says below it what was promised, in the unit of the figure, too.
"""

from collections.abc import Iterable, Mapping

from msgspec import Struct, UnsetType

from seatrial.hooks import load, provided
from seatrial.model.machine import Machine
from seatrial.model.test import Test
from seatrial.units import converted, in_per_cent, show_converted, show_figure

COLUMN = "of advertised"
NO_SHARE = "no share"
SMALL = 0.01  # shares below it are shown with two digits


class Promise(Struct, frozen=True):
    """A figure that was promised by somebody or something, under a name. ``reason``: why there is
    none though one was asked for; "" if there is one."""

    by: str
    name: str
    value: float = 0.0
    unit: str = ""
    reason: str = ""


class Promised(Struct, frozen=True, rename={"reason": "why"}):
    """What was promised of a figure: ``advertised``, as it was given; its ``value`` in the unit of
    the figure, and the ``share`` of it that the figure is. Both are None for a ``reason``."""

    by: str
    name: str
    advertised: str
    value: float | None = None
    share: float | None = None
    reason: str = ""
    words: str = ""


Beside = Promised | UnsetType
"""What was promised of a figure as a field, whose JSON has none where nothing was."""

Promises = Mapping[str, Promise]
NOTHING: Promises = {}


def promises_of(machine: Machine, test: Test, folder: str) -> Promises:
    """Return what was promised of the metrics of a test that works in a folder, by their names;
    ``folder`` is "" where it is not known."""
    found: dict[str, Promise] = {}
    for source in provided("seatrial_promises"):
        found |= load(source)(machine, test, folder)
    return found


def beside(promises: Promises, metric: str, value: float | None, unit: str) -> Promised | None:
    """Return what was promised of a figure; None if nothing was. A metric with labels has the
    promise of its name, if it has none of its own."""
    promise = promises.get(metric) or promises.get(metric.partition("{")[0])
    if promise is None or value is None:
        return None
    written = show_figure(promise.value, promise.unit)
    reason = promise.reason or fault_of_unit(promise, unit)
    if reason:
        words = f"{promise.by} advertises {promise.name}: no share: {reason}"
        return Promised(promise.by, promise.name, written, reason=reason, words=words)
    here = converted(promise.value, promise.unit, unit) or 0.0
    shown = show_converted(promise.value, promise.unit, unit)
    words = f"{promise.by} advertises {promise.name}: {shown}"
    share = value / here
    return Promised(promise.by, promise.name, written, here, share, words=words)


def fault_of_unit(promise: Promise, unit: str) -> str:
    """Return why a figure in this unit has no share of what was promised; "" if it has one."""
    if converted(1.0, promise.unit, unit):
        return ""
    return f"{show_figure(promise.value, promise.unit)} is of another dimension than {unit}"


def share_cell(promised: Beside | None) -> str:
    """Return the share for a cell: ``98.8 %``; "" where nothing was promised."""
    if not promised:
        return ""
    if promised.share is None:
        return NO_SHARE
    small = abs(promised.share) < SMALL
    return f"{100 * promised.share:.2g} %" if small else in_per_cent(promised.share)


def told(promised: Iterable[Beside | None]) -> list[str]:
    """Return what is said below a table, each promise once."""
    return list(dict.fromkeys(one.words for one in promised if one))
