"""Creates the folder of a trial: its record, its cases and its scripts."""

import asyncio
import contextlib
import functools
import hashlib
import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec.structs import replace

from seatrial import __version__
from seatrial.account import user_name
from seatrial.decide.conductor import Launch
from seatrial.decide.nodes import placing_of
from seatrial.errors import SeatrialError, TrialError, UsageError
from seatrial.execute.backends import Job
from seatrial.execute.background import Tasks
from seatrial.execute.beside_loop import run_in_thread
from seatrial.execute.directory import prepare, working_directory
from seatrial.execute.directory import remove as remove_directory
from seatrial.execute.environment import write_script
from seatrial.execute.geometry import prepare as prepare_order
from seatrial.execute.kept_files import FILE_USE_SCRIPT, file_use_script
from seatrial.execute.launchers import prepare as prepare_gpus
from seatrial.execute.launchers import shared_host_files, write_host_files
from seatrial.execute.plan.component import part_of
from seatrial.execute.plan.policy import sampled_of
from seatrial.execute.prepare import Prepared
from seatrial.execute.requests import remedy
from seatrial.execute.runs import Placement, PlacementTarget, RunUnderWay, copy_of, hung_script
from seatrial.execute.script import ScriptWriter
from seatrial.execute.toolchains import FACTS_SCRIPT, facts_script
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.execute.trial_paths import HUNG_SCRIPT, require_plain
from seatrial.execute.wrappers import prepare_container
from seatrial.execute.wrappers import prepare_pattern as prepare_recorder
from seatrial.execute.wrappers import prepare_thread_count as prepare_counter
from seatrial.files import (
    make_folder,
    opened_folder,
    origin_of,
    read_regular,
    remove_file,
    remove_tree,
    replace_file,
    sync_folder,
    write_durably,
)
from seatrial.hooks import load, provided
from seatrial.judge.log_rules import own_rules
from seatrial.judge.verdict import known_failures_of
from seatrial.model.build import digests
from seatrial.model.file_model import encode
from seatrial.model.machine import Machine
from seatrial.model.plan import Deck
from seatrial.model.policy import without_plan
from seatrial.model.schedulers import scheduler_of
from seatrial.model.test import Case, Input, Test, TrialOptions
from seatrial.units import listed, show_seconds

MAKING_SECONDS = 86_400.0  # that the making of a trial can take
_MAKING = ".making-"

_TAG = r"[A-Za-z0-9][A-Za-z0-9._+-]{0,99}"


def create(trials: Path, record: Record, cases: Iterable[Case]) -> TrialFolder:
    """Create the folder of a trial, complete or not at all. Raises UsageError for a tag that exists
    or cannot be the name of a folder, and for harmful tests without consent; TrialError where the
    folder cannot be created."""
    if not re.fullmatch(_TAG, record.tag):
        raise UsageError(f"--name {record.tag!r}: a tag is letters, digits, ._+- (at most 100)")
    if not (record.rehearsed or record.given or record.imported):
        require_consent(record.tests, record.machine, record.asked.consent)
    folder = TrialFolder(trials / record.tag)
    require_plain(folder.path)
    first = not trials.exists()
    making = trials.absolute() / f"{_MAKING}{record.tag}-{os.uname().nodename}-{os.getpid()}"
    is_made = False
    _remove_left(trials)
    try:
        _write(making, record, cases)
        making.rename(folder.path)
        is_made = True
        sync_folder(trials)
        if first:
            sync_folder(trials.absolute().parent)
    except BaseException as error:
        with contextlib.suppress(OSError):
            remove_tree(making)
        if isinstance(error, UnicodeEncodeError):
            raise UsageError(
                f"{error.object[:200]!r}: the path is not UTF-8 and cannot be recorded; rename it"
            ) from error
        if isinstance(error, OSError):
            raise _not_created(folder.path, is_made, error) from error
        raise
    return folder


