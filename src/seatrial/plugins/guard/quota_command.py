"""``seatrial quota``: jobs that Slurm refuses because of quotas."""

import asyncio
import pwd
import time
from pathlib import Path

import click
import msgspec

from seatrial.cli.options import json_option, list_option, path_option
from seatrial.cli.query_common import tell
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.model.expressions import ExpressionError
from seatrial.plugins.guard import quota as sources
from seatrial.plugins.guard import quota as submit_rules
from seatrial.plugins.guard import quota as user_files
from seatrial.plugins.guard.quota import NO_QUOTA, Quota, QuotaError, SubmitLimit, SubmitRules
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, listed, show_number

NEW_AT_ONCE, NEW_MOST = 10, 0.2  # users who get limits at once without a question; of all users


_rules_option = path_option(
    "--rules",
    "file",
    "FILE",
    "The quotas and the limits of a site.",
    default=Path("submit.yaml"),
    show_default=True,
)


_folder = click.argument("folder", type=click.Path(path_type=Path, file_okay=False), metavar="DIR")


@click.group("quota")
def command() -> None:
    """Let Slurm refuse jobs of users who are over a quota.

    `refresh` asks for quotas, by cron; slurmctld reads one small file a job.
    """


@command.command("write")
@_folder
def write(folder: Path) -> int:
    """Write job_submit.lua for Slurm in DIR."""
    click.echo(user_files.write_filter(folder))
    return 0


@command.command("refresh")
@_folder
@_rules_option
@list_option("--user", "names", "NAME", "Only this user.")
@click.option("-y", "--yes", is_flag=True, help="Limit however many users are new at once.")
def refresh(folder: Path, file: Path, names: tuple[str, ...], yes: bool) -> int:
    """Ask for the quotas of users, and write a file for each in DIR.

    Exits 1 if one could not be asked for: the user's file stays, and no longer counts when it is
    stale. So it does if more than a fifth of the users (and more than 10) would be limited that
    were not before: their files are not written without --yes.
    """
    rules = submit_rules.load(file)
    users = list(names) or asyncio.run(sources.users_of(rules))
    uids: dict[str, int] = {}
    for user in users:
        try:
            uids[user] = _uid(user)
        except UsageError as error:
            if names:
                raise
            click.echo(plain_line(str(error)), err=True)
    now = int(time.time())
    failures = len(users) - len(uids)
    limits_of: dict[str, list[SubmitLimit]] = {}
    for user, answer in asyncio.run(sources.asked_of_all(rules, list(uids))).items():
        try:
            if isinstance(answer, QuotaError):
                raise answer
            limits = submit_rules.refused(rules, answer)
        except (QuotaError, ExpressionError) as error:
            click.echo(plain_line(str(error)), err=True)
            failures += 1
            continue
        limits_of[user] = limits
    new = [
        user
        for user, limits in limits_of.items()
        if limits and not user_files.was_limited(folder, uids[user])
    ]
    held = [] if names or yes or len(new) <= max(NEW_AT_ONCE, NEW_MOST * len(users)) else new
    until_s = now + int(rules.keep.seconds)
    for user in limits_of.keys() - set(held):
        user_files.write_user(folder, uids[user], limits_of[user], until_s)
    limited = sum(map(bool, limits_of.values()))
    click.echo(f"{count(len(users), 'user')}: {limited} with limits, {failures} not asked")
    if held:
        tell(
            f"{len(held)} of them had no limit before: {listed(held, 4)}. So many at once are "
            "mostly a wrong limit or a wrong answer; their files were not written. Look with "
            "`seatrial quota explain`; if it is meant, say --yes"
        )
    return 1 if failures or held else 0


@command.command("explain")
@click.argument("user")
@_rules_option
@json_option
def explain(user: str, file: Path, as_json: bool) -> int:
    """Show the quotas of USER, and which jobs are refused.

    Quotas are asked for now. Exits 1 if some jobs are refused.
    """
    rules = submit_rules.load(file)
    quotas = asyncio.run(sources.asked(rules, user))
    limits = submit_rules.refused(rules, quotas)
    if as_json:
        found = {"quotas": {n: q._asdict() for n, q in quotas.items()}, "refused": limits}
        click.echo(to_json(msgspec.to_builtins(found)), nl=False)
    else:
        _print(rules, user, quotas, [limit.name for limit in limits])
    return 1 if limits else 0


def _print(rules: SubmitRules, user: str, quotas: dict[str, Quota], names: list[str]) -> None:
    table = TextTable("quota | used GiB> | quota GiB> | limit GiB> | files> | quota> | limit>")
    for name, quota in quotas.items():
        table.add(name, *("none" if v == NO_QUOTA else show_number(v) for v in quota))
    click.echo(table)
    for limit in rules.limits:
        word = "refused" if limit.name in names else "not refused"
        which = ", ".join(
            [
                *([f"of {limit.nodes_from} nodes or more"] if limit.nodes_from > 1 else []),
                *([f"in {', '.join(limit.partitions)}"] if limit.partitions else []),
                *([f"of {', '.join(limit.accounts)}"] if limit.accounts else []),
            ]
        )
        jobs = f"jobs {which}" if which else "all jobs"
        click.echo(folded(f"{limit.name}: {jobs} {word} ({plain_line(limit.refuse)})"))
        if limit.name in names:
            click.echo(folded(f"  {plain_line(limit.message)}"))
    if not rules.limits:
        click.echo(f"no limits for {plain_line(user)}")


def _uid(user: str) -> int:
    try:
        return pwd.getpwnam(user).pw_uid
    except KeyError:
        raise UsageError(f"{user}: is no user of this host; see `getent passwd`") from None
