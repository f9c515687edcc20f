"""A machine as its file describes it (``machines/<name>.yaml``), or as this host was detected."""

from pathlib import Path
from typing import Annotated, Literal

from msgspec import NODEFAULT

from seatrial.escaping import has_controls
from seatrial.hooks import provided, with_fields, with_keys
from seatrial.model.failures import KnownFailure, LogRule
from seatrial.model.file_model import (
    AbsolutePath,
    Duration,
    FileModel,
    FolderOrNone,
    Name,
    Quantity,
    Scalar,
    Size,
    Span,
    WrittenDuration,
    checked,
    doc,
)
from seatrial.model.kinds import launcher_kinds
from seatrial.model.node_set import NodeSet, NodeSetOrNone
from seatrial.model.schedulers import BatchSettings, Slurm
from seatrial.units import bytes_of


class WrittenLayout(FileModel, frozen=True):
    """The CPUs of a node by socket and NUMA domain: in a file of hwloc's, or as texts."""

    file: Annotated[str, doc("output of `lstopo --of xml`; beside this file")] = ""
    sockets: Annotated[
        list[list[str]], doc("for each socket, the CPUs of each of its NUMA domains: 0-5")
    ] = []
    domains: Annotated[
        list[str],
        doc("beside sockets: the CPUs of each NUMA domain, where one spans sockets: 0-11"),
    ] = []


PAGES = ("4k", "thp", "2M", "1G")
"""The pages that a run can ask for; thp are transparent huge pages."""


# ---- what texts must be --------------------------------------------------------------------------


def _is_mount(mount: str) -> None:
    paths = mount.split(":")
    if len(paths) > 2 or not all(Path(each).is_absolute() for each in paths):
        text = "is neither an absolute path nor two with a colon between them"
        raise ValueError(f"{mount!r} {text}")


def _are_pages(pages: str) -> None:
    if pages not in PAGES:
        raise ValueError(f"{pages!r} is not one of {', '.join(PAGES)}")


def _is_folder(path: str) -> None:
    if not path.startswith("/"):
        raise ValueError(f"{path!r} must be an absolute path")
    if has_controls(path):
        raise ValueError(f"{path!r} has control characters; name another folder")


def _prints_a_number(command: str) -> None:
    if not command.strip():
        raise ValueError("is empty; write bash that prints one number")


def _has_number(job_id: str) -> None:
    if "%j" not in job_id:
        raise ValueError(f"{job_id!r} has no %j, the number of the job")


Mount = Annotated[str, checked(_is_mount)]
Pages = Annotated[str, checked(_are_pages)]


class Memory(Size):
    """The memory of a node."""

    form = str | int
    __slots__ = ()


class NodeGroup(FileModel, frozen=True):
    """Nodes of one kind."""

    names: Annotated[NodeSet, doc("node set, such as n[001-128]")]
    cores: Annotated[int, doc("cores of a node", ge=1)]
    sockets: Annotated[int, doc("sockets of a node", ge=1)] = 1
    numa_domains: Annotated[int, doc("NUMA domains of a node", ge=1)] = 1
    threads_per_core: Annotated[int, doc("hardware threads of a core", ge=1)] = 1
    layout: Annotated[
        str | WrittenLayout | None,
        doc("cores, NUMA domains and sockets, as hwloc writes them: pack:2 numa:2 core:6 pu:1"),
    ] = None
    memory: Annotated[Memory, doc("memory of a node, such as 256GiB")] = Memory(0)
    gpus: Annotated[int, doc("accelerators of a node", ge=0)] = 0
    features: Annotated[list[str], doc("features, as Slurm's constraints")] = []
    partition: Annotated[str, doc("Slurm partition of the nodes; default: that of slurm")] = ""


_ABOUT = doc("the program; compat: nodes look like a cluster with ssh")
_KIND = Annotated[Literal[tuple(launcher_kinds())], _ABOUT]  # type: ignore[valid-type]


@with_fields({"kind": (_KIND, NODEFAULT)})
class Launcher(FileModel, frozen=True):
    """The program that starts tasks, with its options."""

    kind: str  # one of those that are known
    flavour: Annotated[
        Literal["openmpi", "mpich", "cray", "other"],
        doc("the MPI that it starts; cray: cray-mpich, of srun, or of mpiexec (PALS)"),
    ] = "other"
    version: Annotated[str, doc('version of that MPI, such as "9.1"; by it orders are refused')] = (
        ""
    )
    mapping_limit: Annotated[
        int | Literal["none"] | None,
        doc(
            "maximum bytes of PMI_process_mapping that cray-mpich takes; none: any number; "
            "default: by `version`"
        ),
    ] = None
    command: Annotated[str, doc("path of it; default: its name, by PATH")] = ""
    options: Annotated[list[str], doc("arguments added to its line")] = []


