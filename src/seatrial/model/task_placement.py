"""Where a test wants its tasks on a node: spread, binding, memory, cores to spare; and the proof of
where they are.

    asked = AskedPlacement(test.run)        # parses the texts once
    asked.bound(names)                         # the TaskPlacement of one case

Each is a word (``spread: pack``), or an expression that gives one: the name of a parameter makes
it an axis. The word ``default`` says what a missing key says.
"""

import re
import reprlib
import typing
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import suggest
from seatrial.model import machine as machines
from seatrial.model.expressions import ExpressionError, compile_expression
from seatrial.model.file_model import Scalar
from seatrial.model.kinds import launcher_kinds
from seatrial.model.machine import Machine
from seatrial.model.test import (
    Bind,
    Build,
    Case,
    Check,
    NumaPolicy,
    PlacementCheck,
    RunSpec,
    Spread,
    TaskPlacement,
    Test,
)
from seatrial.units import bytes_of, count

# ---- quantities ----------------------------------------------------------------------------------
#
# Quantities of ``run``: a fixed number, or an expression over parameters and facts.
#
#     tasks = quantity("2 * node.cores", "tasks", whole)
#     tasks({"node.cores": 4})                # 8


MAX_PIECES = 100_000
MAX_BYTES = 1 << 62  # bash has 63 bits
DEFAULT = "default"  # the word for what a missing key says
PIECE = "piece"  # the parameter that has the number of a piece

Names = Mapping[str, Any]
Quantity = Callable[[Names], Any]

# A unit stands by itself, or right behind a number.
_SIZE = r"(.*(?:\s|\)|(?<![A-Za-z_.\d])\d+\.?\d*))([kKMGTP]i?B|B|[kKMGTP])"


def quantity(
    written: int | float | str, key: str, convert: Callable[[Any], Any], above: str = "run"
) -> Quantity:
    """Return a function from names to a quantity of ``run``, or of the key that is ``above``: a
    fixed one, or the converted value of an expression. It raises ExpressionError with the key of
    the quantity."""
    try:
        fixed = convert(written)
        return lambda names: fixed
    except ValueError:
        expression = compile_expression(str(written))

    def value_of(names: Names) -> Any:
        value = expression.evaluate(names, above, key)
        try:
            return convert(value)
        except (TypeError, ValueError) as error:
            message = f"{written!r} gives {reprlib.repr(value)}: {error}"
            raise ExpressionError(message, above, key) from None

    return value_of


def whole(value: Any, lowest: int = 1) -> int:
    if isinstance(value, bool) or not isinstance(value, int | float) or value != int(value):
        raise ValueError("it must be a whole number")
    if value < lowest:
        raise ValueError(f"it must be at least {lowest}")
    return int(value)


def whole_or_none(value: Any) -> int:
    return whole(value, 0)


def pieces(value: Any) -> int:
    number = whole(value)
    if number > MAX_PIECES:
        raise ValueError(f"it must be at most {MAX_PIECES}")
    return number


def asked_bytes(written: int | str, key: str, above: str = "run") -> Quantity:
    """Return a function from names to bytes, for a size whose number may be an expression:
    ``16GiB``, ``2 * size MiB``. Raises ExpressionError, also for a text without a unit."""
    number, unit = split_size(written)
    scale = bytes_of(f"1{unit}")

    def in_bytes(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int | float) or value <= 0:
            raise ValueError("it must be a number above 0")
        if value * scale > MAX_BYTES:
            raise ValueError("it must be at most 4 EiB")
        return round(value * scale)

    try:
        fixed = in_bytes(float(number))
    except ValueError:
        return quantity(number, key, in_bytes, above)
    return lambda names: fixed


def split_size(written: int | str) -> tuple[str, str]:
    """Return the number or expression of a size, and its unit. Raises ExpressionError."""
    match = re.fullmatch(_SIZE, str(written).strip(), re.DOTALL)
    if match is None:
        raise ExpressionError(f"{str(written)!r} has no unit; write e.g. 16GiB, or 2 * size GiB")
    return match[1].rstrip(), match[2]


# ---- task placement ------------------------------------------------------------------------------


CHOICES: dict[str, tuple[str, ...]] = {
    "spread": typing.get_args(Spread),
    "bind": typing.get_args(Bind),
    "numa_policy": typing.get_args(NumaPolicy),
}


