"""What makes an answer right, and the figures of merit: the keys ``verify`` and ``metrics`` of a
test.yaml."""

from typing import Annotated, Literal

from seatrial.file_model import Duration, FileModel, Size, Unit, doc
from seatrial.hooks import each, with_fields
from seatrial.units import Direction

Bound = Annotated[float | str, doc("a number, or an expression as in run")]
ExitVerdict = Literal["pass", "failed", "wrong answer", "performance", "node failure"]
Reduce = Literal["first", "last", "min", "max", "median", "mean", "sum"]


class PlacementCheck(FileModel, frozen=True):
    """Where the threads of a run must have been, by lines of hello or xthi."""

    cores: Annotated[
        Literal["apart", "any"], doc("apart: each thread on a core of its own, if there are enough")
    ] = "apart"
    numa: Annotated[
        Literal["within", "any"],
        doc("within: all threads of a rank in one NUMA domain, if they fit"),
    ] = "within"
    threads: Annotated[Literal["asked", "any"], doc("asked: so many in each rank")] = "asked"
    nodes: Annotated[
        Literal["asked", "any"], doc("asked: so many nodes, and ranks on each of them")
    ] = "asked"
    order: Annotated[
        Literal["asked", "any"], doc("asked: each rank on the node where run.order has it")
    ] = "asked"
    cpus: Annotated[
        Literal["asked", "any"],
        doc(
            "each rank may use no other CPUs than `$LAUNCH` asks for, as `seatrial place` shows "
            "them: `rank 2 on CPUs 6-8; 12-14 asked`"
        ),
    ] = "asked"


class SizeLimit(Size):
    """A size of more than nothing."""

    __slots__ = ()

    def __init__(self, written: int | str) -> None:
        super().__init__(written)
        if not self.bytes:
            raise ValueError(f"{written!r} must be more than 0")


@with_fields({kind.name: (kind.type | None, None) for kind in each("seatrial_checks")})
class Check(FileModel, frozen=True, rename={"in_file": "in"}):
    """One condition for a right answer: exactly one of the kinds, on one file."""

    name: Annotated[str, doc("name of the check in verdicts")] = ""
    in_file: Annotated[
        str, doc("file to check, for `contains`, `absent`, `matches`, `value` and `placement`")
    ] = "stdout"
    exit_code: Annotated[
        int | Literal["any"] | None, doc("exit code of the script; any: not checked")
    ] = None
    contains: Annotated[str | None, doc("text that must be there")] = None
    absent: Annotated[str | None, doc("text that must not be there")] = None
    matches: Annotated[
        str | None,
        doc("regular expression that must match somewhere; `^` and `$` are the ends of a line"),
    ] = None
    file: Annotated[str | None, doc("file that must exist; it may be empty")] = None
    value: Annotated[
        str | None,
        doc(
            "regular expression with one group: a number, compared with `equals`, or with "
            "`at_least` and `at_most`; every match must pass"
        ),
    ] = None
    equals: Annotated[Bound | None, doc("expected value of that number")] = None
    tolerance: Annotated[Bound, doc("absolute tolerance of equals")] = 0.0
    relative: Annotated[Bound, doc("relative tolerance of equals, 0.01 is 1 %")] = 0.0
    at_least: Annotated[Bound | None, doc("minimum of that number")] = None
    at_most: Annotated[Bound | None, doc("maximum of that number")] = None
    identical: Annotated[str | None, doc("file whose bytes must be the same")] = None
    sha256: Annotated[
        str | None,
        doc(
            "checksum of that file, as `sha256sum` prints it; for files of any size; without it "
            "the checksum is learned"
        ),
    ] = None
    python: Annotated[str | None, doc("function that judges: file.py:function")] = None
    script: Annotated[str | None, doc("script that judges by its exit code: a file")] = None
    codes: Annotated[
        dict[str, ExitVerdict] | Literal["oth", "any"] | None,
        doc("its verdicts by exit code; oth: those of the OLCF Test Harness; any: no verdict"),
    ] = None
    time_limit: Annotated[Duration | None, doc("maximum time of that script")] = None
    memory_limit: Annotated[Size | None, doc("maximum memory of each of its processes")] = None
    placement: Annotated[
        PlacementCheck | None, doc("where threads must have been, by lines of hello or xthi")
    ] = None
    size_limit: Annotated[SizeLimit | None, doc("maximum bytes read of the file")] = None


class Metric(FileModel, frozen=True, rename={"in_file": "in"}):
    """A figure of merit and where it is found."""

    find: Annotated[
        str,
        doc("regular expression with one group, the number; `^` and `$` are the ends of a line"),
    ]
    better: Annotated[
        Direction,
        doc(
            "direction of improvement; `none`: the figure is recorded and shown, and never "
            "judged; a reference for it is a `check error`"
        ),
    ]
    unit: Unit = "1"
    reduce: Annotated[
        Reduce | None, doc("how to reduce several values to one; required if there are several")
    ] = None
    in_file: Annotated[str, doc("file to search")] = "stdout"
    size_limit: Annotated[SizeLimit | None, doc("maximum bytes read of the file")] = None
