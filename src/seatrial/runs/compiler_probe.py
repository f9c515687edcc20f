"""What a build would find on this host: its compilers, asked for before it starts.

    found = await probe(machine, test, "gcc", environment)
    found.facts["cc"]            # "gcc (Debian 12.2.0-14) 12.2.0"

The probe asks the questions of a build in its environment, so that builds of an older compiler are
not taken for new ones.
"""

import asyncio
import hashlib
from collections.abc import Mapping

from msgspec import Struct

from seatrial.machine.model import Machine
from seatrial.runs.compiler_versions import SCRIPT, parsed
from seatrial.runs.environment import exports, preamble, toolchain_variables
from seatrial.runs.shell import kill_group
from seatrial.suite.model import Test

PROBE_SECONDS = 60.0

# What else a build may find: two environments that differ here share no builds.
_PATHS = r"""
for _name in PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH \
  PKG_CONFIG_PATH CMAKE_PREFIX_PATH LOADEDMODULES; do
  printf 'seatrial:path %s=%s\n' "$_name" "${!_name-}"
done
printf 'seatrial:path wrapper=%s\n' "$(timeout 10 $MPICC -show 2> /dev/null < /dev/null)"
"""


class FoundCompilers(Struct, frozen=True):
    """What a build finds: ``facts``, as a run's (host, toolchain, cc, ...), and the hash of the
    versions and of where programs, headers and libraries are looked for."""

    facts: dict[str, str]
    digest: str


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
    found = parsed(said)
    facts = {name: text for name, text in found.items() if not name.startswith("path ")}
    told = sorted((name, text) for name, text in found.items() if name != "host")
    return FoundCompilers(facts, hashlib.sha256(repr(told).encode()).hexdigest()[:8])
