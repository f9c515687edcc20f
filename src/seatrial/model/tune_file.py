"""The file of a tuning (``tune.yaml``): which settings of a test are tried, and at what cost.

    tune, node = load_tune(Path("tune.yaml"), faults)

The Structs are the file's shape. What depends on the test and the machine is checked where both are
known (``execute.tuning``).
"""

import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.model.documents import Faults, Faulty, Location, YamlNode, decode_partly, read
from seatrial.model.expressions import ExpressionError, compile_expression
from seatrial.model.file_model import FileModel, Scalar, Share, Size, Span, checked, doc
from seatrial.model.identifiers import show
from seatrial.model.test import Case
from seatrial.units import bytes_of, share_of

TOOLCHAIN = "toolchain"  # an axis that is no parameter
MAX_SETTINGS = 1000
MAX_SWEPT = 5000  # settings of a sweep, of which few run
LEAST_SWEPT = 4  # runs of a sweep


def _is_part(written: int | float | str) -> None:
    if not 0 < share_of(written) <= 1:
        raise ValueError("must be above 0 and at most 100%")


Part = Annotated[Share, checked(_is_part)]


class TuneBlocks(FileModel, frozen=True):
    """The allocations of a tuning. In each one, settings run in rounds: each once a round."""

    nodes: Annotated[int, doc("nodes of an allocation; 0: those that the runs need", ge=0)] = 0
    rounds: Annotated[int, doc("most rounds in an allocation", ge=1, le=100)] = 4
    allocations: Annotated[int, doc("most allocations", ge=1, le=100)] = 3


class LoadLimit(FileModel, frozen=True):
    """Runs start only while a gauge of the machine reads less. While it fails, none starts."""

    gauge: Annotated[str, doc("a gauge of the machine")]
    below: Annotated[float, doc("reading above which no run starts")]


class TuneFile(FileModel, frozen=True, rename={"min_effect": "least"}):
    """A ``tune.yaml``."""

    tune: Annotated[str, doc("name of the tuning")]
    test: Annotated[str, doc("name of the test in its suite")]
    axes: Annotated[
        dict[str, list[Scalar]],
        doc("values to try of each parameter of the test; toolchain is an axis, too"),
    ]
    suite: Annotated[str, doc("folder of the suite, relative to this file")] = "."
    metric: Annotated[str, doc("figure of merit that decides; not needed for search: largest")] = ""
    better: Annotated[
        Literal["higher", "lower"] | None, doc("direction of the figure; default: the test's")
    ] = None
    about: Annotated[str, doc("one sentence: purpose of the tuning")] = ""
    parameters: Annotated[
        dict[str, Scalar], doc("values of further parameters of the test; default: the test's")
    ] = {}
    where: Annotated[list[str], doc("conditions that each setting meets")] = []
    default: Annotated[
        dict[str, Scalar],
        doc(
            "the setting that is used today; default: the test's own value of each axis where it "
            "is tried, else the first"
        ),
    ] = {}
    blocks: TuneBlocks = TuneBlocks()
    search: Annotated[
        Literal["race", "halving", "grid", "largest", "sweep"],
        doc("how settings are chosen to run again; sweep: axes are in order, from small to large"),
    ] = "race"
    cost: Annotated[Part, doc("most runs, as a share of those of the whole grid")] = Share("25%")
    min_effect: Annotated[Part, doc("least effect that matters, as a share")] = Share("2%")
    also: Annotated[
        list[str],
        doc(
            "search: sweep: further figures, such as read, whose best settings are looked for, too"
        ),
    ] = []
    runs: Annotated[int, doc("search: sweep: most runs; 0: by cost", ge=0)] = 0
    time: Annotated[
        Span, doc("search: sweep: most time of all runs, with their waits in queues; 0: no limit")
    ] = Span(0)
    space: Annotated[
        Size, doc("settings whose runs take more space (requires.space) are left out; 0: none")
    ] = Size(0)
    load: Annotated[
        LoadLimit | None, doc("runs start only while production leaves room; default: always")
    ] = None


class LoadedTuning(Struct, frozen=True):
    """A tuning as it is written, with the places of its values, and the keys that could not be
    decoded."""

    path: Path
    tune: TuneFile
    node: YamlNode
    faulty: Faulty

    def location(self, faults: Faults) -> Location:
        """Return the whole file, to be checked."""
        return Location(self.node, faults, self.faulty)


