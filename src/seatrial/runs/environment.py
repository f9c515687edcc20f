"""What job scripts and build scripts share: exports, the machine's set-up, modules, writing."""

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
    """One ``export`` line; values are literal."""
    words = [f"{name}={quote(show(value))}" for name, value in variables.items()]
    return f"export {' '.join(words)}\n" if words else ""


def write_script(path: str | Path, text: str) -> None:
    """The same bytes in every locale; a path in it that is no UTF-8 comes out as it is on disk."""
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC
    with open(os.open(path, flags, 0o666), "wb", buffering=0) as file:  # noqa: PTH123
        file.write(text.encode("utf-8", errors="surrogateescape"))


def quote(text: str) -> str:
    return text if _PLAIN.fullmatch(text) else shlex.quote(text)


def toolchain_variables(machine: Machine, name: str) -> dict[str, Scalar]:
    """CC, MPICC and the like of a toolchain, as documented in ``suite/variables.py``."""
    chain = machine.toolchains.get(name, Toolchain(cc="cc", cxx="c++"))
    return {
        "CC": chain.cc,
        "CXX": chain.cxx,
        "FC": chain.fc,
        "MPICC": chain.mpicc,
        "MPICXX": chain.mpicxx,
        "MPIFC": chain.mpifc,
        "CFLAGS": chain.cflags,
        "OPENMP": chain.openmp,
        "LDFLAGS": chain.ldflags,
        "LDLIBS": chain.ldlibs,
        "TOOLCHAIN": name,
        "MACHINE": machine.machine,
    }


def preamble(machine: Machine, test: Test, toolchain: str) -> str:
    """Set-up and modules in the order machine, toolchain, test; then their environments, which may
    so replace what a module set."""
    chain = machine.toolchains.get(toolchain, Toolchain())
    text = f"{machine.setup.rstrip()}\n" if machine.setup.strip() else ""
    text += _modules([*machine.modules, *chain.modules, *test.modules])
    return text + exports({**machine.environment, **chain.environment, **test.environment})


def _modules(names: Iterable[str]) -> str:
    """A module that does not load ends the script: nothing runs in a wrong environment."""
    return "".join(
        f"module load {quote(name)} || "
        f"{{ echo {quote(f'seatrial: module {name} did not load')} >&2; exit 90; }}\n"
        for name in names
    )
