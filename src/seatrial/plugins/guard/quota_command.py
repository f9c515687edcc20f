"""``seatrial quota``: jobs that Slurm refuses because of quotas."""

import asyncio
import pwd
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import click
import msgspec

from seatrial.cli.options import json_option, list_option, path_option
from seatrial.cli.query_common import tell
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.model.expressions import ExpressionError
from seatrial.plugins.guard import quota
from seatrial.plugins.guard.quota import NO_QUOTA, Quota, QuotaError, SubmitLimit, SubmitRules
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, listed, show_number

NEW_AT_ONCE, NEW_SHARE = 10, 0.2  # users who get limits at once without a question; of all users


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
    click.echo(quota.write_filter(folder))
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
    rules = quota.load(file)
    users = list(names) or asyncio.run(quota.users_of(rules))
    uids = _uids(users, bool(names))
    limits = _limits(rules, list(uids))
    new = [
        user
        for user, limits_of_user in limits.items()
        if limits_of_user and not quota.was_limited(folder, uids[user])
    ]
    many = len(new) > max(NEW_AT_ONCE, NEW_SHARE * len(users))
    held = new if many and not names and not yes else []
    until_s = int(time.time() + rules.keep.seconds)
    for user in limits.keys() - set(held):
        quota.write_user(folder, uids[user], limits[user], until_s)
    limited, failures = sum(map(bool, limits.values())), len(users) - len(limits)
    click.echo(f"{count(len(users), 'user')}: {limited} with limits, {failures} not asked")
    if held:
        tell(
            f"{len(held)} of them had no limit before: {listed(held, 4)}. So many at once are "
            "mostly a wrong limit or a wrong answer; their files were not written. Look with "
            "`seatrial quota explain`; if it is meant, say --yes"
        )
    return 1 if failures or held else 0


def _uids(users: Iterable[str], named: bool) -> dict[str, int]:
    """Return the numbers of users. Tell which are none of this host; raises UsageError instead if
    they were ``named``."""
    uids = {}
    for user in users:
        try:
            uids[user] = pwd.getpwnam(user).pw_uid
        except KeyError:
            text = f"{user}: is no user of this host; see `getent passwd`"
            if named:
                raise UsageError(text) from None
            click.echo(plain_line(text), err=True)
    return uids


def _limits(rules: SubmitRules, users: list[str]) -> dict[str, list[SubmitLimit]]:
    """Ask for the quotas of users. Return the limits of those that could be asked for."""
    limits = {}
    for user, answer in asyncio.run(quota.quotas_of_all(rules, users)).items():
        try:
            if isinstance(answer, QuotaError):
                raise answer
            limits[user] = quota.refused(rules, answer)
        except (QuotaError, ExpressionError) as error:
            click.echo(plain_line(str(error)), err=True)
    return limits


@command.command("explain")
@click.argument("user")
@_rules_option
@json_option
def explain(user: str, file: Path, as_json: bool) -> int:
    """Show the quotas of USER, and which jobs are refused.

    Quotas are asked for now. Exits 1 if some jobs are refused.
    """
    rules = quota.load(file)
    quotas = asyncio.run(quota.quotas_of(rules, user))
    limits = quota.refused(rules, quotas)
    if as_json:
        record = {"quotas": {n: q._asdict() for n, q in quotas.items()}, "refused": limits}
        click.echo(to_json(msgspec.to_builtins(record)), nl=False)
    else:
        _print(rules, user, quotas, [limit.name for limit in limits])
    return 1 if limits else 0


def _print(rules: SubmitRules, user: str, quotas: dict[str, Quota], names: list[str]) -> None:
    table = TextTable("quota | used GiB> | quota GiB> | limit GiB> | files> | quota> | limit>")
    for name, figures in quotas.items():
        table.add(name, *("none" if v == NO_QUOTA else show_number(v) for v in figures))
    click.echo(table)
    for limit in rules.limits:
        word = "refused" if limit.name in names else "not refused"
        which = ", ".join(_which(limit))
        jobs = f"jobs {which}" if which else "all jobs"
        click.echo(folded(f"{limit.name}: {jobs} {word} ({plain_line(limit.refuse)})"))
        if limit.name in names:
            click.echo(folded(f"  {plain_line(limit.message)}"))
    if not rules.limits:
        click.echo(f"no limits for {plain_line(user)}")


def _which(limit: SubmitLimit) -> Iterator[str]:
    """Yield what jobs a limit is about."""
    if limit.nodes_from > 1:
        yield f"of {limit.nodes_from} nodes or more"
    if limit.partitions:
        yield f"in {', '.join(limit.partitions)}"
    if limit.accounts:
        yield f"of {', '.join(limit.accounts)}"
