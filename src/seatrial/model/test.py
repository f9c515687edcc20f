"""A test as people write it (``test.yaml``), and a case: a test with every parameter bound.

The structs are the file's shape: the loader decodes by them and ``seatrial schema`` prints them, so
the two cannot differ.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct, field

from seatrial.hooks import provided, with_fields, with_keys
from seatrial.model.failures import KnownFailure, log_pattern
from seatrial.model.file_model import (
    Duration,
    FileModel,
    Scalar,
    Share,
    Size,
    Span,
    Unit,
    checked,
    doc,
    filled,
)
from seatrial.model.identifiers import CaseOutline, show
from seatrial.model.topology import NodeWish
from seatrial.units import Direction, bytes_of, share_of

# ---- what texts must be --------------------------------------------------------------------------


def _is_one_word(text: str) -> None:
    if not text.strip() or any(c.isspace() for c in text):
        raise ValueError(f"{text!r} is not one word")


def _has_no_nul(script: str) -> None:
    if "\0" in script:
        raise ValueError("holds a NUL character")


def _is_inner_pattern(pattern: str) -> None:
    parts = pattern.split("/")
    if "" in parts or ".." in parts or "\0" in pattern:
        text = f"{pattern!r} is no pattern of paths inside the run directory"
        raise ValueError(f"{text}; write e.g. '*.dat' or 'out/*'")


def _is_mode(name: str) -> None:
    if not name.strip() or not name.isprintable():
        raise ValueError("is no name")


Word = Annotated[str, checked(_is_one_word)]
Script = Annotated[str, checked(_has_no_nul)]
InnerPattern = Annotated[str, checked(_is_inner_pattern)]
ModeName = Annotated[str, checked(_is_mode)]

# ---- run spec ------------------------------------------------------------------------------------
#
# How a test is run: the key ``run`` of a test.yaml.


Expression = Annotated[int | str, doc("a whole number or an expression over parameters and facts")]
Spread = Literal["numa", "socket", "pack"]
Bind = Literal["core", "numa", "socket", "none"]
NumaPolicy = Literal["local", "interleave"]
QuietAnswer = Literal["end", "tell"]


class Stripe(FileModel, frozen=True):
    """How the files of a run are striped over the targets of Lustre."""

    count: Annotated[Expression, doc("number of stripes; -1: all targets; default: Lustre's")]
    size: Annotated[str, doc("size of a stripe, e.g. 4M; {name} stands for a parameter")] = ""


class AskedNodes(FileModel, frozen=True):
    """Where the nodes of a run are in the network of the machine."""

    within: Annotated[
        str,
        doc(
            "level of the network: all nodes are in one unit of it, the one with the fewest free "
            "nodes that are enough"
        ),
    ] = ""
    across: Annotated[
        str,
        doc(
            "level of the network: nodes are spread evenly over its units, over as many as there "
            "are nodes for"
        ),
    ] = ""
    order: Annotated[
        str,
        doc(
            "order in which ranks go to the nodes: the axis along which they go up first (X, Y, "
            "Z), or random; without `across` and `near` the nodes are the first free ones in "
            "this order; default: the machine's order"
        ),
    ] = ""
    near: Annotated[
        str,
        doc(
            "role of nodes, by `roles` of the topology: the nodes with the fewest hops to one of "
            "them"
        ),
    ] = ""


class RunSpec(FileModel, frozen=True):
    """How a test is run."""

    script: Annotated[
        Annotated[Script, filled()], doc("bash as written; it starts in the run directory")
    ]
    nodes: Annotated[Expression, doc("number of nodes")] = 1
    tasks: Annotated[
        Expression | None, doc("total number of tasks; not together with `tasks_per_node`")
    ] = None
    tasks_per_node: Annotated[Expression | None, doc("tasks on each node; default: 1")] = None
    threads_per_task: Annotated[Expression, doc("threads of each task, and cores that it gets")] = 1
    walltime: Annotated[Expression | float, doc("maximum time, e.g. 5m")] = "10m"
    launcher: Annotated[
        str | None,
        doc("starter of the tasks, or a parameter that has it; default: the machine's"),
    ] = None
    scope: Annotated[
        Literal["machine", "each_node"],
        doc("each_node: one run for every node, pinned to it"),
    ] = "machine"
    exclusive: Annotated[
        bool,
        doc(
            "nothing else may run on its nodes meanwhile; without it Slurm may give the cores "
            "that a run leaves free to others"
        ),
    ] = False
    oversubscribe: Annotated[
        bool,
        doc(
            "the tasks of a node may have more threads than it has CPUs, on this host and on Slurm "
            "(--overcommit), where all cases of the test get whole nodes then; without it such a "
            "case is left out"
        ),
    ] = False
    tasks_per_numa: Annotated[
        Expression | None, doc("maximum tasks of a NUMA domain; alone: that many in each domain")
    ] = None
    spread: Annotated[
        str | None,
        doc("numa, socket or pack: where tasks go on a node that is not full; or an expression"),
    ] = None
    bind: Annotated[
        str | None, doc("core, numa, socket or none: what each task is bound to; or an expression")
    ] = None
    numa_policy: Annotated[
        str | None,
        doc("local or interleave: the domain in which a task's memory is; or an expression"),
    ] = None
    spare_cores: Annotated[
        Expression,
        doc(
            "cores of each node that get no task; all cases of the test get whole nodes then, "
            "also those that spare none"
        ),
    ] = 0
    order: Annotated[
        str,
        doc(
            "rank order: smp, round robin, folded, grid 8x8 by 2x2, mfdn 5 BDM, file NAME, "
            "random SEED, default; or a parameter that has it"
        ),
    ] = ""
    place: Annotated[
        str | AskedNodes | None,
        doc(
            "place of its nodes in the network: words such as chassis, groups, order Y, or mapping"
        ),
    ] = None
    within: Annotated[
        Literal["allocation"] | None,
        doc("allocation: all cases and repeats share one, in turn on the same nodes"),
    ] = None
    pieces: Annotated[
        Expression | None, doc("so many runs share an allocation, each with its number, $PIECE")
    ] = None
    at_once: Annotated[Expression, doc("pieces that run at a time, beside each other")] = 1
    gpus_per_node: Annotated[Expression | None, doc("GPUs of each node; 0: none")] = None
    gpus_per_task: Annotated[Expression | None, doc("GPUs of each task; 0: none")] = None
    memory: Annotated[
        int | str | None,
        doc("memory of each node: a number or an expression, and a unit, e.g. 16GiB"),
    ] = None
    partition: Annotated[str | None, doc("Slurm partition; {name} stands for a parameter")] = None
    qos: Annotated[str | None, doc("Slurm quality of service")] = None
    reservation: Annotated[str | None, doc("Slurm reservation")] = None
    account: Annotated[str | None, doc("Slurm account")] = None
    options: Annotated[list[str], doc("further arguments of sbatch")] = []
    prove: Annotated[
        bool,
        doc(
            "start the probe `hello` by `$LAUNCH` first, and check where its ranks and threads "
            "are, and that the program runs its threads"
        ),
    ] = False
    pattern: Annotated[bool, doc("record which rank sends how much to which")] = False
    quiet_for: Annotated[Span, doc("time without output after which a run is hung; 0: never")] = (
        Span(0)
    )
    quiet_answer: Annotated[
        QuietAnswer,
        doc("reaction to a hung run: end it with the verdict `hung`, or only send an alert"),
    ] = "end"
    pages: Annotated[
        str,
        doc("pages of the memory: default, 4k, thp, 2M or 1G; {name} stands for a parameter"),
    ] = ""
    malloc: Annotated[
        dict[str, Expression], doc("tunables of glibc's malloc by name; default: glibc's value")
    ] = {}
    stripe: Annotated[Stripe | None, doc("stripes of the files that it writes on Lustre")] = None
    container: Annotated[
        str,
        doc(
            "image in which $LAUNCH starts programs: a path (/ or ./ first), a name that the "
            "machine's runtime knows, or default (none); {name} stands for a parameter"
        ),
    ] = ""
    directory: Annotated[
        str,
        doc(
            "where the script works: default (the run directory), a file system of the machine, "
            "or an absolute path; {name} stands for a parameter"
        ),
    ] = ""


NO_RUN = RunSpec(script="")


# ---- check spec ----------------------------------------------------------------------------------
#
# What makes an answer right, and the figures of merit: the keys ``verify`` and ``metrics`` of a
# test.yaml.


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


def _is_some(written: int | str) -> None:
    if not bytes_of(written):
        raise ValueError(f"{written!r} must be more than 0")


SizeLimit = Annotated[Size, checked(_is_some)]


def _is_below_all(written: int | float | str) -> None:
    if share_of(written) >= 1:
        raise ValueError(f"{written!r} must be less than 100%: anything would be within it")


class Consistency(FileModel, frozen=True):
    """Two metrics that tell of the same transfer: the time times the rate must be the size."""

    time: Annotated[
        str, filled(), doc("metric that is a time: its unit is ns, us, usec, ms, s, min or h")
    ]
    rate: Annotated[
        str, filled(), doc("metric that is a rate: its unit is B/s, MB/s, GiB/s and so on")
    ]
    size: Annotated[SizeLimit, doc("bytes that are moved in that time")]
    within: Annotated[
        Share,
        checked(_is_below_all),
        doc("share of the size by which the product may be off"),
    ] = Share("5%")


@with_fields({kind.name: (kind.type | None, None) for kind in provided("seatrial_checks")})
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
        doc(
            "regular expression that must match somewhere; `^` and `$` are the ends of a line, "
            "which a carriage return ends, too"
        ),
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
    consistent: Annotated[
        Consistency | None,
        doc("time and rate among the metrics, whose product must be a size; judged after them"),
    ] = None
    size_limit: Annotated[SizeLimit | None, doc("maximum bytes read of the file")] = None


class Metric(FileModel, frozen=True, rename={"in_file": "in"}):
    """A figure of merit and where it is found, or the two figures of which it is the ratio."""

    find: Annotated[
        str,
        doc(
            "regular expression with one group, the number; `^` and `$` are the ends of a line, "
            "which a carriage return ends, too"
        ),
    ] = ""
    of: Annotated[
        str,
        doc(
            "in place of `find`: a metric, or `elapsed`, that is divided by the one `over`, in one "
            "unit; of figures with labels each is divided by that with the same ones, e.g. "
            "`{of: read, over: write}`"
        ),
    ] = ""
    over: Annotated[str, doc("the metric by which `of` is divided; 0 gives no figure")] = ""
    better: Annotated[
        Direction | None,
        doc(
            "direction of improvement, required beside `find`; `none`: the figure is recorded and "
            "shown, and never judged; a reference for it is a `check error`; default of a ratio: "
            "none"
        ),
    ] = None
    unit: Unit = "1"
    reduce: Annotated[
        Reduce | None, doc("how to reduce several values to one; required if there are several")
    ] = None
    in_file: Annotated[str, doc("file to search")] = "stdout"
    size_limit: Annotated[SizeLimit | None, doc("maximum bytes read of the file")] = None

    @property
    def direction(self) -> Direction:
        """Where it is better; that of a ratio need not be written."""
        return self.better or "none"


# ---- model ---------------------------------------------------------------------------------------


KeepWord = Literal["all", "failed", "none"]
Stage = Literal["alone", "full"]  # how a run shared the machine; see plan.model.Component


class Space(FileModel, frozen=True):
    """The space that a run will take, and where."""

    size: Annotated[str, filled(), doc("bytes: a number or an expression, and a unit, e.g. 32TiB")]
    path: Annotated[
        str,
        doc(
            "a file system of the machine, or a path from the directory in which the script works, "
            "which must exist; {name} stands for a parameter; default: that directory"
        ),
    ] = ""
    largest_file: Annotated[
        str,
        doc(
            "bytes of its largest file, likewise: on Lustre the fullest target must have room for "
            "its part; default: the size"
        ),
    ] = ""


class Requires(FileModel, frozen=True):
    """Requirements on nodes and machine; a case that does not meet them is not made."""

    nodes: Annotated[int, doc("minimum nodes of the machine", ge=1)] = 1
    features: Annotated[list[str], doc("features that each node must have")] = []
    commands: Annotated[list[str], doc("commands that must be on the caller's PATH")] = []
    or_given: Annotated[
        str,
        doc(
            "a parameter that takes the place of `commands` where it is not empty, such as the "
            "tarball that they are built from"
        ),
    ] = ""
    space: Annotated[
        str | Space | None,
        doc(
            "space that a run takes, e.g. 32TiB, or mapping; the job asks for it, and a run "
            "without it is `refused` before its script starts"
        ),
    ] = None


class Input(FileModel, frozen=True):
    """A file or folder that is put into each run directory before the script starts."""

    source: Annotated[str, doc("path, relative to the test's folder")]
    name: Annotated[str, doc("name in the run directory; default: its own")] = ""
    how: Annotated[Literal["link", "copy"], doc("symbolic link or a copy")] = "link"


class Build(FileModel, frozen=True):
    """How a test is built: once for each build key, outside the allocations of runs. It has a
    script, names a prebuilt binary, or asks for a package of the site's Spack or EasyBuild."""

    script: Annotated[
        Script,
        doc(
            "bash; it starts in the build's own directory. One of `script`, `prebuilt`, `spack` "
            "and `easybuild` is required"
        ),
    ] = ""
    prebuilt: Annotated[
        str, doc("a binary instead of a script; path, relative to the test's folder")
    ] = ""
    sha256: Annotated[str, doc("checksum of that binary, in hex")] = ""
    spack: Annotated[
        str, doc("spec that the site's Spack installs, as on its command line; runs load it")
    ] = ""
    easybuild: Annotated[
        str,
        doc("easyconfig that the site's EasyBuild installs, beside the test or in its search path"),
    ] = ""
    sources: Annotated[list[str], doc("files and folders copied into the build directory")] = []
    parameters: Annotated[
        list[str], doc("parameters that the build needs, besides those in its script")
    ] = []
    timeout: Annotated[Duration, doc("maximum time of a build")] = Duration("1h")
    where: Annotated[
        Literal["host", "job"] | None,
        doc("on this host, or in a job of the machine's scheduler; default: the machine's builds"),
    ] = None
    cores: Annotated[int, doc("cores of that job", ge=1)] = 1

    @property
    def of_others(self) -> bool:
        """Return whether what is built belongs to others: no trial makes it for another one."""
        return bool(self.prebuilt or self.spack or self.easybuild)


