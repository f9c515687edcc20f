"""``seatrial variability``: how much the tests of a trial vary, and which runs are outliers."""

from collections import Counter
from collections.abc import Sequence
from datetime import datetime
from textwrap import indent
from typing import Any

import click
from msgspec.structs import asdict

from seatrial.cli import Folders, options
from seatrial.cli.options import FiniteRange, json_option, known_machine, test_filter
from seatrial.cli.query_common import opened, show_time, tell_damage
from seatrial.cli.suspects import print_places, print_suspects, suspects_record
from seatrial.cli.tables import TextTable
from seatrial.errors import UsageError
from seatrial.escaping import plain_line
from seatrial.judge.statistics.outliers import Outlier
from seatrial.results.slow_places import RunKind
from seatrial.results.store import queries, series
from seatrial.results.store.export import iso, to_json
from seatrial.results.store.tables import RunOutcome
from seatrial.results.variability import Variability, VariabilityRow, variability
from seatrial.units import count, listed, show_figure, show_unit

MAX_RUNS = 20


_CLASSES = {
    "walltime": "at walltime",
    "slow": "slow but complete (performance failure)",
    "short": "far too short",
    "failed": "failed",
}


@click.command("variability")
@click.argument("trial", shell_complete=options.trials)
@test_filter
@click.option("--metric", default="", help="Only this metric; `elapsed` is one.")
@click.option(
    "--exclude",
    type=FiniteRange(min=1),
    metavar="D",
    help="Leave out figures farther than D robust deviations from the median.",
)
@json_option
@click.pass_obj
def command(
    folders: Folders, trial: str, test: str, metric: str, exclude: float | None, as_json: bool
) -> int:
    """Show how much the tests of TRIAL vary, its outliers, and what they share."""
    with opened(folders) as store:
        row = queries.trial(store, trial)
        tell_damage(store, [row])
        found = variability(store, row, known_machine(row), test, metric, exclude)
        known = series.metric_names(store)
    if not found.rows:
        if metric not in ("", "elapsed", *known):
            raise UsageError(f"--metric: no run has {metric!r}; see `seatrial show RUN`")
        what = f" with --test {test}" if test else ""
        what += f" with --metric {metric}" if metric else ""
        raise UsageError(f"{row.tag}: no run{what} is over; see `seatrial runs --trial {row.tag}`")
    if as_json:
        click.echo(to_json(_record(found)), nl=False)
        return 0
    _print_rows(found.rows)
    _print_outliers(found.kinds)
    _print_shared(found)
    return 0


def _print_rows(rows: list[VariabilityRow]) -> None:
    table = TextTable(
        "test~ | metric | unit | n> | mean>?2 | sd>?4 | CV> | median> | MAD>?3 | min> | max>?1"
        " | excluded~"
    )
    for row in rows:
        one = row.spread
        cv = None if one.cv is None else f"{100 * one.cv:.3g} %"
        numbers = (one.n, one.mean, one.deviation, cv, one.median, one.mad, one.low, one.high)
        excluded = ", ".join(f"{number} {rule}" for rule, number in row.excluded.items())
        table.add(row.kind, row.metric, show_unit(row.unit, "{}"), *numbers, excluded)
    click.echo(table)
    _print_whys(rows)
    for row in rows:
        _print_shape(row)


def _print_whys(rows: list[VariabilityRow]) -> None:
    """Print why numbers are missing, each reason once."""
    whys: dict[str, list[str]] = {}
    for row in rows:
        if row.spread.why:
            whys.setdefault(row.spread.why, []).append(f"{row.metric} of {row.kind}")
    for why, names in whys.items():
        click.echo(plain_line(f"{listed(names, 3)}: {why}"))