def _write(making: Path, record: Record, cases: Iterable[Case]) -> None:
    """Write the folder of a trial. Raises OSError and UnicodeEncodeError."""
    make_folder(making)
    lines = msgspec.json.Encoder().encode_lines(cases)
    digest = hashlib.sha256(lines).hexdigest()
    record = replace(record, cases_bytes=len(lines), cases_sha256=digest)
    pretty = msgspec.json.format(encode(record), indent=2)
    write_durably(making / "trial.json", pretty + b"\n")
    write_durably(making / "cases.jsonl", lines)
    for name in ("builds", "runs", "scripts", "submissions"):
        make_folder(making / name)
    write_scripts(TrialFolder(making), record)
    sync_folder(making)


def _not_created(path: Path, is_made: bool, error: OSError) -> SeatrialError:
    """Return the error for a trial whose folder cannot be created. ``is_made``: it was, and may not
    be on the disk itself yet."""
    if is_made:
        return TrialError(
            f"{path}: the trial is there, and a crash of this host could lose it: "
            f"{error.strerror}; {remedy(error)}, then resume it"
        )
    if path.exists():
        return UsageError(f"{path}: a trial of this tag exists; choose another")
    return TrialError(
        f"{path}: the trial cannot be created: {error.strerror}; "
        f"{remedy(error)}, or name another place with --trials"
    )


def require_consent(tests: Mapping[str, Test], machine: Machine, consent: Sequence[str]) -> None:
    """Require that people consented to the harmful ones of tests: one person, two on a machine on
    which users work. Raises UsageError."""
    harmful = sorted(name for name, test in tests.items() if test.harmful)
    given = {" ".join(name.split()).casefold() for name in consent} - {""}
    if not harmful or len(given) >= 1 + machine.production:
        return
    who, where = "a person", machine.machine
    if machine.production:
        who, where = "two people", f"{machine.machine}, which is in production,"
    raise UsageError(
        f"{listed(harmful, 6)}: harmful tests run on {where} only with the consent of {who}, and "
        f"{listed(list(consent), 6) or 'nobody'} consented; say --consent NAME"
        f"{' --consent NAME' if machine.production else ''}, or leave them out"
    )


def _remove_left(trials: Path) -> None:
    """Remove folders of trials whose making was killed: by a process of this host that is gone, or
    a day ago, as processes of other hosts cannot be seen."""
    for path in trials.glob(f"{_MAKING}*"):
        before, _, number = path.name.rpartition("-")
        with contextlib.suppress(OSError):
            here = before.endswith(f"-{os.uname().nodename}") and number.isdecimal()
            dead = here and not Path(f"/proc/{number}").exists()
            if dead or path.lstat().st_mtime < time.time() - MAKING_SECONDS:
                remove_tree(path)


def write_scripts(folder: TrialFolder, record: Record) -> None:
    """Write the run scripts of all tests that are not there whole, so that they are on the disk
    itself where jobs run elsewhere; and the scripts that tell what jobs found, what hung runs
    wait in, and what files runs hold open. Raises OSError."""
    make_folder(folder.facts)
    scripts = {FACTS_SCRIPT: facts_script(), HUNG_SCRIPT: hung_script()}
    if record.machine.file_use is not None:
        scripts[FILE_USE_SCRIPT] = file_use_script()
    for name, text in scripts.items():  # jobs may read them at this moment
        replace_file(folder.facts / name, text.encode())
    for test in record.tests.values():
        if test.only_builds:
            continue
        text = test.run.script.rstrip("\n") + "\n"
        script = folder.script(test.name)
        if _holds(script, text.encode()):
            continue
        part = script.with_name(f".{script.name}.part")  # a job may start at this moment
        remove_file(part, missing_ok=True)
        if record.machine.jobs_run_elsewhere:
            write_durably(part, text.encode())
        else:
            write_script(part, text)
        part.rename(script)
    if record.machine.jobs_run_elsewhere:
        sync_folder(folder.path / "scripts")


def _holds(script: Path, data: bytes) -> bool:
    try:
        return read_regular(script, len(data), follow=False) == data
    except OSError:
        return False


# ---- record of a suite ---------------------------------------------------------------------------
#
# The record of a trial, from a prepared suite.
#
#     prepared = prepare_trial(asked, machine_name)
#     folder = create(trials, suite_record(prepared, tag), prepared.cases)


MAX_LEFT_OUT = 1000  # in a record


