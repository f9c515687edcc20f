"""A test as people write it (``test.yaml``), and a case: a test with every parameter bound.

The structs are the file's shape: the loader decodes by them and ``seatrial schema`` prints them, so
the two cannot differ.
"""

from collections.abc import Mapping
from typing import Annotated, Literal

from msgspec import Struct

from seatrial.file_model import Duration, FileModel, Scalar, Size, doc
from seatrial.layout.node_choice import NodeWish
from seatrial.machine.failures import KnownFailure
from seatrial.suite.case_names import case_name, show
from seatrial.suite.check_spec import Check, Metric
from seatrial.suite.run_spec import NO_RUN, Bind, NumaPolicy, RunSpec, Spread

KeepWord = Literal["all", "failed", "none"]
Stage = Literal["alone", "full"]  # how a run shared the machine; see plan.model.Component


class Requires(FileModel, frozen=True):
    """Requirements on nodes and machine; a case that does not meet them is not made."""

    nodes: Annotated[int, doc("minimum nodes of the machine", ge=1)] = 1
    features: Annotated[list[str], doc("features that each node must have")] = []
    commands: Annotated[list[str], doc("commands that must be on the caller's PATH")] = []


class Input(FileModel, frozen=True):
    """A file or folder that is put into each run directory before the script starts."""

    source: Annotated[str, doc("path, relative to the test's folder")]
    name: Annotated[str, doc("name in the run directory; default: its own")] = ""
    how: Annotated[Literal["link", "copy"], doc("symbolic link or a copy")] = "link"


class Build(FileModel, frozen=True):
    """How a test is built: once for each build key, outside the allocations of runs. It has a
    script, names a prebuilt binary, or asks for a package of the site's Spack or EasyBuild."""

    script: Annotated[
        str,
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
    remove: Annotated[list[str], doc("of other runs: files that are removed; default: all")] = []
    files: Annotated[list[str], doc("of these: files that are kept")] = []
    tail: Annotated[Size, doc("bytes of stdout and stderr that are kept")] = Size("64KiB")


class FromParameter(FileModel, frozen=True):
    """The value of a parameter of the test."""

    parameter: Annotated[str, doc("its name")]


class OwnFlags(FileModel, frozen=True):
    """What a test needs other than a toolchain of the machine says, and the reason."""

    reason: Annotated[str, doc("reason, which the report shows")]
    cflags: Annotated[str | None, doc("compiler flags, in place of the toolchain's")] = None
    openmp: Annotated[str | None, doc("OpenMP flag, likewise")] = None
    ldflags: Annotated[str | None, doc("linker flags, likewise")] = None
    ldlibs: Annotated[str | None, doc("libraries, likewise")] = None
    environment: Annotated[dict[str, Scalar], doc("variables, besides the toolchain's")] = {}
    skip: Annotated[bool, doc("the test is left out with this toolchain")] = False


class FailureMode(FileModel, frozen=True):
    """A way in which a test fails that has its own code and name: what its output holds, its exit
    code, or both."""

    code: Annotated[
        int,
        doc("its number, from 100 on, which no other failure of the test has", ge=100, le=999_999),
    ]
    pattern: Annotated[str, doc("regular expression of RE2 that a line holds")] = ""
    exit_code: Annotated[
        int | None,
        doc("the script's exit code; with a `pattern` both must fit. One of them is required"),
    ] = None
    advice: Annotated[str, doc("what to do")] = ""


class TestFile(FileModel, frozen=True):
    """A ``test.yaml``."""

    __test__ = False  # pytest must not collect it

    app: Annotated[str, doc("application")]
    run: Annotated[RunSpec, doc("how it is run; without it the test passes when it builds")] = (
        NO_RUN
    )
    about: Annotated[str, doc("one sentence: purpose of the test")] = ""
    tags: Annotated[list[str], doc("words for selection")] = []
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
        list[str] | dict[str, OwnFlags],
        doc("names or patterns of toolchains, default: all; or flags for some of them"),
    ] = []
    requires: Annotated[Requires, doc("requirements on the machine")] = Requires()
    environment: Annotated[
        dict[str, Scalar | FromParameter],
        doc("variables exported to build and run; of a parameter: to runs"),
    ] = {}
    modules: Annotated[list[str], doc("modules loaded for build and run")] = []
    inputs: Annotated[list[str | Input], doc("files put into each run directory")] = []
    build: Annotated[Build | None, doc("how it is built")] = None
    repeat: Annotated[int, doc("runs of each case", ge=1, le=1_000_000)] = 1
    keep: Annotated[KeepWord | Keep, doc("runs of which everything is kept, or in full")] = "all"
    verify: Annotated[
        list[Check], doc("conditions for a right answer; default: exit code is 0")
    ] = []
    known_failures: Annotated[list[KnownFailure], doc("failures that people know of")] = []
    failures: Annotated[
        dict[str, FailureMode], doc("how it fails, by names: own codes, beside the verdict")
    ] = {}
    metrics: Annotated[
        dict[str, str | Metric],
        doc(
            "figures of merit by name; or from: FORMAT; or python: file.py:function",
        ),
    ] = {}


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
        """Return all parameters of a case, by those that it is told by."""
        return {**self.defaults, **parameters}

    def told(self, bound: dict[str, Scalar]) -> dict[str, Scalar]:
        """Return the parameters that a case is told by: without those at their default, so that its
        name and identity stay when a test gets a parameter with a default."""
        if not self.defaults and not self.zip:
            return bound  # it is in the order of the file
        told = {n: bound[n] for n in self.parameter_names if n in bound} | bound
        for name, usual in self.defaults.items():
            if name in told and show(told[name]) == show(usual):
                del told[name]
        return told

    @property
    def only_builds(self) -> bool:
        """Whether the test has no run: it passes when it builds."""
        return not self.run.script

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


