"""``seatrial import``: tests of other harnesses become a suite, their results become trials."""

import time
from collections import Counter
from collections.abc import Sequence, Sized
from pathlib import Path
from typing import Any

import click

from seatrial.account import account
from seatrial.cli import Folders
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.files import replace_file
from seatrial.plugins.importers.oth_job_script import read_list, read_machine
from seatrial.plugins.importers.results import (
    ImportedResults,
    ImportedRun,
    ImportNote,
    ImportSource,
    MadeTrial,
    by_text,
    make_trial,
    note_on,
)
from seatrial.plugins.importers.table_results import Columns, read_csv, read_jube
from seatrial.units import SECOND_NS, count

MAX_METRICS_SHOWN = 6
NOTES_FILE = "import.md"
NOTES_SHOWN = 10
PLACES_SHOWN = 2
NOT_ALL = 3  # exit code: a trial was made, and something could not be brought
LATEST_AHEAD_S = 86_400  # a time in a zone that is not known may be a day ahead

Grouped = Sequence[tuple[str, Sequence[ImportNote]]]


def import_oth_results(
    folders: Folders, path: Path, tag: str, machine: str, by: str, log_tag: str
) -> int:
    """Do ``seatrial import oth-results``; return the exit code."""
    from seatrial.plugins.importers.oth_results import read_results

    results = read_results(path, machine, log_tag)
    return make(folders, "OLCF Test Harness", path, tag, by, results)


def _with_directions(given: dict[str, Any]) -> dict[str, Any]:
    """Return options, with the ``directions`` of metrics in place of --higher and --lower."""
    higher, lower = given.pop("higher"), given.pop("lower")
    directions = dict.fromkeys(higher, "higher") | dict.fromkeys(lower, "lower")
    return {**given, "directions": directions}


def import_reframe(folders: Folders, path: Path, tag: str, by: str, **given: Any) -> int:
    """Do ``seatrial import reframe``; return the exit code."""
    from seatrial.plugins.importers.reframe.results import read_results

    results = read_results(path, **_with_directions(given))
    return make(folders, "ReFrame", path, tag, by, results)


def named_figure(text: str) -> tuple[str, str]:
    """Return the column and the unit of COLUMN=UNIT."""
    name, _, unit = text.partition("=")
    return name.strip(), unit.strip()


def _columns(given: dict[str, Any]) -> Columns:
    """Return the columns that options name, with the directions of metrics."""
    return Columns(**_with_directions({**given, "figures": dict(given["figures"])}))


def import_csv(folders: Folders, path: Path, tag: str, machine: str, by: str, **given: Any) -> int:
    """Do ``seatrial import csv``; return the exit code."""
    results = read_csv(path, _columns(given))
    return make(folders, "CSV", path, tag, by, results._replace(machine=machine))


def import_jube(folders: Folders, path: Path, tag: str, machine: str, by: str, **given: Any) -> int:
    """Do ``seatrial import jube``; return the exit code."""
    results = read_jube(path, _columns(given))
    return make(folders, "JUBE", path, tag, by, results._replace(machine=machine))


def import_pavilion(folders: Folders, path: Path, tag: str, by: str, **given: Any) -> int:
    """Do ``seatrial import pavilion``; return the exit code."""
    from seatrial.plugins.importers.pavilion import read_results

    results = read_results(path, **_with_directions(given))
    return make(folders, "Pavilion2", path, tag, by, results)


def make(
    folders: Folders, tool: str, path: Path, tag: str, by: str, results: ImportedResults
) -> int:
    """Make a trial of what a reader found, and tell people what is in it."""
    results = _without_future(results)
    if not results.runs:
        reasons = reasons_of(by_text(results.notes))
        raise UsageError(f"{path}: no result of {tool} could be imported{reasons}")
    if not results.machine:
        raise UsageError(f"{path}: does not name the machine; give it with --machine NAME")
    source = ImportSource(tool, path, results.machine, by.strip() or account())
    made = make_trial(folders.trials, tag, source, results)
    outcome = _show_results(made, results.machine)
    notes = [*results.notes, *made.notes]
    grouped = by_text(notes)
    show_notes(grouped)
    file = write_notes(made.folder.path, path, outcome, grouped)
    if notes:
        click.echo(f"all notes are in {file}")
    metric = _show_figures(made.runs)
    click.echo(f"next   {folders.command('history', metric, '--trial', made.folder.tag)}")
    return NOT_ALL if any(note.lost for note in notes) else 0