class Keep(FileModel, frozen=True):
    """Which outputs stay after a run was judged. Of stdout and stderr the end always does."""

    runs: Annotated[KeepWord, doc("runs of which everything is kept")] = "failed"
    remove: Annotated[
        list[InnerPattern], doc("of other runs: files that are removed; default: all")
    ] = []
    files: Annotated[list[InnerPattern], doc("of these: files that are kept")] = []
    tail: Annotated[Size, doc("bytes of stdout and stderr that are kept")] = Size("64KiB")


class FromParameter(FileModel, frozen=True):
    """The value of a parameter of the test."""

    parameter: Annotated[str, doc("its name")]


class OwnFlags(FileModel, frozen=True):
    """What a test needs other than a toolchain of the machine says, and the reason."""

    reason: Annotated[
        Annotated[str, filled("say why it is needed")], doc("reason, which the report shows")
    ]
    cflags: Annotated[str | None, doc("compiler flags, in place of the toolchain's")] = None
    openmp: Annotated[str | None, doc("OpenMP flag, likewise")] = None
    ldflags: Annotated[str | None, doc("linker flags, likewise")] = None
    ldlibs: Annotated[str | None, doc("libraries, likewise")] = None
    environment: Annotated[
        dict[str, Scalar],
        doc("variables, besides the toolchain's; `$NAME` in one is that of the node"),
    ] = {}
    skip: Annotated[bool, doc("the test is left out with this toolchain")] = False


