"""``seatrial rehearse``: run a plan in virtual time."""

import sys
from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders, options, rehearsal_page
from seatrial.rehearse.report import as_record, rehearse_plan
from seatrial.rehearse.summary import Rehearsed

_PATH = click.Path(path_type=Path)


@click.command("rehearse")
@click.argument("plans", nargs=-1, required=True, metavar="PLAN...", type=_PATH)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Seed of all chance."
)
@click.option(
    "--seeds",
    type=click.IntRange(min=1),
    default=1,
    help="Rehearse with so many seeds, from --seed on: how likely is each criterion met?",
)
@click.option(
    "--days",
    type=options.FiniteRange(min=0, min_open=True, max=3650),
    help="Duration of sustained components, instead of the plan's.",
)
@options.components_option
@options.phases_option
@click.option("--compare", is_flag=True, help="Several plans, side by side.")
@options.text_option("--name", "TAG", "Tag of the trial that is written.")
@options.json_option
@click.pass_obj
def command(
    folders: Folders,
    /,
    plans: tuple[Path, ...],
    days: float | None,
    compare: bool,
    name: str,
    as_json: bool,
    **chosen: Any,
) -> int:
    """Rehearse a plan: the same conductor on a simulated machine, in virtual time.

    PLAN is a plan.yaml. Its trials are written to the folder of trials, marked as rehearsed, and
    every command works on them. Nothing is built, and no job is run. Exit code 1: a criterion is
    not met.

    \b
    seatrial rehearse plans/stability.yaml --days 2
    seatrial rehearse plans/stability.yaml --seeds 100
    seatrial rehearse --compare plans/stability.yaml plans/other.yaml
    """
    if len(plans) > 1 and not compare:
        raise click.UsageError("several plans are compared: add --compare, or name one")
    if compare and len(plans) < 2:
        raise click.UsageError("--compare: name two plans or more")
    if compare and name:
        raise click.UsageError("--name: each plan has a tag of its own; leave it out")
    reports = [
        rehearse_plan(
            path,
            trials=folders.trials,
            store=folders.store,
            days=days,
            name=name,
            progress=_show_progress if sys.stderr.isatty() else None,
            **chosen,
        )
        for path in plans
    ]
    for what, why in dict.fromkeys(each for report in reports for each in report.left_out):
        click.echo(f"left out: {what}: {why}", err=True)
    for tag in [one.tag for report in reports for one in report.first if days and _no_run(one)]:
        text = f"--days {days:g}: {tag} has no run: its builds and waits take longer than that"
        click.echo(f"{text}; give more days", err=True)
    if as_json:
        from seatrial.store.interchange import to_json

        records = [as_record(report) for report in reports]
        click.echo(to_json(records if compare else records[0]), nl=False)
    elif compare:
        click.echo(rehearsal_page.side_by_side(reports))
    else:
        click.echo(rehearsal_page.page(reports[0]))
        runs = (folders.command("runs", "--trial", one.tag) for one in reports[0].first)
        click.echo("\nIts runs: " + f"\n{'':10}".join(runs))
    if any(one.why for report in reports for one in report.first):
        return 3
    return 1 if any(report.missed for report in reports) else 0


def _no_run(trial: Rehearsed) -> bool:
    """Return True if a trial is complete and no run of it has ended."""
    return not trial.why and not any(test.accepted + test.others for test in trial.tests)


def _show_progress(done: int, seeds: int) -> None:
    """Show progress on the terminal, in a line that disappears at the end."""
    end = "\r\033[K" if done == seeds else ""
    click.echo(f"\r{done} of {seeds} seeds{end}", nl=False, err=True)