def _show_results(made: MadeTrial, machine: str) -> str:
    """Print and return how many results became the trial; print how many other trials have
    already."""
    verdicts = Counter(run.code == 0 for run in made.runs)
    tests = {run.test for run in made.runs}
    of_what = f"{count(len(made.runs), 'result')} of {count(len(tests), 'test')} on {machine}"
    outcome = f"{of_what}, {verdicts[True]:,} passed, {verdicts[False]:,} did not"
    click.echo(f"{made.folder.tag}: {outcome}")
    for other, number in made.known.items():
        click.echo(f"      {count(number, 'result')} left out, as {other} has them")
    return outcome


def _show_figures(runs: Sequence[ImportedRun]) -> str:
    """Print the most frequent metrics, and return the first of them."""
    metrics = Counter(figure.name for run in runs for figure in run.figures)
    names = [name for name, _ in metrics.most_common(MAX_METRICS_SHOWN)]
    if not names:
        return "elapsed"
    click.echo(f"figures: {', '.join(names)}{', ...' if len(metrics) > len(names) else ''}")
    return names[0]


def _without_future(results: ImportedResults) -> ImportedResults:
    """Return the results without those of a time to come, each with a note: they would be the
    latest for ever."""
    latest = time.time_ns() + LATEST_AHEAD_S * SECOND_NS
    text = "its time is in the future: left out"
    notes = [note_on(run, text) for run in results.runs if run.time > latest]
    runs = [run for run in results.runs if run.time <= latest]
    return results._replace(runs=runs, notes=[*results.notes, *notes])


# ---- what an import did not carry over ----------------------------------------------------


def reasons_of(grouped: Grouped) -> str:
    """Return the first reasons why nothing was imported, a line each with its first place."""
    lines = []
    for text, notes in grouped[:NOTES_SHOWN]:
        others = f" (and {count(len(notes) - 1, 'other place')})" if len(notes) > 1 else ""
        lines.append(f"\n{notes[0].place}: {text}{others}")
    if len(grouped) > NOTES_SHOWN:
        lines.append(f"\nand {count(len(grouped) - NOTES_SHOWN, 'other reason')}")
    return "".join(lines)


def show_notes(grouped: Grouped) -> None:
    """Print the first notes, each with its first places."""
    for text, places in grouped[:NOTES_SHOWN]:
        click.echo(f"note: {text}")
        for note in places[:PLACES_SHOWN]:
            click.echo(f"      {note.place}")
        if len(places) > PLACES_SHOWN:
            click.echo(f"      and {count(len(places) - PLACES_SHOWN, 'other place')}")
    if len(grouped) > NOTES_SHOWN:
        click.echo(f"and {count(len(grouped) - NOTES_SHOWN, 'other note')}")


def write_notes(folder: Path, path: Path, outcome: str, grouped: Grouped) -> Path:
    """Write ``outcome`` and all notes on the import of ``path`` to a folder: a table of reasons,
    then the places of each. Return the file."""
    root = path.absolute()
    lines = [f"# Imported from {root}\n\n{outcome}.\n\n"]
    if grouped:
        lines.append("| reason | not carried over | places |\n| --- | --- | --- |\n")
    for text, notes in grouped:
        lost = "yes" if notes[0].lost else "no, a remark"
        lines.append(f"| {_cell(text)} | {lost} | {len(notes)} |\n")
    for text, notes in grouped:
        lines.append(f"\n## {plain_line(text)}\n\n")
        lines += [f"- {_place_below(note, root)}\n" for note in notes]
    file = folder / NOTES_FILE
    replace_file(file, "".join(lines).encode(), follow=True)
    return file


def _cell(text: str) -> str:
    return plain_line(text).replace("|", "\\|")


def _place_below(note: ImportNote, root: Path) -> str:
    """Return the place of a note, relative to the folder that was imported."""
    path = note.path.absolute()
    is_below = path != root and path.is_relative_to(root)
    return plain_line(note._replace(path=path.relative_to(root) if is_below else path).place)


# ---- command -------------------------------------------------------------------------------------
#
# ``seatrial import``: tests of other harnesses become a suite, their results become trials.


def import_oth(folders: Folders, path: Path, output: Path, machine_ini: Path | None) -> int:
    """Do ``seatrial import oth``; return the exit code."""
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


def import_reframe_tests(
    folders: Folders, path: Path, output: Path, libraries: Sequence[Path], system: str
) -> int:
    """Do ``seatrial import reframe-tests``; return the exit code."""
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
