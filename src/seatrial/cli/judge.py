"""``seatrial judge``: judge the runs of a trial again, or say something of single runs."""

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.cli.options import format_option, list_option, require_references_option, text_option
from seatrial.cli.review import Review, record_reviews
from seatrial.cli.tables import TextTable, print_first
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.second_judgement import (
    SecondJudgement,
    definitions_now,
    judge_again,
    record_judgements,
)
from seatrial.execute.trial_folder import TrialFolder, find, references_by_now
from seatrial.execute.trial_record import Record, checksum_of
from seatrial.hooks import load, provided
from seatrial.judge.references import References
from seatrial.model.codes import KNOWN, PASS
from seatrial.results.references import UnreferencedFigures, is_unreferenced
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import NO_DIRECTION, count

SHOWN = 50


NOT_JUDGED = 3  # exit code: all passed, and some of that cannot be judged again


@click.command("judge")
@click.argument("names", metavar="TRIAL|RUN...", nargs=-1, required=True)
@text_option("--cause", "TEXT", "What caused it, such as F2.")
@text_option("--comment", "TEXT", "A remark on the run.")
@click.option(
    "--exclude",
    is_flag=True,
    help="Both sides agreed that criteria leave it out; needs two --by, and a cause or a comment.",
)
@click.option("--withdraw", is_flag=True, help="Take back what was said of the run.")
@list_option("--by", "NAME", "Who says so; may be repeated.")
@click.option(
    "--again", is_flag=True, help="Record verdicts and figures; without it they are only shown."
)
@text_option("--reason", "TEXT", "Why; needed with --again.")
@list_option(
    "--with",
    "suites",
    "SUITE",
    "Suite to judge by; may be repeated. Default: that of the trial, as it is now. Needed "
    "for the trial of another user, as what judges runs under your name.",
)
@click.option(
    "--references",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="File of references to judge by. Default: that of the machine, as it is now.",
)
@require_references_option
@click.option("--dry-run", is_flag=True, help="Show what would change, record nothing.")
@format_option("table", "json")
@click.pass_obj
def command(
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
    """Judge the runs of TRIAL again, or say something of single runs.

    With --cause, --comment, --exclude or --withdraw: record what people say of RUN, also while its
    trial runs. Verdict and figures stay as they were. An exclusion is by agreement, with two
    names; criteria are shown with and without the run.

    \b
    seatrial judge flc6evne6aub --cause F2 --comment "the file system was slow"
    seatrial judge flc6evne6aub --exclude --cause F2 --by "A. Smith" --by "B. Lee"

    With a TRIAL: judge its runs again, after a check, a tolerance or a reference was corrected.
    The checks and references are taken as they are now, the outputs as they were kept. Each run
    whose verdict changes gets an event with who, when and why; its first verdict stays in the
    journal. Figures that were recorded stay as they are, and those that had not been found are
    added, also where the verdict stays. Verdicts that are not of a check
    (timeout, node failure, cancelled) are not touched.
    """
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
