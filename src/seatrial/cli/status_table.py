"""The status of a plan's components, as tables or JSON."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
import msgspec

from seatrial.cli.query_common import show_time, tell_damaged_journal
from seatrial.cli.tables import TextTable
from seatrial.execute.plan_trials import PlanTrial
from seatrial.journal.journal import read
from seatrial.results.criteria.mix import overall
from seatrial.results.records import EvidenceStatus
from seatrial.results.status import Status, beside, status, with_documents
from seatrial.results.store.export import to_json
from seatrial.results.store.queries import owned
from seatrial.show.text import bars, folded, table_text
from seatrial.show.trial import (
    actions_table,
    criteria_table,
    items_table,
    reviews_table,
    sub_phases_table,
    tests_table,
    unused_words,
)
from seatrial.units import count, in_per_cent, show_seconds

_HOLDS = {"gauge": "held back", "blackout": "held back", "unbuilt": "cannot be built"}
MAX_ACTIONS = 10  # of people that are shown
COURSE = 40  # characters of the row of bars
WIDTH = 78
MAX_REVIEWS = 20


def print_status(statuses: Sequence[Status], by_evidence: Mapping[str, str] = {}) -> None:
    """Print the status of trials of a plan: a table of all (``passed`` counts runs, ``accepted`` is
    their share of the node-hours where that is a result), then the tests, sub-phases, notes and
    criteria of each. ``by_evidence``: the state of each component that has documents and no
    trial."""
    click.echo(_components(statuses, by_evidence))
    for use in beside(statuses):
        hours = f"{use.node_hours:.1f} node-hours of {count(use.nodes, 'node')}"
        share = in_per_cent(use.utilisation)
        click.echo(folded(f"{use.words}, beside each other: accepted {share} of {hours}"))
    for one in statuses:
        parts = [
            table_text(items_table(one.items)),
            _parts(one),
            table_text(sub_phases_table(one.sub_phases)) if len(one.sub_phases) > 1 else "",
            *(_notes(one), _actions(one)),
            *(table_text(criteria_table(one.criteria)), _reviews(one)),
        ]
        shown = [part for part in parts if part]
        if shown:
            click.echo()
            click.echo(click.style(folded(_heading(one)), bold=True))
            click.echo("\n\n".join(shown))


def print_json(plan: str, statuses: Sequence[Status], records: Mapping[str, Any]) -> None:
    """Print the trials of a plan, and what people recorded about it."""
    trials = [msgspec.to_builtins(one) for one in statuses]
    click.echo(to_json({"plan": plan, "trials": trials, "records": records}), nl=False)


def print_next(statuses: Sequence[Status], again: str) -> None:
    """Print the command that continues trials that nobody drives."""
    stopped = [one for one in statuses if one.state in ("interrupted", "paused", "cancelled")]
    for one in stopped:
        if one.state == "interrupted":
            click.echo(f"{one.tag} is interrupted: nobody drives it")
    if stopped:
        click.echo(f"next   {again}")


def status_of(trial: PlanTrial) -> Status:
    """Return the status of a trial. A trial that runs by its journal and has no driver is
    interrupted."""
    driven = owned(str(trial.folder.path))
    events = read(trial.folder.journal)
    now = status(trial.record, trial.folder.cases(), events, driven=driven, reading=events)
    now = with_documents(now, Path(trial.record.plan_file).parent)
    if events.damaged:
        tell_damaged_journal(trial.folder)
    return now


def exit_code(statuses: Sequence[Status], trials: Sequence[PlanTrial]) -> int:
    """Return 1 if a criterion is not met, 3 if one is open or a trial is not complete (it may have
    ended, and been extended since), else 0."""
    if any(one.verdict == "not met" for one in statuses):
        return 1
    undecided = any(one.verdict in ("undecided", "awaited") for one in statuses)
    return 3 if undecided or any(trial.state != "complete" for trial in trials) else 0


def _title(one: Status) -> str:
    phase = f", phase {one.phase}" if one.phase else ""
    return f"{one.component or one.tag}{phase}{' (rehearsed)' if one.rehearsed else ''}"


def _heading(one: Status) -> str:
    """Return the title with the verdict, which names what was waived."""
    is_judged = one.criteria or one.verdict in ("awaited", "undecided")
    return f"{_title(one)}: {one.verdict_words}" if is_judged else _title(one)


def _short(one: Status) -> str:
    """Return the verdict without what was waived, or is awaited."""
    return (
        overall(one.criteria).short if one.verdict == overall(one.criteria).state else one.verdict
    )


def _components(statuses: Sequence[Status], by_evidence: Mapping[str, str]) -> TextTable:
    rows = TextTable("component~ | state | verdict | clock> | passed> | accepted>")
    for one in statuses:
        times = (show_seconds(time) for time in (one.clock, one.duration) if time)
        passed = sum(part.accepted for part in one.parts)
        passed += sum(item.state == "pass" for item in one.items)
        share = in_per_cent(one.utilisation if one.fills_machine else None)
        rows.add(_title(one), one.state, _short(one), " of ".join(times), passed, share)
    for component, state in by_evidence.items():
        rows.add(component, state, *[None] * 4)
    return rows


def _parts(one: Status) -> str:
    """Return the tests, how far runs shared nodes, and the utilisation over time."""
    over = one.state in ("ended", "abandoned")
    rows = table_text(tests_table(one.parts, one.tag, one.node_shares, over))
    use = [unused_words(one.node_shares), *wrap(one.sharing, WIDTH), _course(one)]
    return "\n".join(filter(None, [rows, *(use if rows and one.fills_machine else [])]))


def _course(one: Status) -> str:
    """Return the utilisation over time, a bar for each span."""
    points = one.over_time
    if len(points) < 2:
        return ""
    width = min(COURSE, len(points))
    shares = [points[i * len(points) // width][1] for i in range(width)]
    return f"accepted over time  |{bars(shares)}|  to {show_seconds(one.clock)}"


def _notes(one: Status) -> str:
    """Return open alerts, nodes that are down, files that are not checked, and what holds launches
    back."""
    rows = TextTable("note | since | what~")
    for alert in one.alerts:
        again = f" (told {count(alert.times, 'time')})" if alert.times > 1 else ""
        rows.add("alert", show_time(alert.time), f"{alert.text}{again}")
    if one.down:
        rows.add("down", "", one.down)
    if one.unlearned:
        rows.add("unchecked", "", one.unlearned)
    for hold in one.held_back_by:
        rows.add(_HOLDS.get(hold.kind, hold.kind), show_time(hold.since), hold.text)
    return str(rows)


def _reviews(one: Status) -> str:
    """Return the runs of which people said something."""
    rows = table_text(reviews_table(one.reviews[:MAX_REVIEWS], one.tag))
    more = len(one.reviews) - MAX_REVIEWS
    return f"{rows}\nand {more} more: --format json has all" if more > 0 else rows


def _actions(one: Status) -> str:
    """Return the latest actions of people."""
    rows = table_text(actions_table(one.actions[-MAX_ACTIONS:]))
    more = len(one.actions) - MAX_ACTIONS
    return f"{rows}\nand {more} before" if more > 0 else rows


# ---- what people recorded about the plan --------------------------------------------------


def evidence_line(component: str, one: EvidenceStatus) -> str:
    """Return a document with who signed it, and whether it is as it was signed for."""
    if one.state == "awaited":
        return f"evidence of {component}: {one.document} is awaited"
    signed = f"signed by {one.signed_by} on {one.signed_on}"
    file = one.document if one.file == one.document else f"{one.document} ({one.file})"
    now = {"changed": "; it CHANGED since it was signed for", "not here": "; it is not here"}
    return f"evidence of {component}: {file}, {signed}{now.get(one.state, '')}"
