"""Builds that trials share: ``.builds/KEY-FOUND/N/`` beside them.

KEY is the key of a build, FOUND the hash of the compilers and variables that it finds, N counts up.
A build is made where it stays, as it may hold its own path. It is published by its record, which is
written last: the checksum of each file. A trial has a link to the build that it uses, and a build
with damage is not used again. Whoever makes a build or looks for one holds the lock of KEY-FOUND. A
build that failed goes to its trial.

Programs of others are not run: where the folder, KEY-FOUND, N or a file may be another user's
doing, the build stays in its trial, and that is told.
"""

import asyncio
import contextlib
import fcntl
import hashlib
import os
import re
import shutil
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from seatrial.errors import TrialError, UsageError
from seatrial.execute.beside_loop import kill_group, read_to_end, run_in_thread
from seatrial.execute.builds import BuildInputs, BuildResult, changes, hashed, lock_of, result_of
from seatrial.execute.environment import exports, inherited, preamble, toolchain_variables
from seatrial.execute.kept_files import checksum
from seatrial.execute.script import build_variables, digest_of_variables
from seatrial.execute.toolchains import (
    facts_of,
    identities_of,
    not_known,
    parsed_compiler_facts,
    read_all_compiler_facts,
    read_compiler_facts,
    tools_named,
    versions_of,
    versions_script,
)
from seatrial.files import (
    close_to_others,
    is_of_host,
    make_folder,
    open_descriptor,
    opened_folder,
    origin_of,
    origin_of_tree,
    read_regular,
    remove_file,
    remove_tree,
    sync_folder,
    write_durably,
)
from seatrial.model.build import BuildKeys
from seatrial.model.machine import Machine
from seatrial.model.test import Case, Test

FOLDER = ".builds"
RECORD = "seatrial.shared.json"
LOCK = "lock"
USERS = "users"
MAX_RECORD_BYTES = 64 << 20
OWN = "seatrial."  # how the names of Seatrial's own files in a build begin

_NUMBER = r"[1-9][0-9]{0,8}"

Make = Callable[[Path], Awaitable[BuildResult]]


# ---- what a build would find ---------------------------------------------------------------------
#
# The compilers of this host, asked for before a build starts: the probe asks the questions of a
# build in its environment, so that builds of an older compiler are not taken for new ones.


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
            output, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        kill_group(process.pid)
        await read_to_end(process)
    if process.returncode:
        return None
    facts = parsed_compiler_facts(output)
    kept = {name: text for name, text in sorted(facts.items()) if name != "host"}
    digest = hashlib.sha256(repr(sorted(kept.items())).encode()).hexdigest()[:8]
    return FoundCompilers(facts_of(facts), kept, digest)


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
    before, now = identities_of(built), identities_of(found.told)
    names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    if not names:
        return ""
    versions = [name for name in names if name in versions_of(built) or name in versions_of(now)]
    differences = [f"{n} was {before.get(n, 'none')}, not {now.get(n, 'none')}" for n in versions]
    text = "; ".join(differences) or ", ".join(names)
    return f"not shared, as it found other compilers than this host has: {text}"


# ---- shared builds -------------------------------------------------------------------------------


class SharedBuild(Struct, frozen=True, kw_only=True):
    """The record of a published build."""

    key: str
    test: str
    toolchain: str
    machine: str
    #: When it was made: ns since the epoch.
    made: int
    #: The trial that made it.
    trial: str
    #: What it found: the host, versions of compilers.
    facts: dict[str, str] = {}
    inputs: BuildInputs = BuildInputs()
    #: The reason why it was made, though one like it was there.
    anew: str = ""
    #: The SHA-256 of its files by their names.
    files: dict[str, str] = {}
    #: The targets of its links by their names.
    links: dict[str, str] = {}
    bytes: int = 0


class BuildOutcome(NamedTuple):
    """The result of a build, what it found, the trial that made it, "" for this one, and why it was
    made anew, where that can be told. ``unshared``: why shared builds could not be used, or ""."""

    result: BuildResult
    facts: dict[str, str]
    made_by: str = ""
    anew: str = ""
    unshared: str = ""


