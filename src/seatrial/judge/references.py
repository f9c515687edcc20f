"""The expected values of metrics on a machine: ``machines/<name>/references.yaml``.

references = load(Path("machines/frost/references.yaml"))
reference = matching(references, "stream", "triad", {"threads": 2}, "gcc")
finding = judge(figure, reference)          # None, or e.g. performance: triad ... is 12 % below ...

``judge.learning`` learns them from measurements, and writes them.
"""

import contextlib
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from fnmatch import fnmatchcase
from operator import attrgetter
from pathlib import Path
from types import MappingProxyType
from typing import Annotated, Self

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import InvalidFiles, UsageError
from seatrial.grouping import grouped
from seatrial.model.codes import CHECK_ERROR, PERFORMANCE
from seatrial.model.documents import Faults, YamlNode, decode, parse, read
from seatrial.model.figures import ELAPSED, Finding, MetricValue
from seatrial.model.file_model import FileModel, Scalar, Unit, doc
from seatrial.model.identifiers import show
from seatrial.model.test import Case, Metric, Stage, Test
from seatrial.units import NO_DIRECTION, Better, converted, show_converted, show_figure

DEFAULT_TOLERANCE = 0.05


class Learned(FileModel, frozen=True):
    """The origin of a reference that was accepted from measurements."""

    trial: Annotated[str, doc("run tag of the trial; of several, the latest")]
    runs: Annotated[int, doc("number of runs behind it", ge=1)]
    at: Annotated[str, doc("day on which it was accepted, such as 2026-11-21")]
    trials: Annotated[int, doc("number of trials that gave figures", ge=1)] = 1


class Reference(FileModel, frozen=True):
    """The expected value of one metric of one test, with relative or absolute bounds; or the
    checksum of a file."""

    test: Annotated[str, doc("name of the test in its suite")]
    metric: Annotated[
        str,
        doc(
            "name of the metric; `elapsed` (unit `s`) is one of every test; required, unless "
            "`file` is given"
        ),
    ] = ""
    unit: Annotated[
        Unit,
        doc(
            "unit of the numbers, required with a metric: the metric's own, or one of the same "
            "dimension (MiB/s, GB/s; us, s), which is converted; any other is a `check error`"
        ),
    ] = ""
    file: Annotated[str, doc("file of a run that must be the same bit for bit, with sha256")] = ""
    sha256: Annotated[
        str, doc("its checksum; goes with `where`, `toolchain` and `learned` alone")
    ] = ""
    where: Annotated[dict[str, Scalar], doc("parameters of the case; others: any")] = {}
    toolchain: Annotated[str | None, doc("name or pattern of toolchains; default: any")] = None
    value: Annotated[
        float | None,
        doc("expected figure; without bounds at most 5 % worse"),
    ] = None
    lower: Annotated[float | None, doc("lower bound, as a fraction: -0.05")] = None
    upper: Annotated[float | None, doc("upper bound, as a fraction: 0.10")] = None
    min: Annotated[float | None, doc("minimum, instead of value")] = None
    max: Annotated[float | None, doc("maximum, instead of value")] = None
    stage: Annotated[
        Stage,
        doc(
            "`full`: of runs at full machine in a component of kind `isolated_then_full`, and of "
            "no others; `alone`: of all runs but those"
        ),
    ] = "alone"
    learned: Annotated[Learned | None, doc("written by seatrial reference")] = None


class ReferencesFile(FileModel, frozen=True):
    """A ``references.yaml``."""

    references: Annotated[list[Reference], doc("what is expected, an entry for each figure")]


class References(Struct, frozen=True):
    """The references of a machine as they are written, and by test and metric, or test and file.
    ``References()`` holds none, ``References.of(entries)`` holds those."""

    entries: list[Reference] = []
    by_metric: dict[tuple[str, str], list[Reference]] = {}
    by_file: dict[tuple[str, str], list[Reference]] = {}

    @classmethod
    def of(cls, entries: list[Reference]) -> Self:
        of_metrics = (entry for entry in entries if not entry.file)
        of_files = (entry for entry in entries if entry.file)
        return cls(
            entries,
            grouped(of_metrics, attrgetter("test", "metric")),
            grouped(of_files, attrgetter("test", "file")),
        )


class AmbiguousReference(UsageError):
    """Two references apply to one figure, and neither is more specific."""


# ---- reading ------------------------------------------------------------------------------


MetricUnits = Mapping[tuple[str, str], str]  # the units of metrics, by test and metric
NONE_KNOWN: MetricUnits = MappingProxyType({})


