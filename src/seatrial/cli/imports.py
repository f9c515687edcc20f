"""``seatrial import``: tests of other harnesses become a suite, their results become trials."""

from __future__ import annotations

from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.import_notes import NOTES_SHOWN, show_notes, write_notes
from seatrial.cli.import_results import (
    import_csv,
    import_jube,
    import_oth_results,
    import_pavilion,
    import_reframe,
)
from seatrial.errors import UsageError
from seatrial.units import count


@click.group("import")
def command() -> None:
    """Bring in what another harness has: its tests become a suite, its results trials."""


command.add_command(import_oth_results)
command.add_command(import_csv)
command.add_command(import_jube)
command.add_command(import_pavilion)
command.add_command(import_reframe)


@command.command("oth")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder of the new suite.",
)
@click.option(
    "--machine-ini",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The harness's file of the machine, for values that tests take from the environment.",
)
@click.pass_obj
def import_oth(folders: Folders, path: Path, output: Path, machine_ini: Path | None) -> int:
    """Import tests of the OLCF Test Harness.

    PATH is a folder with applications (APPLICATION/TEST/Scripts/rgt_test_input.ini), at any depth,
    or an input file with lines `Test = APPLICATION TEST`. Nothing of it is executed or changed.
    Copies of a test that differ in a number become parameters of one test, where that is provably
    the same. What was not carried over is listed, with file and line, in SUITE/import.md.

    \b
    seatrial import oth applications -o suites/oth
    seatrial list suites/oth
    """
    from seatrial.importers.notes import by_text
    from seatrial.importers.oth.ini import read_list, read_machine
    from seatrial.importers.oth.suite import import_tests

    _require_new(output)
    try:
        environment = read_machine(machine_ini) if machine_ini else {}
        wanted = read_list(path) if path.is_file() else None
        root = wanted.folder if wanted else path
        only = [(app, test) for app, test, _ in wanted.tests] if wanted else None
        done = import_tests(root, output, environment, only)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    if not done.tests:
        reasons = "".join(f"\n{note.place}: {note.text}" for note in done.notes[:NOTES_SHOWN])
        raise UsageError(f"{root}: no test of the OLCF Test Harness could be read{reasons}")
    grouped = by_text(done.notes)
    click.echo(f"{count(done.read, 'test')} became {count(len(done.tests), 'test')} in {output}")
    for name, group in done.tests.items():
        if len(group.tests) > 1:
            sizes = [f"{axis} ({len(set(values))})" for axis, values in group.axes.items()]
            axes = (" with " if group.zipped else " x ").join(sizes)
            click.echo(f"  {name}: {len(group.tests)} copies, by {axes}")
    show_notes(grouped)
    write_notes(output / "import.md", path, grouped)
    click.echo(f"all notes are in {output / 'import.md'}")
    click.echo(f"next   {folders.command('list', str(output))}")
    return 0


@command.command("reframe-tests")
@click.argument("path", metavar="PATH", type=click.Path(path_type=Path, exists=True))
@click.option(
    "-o",
    "--output",
    required=True,
    type=click.Path(path_type=Path),
    help="Folder of the new suite.",
)
@click.pass_obj
def import_reframe_tests(folders: Folders, path: Path, output: Path) -> int:
    """Import simple tests of ReFrame.

    PATH is a Python source with tests, or a folder with these. The source is parsed and never
    executed. A test of which each statement is of a known form becomes a test of the suite; others
    are listed, with file, line and reason, in SUITE/import.md.

    \b
    seatrial import reframe-tests checks -o suites/reframe
    seatrial list suites/reframe
    """
    from seatrial.importers.notes import by_text
    from seatrial.importers.reframe.suite import import_tests

    _require_new(output)
    try:
        done = import_tests(path, output)
    except OSError as error:
        raise UsageError(str(error)) from None
    if not done.tests:
        reasons = "".join(f"\n{note.place}: {note.text}" for note in done.notes[:NOTES_SHOWN])
        raise UsageError(f"{path}: no test of ReFrame could be translated{reasons}")
    grouped = by_text(done.notes)
    click.echo(f"{len(done.tests)} of {count(done.found, 'test')} were translated, to {output}")
    show_notes(grouped)
    write_notes(output / "import.md", path, grouped)
    click.echo(f"all notes are in {output / 'import.md'}")
    click.echo(f"next   {folders.command('list', str(output))}")
    return 0


def _require_new(output: Path) -> None:
    if output.exists() and (not output.is_dir() or any(output.iterdir())):
        raise UsageError(f"{output}: is there already; name a folder that is new or empty")
