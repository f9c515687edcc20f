"""What a log or a report of ReFrame tells of a run: its case, its figures, what was expected."""

import math
from collections.abc import Iterable
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.file_model import Scalar
from seatrial.importers.results import ImportedFigure, ImportedRun
from seatrial.journal import codes
from seatrial.lazy import regex
from seatrial.structs import copied
from seatrial.units import SECOND_NS
from seatrial.verify.references import Reference

_NONE = ("", "null", "none", "nan")
_TIMES = ("s", "sec", "secs", "second", "seconds", "ms", "us", "ns", "min", "h")
_PARAMETER = regex(r"\s+%")
_FIXTURE = regex(r"\s+~\S.*")


class ReframeFigure(NamedTuple):
    """A figure, and what ReFrame expected: a reference (None: nothing), and by which fraction of it
    the figure may be lower and higher (None: by any)."""

    name: str
    value: float
    unit: str
    reference: float | None
    lower: float | None
    upper: float | None

    @property
    def limits(self) -> tuple[float, float]:
        """The least and the greatest figure that ReFrame lets pass. Of a reference of 0 the bounds
        are figures themselves."""
        if self.reference is None:
            return -math.inf, math.inf
        base, scale = (self.reference, abs(self.reference)) if self.reference else (0.0, 1.0)
        least = -math.inf if self.lower is None else base + scale * self.lower
        most = math.inf if self.upper is None else base + scale * self.upper
        return least, most

    @property
    def is_met(self) -> bool:
        """Whether the figure is within its limits; rounding is no miss."""
        least, most = self.limits
        slack = 1e-9 * max(abs(self.value), abs(self.reference or 0.0))
        return least - slack <= self.value <= most + slack

    @property
    def better(self) -> str:
        """Which is better: ReFrame does not say. Bounds on one side tell, else the unit: of rates
        higher, of times lower."""
        if self.reference is not None and (self.lower is None) != (self.upper is None):
            return "lower" if self.lower is None else "higher"
        unit = self.unit.strip().lower()
        if unit.endswith(("/s", "/sec", "bps", "flops")):
            return "higher"
        return "lower" if unit in _TIMES else "none"


class ReframeEntry(Struct, kw_only=True):
    """A run as a log or a report has it. ``finished`` is None where that does not tell the time of
    its end; then it ended at some time within ``session`` (ns)."""

    name: str
    system: str
    partition: str
    environ: str
    place: str
    result: str
    job: str = ""
    submitted: int | None = None
    finished: int | None = None
    session: tuple[int, int] = (0, 0)
    phase: str = ""
    reason: str = ""
    exit_code: int | None = None
    hosts: str = ""
    path: str = ""
    tasks: int = 0
    tasks_per_node: int = 0
    figures: list[ReframeFigure] = []

    @property
    def key(self) -> tuple[str, ...]:
        """What is the same in the log and in the report of a run, but for the time."""
        return self.name, self.system, self.partition, self.environ, self.job


def run_of(entry: ReframeEntry, directions: dict[str, str]) -> ImportedRun:
    """Return the run of an entry. ``directions`` are those of metrics for which people gave one."""
    test, parameters = case_of(entry.name)
    if entry.partition not in ("", "default"):
        parameters["partition"] = entry.partition
    time = entry.finished or entry.session[0]
    code, reason = _verdict(entry)
    nodes = entry.tasks // entry.tasks_per_node if entry.tasks_per_node else 0
    return copied(
        ImportedRun,
        entry,
        test=test,
        id="\n".join((*entry.key, str(time // SECOND_NS))),
        time=min(time, entry.submitted or time),
        code=code.number,
        parameters=parameters,
        toolchain=entry.environ,
        nodes=nodes,
        queued=entry.submitted,
        ended=entry.finished,
        reason=reason,
        job_id=entry.job,
        figures=[
            ImportedFigure(each.name, each.value, each.unit, directions.get(each.name, each.better))
            for each in entry.figures
        ],
    )


def references_of(entry: ReframeEntry) -> Iterable[Reference]:
    """Yield what ReFrame expected of the figures of a run, for cases as that of the run."""
    test, parameters = case_of(entry.name)
    if entry.partition not in ("", "default"):
        parameters["partition"] = entry.partition
    where: dict[str, Any] = {"test": test, "where": parameters, "toolchain": entry.environ}
    for each in entry.figures:
        if each.reference is None or (each.lower is None and each.upper is None):
            continue
        of: dict[str, Any] = {**where, "metric": each.name, "unit": each.unit}
        least, most = each.limits
        lower, upper = each.lower, each.upper
        is_relative = (
            each.reference > 0
            and (lower is None or -1 < lower <= 0)
            and (upper is None or 0 <= upper <= 1)
        )
        if is_relative:
            yield Reference(**of, value=each.reference, lower=lower, upper=upper)
        else:
            yield Reference(**of, min=_finite(least), max=_finite(most))


def _finite(bound: float) -> float | None:
    return bound if math.isfinite(bound) else None


def case_of(name: str) -> tuple[str, dict[str, Scalar]]:
    """Return the test and the parameters of a display name such as ``Stream %size=8 %gpu=no``;
    ``~system`` behind it, of fixtures, is no part of it."""
    test, *pieces = _PARAMETER.split(_FIXTURE.sub("", name.strip()))
    parameters: dict[str, Scalar] = {}
    for piece in pieces:
        key, _, value = piece.partition("=")
        parameters[key.strip()] = value.strip()
    return test, parameters


def figure_of(name: str, value: float, unit: str, *expected: object) -> ReframeFigure:
    """Return a figure; ``expected`` are its reference, its lower and its upper bound as ReFrame
    writes them. Raises ValueError for what is no number."""
    reference, lower, upper = map(number_or_none, expected)
    if not reference and lower is None and upper is None:
        reference = None  # ReFrame's way to expect nothing
    return ReframeFigure(name, value, unit, reference, lower, upper)


def number_or_none(written: object) -> float | None:
    """Return a finite number that is written as text or JSON; None for none. Raises ValueError for
    other text."""
    if written is None or str(written).strip().lower() in _NONE:
        return None
    value = float(str(written))
    return value if math.isfinite(value) else None


def _verdict(entry: ReframeEntry) -> tuple[codes.Code, str]:
    """Return the verdict of a run, and its reason."""
    result = entry.result.lower()
    if result in ("pass", "success", "xpass"):
        return codes.PASS, ""
    said = entry.reason or f"ReFrame recorded {entry.result}"
    if result == "xfail":
        return codes.KNOWN, said
    if result.startswith("abort"):
        return codes.CANCELLED, said
    missed = [each.name for each in entry.figures if not each.is_met]
    if entry.phase == "performance" or (missed and entry.phase in ("", "performance")):
        names = ", ".join(missed)
        return codes.PERFORMANCE, entry.reason or f"{names}: outside the bounds of ReFrame"
    if not result and not entry.phase:
        return codes.PASS, ""  # a log of 3.x: it has runs alone whose answer was right
    return _OF_PHASES.get(entry.phase, codes.FAILED), said


_OF_PHASES = {
    "sanity": codes.WRONG_ANSWER,
    "compile": codes.BUILD_FAILED,
    "compile_wait": codes.BUILD_FAILED,
    "setup": codes.LAUNCH_FAILED,
}
