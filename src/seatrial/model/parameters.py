"""Parameter spaces: lists, ranges and expressions; the full product unless zipped or excluded.

    space = ParameterSpace.parse(test)
    list(space.bindings({"node.cores": 4}))     # [{"touch": "all", "threads": 1}, ...]

Parameters are bound in the order in which they are written. An expression may use facts and the
parameters above it.
"""

from collections.abc import Iterator, Mapping
from itertools import islice, repeat
from typing import Any

from msgspec import Struct

from seatrial.model.expressions import Expression, ExpressionError, compile_expression
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.test import TestFile

MAX_CASES = 1_000_000

Source = list[Scalar] | Expression


class ParameterAxis(Struct, frozen=True):
    """Parameters that advance together (mostly one), and the source of their values."""

    names: tuple[str, ...]
    sources: tuple[Source, ...]

    def rows(self, names: Mapping[str, Any]) -> list[dict[str, Scalar]]:
        """Return the distinct bindings of the axis. Raises ExpressionError for zipped lists of
        unequal length."""
        columns = list(map(_values, self.names, self.sources, repeat(names)))
        if len({len(column) for column in columns}) > 1:
            counts = [f"{n} has {len(c)}" for n, c in zip(self.names, columns, strict=True)]
            message = f"zipped parameters need equally many values: {', '.join(counts)}"
            raise ExpressionError(message, "zip")
        if len(columns) == 1:
            (name,), (values,) = self.names, columns
            return [{name: value} for value in {show(value): value for value in values}.values()]
        rows = zip(*columns, strict=True)
        distinct = {tuple(map(show, row)): row for row in rows}.values()
        return [dict(zip(self.names, row, strict=True)) for row in distinct]

    @property
    def depends_on(self) -> frozenset[str]:
        used = [source.names for source in self.sources if isinstance(source, Expression)]
        return frozenset().union(*used)


class ParameterSpace(Struct, frozen=True):
    """The axes in order, and the conditions that exclude a binding."""

    axes: tuple[ParameterAxis, ...]
    excluded: tuple[Expression, ...]

    @classmethod
    def parse(cls, test: TestFile, settings: Mapping[str, list[Scalar]] = {}) -> "ParameterSpace":
        """Return the space of a checked test; ``settings`` replace the values of parameters."""
        sources: dict[str, Source] = {n: settings[n] for n in test.defaults if n in settings}
        for name, value in test.parameters.items():
            sources[name] = settings.get(name) or source_of(value)
        group_of = {name: tuple(group) for group in test.zip for name in group}
        groups = dict.fromkeys(group_of.get(name, (name,)) for name in sources)
        axes = [ParameterAxis(group, tuple(map(sources.__getitem__, group))) for group in groups]
        return cls(tuple(axes), tuple(compile_expression(text) for text in test.exclude))

    def bindings(self, facts: Mapping[str, Any]) -> Iterator[dict[str, Scalar]]:
        """Yield every binding that is not excluded. Raises ExpressionError."""
        parameters = {name for axis in self.axes for name in axis.names}
        bound: list[dict[str, Scalar]] = [{}]
        for axis in self.axes:
            rows = None if axis.depends_on & parameters else axis.rows(facts)
            more = (
                {**binding, **row}
                for binding in bound
                for row in (axis.rows({**facts, **binding}) if rows is None else rows)
            )
            bound = list(islice(more, MAX_CASES + 1))
            if len(bound) > MAX_CASES:
                message = f"the parameters give more than {MAX_CASES} cases"
                raise ExpressionError(message, "parameters")
        if not self.excluded:
            return iter(bound)
        return (binding for binding in bound if not self._is_excluded(binding, facts))

    def _is_excluded(self, binding: dict[str, Scalar], facts: Mapping[str, Any]) -> bool:
        names = {**facts, **binding}
        return any(each.evaluate(names, "exclude", i) for i, each in enumerate(self.excluded))


def source_of(value: Scalar | list[Scalar]) -> Source:
    """Return the source of values: a list is literal, a number or truth value is one value, a text
    is an expression."""
    if isinstance(value, list):
        return value
    return compile_expression(value) if isinstance(value, str) else [value]


def _values(name: str, source: Source, names: Mapping[str, Any]) -> list[Scalar]:
    if isinstance(source, list):
        return source
    key = ("parameters", name)
    value = source.evaluate(names, *key)
    values = value if isinstance(value, list) else [value]
    if any(fault := fault_of_value(value) for value in values):
        raise ExpressionError(f"{source.text!r}: {fault}", *key)
    return values


def fault_of_value(value: object) -> str:
    """Return why a value cannot be a parameter's; "" if it can."""
    if not isinstance(value, Scalar):
        return "a value must be a number or a text; lists in lists are not known"
    if isinstance(value, str) and ("\0" in value or "\n" in value or "\r" in value):
        return f"{value!r} must be one line of text"
    return ""


# ---- variables -----------------------------------------------------------------------------------
#
# The environment variables that build and run scripts get, beside their parameters.


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
