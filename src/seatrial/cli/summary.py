"""What a trial came to: a table of figures, the counts, where everything is, what to type next."""

from __future__ import annotations

import os

import click

from seatrial.cli import Folders
from seatrial.cli.asking import opened, show_figure
from seatrial.cli.tables import Column, table
from seatrial.errors import SeatrialError
from seatrial.journal.codes import CHECK_ERROR, PASS
from seatrial.store import queries
from seatrial.store.rows import CaseRow, SummaryRow
from seatrial.suite.model import Better
from seatrial.trial.driver import Outcome
from seatrial.trial.folder import TrialFolder, references_of
from seatrial.verify import references as refs
from seatrial.verify.figures import Figure

MOST_ROWS = 100

COLUMNS = (
    Column("case", folds=True),
    Column("metric"),
    Column("value", right=True),
    Column("spread", right=True),
    Column("n", right=True),
    Column("reference", right=True),
    Column("verdict"),
)


def print_summary(folder: TrialFolder, folders: Folders, outcome: Outcome) -> None:
    """Print the figures of the trial and its outcome. A store that cannot be used is told, and
    costs the table, not the trial."""
    try:
        _print_figures(folder, folders)
    except SeatrialError as error:
        click.echo(f"seatrial: no table of figures: {error}", err=True)
    verdicts = dict(outcome.verdicts)
    passed = verdicts.pop(PASS.name, 0)
    counts = [f"{passed} passed", *(f"{count} {name}" for name, count in sorted(verdicts.items()))]
    click.echo(", ".join(counts))
    click.echo(f"trial  {min(str(folder.path), os.path.relpath(folder.path), key=len)}")
    if not outcome.complete:
        click.echo(f"ended before all cases ran: {outcome.why}")
        click.echo(f"next   seatrial resume {folder.tag}")
    elif verdicts:
        click.echo(f"next   seatrial runs --trial {folder.tag} --failed")
    else:
        click.echo(f"next   seatrial runs --trial {folder.tag}\n       seatrial show RUN")


def _print_figures(folder: TrialFolder, folders: Folders) -> None:
    with opened(folders) as store:
        trial = queries.trial(store, folder.tag)
        rows = queries.summary(store, trial)
        if not rows:
            return
        cases = {case.id: case for case in queries.cases_of(store, trial)}
    references = references_of(folder.record())
    shown = [_row(row, cases[row.case], references) for row in rows[:MOST_ROWS]]
    click.echo(table(COLUMNS, shown))
    if len(rows) > MOST_ROWS:
        click.echo(f"and {len(rows) - MOST_ROWS} more: seatrial export {folder.tag} --format json")


def _row(row: SummaryRow, case: CaseRow, references: refs.References) -> list[str]:
    """Value: the median. Spread: (largest - least) / median, where there are two or more."""
    value = show_figure(row.median, row.unit) if row.median is not None else "none"
    spread = f"{100 * row.spread:.1f} %" if row.spread is not None else ""
    reference, verdict = _judged(row, case, references)
    return [row.case_name, row.metric, value, spread, str(row.n), reference, verdict]


def _judged(row: SummaryRow, case: CaseRow, references: refs.References) -> tuple[str, str]:
    try:
        found = refs.matching(references, case.test, row.metric, case.parameters, case.toolchain)
    except refs.AmbiguousReference:
        return "ambiguous", CHECK_ERROR.name
    if found is None or row.median is None:
        return "", ""
    better: Better = "lower" if row.better == "lower" else "higher"
    figure = Figure(row.metric, row.median, row.unit, better)
    expected = show_figure(found.value, found.unit) if found.value is not None else "bounds"
    finding = refs.judge(figure, found)
    return expected, "pass" if finding is None else finding.code.name
