"""``seatrial pattern``: record which rank of a program sends how much to which, and show it."""

from pathlib import Path
from typing import Any

import click
from msgspec import Struct

from seatrial.cli import Folders, options, run
from seatrial.cli.options import format_option, quiet_option
from seatrial.cli.query_common import opened
from seatrial.cli.selection import selection_options
from seatrial.cli.tables import TextTable, labelled
from seatrial.errors import UsageError
from seatrial.execute.prepare import new_tag
from seatrial.model.node_layout import spans
from seatrial.plugins.orders.made_patterns import EXAMPLES, is_pattern_in_words, parse_pattern
from seatrial.plugins.orders.patterns import (
    Pattern,
    PatternSummary,
    Traffic,
    faults_of,
    pattern_of_run,
    read_pattern,
    summary_of,
)
from seatrial.results.store import queries
from seatrial.results.store.export import to_json
from seatrial.results.store.tables import Filters
from seatrial.units import count, show_bytes

_MAX_NODES = 8


_MAX_RANKS_SHOWN = 40


@click.group("pattern")
def command() -> None:
    """Record who sends how much to whom in an MPI program, and show it.

    \b
    seatrial pattern record suites/halo -m frost
    seatrial pattern show RUN
    seatrial order best RUN -m frost --nodes n[001-128] > best.order
    """


@command.command("record")
@selection_options
@click.option("--name", "tag", help="Tag of the trial; default: date, time and suite.")
@quiet_option
@click.pass_context
def record(
    context: click.Context,
    /,
    suites: tuple[str, ...],
    tag: str | None,
    quiet: bool,
    **selection: Any,
) -> int:
    """Run a suite and record which rank sends how much to which.

    A library between program and MPI is built with each test by the toolchain's mpicc, and loaded
    into what $LAUNCH starts. Each run keeps its pattern, pattern.txt in its directory.
    `run.pattern: true` in a test.yaml records every run of the test.
    """
    folders: Folders = context.obj
    if any(char.isspace() or char == ":" for char in str(folders.trials.resolve())):
        raise UsageError(
            f"{folders.trials}: the linker preloads no library from a path with blanks or colons; "
            "give another folder by --trials"
        )
    tag = tag or new_tag(folders.trials, list(suites))
    labels = (("pattern", "recorded"),)
    code: int = context.invoke(
        run.command, suites=suites, tag=tag, quiet=quiet, labels=labels, pattern=True, **selection
    )
    _tell_runs(folders, tag)
    return code


@command.command("show")
@click.argument("source", metavar="RUN|FILE", shell_complete=options.complete("runs"))
@click.option(
    "--top", type=click.IntRange(0, 10_000), default=10, show_default=True, help="Pairs shown."
)
@format_option("text", "json")
@click.pass_obj
def show(folders: Folders, source: str, top: int, form: str) -> int:
    """Show a pattern: totals, pairs, share off node, calls by size.

    RUN is a recorded run's id or a unique beginning of it; FILE a pattern file.
    """
    given = given_pattern(folders, source)
    summary = summary_of(given.pattern, top)
    if form == "json":
        click.echo(to_json(summary), nl=False)
    else:
        click.echo("\n\n".join([_head(given.name, summary), *_tables(summary)]))
    tell_faults(given)
    return 0


def _tell_runs(folders: Folders, tag: str) -> None:
    rows = TextTable("run | case~ | ranks> | messages> | bytes> | off node>")
    notes = []
    with opened(folders) as store:
        runs = queries.runs(store, Filters(trial=tag))
    for one in runs:
        if one.script_started is None:  # its verdict says why
            continue
        try:
            pattern = pattern_of_run(Path(one.path))
        except ValueError as error:
            notes.append(f"{one.run_id}: {error}")
            continue
        summary = summary_of(pattern)
        notes += [f"{one.run_id}: {fault}" for fault in faults_of(Path(one.path), pattern)]
        sent = (f"{summary.sent.number:,}", show_bytes(summary.sent.volume))
        rows.add(
            one.run_id[:8],
            one.case_name,
            summary.ranks,
            *sent,
            _share(summary.off_node, summary.sent),
        )
    if text := str(rows).rstrip("\n"):
        click.echo(f"\n{text}\n\n`seatrial pattern show RUN` shows a pattern")
    for note in notes:
        click.echo(f"note: {note}", err=True)


def _head(name: str, summary: PatternSummary) -> str:
    lines = [("pattern", name), ("ranks", f"{summary.ranks:,}")]
    for node in summary.nodes[:_MAX_NODES]:
        shown = spans(node.ranks)
        cut = shown if len(shown) <= _MAX_RANKS_SHOWN else f"{shown[:_MAX_RANKS_SHOWN]}..."
        lines.append((f"on {node.node}", cut))
    if len(summary.nodes) > _MAX_NODES:
        lines.append(("and on", f"{len(summary.nodes) - _MAX_NODES:,} more nodes"))
    lines.append(("sent", f"{_told(summary.sent)}, {summary.pairs:,} pairs of ranks"))
    if summary.off_node is not None:
        share = _share(summary.off_node, summary.sent)
        lines.append(("off node", f"{_told(summary.off_node)}, {share} of the bytes"))
    for title, traffic in (("to itself", summary.to_itself), ("outside", summary.outside)):
        lines += [(title, _told(traffic))] if traffic.number else []
    if summary.dropped.number:
        few = f"{count(summary.dropped.number, 'pair')}, {show_bytes(summary.dropped.volume)}"
        lines.append(("left out", f"{few}: those with the fewest bytes"))
    return labelled(lines)


def _tables(summary: PatternSummary) -> list[str]:
    pairs = TextTable("from> | to> | messages> | bytes> | share>")
    for one in summary.top:
        share = _share(Traffic(1, one.volume), summary.sent)
        pairs.add(one.sender, one.receiver, f"{one.messages:,}", f"{one.volume:,}", share)
    calls = TextTable("call | up to> | calls> | bytes>")
    for call in summary.calls:
        calls.add(call.name, show_bytes(call.size), f"{call.number:,}", f"{call.volume:,}")
    return [text for table in (pairs, calls) if (text := str(table).rstrip("\n"))]


def _told(traffic: Traffic) -> str:
    noun = "message" if traffic.number == 1 else "messages"
    return f"{traffic.number:,} {noun}, {show_bytes(traffic.volume)}"


def _share(part: Traffic | None, whole: Traffic) -> str:
    if part is None or not whole.volume:
        return ""
    return f"{100 * part.volume / whole.volume:.1f} %"


# ---- recorded pattern ----------------------------------------------------------------------------
#
# Communication patterns that commands are given: a file, or the run that was recorded.


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
        return _recorded(folders, text)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror or error}") from None
    except ValueError as error:
        raise UsageError(f"{file}: {error}" if file.exists() else str(error)) from None


def _recorded(folders: Folders, run_id: str) -> GivenPattern:
    with opened(folders) as store:
        run = queries.run(store, run_id)
    if not run.path:
        raise UsageError(f"run {run_id} has no directory yet; wait until it has run")
    pattern = pattern_of_run(Path(run.path))
    faults = faults_of(Path(run.path), pattern)
    return GivenPattern(pattern, f"{run.trial}/{run.run_id}", faults)


def tell_faults(given: GivenPattern) -> None:
    """Tell on stderr what a pattern lacks."""
    for fault in given.faults:
        click.echo(f"note: {fault}", err=True)
