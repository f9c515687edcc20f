"""The environment variables that build and run scripts get, beside their parameters."""

BUILD_AND_RUN: dict[str, str] = {
    "BUILD": "directory of the build; a run finds its binaries there",
    "CC": "C compiler of the toolchain",
    "CXX": "C++ compiler",
    "FC": "Fortran compiler",
    "MPICC": "MPI C compiler; empty where the toolchain has no MPI",
    "MPICXX": "MPI C++ compiler",
    "MPIFC": "MPI Fortran compiler",
    "CFLAGS": "compiler flags of the toolchain",
    "OPENMP": "the compiler's OpenMP flag",
    "LDFLAGS": "linker flags",
    "LDLIBS": "libraries, last on the line",
    "TOOLCHAIN": "name of the toolchain",
    "MACHINE": "name of the machine",
}

HOSTFILE, MACHINEFILE, NODEFILE = "job.hostfile", "job.machinefile", "job.nodefile"
"""The files of a run's hosts, in its directory."""

ORDER_FILE = "job.order"
"""The file of a run with its rank order: a line for each node, the ranks of its slots."""

IMAGE_DIGEST = "CONTAINER_DIGEST"

RUN_ONLY: dict[str, str] = {
    "LAUNCH": "the launcher line, such as `srun --ntasks=4`; empty for launcher: none",
    "CONTAINER": "what starts a program in the container of the run, last in `$LAUNCH`; else empty",
    IMAGE_DIGEST: "digest of its image, or `unknown`; only where there is a container",
    "NODES": "number of nodes",
    "TASKS": "number of tasks in all",
    "TASKS_PER_NODE": "tasks on each node",
    "THREADS": "threads of each task",
    "GPUS_PER_NODE": "GPUs of each node that the test asks for; 0: none",
    "OMP_NUM_THREADS": "the same, for OpenMP",
    "HOSTFILE": "file of the hosts, a line `host slots=n` each; for Open MPI",
    "MACHINEFILE": "file of the hosts, a line `host:n` each; for MPICH",
    "NODEFILE": "file with a line for each task, its host; as `$PBS_NODEFILE`",
    "NODELIST": "the hosts as Slurm writes them, such as `n[001-004]`",
    "WALLTIME": "longest time in seconds",
    "PIECE": "number of the piece, from 1 on; of tests with `run.pieces` alone",
    "SEATRIAL_RUN": "id of the run",
    "SEATRIAL_TEST": "the test's own folder",
}

HUNG_FILE = "hung.txt"
"""The file of a run with what its processes waited in when it hung."""

_SHELL_OWN = """
PATH HOME USER LOGNAME SHELL PWD OLDPWD TMPDIR LANG LC_ALL
IFS ENV EUID UID PPID RANDOM SECONDS LINENO HOSTNAME
SHELLOPTS GROUPS DIRSTACK FUNCNAME OPTIND OPTARG PIPESTATUS CDPATH
GLOBIGNORE TMOUT POSIXLY_CORRECT EPOCHREALTIME EPOCHSECONDS REPLY
LD_LIBRARY_PATH LD_PRELOAD PYTHONPATH MODULEPATH LOADEDMODULES
"""
SHELL_OWN = frozenset(_SHELL_OWN.split())

RESERVED = SHELL_OWN | BUILD_AND_RUN.keys() | RUN_ONLY.keys()


def is_reserved(name: str) -> bool:
    """Return True if scripts or bash use this name, so no parameter may have it."""
    return name in RESERVED or name.startswith(("BASH", "SLURM_", "SEATRIAL_", "_"))
