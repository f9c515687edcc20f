"""A machine as its file describes it (``machines/<name>.yaml``), or as this host was detected."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta

from seatrial.written import Scalar, Written

LauncherKind = Literal["srun", "mpirun", "mpiexec", "none"]


class Nodes(Written, frozen=True):
    """Nodes that are alike."""

    names: Annotated[str, Meta(description="node set, such as n[001-128]")]
    cores: Annotated[int, Meta(description="cores of a node", ge=1)]
    sockets: Annotated[int, Meta(ge=1)] = 1
    numa_domains: Annotated[int, Meta(ge=1)] = 1
    threads_per_core: Annotated[int, Meta(ge=1)] = 1
    memory: Annotated[str | int, Meta(description="memory of a node, such as 256GiB")] = 0
    gpus: Annotated[int, Meta(ge=0)] = 0
    features: Annotated[list[str], Meta(description="features, as Slurm's constraints")] = []


class Launcher(Written, frozen=True):
    """What starts tasks, and what is added to its line."""

    kind: LauncherKind
    flavour: Annotated[
        Literal["openmpi", "mpich", "other"], Meta(description="whose mpirun or mpiexec it is")
    ] = "other"
    command: Annotated[str, Meta(description="path of it; default: its name, by PATH")] = ""
    options: Annotated[list[str], Meta(description="arguments added to its line")] = []


class Toolchain(Written, frozen=True):
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
    version: Annotated[str, Meta(description="what the compiler says of itself")] = ""


class Slurm(Written, frozen=True):
    """How jobs are given to Slurm."""

    partition: str = ""
    account: str = ""
    qos: str = ""
    reservation: str = ""
    constraint: str = ""
    nodelist: Annotated[str, Meta(description="nodes that jobs are kept on")] = ""
    cluster: Annotated[str, Meta(description="cluster for -M, where there are several")] = ""
    options: Annotated[list[str], Meta(description="further arguments of sbatch")] = []
    poll: Annotated[float | str, Meta(description="longest time between two polls")] = "15s"
    lost_after: Annotated[
        float | str, Meta(description="time after which a job that vanished is called lost")
    ] = "30m"


class Machine(Written, frozen=True):
    """A system under test."""

    machine: Annotated[str, Meta(description="name of the machine")]
    nodes: list[Nodes]
    about: str = ""
    scheduler: Literal["local", "slurm"] = "local"
    slurm: Slurm = Slurm()
    jobs: Annotated[
        int, Meta(description="most runs that are started or queued at a time; 0: no cap", ge=0)
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
