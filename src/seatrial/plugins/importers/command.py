"""``seatrial import``: tests of other harnesses become a suite, their results become trials."""

from collections.abc import Sequence, Sized
from pathlib import Path

import click

from seatrial.cli import Folders
from seatrial.cli.options import list_option, text_option, together
from seatrial.errors import UsageError
from seatrial.files import replace_file
from seatrial.hooks import load, provided
from seatrial.plugins.importers import results_command
from seatrial.plugins.importers.oth_job_script import read_list, read_machine
from seatrial.plugins.importers.results import ImportNote, by_text
from seatrial.plugins.importers.results_command import (
    NOTES_FILE,
    NOTES_SHOWN,
    reasons_of,
    show_notes,
    write_notes,
)
from seatrial.units import count

_PATH = click.Path(path_type=Path)
# what every import of tests takes
suite_options = together(
    click.argument("path", metavar="PATH", type=click.Path(path_type=Path, exists=True)),
    click.option(
        "-o",
        "--output",
        required=True,
        type=_PATH,
        help="Folder of the new suite; it must be new or empty.",
    ),
)


@click.group("import")
def command() -> None:
    """Bring in what another harness has: its tests become a suite, its results trials."""


for _own in results_command.COMMANDS:
    command.add_command(_own)
for _importer in provided("seatrial_importers"):
    command.add_command(load(_importer.command))


@command.command("oth")
@suite_options
@click.option(
    "--machine-ini",
    type=click.Path(path_type=Path, exists=True, dir_okay=False),
    help="The harness's file of the machine, for values that tests take from the environment.",
)
@click.pass_obj
def import_oth(folders: Folders, path: Path, output: Path, machine_ini: Path | None) -> int:
    """Import tests of the OLCF Test Harness.

    Its results are brought in by `seatrial import oth-results`.

    PATH is a folder with applications (APPLICATION/TEST/Scripts/rgt_test_input.ini), at any depth,
    or an input file with lines `Test = APPLICATION TEST`. Nothing of it is executed or changed.
    Copies of a test that differ in a number become parameters of one test, where that is provably
    the same. What was not carried over is listed, with file and line, in SUITE/import.md.

    \b
    seatrial import oth applications -o suites/oth
    seatrial list suites/oth
    """
    from seatrial.plugins.importers.oth_suite import import_tests

    _require_new(output)
    try:
        environment = read_machine(machine_ini) if machine_ini else {}
        listed = read_list(path) if path.is_file() else None
        root = listed.folder if listed else path
        done = import_tests(root, output, environment, listed)
    except (ValueError, OSError) as error:
        raise UsageError(str(error)) from None
    otherwise = f"{root}: no test of the OLCF Test Harness could be read"
    _require_some(done.tests, done.notes, output, root, otherwise)
    outcome = f"{count(done.read, 'test')} became {count(len(done.tests), 'test')}"
    click.echo(f"{outcome} in {output}")
    for name, group in done.tests.items():
        if len(group.tests) > 1:
            sizes = [f"{axis} ({len(set(values))})" for axis, values in group.axes.items()]
            axes = (" with " if group.zipped else " x ").join(sizes)
            click.echo(f"  {name}: {len(group.tests)} copies, by {axes}")
    return _tell_rest(folders, root, output, outcome, done.notes)


@command.command("reframe-tests")
@suite_options
@list_option(
    "--library",
    "libraries",
    "FOLDER",
    "Sources that the tests import, such as a copy of ReFrame for its hpctestlib.",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
)
@text_option(
    "--system",
    "NAME[:PARTITION]",
    "System of ReFrame: decides what tests ask of current_system and current_partition.",
)
@click.pass_obj
def import_reframe_tests(
    folders: Folders, path: Path, output: Path, libraries: Sequence[Path], system: str
) -> int:
    """Import tests of ReFrame.

    Its results are brought in by `seatrial import reframe`.

    PATH is a Python source with tests, or a folder with these. The source is parsed and never
    executed. A test of which each statement is of a known form becomes a test of the suite. Another
    one is begun: its test.yaml has what was understood, and the rest as comments; it is left out of
    trials until you have finished it. SUITE/import.md lists what was not carried over, by reason.

    \b
    seatrial import reframe-tests checks -o suites/reframe
    seatrial list suites/reframe
    """
    from seatrial.plugins.importers.reframe import suite

    _require_new(output)
    try:
        done = suite.import_tests(path, output, libraries, system)
        output.mkdir(parents=True, exist_ok=True)  # plain: the folder that the user names
        replace_file(output / NOTES_FILE, suite.table_of(done, path).encode(), follow=True)
    except OSError as error:
        raise UsageError(str(error)) from None
    for kind, tests, _ in suite.by_reason(done.lost)[:NOTES_SHOWN]:
        click.echo(f"{tests:5}  {kind}")
    for note, tests, _ in suite.by_reason(done.notes)[:NOTES_SHOWN]:
        click.echo(f"{tests:5}  note: {note}")
    click.echo(f"{suite.summary_of(done)}, in {output}")
    click.echo(f"all reasons are in {output / NOTES_FILE}")
    if not done.tests:
        raise UsageError(_nothing_whole(path, done.found, suite.by_reason(done.lost)))
    click.echo(f"next   {folders.command('list', str(output))}")
    return 0


def _nothing_whole(path: Path, found: int, reasons: Sequence[tuple[str, int, object]]) -> str:
    """Return the message that no test was translated, with the most frequent reasons."""
    shown = ", ".join(f"{tests} for {kind}" for kind, tests, _ in reasons[:3])
    return f"{path}: 0 of {count(found, 'test')} of ReFrame{': ' if shown else ''}{shown}"


def _require_new(output: Path) -> None:
    """Raise UsageError if something is there, but for what an import without a test left."""
    if output.exists() and (
        not output.is_dir() or any(each.name != NOTES_FILE for each in output.iterdir())
    ):
        raise UsageError(f"{output}: is there already; name a folder that is new or empty")


def _require_some(
    tests: Sized, notes: Sequence[ImportNote], output: Path, path: Path, otherwise: str
) -> None:
    """Raise UsageError with the reasons if no test was brought in; all of them are in a file."""
    if tests:
        return
    grouped = by_text(notes)
    told = ""
    if notes:
        output.mkdir(parents=True, exist_ok=True)  # plain: the folder that the user names
        told = f"\nall notes are in {write_notes(output, path, otherwise, grouped)}"
    raise UsageError(f"{otherwise}{reasons_of(grouped)}{told}")


def _tell_rest(
    folders: Folders, path: Path, output: Path, outcome: str, notes: Sequence[ImportNote]
) -> int:
    """Show and keep what was not carried over; name the next command; return the exit code."""
    grouped = by_text(notes)
    show_notes(grouped)
    file = write_notes(output, path, outcome, grouped)
    if notes:
        click.echo(f"all notes are in {file}")
    click.echo(f"next   {folders.command('list', str(output))}")
    return 0