class SharedBuilds:
    """The builds of one trial, whose folder is ``trial``, among those that are shared. ``rebuild``:
    nothing that is there is used."""

    def __init__(self, folder: Path, trial: Path, machine: Machine, rebuild: bool) -> None:
        self._folder = folder
        self._trial = trial
        self._machine = machine
        self._rebuild = rebuild
        self._environment = inherited(machine)
        self._probes: dict[tuple[str, str, str], asyncio.Task[FoundCompilers | None]] = {}

    async def build(self, link: Path, test: Test, case: Case, make: Make) -> BuildOutcome:
        """Make a build with ``make``, or use one that is there. ``link`` is its place in the trial.
        Raises TrialError."""
        try:
            compilers = await self._probe(test, case.toolchain)
            if _is_own(link):
                return _outcome(await make(link), link)
            if anew := cannot_be_told(compilers):
                return _outcome(await make(link), link)._replace(anew=anew)
            assert compilers is not None
            seen = digest_of_variables(self._variables(test, case), compilers.digest)
            entry = self._folder / f"{case.build}-{seen}"
            make_folder(entry / USERS)
            if stranger := _stranger_above(self._folder, entry):
                remove_file(link, missing_ok=True)
                return _outcome(await make(link), link, stranger)
            lock = await lock_of(entry / LOCK)
        except PermissionError as error:
            if link.is_symlink():
                raise _cannot(self._folder, error) from error
            return _outcome(await make(link), link)  # the folder is another user's
        except OSError as error:
            raise _cannot(self._folder, error) from error
        try:
            return await self._locked(entry, link, test, case, make, compilers)
        except OSError as error:
            raise _cannot(entry, error) from error
        finally:
            os.close(lock)

    async def _probe(self, test: Test, toolchain: str) -> FoundCompilers | None:
        """Ask once for each toolchain and environment."""
        assert test.build is not None
        tools = " ".join(tools_named(test.build.script))
        key = (toolchain, preamble(self._machine, test, toolchain), tools)
        if key not in self._probes:
            work = probe(self._machine, test, toolchain, self._environment)
            self._probes[key] = asyncio.ensure_future(work)
        return await asyncio.shield(self._probes[key])

    async def _locked(
        self,
        entry: Path,
        link: Path,
        test: Test,
        case: Case,
        make: Make,
        found: FoundCompilers,
    ) -> BuildOutcome:
        numbers = sorted(numbers_of(entry), reverse=True)
        stranger = ""
        if not link.is_symlink() and not self._rebuild:
            kept, stranger = await self._kept(entry, numbers, link)
            if kept is not None:
                return kept
        if not link.is_symlink():
            number = max(numbers, default=0) + 1
            make_folder(entry / str(number))
            _use(entry, number, link)
        place = link.resolve()
        make_folder(place)  # somebody may have removed it
        inputs = self._inputs(test, case, found)
        anew = await run_in_thread(
            partial(self._reason_to_build, entry, place, case, inputs), "sums"
        )
        result = await make(place)
        outcome = _outcome(result, place, stranger)._replace(anew=anew)
        if result.code:
            _take(place, link)
        elif other := differs(read_all_compiler_facts(place), found):
            outcome = outcome._replace(anew="; ".join(filter(None, (anew, other))))
        elif read_record(place) is None:
            record = SharedBuild(
                key=case.build,
                test=test.name,
                toolchain=case.toolchain,
                machine=self._machine.machine,
                made=time.time_ns(),
                trial=self._trial.name,
                facts=outcome.facts,
                inputs=inputs,
                anew=anew,
            )
            await run_in_thread(partial(publish, place, record), "sums")
        return outcome

    async def _kept(
        self, entry: Path, numbers: Sequence[int], link: Path
    ) -> tuple[BuildOutcome | None, str]:
        """Use the first of these builds that is whole. Return None where there is none, and whose
        builds were passed over, in words."""
        stranger = ""
        for number in numbers:
            place = entry / str(number)
            if of_others := await run_in_thread(partial(_stranger_in, place), "owners"):
                stranger = stranger or of_others
                continue
            record = await run_in_thread(partial(intact, place), "sums")
            if record is not None:
                _use(entry, number, link)
                outcome = BuildOutcome(BuildResult(0, ""), record.facts, record.trial)
                return outcome, stranger
        return None, stranger

    def _variables(self, test: Test, case: Case) -> list[tuple[str, str]]:
        return build_variables(self._machine, test, case.toolchain, self._environment)

    def _inputs(self, test: Test, case: Case, found: FoundCompilers) -> BuildInputs:
        """Return what a build is made of, by which people are told what changed."""
        try:
            parts = BuildKeys().parts(test, case, self._machine)
        except UsageError:  # the build itself says so
            parts = {}
        variables = dict(self._variables(test, case))
        return BuildInputs(
            parts=parts,
            versions=versions_of(found.facts),
            told=hashed(found.told),
            variables=hashed(variables),
        )

    def _reason_to_build(self, entry: Path, place: Path, case: Case, inputs: BuildInputs) -> str:
        """Return why a build is made, though one like it may be there; "" for the first."""
        if result_of(place) is not None:
            return ""  # it is there: this trial began it
        if self._rebuild:
            return "as --rebuild asks"
        alike: list[SharedBuild] = []
        for one in entry.parent.glob(f"*/*/{RECORD}"):
            record = read_record(one.parent)
            if record is None or (record.test, record.toolchain) != (case.test, case.toolchain):
                continue
            if one.parent.parent == entry:
                return f"files of {one.parent} changed since it was built"
            if record.machine == self._machine.machine and record.inputs.is_of(inputs):
                alike.append(record)
        if not alike:
            return ""
        return changes(max(alike, key=lambda record: record.made).inputs, inputs)


