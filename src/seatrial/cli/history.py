"""``seatrial history``: a metric over time, and its changes."""

import string
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from seatrial.cli import Folders
from seatrial.cli.diary import diary, show_minute
from seatrial.cli.options import STAGES, format_option, run_filters, text_option
from seatrial.cli.plots import TextMark, time_line
from seatrial.cli.query_common import opened, print_csv, tell, tell_damage
from seatrial.cli.tables import TextTable, in_per_cent, interval_in_per_cent, print_first
from seatrial.errors import UsageError
from seatrial.lazy import statistics
from seatrial.statistics.changes import MIN_POINTS
from seatrial.store import queries
from seatrial.store.interchange import iso, to_json
from seatrial.store.rows import Filters
from seatrial.studies import success_rate
from seatrial.studies.history import History, LevelModes, ReportedChange, histories
from seatrial.studies.history_check import doubts
from seatrial.studies.history_facts import with_facts
from seatrial.studies.note_file import Note
from seatrial.units import better_by, count, direction_text, show_change, show_figure, show_unit
from seatrial.verify.reading import plain_line

if TYPE_CHECKING:
    from seatrial.suite.model import Stage


MAX_PLOTS = 4  # series that get a plot each; if there are more, only the changed ones do


MAX_ROWS = 100


MAX_NOTES = 26


MAX_DOUBTS = 20


UNDECIDED = 3  # exit code: no change for the worse was found, and none could have been


_RATE = ("time", "trial", "passed", "counted", "value", "low", "high")


@click.command("history")
@click.argument("metric")
@text_option("--case", "case", "PATTERN", "Cases: a part of the name, or the id.")
@click.option("--stage", type=click.Choice(STAGES), default=None, help="Only of this stage.")
@run_filters
@click.option(
    "--check",
    is_flag=True,
    help="Exit code 1: a change for the worse is confirmed; 3: none is, and one could not have "
    "been seen.",
)
@format_option("table", "json", "csv")
@click.pass_obj
def command(
    folders: Folders,
    /,
    metric: str,
    case: str,
    stage: "Stage | None",
    check: bool,
    form: str,
    **wanted: Any,
) -> int:
    """Show METRIC over time, a series for each case, with the changes of its level.

    METRIC is a figure of merit, `elapsed` (the time of the script), or `success_rate`: the share of
    the runs of a test that passed, by trial and day; `latency_by_level` and `bandwidth_by_level` of
    the probe `pingpong` have a series for each level of the network. A change is *suspect* or
    *confirmed*; only confirmed ones for the worse make --check end with 1. It ends with 3 where no
    change could have been seen: too few figures, a single trial, a latest run without a figure.
    """
    notes = diary(folders).notes
    with opened(folders) as store:
        damaged = queries.damaged(store, Filters(**wanted))
        tell_damage(store, damaged)
        if success_rate.is_success_rate(store, metric):
            if check:
                raise UsageError(f"--check: changes of {metric} are not judged; see `pass_rate`")
            _print_rates(
                success_rate.success_rates(store, Filters(**wanted), case, stage or ""), form
            )
            return 0
        found = histories(store, metric, Filters(**wanted), case, notes, stage or "")
        found = with_facts(store, found)
        unseen: list[str] = []
        if check and not any(history.alarms for history in found):
            unseen = doubts(store, metric, Filters(**wanted), found)
            unseen += [f"{row.tag}: its journal is damaged" for row in damaged]
            unseen += store.left_out
    {"table": _print_table, "json": _print_json, "csv": _print_csv}[form](found)
    for text in unseen[:MAX_DOUBTS]:
        tell(f"--check: {text}")
    if len(unseen) > MAX_DOUBTS:
        tell(f"--check: and {len(unseen) - MAX_DOUBTS} more reasons")
    if check and any(history.alarms for history in found):
        return 1
    return UNDECIDED if unseen else 0


def _print_table(found: list[History]) -> None:
    drawn = found if len(found) <= MAX_PLOTS else _changed(found)[:MAX_PLOTS]
    if len(found) > MAX_PLOTS:
        _print_overview(found)
    for number, history in enumerate(drawn):
        if number or len(found) > MAX_PLOTS:
            click.echo()
        _print_history(history)
    changed = len(_changed(found))
    if len(found) > MAX_PLOTS and changed > MAX_PLOTS:
        click.echo(f"\n{changed - MAX_PLOTS} more series changed; --case shows one")
    alarms = sum(len(history.alarms) for history in found)
    total = sum(told.confirmed for history in found for told in history.told)
    said = f"{count(total, 'confirmed change')}, {alarms} for the worse" if total else "no change"
    few = sum(history.analysis.few for history in found)
    told = [f"too few figures to tell in {few} of them, {MIN_POINTS} or more are needed"]
    if few < len(found):
        told.insert(0, said)
    click.echo(f"\n{len(found)} series: {'; '.join(told if few else [said])}")


