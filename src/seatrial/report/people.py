"""Tables of what people did in an acceptance: items, issues, milestones, parts, incidents.

items(status.items).rows[0]
tables_of(records)
"""

from collections.abc import Iterator, Sequence

from seatrial.acceptance.plan_records import Issue, PlanRecords
from seatrial.acceptance.reviews import RunReview
from seatrial.acceptance.trial_history import RunHistory, TrialHistory
from seatrial.journal import events
from seatrial.journal.codes import code_of
from seatrial.plan.checklist import ItemResult, ItemStatus
from seatrial.report.content import Cell, Table, bounded, moment
from seatrial.trial.record import Record, checksum_of, references_of
from seatrial.units import count, listed
from seatrial.verify.reading import plain_line


def items(found: Sequence[ItemStatus]) -> Table:
    """Return the items of a checklist, with their results; each replaced or uncounted result has a
    row of its own."""
    rows: list[list[Cell]] = []
    for item in found:
        about = [item.id, item.clause, item.text]
        rows.append([*about, item.bound, item.state, *_cells(item.tick, "")])
        rows += [[*about, "", each.result, *_cells(each, "replaced")] for each in item.earlier]
        rows += [
            [*about, "", each.result, *_cells(each, "does not count")] for each in item.uncounted
        ]
    columns = (
        "item | clause | what | asked | result: state | counts | value | by | recorded by"
        " | when: time | remark | document | SHA-256"
    )
    about_all = "The first result stands; another one replaces it only with a reason."
    return bounded("Items", columns, rows, about_all)


def _cells(tick: ItemResult | None, counts: str) -> list[Cell]:
    if tick is None:
        return [""] * 8
    because = f"because: {tick.why}" if tick.why else ""
    now = f" ({tick.now})" if tick.now not in ("", "as it was") else ""
    remark = "; ".join(filter(None, (tick.comment, because)))
    who: list[Cell] = [", ".join(tick.by), tick.user, tick.time]
    return [counts, tick.shown, *who, remark, tick.document + now, tick.sha256]


def issues(found: Sequence[Issue], title: str = "Issues") -> Table:
    """Return the issues, a row for each."""
    rows: list[list[Cell]] = []
    for each in found:
        runs, by, said = ", ".join(each.runs), ", ".join(each.opened_by), "; ".join(each.comments)
        about = (each.state, each.severity, each.text, each.component, each.owner, each.nodes)
        rows.append([each.issue, *about, runs, by, each.opened, said])
    columns = (
        "issue: count | state | severity | what | component | owner | nodes | runs | opened by"
        " | opened: time | remarks"
    )
    return bounded(title, columns, rows)


def entries(records: PlanRecords) -> Table:
    """Return milestones, replaced parts and incidents, in the order of their times."""
    rows: list[list[Cell]] = [
        [each.at, each.kind, each.text, each.nodes, ", ".join(each.by), each.user]
        for each in records.entries
    ]
    columns = "when: time | kind | what | nodes | by | recorded by"
    return bounded("Milestones, replaced parts, incidents", columns, rows)


def tables_of(records: PlanRecords) -> Iterator[Table]:
    """Yield the tables of a plan's records that have rows."""
    closed = [each for each in records.issues.values() if not each.is_open]
    for table in (issues(closed, "Issues that were closed"), entries(records)):
        if table.rows:
            yield table


# ---- what people said of runs --------------------------------------------------------------------

MAX_NAMED = 5


def excluded_by_agreement(reviews: Sequence[RunReview]) -> Table:
    """Return the runs that both sides excluded, with who and why."""
    rows: list[list[Cell]] = []
    for each in (review for review in reviews if review.is_excluded):
        said = (each.case, each.verdict, each.cause, each.comment, ", ".join(each.by))
        rows.append([each.run, *said, each.user, each.time])
    columns = "run | case | verdict | cause | comment | agreed by | recorded by | when: time"
    about = (
        "Criteria on verdicts and figures leave these runs out, and say what they would be with "
        "them. What was measured did not change; their nodes were used all the same."
    )
    return bounded("Runs excluded by agreement", columns, rows, about)


