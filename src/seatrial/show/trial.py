"""The tables of a trial, for its status, its page and its report.

    table_text(sub_phases_table(status.sub_phases))
    reported("Sub-phases", sub_phases_table(status.sub_phases))     # show/report/content.py

A report shows times in UTC, and words without colours.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from urllib.parse import quote, urlencode

from seatrial.execute.plan.component import ItemResult, ItemStatus
from seatrial.results.criteria.view import Result
from seatrial.results.node_hours import NodeShares, TestShare
from seatrial.results.records import EvidenceStatus, Issue, RecordedEntry, RunReview
from seatrial.results.status import SubPhase, TestStatus
from seatrial.results.trial_history import OperatorAction
from seatrial.show.formatting import runs_of, trial_address
from seatrial.show.page import Cell, Column, Link, Shares, State, Table, Tone
from seatrial.units import in_per_cent

_TONES: dict[str, Tone] = {
    "met": "better",
    "pass": "better",
    "not met": "worse",
    "fail": "worse",
    "changed": "worse",
    "not here": "worse",
    "undecided": "suspect",
}


def state_of(word: str, words: str = "") -> State:
    """Return the state of a criterion, an item or a document, shown as ``words``."""
    return State(words or word, _TONES.get(word, ""))


def _names(names: Sequence[str]) -> str:
    return ", ".join(names)


# ---- its tests -----------------------------------------------------------------------------------


def tests_table(
    tests: Sequence[TestStatus],
    tag: str,
    mix: NodeShares | None = None,
    over: bool = False,
    plotted: bool = False,
) -> Table:
    """Return the tests of a trial: runs on nodes and expected, runs that wait (unless the trial is
    ``over``), the planned and the achieved share of the node-hours, runs that passed and others.
    ``plotted``: with links to the plot of a test alone."""
    planned = {each.test: each for each in mix.tests if each.planned is not None} if mix else {}
    alone = partial(_plot, tag)
    columns = [
        Column("test", value=lambda each: Link(each.test, runs_of(tag, each.test))),
        *([Column("", value=alone, only="browser")] if plotted else []),
        Column("", "state", lambda each: _STOPPED if each.stopped else "", only="browser"),
        *(() if over else _IN_FLIGHT),
        Column("planned", "share", lambda each: _planned(planned.get(each.test))),
        Column("achieved", "share", lambda each: _achieved(planned.get(each.test))),
        Column("passed", "count", lambda each: each.accepted),
        Column("others", value=_others, fold=True, only="terminal"),
        Column("others", value=partial(_links, tag), only="browser"),
    ]
    return Table.of(columns, tests)


_STOPPED = State("stopped", "worse")
_IN_FLIGHT = (
    Column("running", "count", lambda each: each.running),
    Column("expected", "count", lambda each: each.expected or None),
    Column("queued", "count", lambda each: each.in_flight - each.running),
    Column("", value=lambda each: _in_flight(each), only="browser"),
)


def _in_flight(test: TestStatus) -> Shares | None:
    queued = test.in_flight - test.running
    missing = max(0, test.expected - test.in_flight)
    bar = [(test.running, "running", "running"), (queued, "waiting", "queued")]
    parts = [*bar, (missing, "again", "missing")]
    return Shares(parts) if test.in_flight or test.expected else None


def _plot(tag: str, test: TestStatus) -> Link:
    return Link("plot", f"{trial_address(tag)}?{urlencode({'test': test.test})}#elapsed")


def _planned(share: TestShare | None) -> str:
    if share is None:
        return ""
    return "fill" if share.only_fills else in_per_cent(share.planned)


def _achieved(share: TestShare | None) -> str:
    return in_per_cent(share.achieved) if share else ""


def _others(test: TestStatus) -> str:
    words = [f"{n} {name}" for name, n in sorted(test.verdicts.items()) if name != "pass"]
    return ", ".join([*words, *(["stopped"] if test.stopped else [])])


def _links(tag: str, test: TestStatus) -> list[Cell]:
    """Return how many runs did not pass, with links to them; what ran again has none."""
    names = sorted(name for name in test.verdicts if name != "pass")
    cells = list[Cell]()
    for name in names:
        words = f"{test.verdicts[name]} {name}{',' if name != names[-1] else ''}"
        leads = name != "again"
        cells.append(Link(words, runs_of(tag, test.test, verdict=name)) if leads else words)
    return cells


def unused_words(mix: NodeShares | None) -> str:
    """Return which share of the node-hours no test was to have and none had; "" where none was
    planned."""
    if mix is None or mix.unclaimed is None:
        return ""
    unclaimed = f"; the plan gives {in_per_cent(mix.unclaimed)} to no test"
    unused = f"{in_per_cent(mix.unused)} of the node-hours were unused"
    return f"{unused}{unclaimed if mix.unclaimed else ''}"


# ---- its course ----------------------------------------------------------------------------------


def sub_phases_table(parts: Sequence[SubPhase]) -> Table:
    """Return the stretches between pauses and interruptions."""
    columns = [
        Column("sub-phase", "count", lambda each: each.number),
        Column("from", "clock", lambda each: each.start),
        Column("to", "clock", lambda each: each.end),
        Column("clock", "seconds", lambda each: each.clock),
        Column("passed", "count", lambda each: each.accepted),
        Column("ended by", value=lambda each: each.ended_by, fold=True),
    ]
    return Table.of(columns, parts)


def actions_table(actions: Sequence[OperatorAction]) -> Table:
    """Return what people did, in its order."""
    columns = [
        Column("when", "time", lambda each: each.time),
        Column("who", value=lambda each: each.by),
        Column("what", value=lambda each: each.text, fold=True),
        Column("changed", value=lambda each: "; ".join(each.changes), fold=True),
        Column("why", value=lambda each: each.reason, fold=True),
    ]
    return Table.of(columns, actions)


# ---- criteria ------------------------------------------------------------------------------------


def criteria_table(criteria: Sequence[Sequence[Result]]) -> Table:
    """Return a row for each criterion; if it has several subjects, also one for each that is not
    met, undecided or waived."""
    rows = list[list[Cell]]()
    for first, *others in criteria:
        named = " ".join(filter(None, (first.clause or first.id, first.label)))
        rows.append(_result(named, first))
        rows += [_result(f"- {one.subject}", one) for one in others if one.state != "met"]
    return _criteria("criterion", rows)


def subjects_table(results: Sequence[Result]) -> Table:
    """Return the results of a criterion on each of its subjects."""
    return _criteria("subject", [_result(one.subject, one) for one in results[1:]])


def _criteria(title: str, rows: Sequence[Sequence[Cell]]) -> Table:
    columns = [
        Column(title, fold=True),
        Column("state", "state"),
        Column("value", "number"),
        Column("bound", fold=True),
        Column("n", "count"),
        Column("why", fold=True),
    ]
    return Table(columns, rows)


def _result(name: str, one: Result) -> list[Cell]:
    return [name, state_of(one.state, one.words), one.shown, one.bound, one.n, one.full_reason]


# ---- what people recorded ------------------------------------------------------------------------


def items_table(items: Sequence[ItemStatus], full: bool = False) -> Table:
    """Return the items of a checklist, with their results; each replaced or uncounted result has a
    row of its own. ``full``: with the accounts that recorded them, and checksums of documents."""
    columns = [
        Column("item"),
        Column("clause", fold=True, spare=-1),
        Column("what", fold=True),
        Column("asked", fold=True),
        Column("result", "state"),
        Column("counts", fold=True),
        Column("value", "number"),
        Column("by", fold=True),
        *([Column("recorded by")] if full else []),
        Column("when", "time", spare=-2),
        Column("remark", fold=True),
        Column("document", fold=True),
        *([Column("SHA-256")] if full else []),
    ]
    return Table(columns, [row for item in items for row in _item(item, full)])


def _item(item: ItemStatus, full: bool) -> Iterator[list[Cell]]:
    named: list[Cell] = [item.id, item.clause, item.text]
    yield [*named, item.bound, state_of(item.state), *_tick(item.tick, "", full)]
    for word, results in (("replaced", item.earlier), ("does not count", item.uncounted)):
        for one in results:
            yield [*named, "", state_of(one.result), *_tick(one, word, full)]


def _tick(tick: ItemResult | None, counts: str, full: bool) -> list[Cell]:
    if tick is None:
        return [""] * (8 if full else 6)
    because = f"because: {tick.reason}" if tick.reason else ""
    now = f" ({tick.now})" if tick.now not in ("", "as it was") else ""
    remark = "; ".join(filter(None, (tick.comment, because)))
    user, checksum = ([tick.user], [tick.sha256]) if full else ([], [])
    who: list[Cell] = [_names(tick.by), *user, tick.time]
    return [counts, tick.shown, *who, remark, tick.document + now, *checksum]


def reviews_table(reviews: Sequence[RunReview], tag: str) -> Table:
    """Return the runs of a trial of which people said something."""
    columns = [
        Column("run", value=lambda each: _run(f"{tag}/{each.run}", each.run)),
        Column("case", value=lambda each: each.case, fold=True),
        Column("verdict", value=lambda each: each.verdict, fold=True),
        Column("cause", value=lambda each: each.cause, fold=True),
        Column("excluded", value=lambda each: "yes" if each.is_excluded else ""),
        Column("by", value=lambda each: _names(each.by), fold=True),
        Column("comment", value=lambda each: each.comment, fold=True),
    ]
    return Table.of(columns, reviews)


def _run(name: str, words: str = "") -> Link:
    return Link(words or name, f"/runs/{quote(name)}")


def issues_table(issues: Sequence[Issue]) -> Table:
    """Return the issues, a row for each."""
    columns = [
        Column("issue", "count", lambda each: each.issue),
        Column("state", value=lambda each: each.state),
        Column("severity", value=lambda each: each.severity),
        Column("what", value=lambda each: each.text, fold=True),
        Column("component", value=lambda each: each.component),
        Column("owner", value=lambda each: each.owner, fold=True),
        Column("nodes", value=lambda each: each.nodes, fold=True),
        Column("runs", value=lambda each: list(map(_run, each.runs)), fold=True, spare=1),
        Column("opened by", value=lambda each: _names(each.opened_by), fold=True, spare=3),
        Column("opened", "time", lambda each: each.opened, spare=2),
        Column("remarks", value=lambda each: "; ".join(each.comments), fold=True),
    ]
    return Table.of(columns, issues)


def entries_table(entries: Sequence[RecordedEntry]) -> Table:
    """Return milestones, replaced parts and incidents."""
    columns = [
        Column("when", "time", lambda each: each.at),
        Column("kind", value=lambda each: each.kind),
        Column("what", value=lambda each: each.text, fold=True),
        Column("nodes", value=lambda each: each.nodes, fold=True),
        Column("by", value=lambda each: _names(each.by), fold=True),
        Column("recorded by", value=lambda each: each.user, spare=1),
    ]
    return Table.of(columns, entries)


def evidence_table(evidence: Sequence[EvidenceStatus]) -> Table:
    """Return the documents of a component, with who signed them."""
    columns = [
        Column("document", value=lambda each: each.document, fold=True),
        Column("state", "state", lambda each: state_of(each.state)),
        Column("signed by", value=lambda each: each.signed_by, fold=True),
        Column("on", value=lambda each: each.signed_on),
        Column("clause", value=lambda each: each.clause, fold=True),
        Column("about", value=lambda each: each.about, fold=True),
    ]
    return Table.of(columns, evidence)
