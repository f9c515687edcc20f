"""``seatrial judge``: judge the runs of a trial again, or say something of single runs."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import chain, starmap
from pathlib import Path
from typing import Any, NamedTuple

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.query_common import opened
from seatrial.cli.tables import TextTable, print_first
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.ledger import record, run_header
from seatrial.execute.second_judgement import (
    SecondJudgement,
    definitions_now,
    judge_again,
    record_judgements,
)
from seatrial.execute.trial_folder import Record, TrialFolder, checksum_of, find, references_by_now
from seatrial.hooks import load, provided
from seatrial.journal.events import RunReviewed
from seatrial.journal.trial import RecordedRun, RunState
from seatrial.judge.references import References
from seatrial.model.codes import KNOWN, PASS
from seatrial.results.references import UnreferencedFigures, is_unreferenced
from seatrial.results.store import queries
from seatrial.results.store.export import to_json
from seatrial.results.store.tables import RunRow
from seatrial.show.text import folded
from seatrial.units import NO_DIRECTION, count, listed

SHOWN = 50
MAX_NAMED = 5


NOT_JUDGED = 3  # exit code: all passed, and some of that cannot be judged again


def judge(
    folders: Folders,
    /,
    names: tuple[str, ...],
    cause: str,
    comment: str,
    exclude: bool,
    withdraw: bool,
    by: tuple[str, ...],
    form: str,
    **asked: Any,
) -> int:
    """Do ``seatrial judge``; return the exit code."""
    if cause or comment or exclude or withdraw or by:
        if any(asked.values()):
            raise UsageError("--again, --reason, --with, --references, --dry-run: are of a TRIAL")

        return record_reviews(folders, names, Review(cause, comment, exclude, withdraw, by))
    if len(names) > 1:
        raise UsageError(f"{names[1]}: one trial at a time is judged again")
    return _judge_again(folders, names[0], form, **asked)


def _judge_again(
    folders: Folders,
    trial: str,
    form: str,
    again: bool,
    reason: str,
    suites: tuple[str, ...],
    references: Path | None,
    require_references: bool,
    dry_run: bool,
) -> int:
    """Judge the runs of a trial again; return the exit code."""
    folder = find(folders.trials, trial)
    record, origin = folder.record_and_origin()
    if origin.other and not suites:
        raise UsageError(
            f"{folder.tag}: {origin.other}, and what its suite judges by would run under your "
            "name; name a suite that you trust, with --with"
        )
    _require_outputs(folder.tag, record)
    record_it = again and not dry_run
    before = checksum_of(references_by_now(folder, record))
    if record_it:
        if not reason.strip():
            raise UsageError("--again: say why with --reason TEXT; it is kept with each verdict")
        now, judged = record_judgements(
            folder, record, suites, references, account(), reason.strip()
        )
        if not origin.other and any(one.changed or one.verdict.figures for one in judged):
            _tell_sinks(folder, folders)
    else:
        now = definitions_now(record, folder.cases(), suites, references)
        judged = list(judge_again(folder, record, now))
    if form == "json":
        _print_json(judged)
    else:
        _print_table(folders, folder.tag, judged, record_it)
        if now.references_sha256 != before:
            follow = "follow them now" if record_it else "would follow them"
            click.echo(folded(f"the references are not those of before: criteria {follow}"))
    return _exit_code(judged, now.references if require_references else None, form)


def _require_outputs(tag: str, record: Record) -> None:
    """Raise UsageError for a trial whose runs left no output that a test could judge."""
    if record.given is not None:
        raise UsageError(f"{tag}: its figures were given, and there is no output")
    if record.imported is not None:
        raise UsageError(
            f"{tag}: its runs were made with {record.imported.tool}, whose verdicts stand: "
            "Seatrial has no test to judge them by"
        )
    if record.rehearsed:
        raise UsageError(f"{tag}: is a rehearsal: nothing ran, and there is no output")


def _exit_code(judged: Sequence[SecondJudgement], references: References | None, form: str) -> int:
    """Return the exit code; figures without one of ``references``, which are then required, are
    told."""
    if not all(one.verdict.code in (PASS, KNOWN) or one.run.will_rerun for one in judged):
        return 1
    if references is not None and (told := _unreferenced(judged, references).words):
        click.echo(folded(plain_line(told)), err=form == "json")
        return NOT_JUDGED
    return NOT_JUDGED if any(one.cannot and one.verdict.code is PASS for one in judged) else 0


def _unreferenced(found: Sequence[SecondJudgement], references: References) -> UnreferencedFigures:
    """Return which figures of the runs that passed have no reference."""
    told: dict[tuple[str, str, str], bool] = {}
    for one in found:
        run = one.run
        if one.verdict.code is not PASS:
            continue
        kinds = [(name, event.better) for name, event in run.figures.items()]
        kinds += [(figure.name, figure.better) for figure in one.verdict.figures]
        for metric, better in kinds:
            if better != NO_DIRECTION:
                lacks = is_unreferenced(references, one.case, metric, better, run.stage)
                told[one.case.name, run.stage, metric] = lacks
    return UnreferencedFigures(
        len(told), [f"{case} {metric}" for (case, _, metric), lacks in told.items() if lacks]
    )


def _tell_sinks(folder: TrialFolder, folders: Folders) -> None:
    for delivery in provided("seatrial_deliveries"):
        if trouble := load(delivery.start)(folder, folders.log_level):
            again = folders.command("sink", folder.tag)
            click.echo(f"seatrial: the sinks were not told: {trouble}; later: {again}", err=True)


def _print_json(found: Sequence[SecondJudgement]) -> None:
    records = [
        {
            "run_id": one.run.run_id,
            "case": one.case.name,
            "before": one.was.name,
            "verdict": one.verdict.code.name,
            "why": one.verdict.why,
            "changed": one.changed,
            "added": [figure.name for figure in one.verdict.figures],
            "cannot": one.cannot or None,
        }
        for one in found
    ]
    click.echo(to_json(records), nl=False)


def _print_table(
    folders: Folders, tag: str, judged: Sequence[SecondJudgement], recorded: bool
) -> None:
    changed = [one for one in judged if one.changed]
    rows = (
        (one.run.run_id[:8], one.case.name, one.was.name, one.verdict.code.name, one.verdict.why)
        for one in changed[:SHOWN]
    )
    table = TextTable("run | case~ | was~ | is~ | why~", rows)
    print_first(table, len(changed), SHOWN, ": --format json lists all")
    number = sum(not one.cannot for one in judged)
    verb = "judged again" if recorded else "would be judged again"
    click.echo(folded(f"{count(number, 'run')} {verb}, {_turns(changed)}"))
    added = sum(len(one.verdict.figures) for one in judged)
    if added:
        verb = "added" if recorded else "would be added"
        click.echo(folded(f"{count(added, 'figure')} that had not been found {verb}"))
    _print_kept(judged)
    if (changed or added) and not recorded:
        click.echo(f"record it: {folders.command('judge', tag, '--again', '--reason', 'TEXT')}")


def _print_kept(judged: Sequence[SecondJudgement]) -> None:
    """Tell how many runs cannot be judged again, and why."""
    for reason, number in Counter(one.cannot for one in judged if one.cannot).items():
        runs = "1 run keeps its verdict" if number == 1 else f"{number} runs keep their verdicts"
        click.echo(folded(f"{runs}, as it cannot be judged again: {plain_line(reason)}"))


def _turns(changed: Sequence[SecondJudgement]) -> str:
    """Return how many verdicts change, and from what to what."""
    turns = Counter(
        f"{one.was.name} -> {one.verdict.code.name}"
        for one in changed
        if one.was != one.verdict.code
    )
    others = len(changed) - turns.total()
    parts = [f"{number} {turn}" for turn, number in turns.items()]
    parts += [f"{others} for another reason"] if others else []
    return f"{len(changed)} changed: {', '.join(parts)}" if changed else "none changed"


# ---- what people say of runs ---------------------------------------------------------------------


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