def _is_own(link: Path) -> bool:
    """Return whether a build is in its trial's own folder: one that failed, or of version 0.1."""
    return link.is_dir() and not link.is_symlink()


def _outcome(result: BuildResult, directory: Path, unshared: str = "") -> BuildOutcome:
    return BuildOutcome(result, read_compiler_facts(directory), unshared=unshared)


def _stranger_above(folder: Path, entry: Path) -> str:
    """Return why another user can put a build in the place of one of this entry, or "". Raises
    OSError."""
    for path in (folder, entry, entry / USERS):
        with opened_folder(path, follow=path is folder) as opened:
            if stranger := origin_of(opened, path).stranger:
                return stranger
    return ""


def _stranger_in(place: Path) -> str:
    """Return why a build may be another user's doing, or ""."""
    try:
        return origin_of_tree(place).stranger
    except OSError as error:
        return f"{error.filename or place}: {error.strerror}"


def _cannot(path: Path, error: OSError) -> Exception:
    reason = f"{error.filename or path}: {error.strerror or error}"
    remedy = "see to its rights, or name another folder with `builds: {folder: ...}`"
    if is_of_host(error):
        remedy = "see to the space and the health of the file system"
    elif error.filename == "bash":
        remedy = "put the folder of bash on PATH"
    return TrialError(f"{reason}; builds cannot be shared; {remedy}, then resume the trial")


def numbers_of(entry: Path) -> list[int]:
    """Return the numbers of the builds of an entry. Raises OSError."""
    return [int(path.name) for path in entry.iterdir() if re.fullmatch(_NUMBER, path.name)]


def _use(entry: Path, number: int, link: Path) -> None:
    """Record that a trial uses a build, and link to it: in this order, so that what is used is
    never removed as unused."""
    where = str(link.parent.absolute() / link.name)
    mark = hashlib.sha256(where.encode(errors="surrogateescape")).hexdigest()[:12]
    write_durably(entry / USERS / f"{number}.{mark}", os.fsencode(where))
    make_folder(link.parent)
    link.symlink_to((entry / str(number)).resolve())
    sync_folder(link.parent)


def _take(place: Path, link: Path) -> None:
    """Move a build that failed to its trial: it is not shared."""
    remove_file(link)
    try:
        place.rename(link)
    except OSError:  # another file system
        shutil.copytree(place, link, symlinks=True)  # plain: from an own folder to an own one
        with contextlib.suppress(OSError):
            remove_tree(place)


# ---- what is published ----------------------------------------------------------------------


def publish(place: Path, record: SharedBuild) -> None:
    """Write the record of a build, with the checksums of its files, which others may write no
    more. Raises OSError."""
    close_to_others(place)
    files, links = _contents(place)
    size = sum(os.stat(f"{place}/{name}").st_size for name in files)  # noqa: PTH116
    record = msgspec.structs.replace(record, files=files, links=links, bytes=size)
    part = place / f"{RECORD}.part"
    remove_file(part, missing_ok=True)
    write_durably(part, msgspec.json.encode(record))
    part.rename(place / RECORD)
    sync_folder(place)


