"""The compilers of a toolchain, as builds record them and runs tell of them.

    found = read_found(build_directory)
    found["cc"]                  # "gcc (Debian 12.2.0-14) 12.2.0"

A build writes what it found by ``SCRIPT`` into its directory (``FILE``).
"""

from collections.abc import Mapping
from pathlib import Path

from seatrial.files import read_regular

FILE = "seatrial.compilers"
MAX_BYTES = 1 << 16
VERSIONS = ("cc", "cxx", "fc", "mpi")
PACKAGES = ("spack", "easybuild")
"""Under these names a build tells which package of the site it installed (site_packages.py)."""

# Each program has 10 s. Open MPI and MPICH each have an option that only they know.
SCRIPT = r"""
_seatrial_found() {  # name, text
  [ -n "$2" ] && printf 'seatrial:%s=%s\n' "$1" "${2:0:200}"
  return 0
}
_seatrial_version() {  # name, program
  command -v "${2%% *}" > /dev/null 2>&1 || return 0
  local _line
  _line=$(LC_ALL=C timeout 10 $2 --version 2>&1 < /dev/null)
  _seatrial_found "$1" "${_line%%$'\n'*}"
}
_seatrial_mpi() {
  command -v "${MPICC%% *}" > /dev/null 2>&1 || return 0
  local _line
  _line=$(LC_ALL=C timeout 10 $MPICC --showme:version 2> /dev/null < /dev/null) ||
    _line=$(LC_ALL=C timeout 10 $MPICC -v 2>&1 < /dev/null)
  _seatrial_found mpi "${_line%%$'\n'*}"
}
_seatrial_found host "$HOSTNAME"
_seatrial_found toolchain "$TOOLCHAIN"
_seatrial_version cc "$CC"
_seatrial_version cxx "$CXX"
_seatrial_version fc "$FC"
_seatrial_mpi
"""


def versions_of(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the versions alone."""
    return {name: facts[name] for name in VERSIONS if name in facts}


def read_found(directory: Path) -> dict[str, str]:
    """Return what a build wrote of its compilers; nothing where it wrote nothing."""
    try:
        return parsed(read_regular(directory / FILE, MAX_BYTES))
    except OSError:
        return {}


def parsed(said: bytes) -> dict[str, str]:
    """Return what ``SCRIPT`` printed, name by name."""
    found = {}
    for line in said.decode(errors="replace").splitlines():
        if line.startswith("seatrial:"):
            name, _, text = line.removeprefix("seatrial:").partition("=")
            found[name] = "".join(c for c in text if c.isprintable())
    return found