def _print_shape(row: VariabilityRow) -> None:
    """Print what the numbers of a row hide: a change of level, several modes, defective nodes."""
    name = plain_line(f"{row.metric} of {row.kind}")
    if row.changes:
        click.echo(
            f"{name}: its level changed {count(row.changes, 'time')}; see `seatrial history`"
        )
    if len(row.modes) > 1:
        shares = ", ".join(
            f"{show_figure(mode.centre, row.unit)} ({100 * mode.share:.0f} %)" for mode in row.modes
        )
        click.echo(f"{name}: {len(row.modes)} modes: {plain_line(shares)}")
    found = row.nodes
    if found is None:
        return
    for node, defect in list(found.defective.items())[:MAX_RUNS]:
        away = "" if defect.deviations is None else f", {-defect.deviations:.1f} deviations"
        effect = f"{abs(100 * defect.effect):.1f} % worse than the healthy nodes{away}"
        click.echo(f"{name}: {plain_line(node)} is defective: {effect}")
    if len(found.defective) > MAX_RUNS:
        click.echo(f"{name}: and {len(found.defective) - MAX_RUNS} more defective nodes")


def _print_outliers(kinds: list[RunKind]) -> None:
    for kind in kinds:
        if not kind.found.outliers:
            continue
        total = len(kind.found.outliers)
        click.echo()
        said = f"{kind.name}: {total} of {count(len(kind.runs), 'run')} stand out"
        click.echo(click.style(plain_line(said), bold=True))
        for name, text in _CLASSES.items():
            runs = [each for each in kind.outlying if each[0].kind == name]
            if not runs:
                continue
            if name == "failed":  # with their causes in the first line
                counts = Counter(outlier.why for outlier, _ in runs)
                text += f" ({', '.join(f'{n} {why}' for why, n in counts.most_common())})"
            click.echo(plain_line(f"  {len(runs)} {text}"))
            click.echo(indent(str(_outliers(runs[:MAX_RUNS])), "    "))
            if len(runs) > MAX_RUNS:
                click.echo(f"    and {len(runs) - MAX_RUNS} more")
        if kind.found.why:
            click.echo(f"  {plain_line(kind.found.why)}")


def _outliers(outliers: Sequence[tuple[Outlier, RunOutcome]]) -> TextTable:
    """Return the runs of a class with their starts and times."""
    table = TextTable("run | started | elapsed (s)> | why~")
    for one, run in outliers:
        why = one.why.partition("; ")[2] or one.why
        table.add(_short(one.run), show_time(run.script_started), run.elapsed, why)
    return table


def _short(run: str) -> str:
    return run.rpartition("/")[2][:12]


def _print_shared(found: Variability) -> None:
    if not any(kind.found.outliers for kind in found.kinds):
        click.echo("no run stands out")
        print_places(found.places)
        return
    click.echo()
    for span in found.spans:
        first, last = (
            f"{datetime.fromtimestamp(at):%m-%d %H:%M}" for at in (span.first, span.last)
        )
        p = f"p = {span.p:.2g}" if span.p >= 1e-12 else "p < 1e-12"
        click.echo(
            f"from {first} to {last}: {span.bad} of {count(span.runs, 'run')} that started then "
            f"stand out, where chance would give {span.expected:.3g}; {p}, corrected"
        )
    if not found.spans:
        click.echo("no span of time holds more of them than chance would give")
    print_suspects(found.suspects, found.evidence)
    print_places(found.places)


def _record(found: Variability) -> dict[str, Any]:
    rows = []
    for row in found.rows:
        own = {**row._asdict(), "case": row.kind, "modes": row.modes}
        del own["kind"], own["spread"]
        rows.append({**asdict(row.spread), **own})
    outliers = [
        {
            "case": kind.name,
            "run": outlier.run.rpartition("/")[2],
            "class": outlier.kind,
            "why": outlier.why,
            "started": None if run.script_started is None else iso(run.script_started),
            "elapsed": run.elapsed,
            "verdict": run.verdict,
        }
        for kind in found.kinds
        for outlier, run in kind.outlying
    ]
    return {
        "table": rows,
        "outliers": outliers,
        "spans": found.spans,
        "suspects": suspects_record(found.suspects, found.evidence),
        "places": found.places.trends,
        "places_questions": found.places.questions,
    }
