"""Builds: one for each key. Here: on this host, outside any allocation. The log is kept.

The directory of a build holds its sources, the files that the script created, ``build.log``, the
scripts, ``seatrial.compilers`` (the compilers that it found) and, when the build has ended,
``seatrial.result`` with the exit code and the shared
libraries of the binaries. The shell of the build writes the result. So a driver that is resumed
finds the result of a build that outlived the driver that was killed. The shell also holds the lock
on ``seatrial.lock``, so that no second build starts there, and ``timeout(1)`` ends the build in
time, with or without a driver.
"""

import asyncio
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from seatrial.errors import TrialError, UsageError
from seatrial.escaping import shell_word
from seatrial.execute import toolchains
from seatrial.execute.beside_loop import kill_group
from seatrial.execute.environment import (
    exports,
    inherited,
    install_lines,
    load_lines,
    preamble,
    toolchain_variables,
    write_script,
)
from seatrial.execute.trial_paths import BUILD_LOG, BUILD_RESULT
from seatrial.files import (
    close_to_others,
    is_full,
    is_of_host,
    make_folder,
    names_in,
    open_descriptor,
    open_regular,
    open_to_write,
    opened_folder,
    read_start,
    remove_file,
    remove_tree,
)
from seatrial.model.build import BuildKeys, build_parameters
from seatrial.model.codes import TIMEOUT
from seatrial.model.machine import Machine
from seatrial.model.test import Case, Test
from seatrial.units import listed, show_seconds

LOG_TAIL = 2000
RESULT_START = 100  # bytes that hold the exit code
CHANGED = "the sources changed since the trial was made; start a new trial"

GRACE_SECONDS = 5
_NO_SPACE = "No space left on device|Disk quota exceeded"
_REMEDY = "see to the space and the health of the file system, then resume the trial"

# The processes of the script do not hold the lock: one that stays behind would stop a later build.
_SHELL = """\
#!/bin/bash
_lock=$1
shift
umask go-w
cd {directory} || exit 91
{environment}
set +aeu
( {compilers} ) > {found} 2> /dev/null
(
{{ exec {{_lock}}>&-; }} 2> /dev/null
{needed}. ./{script}
)
_code=$?
{{ echo "$_code"; for _file in *; do
  if [ -f "$_file" ] && [ -x "$_file" ]; then echo "$_file:"; ldd "$_file" 2> /dev/null; fi
done; }} > {result}.new
mv {result}.new {result}
exit "$_code"
"""


# A build script whose first command is a variable that is to name a compiler.
_FIRST_CALL = r"(?:\s*#.*\n)*\s*\$\{?((?:MPI)?(?:CC|CXX)|FC|MPIFC)(?:\}|(?=\s))"

# The script of a prebuilt binary, which is not copied but linked, if it has this checksum.
_PREBUILT = """\
_found=$(sha256sum < {path}) || exit 1
_found=${{_found%% *}}
if [ "$_found" != {sha256} ]; then
  echo {path}" has the checksum $_found, but the test names {sha256}"
  exit 1
fi
ln -s {path} {name}
"""


class BuildResult(Struct, frozen=True):
    """``code`` is 0 for success, 23 for a timeout, else a failure; ``text`` is the end of the
    log."""

    code: int
    text: str


async def build(directory: Path, test: Test, case: Case, machine: Machine) -> BuildResult:
    """Build, or return the result of an earlier build. Never raises for what the build does. Raises
    TrialError where this host has no space, memory or processes left, or cannot read or write."""
    assert test.build is not None
    lock = -1
    try:
        make_folder(directory)
        lock = await lock_of(directory / BUILD_LOCK)
        if (done := result_of(directory)) is not None:
            return await kept(directory, done)
        if (fault := prepared(directory, test, case, machine)) is not None:
            return fault
        done = await _run(directory, lock, test.build.timeout.seconds, inherited(machine))
        return await kept(directory, done)
    except OSError as error:
        return _failed(error, directory)
    finally:
        if lock >= 0:
            os.close(lock)


async def kept(directory: Path, done: BuildResult) -> BuildResult:
    """Return a result once what was built is on the disk itself. Raises TrialError, and keeps no
    result, where the build failed because nothing could be written."""
    if done.code and (is_full(directory) or re.search(_NO_SPACE, done.text)):
        remove_file(directory / BUILD_RESULT, missing_ok=True)
        raise TrialError(f"{directory}: the build could not write: {done.text[-200:]}; {_REMEDY}")
    if not done.code:
        await (await asyncio.create_subprocess_exec("sync", "-f", str(directory))).wait()
    return done


