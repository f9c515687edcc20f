"""``score.yaml``: which figures make a system's score, and how.

wanted = load_score(Path("score.yaml"))          # InvalidFiles, all faults with their lines
"""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from seatrial.documents import Spot, load_checked
from seatrial.errors import UsageError
from seatrial.file_model import Duration, FileModel, Scalar, doc

Positive = Annotated[float, Meta(gt=0)]
Count = Annotated[int, Meta(ge=1)]
ScoreName = Literal["ssp", "ssi", "hpl", "hpcg", "graph500", "io500"]


class ScoreTerm(FileModel, frozen=True):
    """One benchmark of a score: whose figures, and what the formula needs of it."""

    test: Annotated[str, doc("name of the test in its suite")]
    metric: Annotated[str, doc("its metric; elapsed: the time of the script")] = "elapsed"
    where: Annotated[dict[str, Scalar], doc("parameters that the case must have; others: any")] = {}
    toolchain: Annotated[str | None, doc("name or pattern of the toolchain; default: any")] = None
    work: Annotated[Positive | None, doc("ssp: the reference count of operations")] = None
    count: Annotated[Count | None, doc("nodes (or cores) that it ran on; default: the case's")] = (
        None
    )
    weight: Annotated[float, doc("ssi: its weight in the mean", gt=0)] = 1.0
    capability: Annotated[
        float, doc("ssi: how many times the reference problem it solves", gt=0)
    ] = 1.0
    reference: Annotated[Positive | None, doc("ssi: its figure on the reference system")] = None
    reference_count: Annotated[Count | None, doc("ssi: nodes that it ran on there")] = None
    order: Annotated[
        float | str | None,
        doc("hpl: order of the matrix, or the parameter that it is"),
    ] = None


class ScorePhase(FileModel, frozen=True):
    """A part of a system's life in which it has one size."""

    phase: Annotated[str, doc("name of the phase")]
    duration: Annotated[Duration, doc("how long it lasts, such as 180d")]
    size: Annotated[Count | None, doc("nodes (or cores) of the system then; default: size")] = None


class ScoreFile(FileModel, frozen=True):
    """A ``score.yaml``."""

    score: Annotated[ScoreName, doc("which formula")]
    parts: Annotated[dict[str, ScoreTerm], doc("its benchmarks, by name")]
    about: Annotated[str, doc("one sentence: what is scored")] = ""
    unit: Annotated[str, doc("ssp: unit of work, such as Tflop")] = "Tflop"
    per: Annotated[Literal["node", "core"], doc("what is counted")] = "node"
    size: Annotated[Count | None, doc("nodes (or cores) of the system; default: the machine's")] = (
        None
    )
    reference_size: Annotated[
        Count | None, doc("ssi: nodes (or cores) of the reference system")
    ] = None
    peak: Annotated[
        Positive | None,
        doc("hpl, hpcg: the peak in the metric's unit, to show a share of it"),
    ] = None
    phases: Annotated[list[ScorePhase], doc("ssp: phases in order, one for each trial named")] = []


# Keys that mean something for some scores alone.
_PART_OF: dict[str, tuple[str, ...]] = {
    "work": ("ssp",),
    "weight": ("ssi",),
    "capability": ("ssi",),
    "reference": ("ssi",),
    "reference_count": ("ssi",),
    "order": ("hpl",),
    "count": ("ssp", "ssi"),
}
_ROOT_OF: dict[str, tuple[str, ...]] = {
    "unit": ("ssp",),
    "per": ("ssp", "ssi"),
    "size": ("ssp", "ssi"),
    "reference_size": ("ssi",),
    "peak": ("hpl", "hpcg"),
    "phases": ("ssp",),
}
_NEEDED: dict[str, tuple[str, ...]] = {"ssp": ("work",), "ssi": ("reference", "reference_count")}


def load_score(path: Path) -> ScoreFile:
    """Read and check a score.yaml. Raises InvalidFiles with all faults, UsageError where there is
    no such file."""
    if not path.exists():
        raise UsageError(f"{path}: no such file; name a score.yaml (see `seatrial schema score`)")
    return load_checked(path, ScoreFile, _check)


def _check(wanted: ScoreFile, spot: Spot) -> None:
    kind = wanted.score
    for key, kinds in _ROOT_OF.items():
        if kind not in kinds and spot.given(key):
            spot.fault(f"means nothing for {kind}; it is for {', '.join(kinds)}", key)
    if kind == "ssi" and not spot.given("reference_size"):
        spot.fault("is missing; ssi needs the size of the reference system", "reference_size")
    if not wanted.parts:
        spot.fault("has no part; name a test for each", "parts")
    if kind not in ("ssp", "ssi") and len(wanted.parts) > 1:
        spot.fault(f"{kind} has one part, not {len(wanted.parts)}", "parts")
    for name in wanted.parts:
        at = spot.inside("parts", name)
        for key, kinds in _PART_OF.items():
            if kind not in kinds and at.given(key):
                at.fault(f"means nothing for {kind}; it is for {', '.join(kinds)}", key)
        for key in _NEEDED.get(kind, ()):
            if not at.given(key):
                at.fault(f"is missing; {kind} needs it", key)
    names = [each.phase for each in wanted.phases]
    for i, phase in enumerate(wanted.phases):
        if phase.phase in names[:i]:
            spot.fault(f"{phase.phase!r} is there twice", "phases", i, "phase")
