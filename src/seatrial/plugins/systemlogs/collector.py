"""Reads system logs in the windows of runs while a trial is driven.

A run is read when its window is over, so after its verdict. Runs whose windows are over while
others are read are read together, in one pass of a source where their windows overlap.
"""

from __future__ import annotations

import asyncio
import hashlib
import re
import time
from collections import Counter, defaultdict
from collections.abc import Coroutine, Iterable, Iterator, Sequence
from functools import cached_property
from pathlib import Path

from msgspec import Struct

from seatrial.execute.beside_loop import Shell, run_in_thread
from seatrial.execute.directory import JobEvents
from seatrial.execute.run_collector import RunReader
from seatrial.execute.runs import RunUnderWay
from seatrial.execute.trial_folder import Record
from seatrial.hooks import value_of
from seatrial.journal.events import AlertRaised, Event
from seatrial.journal.trial import RunLife
from seatrial.log import logger
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.model.nodes import node_names
from seatrial.plugins.systemlogs.events import (
    MOST_SECONDS,
    MOST_SHAPES,
    LinesFound,
    LogsRead,
    ShapeSeen,
    SourceRead,
)
from seatrial.plugins.systemlogs.keys import LogSource
from seatrial.plugins.systemlogs.reading import (
    LineCounter,
    LogCounts,
    RuleSet,
    Window,
    count_output,
    read_files,
    rules_for,
)
from seatrial.plugins.systemlogs.shapes import VALUE, shapes_of
from seatrial.units import SECOND_NS, count, listed, show_seconds

_log = logger(__name__)

HOUR_S = 3600
MOST_SKEW_S = 86400  # a clock that is further off tells nothing
AT_ONCE = 8  # calls of a command, each for one node
GRACE_S = 5.0  # that a thread may take longer than its time
LONGEST_CALLS = 4  # times the time of one call that the calls for all nodes may take
MOST_FINDINGS = 5000  # of a run
MOST_FAULTS = 20  # of a source and a run
_ID_BYTES = 6


class RunRead(Struct, frozen=True):
    """A run whose logs are read: its nodes, its start and end (s since 1970)."""

    run_id: str
    nodes: tuple[str, ...]
    start: float
    end: float
    #: What is not known of its nodes and clocks.
    doubts: Sequence[str] = ()

    def window(self, source: LogSource) -> Window:
        since = int(self.start - source.before.seconds)
        until = int(self.end + source.after.seconds)
        return Window(since, until, frozenset(self.nodes))


class _Read(Struct, frozen=True):
    """What a source has for a run, and the texts of its lines by their masked text."""

    window: Window
    counts: LogCounts
    texts: dict[bytes, bytes]


