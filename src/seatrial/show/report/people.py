"""Tables of what people did in an acceptance: items, issues, milestones, parts, incidents.

items(status.items).rows[0]
tables_of(records)
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from seatrial.escaping import plain_line
from seatrial.execute.plan.component import ItemStatus, fits
from seatrial.execute.trial_folder import Record, checksum_of, references_of
from seatrial.journal import events
from seatrial.judge.file_use import FACTOR, OPEN_FILES, compare
from seatrial.model.codes import code_of
from seatrial.model.node_set import fold
from seatrial.model.plan import Component
from seatrial.results.criteria.view import Result, covered, label
from seatrial.results.records import Issue, PlanRecords, RunReview, words_of
from seatrial.results.status import Status, criteria_of
from seatrial.results.trial_history import RunHistory, TrialHistory, outages_of
from seatrial.results.utilisation import LevelSpan, target_loads
from seatrial.results.variability import Variability
from seatrial.show.page import Cell, Table
from seatrial.show.report.content import (
    Other,
    ReportComponent,
    bounded,
    columns_of,
    filled,
    moment,
    reported,
)
from seatrial.show.report.figures import MAX_ROWS
from seatrial.show.trial import actions_table, entries_table, issues_table, items_table
from seatrial.units import SECOND_NS, count, listed


def items(statuses: Sequence[ItemStatus]) -> Table:
    """Return the items of a checklist, with their results."""
    about = "The first result stands; another one replaces it only with a reason."
    return reported("Items", items_table(statuses, full=True), about)


def issues(issues: Sequence[Issue], title: str = "Issues") -> Table:
    return reported(title, issues_table(issues))


def tables_of(records: PlanRecords) -> list[Table]:
    """Return the tables of a plan's records that have rows."""
    closed = [each for each in records.issues.values() if not each.is_open]
    return filled(
        issues(closed, "Issues that were closed"),
        reported("Milestones, replaced parts, incidents", entries_table(records.entries)),
    )


# ---- what people said of runs --------------------------------------------------------------------

MAX_NAMED = 5


def excluded_by_agreement(reviews: Sequence[RunReview]) -> Table:
    """Return the runs that both sides excluded, with who and why."""
    rows: list[list[Cell]] = []
    for each in (review for review in reviews if review.is_excluded):
        about_run = (each.case, each.verdict, each.cause, each.comment, ", ".join(each.by))
        rows.append([each.run, *about_run, each.user, each.time])
    columns = columns_of(
        "run", "case", "verdict", "cause", "comment", "agreed by", "recorded by", ("when", "time")
    )
    about = (
        "Criteria on verdicts and figures leave these runs out, and say what they would be with "
        "them. What was measured did not change; their nodes were used all the same."
    )
    return bounded("Runs excluded by agreement", columns, rows, about)


def causes(reviews: Sequence[RunReview]) -> Table:
    """Return the causes that people gave, with the numbers of runs and the comments."""
    by_cause: dict[str, list[RunReview]] = {}
    for each in reviews:
        by_cause.setdefault(each.cause, []).append(each)
    rows = [
        _cause(cause or "none given", some)
        for cause, some in sorted(by_cause.items(), key=lambda item: -len(item[1]))
    ]
    columns = columns_of(
        "cause", ("runs", "count"), ("excluded", "count"), "tests", "run", "comments", "by"
    )
    return bounded("Causes that people gave", columns, rows, "Verdicts and figures stay.")


def _cause(cause: str, reviews: Sequence[RunReview]) -> list[Cell]:
    excluded = sum(each.is_excluded for each in reviews)
    texts = (
        dict.fromkeys(each.test for each in reviews),
        [each.run for each in reviews],
        [each.comment for each in reviews if each.comment],
        dict.fromkeys(name for each in reviews for name in each.by),
    )
    return [cause, len(reviews), excluded, *(listed(list(each), MAX_NAMED) for each in texts)]


# ---- what people did while it ran ----------------------------------------------------------------


def operator_actions(history: TrialHistory) -> Table:
    """Return the actions of people, oldest first."""
    about = (
        "Criteria are judged over the spans: by each policy for as long as it held. A hold changes "
        "no planned share."
    )
    return reported("What people did while it ran", actions_table(history.actions), about)