class Toolchain(FileModel, frozen=True):
    """Compilers, MPI and flags: a programming environment."""

    cc: Annotated[str, doc("C compiler; `$CC` in scripts")] = "cc"
    cxx: Annotated[str, doc("C++ compiler; `$CXX`")] = "c++"
    fc: Annotated[str, doc("Fortran compiler; `$FC`")] = "gfortran"
    mpicc: Annotated[str, doc("MPI C compiler; `$MPICC`")] = ""
    mpicxx: Annotated[str, doc("MPI C++ compiler; `$MPICXX`")] = ""
    mpifc: Annotated[str, doc("MPI Fortran compiler; `$MPIFC`")] = ""
    cflags: Annotated[str, doc("compiler flags; `$CFLAGS`")] = "-O3"
    openmp: Annotated[str, doc("the compiler's OpenMP flag")] = "-fopenmp"
    ldflags: Annotated[str, doc("linker flags; `$LDFLAGS`")] = ""
    ldlibs: Annotated[str, doc("libraries, last on the line; `$LDLIBS`")] = "-lm"
    launcher: Annotated[Launcher | None, doc("this MPI's own launcher; default: the machine's")] = (
        None
    )
    modules: Annotated[list[str], doc("modules loaded for it")] = []
    environment: Annotated[
        dict[str, Scalar],
        doc("variables for it, such as `OMPI_CC: clang`; `$NAME` in one is that of the node"),
    ] = {}
    version: Annotated[
        str,
        doc(
            "a version, part of a build's key. It need not be written: each build reads the "
            "versions from the compilers themselves"
        ),
    ] = ""


class ContainerRuntime(FileModel, frozen=True):
    """The program that starts containers on the nodes."""

    kind: Annotated[
        Literal[
            "apptainer", "singularity", "charliecloud", "podman", "podman-hpc", "shifter", "sarus"
        ],
        doc("the program that starts containers on the nodes"),
    ]
    command: Annotated[str, doc("path of it; default: its name, by PATH")] = ""
    options: Annotated[list[str], doc("arguments added to its line, such as --nv")] = []
    mounts: Annotated[
        list[Mount],
        doc("folders that each container sees: PATH, or PATH:PATH where it differs inside"),
    ] = []


class BuildSettings(FileModel, frozen=True):
    """Where builds are made, how many at a time, and whether trials share them."""

    at_most: Annotated[
        int,
        doc(
            "maximum builds of a trial at a time, so that of several trials each has as many; 0: "
            "as many as this host has processors, at least 2",
            ge=0,
        ),
    ] = 0
    where: Annotated[
        Literal["host", "job"], doc("on this host, or in jobs, where a test does not say")
    ] = "host"
    partition: Annotated[str, doc("Slurm partition of builds in jobs; default: the runs'")] = ""
    shared: Annotated[bool, doc("trials share builds")] = True
    folder: Annotated[
        FolderOrNone, doc("folder of shared builds; default: .builds beside the trials")
    ] = ""


class SlurmOverride(FileModel, frozen=True):
    """What is said to Slurm in place of the machine's ``slurm``; an empty text removes that."""

    partition: Annotated[str | None, doc("Slurm partition")] = None
    account: Annotated[str | None, doc("account")] = None
    qos: Annotated[str | None, doc("quality of service")] = None
    reservation: Annotated[str | None, doc("reservation")] = None
    constraint: Annotated[str | None, doc("constraint on features")] = None
    options: Annotated[list[str], doc("further arguments of sbatch, after the others")] = []


class MetadataTarget(FileModel, frozen=True):
    """A metadata target of a file system, on which run directories can be placed."""

    name: Annotated[str, doc("name, such as mdt0; scripts get it as $TARGET")]
    weight: Annotated[float, doc("its part in weighted placement", gt=0)] = 1.0
    gauge: Annotated[str, doc("gauge that reads its open files; least_loaded goes by it")] = ""


@with_keys("file_system")
class FileSystem(FileModel, frozen=True):
    """A file system that runs work on, and how a run directory is placed on one of its targets."""

    path: Annotated[
        Annotated[str, checked(_is_folder)],
        doc("folder on it, below which run directories are made"),
    ]
    type: Annotated[str, doc("its type as df names it: lustre, xfs, tmpfs; default: any")] = ""
    targets: Annotated[list[str | MetadataTarget], doc("its metadata targets, by index")] = []
    place: Annotated[
        str,
        doc(
            "bash that makes the folder `$DIRECTORY` on the target `$TARGET`, whose index is "
            "`$TARGET_INDEX`; if it fails, a plain folder is made and an alert is sent; default: "
            "mkdir"
        ),
    ] = ""
    timeout: Annotated[Duration, doc("maximum time of placing")] = Duration("30s")
    safe_load: Annotated[
        float, doc("open files that a target can bear; runs beyond it wait; 0: unknown", ge=0)
    ] = 0
    runs: Annotated[int, doc("maximum runs in flight on it; 0: no cap", ge=0)] = 0
    space: Annotated[
        Size, doc("maximum space of copied decks, and of what runs in flight require; 0: no cap")
    ] = Size(0)

    @property
    def metadata_targets(self) -> list[MetadataTarget]:
        """The metadata targets, each with its weight."""
        return [
            MetadataTarget(name=each) if isinstance(each, str) else each for each in self.targets
        ]


