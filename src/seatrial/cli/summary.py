"""The summary of a trial: a table of figures, the counts, its folder, the next command."""

import contextlib
import os
from collections import Counter
from collections.abc import Sequence

import click

from seatrial.cli import Folders
from seatrial.cli.end_alert import counts
from seatrial.cli.query_common import opened, tell_damage
from seatrial.cli.tables import TextTable, print_first
from seatrial.errors import SeatrialError, UsageError
from seatrial.journal.codes import CHECK_ERROR, PASS, PERFORMANCE
from seatrial.show.text import folded
from seatrial.store import queries
from seatrial.store.rows import CaseRow, Filters, MetricRow, RunRow, SummaryRow, TrialRow
from seatrial.store.schema import Store
from seatrial.studies.one_run import expected, references_for, with_elapsed
from seatrial.studies.unreferenced import unreferenced
from seatrial.trial.folder import TrialFolder
from seatrial.trial.outcome import DriveOutcome
from seatrial.units import in_per_cent, show_figure
from seatrial.verify.figures import ELAPSED
from seatrial.verify.reading import plain_line
from seatrial.verify.references import References

MAX_ROWS = 100

MAX_WHY = 120  # characters of why a failure is known
COLUMNS = "case~ | metric~ | value> | spread>?-1 | n> | reference> | verdict~"


def print_summary(folder: TrialFolder, folders: Folders, outcome: DriveOutcome) -> bool:
    """Print the figures of the trial and its outcome. If the store cannot be used, only the table
    is missing, with a message. Return whether each figure is known to have a reference."""
    name, has_references = folder.tag, False
    try:
        name, has_references = _print_figures(folder, folders)
    except SeatrialError as error:
        click.echo(f"seatrial: no table of figures: {plain_line(str(error))}", err=True)
    click.echo(counts(outcome))
    path = min(str(folder.path), os.path.relpath(folder.path), key=len)
    click.echo(f"trial  {plain_line(path)}")
    if not outcome.complete:
        click.echo(f"ended before all cases ran: {outcome.reason}")
        click.echo(f"next   {folders.command('resume', folder.tag)}")
    elif outcome.failed:
        click.echo(f"next   {folders.command('runs', '--trial', name, '--failed')}")
    else:
        click.echo(f"next   {folders.command('runs', '--trial', name)}")
        click.echo(f"       {folders.command('show', 'RUN')}")
    return has_references


def _print_figures(folder: TrialFolder, folders: Folders) -> tuple[str, bool]:
    """Print the table, and how many figures have no reference; return the name by which to ask the
    store for the trial, as it may hold its tag twice, and whether each figure has a reference."""
    with opened(folders) as store:
        trial, name = _found(store, folder)
        tell_damage(store, [trial])
        rows: dict[str, list[SummaryRow]] = {}
        references = references_for(store, trial)
        timed = [test for test, metric in references.by_metric if metric == ELAPSED]
        for row in (*queries.summary(store, trial), *queries.elapsed_summary(store, trial, timed)):
            of_case = rows.setdefault(row.case, [])
            if row.metric != ELAPSED or all(one.metric != ELAPSED for one in of_case):
                of_case.append(row)
        failed = queries.runs(store, Filters(trial=name, failed=True))
        known = queries.runs(store, Filters(trial=name, states=["known"]))
        slow = [run for run in failed if run.code == PERFORMANCE.number]
        figures = queries.figures(store, [run.row for run in slow])
        cases = {case.id: case for case in queries.cases_of(store, trial)}
    missed, told = _missed(slow, figures, cases, references)
    wrong: dict[str, Counter[str]] = {}  # of the runs, whatever their figures
    for run in failed:
        if run.row not in told:
            wrong.setdefault(run.case, Counter())[run.verdict] += 1
    for run in known:
        told_why = plain_line(run.why.partition("\n")[0])[:MAX_WHY]
        wrong.setdefault(run.case, Counter())[f"{run.verdict}: {told_why}"] += 1
    shown: list[list[object]] = []
    for case in cases.values():
        measured = [row for row in rows.get(case.id, ()) if row.n or case.id not in wrong]
        shown += [_row(row, case, missed, references) for row in measured]
        if case.id in wrong:
            found = wrong[case.id].items()
            verdicts = ", ".join(_of_runs(number, case, verdict) for verdict, number in found)
            shown.append([case.name, "", "", "", "", "", verdicts])
    more = folders.command("export", name, "--format", "json")
    print_first(TextTable(COLUMNS, shown[:MAX_ROWS]), len(shown), MAX_ROWS, f": {more}")
    lacking = unreferenced((row for some in rows.values() for row in some), cases, references)
    if lacking.told:
        click.echo(folded(plain_line(lacking.told)))
    return name, not lacking.without


def _missed(
    slow: Sequence[RunRow],
    figures: dict[int, list[MetricRow]],
    cases: dict[str, CaseRow],
    references: References,
) -> tuple[Counter[tuple[str, str]], set[int]]:
    """Return by case and metric how many runs have a figure that misses its reference, and the rows
    of these runs: a script can judge a run as too slow, too."""
    missed: Counter[tuple[str, str]] = Counter()
    told: set[int] = set()
    for run in slow:
        for figure in with_elapsed(figures.get(run.row, ()), run, references):
            wanted = expected(figure, cases[run.case], references, run.stage)
            if wanted is not None and wanted.meets is False:
                missed[run.case, figure.name] += 1
                told.add(run.row)
    return missed, told


def _of_runs(number: int, case: CaseRow, verdict: str) -> str:
    return f"{number} of {case.repeat} {verdict}" if case.repeat > 1 else verdict


def _found(store: Store, folder: TrialFolder) -> tuple[TrialRow, str]:
    """Return the trial and its name: its tag, or its path if the tag could be another trial's."""
    path = os.path.realpath(folder.path)
    with contextlib.suppress(UsageError):
        trial = queries.trial(store, folder.tag)
        if os.path.realpath(trial.path) == path:
            return trial, folder.tag
    return queries.trial(store, path), path


def _row(
    row: SummaryRow,
    case: CaseRow,
    missed: Counter[tuple[str, str]],
    references: References,
) -> list[object]:
    """Return the row of a case and metric. Value: the median. Spread: (maximum - minimum) / median,
    if there are two or more. Verdict: of the metric by its reference, "" without one."""
    value = show_figure(row.median, row.unit) if row.median is not None else "none"
    spread = in_per_cent(row.spread)
    reference = verdict = ""
    if row.median is not None:
        figure = MetricRow(row.metric, row.median, row.unit, row.better)
        if (wanted := expected(figure, case, references, row.stage)) is not None:
            code = CHECK_ERROR if wanted.meets is None else PASS if wanted.meets else PERFORMANCE
            reference, verdict = wanted.text, code.name
    if number := missed[case.id, row.metric]:  # of single runs: they take precedence
        verdict = _of_runs(number, case, PERFORMANCE.name)
    return [row.case_name, row.metric, value, spread, row.n, reference, verdict]