def load_tune(path: Path, faults: Faults) -> LoadedTuning | None:
    """Read the file of a tuning, and check what needs no test and no machine. Return None if it is
    none at all. Raises UsageError if it is missing."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; name the file of a tuning, such as tune.yaml")
    if path.is_dir():
        path = path / "tune.yaml"
        if not path.exists():
            raise UsageError(f"{path}: no such file; name the file of a tuning")
    own_faults = Faults()
    node = read(path, own_faults)
    tune = decode_partly(node, TuneFile, own_faults) if node is not None else None
    faults.add_all(own_faults)
    if node is None or tune is None:
        return None
    loaded = LoadedTuning(path, tune, node, own_faults.faulty)
    _check(tune, loaded.location(faults))
    return loaded


def _check(tune: TuneFile, at: Location) -> None:
    for name in ("tune", "test"):
        if not getattr(tune, name).strip():
            at.fault("is empty; name it", name)
    if not tune.axes:
        at.fault("is empty; name a parameter of the test and the values to try", "axes")
    for name, values in tune.axes.items():
        _check_axis(name, values, tune, at)
    _check_default(tune, at)
    for name in tune.parameters.keys() & tune.axes.keys():
        at.fault("is an axis, too; leave out one of the two", "parameters", name)
    for i, text in enumerate(tune.where):
        try:
            compile_expression(text)
        except ExpressionError as error:
            at.fault(str(error), "where", i)
    if not tune.metric and tune.search != "largest":
        at.fault("is missing; name the figure of merit that decides", "metric")
    if tune.search == "sweep":
        _check_sweep(tune, at)
    else:
        _check_no_sweep(at)


def _check_no_sweep(at: Location) -> None:
    """Check that keys of a sweep are not given."""
    for key in filter(at.given, ("also", "runs", "time")):
        at.fault("is for search: sweep; leave it out, or write search: sweep", key)


def _check_sweep(tune: TuneFile, at: Location) -> None:
    """Check the keys that a sweep has alone."""
    for i, name in enumerate(tune.also):
        if name == tune.metric or name in tune.also[:i]:
            at.fault(f"{name} stands there twice", "also", i)
    if 0 < tune.runs < LEAST_SWEPT:
        at.fault(f"{tune.runs} is too few; a sweep takes {LEAST_SWEPT} or more", "runs")
    if at.given("blocks"):
        at.fault("is of a race; a sweep chooses its blocks itself, leave it out", "blocks")
    for name, values in tune.axes.items():
        if not is_ordered(values) and all(_number(each) is not None for each in values):
            at.fault("a sweep takes values in rising order, from small to large", "axes", name)


def is_ordered(values: Sequence[Scalar]) -> bool:
    """Return whether the values of an axis are numbers, or sizes such as 64K, in rising order. The
    last one may be -1, which stands for all: of targets, for stripes."""
    numbers = [_number(each) for each in values]
    known = [each for each in numbers if each is not None]
    if known[-1:] == [-1.0]:
        known[-1] = math.inf
    return len(known) == len(numbers) and known == sorted(known)


def axis_value(case: Case, axis: str) -> Scalar:
    """Return the value of a setting on an axis."""
    return case.toolchain if axis == TOOLCHAIN else case.parameters[axis]


def setting_of(case: Case, axes: Mapping[str, object] | list[str]) -> dict[str, Scalar]:
    """Return the values of a setting on all axes."""
    return {axis: axis_value(case, axis) for axis in axes}


def _number(value: Scalar) -> float | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int | float):
        return float(value)
    try:
        return float(bytes_of(value))
    except ValueError:
        return None


def _check_default(tune: TuneFile, at: Location) -> None:
    for name, value in tune.default.items():
        known = tune.axes.get(name)
        if known is None:
            at.fault(f"is no axis; there are {', '.join(tune.axes) or 'none'}", "default", name)
        elif show(value) not in map(show, known):
            text = f"{show(value)!r} is not in the grid; {name} is one of "
            at.fault(text + ", ".join(map(show, known)), "default", name)


def _check_axis(name: str, values: list[Scalar], tune: TuneFile, at: Location) -> None:
    if not values:
        at.fault("has no values; give a list of those to try", "axes", name)
    shown = [show(value) for value in values]
    for i, text in enumerate(shown):
        if text in shown[:i]:
            at.fault(f"{text} stands there twice", "axes", name, i)
    if tune.search == "largest":
        _check_one_axis(name, values, tune, at)


def _check_one_axis(name: str, values: list[Scalar], tune: TuneFile, at: Location) -> None:
    """Check the axis of a search for the largest value that works."""
    if len(tune.axes) > 1:
        at.fault("search: largest goes over one axis; leave the others to parameters", "axes", name)
    numbers = [each for each in values if isinstance(each, int | float)]
    if len(numbers) < len(values) or numbers != sorted(numbers):
        at.fault("search: largest needs numbers in rising order", "axes", name)