class JobOptions(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """What a case asks of the scheduler besides its size and time. ``memory`` is that of each node,
    in bytes (0: not asked for). Where a text is None, the machine's ``slurm`` decides; "" removes
    what that says. ``options`` come after those of the machine."""

    gpus_per_node: int = 0
    gpus_per_task: int = 0
    memory: int = 0
    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    reservation: str | None = None
    constraint: str | None = None
    options: tuple[str, ...] = ()

    def gpus_of_node(self, tasks_per_node: int) -> int:
        """The GPUs that a run needs on each of its nodes."""
        return self.gpus_per_node or self.gpus_per_task * tasks_per_node


class RunSettings(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The pages of a run's memory ("": not asked for), the tunables of malloc, the stripes of its
    files (0: not asked for; sizes in bytes), the directory below which its script works ("": the
    run directory) with the type that its file system must have ("": any), and the image of its
    container ("": none)."""

    pages: str = ""
    malloc: dict[str, int] = {}
    stripe_count: int = 0
    stripe_size: int = 0
    directory: str = ""
    file_system_type: str = ""
    container: str = ""


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


class Case(Struct, frozen=True, kw_only=True):
    """A test with every parameter bound, on one machine and toolchain.

    ``id`` is the hash of the case's meaning: test, parameters, machine, toolchain, the numbers of
    nodes, tasks and threads, of GPUs if it asks for some and, for ``scope: each_node``, the node.
    Scripts, repeats, display names and partitions are not part of it, so a series continues when
    they change. ``walltime`` is in seconds, ``build`` a build key or "". A case of a test without a
    run has no nodes, tasks and threads. Where runs of cases share an allocation, so many run
    ``at_once``. ``order`` is its rank order by words; "": the launcher decides. ``place`` is where
    its nodes are to be in the network; None: anywhere.
    """

    id: str
    test: str
    parameters: dict[str, Scalar]
    toolchain: str
    nodes: int
    tasks: int
    tasks_per_node: int
    threads: int
    walltime: float
    node: str = ""
    exclusive: bool = False
    repeat: int = 1
    build: str = ""
    job: JobOptions = JobOptions()
    settings: RunSettings = RunSettings()
    placement: TaskPlacement = TaskPlacement()
    at_once: int = 1
    order: str = ""
    place: NodeWish | None = None

    @property
    def only_builds(self) -> bool:
        """Whether it has no job: its verdict is that of its build."""
        return self.nodes == 0

    @property
    def gpus(self) -> int:
        """The GPUs that it needs on each of its nodes."""
        return self.job.gpus_of_node(self.tasks_per_node)

    @property
    def name(self) -> str:
        """The display name: ``stream{touch=all,threads=2}@gcc``."""
        return case_name(self.test, self.parameters, self.toolchain, self.node)
