"""The launcher of a case. A test asks for one by a word (``launcher: srun``), or by a parameter
that has the word, so that launchers can be compared as an axis."""

import re
import typing
from collections.abc import Iterable, Mapping

from msgspec.structs import replace

from seatrial.errors import suggest
from seatrial.file_model import Scalar
from seatrial.lazy import regex
from seatrial.machine import model as machines
from seatrial.machine.model import Machine
from seatrial.suite.expressions import ExpressionError
from seatrial.suite.model import Case, Test
from seatrial.suite.quantities import DEFAULT
from seatrial.suite.run_spec import Launcher

LAUNCHERS: tuple[Launcher, ...] = typing.get_args(Launcher)
_BY_WORD: dict[str, Launcher | None] = {**{name: name for name in LAUNCHERS}, DEFAULT: None}
_LAUNCHES = regex(r"^[ \t]*\$(?:LAUNCH\b|\{LAUNCH\})", re.MULTILINE)


def asked_launcher(test: Test, parameters: Mapping[str, Scalar]) -> Launcher | None:
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
    near = suggest(word, LAUNCHERS)
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
    found = _of_kind(machine, test, toolchain, parameters)
    if found.kind != "compat" or has_mpi(found):
        return found
    chain = machine.toolchains.get(toolchain)
    for one in (chain.launcher if chain else None, machine.launcher):
        if one is not None and one.kind in ("mpirun", "mpiexec"):
            return replace(one, kind="compat", command=one.command or one.kind)
    return found


def has_mpi(launcher: machines.Launcher) -> bool:
    """Return whether a launcher of compat jobs names its MPI."""
    return bool(launcher.command) or launcher.flavour != "other"


def why_no_tasks(launcher: machines.Launcher, script: str, tasks: int) -> str:
    """Return why the script of a compat job would start one of several tasks: it calls ``$LAUNCH``,
    which is empty as nothing names an MPI; "" if it starts all."""
    if launcher.kind != "compat" or has_mpi(launcher) or tasks < 2:
        return ""
    if not _LAUNCHES.search(script):
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
    found: list[machines.Launcher] = []
    for case in cases:
        one = launcher_of(machine, tests[case.test], case.toolchain, case.parameters)
        if one not in found:
            found.append(one)
    return found
