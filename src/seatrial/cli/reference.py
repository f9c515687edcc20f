"""``seatrial reference``: the expected values of metrics on a machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import suppress
from pathlib import Path

import click

from seatrial.cli import Folders, as_typed, query_common
from seatrial.cli.tables import TextTable
from seatrial.errors import SeatrialError, UsageError
from seatrial.escaping import plain_line
from seatrial.execute import detect as machines
from seatrial.execute import trial_folder
from seatrial.judge import references as written
from seatrial.judge.learning import accept
from seatrial.model.figures import ELAPSED
from seatrial.model.identifiers import show
from seatrial.model.test import Stage
from seatrial.results.references import DIGITS, learn_from, learn_sums
from seatrial.results.store import queries
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.units import count, show_change, show_figure


def reference_accept(
    folders: Folders,
    trials: tuple[str, ...],
    metric: str,
    stage: Stage,
    since: int,
    machine: str,
    two_sided: bool,
    force: bool,
    rehearsed: bool,
    damaged: bool,
    dry_run: bool,
) -> int:
    """Do ``seatrial reference accept``; return the exit code."""
    with query_common.opened(folders) as store:
        rows = _trials_of(store, trials, since, machine, rehearsed)
        query_common.tell_damage(store, rows)
        _require_whole(rows, damaged)
        learning = learn_from(store, rows, metric, since, two_sided, force, stage)
        sums, without_sum = ([], []) if metric else learn_sums(rows)
        found = [*learning.references, *sums]
        no_figure = "" if found else _no_figure(store, rows, metric, stage)
    path = _file_of(trial_folder.TrialFolder(Path(rows[0].path)))
    for what, reason in (*learning.left_out, *without_sum):
        click.echo(f"left out: {plain_line(what)}: {plain_line(reason)}", err=True)
    for what, reason in learning.older:
        click.echo(f"{plain_line(what)}: {reason}", err=True)
    for what, reason in learning.wide:
        click.echo(f"wide: {plain_line(what)}: {plain_line(reason)}", err=True)
    if not found:
        raise UsageError(no_figure)
    if not dry_run:
        accept(path, found)
    click.echo(_table(found))
    done = "would be written to" if dry_run else "written to"
    where = plain_line(as_typed(path))
    click.echo(f"{count(len(found), 'reference')} {done} {where}")
    return 0


def reference_list(machine: str | None) -> int:
    """Do ``seatrial reference list``; return the exit code."""
    site = machines.find_machine(machine)
    references = written.load(site.references)
    if not references.entries:
        click.echo(
            f"{as_typed(site.references)}: no references yet; `seatrial reference accept TRIAL`"
        )
        return 0
    click.echo(_table(references.entries))
    return 0


def _file_of(trial: trial_folder.TrialFolder) -> Path:
    """Return the file of references that a trial names. Raises UsageError where another user's
    trial names a file that is not the machine's: it would be written under the own name."""
    record, origin = trial.record_and_origin()
    path = Path(record.references)
    usual = None
    if origin.other:
        with suppress(SeatrialError):
            usual = machines.find_machine(record.machine.machine).references.absolute()
    if origin.other and path != usual:
        raise UsageError(
            f"{trial.tag}: {origin.other}, and it names references that are not those of the "
            f"machine {record.machine.machine} here: {path}; learn from a trial of your own"
        )
    return path


def _require_whole(rows: list[TrialRow], damaged: bool) -> None:
    """Raise UsageError for trials with damaged journals: runs that failed may be missing."""
    wrong = [row.tag for row in rows if row.damaged]
    if wrong and not damaged:
        raise UsageError(
            f"{', '.join(wrong)}: nothing is learned from a damaged journal; name other trials, or "
            "add --damaged to learn from what is left"
        )


def _no_figure(store: Store, rows: list[TrialRow], metric: str, stage: Stage) -> str:
    """Return why there is no figure to accept."""
    tags = ", ".join(row.tag for row in rows)
    known = {sample.metric for row in rows for sample in queries.summary(store, row)}
    if metric and metric not in (ELAPSED, *known):
        there = ", ".join(sorted({*known, ELAPSED}))
        return f"{tags}: no metric {metric!r}; there are {there}"
    of = " of runs at full machine" if stage == "full" else ""
    return f"{tags}: no figure{of} to accept; see `seatrial runs --trial {rows[0].tag}`"


def _trials_of(
    store: Store, tags: tuple[str, ...], since: int, machine: str, rehearsed: bool
) -> list[TrialRow]:
    """Return the chosen trials, newest first, all of one machine."""
    if not tags and not since:
        raise UsageError("name a trial, or learn from all trials since a time: --since 30d")
    if tags:
        wanted = {queries.trial(store, tag).row for tag in tags}
        rows = [row for row in queries.trials(store) if row.row in wanted]
        _require_measured(rows, rehearsed)
    else:
        rows = [
            row
            for row in queries.trials(store)
            if (row.last or row.created) >= since and not row.given
            if rehearsed or not row.rehearsed
        ]
    return _of_one_machine(rows, machine)


def _require_measured(rows: list[TrialRow], rehearsed: bool) -> None:
    """Raise UsageError for trials whose figures nobody measured."""
    if given := [row for row in rows if row.given]:
        raise UsageError(
            f"{given[0].tag}: its figures were given and never measured; write them into "
            "references.yaml, or name a trial that ran"
        )
    if made_up := [row for row in rows if row.rehearsed and not rehearsed]:
        raise UsageError(
            f"{made_up[0].tag}: is a rehearsal, its figures were never measured; name a real "
            "trial, or add --rehearsed"
        )


def _of_one_machine(rows: list[TrialRow], machine: str) -> list[TrialRow]:
    """Return the trials of a machine ("": the only one). Raises UsageError."""
    names = sorted({row.machine for row in rows})
    if machine:
        rows = [row for row in rows if row.machine == machine]
    elif len(names) > 1:
        raise UsageError(f"the trials are of {', '.join(names)}; say which with --machine")
    if not rows:
        known = f"; there are trials of {', '.join(names)}" if names else ""
        raise UsageError(f"no such trial in that time{known}; see `seatrial trials`")
    return rows


def _table(references: Sequence[written.Reference]) -> TextTable:
    found = TextTable("test~ | where~ | toolchain~ | metric~ | expected> | allowed> | stage")
    for one in references:
        where = ",".join(f"{name}={show(value)}" for name, value in one.where.items())
        about = (one.test, where, one.toolchain)
        if one.file:
            found.add(*about, one.file, one.sha256[:DIGITS], "identical", "")
            continue
        expected = "" if one.value is None else show_figure(one.value, one.unit)
        allowed = " ".join(_bounds(one)) or "5 % worse"
        stage = "full" if one.stage == "full" else ""
        found.add(*about, one.metric, expected, allowed, stage)
    return found


def _bounds(one: written.Reference) -> Iterator[str]:
    """Yield the bounds of a reference: of the figure itself, or of its change."""
    if one.value is not None:
        yield from (show_change(100 * end) for end in (one.lower, one.upper) if end is not None)
        return
    if one.min is not None:
        yield f">= {one.min:g}"
    if one.max is not None:
        yield f"<= {one.max:g}"