@with_keys("gauge")
class Gauge(FileModel, frozen=True):
    """A command that prints one number, such as the load of a metadata server."""

    command: Annotated[
        Annotated[str, checked(_prints_a_number)],
        doc("bash; its first line of output is the number"),
    ]
    every: Annotated[Duration, doc("time between two readings")] = Duration("30s")
    timeout: Annotated[Duration, doc("maximum time of a reading")] = Duration("10s")
    sample: Annotated[
        bool, doc("it is read in every trial of the machine, and shown beside the runs")
    ] = False


class Looks(Span):
    """A time of a second or more; "" for never."""

    form = WrittenDuration
    __slots__ = ()

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written or 0)
        self.written = written
        if 0 < self.seconds < 1:
            raise ValueError(f"{written} is less than a second")


class FileUse(FileModel, frozen=True):
    """How it is measured what runs do to shared file systems; the figures are those of each run."""

    every: Annotated[
        Looks, doc("time between two looks at the open files and locks of a run; default: none")
    ] = Looks("")
    paths: Annotated[
        list[AbsolutePath],
        doc("folders whose open files count; default: the `file_systems`, else all"),
    ] = []
    job_stats: Annotated[
        str, doc("bash that prints the `job_stats` of all Lustre servers, asked after each run")
    ] = ""
    job_id: Annotated[
        Annotated[str, checked(_has_number)],
        doc(
            "Lustre's `jobid_name`: `%j` is the number of the job, other codes (`%u`, `%H`) "
            "stand for any text"
        ),
    ] = "%j"
    timeout: Annotated[Duration, doc("maximum time of `job_stats`")] = Duration("30s")


XnameLevel = Literal["cabinet", "chassis", "blade"]


class Places(FileModel, frozen=True):
    """Where it is told which nodes are near each other: a file, or the names of the nodes."""

    file: Annotated[
        str,
        doc(
            "topology.conf or topology.yaml, output of `scontrol show topology`, or JSON; beside "
            "this file"
        ),
    ] = ""
    by: Annotated[
        str,
        doc(
            "key of a node's place in the JSON, such as cabinet; or topology of a topology.yaml, "
            "default: that of the cluster"
        ),
    ] = ""
    xnames: Annotated[XnameLevel | None, doc("nodes are grouped by their xnames")] = None


LevelModel = str | dict[str, int | dict[str, NodeSet]]


class Bandwidth(Quantity):
    """A number of bytes in a second: ``5.25GB/s``."""

    form = str | int
    __slots__ = ("bytes_per_second",)

    def __init__(self, written: int | str) -> None:
        super().__init__(written)
        try:
            self.bytes_per_second = float(bytes_of(str(written).removesuffix("/s")))
        except ValueError:
            raise ValueError(f"{written!r} is no bandwidth; write e.g. 5.25GB/s") from None


class NetworkModel(FileModel, frozen=True):
    """The network of a machine: which nodes share a switch, a router, a group."""

    kind: Annotated[Literal["tree", "dragonfly", "torus"], doc("how hops are counted")]
    levels: Annotated[
        list[LevelModel],
        doc("smallest first: {router: 4}, nodes of each; {switch: {s1: n[1-4]}}; of a file, names"),
    ] = []
    names: Annotated[
        str, doc("pattern of the nodes' names: c{cabinet}-{row}c{chassis}s{s}n{n}")
    ] = ""
    order: Annotated[list[str], doc("fields of `names`, that of the largest unit first")] = []
    file: Annotated[
        str,
        doc(
            "topology.conf or topology.yaml, output of `scontrol show topology`, or JSON; beside "
            "this file"
        ),
    ] = ""
    by: Annotated[str, doc("topology of a topology.yaml; default: that of the cluster")] = ""
    axes: Annotated[
        dict[str, int], doc("of a torus: its axes and their lengths, e.g. `{x: 17, y: 8, z: 24}`")
    ] = {}
    links: Annotated[
        dict[str, Bandwidth],
        doc(
            "bandwidth of a link in one direction, by level or axis; `system` are the links "
            "between units of the largest level"
        ),
    ] = {}
    ports: Annotated[int, doc("links that leave each unit of the largest level", ge=0)] = 0
    roles: Annotated[
        dict[str, NodeSet],
        doc(
            "nodes with a role, such as {lnet: n[1,65]}; runs can be placed near them. Those that "
            "run no jobs, and so are not in the machine's `nodes`, have a place and a role, too"
        ),
    ] = {}