def suite_record(prepared: Prepared, tag: str) -> Record:
    """Return the record of a trial of a prepared suite."""
    used = {case.test for case in prepared.cases}
    tests = {name: test for name, test in prepared.tests.items() if name in used}
    groups, allocations = prepared.groups, prepared.asked.allocations
    own = without_plan(tests, prepared.cases)
    if placing := placing_of(prepared.site.machine, tests, prepared.cases):
        own = replace(own, placing=placing, nodes=len(placing.topology.nodes))
    if sampled := sampled_of(None, prepared.site.machine):
        own = replace(own, sampled=sampled)
    return Record(
        tag=tag,
        created=time.time_ns(),
        version=__version__,
        user=user_name(),
        host=os.uname().nodename,
        asked=prepared.asked,
        machine=prepared.site.machine,
        references=str(prepared.site.references.absolute()),
        expected=prepared.expected,
        inputs=digests(tests.values()),
        tests=tests,
        policy=replace(own, bundle_of=groups, allocations=allocations) if groups else own,
        left_out=prepared.skipped[:MAX_LEFT_OUT],
        rules=own_rules(tests.values()),
        known_failures=known_failures_of(tests, of_machine=prepared.site.machine.known_failures),
    )


def record_from_elsewhere(tag: str, machine: str) -> Record:
    """Return the record of a trial whose figures come from elsewhere: Seatrial was asked to run
    nothing, and knows no more of the machine than its name."""
    return Record(
        tag=tag,
        created=time.time_ns(),
        version=__version__,
        user=user_name(),
        host=os.uname().nodename,
        asked=TrialOptions(suites=[]),
        machine=Machine(machine=machine, nodes=[]),
        references="",
        tests={},
    )


# ---- staging -------------------------------------------------------------------------------------
#
# The directories and decks of the runs of a trial.


AT_ONCE = 4  # run directories that are made in the background at a time, on each target
ALERT_AGAIN_SECONDS = 3600.0
LONGEST_END_SECONDS = 30.0
SILENT_SECONDS = 60.0  # added to the time limit of the placement command