class AskedPlacement:
    """What a test asks for; ``any`` is False if that is nothing. ``needs_whole_nodes``: some of its
    cases may say which cores of a node get tasks, so all get whole nodes, also those to compare
    them with. Raises ExpressionError for what cannot be parsed."""

    def __init__(self, run: RunSpec) -> None:
        self._words = {
            key: quantity(value, key, _one_of(choices))
            for key, choices in CHOICES.items()
            if (value := getattr(run, key)) is not None
        }
        self._per_numa = (
            quantity(run.tasks_per_numa, "tasks_per_numa", whole)
            if run.tasks_per_numa is not None
            else None
        )
        self._spare = quantity(run.spare_cores, "spare_cores", whole_or_none)
        self.any = bool(self._words or self._per_numa or run.spare_cores != 0)
        self.needs_whole_nodes = bool(
            run.spread not in (None, DEFAULT) or self._per_numa or run.spare_cores != 0
        )

    def bound(self, names: Names) -> TaskPlacement:
        """Return the placement for the values of a case. Raises ExpressionError."""
        if not self.any:
            return _NONE
        words = {key: word(names) for key, word in self._words.items()}
        placement = TaskPlacement(
            **{key: None if word == DEFAULT else word for key, word in words.items()},
            tasks_per_numa=self._per_numa(names) if self._per_numa else 0,
            spare_cores=self._spare(names),
        )
        if placement.spread and placement.tasks_per_numa:
            raise ExpressionError(NOT_BOTH, "run", "tasks_per_numa")
        return placement


NOT_BOTH = "give spread or tasks_per_numa, not both: each says which domains get tasks"


def fault_of_choice(key: str, text: str) -> str:
    """Return why a text that is no name of a parameter cannot be the value of a key; "" if it
    can."""
    choices = (*CHOICES[key], DEFAULT)
    if text in choices:
        return ""
    near = suggest(text, choices)
    return f"{text!r} is none of {', '.join(choices)}, and no parameter" + (near and f"; {near}")


def misfit(placement: TaskPlacement, tasks: int, threads: int, names: Names) -> str:
    """Return why the tasks of a case do not fit on a node as they are to be placed; "" if they do,
    or nothing says how."""
    if placement == _NONE:
        return ""
    cores, domains = names["node.cores"], names["node.numa_domains"]
    if placement.spare_cores and tasks * threads + placement.spare_cores > cores:
        wanted = count(tasks * threads, "core")
        return f"needs {wanted} of a node and {placement.spare_cores} to spare; it has {cores}"
    if placement.tasks_per_numa and tasks > placement.tasks_per_numa * domains:
        per_domain = f"{placement.tasks_per_numa} of each NUMA domain"
        has = count(domains, "domain")
        return f"needs {tasks} tasks of a node, at most {per_domain}; it has {has}"
    return ""


def _one_of(choices: tuple[str, ...]) -> Callable[[Any], str]:
    def word(value: Any) -> str:
        if value not in (*choices, DEFAULT):
            raise ValueError(f"it must be one of {', '.join((*choices, DEFAULT))}")
        return str(value)

    return word


_NONE = TaskPlacement()


# ---- asked launcher ------------------------------------------------------------------------------
#
# The launcher of a case. A test asks for one by a word (``launcher: srun``), or by a parameter
# that has the word, so that launchers can be compared as an axis.


_BY_WORD: dict[str, str | None] = {**{name: name for name in launcher_kinds()}, DEFAULT: None}
_LAUNCHES = r"^[ \t]*\$(?:LAUNCH\b|\{LAUNCH\})"


def asked_launcher(test: Test, parameters: Mapping[str, Scalar]) -> str | None:
    """Return the launcher that a test asks for with these parameters; None where the machine
    decides. Raises ExpressionError."""
    written = test.run.launcher
    if written is None:
        return None
    word = written if written in _BY_WORD else test.bound(parameters).get(written)
    if isinstance(word, str) and word in _BY_WORD:
        return _BY_WORD[word]
    message = f"{written} gives {word!r}: it must be one of {_choices()}"
    raise ExpressionError(message, "run", "launcher")


def fault_of_launcher(word: str) -> str:
    """Return why a word that is no name of a parameter is no launcher; "" if it is one."""
    if word in _BY_WORD:
        return ""
    near = suggest(word, launcher_kinds())
    return f"{word!r} is none of {_choices()}, and no parameter" + (near and f"; {near}")


def _choices() -> str:
    return ", ".join(_BY_WORD)


# ---- of a case ----------------------------------------------------------------------------


def launcher_of(
    machine: Machine, test: Test, toolchain: str, parameters: Mapping[str, Scalar]
) -> machines.Launcher:
    """Return the launcher of a case: of the kind that its test asks for; else the machine's; else,
    where the machine names none, the toolchain's own. That of a compat job has the MPI of the
    toolchain or the machine, if it names none itself."""
    launcher = _of_kind(machine, test, toolchain, parameters)
    if launcher.kind != "compat" or has_mpi(launcher):
        return launcher
    chain = machine.toolchains.get(toolchain)
    for one in (chain.launcher if chain else None, machine.launcher):
        if one is not None and one.kind in ("mpirun", "mpiexec"):
            return replace(one, kind="compat", command=one.command or one.kind)
    return launcher


def has_mpi(launcher: machines.Launcher) -> bool:
    """Return whether a launcher of compat jobs names its MPI."""
    return bool(launcher.command) or launcher.flavour != "other"