class PageSettings(FileModel, frozen=True):
    """How a run gets pages of a size on this machine, in place of glibc's tunable."""

    modules: Annotated[list[str], doc("modules loaded for the run")] = []
    environment: Annotated[
        dict[str, Scalar], doc("variables of the run; `$NAME` in one is that of the node")
    ] = {}


@with_keys("machine")
class Machine(FileModel, frozen=True):
    """A system under test."""

    machine: Annotated[
        Name,
        doc(
            "name of the machine: part of the identity of every case, and the folder of its "
            "references"
        ),
    ]
    nodes: Annotated[list[NodeGroup], doc("kinds of nodes")]
    include: Annotated[
        str | list[str], doc("machine files whose keys it takes over, relative to this one")
    ] = []
    about: Annotated[str, doc("one sentence: what it is")] = ""
    scheduler: str = "local"  # one of the schedulers that are known
    slurm: Annotated[Slurm, doc("how jobs are submitted to Slurm")] = Slurm()
    builds: Annotated[
        BuildSettings, doc("where builds are made, how many at a time, and who shares them")
    ] = BuildSettings()
    jobs: Annotated[int, doc("maximum runs started or queued at a time; 0: no cap", ge=0)] = 0
    launcher: Annotated[Launcher, doc("the program that starts tasks")] = Launcher(kind="none")
    containers: Annotated[
        ContainerRuntime | None, doc("how programs are started in containers")
    ] = None
    toolchains: Annotated[dict[Name, Toolchain], doc("by name; the first is the default")] = {}
    modules: Annotated[list[str], doc("modules loaded for everything")] = []
    environment: Annotated[
        dict[str, Scalar], doc("variables for everything; `$NAME` in one is that of the node")
    ] = {}
    setup: Annotated[str, doc("bash that runs before modules are loaded, in builds and runs")] = ""
    facts: Annotated[
        dict[str, Scalar],
        doc(
            "what a report should say of the machine besides what its jobs find: serial numbers, "
            "network, firmware, e.g. `network: HDR InfiniBand, fat tree`"
        ),
    ] = {}
    pages: Annotated[
        dict[Pages, PageSettings],
        doc("how runs get pages of a size; default: by a tunable of glibc's malloc"),
    ] = {}
    groups: Annotated[
        dict[Name, NodeSetOrNone],
        doc("node sets by name: nodes near each other in the network, such as a rack"),
    ] = {}
    roles: Annotated[
        dict[Name, NodeSet],
        doc(
            "node sets by role: routers, servers, login nodes, for facts and rules; most are not "
            'in `nodes`, e.g. `{router: "r[01-14]"}`'
        ),
    ] = {}
    places: Annotated[Places, doc("where `groups` are read from, in place of writing them")] = (
        Places()
    )
    topology: Annotated[NetworkModel | None, doc("the network between its nodes")] = None
    file_systems: Annotated[dict[Name, FileSystem], doc("by name")] = {}
    production: Annotated[
        bool, doc("whether users work on it; harmful tests then need the consent of two people")
    ] = False
    file_use: Annotated[
        FileUse | None, doc("how it is measured what runs do to shared file systems")
    ] = None
    log_rules: Annotated[
        list[LogRule], doc("causes of failures by what runs print, before those that ship")
    ] = []
    known_failures: Annotated[
        list[KnownFailure], doc("failures that are known here, of any suite and plan")
    ] = []
    gauges: Annotated[dict[Name, Gauge], doc("by name")] = {}
    plugins: Annotated[
        list[str], doc("plug-ins that this file needs; a fault where one is not there")
    ] = []

    @property
    def batch(self) -> BatchSettings:
        """The settings of its scheduler; those of Slurm where it has none."""
        settings: BatchSettings = getattr(self, self.scheduler, self.slurm)
        return settings

    @property
    def jobs_run_elsewhere(self) -> bool:
        """Whether jobs run on other hosts than the driver: they outlive this one, so what they need
        must be on the disk itself first, and their files are seen through a shared file system."""
        return self.scheduler != "local"

    @property
    def all_gauges(self) -> dict[str, Gauge]:
        """Its gauges, and those of plug-ins, by name."""
        others = {
            kind.name: Gauge(
                command=kind.command, every=Duration(kind.every), timeout=Duration(kind.timeout)
            )
            for kind in provided("seatrial_gauges")
        }
        return {**others, **self.gauges}
