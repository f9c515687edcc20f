"""``seatrial issue``: the issues that were found in an acceptance."""

from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders, options, plan_records
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.journal.events import IssueRecorded
from seatrial.results.store import export, queries
from seatrial.results.store import export as interchange
from seatrial.show.text import table_text
from seatrial.show.trial import issues_table

SEVERITIES = ("critical", "major", "minor")

_by_option = options.list_option("--by", "NAME", "Who says so; may be repeated.", required=True)
_issue_argument = click.argument("issue", type=click.IntRange(min=1))
_about_options = options.together(
    options.text_option("--component", "NAME", "Component of the plan."),
    click.option("--severity", type=click.Choice(SEVERITIES), help="How bad."),
    options.text_option("--owner", "NAME", "Who takes care of it."),
    options.list_option("--run", "runs", "RUN", "A run; may be repeated."),
    options.text_option("--nodes", "NODES", "Nodes, such as n[017-018]."),
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
@options.plan_argument
@click.argument("text", type=str.strip)
@_about_options
@_by_option
def open_issue(folders: Folders, /, path: Path, name: str, **given: Any) -> int:
    """Open an issue of PLAN. It gets a number, from 1.

    Exit code 3: it is left for the owner of the plan's records to record.
    """
    if not given["text"]:
        raise UsageError("TEXT: say what the issue is")
    return _record(folders, path, name, state="open", **given)


@command.command("change")
@options.plan_argument
@_issue_argument
@_about_options
@options.text_option("--text", "TEXT", "What the issue is, in other words.", type=str.strip)
@options.text_option("--comment", "TEXT", "A remark.", type=str.strip)
@click.option("--reopen", is_flag=True, help="It is open again.")
@_by_option
def change_issue(
    folders: Folders,
    /,
    path: Path,
    name: str,
    issue: int,
    reopen: bool,
    by: tuple[str, ...],
    **changes: Any,
) -> int:
    """Change an issue of PLAN: what is not given stays."""
    if not (reopen or any(changes.values())):
        raise UsageError("say what changes, such as --owner or --comment")
    state = "open" if reopen else ""
    return _record(folders, path, name, by, issue=issue, state=state, **changes)


@command.command("close")
@options.plan_argument
@_issue_argument
@options.value_option("--comment", "TEXT", "How it was settled.", type=str.strip, required=True)
@_by_option
def close_issue(folders: Folders, /, path: Path, name: str, **given: Any) -> int:
    """Close an issue of PLAN. `issue change --reopen` opens it again."""
    if not given["comment"]:
        raise UsageError("--comment: say how the issue was settled")
    return _record(folders, path, name, state="closed", **given)


@command.command("list")
@options.plan_argument
@click.option("--all", "closed", is_flag=True, help="Those that are closed, too.")
@options.format_option("table", "json")
def list_issues(folders: Folders, /, path: Path, name: str, closed: bool, form: str) -> int:
    """List the issues of PLAN that are open, the most severe first."""
    records = plan_records.Recording(folders, path, name).read()
    found = list(records.issues.values()) if closed else records.open_issues
    if form == "json":
        click.echo(interchange.to_json([export.record(issue) for issue in found]), nl=False)
    elif found:
        click.echo(table_text(issues_table(found)))
    else:
        click.echo("no issue" if closed else "no issue is open")
    return 0


def _record(
    folders: Folders,
    path: Path,
    name: str,
    by: tuple[str, ...],
    severity: str | None = None,
    runs: tuple[str, ...] = (),
    **fields: Any,
) -> int:
    """Record a new issue, or a change of one; return the exit code."""
    whole, names = _whole(folders, runs), options.names_of(by)
    event = IssueRecorded(severity=severity or "", runs=whole, names=names, **fields)
    return plan_records.Recording(folders, path, name).issue(event)


def _whole(folders: Folders, runs: tuple[str, ...]) -> list[str]:
    """Return the whole ids of runs. Raises UsageError for one that does not exist."""
    if not runs:
        return []

    with opened(folders) as store:
        found = [queries.run(store, run) for run in runs]
    return [f"{run.trial}/{run.run_id}" for run in found]
