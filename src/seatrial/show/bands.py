"""Latency and bandwidth of pairs by level of the network and by kind of core, as a page."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any
from urllib.parse import urlencode

import msgspec
from markupsafe import Markup

from seatrial.judge.statistics.bands import OddPair
from seatrial.results.bands import LevelFigures, hop_text, step_texts
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import machine_address, trial_address
from seatrial.show.page import Chart, Column, Link, Page, Part, Section, Table
from seatrial.units import count, show_figure, show_interval, show_number

MAX_ODD = 20
CAPTION = "Pairs of ranks by the smallest level that holds both"


def bands_page(figures: Sequence[LevelFigures]) -> Page:
    """Return the page of the pairs of a trial or file, with two sections for each figure at
    most."""
    sections = [section for one in figures for section in _sections(one)]
    return Page("Bands", sections, records=lambda: {one.name: _record(one) for one in figures})


def origin_section(machine: str, trial: str) -> Section:
    """Return where the pairs of a trial are from, for the top of its page."""
    over_time = urlencode({"machine": machine, "metric": "latency_by_level"})
    columns = [Column("machine"), Column("trial"), Column("over time")]
    row = [
        Link(machine, machine_address(machine)),
        Link(trial, trial_address(trial)),
        Link("latency_by_level", f"/history?{over_time}"),
    ]
    return Section("", [Table(columns, [row])], only="browser")


def _record(one: LevelFigures) -> dict[str, Any]:
    record: dict[str, Any] = msgspec.to_builtins(one)
    del record["name"], record["quantiles"]
    found: dict[str, Any] = record.pop("found")
    return record | found


def _sections(one: LevelFigures) -> Iterator[Section]:
    yield Section(f"{one.name} in {one.unit}", [_chart(one), _levels(one), *_told(one)])
    if one.cores is not None:
        yield Section(f"{one.name} by kind of core", [_cores(one)])


def _chart(one: LevelFigures) -> Chart:
    return Chart(partial(_boxes, one), CAPTION)


def _boxes(one: LevelFigures, width: int) -> Markup:
    groups = [
        plots.BoxGroup(level, values, one.counts[level]) for level, values in one.quantiles.items()
    ]
    axis = Axis(one.name, one.unit)
    return plots.boxes(groups, title=f"{one.name} by level", axis=axis, width=width)


def _levels(one: LevelFigures) -> Table:
    columns = (
        Column("level", value=lambda band: band.level),
        Column("pairs", "count", lambda band: band.pairs),
        Column("median", "number", lambda band: band.median),
        Column("95 %", "number", lambda band: show_interval(band.low, band.high)),
        Column("modes", "count", lambda band: band.modes, only="terminal"),
        Column("modes (share)", value=lambda band: _modes(one, band.level), only="browser"),
    )
    return Table.of(columns, one.found.bands)


def _modes(one: LevelFigures, level: str) -> str:
    return ", ".join(
        f"{show_number(mode.centre)} ({100 * mode.share:.0f} %)" for mode in one.modes[level]
    )


def _cores(one: LevelFigures) -> Table:
    columns = (
        Column("level", value=lambda band: band.level),
        Column("cores", value=one.cores_text, fold=True),
        Column("pairs", "count", lambda band: band.pairs),
        Column("share", "number", lambda band: f"{100 * band.share:.3g} %"),
        Column("median", "number", lambda band: band.median),
        Column("95 %", "number", lambda band: show_interval(band.low, band.high)),
    )
    return Table.of(columns, one.core_bands)


def _told(one: LevelFigures) -> Iterator[Part]:
    """Yield what the levels and the pairs say in sentences."""
    found = one.found
    if len(found.bands) == 1 and not found.hop:
        yield f"all pairs are of one level, {found.bands[0].level}: nothing to compare"
    yield from step_texts(one)
    yield hop_text(one)
    if one.expected_mean is not None:
        mean = show_figure(one.expected_mean, one.unit)
        yield f"expected mean of evenly drawn pairs of nodes: {mean}"
    for odd in found.odd[:MAX_ODD]:
        yield f"beyond its band: {_odd_text(odd, one)}"
    if len(found.odd) > MAX_ODD:
        yield f"and {count(len(found.odd) - MAX_ODD, 'pair')} more; the JSON has them"


def _odd_text(odd: OddPair, one: LevelFigures) -> str:
    usual = "what is usual at that distance" if one.longest else "the median of its level"
    how = f"{odd.ratio:.3g} times {usual} ({odd.level})"
    return f"{odd.first}-{odd.second}: {show_number(odd.value)} {one.unit}, {how}"
