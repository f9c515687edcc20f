"""``seatrial issue``: the issues that were found in an acceptance."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.cli import Folders
from seatrial.cli.accept_options import plan_argument
from seatrial.cli.options import format_option, together
from seatrial.errors import UsageError
from seatrial.lazy import LazyModule

if TYPE_CHECKING:
    from seatrial.cli import plan_records
else:  # most of Seatrial
    plan_records = LazyModule("seatrial.cli.plan_records")

SEVERITIES = ("critical", "major", "minor")

_by_option = click.option(
    "--by", multiple=True, metavar="NAME", required=True, help="Who says so; may be repeated."
)
_about_options = together(
    click.option("--component", default="", metavar="NAME", help="Component of the plan."),
    click.option("--severity", type=click.Choice(SEVERITIES), help="How bad."),
    click.option("--owner", default="", metavar="NAME", help="Who takes care of it."),
    click.option("--run", "runs", multiple=True, metavar="RUN", help="A run; may be repeated."),
    click.option("--nodes", default="", metavar="NODES", help="Nodes, such as n[017-018]."),
)


@click.group("issue", subcommand_metavar="COMMAND PLAN [ARGS]...")
def command() -> None:
    """Keep the issues that were found in an acceptance.

    They are events of the plan's records, a trial of its own with the tag PLAN-records. The report
    has those that are open on its first page.

    \b
    seatrial issue open plan.yaml "n017 is slow" --nodes n017 --by A
    seatrial issue change plan.yaml 1 --owner B --by A
    seatrial issue close plan.yaml 1 --comment "a DIMM" --by A
    seatrial issue list plan.yaml
    """


@command.command("open")
@plan_argument
@click.argument("text")
@_about_options
@_by_option
def open_issue(
    folders: Folders,
    /,
    path: Path,
    name: str,
    text: str,
    component: str,
    severity: str | None,
    owner: str,
    runs: tuple[str, ...],
    nodes: str,
    by: tuple[str, ...],
) -> int:
    """Open an issue of PLAN. It gets a number, from 1.

    Exit code 3: it is left for the owner of the plan's records to record.
    """
    from seatrial.journal.events import IssueRecorded

    if not text.strip():
        raise UsageError("TEXT: say what the issue is")
    event = IssueRecorded(
        state="open",
        text=text.strip(),
        component=component,
        severity=severity or "",
        owner=owner,
        runs=_whole(folders, runs),
        nodes=nodes,
        names=_names(by),
    )
    return plan_records.Recording(folders, path, name).issue(event)


@command.command("change")
@plan_argument
@click.argument("issue", type=click.IntRange(min=1))
@_about_options
@click.option("--text", default="", metavar="TEXT", help="What the issue is, in other words.")
@click.option("--comment", default="", metavar="TEXT", help="A remark.")
@click.option("--reopen", is_flag=True, help="It is open again.")
@_by_option
def change_issue(
    folders: Folders,
    /,
    path: Path,
    name: str,
    issue: int,
    component: str,
    severity: str | None,
    owner: str,
    runs: tuple[str, ...],
    nodes: str,
    text: str,
    comment: str,
    reopen: bool,
    by: tuple[str, ...],
) -> int:
    """Change an issue of PLAN: what is not given stays."""
    from seatrial.journal.events import IssueRecorded

    if not (component or severity or owner or runs or nodes or text or comment or reopen):
        raise UsageError("say what changes, such as --owner or --comment")
    event = IssueRecorded(
        issue=issue,
        state="open" if reopen else "",
        text=text.strip(),
        comment=comment.strip(),
        component=component,
        severity=severity or "",
        owner=owner,
        runs=_whole(folders, runs),
        nodes=nodes,
        names=_names(by),
    )
    return plan_records.Recording(folders, path, name).issue(event)


@command.command("close")
@plan_argument
@click.argument("issue", type=click.IntRange(min=1))
@click.option("--comment", required=True, metavar="TEXT", help="How it was settled.")
@_by_option
def close_issue(
    folders: Folders, /, path: Path, name: str, issue: int, comment: str, by: tuple[str, ...]
) -> int:
    """Close an issue of PLAN. `issue change --reopen` opens it again."""
    from seatrial.journal.events import IssueRecorded

    if not comment.strip():
        raise UsageError("--comment: say how the issue was settled")
    event = IssueRecorded(issue=issue, state="closed", comment=comment.strip(), names=_names(by))
    return plan_records.Recording(folders, path, name).issue(event)


@command.command("list")
@plan_argument
@click.option("--all", "closed", is_flag=True, help="Those that are closed, too.")
@format_option("table", "json")
def list_issues(folders: Folders, /, path: Path, name: str, closed: bool, form: str) -> int:
    """List the issues of PLAN that are open, the most severe first."""
    from seatrial.cli.plan_tables import issues_table
    from seatrial.store.export import record, to_json

    records = plan_records.Recording(folders, path, name).read()
    found = list(records.issues.values()) if closed else records.open_issues
    if form == "json":
        click.echo(to_json([record(issue) for issue in found]), nl=False)
    elif found:
        click.echo(issues_table(found))
    else:
        click.echo("no issue" if closed else "no issue is open")
    return 0


def _whole(folders: Folders, runs: tuple[str, ...]) -> list[str]:
    """Return the whole ids of runs. Raises UsageError for one that does not exist."""
    if not runs:
        return []
    from seatrial.cli.query_common import opened
    from seatrial.store import queries

    with opened(folders) as store:
        found = [queries.run(store, run) for run in runs]
    return [f"{run.trial}/{run.run_id}" for run in found]


def _names(by: tuple[str, ...]) -> list[str]:
    names = [name.strip() for name in by if name.strip()]
    if not names:
        raise UsageError("--by: give a name")
    return names
