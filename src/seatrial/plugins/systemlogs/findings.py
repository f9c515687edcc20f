"""What system logs had while runs were under way, as the store knows it, and what that says of
figures: of the sides of a comparison, of slow runs, of nodes.

One kernel event is one finding, however many runs have it in their windows, and however many
sources log it: lines of a node that match a rule in one second are counted once.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from seatrial.model import codes
from seatrial.model.node_set import fold, unfold_or_empty
from seatrial.plugins.facts.changed import slow_facts
from seatrial.plugins.facts.node_facts import of_nodes
from seatrial.plugins.systemlogs.shapes import grouped
from seatrial.results.history import History
from seatrial.results.selection import Difference, Side
from seatrial.results.store.schema import Store, marks
from seatrial.results.store.tables import RunOutcome, chunks
from seatrial.results.variability import SlowFacts
from seatrial.show.page import Link
from seatrial.units import SECOND_NS, count, listed

HOUR_S = 3600
MAX_RULES = 3  # of a node, in a sentence


class ReadRun(Struct, frozen=True):
    """A run whose logs were read."""

    row: int
    run_id: str
    trial: str
    machine: str
    test: str
    code: int
    nodes: str
    #: Its window, over all sources, in s.
    since: int
    until: int
    faults: list[str]

    @property
    def passed(self) -> bool:
        return self.code == codes.PASS.number

    @property
    def went_wrong(self) -> bool:
        """Whether it has a verdict that is no pass, and was not ended because a person willed."""
        return not self.passed and self.code not in codes.WITHDRAWN

    @property
    def link(self) -> Link:
        return Link(self.run_id, f"/runs/{self.trial}/{self.run_id}")


class Finding(Struct, frozen=True):
    """Lines of a node that match a rule in one hour, which begins at ``hour`` (s since 1970)."""

    machine: str
    node: str
    rule: str
    hour: int
    lines: int
    runs: list[str]
    #: How many of these runs did not pass.
    wrong: int


class UnusualShape(Struct, frozen=True):
    """Lines of a shape that some runs have which did not pass, and no run that passed."""

    shape: str
    lines: int
    runs: list[str]
    nodes: str
    #: The chance of this if the runs with the shape were any runs, times the shapes that were
    #: compared.
    p: float


class Logs(Struct, frozen=True):
    """What logs had. ``passed`` and ``wrong`` are numbers of runs; ``shortened`` of the runs that
    passed had more shapes than are kept."""

    runs: dict[int, ReadRun]
    findings: list[Finding]
    unusual: list[UnusualShape]
    passed: int
    wrong: int
    shortened: int


_RUNS = """SELECT reads.run, runs.run_id, trials.tag, trials.machine, tests.name, runs.code,
 runs.nodes, reads.since, reads.until, reads.source, reads.faults
 FROM systemlogs_reads AS reads CROSS JOIN runs CROSS JOIN trials CROSS JOIN tests
 WHERE runs.id = reads.run AND trials.id = runs.trial AND tests.id = runs.test"""


def runs_read(store: Store, machine: str = "", since: int = 0, trial: str = "") -> list[ReadRun]:
    """Return the runs whose logs were read, of windows that end at ``since`` (in s) or later."""
    conditions, values = ["reads.until >= ?"], list[object]([since])
    for column, value in (("trials.machine", machine), ("trials.tag", trial)):
        if value:
            conditions.append(f"{column} = ?")
            values.append(value)
    return _runs_where(store, " AND ".join(conditions), values)


def runs_of_rows(store: Store, rows: Collection[int]) -> list[ReadRun]:
    """Return those of some runs, by their rows, whose logs were read."""
    return [
        run
        for some in chunks(sorted(rows))
        for run in _runs_where(store, f"reads.run IN ({marks(len(some))})", some)
    ]


def _runs_where(store: Store, condition: str, values: Sequence[object]) -> list[ReadRun]:
    found: dict[int, ReadRun] = {}
    sql = f"{_RUNS} AND {condition} ORDER BY reads.run, reads.source"
    for row, run_id, tag, name, test, code, nodes, begin, end, source, faults in store.rows(
        sql, values
    ):
        told = [f"{source}: {fault}" for fault in faults.splitlines()]
        known = found.get(row)
        if known is not None:
            begin, end = min(begin, known.since), max(end, known.until)
            told = [*known.faults, *told]
        found[row] = ReadRun(row, run_id, tag, name, test, code, nodes, begin, end, told)
    return list(found.values())


_FIRST_READ = """SELECT trials.machine, min(reads.since)
 FROM systemlogs_reads AS reads CROSS JOIN trials WHERE trials.id = reads.trial
 GROUP BY trials.machine"""
_UNREAD = """SELECT runs.run_id, trials.tag FROM trials CROSS JOIN runs
 WHERE runs.trial = trials.id AND NOT trials.rehearsed
 AND runs.judged IS NOT NULL AND runs.judged >= ?
 AND (runs.job_started IS NOT NULL OR runs.script_started IS NOT NULL)
 AND runs.id NOT IN (SELECT run FROM systemlogs_reads)"""


def unread_of_trial(store: Store, trial: str) -> list[str]:
    """Return the ids of the runs of a trial that started and whose logs were not read."""
    return [run for run, _ in store.rows(f"{_UNREAD} AND trials.tag = ?", [0, trial])]


def unread_runs(store: Store, machine: str = "", trial: str = "", since: int = 0) -> Counter[str]:
    """Return how many runs of each trial started whose logs were not read, though those of earlier
    runs of the machine were; judged at ``since`` (in s) or later."""
    unread: Counter[str] = Counter()
    for name, first in store.rows(_FIRST_READ):
        if machine in ("", name):
            values = [max(first, since) * SECOND_NS, name]
            for _, tag in store.rows(f"{_UNREAD} AND trials.machine = ?", values):
                unread[tag] += trial in ("", tag)
    return +unread


def logs_of(store: Store, runs: Sequence[ReadRun], node: str = "", rule: str = "") -> Logs:
    """Return what the logs of runs had: each line once, however many runs saw it."""
    by_row = {run.row: run for run in runs}
    wrong = sum(run.went_wrong for run in runs)
    passed = sum(run.passed for run in runs)
    unusual, shortened = _unusual(store, by_row, passed, wrong)
    findings = [each for each in findings_of(store, runs) if rule in ("", each.rule)]
    if node:
        chosen = set(unfold_or_empty(node)) or {node}
        findings = [each for each in findings if each.node in chosen]
        unusual = [each for each in unusual if not chosen.isdisjoint(unfold_or_empty(each.nodes))]
    return Logs(by_row, findings, unusual, passed, wrong, shortened)


def rows_of(store: Store, columns: str, table: str, runs: Iterable[int]) -> Iterator[Any]:
    for some in chunks(list(runs)):
        yield from store.rows(
            f"SELECT {columns} FROM {table} WHERE run IN ({marks(len(some))})", some
        )


def findings_of(store: Store, read: Sequence[ReadRun]) -> list[Finding]:
    """Return the findings of runs by node, rule and hour, the latest first."""
    runs = {run.row: run for run in read}
    lines: dict[tuple[str, str, str, int], int] = {}
    seen: dict[tuple[str, str, str, int], set[int]] = defaultdict(set)
    columns = "run, node, rule, second, lines"
    for run, node, rule, second, number in rows_of(store, columns, "systemlogs_findings", runs):
        about = runs[run].machine, node, rule
        lines[*about, second] = max(number, lines.get((*about, second), 0))
        seen[*about, second - second % HOUR_S].add(run)
    by_hour: Counter[tuple[str, str, str, int]] = Counter()
    for (machine, node, rule, second), number in lines.items():
        by_hour[machine, node, rule, second - second % HOUR_S] += number
    found = [
        Finding(
            *key,
            number,
            [runs[run].run_id for run in sorted(seen[key])],
            sum(runs[run].went_wrong for run in seen[key]),
        )
        for key, number in by_hour.items()
    ]
    return sorted(found, key=lambda each: (-each.hour, each.machine, each.node, each.rule))


def _unusual(
    store: Store, runs: Mapping[int, ReadRun], passed: int, wrong: int
) -> tuple[list[UnusualShape], int]:
    """Return the shapes that no run has which passed, the surest first; and of how many runs that
    passed not all shapes are kept."""
    seen, shortened = _shapes_seen(store, runs)
    found = []
    for shape, on_nodes in seen.items():
        having = {run.row: run for of_nodes in on_nodes.values() for run, _ in of_nodes}
        if any(run.passed for run in having.values()):
            continue
        bad = [having[row] for row in sorted(having) if having[row].went_wrong]
        if bad:
            chance = min(1.0, len(seen) * _chance(len(bad), passed, wrong))
            found.append(_unusual_shape(shape, on_nodes, bad, chance))
    of_passed = sum(runs[row].passed for row in shortened)
    return sorted(found, key=lambda each: (each.p, -len(each.runs), each.shape)), of_passed


def _unusual_shape(
    shape: str, on_nodes: _OnNodes, bad: Sequence[ReadRun], chance: float
) -> UnusualShape:
    nodes = {node for folded in on_nodes for node in unfold_or_empty(folded)}
    lines = sum(map(_lines_at_least, on_nodes.values()))
    return UnusualShape(shape, lines, [run.run_id for run in bad], fold(nodes), chance)


_OnNodes = Mapping[str, Sequence[tuple[ReadRun, int]]]
"""The runs that have a shape, each with its number of lines, by their nodes, folded."""


def _shapes_seen(store: Store, runs: Mapping[int, ReadRun]) -> tuple[dict[str, _OnNodes], set[int]]:
    """Return where each shape was seen; and the rows of the runs of which not all shapes are
    kept."""
    texts = dict(store.rows("SELECT shape, text FROM systemlogs_texts ORDER BY shape"))
    groups = grouped(texts.values())
    seen: dict[str, dict[str, list[tuple[ReadRun, int]]]] = defaultdict(lambda: defaultdict(list))
    shortened = set()
    columns = "run, shape, lines, nodes"
    for run, shape, number, folded in rows_of(store, columns, "systemlogs_shapes", runs):
        if shape in texts:
            seen[groups[texts[shape]]][folded or runs[run].nodes].append((runs[run], number))
        else:
            shortened.add(run)
    return dict(seen), shortened


def _lines_at_least(seen: Iterable[tuple[ReadRun, int]]) -> int:
    """Return how many lines runs on the same nodes saw together. Runs whose windows overlap may
    have seen the same ones, so of these the run with most counts."""
    total = most = until = 0
    for run, lines in sorted(seen, key=lambda each: each[0].since):
        if run.since > until:
            total, most = total + most, 0
        most, until = max(most, lines), max(until, run.until)
    return total + most


def _chance(having: int, passed: int, wrong: int) -> float:
    """Return the chance that so many runs, drawn from all, are among those that went wrong."""
    chance = 1.0
    for i in range(having):
        chance *= (wrong - i) / (passed + wrong - i)
    return chance


# ---- beside figures ----------------------------------------------------------------------------


def differences(store: Store, first: Side, second: Side) -> list[Difference]:
    """Return the rules that match lines of the runs of one side alone; none where no logs of a side
    were read."""
    sides = [_of_side(store, side) for side in (first, second)]
    if None in sides:
        return []
    before, after = (side or {} for side in sides)
    return [
        Difference("system logs", rule, before.get(rule, "no line"), after.get(rule, "no line"))
        for rule in sorted(before.keys() ^ after.keys())
    ]


def _of_side(store: Store, side: Side) -> dict[str, str] | None:
    """Return what each rule found in the logs of the runs of a side, in words; None if no logs were
    read."""
    rows = {row for case in side.cases for row in case.runs}
    read = runs_of_rows(store, rows)
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    for each in findings_of(store, read):
        lines[each.rule][each.node] += each.lines
    told = {
        rule: f"{count(nodes.total(), 'line')} on {fold(nodes)}" for rule, nodes in lines.items()
    }
    return told if read else None


def unchanged(store: Store, histories: list[History]) -> list[History]:
    return histories


def slow(store: Store, machine: str, runs: Sequence[RunOutcome]) -> SlowFacts | None:
    """Return the rules that go with slow runs of a machine: each is a fact of the nodes of these
    runs, whose logs have lines that match it or have none. None if no logs were read."""
    read = runs_of_rows(store, {run.row for run in runs})
    if not read:
        return None
    nodes = {node for run in read for node in unfold_or_empty(run.nodes)}
    findings = findings_of(store, read)
    matched = {(each.node, each.rule) for each in findings}
    rules = sorted({each.rule for each in findings})
    facts = {
        node: {f"log.{rule}": "found" if (node, rule) in matched else "none" for rule in rules}
        for node in sorted(nodes)
    }
    return slow_facts(runs, of_nodes(facts))


def told_of_nodes(store: Store, machine: str, runs: Sequence[RunOutcome]) -> dict[str, str]:
    """Return for each node on which rules found something, in the windows of runs of a machine,
    what it was."""
    found = findings_of(store, runs_of_rows(store, {run.row for run in runs}))
    return {node: f"system logs: {words}" for node, words in words_by_node(found).items()}


def words_by_node(findings: Iterable[Finding]) -> dict[str, str]:
    """Return in words what rules found on each node, the node with most lines first."""
    lines: dict[str, Counter[str]] = defaultdict(Counter)
    having: dict[str, set[str]] = defaultdict(set)
    for each in findings:
        lines[each.node][each.rule] += each.lines
        having[each.node].update(each.runs)
    told = {}
    for node, rules in sorted(lines.items(), key=lambda item: (-item[1].total(), item[0])):
        words = [f"{rule} ({count(number, 'line')})" for rule, number in rules.most_common()]
        ran = f"while {count(len(having[node]), 'run')} ran there"
        told[node] = f"{listed(words, MAX_RULES)} {ran}"
    return told