class FailureMode(FileModel, frozen=True):
    """A way in which a test fails that has its own code and name: what its output holds, its exit
    code, or both."""

    code: Annotated[
        int,
        doc("its number, from 100 on, which no other failure of the test has", ge=100, le=999_999),
    ]
    pattern: Annotated[
        Annotated[str, checked(lambda pattern: pattern and log_pattern(pattern))],
        doc("regular expression of RE2 that a line holds"),
    ] = ""
    exit_code: Annotated[
        int | None,
        doc("the script's exit code; with a `pattern` both must fit. One of them is required"),
    ] = None
    advice: Annotated[str, doc("what to do")] = ""


@with_keys("test")
class TestFile(FileModel, frozen=True):
    """A ``test.yaml``."""

    __test__ = False  # pytest must not collect it

    app: Annotated[Annotated[str, filled("name the application")], doc("application")]
    run: Annotated[RunSpec, doc("how it is run; without it the test passes when it builds")] = (
        NO_RUN
    )
    about: Annotated[str, doc("one sentence: purpose of the test")] = ""
    tags: Annotated[list[Word], doc("words for selection")] = []
    inherits: Annotated[str | None, doc("test of this suite whose keys it inherits")] = None
    parameters: Annotated[
        dict[str, Scalar | list[Scalar]],
        doc("lists of literals, single numbers, or expressions that give either"),
    ] = {}
    defaults: Annotated[
        dict[str, Scalar],
        doc("further parameters, with the value that each has where --set gives no other"),
    ] = {}
    zip: Annotated[list[list[str]], doc("groups of parameters that advance together")] = []
    exclude: Annotated[list[str], doc("conditions; true leaves the case out")] = []
    toolchains: Annotated[
        list[Word] | dict[str, OwnFlags],
        doc("names or patterns of toolchains, default: all; or flags for some of them"),
    ] = []
    requires: Annotated[Requires, doc("requirements on the machine")] = Requires()
    harmful: Annotated[
        bool,
        doc(
            "whether it can harm the machine or what others do on it; it runs only with the "
            "consent of a person (`--consent`), of two on a machine with `production: true`"
        ),
    ] = False
    environment: Annotated[
        dict[str, Scalar | FromParameter],
        doc(
            "variables exported to build and run, of a parameter: to runs; `$NAME` in one is that "
            "of the node"
        ),
    ] = {}
    modules: Annotated[list[Word], doc("modules loaded for build and run")] = []
    inputs: Annotated[list[str | Input], doc("files put into each run directory")] = []
    build: Annotated[Build | None, doc("how it is built")] = None
    repeat: Annotated[int, doc("runs of each case", ge=1, le=1_000_000)] = 1
    keep: Annotated[KeepWord | Keep, doc("runs of which everything is kept, or in full")] = "all"
    verify: Annotated[
        list[Check], doc("conditions for a right answer; default: exit code is 0")
    ] = []
    known_failures: Annotated[list[KnownFailure], doc("failures that people know of")] = []
    failures: Annotated[
        dict[ModeName, FailureMode], doc("how it fails, by names: own codes, beside the verdict")
    ] = {}
    metrics: Annotated[
        dict[str, str | Metric],
        doc(
            "figures of merit by name; or from: FORMAT; or python: file.py:function",
        ),
    ] = {}
    parts: Annotated[
        dict[str, list[str]],
        doc(
            "metrics that are parts of a metric, or of `elapsed`, by its name: `{total: [compute, "
            "io]}`; their shares are shown, and what they leave as `other`. Parts that are more "
            "than the whole are a `check error`, where half of the last digit of each does not "
            "explain it"
        ),
    ] = {}
    plugins: Annotated[
        list[str], doc("plug-ins that this file needs; a fault where one is not there")
    ] = []