def prepared(directory: Path, test: Test, case: Case, machine: Machine) -> BuildResult | None:
    """Stage a build; return why it cannot be made, None where it can. Raises TrialError."""
    try:
        make_folder(directory)
        _stage(directory, test, case, machine)
        if BuildKeys().key(test, case, machine) != case.build:  # after the copy
            return BuildResult(1, CHANGED)
    except OSError as error:
        return _failed(error, directory)
    except UsageError as error:
        return BuildResult(1, str(error))
    return None


def _failed(error: OSError, directory: Path) -> BuildResult:
    reason = f"{error.filename or directory}: {error.strerror or error}"
    if is_of_host(error):
        raise TrialError(f"{reason}; the build cannot be made; {_REMEDY}") from error
    return BuildResult(1, reason)


def _stage(directory: Path, test: Test, case: Case, machine: Machine) -> None:
    """Write the scripts and copy the sources, as ``cp -r`` does. The directory is emptied first, as
    an interrupted build may have left files there."""
    assert test.build is not None
    with opened_folder(directory) as folder:
        for name in names_in(folder):
            if name != BUILD_LOCK:
                remove_tree(name, at=folder)
    script = install_lines(test.build) + load_lines(test.build) + test.build.script + "\n"
    if test.build.prebuilt:
        binary = Path(test.build.prebuilt)
        script = _PREBUILT.format(
            path=shell_word(str(binary)),
            name=shell_word(f"./{binary.name}"),
            sha256=test.build.sha256.lower(),
        )
    parameters = build_parameters(test.build, test.bound(case.parameters))
    environment = exports({**parameters, "BUILD": str(directory)})
    environment += exports(toolchain_variables(machine, test, case.toolchain))
    environment += preamble(machine, test, case.toolchain)
    for source in map(Path, test.build.sources):
        target = directory / source.name
        if source.is_dir():
            # plain: the folder was emptied
            shutil.copytree(source, target, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(source, target)  # plain: the folder was emptied
    write_script(directory / SCRIPT, script)
    shell = _SHELL.format(
        directory=shell_word(str(directory)),
        environment=environment.rstrip(),
        compilers="true" if test.build.prebuilt else toolchains.versions_script(test.build.script),
        found=toolchains.COMPILERS_FILE,
        needed="" if test.build.prebuilt else _compiler_needed(test.build.script, case.toolchain),
        script=SCRIPT,
        result=BUILD_RESULT,
    )
    write_script(directory / JOB, shell)
    close_to_others(directory)


def _compiler_needed(script: str, toolchain: str) -> str:
    """Return bash that names the compiler that a build script calls first, if it is not there:
    modules of the machine may set it, so that only the build knows."""
    if (called := re.match(_FIRST_CALL, script)) is None:
        return ""
    name = called[1]
    fault = f"the toolchain {toolchain} has no {name.lower()}: ${name} is empty"
    return f'[ -n "${name}" ] || {{ echo {shell_word(fault)}; exit 1; }}\n'


async def _run(
    directory: Path, lock: int, timeout: float, environment: Mapping[str, str]
) -> BuildResult:
    began = time.monotonic()
    line = ("timeout", f"--kill-after={GRACE_SECONDS}", str(timeout), "bash", directory / JOB)
    with open_to_write(directory / BUILD_LOG) as log:
        process = await asyncio.create_subprocess_exec(
            *line,
            str(lock),
            env=environment,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            pass_fds=(lock,),
        )
    try:
        code = await process.wait()
    finally:
        kill_group(process.pid)  # with its background processes
    if (done := result_of(directory)) is not None:
        return done
    if time.monotonic() - began >= timeout:
        reason = f"not done after {show_seconds(timeout)}"
        return BuildResult(TIMEOUT.number, f"{reason}\n{log_tail(directory)}")
    reason = f"its set-up ended with {code}" if 0 <= code < 128 else "it was killed"
    return BuildResult(1, f"{reason}\n{log_tail(directory)}")


def result_of(directory: Path) -> BuildResult | None:
    """Return the result of a build that has ended; else None."""
    try:
        first = read_start(directory / BUILD_RESULT, RESULT_START).data.partition(b"\n")[0]
        code = int(first)
    except (OSError, ValueError):
        return None
    return (
        BuildResult(0, "") if code == 0 else BuildResult(1, log_tail(directory) or f"exit {code}")
    )


def log_tail(directory: Path) -> str:
    """Return the end of the log of a build."""
    try:
        with open_regular(directory / BUILD_LOG) as log:
            start = max(0, log.seek(0, os.SEEK_END) - LOG_TAIL)
            log.seek(start)
            text = log.read().decode(errors="replace").strip()
            return text.partition("\n")[2] or text if start else text  # no rest of a line
    except OSError:
        return ""


async def lock_of(path: Path) -> int:
    """Return the lock of a build once it is free: a build without a driver may still hold it."""
    lock = open_descriptor(path, os.O_RDWR | os.O_CREAT)
    while True:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return lock
        except BlockingIOError:
            await asyncio.sleep(0.1)
        except BaseException:
            os.close(lock)
            raise


# ---- build files ---------------------------------------------------------------------------------
#
# The names of further files in the directory of a build.


BUILD_LOCK = "seatrial.lock"
SCRIPT = "seatrial.script"
JOB = "seatrial.sh"


# ---- rebuild reasons -----------------------------------------------------------------------------
#
# Why a build is made anew: what it is made of, beside the newest shared build of the same test,
# toolchain and parameters.
#
#     inputs = BuildInputs(parts=..., versions=..., told=..., variables=...)
#     changes(before, inputs)      # "the version of cc changed from gcc 12.2.0 to gcc 13.1.0"


MAX_NAMED = 6

_WORDS = {
    "script": "the script of the build",
    "toolchain": "compilers or flags of the toolchain",
    "environment": "the environment of machine or test",
    "modules": "the modules of machine or test",
    "setup": "the set-up of the machine",
    "architecture": "the architecture of this host",
    "spack": "the spec",
    "easybuild": "the easyconfig",
    "nodes": "the nodes on which it is built",
    "path wrapper": "what the MPI compiler calls",
}
_SOURCE = "source "
_FILE = "program "
_SAID = "said "
_PATH = "path "
_TOOL = "tool "


class BuildInputs(Struct, frozen=True, kw_only=True):
    """What a build is made of: the parts of its key, the versions that it finds, what else tells
    compilers and folders apart, and the variables that it may read. All but versions are hashes."""

    parts: dict[str, str] = {}
    versions: dict[str, str] = {}
    told: dict[str, str] = {}
    variables: dict[str, str] = {}

    def is_of(self, other: "BuildInputs") -> bool:
        """Return whether both are of the same parameters; where these are not known, neither."""
        parameters = self.parts.get("parameters")
        return parameters is not None and parameters == other.parts.get("parameters")


def hashed(values: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of values: environments may hold secrets."""
    return {
        name: hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()[:12]
        for name, value in values.items()
    }


def changes(before: BuildInputs, now: BuildInputs) -> str:
    """Return what differs, in words; "" for nothing."""
    lines = [*_versions(before, now), *_files(before, now), *_parts(before, now)]
    return "; ".join(lines)


def _versions(before: BuildInputs, now: BuildInputs) -> Iterator[str]:
    for name in before.versions | now.versions:
        one, other = before.versions.get(name, "none"), now.versions.get(name, "none")
        if one != other:
            yield f"the version of {name} changed from {one} to {other}"


def _files(before: BuildInputs, now: BuildInputs) -> Iterator[str]:
    """Compilers of the same version that are others."""
    files = [
        name.removeprefix(kind).removeprefix(_TOOL)
        for kind in (_FILE, _SAID)
        for name in _changed(before.told, now.told)
        if name.startswith(kind)
    ]
    same = [name for name in files if before.versions.get(name) == now.versions.get(name)]
    if same:
        yield f"{_listed(same)} changed, with the same version"


def _parts(before: BuildInputs, now: BuildInputs) -> Iterator[str]:
    parts = _changed(before.parts, now.parts)
    if sources := [name.removeprefix(_SOURCE) for name in parts if name.startswith(_SOURCE)]:
        yield f"sources changed: {_listed(sources)}"
    paths = [name for name in _changed(before.told, now.told) if name.startswith(_PATH)]
    others = [_WORDS[name] for name in [*parts, *paths] if name in _WORDS]
    names = [name.removeprefix(_PATH) for name in paths if name not in _WORDS]
    others += [*names, *_changed(before.variables, now.variables)]
    if others:
        yield f"changed: {_listed(others)}"


def _changed(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _listed(names: list[str]) -> str:
    return listed(list(dict.fromkeys(names)), MAX_NAMED)
