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
from seatrial.runs.compiler_versions import (
    facts_of,
    identities_of,
    not_known,
    parsed,
    versions_of,
    versions_script,
)
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
seatrial_version_lines "$(timeout 10 $MPICC -show 2> /dev/null < /dev/null)"
printf 'seatrial:path wrapper=%s\n' "${_whole//$'\n'/ }"
"""


class FoundCompilers(Struct, frozen=True):
    """What a build finds: ``facts``, as a run's (host, toolchain, cc, ...), ``told``: that by which
    it is told from what another finds, such as versions, and where programs, headers and libraries
    are looked for, and the hash of this."""

    facts: dict[str, str]
    told: dict[str, str]
    digest: str


async def probe(
    machine: Machine, test: Test, toolchain: str, environment: Mapping[str, str]
) -> FoundCompilers | None:
    """Return what builds of a test with a toolchain find on this host; None where it cannot be
    told: a module does not load, or a program does not end."""
    assert test.build is not None
    script = exports(toolchain_variables(machine, test, toolchain))
    script += f"{preamble(machine, test, toolchain)}set +aeu\n"
    script += versions_script(test.build.script) + _PATHS
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
    told = {name: text for name, text in sorted(found.items()) if name != "host"}
    digest = hashlib.sha256(repr(sorted(told.items())).encode()).hexdigest()[:8]
    return FoundCompilers(facts_of(found), told, digest)


def cannot_be_told(found: FoundCompilers | None) -> str:
    """Return why nobody can tell whether a build would find the same compilers as another; "" where
    it can be told. Such builds are made anew."""
    if found is None:
        return "what it finds cannot be told: a module does not load, or a compiler does not answer"
    if unknown := not_known(found.facts):
        return f"the version of {', '.join(unknown)} is not known"
    return ""


def differs(built: Mapping[str, str], found: FoundCompilers) -> str:
    """Return which compilers a build found that are not those of this host; "" for none. A job may
    find others, and so does a build while somebody replaces a compiler. Such a build is not
    shared."""
    there, here = identities_of(built), identities_of(found.told)
    names = [name for name in {**here, **there} if there.get(name) != here.get(name)]
    if not names:
        return ""
    versions = [name for name in names if name in versions_of(built) or name in versions_of(here)]
    told = [f"{n} was {there.get(n, 'none')}, not {here.get(n, 'none')}" for n in versions]
    said = "; ".join(told) or ", ".join(names)
    return f"not shared, as it found other compilers than this host has: {said}"