class LogReader(RunReader):
    """Reads the sources of the machine for each run that has started."""

    def __init__(self, record: Record, trials: Path) -> None:
        super().__init__(record, trials)
        self._sources: list[LogSource] = value_of(record.machine, "logs", list)
        self._waiting: list[RunRead] = []
        self._answers: dict[str, dict[str, _Read]] = {}  # by run, until they are recorded
        self._turn = asyncio.Lock()
        self._told: set[str] = set()  # shapes whose texts are in the journal
        self._alerted: set[str] = set()  # sources of which people know that they fail

    @cached_property
    def _rules(self) -> RuleSet:
        return RuleSet(rules_for(self.record.machine.log_rules))

    @cached_property
    def _known(self) -> frozenset[str]:
        return frozenset(node_names(self.record.machine))

    def events_later(
        self, run: RunUnderWay, life: RunLife, own: JobEvents
    ) -> Coroutine[None, None, Sequence[Event]] | None:
        if not self._sources:
            return None
        asked = asked_of(run.launch.run_id, life, own)
        return self._read(asked) if asked is not None else None

    async def _read(self, asked: RunRead) -> Sequence[Event]:
        after = max(source.after.seconds for source in self._sources)
        await asyncio.sleep(min(max(0.0, asked.end + after - time.time()), after + 1))
        self._waiting.append(asked)
        async with self._turn:
            if asked.run_id not in self._answers:
                together, self._waiting = self._waiting, []
                self._answers |= await self._read_all(together)
        event = self._event_of(asked, self._answers.pop(asked.run_id))
        return [event, *self._alerts(event)]

    async def read_now(self, runs: Sequence[RunRead]) -> list[LogsRead]:
        """Read the logs of runs whose windows are over."""
        read = await self._read_all(runs)
        return [self._event_of(run, read[run.run_id]) for run in runs]

    # ---- reading --------------------------------------------------------------------------

    async def _read_all(self, runs: Sequence[RunRead]) -> dict[str, dict[str, _Read]]:
        """Read all sources for some runs. Return what each has, by run and source."""
        answers: dict[str, dict[str, _Read]] = {run.run_id: {} for run in runs}
        for source in self._sources:
            for part in overlapping(runs, source):
                for run, read in zip(part, await self._read_part(source, part), strict=True):
                    answers[run.run_id][source.name] = read
        return answers

    async def _read_part(self, source: LogSource, runs: Sequence[RunRead]) -> list[_Read]:
        """Read a source for runs whose windows overlap: in one pass; each alone where that would be
        too much to be read."""
        windows = [run.window(source) for run in runs]
        counter = await counted(LineCounter(source, windows, self._rules, self._known))
        if len(runs) > 1 and any(counts.cut for counts in counter.counts):
            return [(await self._read_part(source, [run]))[0] for run in runs]
        read = zip(counter.windows, counter.counts, strict=True)
        return [_Read(window, counts, counter.texts) for window, counts in read]

    # ---- what is recorded -----------------------------------------------------------------

    def _event_of(self, run: RunRead, read: dict[str, _Read]) -> LogsRead:
        sources = [_source_read(name, one, run.doubts) for name, one in read.items()]
        found = [each for name, one in read.items() for each in _found(name, one.counts.findings)]
        lines = sum(one.counts.lines for one in read.values())
        shapes, texts = self._shapes_of(run, read.values())
        shown = shapes[:MOST_SHAPES]
        new = {each.shape: texts[each.shape] for each in shown if each.shape not in self._told}
        self._told.update(new)
        if len(found) > MOST_FINDINGS:
            more = count(len(found) - MOST_FINDINGS, "more finding")
            sources[0].faults.append(f"{more} of the run are not kept")
        return LogsRead(
            run_id=run.run_id,
            lines=lines,
            text=words_of(lines, found, sources),
            sources=sources,
            findings=found[:MOST_FINDINGS],
            shapes=shown,
            texts=new,
            more_lines=lines - sum(each.lines for each in shown),
        )

    def _shapes_of(
        self, run: RunRead, read: Iterable[_Read]
    ) -> tuple[list[ShapeSeen], dict[str, str]]:
        """Return the shapes of a run's lines, the most frequent first, and their texts."""
        owner = re.compile(rf"\b{re.escape(self.record.user)}\b") if self.record.user else None
        by_shape: dict[str, Counter[str]] = defaultdict(Counter)
        texts: dict[str, str] = {}
        for one in read:
            keys = list(dict.fromkeys(key for key, _ in one.counts.keys))
            found = shapes_of([one.texts[key] for key in keys])
            shapes = dict(zip(keys, found, strict=True))
            for (key, node), lines in one.counts.keys.items():
                text = owner.sub(VALUE, shapes[key]) if owner else shapes[key]
                texts[_id_of(text)] = text
                by_shape[_id_of(text)][node] += lines
        seen = [
            ShapeSeen(shape, nodes.total(), "" if len(nodes) == len(run.nodes) else fold(nodes))
            for shape, nodes in by_shape.items()
        ]
        return sorted(seen, key=lambda each: (-each.lines, each.shape)), texts

    def _alerts(self, event: LogsRead) -> Iterator[AlertRaised]:
        """Yield an alert for each source that cannot be read, once."""
        for source in event.sources:
            if source.faults and source.name not in self._alerted:
                self._alerted.add(source.name)
                text = f"logs {source.name}: {source.faults[0]} (run {event.run_id})"
                yield AlertRaised(kind="system logs", subject=source.name, text=text)


def asked_of(run_id: str, life: RunLife, own: JobEvents) -> RunRead | None:
    """Return what is to be read for a run; None for one that never started. ``own``: the events
    that its job wrote."""
    script = [each for each in (own.start, own.end) if each is not None]
    if life.job_started is None and not script:
        return None
    times, doubts = _times_of(life, [each.time for each in script if each.time])
    nodes = unfold_or_empty(life.nodes or (own.start.nodes if own.start is not None else ""))
    if not nodes:
        doubts.append("it is not known on which nodes the run was")
    return RunRead(run_id, tuple(nodes), min(times), max(times), doubts)


def _times_of(life: RunLife, script: Sequence[int]) -> tuple[list[float], list[str]]:
    """Return the times of a run (s since 1970), by the clock of the scheduler's host and by that of
    its node, whose lines may go by either; and what is wrong with these clocks. ``script``: the
    times of its script, in ns."""
    job = [each for each in (life.job_started, life.job_ended) if each is not None]
    end = job[-1] if job else script[-1]
    near = [each for each in script if abs(each - end) <= MOST_SKEW_S * SECOND_NS]
    doubts = []
    if len(near) < len(script):
        off = show_seconds(abs(script[0] - end) / SECOND_NS)
        doubts.append(f"the clock of its node is {off} off; the scheduler's times were taken")
    return [each / SECOND_NS for each in (*job, *near)], doubts


