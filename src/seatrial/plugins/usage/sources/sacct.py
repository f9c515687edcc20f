"""Jobs from Slurm's accounting, asked by sacct in windows of time, or saved in a file.

Each window is a command with a time limit. Its answer is spooled, and counts only if the command
ended well, said no error, and printed the header that was asked for: an answer that is empty for
another reason is a gap. A window that takes too long is asked again in halves.

What sacct leaves out of a span of time is asked for besides: jobs that were cancelled before they
were eligible (``--state``), and those of the last import that had not ended (``--jobs``).
"""

from __future__ import annotations

import io
import os
import re
import secrets
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple
from zoneinfo import ZoneInfo

from seatrial.account import name_of
from seatrial.cli import Folders
from seatrial.errors import BackendError, UsageError
from seatrial.execute.beside_loop import kill_group
from seatrial.execute.environment import inherited
from seatrial.model.machine import NodeGroup
from seatrial.model.requirements import cpus_of
from seatrial.plugins.usage.archive import Rejects
from seatrial.plugins.usage.importing import Ask, Batch, bring_in
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.settings import machine_of
from seatrial.plugins.usage.sources.files import opened_text
from seatrial.plugins.usage.sources.sacct_rows import (
    COLUMNS,
    EXECUTABLE_FROM,
    Header,
    Reader,
    header_faults,
)
from seatrial.show.text import show_clock
from seatrial.units import SECOND_NS, show_seconds

ANSWER_S = 300.0
"""How long sacct may take for one window."""
QUICK_S = 10.0
"""A window that took less is followed by one of twice its length."""
FIRST_WINDOW_S, SHORTEST_WINDOW_S, LONGEST_WINDOW_S = 86400, 300, 32 * 86400
OVERLAP_S = 3600
"""How far behind the end of the last import the next one begins: records come late."""
JOBS_AT_ONCE = 500
MAX_WAITING_RECORDS = 1000
"""Records that slurmctld has not yet sent to slurmdbd, from which on an import waits."""
_MOST_SAID = 1 << 16

_TOO_WIDE = re.compile(r"too wide|exceeds size limit|too large", re.IGNORECASE)
_ERROR = re.compile(r"\b(error|fatal)\b", re.IGNORECASE)
_MISLEADING = re.compile(r"SACCT_\w+|SLURM_(CLUSTERS|TIME_FORMAT|BITSTR_LEN)|TZ")
_WAITING = re.compile(r"DBD Agent queue size:\s*(\d+)")
_PRIVATE = re.compile(r"(?m)^PrivateData\s*=.*\bjobs\b")
_TOO_MANY = (
    "more cores than their nodes have by the machine file; where Slurm counts hardware threads as "
    "CPUs, correct its threads_per_core, or give --cpus-per-core"
)
_NOT_ELIGIBLE = ("--state=CANCELLED,DEADLINE", "--allocations")  # they have no steps
ALL_TIMES = "--starttime=1970-01-02T00:00:00"


class NoAnswer(BackendError):
    """A command of Slurm did not answer, or not as documented."""


class TooSlow(NoAnswer):
    """It may answer if it is asked for less."""