class Test(TestFile, frozen=True, kw_only=True):
    """A test of a suite: the content of its file, its folder, and its name in the suite."""

    __test__ = False

    name: str
    folder: str

    @property
    def parameter_names(self) -> list[str]:
        """The names of its parameters, those with a default last."""
        return [*self.parameters, *self.defaults]

    def bound(self, parameters: Mapping[str, Scalar]) -> dict[str, Scalar]:
        """Return all parameters of a case, by those in its name."""
        return {**self.defaults, **parameters}

    def identifying(self, bound: dict[str, Scalar]) -> dict[str, Scalar]:
        """Return the parameters in a case's name and id: those that differ from their default.

        So a parameter with a default that is added to a test renames no case.
        """
        if not self.defaults and not self.zip:
            return bound  # it is in the order of the file
        named = {n: bound[n] for n in self.parameter_names if n in bound} | bound
        for name, usual in self.defaults.items():
            if name in named and show(named[name]) == show(usual):
                del named[name]
        return named

    @property
    def is_compiled(self) -> bool:
        """Whether a script builds it, with a toolchain, and not others alone."""
        return self.build is not None and bool(self.build.script or not self.build.of_others)

    @property
    def only_builds(self) -> bool:
        """Whether the test has no run: it passes when it builds."""
        return not self.run.script

    @property
    def scripts(self) -> dict[str, str]:
        """Its scripts that have a line, by what they do: build, run."""
        texts = {"build": self.build.script if self.build else "", "run": self.run.script}
        return {kind: text for kind, text in texts.items() if text.strip()}

    @property
    def fixed_environment(self) -> dict[str, Scalar]:
        """The variables that are the same for all its cases."""
        items = self.environment.items()
        return {name: value for name, value in items if not isinstance(value, FromParameter)}


