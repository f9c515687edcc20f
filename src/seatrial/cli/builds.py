"""``seatrial builds``: the builds that trials share."""

import time
from pathlib import Path

import click

from seatrial.cli import Folders, as_typed
from seatrial.cli.options import Parsed, format_option, machine_option
from seatrial.cli.query_common import show_time
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.detect import find_machine
from seatrial.execute.shared_builds import FOLDER, StoredBuild, remove, stored
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, listed, seconds, show_bytes

MAX_USERS = 3


@click.command("builds")
@machine_option
@click.option(
    "--remove",
    "removes",
    is_flag=True,
    help="Remove those that no trial uses, and those that were never finished.",
)
@click.option(
    "--older-than",
    type=Parsed(seconds),
    default=0.0,
    metavar="TIME",
    help="With --remove: only those made and last used before, e.g. 30d.",
)
@format_option("table", "json")
@click.pass_obj
def command(
    folders: Folders, machine: str | None, removes: bool, older_than: float, form: str
) -> int:
    """List the builds that trials share, or remove those that no trial uses.

    They lie in .builds beside the trials, or where `builds: {folder: ...}` of MACHINE says.

    \b
    seatrial builds
    seatrial builds --remove --older-than 30d
    """
    if older_than and not removes:
        raise UsageError("--older-than goes with --remove")
    folder = folders.trials / FOLDER
    if machine is not None:
        folder = Path(find_machine(machine).machine.builds.folder or folder)
    found = list(stored(folder))
    if removes:
        return _remove(found, older_than, folder)
    if form == "json":
        click.echo(to_json([_record(each) for each in found]), nl=False)
        return 0
    table = TextTable(
        "build | test~ | toolchain~ | compiler~?2 | size> | made?1 | by~?3 | used by~"
    )
    for each in found:
        table.add(*_row(each))
    if found:
        click.echo(table)
    for each in found:
        if each.record and each.record.anew:
            click.echo(folded(f"{_name(each)}: built anew: {plain_line(each.record.anew)}"))
    size = sum(each.record.bytes for each in found if each.record)
    where = plain_line(as_typed(folder))
    click.echo(folded(f"{count(len(found), 'build')} in {where}, {show_bytes(size)}"))
    return 0


def _row(each: StoredBuild) -> tuple[object, ...]:
    record = each.record
    name = _name(each)
    users = listed(each.users, MAX_USERS) or "nobody"
    if record is None:
        return name, "not published", "", "", "", "", "", users
    made = show_time(record.made)
    compiler = record.facts.get("cc", "")
    size = show_bytes(record.bytes)
    return name, record.test, record.toolchain, compiler, size, made, record.trial, users


def _name(each: StoredBuild) -> str:
    return f"{each.place.parent.name}/{each.place.name}"


def _record(each: StoredBuild) -> dict[str, object]:
    record = each.record
    about: dict[str, object] = {"path": str(each.place), "used_by": each.users}
    if record is not None:
        for name in (
            "key",
            "test",
            "toolchain",
            "machine",
            "made",
            "trial",
            "facts",
            "anew",
            "bytes",
        ):
            about[name] = getattr(record, name)
    return about


def _remove(found: list[StoredBuild], older_than: float, folder: Path) -> int:
    before = time.time() - older_than
    freed, gone = 0, 0
    for each in found:
        if each.users or each.used > before:
            continue
        try:
            if not remove(each):
                continue
        except OSError as error:
            raise UsageError(f"{each.place}: cannot be removed: {error.strerror}") from error
        gone += 1
        freed += each.record.bytes if each.record else 0
    left = len(found) - gone
    where = plain_line(as_typed(folder))
    removed = f"{count(gone, 'build')} removed, {show_bytes(freed)}; {left} left in {where}"
    click.echo(folded(removed))
    return 0