def read_record(place: Path) -> SharedBuild | None:
    """Return the record of a build; None for one that is not published."""
    try:
        data = read_regular(place / RECORD, MAX_RECORD_BYTES, follow=False)
        return msgspec.json.decode(data, type=SharedBuild)
    except (OSError, ValueError, msgspec.MsgspecError):
        return None


def intact(place: Path) -> SharedBuild | None:
    """Return the record of a build whose files are as they were published; else None. Files that
    came later do not matter."""
    record = read_record(place)
    done = result_of(place)
    if record is None or done is None or done.code:
        return None
    try:
        for name, target in record.links.items():
            if os.readlink(place / name) != target:  # noqa: PTH115
                return None
        for name, wanted in record.files.items():
            if _sum(place, name) != wanted:
                return None
    except (OSError, ValueError):
        return None
    return record


def _contents(place: Path) -> tuple[dict[str, str], dict[str, str]]:
    """Return the checksums of the files in a build, and the targets of its links."""
    files: dict[str, str] = {}
    links: dict[str, str] = {}
    for above, folders, names in os.walk(place):
        for name in sorted([*folders, *names]):
            path = os.path.relpath(f"{above}/{name}", place)
            whole = Path(above, name)
            if whole.is_symlink():
                links[path] = os.readlink(whole)  # noqa: PTH115
            elif whole.is_file() and not path.startswith(OWN):
                files[path] = _sum(place, path)
    return files, links


def _sum(place: Path, name: str) -> str:
    executable = "x" if os.access(place / name, os.X_OK) else "-"
    return checksum(f"{place}/{name}") + executable


# ---- stored builds -------------------------------------------------------------------------------
#
# The builds that trials share, for whoever looks after them.
#
#     for build in stored(folder): ...     # with the trials that use it
#     remove(build)                        # unless one does
#
# Links are passed over: they may lead to a folder of anybody.


MAX_MARK_BYTES = 1 << 16


class StoredBuild(Struct, frozen=True):
    """A directory among the shared builds: its record (None: it is not published), the trials that
    use it, when it was made or last used (s since the epoch)."""

    place: Path
    record: SharedBuild | None
    users: list[str]
    used: float


def stored(folder: Path) -> Iterator[StoredBuild]:
    """Yield the shared builds of a folder."""
    with contextlib.suppress(FileNotFoundError):
        for entry in sorted(filter(_is_folder, folder.iterdir())):
            for number in sorted(numbers_of(entry)):
                if _is_folder(entry / str(number)):
                    yield _stored(entry, number)


def _is_folder(path: Path) -> bool:
    return path.is_dir() and not path.is_symlink()


def _stored(entry: Path, number: int) -> StoredBuild:
    place = entry / str(number)
    users, times = [], [place.stat().st_mtime]
    for mark in (entry / USERS).glob(f"{number}.*"):
        with contextlib.suppress(OSError, ValueError):  # ValueError: a NUL in the name
            times.append(mark.stat().st_mtime)
            link = Path(os.fsdecode(read_regular(mark, MAX_MARK_BYTES, follow=False)))
            if link.is_symlink() and link.resolve() == place.resolve():
                users.append(link.parent.parent.name)
    return StoredBuild(place, read_record(place), sorted(users), max(times))


def remove(build: StoredBuild) -> bool:
    """Remove a build that no trial uses. Returns False where one does by now, or one is being made
    or looked for. Raises OSError."""
    entry = build.place.parent
    lock = open_descriptor(entry / LOCK, os.O_RDWR | os.O_CREAT)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        number = int(build.place.name)
        if _stored(entry, number).users:
            return False
        remove_file(build.place / RECORD, missing_ok=True)  # it is not used while it goes
        with opened_folder(entry) as opened:
            remove_tree(build.place.name, at=opened)
        for mark in (entry / USERS).glob(f"{number}.*"):
            remove_file(mark, missing_ok=True)
        return True
    except BlockingIOError:
        return False
    finally:
        os.close(lock)