def overlapping(runs: Sequence[RunRead], source: LogSource) -> list[list[RunRead]]:
    """Return runs in groups whose windows overlap."""
    groups: list[list[RunRead]] = []
    until = 0
    for run in sorted(runs, key=lambda each: each.window(source).since):
        window = run.window(source)
        if groups and window.since <= until:
            groups[-1].append(run)
        else:
            groups.append([run])
        until = max(until, window.until)
    return groups


async def counted(counter: LineCounter) -> LineCounter:
    """Read a source with a new counter. Return the counter; one with a fault alone where its files
    do not answer, or where reading fails: a log must not end a drive."""
    source = counter.source
    try:
        if source.command:
            await _run_command(counter)
            return counter
        async with asyncio.timeout(source.timeout.seconds + GRACE_S):
            await run_in_thread(lambda: read_files(counter), "system logs")
    except TimeoutError:  # the thread still hangs, and may go on with its counter
        counter = counter.empty()
        counter.tell(f"its files did not answer within {show_seconds(source.timeout.seconds)}")
    except Exception as error:
        _log.exception("%s cannot be read", source.name)
        counter = counter.empty()
        counter.tell(f"reading it failed: {error!r}")
    return counter


async def _run_command(counter: LineCounter) -> None:
    """Run the command of a source: once, or for each node."""
    source, nodes = counter.source, sorted(counter.nodes)
    limit = source.timeout.seconds
    variables = {
        "SINCE": str(counter.since),
        "UNTIL": str(counter.until),
        "NODES": ",".join(nodes),
    }
    if not source.by_node:
        shell = Shell(source.command, limit, source.at_most.bytes)
        count_output(counter, await shell.run(variables))
        return
    free, most = asyncio.Semaphore(AT_ONCE), max(1, source.at_most.bytes // max(1, len(nodes)))

    async def ask(node: str) -> None:
        async with free:
            shell = Shell(source.command, limit, most)
            result = await shell.run({**variables, "NODE": node})
        count_output(counter, result, node)
        left.discard(node)

    left = set(nodes)
    try:
        async with asyncio.timeout(LONGEST_CALLS * limit):
            await asyncio.gather(*(ask(node) for node in nodes))
    except TimeoutError:
        counter.tell(f"{fold(left)}: not asked within {show_seconds(LONGEST_CALLS * limit)}")


# ---- what a run had ------------------------------------------------------------------------------


def _source_read(name: str, read: _Read, doubts: Sequence[str]) -> SourceRead:
    faults = [*doubts, *read.counts.faults]
    if read.window.until > time.time():
        faults.append("it was read before its window was over")
    if len(faults) > MOST_FAULTS:
        faults = [*faults[:MOST_FAULTS], f"and {count(len(faults) - MOST_FAULTS, 'more fault')}"]
    since, until = read.window.since, read.window.until
    return SourceRead(name, since, until, read.counts.lines, read.counts.size, faults)


def _found(source: str, findings: Counter[tuple[str, str, int]]) -> Iterator[LinesFound]:
    """Yield the lines that match rules: by second, and of what is too much by hour."""
    by_hour: Counter[tuple[str, str, int]] = Counter()
    for number, ((node, rule, second), lines) in enumerate(sorted(findings.items())):
        if number < MOST_SECONDS:
            yield LinesFound(source, node, rule, second, lines)
        else:
            by_hour[node, rule, second - second % HOUR_S + HOUR_S - 1] += lines
    for (node, rule, second), lines in by_hour.items():
        yield LinesFound(source, node, rule, second, lines, of_hour=True)


def words_of(lines: int, found: Sequence[LinesFound], sources: Sequence[SourceRead]) -> str:
    """Return in a sentence what the logs of a run had."""
    by_rule: dict[str, Counter[str]] = defaultdict(Counter)
    for each in found:
        by_rule[each.rule][each.node] += each.lines
    told = [
        f"{rule} on {fold(nodes)} ({count(nodes.total(), 'line')})"
        for rule, nodes in by_rule.items()
    ]
    faults = [f"{source.name}: {fault}" for source in sources for fault in source.faults]
    parts = [
        f"{count(lines, 'line')} of system logs",
        listed(told, 5) if told else "no rule matches",
    ]
    if faults:
        parts.append(f"not all could be read: {listed(faults, 2)}")
    return "; ".join(parts)


def _id_of(shape: str) -> str:
    return hashlib.blake2b(shape.encode(), digest_size=_ID_BYTES).hexdigest()