class CaseSelection(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The filters of ``seatrial run``."""

    keyword: str = ""
    tags: list[str] = []
    toolchains: list[str] = []
    settings: dict[str, str] = {}
    repeat: int = 0


class TrialOptions(CaseSelection, frozen=True, kw_only=True, omit_defaults=True):
    """What a person asks for a trial of a suite: the options of ``seatrial run``."""

    #: Folders of tests.
    suites: list[str]
    #: How many jobs are in flight at most; 0: as many as the machine's file says.
    jobs: int = 0
    #: After so many failures no further runs start; 0: they do.
    max_failures: int = 0
    #: The trial whose failed cases run.
    failed_from: str = ""
    #: Whether no build is taken from other trials.
    rebuild: bool = False
    #: Whether all runs share allocations, as far as they need the same nodes.
    together: bool = False
    #: The repeats of a case are runs in each of so many allocations.
    allocations: int = 1
    #: How the trial was run, by name; sides of a comparison are chosen by them.
    labels: dict[str, str] = field(default_factory=dict)
    #: Whether it is recorded which rank sends how much to which.
    pattern: bool = False
    #: Who consented that tests run which are harmful.
    consent: list[str] = []


class JobOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a case asks of the scheduler besides its size and time. Where a text is None, the
    machine's ``slurm`` decides; "" removes what that says."""

    gpus_per_node: int = 0
    gpus_per_task: int = 0
    #: Of each node, in bytes; 0: not asked for.
    memory: int = 0
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    #: They come after those of the machine.
    options: tuple[str, ...] = ()
    #: Whether a node may get more tasks than it has CPUs.
    oversubscribe: bool = False

    def gpus_of_node(self, tasks_per_node: int) -> int:
        """The GPUs that a run needs on each of its nodes."""
        return self.gpus_per_node or self.gpus_per_task * tasks_per_node


class RunSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a run asks for of memory, files and containers; "" and 0: not asked for."""

    pages: str = ""
    #: Tunables of malloc.
    malloc: dict[str, int] = {}
    stripe_count: int = 0
    stripe_size: int = 0
    #: The folder below which its script works; "": the run directory.
    directory: str = ""
    #: The type that the file system of the directory must have; "": any.
    file_system_type: str = ""
    #: The image of its container.
    container: str = ""
    #: The bytes that it will take, those of its largest file, and the path on the file system.
    space: int = 0
    largest_file: int = 0
    space_path: str = ""


class TaskPlacement(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """Where the tasks of a case are on each node, as its test asks; None and 0: not asked for."""

    spread: Spread | None = None
    bind: Bind | None = None
    numa_policy: NumaPolicy | None = None
    tasks_per_numa: int = 0
    spare_cores: int = 0

    @property
    def needs_whole_nodes(self) -> bool:
        """Whether it says which cores of a node get tasks: then no other job may have some."""
        return bool(self.spread or self.tasks_per_numa or self.spare_cores)


class Case(CaseOutline, frozen=True, kw_only=True):
    """A test with every parameter bound, on one machine and toolchain.

    ``id`` is the hash of the case's meaning: test, parameters, machine, toolchain, the numbers of
    nodes, tasks and threads, of GPUs if it asks for some and, for ``scope: each_node``, the node.
    Scripts, repeats, display names and partitions are not part of it, so a series continues when
    they change. A case of a test without a run has no nodes, tasks and threads.
    """

    job: JobOptions = JobOptions()
    settings: RunSettings = RunSettings()
    placement: TaskPlacement = TaskPlacement()
    #: How many runs of cases that share an allocation run at a time.
    at_once: int = 1
    #: Its rank order by words; "": the launcher decides.
    order: str = ""
    #: Where its nodes are to be in the network; None: anywhere.
    place: NodeWish | None = None

    @property
    def only_builds(self) -> bool:
        """Whether it has no job: its verdict is that of its build."""
        return self.nodes == 0

    @property
    def gpus(self) -> int:
        """The GPUs that it needs on each of its nodes."""
        return self.job.gpus_of_node(self.tasks_per_node)