class Staging:
    """Makes runs and their directories: at once where that is quick, else in the background."""

    def __init__(
        self,
        folder: TrialFolder,
        record: Record,
        tasks: Tasks,
        free_directory: Callable[[Path], Path | None],
    ) -> None:
        self._folder = folder
        self._free_directory = free_directory
        self._record = record
        self._tasks = tasks
        own = folder.path / "runs"
        self._placement = Placement(record.machine.file_systems, record.tag, own)
        policy = record.policy
        self._file_systems = {entry.name: entry.file_system for entry in policy.entries}
        self._parts = [load(part.prepare) for part in provided("seatrial_job_parts")]
        self._scripts = ScriptWriter(record.machine, record.tag, folder)
        self._hosts_written: set[int] = set()  # for so many tasks
        self._builds: dict[str, str] = {}  # directories by key
        self._decks: dict[str, Deck] = {}
        for name in record.tests:
            part = part_of(record.component, name) if record.component is not None else None
            if part is not None and part.deck is not None:
                self._decks[name] = part.deck
        self._threads: dict[Path, asyncio.Semaphore] = {}  # by place, as one may hang
        self._set_aside = False
        self._alerted: dict[str, float] = {}
        self._dropping: set[asyncio.Task[None]] = set()

    def file_system(self, test: str) -> str:
        """Return the file system of a test's runs; "" for the trial's own folder."""
        return self._file_systems.get(test, "")

    def begin(self, launch: Launch, case: Case, recorded: str = "") -> RunUnderWay:
        """Return the run of a launch, with its job.

        ``recorded``: its directory as the journal has it, if it was created before. It counts only
        outside of the trial's folder, which may have been moved.
        """
        test = self._record.tests[case.test]
        place = self._placement.place(self.file_system(test.name), launch.target)
        path = self._folder.run(test.name, launch.run_id)
        if place.file_system:
            path = Path(recorded or place.root / test.name / launch.run_id)
        job = Job(
            run_id=launch.run_id,
            path=path,
            nodes=case.nodes,
            tasks=case.tasks,
            tasks_per_node=case.tasks_per_node,
            threads=case.threads,
            walltime=case.walltime,
            node=launch.nodes or case.node,
            exclusive=case.exclusive,
            features=tuple(test.requires.features),
            avoid=launch.avoid,
            options=case.job,
            file_system=launch.target or self.file_system(test.name),
            bundle=launch.bundle,
            at_once=case.at_once,
        )
        return RunUnderWay(launch, test, case, job, place)

    def build(self, key: str) -> str:
        """Return the directory of a build: where it was made, as it may hold its own path. "" where
        there is no build. Raises TrialError for one of another user: an earlier version used
        those."""
        if key and key not in self._builds:
            link = self._folder.builds / key
            place = os.path.realpath(link)
            if link.is_symlink():
                _require_own(link, Path(place))
            self._builds[key] = place
        return self._builds.get(key, "")

    def is_quick(self, test: str) -> bool:
        """Return whether directories of runs are made at once: in the trial's folder, without a
        copy of a deck."""
        deck = self._decks.get(test)
        return not self._file_systems.get(test) and (deck is None or deck.how == "shared")

    def make(self, run: RunUnderWay) -> None:
        """Make the directory of a run. Raises TrialError, and BackendError where a job of which the
        journal knows nothing runs there."""
        with _making(run.path):
            self._alert_set_aside(self._make(run, self._script(run)))

    def _script(self, run: RunUnderWay) -> str:
        """Return the job script of a run. The files of its hosts are written, if runs share them.
        Raises OSError and TrialError."""
        machine, case = self._record.machine, run.case
        shared = shared_host_files(machine, run.test, case, self._folder.hosts)
        if shared and case.tasks not in self._hosts_written:
            write_host_files(shared, scheduler_of(machine.scheduler).only_host, case.tasks)
            self._hosts_written.add(case.tasks)
        launch, build = run.launch, self.build(case.build)
        return self._scripts.job_script(
            run.test, case, launch.run_id, str(run.path), build, launch.nodes
        )

    def _make(self, run: RunUnderWay, script: str) -> Path | None:
        machine, test, case, path = self._record.machine, run.test, run.case, run.path
        build = self.build(case.build)
        aside = self._free_directory(path)
        prepare(path, script, test, self._inputs(test, run.place))
        prepare_order(machine, test, case, path, run.launch.nodes)
        prepare_gpus(machine, test, case, path)
        prepare_container(machine, test, case, path, build)
        prepare_recorder(test, path, build)
        prepare_counter(test, case, path, build)
        for prepare_part in self._parts:
            prepare_part(machine, test, case, path)
        return aside

    def _alert_set_aside(self, aside: Path | None) -> None:
        """Alert people once that directories were renamed."""
        if aside is not None and not self._set_aside:
            self._tasks.alert(
                "directory",
                str(aside),
                "a run is created whose directory held what an earlier job wrote, of which the "
                "journal knows nothing, as after a crash of this host; it and others like it are "
                "kept as RUN.before-N",
            )
            self._set_aside = True

    async def make_in_background(self, run: RunUnderWay) -> None:
        """Make the directory of a run in the background, after the directories and the deck that it
        needs. Raises TrialError."""
        with _making(run.path):
            script = self._script(run)
            await self._ready(run)
            async with self._free_thread(run.path):
                if run.place.file_system:
                    with self._alert_if_slow(run.place, SILENT_SECONDS):  # copies may take longer
                        make = functools.partial(run.path.mkdir, parents=True, exist_ok=True)
                        await run_in_thread(make, "place")
                self._alert_set_aside(await run_in_thread(lambda: self._make(run, script), "place"))

    def _free_thread(self, path: Path) -> asyncio.Semaphore:
        """Return the semaphore of the threads for a directory: each place has its own threads."""
        root = path.parent.parent
        return self._threads.setdefault(root, asyncio.Semaphore(AT_ONCE))

    async def _ready(self, run: RunUnderWay) -> None:
        """Make what runs at a place share: the directory of the test, the copy of its deck."""
        place, test = run.place, run.test.name
        if place.file_system:
            with self._alert_if_slow(place, self._placement.timeout(place) + SILENT_SECONDS):
                self._alert_failed(place, await self._placement.make(place, test))
        deck = self._decks.get(test)
        if deck is not None and deck.how == "per_target":
            self._alert_failed(place, await self._placement.deck(place, self._source(test, deck)))

    @contextlib.contextmanager
    def _alert_if_slow(self, place: PlacementTarget, longest: float) -> Iterator[None]:
        """Alert people if the block takes longer than ``longest`` seconds."""
        loop = asyncio.get_running_loop()
        text = "runs wait for their directories; it has not answered for "
        text = f"{place.name}: {text}{show_seconds(longest)}"
        timer = loop.call_later(longest, self._alert, place, text)
        try:
            yield
        finally:
            timer.cancel()

    def _alert_failed(self, place: PlacementTarget, failure: str) -> None:
        """Alert people that the placement command failed and a plain directory is used."""
        if failure:
            text = f"placing on {place.name} failed, a plain directory is used: {failure}"
            self._alert(place, text)

    def _alert(self, place: PlacementTarget, text: str) -> None:
        """Raise an alert about a place, unless one was raised within the last hour."""
        now = time.monotonic()
        if now - self._alerted.get(place.name, -ALERT_AGAIN_SECONDS) >= ALERT_AGAIN_SECONDS:
            self._alerted[place.name] = now
            self._tasks.alert("placement", place.name, text)

    # ---- decks ----------------------------------------------------------------------------

    def _source(self, test: str, deck: Deck) -> Path:
        return Path(os.path.normpath(Path(self._record.tests[test].folder) / deck.source))

    def _inputs(self, test: Test, place: PlacementTarget) -> list[Input]:
        deck = self._decks.get(test.name)
        if deck is None:
            return []
        source = self._source(test.name, deck)
        path = copy_of(place, source) if deck.how == "per_target" else source
        how: Literal["link", "copy"] = "copy" if deck.how == "per_run" else "link"
        return [Input(source=str(path), name=deck.name or source.name, how=how)]

    def tidy_up(self, run: RunUnderWay) -> None:
        """Remove, in the background, what a run that is over leaves: its own copy of a deck, whose
        space no longer counts, and the directory in which it worked, if it was killed there, as far
        as that can be seen from here. What cannot be removed stays."""
        deck = self._decks.get(run.test.name)
        if deck is not None and deck.how == "per_run":
            copy = run.path / (deck.name or self._source(run.test.name, deck).name)
            self._remove(run.path, functools.partial(_remove_copy, copy))
        directory = working_directory(run.case, self._record.tag, run.launch.run_id)
        if directory is not None:
            self._remove(directory, functools.partial(remove_directory, directory))

    def _remove(self, directory: Path, remove: Callable[[], None]) -> None:
        async def work() -> None:
            async with self._free_thread(directory):
                await run_in_thread(remove, "remove")

        task = self._tasks.spawn(work())
        self._dropping.add(task)
        task.add_done_callback(self._dropping.discard)

    async def end(self) -> None:
        """Wait up to 30 s for copies of decks and directories that are being removed."""
        if self._dropping:
            await asyncio.wait(self._dropping, timeout=LONGEST_END_SECONDS)


@contextlib.contextmanager
def _making(path: Path) -> Iterator[None]:
    """Raise TrialError if a run cannot be created. Of two files it names the second: the new
    one."""
    try:
        yield
    except OSError as error:
        where, reason = error.filename2 or error.filename or path, error.strerror or error
        if isinstance(error, shutil.Error):  # of a folder: (source, target, reason) of each file
            _, where, reason = error.args[0][0]
        raise TrialError(
            f"{where}: the run cannot be created: {reason}; {remedy(error)}, then resume the trial"
        ) from error


def _remove_copy(copy: Path) -> None:
    with contextlib.suppress(OSError):
        remove_tree(copy)


def _require_own(link: Path, place: Path) -> None:
    for path in (place, *place.parents[:2]):  # N, KEY-FOUND and the folder of builds
        with contextlib.suppress(FileNotFoundError), opened_folder(path) as opened:
            if other := origin_of(opened, path).other:
                raise TrialError(
                    f"{link}: it leads to a build that is not yours: {other}; start a new trial"
                )