def units_of(tests: Iterable[Test]) -> MetricUnits:
    """Return the units of the metrics of tests, as far as they are known before a run."""
    units: dict[tuple[str, str], str] = {}
    for test in tests:
        units[test.name, ELAPSED] = "s"
        for name, metric in test.metrics.items():
            if isinstance(metric, Metric):
                units[test.name, name] = metric.unit
    return units


def load(path: Path, units: MetricUnits = NONE_KNOWN) -> References:
    """Return the references of a file; none if it does not exist. Raises InvalidFiles, also where a
    reference cannot be converted into the unit of its metric."""
    with contextlib.suppress(OSError):  # read() reports other errors
        if not path.is_symlink() and not path.exists():
            return References()
    faults = Faults()
    return _checked(read(path, faults), faults, units)


def load_for(
    path: Path, tests: Collection[str], units: MetricUnits = NONE_KNOWN
) -> tuple[References, list[tuple[str, str]]]:
    """Return the references of a file, without those of other tests that have faults; and for each
    of those what it is and its first fault. Raises InvalidFiles for faults of these tests, or of
    the file."""
    try:
        return load(path, units), []
    except InvalidFiles as error:
        node = read(path, Faults())
        listed = node.child("references") if node is not None else None
        if node is None or listed is None or not isinstance(listed.value, list):
            raise
        kept, broken = _without_faults(node, listed, tests)
        try:
            return _checked(kept, Faults(), units), broken
        except InvalidFiles:
            raise error from None


def _without_faults(
    node: YamlNode, listed: YamlNode, tests: Collection[str]
) -> tuple[YamlNode, list[tuple[str, str]]]:
    """Return a document without the references of other tests that have faults, and those."""

    def only(items: list[YamlNode]) -> YamlNode:
        return replace(node, value={**node.value, "references": replace(listed, value=items)})

    broken = {}
    of_tests: dict[str, list[YamlNode]] = grouped(listed.value, _test_of)
    for test, items in of_tests.items():
        try:
            if test and test not in tests:
                _checked(only(items), Faults())
        except InvalidFiles as error:
            broken[test] = _renumbered(error.faults[0], items, listed)
    left = [item for item in listed.value if _test_of(item) not in broken]
    return only(left), [(f"references of {test}", fault) for test, fault in broken.items()]


def _renumbered(fault: str, some: list[YamlNode], listed: YamlNode) -> str:
    """Return a fault of some references with their numbers among all that are listed."""
    return re.sub(
        r"references\[(\d+)\]",
        lambda match: f"references[{listed.value.index(some[int(match[1])])}]",
        fault,
    )


def _test_of(item: YamlNode) -> str:
    """Return the test of a reference; "" where it names none."""
    test = item.child("test")
    return test.value if test is not None and isinstance(test.value, str) else ""


def loads(text: str, path: Path) -> References:
    """Return the references of a text. ``path`` is for messages only. Raises InvalidFiles."""
    faults = Faults()
    return _checked(parse(text.encode(), path, faults), faults)


def _checked(node: YamlNode | None, faults: Faults, units: MetricUnits = NONE_KNOWN) -> References:
    file = None if node is None else decode(node, ReferencesFile, faults)
    if node is not None and file is not None:
        first: dict[object, int] = {}
        for i, reference in enumerate(file.references):
            place = node.place_of("references", i)
            for key, message in [*faults_of(reference), *_faults_of_unit(reference, units)]:
                at = node.place_of("references", i, key)
                faults.add(at, f"references[{i}].{key}", message)
            same = first.setdefault(identity(reference), place.line)
            if same != place.line:
                faults.add(place, f"references[{i}]", f"is for the same as the one in line {same}")
    faults.raise_any()
    return References.of(file.references if file is not None else [])


def identity(reference: Reference) -> tuple[object, ...]:
    """Return the key of a reference. Two references with the same key are a duplicate."""
    where = tuple(sorted((name, show(value)) for name, value in reference.where.items()))
    about = (reference.test, reference.metric, reference.file)
    return *about, where, reference.toolchain, reference.stage


def faults_of(reference: Reference) -> list[tuple[str, str]]:
    """Return the faults of a reference as a person wrote it: the key and a message."""
    if reference.file or reference.sha256:
        return _faults_of_sum(reference)
    faults = []
    if not reference.metric:
        faults.append(("metric", "is missing; it must be given, or file with sha256"))
    faults += _faults_of_choice(reference)
    faults += _faults_of_bounds(reference)
    if not reference.unit.strip():
        faults.append(("unit", "is empty; write the metric's unit, 1 for none"))
    return faults


