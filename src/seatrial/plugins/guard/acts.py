"""``seatrial guard``: what programs are made for, and whether a site lets them be launched."""

import os
from collections.abc import Iterable
from pathlib import Path

import click
import msgspec

from seatrial.cli.query_common import tell
from seatrial.cli.tables import TextTable, print_first
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.plugins.guard import launch_rules, program
from seatrial.plugins.guard.launch_rules import LaunchRule
from seatrial.plugins.guard.program import ProgramFacts
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, listed

MAX_ROWS = 1000
_SHOWN = ("mpi", "mpi_version", "openmp", "glibc", "isa_level")  # facts of a program
MAX_LOGGED = 200
UNDECIDED = 3  # exit code: nothing is refused, and some files could not be judged
OWN = Path("guard.yaml")


def check(files: tuple[Path, ...], file: Path | None, as_json: bool) -> int:
    """Do ``seatrial guard check``; return the exit code."""
    rules = _rules(file)
    programs = list(_judged(rules, map(os.fspath, files)))
    for one in programs:
        if one.values["kind"] == "unreadable":
            raise UsageError(f"{plain_line(one.path)}: cannot be read; name a regular file")
    if as_json:
        click.echo(to_json(msgspec.to_builtins(programs)), nl=False)
    else:
        for one in programs:
            _print(one, rules)
    unjudged = [one.path for one in programs if not is_read(one)]
    for path in unjudged:
        tell(f"{path}: cannot be judged: it is no whole program for this kind of machine")
    if not rules:
        tell(f"no launch was judged: {OWN} is not here; --rules names a file of rules")
    return _code(programs, unjudged)


def _code(programs: Iterable[ProgramFacts], unjudged: list[str]) -> int:
    """Return the exit code, by what rules refuse and what could not be judged."""
    if any(one.refused for one in programs):
        return 1
    return UNDECIDED if unjudged else 0


def scan(folder: Path, file: Path | None, jobs: int, as_json: bool) -> int:
    """Do ``seatrial guard scan``; return the exit code."""
    number = elves = 0
    shown: list[ProgramFacts] = []
    unread: list[str] = []
    for one in _judged(_rules(file), program.files_below(folder), jobs):
        number += 1
        elves += one.values["kind"] == "elf"
        if one.values["kind"] in ("cut", "unreadable"):
            unread.append(one.path)
        if one.values.get("mpi") or one.refused or one.warned:
            shown.append(one)
    if as_json:
        click.echo(to_json(msgspec.to_builtins(shown)), nl=False)
    else:
        _table(shown, f"{count(number, 'file')}, {elves} of them ELF")
    if unread:
        tell(f"{count(len(unread), 'file')} cannot be read, or not whole: {listed(unread, 5)}")
    return _code(shown, unread)


def write(folder: Path, file: Path | None) -> int:
    """Do ``seatrial guard write``; return the exit code."""
    if file is None and not OWN.exists():
        raise UsageError(f"{OWN}: is not here; write the rules, or name their file with --rules")
    for path in program.write(folder, _rules(file)):
        click.echo(path)
    return 0


def log(folder: Path, as_json: bool) -> int:
    """Do ``seatrial guard log``; return the exit code."""
    entries = sorted(program.log_entries(folder), key=lambda entry: entry.time)
    if as_json:
        click.echo(to_json(msgspec.to_builtins(entries)), nl=False)
        return 0
    table = TextTable("time | user | host?2 | job?1 | look?3 | what | rule | program~")
    for entry in entries[-MAX_LOGGED:]:
        table.add(*map(plain_line, msgspec.structs.astuple(entry)))
    if entries:
        click.echo(table)
    for name in program.strange_logs(folder):
        tell(f"log/{name}: is no regular file of that user; it is left out. Remove it")
    missed = sum(entry.action == "unjudged" for entry in entries)
    more = f"; {missed} could not be judged" if missed else ""
    click.echo(f"{count(len(entries) - missed, 'finding')} about launches{more}")
    return 0


def is_read(program: ProgramFacts) -> bool:
    """Return whether all facts of a program or a script could be read."""
    return program.values["kind"] == "script" or bool(
        program.values["kind"] == "elf" and program.values.get("linkage")
    )


def _rules(file: Path | None) -> list[LaunchRule]:
    if file is None and not OWN.exists():
        return []
    return launch_rules.load(file or OWN)


def _judged(rules: list[LaunchRule], paths: Iterable[str], jobs: int = 1) -> Iterable[ProgramFacts]:
    header = launch_rules.rules_header(rules, os.devnull)
    return program.scan(program.compiled(header), paths, jobs)


def _print(facts: ProgramFacts, rules: list[LaunchRule]) -> None:
    click.echo(click.style(plain_line(facts.path), bold=True))
    for name, value in facts.values.items():
        click.echo(f"  {name}: {plain_line(value)}")
    messages = {rule.name: rule.message for rule in rules}
    for word, names in (("refused", facts.refused), ("warning", facts.warned)):
        for name in names:
            click.echo(folded(f"  {word}: {plain_line(messages[name])} (rule {name})"))


def _table(shown: list[ProgramFacts], total: str) -> None:
    table = TextTable("file~ | MPI | version | OpenMP?1 | glibc?2 | level>?3 | rules~")
    for one in shown[:MAX_ROWS]:
        facts = (one.values.get(name, "") for name in _SHOWN)
        rules = ", ".join([*(f"refused: {name}" for name in one.refused), *one.warned])
        table.add(plain_line(one.path), *facts, rules)
    print_first(table, len(shown), MAX_ROWS, "; --json has all")
    click.echo(f"{total}; {len(shown)} use MPI or break a rule")