# ---- what people judged again --------------------------------------------------------------------


def judged_again(history: TrialHistory) -> Table:
    """Return how many runs of each test got another verdict in place of their first, the latest
    time by whom and why."""
    alike: dict[tuple[str, int, int, str], list[RunHistory]] = {}
    for run in history.runs:
        if run.judged_again is not None and run.first_code is not None:
            event = run.judged_again
            key = (history.test_of(run), run.first_code, run.code, event.by_and_why)
            alike.setdefault(key, []).append(run)
    rows = [_judged_again_row(*key[:3], runs) for key, runs in alike.items()]
    columns = columns_of(
        "test", "first verdict", "verdict", ("runs", "count"), ("when", "time"), "by", "why"
    )
    about = "A person judged these runs again; what was measured did not change."
    return bounded("Runs that were judged again", columns, rows, about)


def corrected_references(history: TrialHistory, record: Record) -> Iterator[str]:
    """Yield a sentence where people judged a trial again by other references than its own. Version
    0.1 recorded their checksums alone, so criteria did not follow."""
    original = checksum_of(references_of(record))
    if history.references is not None:
        if checksum_of(history.references) != original:
            correction = next(
                each
                for each in reversed(history.actions)
                if each.action == events.ReferencesCorrected.action
            )
            yield (
                f"{plain_line(correction.by)} corrected the references of this trial on "
                f"{moment(correction.time)} UTC ({plain_line(correction.reason)}): its criteria, "
                "and the table of figures against their references, use the corrected ones."
            )
    elif others := _by_other_references(history, original):
        yield (
            f"{count(others, 'run')} {'was' if others == 1 else 'were'} judged again by other "
            "references than those that this trial was made with; its criteria, and the table of "
            "figures against their references, use the latter."
        )


def _by_other_references(history: TrialHistory, original: str) -> int:
    events = [run.judged_again for run in history.runs if run.judged_again is not None]
    return sum(event.references not in ("", original) for event in events)


def _judged_again_row(test: str, first: int, last: int, runs: list[RunHistory]) -> list[Cell]:
    events = [run.judged_again for run in runs if run.judged_again is not None]
    latest = max(events, key=lambda event: event.time)
    verdicts = (code_of(first).name, code_of(last).name)
    return [test, *verdicts, len(runs), latest.time, latest.by, latest.why]


# ---- traceability --------------------------------------------------------------------------------
#
# The table from the clauses of a contract to requirements, tests and results.


MAX_TESTS = 6  # that a row names
_NUMBER = re.compile(r"([0-9]+)")
COLUMNS = columns_of(
    "clause",
    "id",
    "requirement",
    "component",
    "by",
    "tests",
    "asked",
    "found",
    ("n", "count"),
    ("state", "state"),
)


def traceability(
    judged: Sequence[tuple[Component, ReportComponent]], others: Sequence[Other]
) -> list[Table]:
    """Return the table of all that was asked, in the order of the clauses, those without one last;
    none if no criterion, waiver or evidence has an id or a clause. ``judged``: the components as
    their trials were made with them, and what the report has of each."""
    rows = [row for written, part in judged for row in _of_trial(written, part)]
    rows += [row for other in others for row in _of_other(other)]
    if not any(row[0] or row[1] for row in rows):
        return []
    rows.sort(key=lambda row: (not row[0], _natural(str(row[0]))))
    about = "What the contract asks for, by which tests and documents it was shown, and the result."
    return [bounded("From clause to result", COLUMNS, rows, about)]


def _natural(text: str) -> list[tuple[int, str]]:
    """Return a key by which clause 4.10 follows 4.9."""
    parts = _NUMBER.split(text)
    return [(int(part), "") if part.isdigit() else (0, part) for part in parts if part]


def _of_trial(written: Component, part: ReportComponent) -> Iterator[list[Cell]]:
    tests = [each.test for each in part.status.parts]
    for criterion, results in zip(criteria_of(written), part.status.criteria, strict=False):
        result: Result = results[0]
        fitting = listed([name for name in tests if fits(criterion.tests, name)], MAX_TESTS)
        named = [result.clause, result.id, result.about, part.title, result.label, fitting]
        yield [*named, result.bound, result.shown, result.n, result.words]
    yield from _of_items(part.title, part.status.items)
    yield from _of_papers(part)


