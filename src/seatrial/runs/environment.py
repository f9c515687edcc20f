"""The parts that job scripts and build scripts share: exports, the set-up of the machine, modules,
and writing the script."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.file_model import Scalar
from seatrial.machine.model import Machine, Toolchain
from seatrial.suite.model import Test, show

_PLAIN = re.compile(r"[A-Za-z0-9_./:,+-]+")


def exports(variables: Mapping[str, Scalar]) -> str:
    """Return one ``export`` line; the values are quoted."""
    words = [f"{name}={quote(show(value))}" for name, value in variables.items()]
    return f"export {' '.join(words)}\n" if words else ""


def write_script(path: str | Path, text: str) -> None:
    """Write a script as UTF-8 in every locale. Bytes of a path that are not UTF-8 stay as they are
    on disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(path, flags, 0o666), "wb", buffering=0) as file:  # noqa: PTH123
        file.write(text.encode("utf-8", errors="surrogateescape"))


def quote(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else shlex.quote(text)


def toolchain_variables(machine: Machine, name: str) -> dict[str, Scalar]:
    """Return the variables of a toolchain, such as CC and MPICC, that ``suite/variables.py``
    documents."""
    chain = machine.toolchains.get(name, Toolchain(cc="cc", cxx="c++"))
    keys = ("cc", "cxx", "fc", "mpicc", "mpicxx", "mpifc", "cflags", "openmp", "ldflags", "ldlibs")
    own = {key.upper(): getattr(chain, key) for key in keys}
    return {**own, "TOOLCHAIN": name, "MACHINE": machine.machine}


def preamble(machine: Machine, test: Test, toolchain: str) -> str:
    """Return set-up and modules in the order machine, toolchain, test; then their environments,
    which can thus replace what a module set."""
    chain = machine.toolchains.get(toolchain, Toolchain())
    text = f"{machine.setup.rstrip()}\n" if machine.setup.strip() else ""
    text += _modules([*machine.modules, *chain.modules, *test.modules])
    return text + exports({**machine.environment, **chain.environment, **test.environment})


def _modules(names: Iterable[str]) -> str:
    """Return bash that loads modules, and ends the script if one does not load."""
    return "".join(
        f"module load {quote(name)} || "
        f"{{ echo {quote(f'seatrial: module {name} did not load')} >&2; exit 90; }}\n"
        for name in names
    )
