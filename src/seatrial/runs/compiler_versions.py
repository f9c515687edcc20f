"""The compilers of a toolchain, as they are found where a build is made.

    found = await probe(machine, test, "gcc", environment)
    found.facts["cc"]            # "gcc (Debian 12.2.0-14) 12.2.0"

A build writes what it found into its directory (``FILE``). The probe asks the same questions in the
same environment, before a build, so that builds of an older compiler are not taken for new ones.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from seatrial.files import read_regular
from seatrial.machine.model import Machine
from seatrial.runs.environment import exports, preamble, toolchain_variables
from seatrial.runs.shell import kill_group
from seatrial.suite.model import Test

FILE = "seatrial.compilers"
PROBE_SECONDS = 60.0
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

# What else a build may find: two environments that differ here share no builds.
_PATHS = r"""
for _name in PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH \
  PKG_CONFIG_PATH CMAKE_PREFIX_PATH LOADEDMODULES; do
  printf 'seatrial:path %s=%s\n' "$_name" "${!_name-}"
done
printf 'seatrial:path wrapper=%s\n' "$(timeout 10 $MPICC -show 2> /dev/null < /dev/null)"
"""


class FoundCompilers(NamedTuple):
    """What a build finds: ``facts``, as a run's (host, toolchain, cc, ...), and the hash of the
    versions and of where programs, headers and libraries are looked for."""

    facts: dict[str, str]
    digest: str


def versions_of(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the versions alone."""
    return {name: facts[name] for name in VERSIONS if name in facts}


def read_found(directory: Path) -> dict[str, str]:
    """Return what a build wrote of its compilers; nothing where it wrote nothing."""
    try:
        return _parsed(read_regular(directory / FILE, MAX_BYTES))
    except OSError:
        return {}


async def probe(
    machine: Machine, test: Test, toolchain: str, environment: Mapping[str, str]
) -> FoundCompilers | None:
    """Return what builds of a test with a toolchain find on this host; None where it cannot be
    told: a module does not load, or a program does not end."""
    script = exports(toolchain_variables(machine, test, toolchain))
    script += f"{preamble(machine, test, toolchain)}set +aeu\n{SCRIPT}{_PATHS}"
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        script,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            said, _ = await process.communicate()
    except TimeoutError:
        kill_group(process.pid)
        await process.communicate()
        return None
    finally:
        kill_group(process.pid)
    if process.returncode:
        return None
    found = _parsed(said)
    facts = {name: text for name, text in found.items() if not name.startswith("path ")}
    told = sorted((name, text) for name, text in found.items() if name != "host")
    return FoundCompilers(facts, hashlib.sha256(repr(told).encode()).hexdigest()[:8])


def _parsed(said: bytes) -> dict[str, str]:
    found = {}
    for line in said.decode(errors="replace").splitlines():
        if line.startswith("seatrial:"):
            name, _, text = line.removeprefix("seatrial:").partition("=")
            found[name] = "".join(c for c in text if c.isprintable())
    return found
