"""A test's own flags for a toolchain, in place of the machine's.

toolchain_of(machine, test, "intel-oneapi").cflags       # "-O2", where the machine says -fast
"""

from fnmatch import fnmatchcase

from msgspec.structs import replace

from seatrial.machine.model import Machine, Toolchain
from seatrial.suite.model import OwnFlags, Test

FLAGS = ("cflags", "openmp", "ldflags", "ldlibs")


def patterns_of(test: Test) -> list[str]:
    """Return the patterns of the toolchains that a test is for; none: all."""
    return test.toolchains if isinstance(test.toolchains, list) else []


def own_flags(test: Test, toolchain: str) -> OwnFlags | None:
    """Return what a test says of a toolchain: by its name, else by the first pattern that
    matches."""
    said = test.toolchains
    if isinstance(said, list):
        return None
    if toolchain in said:
        return said[toolchain]
    return next((own for name, own in said.items() if fnmatchcase(toolchain, name)), None)


def changed_flags(test: Test, toolchain: str) -> dict[str, str]:
    """Return the flags that a test replaces, with its own values."""
    own = own_flags(test, toolchain)
    if own is None:
        return {}
    return {key: value for key in FLAGS if (value := getattr(own, key)) is not None}


def toolchain_of(machine: Machine, test: Test, name: str) -> Toolchain:
    """Return a toolchain of the machine with the flags and the environment of a test."""
    chain = machine.toolchains.get(name, Toolchain())
    own = own_flags(test, name)
    if own is None:
        return chain
    environment = {**chain.environment, **own.environment}
    return replace(chain, **changed_flags(test, name), environment=environment)