class Commands:
    """Runs the commands of Slurm's accounting, for one cluster."""

    def __init__(self, environment: Mapping[str, str], cluster: str) -> None:
        kept = {name: value for name, value in environment.items() if not _MISLEADING.match(name)}
        # Times as numbers, and those that are given in UTC: no hour is there twice.
        fixed = {"TZ": "UTC", "SLURM_TIME_FORMAT": "%s", "SLURM_BITSTR_LEN": "0"}
        self.environment = {**kept, **fixed}
        self.cluster = cluster

    def ask(self, out: BinaryIO, *line: str) -> None:
        """Run a command, whose output goes to a file. Raises NoAnswer or TooSlow."""
        with tempfile.TemporaryFile() as errors:
            try:
                process = subprocess.Popen(
                    line,
                    stdin=subprocess.DEVNULL,
                    stdout=out,
                    stderr=errors,
                    env=self.environment,
                    start_new_session=True,
                )
            except OSError as error:
                raise NoAnswer(
                    f"{line[0]} cannot be started: {error.strerror}; run this where the commands "
                    "of Slurm are, or save the output of sacct and give it by --file"
                ) from error
            try:
                code = process.wait(ANSWER_S)
            except subprocess.TimeoutExpired:
                limit = show_seconds(ANSWER_S)
                raise TooSlow(f"{line[0]} did not answer in {limit}") from None
            finally:
                if process.poll() is None:
                    kill_group(process.pid)
                    process.wait()
            errors.seek(0)
            said = errors.read(_MOST_SAID).decode(errors="replace").strip()
        if code == 0 and not _ERROR.search(said):
            return
        text = f"{line[0]} failed: {said.partition(chr(10))[0][:300] or f'exit code {code}'}"
        raise TooSlow(text) if _TOO_WIDE.search(said) else NoAnswer(text)

    def text(self, *line: str) -> str:
        """Return the output of a command. Raises NoAnswer."""
        with tempfile.TemporaryFile() as out:
            self.ask(out, *line)
            out.seek(0)
            return out.read().decode(errors="replace")

    def require_all_jobs(self) -> None:
        """Raise BackendError where the cluster has no accounts, or not all of them are shown."""
        clusters = self.text("sacctmgr", "-nP", "show", "cluster", "format=cluster").split()
        if self.cluster and self.cluster not in clusters:
            raise BackendError(
                f"slurmdbd does not know the cluster {self.cluster}; it has {', '.join(clusters)}"
            )
        if _PRIVATE.search(self.text("sacctmgr", "show", "configuration")) and not self._is_admin():
            raise BackendError(
                "Slurm shows you your own jobs alone (PrivateData=jobs); ask its administrator for "
                "the AdminLevel Operator, or for a saved output of sacct, and give it by --file"
            )

    def require_no_backlog(self) -> None:
        """Raise BackendError while slurmctld has many records that slurmdbd does not have yet, as
        after an outage: jobs of a span that would be covered are missing."""
        try:
            found = _WAITING.search(self.text("sdiag"))
        except NoAnswer:
            return  # the controller is down, or does not tell us: what is accounted counts
        if found and int(found[1]) > MAX_WAITING_RECORDS:
            raise BackendError(
                f"slurmctld has {found[1]} records that slurmdbd does not have yet (sdiag: DBD "
                "Agent queue size), so jobs would be missing; import when it has sent them"
            )

    def fields(self) -> list[str]:
        """Return the fields of COLUMNS that this sacct has. Raises NoAnswer."""
        known = set(self.text("sacct", "--helpformat").split())
        chosen = (
            next((each for each in titles if each in known), "") for titles in COLUMNS.values()
        )
        fields = [field for field in chosen if field]
        if missing := header_faults(Header(tuple(fields), "", closed=True)):
            raise NoAnswer(f"this sacct has no field {missing}")
        return fields

    def _is_admin(self) -> bool:
        if os.geteuid() == 0:
            return True
        line = (
            "sacctmgr",
            "-nP",
            "show",
            "user",
            f"name={name_of(os.geteuid())}",
            "format=adminlevel",
        )
        return self.text(*line).strip() in ("Administrator", "Operator")


class _Window(NamedTuple):
    """A span of time, in s; its end is excluded."""

    since: int
    until: int

    @property
    def words(self) -> tuple[str, str]:
        """Return the options of sacct."""
        since, until = (
            datetime.fromtimestamp(each, UTC).strftime("%Y-%m-%dT%H:%M:%S") for each in self
        )
        return f"--starttime={since}", f"--endtime={until}"

    def __str__(self) -> str:
        since, until = (show_clock(each * SECOND_NS) for each in self)
        return f"{since} to {until}"


