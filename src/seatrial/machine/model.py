"""A machine as its file describes it (``machines/<name>.yaml``), or as this host was detected."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from seatrial.file_model import Duration, FileModel, Scalar, Size
from seatrial.machine.rehearsal_model import FileSystemModel, MachineModel
from seatrial.machine.sinks import Sink

LauncherKind = Literal["srun", "mpirun", "mpiexec", "none"]


class NodeGroup(FileModel, frozen=True):
    """Nodes of one kind."""

    names: Annotated[str, Meta(description="node set, such as n[001-128]")]
    cores: Annotated[int, Meta(description="cores of a node", ge=1)]
    sockets: Annotated[int, Meta(ge=1)] = 1
    numa_domains: Annotated[int, Meta(ge=1)] = 1
    threads_per_core: Annotated[int, Meta(ge=1)] = 1
    memory: Annotated[str | int, Meta(description="memory of a node, such as 256GiB")] = 0
    gpus: Annotated[int, Meta(ge=0)] = 0
    features: Annotated[list[str], Meta(description="features, as Slurm's constraints")] = []


class Launcher(FileModel, frozen=True):
    """The program that starts tasks, with its options."""

    kind: LauncherKind
    flavour: Annotated[
        Literal["openmpi", "mpich", "other"], Meta(description="the MPI of mpirun or mpiexec")
    ] = "other"
    command: Annotated[str, Meta(description="path of it; default: its name, by PATH")] = ""
    options: Annotated[list[str], Meta(description="arguments added to its line")] = []


class Toolchain(FileModel, frozen=True):
    """Compilers, MPI and flags: a programming environment."""

    cc: str = "cc"
    cxx: str = "c++"
    fc: str = "gfortran"
    mpicc: str = ""
    mpicxx: str = ""
    mpifc: str = ""
    cflags: str = "-O3"
    openmp: Annotated[str, Meta(description="the compiler's OpenMP flag")] = "-fopenmp"
    ldflags: str = ""
    ldlibs: str = "-lm"
    launcher: Annotated[
        Launcher | None, Meta(description="this MPI's own launcher; default: the machine's")
    ] = None
    modules: list[str] = []
    environment: dict[str, Scalar] = {}
    version: Annotated[str, Meta(description="version that the compiler prints")] = ""


class Slurm(FileModel, frozen=True):
    """How jobs are submitted to Slurm."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    nodelist: Annotated[str, Meta(description="the only nodes for jobs")] = ""
    cluster: Annotated[str, Meta(description="cluster for -M, if there are several")] = ""
    options: Annotated[list[str], Meta(description="further arguments of sbatch")] = []
    poll: Annotated[float | str, Meta(description="maximum time between two polls")] = "15s"
    lost_after: Annotated[
        float | str, Meta(description="time after which a job that vanished is called lost")
    ] = "30m"
    visible_after: Annotated[
        float | str,
        Meta(description="time within which files that a job wrote are seen on this host"),
    ] = "60s"


class MetadataTarget(FileModel, frozen=True):
    """A metadata target of a file system, on which run directories can be placed."""

    name: Annotated[str, Meta(description="name, such as mdt0; scripts get it as $TARGET")]
    weight: Annotated[float, Meta(description="its part in weighted placement", gt=0)] = 1.0


class FileSystem(FileModel, frozen=True):
    """A file system that runs work on, and how a run directory is placed on one of its targets."""

    path: Annotated[str, Meta(description="folder on it, below which run directories are made")]
    targets: Annotated[
        list[str | MetadataTarget], Meta(description="its metadata targets, by index")
    ] = []
    place: Annotated[
        str,
        Meta(description="bash that makes $DIRECTORY on $TARGET ($TARGET_INDEX); default: mkdir"),
    ] = ""
    timeout: Annotated[Duration, Meta(description="maximum time of placing")] = "30s"
    safe_load: Annotated[
        float, Meta(description="open files that a target can bear; 0: unknown", ge=0)
    ] = 0
    runs: Annotated[int, Meta(description="maximum runs in flight on it; 0: no cap", ge=0)] = 0
    space: Annotated[Size, Meta(description="maximum space of copied decks; 0: no cap")] = 0
    rehearsal: FileSystemModel | None = None

    @property
    def metadata_targets(self) -> list[MetadataTarget]:
        """The metadata targets, each with its weight."""
        return [
            MetadataTarget(name=each) if isinstance(each, str) else each for each in self.targets
        ]


class Gauge(FileModel, frozen=True):
    """A command that prints one number, such as the load of a metadata server."""

    command: Annotated[str, Meta(description="bash; its first line of output is the number")]
    every: Annotated[Duration, Meta(description="time between two readings")] = "30s"
    timeout: Annotated[Duration, Meta(description="maximum time of a reading")] = "10s"
    rehearsal: Annotated[
        str, Meta(description="what it reads in a rehearsal: FILESYSTEM or FILESYSTEM/TARGET")
    ] = ""


class Machine(FileModel, frozen=True):
    """A system under test."""

    machine: Annotated[str, Meta(description="name of the machine")]
    nodes: list[NodeGroup]
    about: str = ""
    scheduler: Literal["local", "slurm"] = "local"
    slurm: Slurm = Slurm()
    jobs: Annotated[
        int, Meta(description="maximum runs started or queued at a time; 0: no cap", ge=0)
    ] = 0
    launcher: Launcher = Launcher(kind="none")
    toolchains: Annotated[
        dict[str, Toolchain], Meta(description="by name; the first is the default")
    ] = {}
    modules: Annotated[list[str], Meta(description="modules loaded for everything")] = []
    environment: Annotated[dict[str, Scalar], Meta(description="variables for everything")] = {}
    setup: Annotated[
        str, Meta(description="bash that runs before modules are loaded, in builds and runs")
    ] = ""
    groups: Annotated[
        dict[str, str],
        Meta(description="node sets by name: nodes near each other in the network, such as a rack"),
    ] = {}
    file_systems: Annotated[dict[str, FileSystem], Meta(description="by name")] = {}
    gauges: Annotated[dict[str, Gauge], Meta(description="by name")] = {}
    sinks: Annotated[list[Sink], Meta(description="where the events of its trials are sent")] = []
    rehearsal: Annotated[
        MachineModel, Meta(description="how it behaves when a plan is rehearsed on it")
    ] = MachineModel()