def _changed(found: list[History]) -> list[History]:
    """Return the series with a confirmed change, the largest change for the worse first."""
    changed = [history for history in found if any(told.confirmed for told in history.told)]
    return sorted(changed, key=_badness, reverse=True)


def _badness(history: History) -> float:
    each = [(abs(t.percent or 0), t.worse) for t in history.told if t.confirmed]
    return max(share if worse else -1 / (1 + share) for share, worse in each)


def _print_overview(found: list[History]) -> None:
    several = len({history.series.machine for history in found}) > 1
    rows = TextTable("case~ | machine | n> | left out> | median> | noise> | better by~")
    rest = [history for history in found if not any(told.confirmed for told in history.told)]
    ordered = _changed(found) + rest
    for history in ordered[:MAX_ROWS]:
        series = history.series
        middle = statistics.median(series.values) if series.values else None
        median_text = None if middle is None else show_figure(middle, series.unit)
        share = history.analysis.noise / abs(middle) if middle else 0
        noise = f"{100 * share:.2g} %" if share else ""
        machine = series.machine if several else ""
        left_out = sum(series.excluded.values()) or None
        numbers = (len(series.points), left_out, median_text, noise)
        rows.add(series.case_name, machine, *numbers, _short(history))
    print_first(rows, len(found), MAX_ROWS, " without a change; --format json shows all")


def _short(history: History) -> str:
    if history.analysis.why:
        return "too few" if history.analysis.few else "none: all equal"
    confirmed = [_percent(history, told) for told in history.told if told.confirmed]
    suspect = sum(not told.confirmed for told in history.told)
    said = [*confirmed, *([f"{suspect} suspect"] if suspect else [])]
    return ", ".join(said) or ("hardly enough figures" if history.analysis.limit else "")


def _percent(history: History, told: ReportedChange) -> str:
    """Return by how much a level is better than the one before; its change if the metric has no
    direction."""
    if told.percent is None:
        return ""
    return show_change(better_by(told.percent, history.series.better))


def _print_history(history: History) -> None:
    series, analysis = history.series, history.analysis
    said = f"{series.metric} of {series.case_name} on {series.machine}"
    click.echo(click.style(plain_line(said), bold=True))
    unit = show_unit(plain_line(series.unit), "{}, ")
    noise = f", noise {show_figure(analysis.noise, '')}" if analysis.noise else ""
    click.echo(f"{unit}{direction_text(series.better)}, n {len(series.points)}{noise}")
    if series.excluded:
        reasons = ", ".join(f"{n} {plain_line(why)}" for why, n in series.excluded.items())
        click.echo(f"left out: {count(sum(series.excluded.values()), 'run')}: {reasons}")
    notes = history.notes[-MAX_NOTES:]
    if series.points:
        click.echo("\n".join(_plot(history, notes)))
    if analysis.why:
        click.echo(f"nothing can be concluded: {analysis.why}")
    elif not history.told:
        click.echo("no change")
    if history.told:
        click.echo(_changes_table(history))
        for line in _facts(history):
            click.echo(line)
    if history.modes:
        click.echo(_modes_table(history))
    if analysis.limit:
        click.echo(analysis.limit)
    for letter, note in zip(string.ascii_lowercase, notes, strict=False):
        click.echo(f"{letter}  {show_minute(note.time)}  {plain_line(note.text)}")


def _plot(history: History, notes: Sequence[Note]) -> list[str]:
    points = [(point.time / 1e9, point.value) for point in history.series.points]
    changes = [
        TextMark(told.since / 1e9, "C" if told.confirmed else "s", bar=told.confirmed)
        for told in history.told
    ]
    letters = [
        TextMark(note.time / 1e9, letter)
        for letter, note in zip(string.ascii_lowercase, notes, strict=False)
    ]
    times = [time for time, _ in points]
    ends = (show_minute(int(min(times)) * 10**9), show_minute(int(max(times)) * 10**9))
    return time_line(points, [changes, letters], ends if ends[0] != ends[1] else (ends[0], ""))


def _changes_table(history: History) -> TextTable:
    by = "by" if history.series.better == "none" else "better by"
    points = history.series.points
    several = len({point.trial for point in points}) > 1
    titles = f"change | since{' | trial' if several else ''} | before> | after> | {by}> |  | "
    found = TextTable(f"{titles}nearest note~")
    for told in history.told:
        levels = (told.change.before, told.change.after)
        shown = (show_figure(level, history.series.unit) for level in levels)
        by = _percent(history, told) or "no ratio"
        near = f"{told.near.note.text} ({told.near.distance})" if told.near is not None else ""
        kind = f"{told.change.tier}{' drift' if told.drift else ''}"
        when = [show_minute(told.since), *([points[told.change.index].trial] if several else [])]
        found.add(kind, *when, *shown, by, told.word, near)
    return found