class _Options(NamedTuple):
    """How records become jobs."""

    cluster: str
    cpus_per_core: int
    executable_from: tuple[str, ...]
    steps: bool
    #: CPUs of the largest node, as the machine file has them; 0 where there is none.
    cpus_per_node: int = 0

    def checked(self, jobs: Iterable[UserJob], rejects: Rejects) -> Iterator[UserJob]:
        """Yield the jobs, and count those with more CPUs than their nodes have."""
        most = self.cpus_per_node / self.cpus_per_core
        for job in jobs:
            if most and job.cores > job.nodes * most:
                rejects.note(_TOO_MANY)
            yield job


class _Sacct:
    """The accounting of a cluster, as a source."""

    name = "sacct"

    def __init__(self, commands: Commands, options: _Options) -> None:
        self.commands = commands
        self.options = options
        self.cluster = options.cluster
        self._fields: list[str] = []
        #: The raw ids of jobs that had not ended, and those of the last import that were not read.
        self._unfinished: set[int] = set()
        self._unseen: set[int] = set()

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield the jobs of one window after another. Raises BackendError with the first gap."""
        now = int(time.time())
        until = min(ask.until or now, now)
        since = _start(ask)
        if since >= until:
            raise UsageError(f"nothing to ask for: {_Window(until, since)} has not passed yet")
        self.commands.require_all_jobs()
        self.commands.require_no_backlog()
        self._fields = self.commands.fields()
        self._unfinished = numbers_of(ask.cursor)
        self._unseen = set(self._unfinished)
        # Before its first job nothing tells an idle machine from a database that has forgotten.
        forgotten = not ask.covered_until
        for window, answers in self._windows(since, until):
            with answers:
                forgotten = forgotten and not answers.any
                if not forgotten:
                    origin = f"sacct {' '.join(window.words)}"
                    yield self._batch(ask, answers, window, origin, rejects)
        yield from self._later(ask, until, rejects)

    def _windows(self, since: int, until: int) -> Iterator[tuple[_Window, _Answers]]:
        """Yield what was answered for each window, from ``since`` to ``until``."""
        length = FIRST_WINDOW_S
        while since < until:
            window = _Window(since, min(until, since + length))
            began = time.monotonic()
            try:
                answers = self._answers(window.words, (*window.words, *_NOT_ELIGIBLE))
            except TooSlow as error:
                length = (window.until - window.since) // 2
                if length < SHORTEST_WINDOW_S:
                    raise _gap(_Window(since, until), error) from error
                continue
            except NoAnswer as error:
                raise _gap(_Window(since, until), error) from error
            yield window, answers
            since = window.until
            if time.monotonic() - began < QUICK_S:
                length = min(2 * length, LONGEST_WINDOW_S)

    def _later(self, ask: Ask, until: int, rejects: Rejects) -> Iterator[Batch]:
        """Yield jobs of the last import that had not ended and that no window has shown: they wait
        and are not eligible, or their end was recorded late."""
        nothing = _Window(until, until)
        while some := sorted(self._unseen)[:JOBS_AT_ONCE]:
            try:
                answers = self._answers((f"--jobs={','.join(map(str, some))}", ALL_TIMES))
            except NoAnswer as error:
                raise _gap(nothing, error) from error
            self._unseen.difference_update(some)
            self._unfinished.difference_update(some)
            with answers:
                origin = "sacct --jobs, of the last import"
                yield self._batch(ask, answers, nothing, origin, rejects)

    def _batch(
        self, ask: Ask, answers: _Answers, window: _Window, origin: str, rejects: Rejects
    ) -> Batch:
        """Return what was answered as a batch. What had not ended is its cursor."""
        reader = Reader(
            ask.machine,
            answers.asked // SECOND_NS,
            cluster=self.options.cluster,
            cpus_per_core=self.options.cpus_per_core,
            executable_from=self.options.executable_from,
            unfinished=self._unfinished,
            unseen=self._unseen,
        )
        return Batch(
            self.options.checked(_jobs(reader, answers, rejects, window), rejects),
            origin,
            answers.asked,
            ended=lambda: (window, text_of(self._unfinished)),
        )

    def _answers(self, *questions: Sequence[str]) -> _Answers:
        """Return what sacct answers. Raises NoAnswer or TooSlow."""
        asked = time.time_ns()
        # Nobody can have it in the name of a job.
        delimiter = f"<{secrets.token_hex(6)}>"
        line = [
            *("sacct", "--allusers", "--duplicates", "--local", "--parsable", "--noconvert"),
            *(f"--delimiter={delimiter}", f"--format={','.join(self._fields)}"),
            *([] if self.options.steps else ["--allocations"]),
            *([f"--clusters={self.options.cluster}"] if self.options.cluster else []),
        ]
        answers = _Answers(asked, Header(tuple(self._fields), delimiter, closed=True))
        try:
            for words in questions:
                out = answers.file()
                self.commands.ask(out, *line, *words)
                answers.check(out)
        except BaseException:
            answers.close()
            raise
        return answers


def _jobs(
    reader: Reader, answers: _Answers, rejects: Rejects, window: _Window
) -> Iterator[UserJob]:
    """Yield the jobs of the first answer, and those of others that were not eligible yet, which the
    first has not. Raises BackendError where there is something that sacct does not print."""

    def refuse(place: str, reason: str, row: str) -> None:
        raise _gap(window, NoAnswer(f"{place}: {row[:80]!r} {reason}"))

    for number, file in enumerate(answers.files):
        lines = io.TextIOWrapper(file, "utf-8", "replace", newline="\n")
        next(lines)  # the header
        for job in reader.jobs(lines, answers.header, rejects, "sacct", refuse):
            if number == 0 or job.eligible is None or job.eligible >= window.until:
                yield job


class _Answers(ExitStack):
    """What sacct answered, in files without a name."""

    def __init__(self, asked: int, header: Header) -> None:
        super().__init__()
        self.asked = asked
        self.header = header
        self.files: list[BinaryIO] = []
        self.any = False

    def file(self) -> BinaryIO:
        """Return a new file for an answer."""
        file: BinaryIO = self.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self.files.append(file)
        return file

    def check(self, file: BinaryIO) -> None:
        """Raise NoAnswer where an answer does not begin with the header, or is cut off."""
        between = self.header.delimiter
        wanted = (between.join(self.header.titles) + between + "\n").encode()
        file.seek(0)
        begin = file.read(len(wanted))
        size = file.seek(0, os.SEEK_END)
        file.seek(max(0, size - 1))
        if begin != wanted or file.read(1) != b"\n":
            said = begin.decode(errors="replace").partition("\n")[0][:80]
            raise NoAnswer(f"sacct answered {said!r}, not what it was asked for")
        file.seek(0)
        self.any = self.any or size > len(wanted)


def _start(ask: Ask) -> int:
    """Return from when on sacct is asked. Raises UsageError."""
    if ask.since is not None:
        return ask.since
    if not ask.covered_until:
        raise UsageError("no import before this one; say from when on, e.g. --since 30d")
    return ask.covered_until - OVERLAP_S


def _gap(window: _Window, error: NoAnswer) -> BackendError:
    """Return the error that names what was not imported."""
    return BackendError(
        f"{error}; {window} was not imported; what came before is kept, and the same command goes "
        "on from there"
    )


def text_of(numbers: Iterable[int]) -> str:
    """Return numbers as ``1-3,7``."""
    spans: list[list[int]] = []
    for number in sorted(numbers):
        if spans and number == spans[-1][1] + 1:
            spans[-1][1] = number
        else:
            spans.append([number, number])
    return ",".join(f"{a}-{b}" if a < b else str(a) for a, b in spans)


def numbers_of(text: str) -> set[int]:
    """Return the numbers that ``text_of`` wrote."""
    spans = (part.partition("-") for part in text.split(",") if part)
    return {each for a, _, b in spans for each in range(int(a), int(b or a) + 1)}


# ---- saved outputs, and the command --------------------------------------------------------------


class _SavedSacct:
    """The output of sacct that was saved in a file, as a source."""

    name = "sacct"

    def __init__(self, path: Path, options: _Options, zone: ZoneInfo | None) -> None:
        self.path = path
        self.options = options
        self.zone = zone
        self.cluster = options.cluster

    def batches(self, ask: Ask, rejects: Rejects) -> Iterator[Batch]:
        """Yield the jobs of the file. It covers the span that the user names, or else that from the
        first end of a job in it on."""
        written = self.path.stat().st_mtime_ns
        reader = Reader(
            ask.machine,
            written // SECOND_NS,
            zone=self.zone,
            cluster=self.options.cluster,
            cpus_per_core=self.options.cpus_per_core,
            executable_from=self.options.executable_from,
        )
        span = _Span()

        def ended() -> tuple[tuple[int, int], str]:
            since = span.first_end if ask.since is None else ask.since
            until = span.last if ask.until is None else ask.until
            return (since, max(since, until)), text_of(reader.unfinished)

        jobs = self.options.checked(span.of(self._jobs(reader, rejects)), rejects)
        yield Batch(ask.of_span(jobs), str(self.path), written, ended=ended)

    def _jobs(self, reader: Reader, rejects: Rejects) -> Iterator[UserJob]:
        """Yield the jobs of the file. Raises UsageError."""
        with opened_text(self.path) as (lines, _):
            try:
                header = Header.of(next(lines, "").lstrip("\ufeff").rstrip("\r\n"))
            except UsageError as error:
                raise UsageError(f"{self.path}:1: {error}") from None
            if missing := header_faults(header):
                raise UsageError(f"{self.path}:1: there is no {missing}; save with --format, too")
            yield from reader.jobs(lines, header, rejects, str(self.path))


class _Span:
    """The times of jobs. sacct lists those that had not ended at the begin of the span that it was
    asked for, so from the first end on none is missing."""

    def __init__(self) -> None:
        self.first_end = self.last = 0

    def of(self, jobs: Iterable[UserJob]) -> Iterator[UserJob]:
        """Yield the jobs, and note their times."""
        for job in jobs:
            if job.ended is not None:
                self.first_end = min(self.first_end or job.ended, job.ended)
            self.last = max(self.last, job.ended or job.started or job.submitted)
            yield job


def _threads_per_core(groups: Sequence[NodeGroup]) -> int:
    """Return the hardware threads of a core, which Slurm counts as CPUs; 1 where nodes differ."""
    kinds = {group.threads_per_core for group in groups}
    return kinds.pop() if len(kinds) == 1 else 1


def import_sacct(
    folders: Folders,
    path: Path | None,
    timezone: ZoneInfo | None,
    cluster: str,
    steps: bool,
    executable_from: tuple[str, ...],
    cpus_per_core: int | None,
    **chosen: Any,
) -> int:
    """Do ``seatrial usage import sacct``; return the exit code."""
    machine = machine_of(chosen["machine"] or "")
    if machine is not None and not cluster:
        cluster = machine.slurm.cluster
    groups = [] if machine is None else machine.nodes
    options = _Options(
        cluster,
        cpus_per_core or _threads_per_core(groups),
        executable_from or EXECUTABLE_FROM,
        steps,
        max((cpus_of(group) for group in groups), default=0),
    )
    if path is not None:
        return bring_in(folders, _SavedSacct(path, options, timezone), **chosen)
    environment = dict(os.environ) if machine is None else inherited(machine)
    return bring_in(folders, _Sacct(Commands(environment, cluster), options), **chosen)