def _faults_of_unit(reference: Reference, units: MetricUnits) -> Iterator[tuple[str, str]]:
    """Yield that a reference cannot be converted into the unit of its metric."""
    unit = units.get((reference.test, reference.metric), reference.unit)
    if reference.unit.strip() and in_unit(reference, unit) is None:
        about = f"{reference.metric} of {reference.test} is in {unit}"
        text = f"{reference.unit} is not of the same dimension: {about}; write a unit of that"
        yield "unit", text


def _faults_of_choice(reference: Reference) -> Iterator[tuple[str, str]]:
    """Yield the faults of a reference that has neither a value nor bounds, or too much of both."""
    limits = [key for key in ("min", "max") if getattr(reference, key) is not None]
    if reference.value is None:
        if not limits:
            yield "value", "is missing; give value, or min or max"
        for key in ("lower", "upper"):
            if getattr(reference, key) is not None:
                yield key, "is relative to value, which is not given"
    elif limits:
        yield limits[0], "give value with lower and upper, or min and max, not both"


def _faults_of_bounds(reference: Reference) -> list[tuple[str, str]]:
    """Return the faults of the numbers of a reference."""
    value, lower, upper = reference.value, reference.lower, reference.upper
    least, most = reference.min, reference.max
    faults = []
    if value == 0:
        faults.append(("value", "0 has no relative bounds; give min or max instead"))
    if lower is not None and not -1 < lower <= 0:
        faults.append(("lower", f"{lower:g} is not between -1 and 0; write -0.05 for 5 % below"))
    if upper is not None and not 0 <= upper <= 1:
        remedy = "write 0.05 for 5 % above, or max: for a bound further off"
        faults.append(("upper", f"{upper:g} is not between 0 and 1; {remedy}"))
    if least is not None and most is not None and least > most:
        faults.append(("min", f"{least:g} is more than max, {most:g}"))
    return faults


def _faults_of_sum(reference: Reference) -> list[tuple[str, str]]:
    """Return the faults of the reference of a file."""
    faults = []
    if not reference.file:
        faults.append(("sha256", "belongs to file:, which is not given"))
    elif not re.fullmatch("[0-9a-f]{64}", reference.sha256):
        text = "must be 64 hexadecimal digits in lower case, as sha256sum prints them"
        faults.append(("sha256", text))
    for key in ("metric", "unit", "value", "lower", "upper", "min", "max"):
        if getattr(reference, key) not in ("", None):
            faults.append((key, "goes with no file; remove one of them"))
    return faults


# ---- comparing ----------------------------------------------------------------------------


def compare(
    references: References, case: Case, figure: MetricValue, stage: str = ""
) -> tuple[Reference | None, Finding | None]:
    """Return the reference for a figure of a run of a case, if any, and what speaks against the
    figure: it misses its reference, or it cannot be compared. One without a direction has no
    reference, and none may be written for it."""
    try:
        bound, toolchain = case.parameters, case.toolchain
        reference = matching(references, case.test, figure.name, bound, toolchain, stage)
    except AmbiguousReference as error:
        return None, Finding(CHECK_ERROR, str(error))
    if reference is not None and figure.better == NO_DIRECTION:
        return None, Finding(
            CHECK_ERROR,
            f"{figure.name} has no direction (better: none), but there is a reference for it; they "
            "were not compared: write better: higher or lower in the test, or remove the reference",
        )
    return reference, None if reference is None else judge(figure, reference)


def matching(
    references: References,
    test: str,
    metric: str,
    parameters: dict[str, Scalar],
    toolchain: str,
    stage: str = "",
) -> Reference | None:
    """Return the reference for a figure: among those that apply the one with most ``where`` keys,
    then one with a toolchain. Raises AmbiguousReference if two are equal in that."""
    entries = references.by_metric.get((test, metric), [])
    fitting = [entry for entry in entries if applies(entry, parameters, toolchain, stage)]
    return _most_specific(fitting, f"{metric} of {test}")


def sum_of_file(
    references: References,
    test: str,
    file: str,
    parameters: dict[str, Scalar],
    toolchain: str,
) -> str:
    """Return the SHA-256 that a file of a run must have, in any stage, "" where none is known.
    Raises AmbiguousReference."""
    entries = references.by_file.get((test, file), [])
    fitting = [one for one in entries if applies(one, parameters, toolchain, one.stage)]
    specific = _most_specific(fitting, f"{file} of {test}")
    return specific.sha256 if specific is not None else ""