def why_no_tasks(launcher: machines.Launcher, script: str, tasks: int) -> str:
    """Return why the script of a compat job would start one of several tasks: it calls ``$LAUNCH``,
    which is empty as nothing names an MPI; "" if it starts all."""
    if launcher.kind != "compat" or has_mpi(launcher) or tasks < 2:
        return ""
    if not re.search(_LAUNCHES, script, re.MULTILINE):
        return ""
    return (
        "launcher: compat: neither the toolchain nor the machine names an MPI, so $LAUNCH would be "
        f"empty and start 1 of {tasks} tasks; write `launcher: {{kind: compat, flavour: openmpi}}` "
        "(or mpich) into the machine's file"
    )


def _of_kind(
    machine: Machine, test: Test, toolchain: str, parameters: Mapping[str, Scalar]
) -> machines.Launcher:
    chain = machine.toolchains.get(toolchain)
    own = chain.launcher if chain else None
    wanted = asked_launcher(test, parameters)
    if wanted is None:
        return machine.launcher if machine.launcher.kind != "none" or own is None else own
    if machine.launcher.kind == wanted:
        return machine.launcher
    if own is not None and wanted in ("mpirun", "mpiexec"):
        return own
    return machines.Launcher(kind=wanted)


def launchers_of(
    machine: Machine, tests: Mapping[str, Test], cases: Iterable[Case]
) -> list[machines.Launcher]:
    """Return the launchers of cases, each once."""
    launchers: list[machines.Launcher] = []
    for case in cases:
        one = launcher_of(machine, tests[case.test], case.toolchain, case.parameters)
        if one not in launchers:
            launchers.append(one)
    return launchers


# ---- proof of the placement ----------------------------------------------------------------------
#
# ``run.prove``: the probe hello is built with the test, started before its script by the same
# $LAUNCH, and what it says of ranks and threads is checked. Hello shows what the launcher does.
# That the program itself runs so many threads as were asked for, a library counts under which
# $LAUNCH starts it.


PLACEMENT_FILE = "placement.txt"
"""The file of a run directory with the CPUs that the job was given, and the lines of hello."""

HELLO = "seatrial_hello"
"""The binary of hello in the build directory; beside this module, as a link, is its source."""

THREADS_LIBRARY = "libseatrial_threads.so"
"""The library in the build directory that counts threads; its source is beside this module."""

WATCH = "seatrial_threads"
"""The program in the build directory that looks at the threads of a static program."""

COUNTED_FILE = "job.threads.txt"
"""The file of a run directory with the threads that the program ran, a line for each rank."""

COUNTED_LINE = re.compile(r"rank (\d{1,9}|-) threads (\d{1,9}) mpi ([01]) program (\S{1,200})")
"""A line of the library, and of that file: rank, most threads at a time, whether the process is one
of the MPI, program."""

_SOURCES = (f"{HELLO}.c", "seatrial_threads.c")

# One line before the script of the test, which may change the directory, or end by `exit`.
_SCRIPT = (
    '[ "$MPICC" ] || { echo "run.prove: the toolchain has no MPI compiler (mpicc)"; exit 1; }; '
    f"$MPICC $CFLAGS $OPENMP -o {HELLO} {HELLO}.c $LDFLAGS $LDLIBS || exit; "
    f"${{CC:-cc}} -O1 -fPIC -shared -o {THREADS_LIBRARY} seatrial_threads.c -ldl && "
    f"${{CC:-cc}} -O1 -DWATCH -o {WATCH} seatrial_threads.c -ldl || "
    'echo "run.prove: the threads of the program cannot be counted"\n'
)


def with_proof(test: Test) -> Test:
    """Return the test with what ``run.prove`` asks for: the build of hello, and the check of what
    it says, unless the test has a check of that file itself."""
    if not test.run.prove:
        return test
    build = test.build or Build()
    sources = [str(Path(__file__).with_name(name)) for name in _SOURCES]
    build = replace(build, sources=[*build.sources, *sources], script=_SCRIPT + build.script)
    verify = test.verify
    if not any(each.placement and each.in_file == PLACEMENT_FILE for each in verify):
        verify = [*verify, Check(placement=PlacementCheck(), in_file=PLACEMENT_FILE)]
    return replace(test, build=build, verify=verify)


def counts_threads(test: Test, case: Case) -> bool:
    """Return whether the threads of the program are counted: with ``run.prove``, where a rank has
    several, unless a check of the test says that any number will do."""
    if not test.run.prove or case.threads == 1:
        return False
    checks = [each.placement for each in test.verify if each.in_file == PLACEMENT_FILE]
    return any(each is not None and each.threads == "asked" for each in checks)


def tells_placement(test: Test) -> bool:
    """Return whether the runs of a test tell where their threads are."""
    return any(check.placement is not None for check in test.verify)