def _modes_table(history: History) -> TextTable:
    """Return the modes of the figures between two changes, with their shares."""
    found = TextTable("pairs from | to | mode> | share>")
    for span in history.modes:
        ends = [show_minute(span.first), show_minute(span.last)]
        for mode in span.modes:
            value = show_figure(mode.centre, history.series.unit)
            found.add(*ends, value, f"{100 * mode.share:.1f} %")
            ends = ["", ""]
    return found


def _facts(history: History) -> list[str]:
    """Return the facts of nodes that changed with each level."""
    return [
        plain_line(
            f"facts that changed by {show_minute(told.first)}: {each.subject}: {each.what}"
            + (
                f": {each.first or 'none'} -> {each.second or 'none'}"
                if each.first + each.second
                else ""
            )
        )
        for told in history.told
        for each in told.facts
    ]


def _print_json(found: list[History]) -> None:
    records = []
    for history in found:
        series = history.series
        records.append(
            {
                **{k: v for k, v in msgspec.structs.asdict(series).items() if k != "parts"},
                "n": len(series.points),
                "noise": history.analysis.noise,
                "why": history.analysis.why,
                "limit": history.analysis.limit,
                "changes": [_change_record(told) for told in history.told],
                "modes": [_modes_record(span) for span in history.modes],
                "notes": [
                    {"time": iso(n.time), "machine": n.machine, "text": n.text, "id": n.id}
                    for n in history.notes
                ],
                "points": [
                    {"time": iso(p.time), "value": p.value, "run": p.run_id, "trial": p.trial}
                    for p in series.points
                ],
            }
        )
    click.echo(to_json(records), nl=False)


def _modes_record(span: LevelModes) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(span)
    return record | {"first": iso(span.first), "last": iso(span.last)}


def _change_record(told: ReportedChange) -> dict[str, Any]:
    change, near = told.change, told.near
    note = None
    if near is not None:
        note = {"text": near.note.text, "time": iso(near.note.time), "seconds": near.seconds}
    strength = change.strength if change.strength != float("inf") else None
    return {
        "tier": change.tier,
        "kind": "drift" if told.drift else "step",
        "index": change.index,
        "until": change.until,
        "since": iso(told.since),
        "last_before": None if told.drift else iso(told.last),
        "settled": iso(told.first),
        "before": change.before,
        "after": change.after,
        "percent": told.percent,
        "worse": told.worse,
        "strength": strength,
        "nearest_note": note,
        "facts": [msgspec.structs.asdict(each) for each in told.facts],
    }


def _print_csv(found: list[History]) -> None:
    """Print a line for each figure; ``change`` is set on the first one of a new level."""
    titles = ("machine", "case", "case_name", "metric", "unit", "time", "value", "run", "trial")
    rows: list[Sequence[object]] = [[*titles, "change", "stage"]]
    for history in found:
        series = history.series
        tiers = {told.change.settled: told.change.tier for told in history.told}
        for index, point in enumerate(series.points):
            of = (series.machine, series.case, series.case_name, series.metric, series.unit)
            figure = (iso(point.time), point.value, point.run_id, point.trial)
            rows.append([*of, *figure, tiers.get(index, ""), series.stage])
    print_csv(rows)


def _print_rates(found: list[success_rate.SuccessRates], form: str) -> None:
    """Print the series as a table, JSON or CSV."""
    {"table": _print_rates_table, "json": _print_rates_json, "csv": _print_rates_csv}[form](found)


def _print_rates_table(found: list[success_rate.SuccessRates]) -> None:
    for series in found:
        title = f"{success_rate.SUCCESS_RATE} of {series.test} on {series.machine}"
        click.echo(click.style(plain_line(title), bold=True))
        rows = TextTable("since | trial~ | passed> | of> | rate> | 95 %>")
        for rate in series.rates:
            numbers = (rate.passed, rate.counted, in_per_cent(rate.rate))
            interval = interval_in_per_cent(*rate.interval)
            rows.add(show_minute(rate.time), rate.trial, *numbers, interval)
        click.echo(f"{rows}\n")
    click.echo(f"{len(found)} series; changes of rates are not judged")


def _print_rates_json(found: list[success_rate.SuccessRates]) -> None:
    records = []
    for series in found:
        points = [dict(zip(_RATE, _rate_values(rate), strict=True)) for rate in series.rates]
        about = {
            "metric": success_rate.SUCCESS_RATE,
            "machine": series.machine,
            "test": series.test,
        }
        records.append({**about, "points": points})
    click.echo(to_json(records), nl=False)


def _print_rates_csv(found: list[success_rate.SuccessRates]) -> None:
    rows: list[Sequence[object]] = [("machine", "test", *_RATE)]
    for series in found:
        rows += [(series.machine, series.test, *_rate_values(rate)) for rate in series.rates]
    print_csv(rows)


def _rate_values(rate: success_rate.SuccessRate) -> tuple[object, ...]:
    return iso(rate.time), rate.trial, rate.passed, rate.counted, rate.rate, *rate.interval