def _most_specific(fitting: list[Reference], what: str) -> Reference | None:
    if not fitting:
        return None
    ranks = [(len(entry.where), entry.toolchain is not None) for entry in fitting]
    winners = [entry for entry, rank in zip(fitting, ranks, strict=True) if rank == max(ranks)]
    if len(winners) > 1:
        entries = " and ".join(_said(entry) for entry in winners[:2])
        raise AmbiguousReference(
            f"two references for {what} apply and neither is more specific: {entries}; "
            "add a key to where: of one, or remove it"
        )
    return winners[0]


def applies(
    reference: Reference, parameters: dict[str, Scalar], toolchain: str, stage: str = ""
) -> bool:
    """Return True if the reference applies to a run in a stage of a case with these parameters on
    this toolchain. A run without a stage is like one alone."""
    if (reference.stage == "full") != (stage == "full"):
        return False
    pattern = reference.toolchain
    if pattern is not None and not fnmatchcase(toolchain, pattern):
        return False
    return all(
        name in parameters and _same(parameters[name], value)
        for name, value in reference.where.items()
    )


def _same(one: Scalar, other: Scalar) -> bool:
    """Return True if two values are equal to a script (2 and "2") or as numbers (2 and 2.0)."""
    numbers = all(isinstance(v, int | float) and not isinstance(v, bool) for v in (one, other))
    return show(one) == show(other) or (numbers and one == other)


def _said(reference: Reference) -> str:
    bound = ", ".join(f"{name}: {show(value)}" for name, value in reference.where.items())
    pattern = "" if reference.toolchain is None else f" toolchain: {reference.toolchain}"
    return f"where: {{{bound}}}{pattern}"


def bounds(reference: Reference, better: Better) -> tuple[float | None, float | None]:
    """Return the smallest and the largest figure that meet a reference, in its unit; None:
    unbounded. A value without bounds limits only the worse side, at 5 %: below it if higher is
    better, above it if lower is."""
    value, lower, upper = reference.value, reference.lower, reference.upper
    if value is None:
        return reference.min, reference.max
    if lower is None and upper is None:
        lower = -DEFAULT_TOLERANCE if better == "higher" else None
        upper = DEFAULT_TOLERANCE if better == "lower" else None
    low = None if lower is None else value + lower * abs(value)
    high = None if upper is None else value + upper * abs(value)
    return low, high


def percent_off(figure: float, reference: Reference) -> float | None:
    """Return the distance of a figure from a reference's value in per cent, negative below; None if
    the reference has only bounds."""
    if not reference.value:
        return None
    return 100 * (figure - reference.value) / abs(reference.value)


def in_unit(reference: Reference, unit: str) -> Reference | None:
    """Return a reference in a metric's unit; None if its own is of another dimension."""
    if unit == reference.unit:
        return reference
    if converted(1, reference.unit, unit) is None:
        return None
    figures = {key: getattr(reference, key) for key in ("value", "min", "max")}
    changed = {
        key: converted(figure, reference.unit, unit)
        for key, figure in figures.items()
        if figure is not None
    }
    return replace(reference, unit=unit, **changed)


def judge(figure: MetricValue, reference: Reference) -> Finding | None:
    """Return a finding PERFORMANCE if the figure misses its reference, CHECK_ERROR if their units
    are of two dimensions, else None; None for a figure without a direction."""
    if figure.better == "none":
        return None
    name, unit = figure.name, reference.unit
    value = converted(figure.value, figure.unit, unit)
    if value is None:
        return Finding(
            CHECK_ERROR,
            f"{name} is in {figure.unit}, but its reference in {unit}, which is not of the same "
            "dimension; they were not compared: write the reference in the metric's unit",
        )
    low, high = bounds(reference, figure.better)
    if low is not None and value < low:
        word, bound, limit = "below", low, "minimum"
    elif high is not None and value > high:
        word, bound, limit = "above", high, "maximum"
    else:
        return None
    if math.isclose(value, bound, rel_tol=1e-12):  # 0.95 * 12000 is not 5 % below 12000
        return None
    what = f"{name} {show_converted(figure.value, figure.unit, unit)} is"
    off = percent_off(value, reference)
    if off is None or not reference.value:
        return Finding(PERFORMANCE, f"{what} {word} its {limit} {show_figure(bound, unit)}")
    allowed = 100 * abs(bound - reference.value) / abs(reference.value)
    text = f"{what} {abs(off):.1f} % {word} its reference {show_figure(reference.value, unit)}"
    return Finding(PERFORMANCE, f"{text} (at most {allowed:.3g} % {word})")
