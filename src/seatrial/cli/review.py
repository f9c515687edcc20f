"""Record what people say of runs: a cause, a comment, an exclusion by agreement.

`seatrial judge RUN` with one of these options does it.
"""

from collections.abc import Iterable, Sequence
from itertools import chain, starmap
from pathlib import Path
from typing import NamedTuple

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.ledger import record, run_header
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import RunReviewed
from seatrial.journal.run_life import RecordedRun, RunState
from seatrial.results.store import queries
from seatrial.results.store.tables import RunRow
from seatrial.units import listed

MAX_NAMED = 5


class Review(NamedTuple):
    """What is said of runs, and by whom."""

    cause: str
    comment: str
    exclude: bool
    withdraw: bool
    by: Sequence[str]


class ReviewedRun(NamedTuple):
    """A run, its trial's folder, and what its journal says of it."""

    row: RunRow
    folder: TrialFolder
    life: RecordedRun


def record_reviews(folders: Folders, names: Sequence[str], review: Review) -> int:
    """Record a review of runs; return the exit code: 3 if a process that owns a journal did not
    record it yet. Raises UsageError before anything is recorded."""
    review = _checked(review)
    with opened(folders) as store:
        rows = {row.row: row for row in (queries.run(store, name) for name in names)}
        by_trial: dict[str, list[RunRow]] = {}
        for row in rows.values():
            by_trial.setdefault(queries.trial_of(store, row).path, []).append(row)
    runs = list(chain.from_iterable(starmap(_as_recorded, by_trial.items())))
    for run in runs:
        _require_reviewable(run, review)
    waiting = [run for run in runs if not _record(run, review)]
    if waiting:
        tags = listed(list(dict.fromkeys(run.folder.tag for run in waiting)), MAX_NAMED)
        click.echo(f"left for the process that drives {tags}, which will record it", err=True)
    return 3 if waiting else 0


def _checked(review: Review) -> Review:
    """Return what is said without blanks around it, and by whom. Raises UsageError for what cannot
    be said so."""
    names = list(filter(None, map(str.strip, review.by)))
    cause, comment = review.cause.strip(), review.comment.strip()
    both = len(set(map(str.casefold, names))) >= 2
    says = bool(cause or comment)
    if review.exclude and review.withdraw:
        raise UsageError("--exclude and --withdraw: one at a time")
    if review.exclude and not both:
        raise UsageError(
            "--exclude: an exclusion is by agreement of both sides; name them: --by A --by B"
        )
    if review.exclude and not says:
        raise UsageError("--exclude: say why with --cause or --comment")
    if review.withdraw and not comment:
        raise UsageError("--withdraw: say why with --comment TEXT; it is kept")
    if not (review.exclude or review.withdraw or says):
        raise UsageError("say something of the run: --cause, --comment, --exclude or --withdraw")
    return review._replace(cause=cause, comment=comment, by=names or [account()])


def _as_recorded(path: str, rows: Iterable[RunRow]) -> list[ReviewedRun]:
    """Return runs of a trial as its journal has them."""
    folder = TrialFolder(Path(path))
    wanted = {row.run_id: row for row in rows}
    runs = {run.run_id: run for run in folder.runs(lambda event: event.run_id in wanted)}
    return [
        ReviewedRun(row, folder, runs.get(run_id) or RecordedRun(run_id=run_id))
        for run_id, row in wanted.items()
    ]


def _require_reviewable(run: ReviewedRun, review: Review) -> None:
    name = f"{run.folder.tag}/{run.row.run_id}"
    if run.row.rehearsed:
        raise UsageError(f"{name}: is of a rehearsal: nothing ran, and nothing can be said of it")
    if run.life.state is not RunState.JUDGED:
        raise UsageError(f"{name}: has no verdict yet; judge it when it has")
    if review.withdraw and run.life.review is None:
        raise UsageError(f"{name}: nothing was said of it that could be withdrawn")


def _record(run: ReviewedRun, review: Review) -> bool:
    """Record a review of a run, and print it. Return False if it waits for another process."""
    folder, row = run.folder, run.row
    trial, case = folder.record(), folder.case(row.case)
    if case is None:
        raise UsageError(f"{folder.tag}/{row.run_id}: its case {row.case} is not in cases.jsonl")
    event = RunReviewed(
        **run_header(trial, case, row.run_id),
        cause=review.cause,
        comment=review.comment,
        is_excluded=int(review.exclude),
        withdrawn=review.withdraw,
        names=list(review.by),
    )
    if record(folder, event) is None:
        return False
    done = "withdrawn" if review.withdraw else "excluded" if review.exclude else "noted"
    said = ": ".join(filter(None, (review.cause, review.comment)))
    by = " and ".join(review.by)
    click.echo(plain_line(f"{row.run_id}  {row.case_name}  {row.verdict}  {done} by {by}: {said}"))
    return True
