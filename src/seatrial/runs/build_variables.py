"""The variables of the environment that a build may depend on: two environments that differ in them
share no builds.

    digest_of_variables(test, found.digest, environment)
"""

import hashlib
from collections.abc import Mapping

from seatrial.lazy import regex
from seatrial.suite.build_key import words_of
from seatrial.suite.model import Test

# What make, CMake, Autoconf, compilers and their wrappers read, whatever the script says.
_READ_BY_TOOLS = regex(
    r"\w*(FLAGS|LIBS|_ROOT|_PREFIX|PATH)"
    r"|(CC|CXX|FC|F77|F90|CPP|LD|AR|MPI(CC|CXX|FC))"
    r"|(OMPI|MPICH|I_MPI|CRAY|CRAYPE|PE|CUDA|ROCM|HIP|NVHPC|MKL|CMAKE|CC|CXX)_\w+"
)
# They differ from shell to shell, and decide nothing of a build.
_OF_SESSIONS = regex(
    r"PWD|OLDPWD|SHLVL|_|MANPATH|INFOPATH|WINDOWPATH|(SEATRIAL|XDG|SSH|DBUS|GPG|SLURM)_\w*"
)


def variables_of(test: Test, environment: Mapping[str, str]) -> list[tuple[str, str]]:
    """Return the variables of the environment that the build of a test may depend on: those that
    tools read, and those that its script names."""
    assert test.build is not None
    named = words_of(test.build.script)
    return sorted(
        (name, value)
        for name, value in environment.items()
        if (name in named or _READ_BY_TOOLS.fullmatch(name)) and not _OF_SESSIONS.fullmatch(name)
    )


def digest_of_variables(test: Test, digest: str, environment: Mapping[str, str]) -> str:
    """Return the hash of ``digest`` with the variables that the build of a test may depend on."""
    seen = variables_of(test, environment)
    return hashlib.sha256(repr((digest, seen)).encode(errors="surrogateescape")).hexdigest()[:8]