def _of_items(title: str, items: Iterable[ItemStatus]) -> Iterator[list[Cell]]:
    for item in items:
        result = item.tick
        value = result.shown if result else ""
        by = f"by {', '.join(result.by)}" if result else ""
        about = f"{item.text}: {item.about}" if item.about else item.text
        shown = ", ".join(filter(None, (value, by)))
        yield [item.clause, item.id, about, title, "item", "", item.bound, shown, None, item.state]


def _of_other(other: Other) -> Iterator[list[Cell]]:
    for criterion in other.criteria:
        about = listed(criterion.tests, MAX_TESTS)
        named = [criterion.clause, criterion.id, criterion.about, other.title, label(criterion)]
        yield [*named, about, "", "", None, other.state]
    yield from _of_papers(other)


def _of_papers(part: ReportComponent | Other) -> Iterator[list[Cell]]:
    title = part.title
    for paper in part.evidence:
        signed = f"signed by {paper.signed_by} on {paper.signed_on}" if paper.signed_by else ""
        shown = [paper.clause, paper.id, paper.about, title, f"evidence {paper.document}"]
        yield [*shown, "", "a document", signed, None, words_of(paper)]
    for each in part.waivers:
        agreed = f"by {each.by} on {each.on}"
        about = each.about or each.reason
        named = [each.clause, each.id, about, title, f"waiver of {covered(each)}"]
        state = "waiver not needed" if each in part.unneeded else "waiver"
        yield [*named, listed(each.tests, MAX_TESTS), "", agreed, None, state]


# ---- excluded ------------------------------------------------------------------------------------
#
# List what is in no figure, or was taken out of a trial, and why.


def excluded(
    record: Record, history: TrialHistory, status: Status, varied: Variability, damaged: int
) -> list[Table]:
    """Return the tables of what is not in the figures or was taken out of the trial, and why."""
    rows: list[list[Cell]] = [*_runs_left_out(status, varied)]
    for nodes, reason in status.excluded:
        rows.append(["nodes", nodes, None, f"excluded from the trial: {reason}"])
    rows += [
        ["test", part.test, None, f"launched no more: {part.stopped}"]
        for part in status.parts
        if part.stopped
    ]
    if damaged:
        rows.append(["journal", record.tag, damaged, "lines that could not be read"])
    columns = columns_of("what", "which", ("number", "count"), "why")
    return [bounded("Excluded", columns, rows, max_rows=MAX_ROWS), *_outages(history)]


_NOT_IN_RATES = {
    "cancelled": "a person or the scheduler cancelled them",
    "recalled": "Seatrial recalled them before they started",
    "retried": "another run of the same case took their place",
}


def _runs_left_out(status: Status, varied: Variability) -> Iterator[list[Cell]]:
    for results in status.criteria:
        if results[0].criterion == "pass_rate":
            yield from _not_in_rate(results[0])
    by_test: dict[str, Counter[str]] = {}
    for row in varied.rows:
        tally = by_test.setdefault(row.kind, Counter())
        for rule, number in row.excluded.items():
            tally[rule] = max(tally[rule], number)
    for kind, tally in by_test.items():
        if tally:
            rules = ", ".join(f"{number} {rule}" for rule, number in tally.most_common())
            reason = f"{rules}: figures are of runs with a right answer"
            yield ["runs", kind, tally.total(), reason]
    for one in varied.kinds:
        if one.willed:
            reason = "ended by a person or the scheduler: neither usual nor outliers"
            yield ["runs", one.name, one.willed, reason]


def _not_in_rate(result: Result) -> Iterator[list[Cell]]:
    for word, reason in _NOT_IN_RATES.items():
        if number := result.numbers.get(word, 0):
            yield ["runs", f"of {result.label}", number, f"{word}: {reason}"]