def causes(reviews: Sequence[RunReview]) -> Table:
    """Return the causes that people gave, with the numbers of runs and the comments."""
    found: dict[str, list[RunReview]] = {}
    for each in reviews:
        found.setdefault(each.cause, []).append(each)
    rows: list[list[Cell]] = [
        [
            cause or "none given",
            len(some),
            sum(each.is_excluded for each in some),
            listed(list(dict.fromkeys(each.test for each in some)), MAX_NAMED),
            listed([each.run for each in some], MAX_NAMED),
            listed([each.comment for each in some if each.comment], MAX_NAMED),
            listed(list(dict.fromkeys(n for r in some for n in r.by)), MAX_NAMED),
        ]
        for cause, some in sorted(found.items(), key=lambda item: -len(item[1]))
    ]
    columns = "cause | runs: count | excluded: count | tests | run | comments | by"
    return bounded("Causes that people gave", columns, rows, "Verdicts and figures stay.")


# ---- what people did while it ran ----------------------------------------------------------------


def operator_actions(history: TrialHistory) -> Table:
    """Return the actions of people, oldest first."""
    rows: list[list[Cell]] = [
        [each.time, each.by, each.text, "; ".join(each.changes), each.reason]
        for each in history.actions
    ]
    columns = "when: time | who | what | changed | why"
    about = (
        "Criteria are judged over the spans: by each policy for as long as it held. A hold changes "
        "no planned share."
    )
    return bounded("What people did while it ran", columns, rows, about)


# ---- what people judged again --------------------------------------------------------------------


def judged_again(history: TrialHistory) -> Table:
    """Return how many runs of each test got another verdict in place of their first, the latest
    time by whom and why."""
    found: dict[tuple[str, int, int, str], list[RunHistory]] = {}
    for run in history.runs:
        if run.judged_again is not None and run.first_code is not None:
            event = run.judged_again
            key = (history.test_of(run), run.first_code, run.code, event.by_and_why)
            found.setdefault(key, []).append(run)
    rows = [_judged_again_row(*key[:3], runs) for key, runs in found.items()]
    columns = "test | first verdict | verdict | runs: count | when: time | by | why"
    about = "A person judged these runs again; what was measured did not change."
    return bounded("Runs that were judged again", columns, rows, about)


def corrected_references(history: TrialHistory, record: Record) -> Iterator[str]:
    """Yield a sentence where people judged a trial again by other references than its own. Version
    0.1 recorded their checksums alone, so criteria did not follow."""
    own = checksum_of(references_of(record))
    if history.references is not None:
        if checksum_of(history.references) != own:
            told = next(
                each
                for each in reversed(history.actions)
                if each.action == events.ReferencesCorrected.action
            )
            yield (
                f"{plain_line(told.by)} corrected the references of this trial on "
                f"{moment(told.time)} UTC ({plain_line(told.reason)}): its criteria, and the table "
                "of figures against their references, use the corrected ones."
            )
    elif others := _by_other_references(history, own):
        yield (
            f"{count(others, 'run')} {'was' if others == 1 else 'were'} judged again by other "
            "references than those that this trial was made with; its criteria, and the table of "
            "figures against their references, use the latter."
        )


def _by_other_references(history: TrialHistory, own: str) -> int:
    events = [run.judged_again for run in history.runs if run.judged_again is not None]
    return sum(event.references not in ("", own) for event in events)


def _judged_again_row(test: str, first: int, last: int, runs: list[RunHistory]) -> list[Cell]:
    events = [run.judged_again for run in runs if run.judged_again is not None]
    latest = max(events, key=lambda event: event.time)
    verdicts = (code_of(first).name, code_of(last).name)
    return [test, *verdicts, len(runs), latest.time, latest.by, latest.why]
