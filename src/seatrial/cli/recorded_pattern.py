"""Communication patterns that commands are given: a file, or the run that was recorded."""

from pathlib import Path

import click
from msgspec import Struct

from seatrial.cli import Folders
from seatrial.cli.query_common import opened
from seatrial.errors import UsageError
from seatrial.layout.made_patterns import EXAMPLES, is_pattern_in_words, parse_pattern
from seatrial.layout.patterns import Pattern
from seatrial.runs.pattern_collector import faults_of, pattern_of, read_pattern
from seatrial.store import queries


class GivenPattern(Struct, frozen=True):
    """A pattern, the file or the run that it is of, and sentences about what it lacks."""

    pattern: Pattern
    name: str
    faults: list[str]


def given_pattern(folders: Folders, text: str) -> GivenPattern:
    """Return the pattern of a file or a run, or that words say. Raises UsageError with what is
    wrong, and where."""
    file = Path(text)
    try:
        if is_pattern_in_words(text) and not file.exists():
            return GivenPattern(parse_pattern(text), text, [])
        if file.exists() or "." in file.name:
            return GivenPattern(read_pattern(file), text, [])
        if " " in text:
            raise UsageError(f"{text!r} are no words for a pattern; write e.g. {EXAMPLES}")
        with opened(folders) as store:
            run = queries.run(store, text)
        if not run.path:
            raise UsageError(f"run {text} has no directory yet; wait until it has run")
        pattern = pattern_of(Path(run.path))
        faults = faults_of(Path(run.path), pattern)
        return GivenPattern(pattern, f"{run.trial}/{run.run_id}", faults)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{file}: {error}" if file.exists() else str(error)) from None


def tell_faults(given: GivenPattern) -> None:
    """Tell on stderr what a pattern lacks."""
    for fault in given.faults:
        click.echo(f"note: {fault}", err=True)