def _outages(history: TrialHistory) -> Iterator[Table]:
    outages = history.policy.outages
    if not outages:
        return
    whys = ", ".join(dict.fromkeys(each.reason for each in outages if each.reason))
    columns = columns_of(
        ("from (UTC)", "time"), ("to (UTC)", "time"), "nodes", ("length", "seconds")
    )
    rows: list[list[Cell]] = []
    for each in outages_of(history):
        length = (each.end - each.start) / SECOND_NS
        rows.append([each.start, each.end, fold(sorted(each.names)) or "all", length])
    about = f"No criterion counts them. Why: {whys}." if whys else "No criterion counts them."
    yield bounded("Planned outages", columns, rows, about, MAX_ROWS)


def conditions(record: Record, history: TrialHistory, now: int) -> list[Table]:
    """Return the tables of a trial's conditions; ``now`` in ns."""
    if history.start is None:
        return []
    return [_blackouts(history, now), _loads(record, history, now), _opens(record, history)]


def _blackouts(history: TrialHistory, now: int) -> Table:
    """Return the blackouts that had begun by the trial's end."""
    policy, begin = history.policy, history.start or 0
    rows: list[list[Cell]] = []
    for window in sorted(policy.blackouts, key=lambda each: (each.absolute, each.start)):
        start, end = window.span(begin)
        if start >= now or end <= begin:
            continue
        subject = policy.subject_of(window)
        rows.append([start, end, (end - start) / SECOND_NS, subject, window.reason])
    columns = columns_of(
        ("from (UTC)", "time"), ("to (UTC)", "time"), ("length", "seconds"), "of", "why"
    )
    about = (
        "As planned: nothing of theirs was started in that time. Unlike planned outages, criteria "
        "count it."
    )
    return bounded("Blackouts", columns, rows, about)


def _loads(record: Record, history: TrialHistory, now: int) -> Table:
    """Return the open files of a trial's own runs on each target, by its plan or suite."""
    rows: list[list[Cell]] = []
    for name, levels in target_loads(history, now).items():
        highest = max((level.value for level in levels), default=0.0)
        if highest:
            system = record.machine.file_systems.get(name.partition("/")[0])
            safe = system.safe_load if system is not None else 0.0
            above = _above(levels, safe) if safe else None
            rows.append([name, highest, safe or None, above])
    columns = columns_of(
        "target",
        ("highest", "count", "open files"),
        ("safe", "count", "open files"),
        ("time above safe", "share"),
    )
    about = "Of this trial's own runs, as the plan or test gives their open files; others' are not "
    about += "in it."
    if record.rehearsed:
        about += " What `seatrial rehearse` prints holds the load assumed of others, too."
    return bounded("Load of metadata targets", columns, rows, about)


def _opens(record: Record, history: TrialHistory) -> Table:
    """Return what tests declare of their open files, beside what their runs had."""
    measured: dict[str, list[float]] = {}
    for run in history.runs:
        if (figure := run.figure(OPEN_FILES)) is not None:
            measured.setdefault(history.test_of(run), []).append(figure.value)
    entries = history.policy.entries
    checks = [compare(each.name, each.opens, measured.get(each.name, [])) for each in entries]
    rows: list[list[Cell]] = [
        [one.test, one.declared, one.measured, one.highest, one.runs, one.factor, one.state]
        for one in checks
        if one is not None and one.declared
    ]
    columns = columns_of(
        "test",
        ("declared", "number", "open files"),
        ("median", "number", "open files"),
        ("highest", "number", "open files"),
        ("runs", "count"),
        ("times declared", "number"),
        "declaration",
    )
    about = (
        "What throttles, safe loads and placement went by, and what nodes saw at their looks. A "
    )
    about += f"declaration is wrong where the median is {FACTOR:g} times or half of it."
    if record.machine.file_use is None or not record.machine.file_use.every.seconds:
        about += " Nothing was measured: the machine's file has no `file_use` with `every`."
    return bounded("Declared and measured open files", columns, rows, about)


def _above(levels: Iterable[LevelSpan], safe: float) -> float:
    """Return the share of the time in which a load was above the safe one."""
    levels = list(levels)
    time = sum(level.end - level.start for level in levels)
    return sum(level.end - level.start for level in levels if level.value > safe) / max(1, time)
