"""The file of a tuning (``tune.yaml``): which settings of a test are tried, and at what cost.

    tune, node = load_tune(Path("tune.yaml"), faults)

The Structs are the file's shape. What depends on the test and the machine is checked where both are
known (``trial.tuning``).
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.model.documents import Faults, Faulty, Location, YamlNode, decode_partly, read
from seatrial.model.expressions import ExpressionError, compile_expression
from seatrial.model.file_model import FileModel, Scalar, Share, checked, doc
from seatrial.model.identifiers import show
from seatrial.units import share_of

TOOLCHAIN = "toolchain"  # an axis that is no parameter
MAX_SETTINGS = 1000


def _is_part(written: int | float | str) -> None:
    if not 0 < share_of(written) <= 1:
        raise ValueError("must be above 0 and at most 100%")


Part = Annotated[Share, checked(_is_part)]


class TuneBlocks(FileModel, frozen=True):
    """The allocations of a tuning. In each one, settings run in rounds: each once a round."""

    nodes: Annotated[int, doc("nodes of an allocation; 0: those that the runs need", ge=0)] = 0
    rounds: Annotated[int, doc("most rounds in an allocation", ge=1, le=100)] = 4
    allocations: Annotated[int, doc("most allocations", ge=1, le=100)] = 3


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
        Literal["race", "halving", "grid", "largest"], doc("how settings are chosen to run again")
    ] = "race"
    cost: Annotated[Part, doc("most runs, as a share of those of the whole grid")] = Share("25%")
    min_effect: Annotated[Part, doc("least effect that matters, as a share")] = Share("2%")


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
    if tune.search != "largest":
        return
    if len(tune.axes) > 1:
        at.fault("search: largest goes over one axis; leave the others to parameters", "axes", name)
    numbers = [each for each in values if isinstance(each, int | float)]
    if len(numbers) < len(values) or numbers != sorted(numbers):
        at.fault("search: largest needs numbers in rising order", "axes", name)
