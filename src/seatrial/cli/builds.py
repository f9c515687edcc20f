"""``seatrial builds``: the builds that trials share."""

import time
from pathlib import Path

import click

from seatrial.cli import Folders, as_typed
from seatrial.cli.query_common import show_time
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.execute.detect import find_machine
from seatrial.execute.shared_builds import FOLDER, StoredBuild, remove, stored
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, listed, show_bytes

MAX_USERS = 3


def builds(
    folders: Folders, machine: str | None, removes: bool, older_than: float, form: str
) -> int:
    """Do ``seatrial builds``; return the exit code."""
    if older_than and not removes:
        raise UsageError("--older-than goes with --remove")
    folder = folders.trials / FOLDER
    if machine is not None:
        folder = Path(find_machine(machine).machine.builds.folder or folder)
    builds = list(stored(folder))
    if removes:
        return _remove(builds, older_than, folder)
    if form == "json":
        click.echo(to_json([_record(build) for build in builds]), nl=False)
    else:
        _print(builds, folder)
    return 0


def _print(builds: list[StoredBuild], folder: Path) -> None:
    """Print a table of builds, why some were built anew, and the size of all."""
    if builds:
        columns = "build | test~ | toolchain~ | compiler~?2 | size> | made?1 | by~?3 | used by~"
        click.echo(TextTable(columns, map(_row, builds)))
    published = [(build, build.record) for build in builds if build.record]
    for build, record in published:
        if record.anew:
            click.echo(folded(f"{_name(build)}: built anew: {plain_line(record.anew)}"))
    size = sum(record.bytes for _, record in published)
    where = plain_line(as_typed(folder))
    click.echo(folded(f"{count(len(builds), 'build')} in {where}, {show_bytes(size)}"))


def _row(build: StoredBuild) -> tuple[object, ...]:
    record = build.record
    name = _name(build)
    users = listed(build.users, MAX_USERS) or "nobody"
    if record is None:
        return name, "not published", "", "", "", "", "", users
    made = show_time(record.made)
    compiler = record.facts.get("cc", "")
    size = show_bytes(record.bytes)
    return name, record.test, record.toolchain, compiler, size, made, record.trial, users


def _name(build: StoredBuild) -> str:
    return f"{build.place.parent.name}/{build.place.name}"


_SHOWN = ("key", "test", "toolchain", "machine", "made", "trial", "facts", "anew", "bytes")


def _record(build: StoredBuild) -> dict[str, object]:
    about = {} if build.record is None else {name: getattr(build.record, name) for name in _SHOWN}
    return {"path": str(build.place), "used_by": build.users, **about}


def _remove(builds: list[StoredBuild], older_than: float, folder: Path) -> int:
    before = time.time() - older_than
    freed, gone = 0, 0
    for build in builds:
        if build.users or build.used > before:
            continue
        try:
            if not remove(build):
                continue
        except OSError as error:
            raise UsageError(f"{build.place}: cannot be removed: {error.strerror}") from error
        gone += 1
        freed += build.record.bytes if build.record else 0
    left = len(builds) - gone
    where = plain_line(as_typed(folder))
    removed = f"{count(gone, 'build')} removed, {show_bytes(freed)}; {left} left in {where}"
    click.echo(folded(removed))
    return 0
