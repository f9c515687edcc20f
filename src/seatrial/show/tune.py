"""A tuning as a page: the advice, the race of its settings, what it cost; and its rehearsal."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

from markupsafe import Markup
from msgspec import to_builtins

from seatrial.execute.tuning import PreparedTuning
from seatrial.execute.tuning_odds import TuningOdds
from seatrial.results.tuned import (
    FigureRatio,
    Tuned,
    TunedSetting,
    advice,
    cost_text,
    in_order,
    interval_text,
    not_needed,
    state_text,
    untried_text,
)
from seatrial.results.tuned_basis import BasedTuning, basis_text
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import WIDE
from seatrial.show.page import Cell, Chart, Column, Figure, Items, Page, Part, Section, Table, Text
from seatrial.show.sweep import sweep_page
from seatrial.units import (
    count,
    listed,
    show_number,
    show_seconds,
    show_share,
    show_signed,
    show_unit,
)

MAX_ROWS = 15
MAX_DRAWN = 40
MAX_NODES = 3
OF_RATIOS = (
    "Ratios are of figures of the same rounds; each end of an interval holds at 95 % over all "
    "settings and looks."
)
OF_ROUNDS = (
    "Under a block: the rounds in which the setting ran there. A setting that was left out was run "
    "too little to prove anything about it: others were more promising."
)
COLUMNS = ("runs", "n", "figure", "unit", "of_best", "low", "high", "state", "cause")


def tuning_page(found: Tuned, rows: int = MAX_ROWS) -> Page:
    """Return what to use, how sure that is, so many rows of its settings, and the cost."""
    if found.swept is not None:
        swept = sweep_page(found)
        sections = [_about(found), *swept.sections, *_script(found)]
        return Page(title(found), sections, swept.summary, swept.records, swept.lines)
    first, *more = advice(found)
    failed = [each for each in found.settings if each.state == "failed"]
    told = [f"{each.name}: {each.cause}" for each in failed[:MAX_ROWS]]
    untried = untried_text(found)
    return Page(
        title(found),
        [
            _about(found),
            Section("Advice", [Text(first, "notice"), *more]),
            *_beside_the_best(found),
            *_race(found, [each for each in in_order(found) if each.state != "failed"], rows),
            *(
                [Section(f"{_settings(failed)} failed", [Items(told, len(failed))])]
                if failed
                else []
            ),
            Section("", [f"not varied: {untried}" if untried else ""]),
            *_script(found),
        ],
        records=lambda: to_builtins(found),
        lines=lambda: _lines(found),
    )


def race_page(found: Tuned) -> Page:
    """Return how a tuning stands: its blocks, and every setting."""
    return Page(
        title(found),
        [
            _about(found),
            *_race(found, in_order(found), len(found.settings)),
        ],
        records=lambda: to_builtins(found),
    )


def title(found: Tuned) -> str:
    return f"{found.tune}: {found.test} on {found.machine}"


def _about(found: Tuned) -> Section:
    what = found.metric or "the largest size that works"
    if found.metric:
        what = f"{found.metric}{show_unit(found.unit, ' ({})')}, {found.better} is better"
    state = "complete" if found.complete else "not complete"
    return Section("", [f"{title(found)}, {what}; {state}"])


def _settings(each: Sequence[TunedSetting]) -> str:
    return count(len(each), "setting")


def _script(found: Tuned) -> list[Section]:
    """Return the lines of a job script with the setting to use."""
    script = Text("\n".join(found.script), "code")
    return [Section("For a job script", [script])] if found.script else []


def _lines(found: Tuned) -> Iterator[list[object]]:
    axes = list(found.settings[0].values) if found.settings else []
    yield [*axes, *COLUMNS]
    for each in found.settings:
        ratio = each.to_best
        ends = (ratio.ratio, ratio.low, ratio.high) if ratio else (None, None, None)
        figures = (each.runs, each.n, each.figure, found.unit, *ends)
        yield [*each.values.values(), *figures, each.state, each.cause]


# ---- the race ------------------------------------------------------------------------------------


def _race(found: Tuned, settings: Sequence[TunedSetting], rows: int) -> Iterator[Section]:
    """Yield the blocks of a race, and the first rows of its settings."""
    blocks = found.blocks if found.search != "largest" else ()
    columns = [
        Column("setting", value=_named, fold=True),
        *(
            Column(f"block {number}", "count", partial(_ran, found, number), only="browser")
            for number, _ in enumerate(blocks, 1)
        ),
        Column("n", "count", lambda each: each.n),
        Column("figure", "number", partial(_figure, found), spare=3),
        Column("of the best", "number", lambda each: _ratio(each.to_best)),
        Column("interval", value=lambda each: _interval(each.to_best), spare=2),
        Column("state", value=partial(state_text, found), fold=True),
    ]
    table = Table.of(columns, settings[:rows], total=len(settings))
    yield Section("The race", [Items(list(_blocks(found))), f"cost: {cost_text(found)}"])
    yield Section("", [table, Text(OF_ROUNDS if blocks else "", "quiet", only="browser")])
    yield Section("", [not_needed(found)])


def _blocks(found: Tuned) -> Iterator[str]:
    for number, block in enumerate(found.blocks, 1):
        lost = sum(each.block == number for each in found.settings)
        what = f"{count(len(block.settings), 'setting')}, {count(block.rounds, 'round')}"
        ended = number < len(found.blocks) or found.complete
        after = f"; {lost} dropped after it" if ended else "; under way"
        on = f" on {listed(block.nodes, MAX_NODES)}" if block.nodes else ""
        yield f"block {number}: {what}{on}{after}"


def _named(each: TunedSetting) -> str:
    return each.name + (" (default)" if each.is_default else "")


def _ran(found: Tuned, number: int, each: TunedSetting) -> int | None:
    """Return in how many rounds of a block a setting ran."""
    block = found.blocks[number - 1]
    return block.rounds if each.number in block.settings else None


def _figure(found: Tuned, each: TunedSetting) -> Figure | None:
    return None if each.figure is None else Figure(each.figure, found.unit)


def _ratio(ratio: FigureRatio | None) -> str:
    return "" if ratio is None else f"{ratio.ratio:.3f}"


def _interval(ratio: FigureRatio | None) -> str:
    return "" if ratio is None else interval_text(ratio)


def _beside_the_best(found: Tuned) -> list[Section]:
    """Return the ratio of each setting to the best, drawn."""
    drawn = [each for each in in_order(found) if each.to_best is not None][:MAX_DRAWN]
    if not drawn:
        return []
    parts: list[Part] = [Chart(partial(_forest, found, drawn)), Text(OF_RATIOS, "quiet")]
    return [Section("Beside the best", parts, only="browser")]


_INKS: dict[str, int | str] = {"best": "good", "dropped": "bad", "failed": "bad"}


def _forest(found: Tuned, settings: Sequence[TunedSetting], width: int) -> Markup:
    """Return the ratio of each setting to the best, in per cent, with its interval, as SVG."""
    intervals = []
    for each in settings:
        ratio = each.to_best
        assert ratio is not None
        low, high = (None if end is None else 100 * (end - 1) for end in (ratio.low, ratio.high))
        value = 100 * (ratio.ratio - 1)
        label, ink = f"{show_signed(value)} %", _INKS.get(each.state, 1)
        intervals.append(plots.Interval(_named(each), value, low, high, label, ink, 0))
    return plots.forest(
        intervals,
        title=f"{found.metric} of each setting beside the best",
        about="A row for each setting, with an interval that holds at every look",
        axis=Axis(f"{found.metric} beside the best", "%"),
        centre=0,
        width=width,
        stacked=width < WIDE,
    )


# ---- by what runs took ---------------------------------------------------------------------------


def basis_sections(found: Tuned, based: BasedTuning) -> list[Section]:
    """Return which settings are best by what their runs took."""
    columns = [
        Column("setting", value=lambda each: found.settings[each.number].name, fold=True),
        Column(
            f"{based.metric}{show_unit(based.unit, ' ({})')}", "number", lambda each: each.figure
        ),
        Column("ratio", "number", lambda each: _ratio(each.to_best)),
        Column("interval", value=lambda each: _interval(each.to_best), spare=1),
    ]
    table = Table.of(columns, based.settings[:MAX_ROWS], total=len(based.settings))
    assert found.best is not None  # as some setting has a figure
    name = found.settings[found.best].name
    return [
        Section(f"By {based.per}", [Text(basis_text(found, based), "notice")]),
        Section("", [table, f"ratio: to {name}, the best by {based.metric} alone"]),
    ]


# ---- rehearsed -----------------------------------------------------------------------------------


def rehearsal_page(odds: TuningOdds, prepared: PreparedTuning) -> Page:
    """Return what a tuning would cost, and how likely it finds the best."""
    rules, tune = prepared.rules, prepared.tune
    runs = f"at most {rules.runs} of the grid's {rules.grid} runs"
    if rules.search != "sweep":
        runs += f" in {count(rules.allocations, 'allocation')}"
    longest = max((case.nodes * case.walltime / 3600 for case in prepared.cases), default=0.0)
    noise = f"{show_share(odds.noise)} noise, node factors of {show_share(odds.nodes)}"
    rows: list[list[Cell]] = [
        [
            each.planted,
            None if each.found is None else show_share(each.found),
            show_share(each.kept),
            show_share(each.runs / rules.grid),
        ]
        for each in odds.cases
    ]
    columns = [
        Column("planted effects", fold=True),
        Column("advised is best or near", "share"),
        Column("default kept", "share"),
        Column("runs", "share"),
    ]
    told = [
        f"{tune.tune}: {count(len(rules.levels), 'setting')} of {tune.test}, {runs}",
        f"cost: at most {show_number(rules.runs * longest)} node-hours, if each run took its whole "
        f"walltime; an allocation takes up to {show_seconds(prepared.longest_block)}",
        f"rehearsed with {count(odds.seeds, 'seed')}: {noise}, drift, disturbed runs",
    ]
    near = f"near: within {show_share(rules.min_effect)} of the best"
    sections = [Section("", told), Section("", [Table(columns, rows)]), Section("", [near])]
    return Page(tune.tune, sections, records=lambda: to_builtins(odds))
