"""The settings of a tuning by what their runs took: cores, nodes, node-hours, or what a plug-in
knows, such as charges.

    found = on_basis(tuned(folder), folder.cases(), "charge", str(folder.path))
    found.settings[found.best]

Which setting is best by its figures, and which by what they took, need not be the same: a faster
one may take more nodes. What a run takes is that of its case, and of the median time of its runs.
"""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.test import Case
from seatrial.results.case_figures import ELAPSED, CaseRuns, Kind
from seatrial.results.ratios import per_resource
from seatrial.results.selection import Side
from seatrial.results.tuned import FigureRatio, Tuned, TunedSetting, interval_text
from seatrial.units import show_figure


class BasedSetting(Struct, frozen=True):
    """A setting with its figure on a basis, and that over the figure of the setting which is best
    without the basis."""

    number: int
    figure: float
    to_best: FigureRatio | None


class BasedTuning(Struct, frozen=True):
    """The settings of a tuning that have figures, on a basis."""

    per: str
    metric: str
    unit: str
    better: str
    #: the best first
    settings: list[BasedSetting]

    @property
    def best(self) -> BasedSetting:
        return self.settings[0]


def on_basis(found: Tuned, cases: Sequence[Case], per: str, folder: str = "") -> BasedTuning:
    """Return the settings of a tuning, which is in that folder, on a basis. Raises UsageError where
    it has no figures, and where it is not known what a run takes."""
    known = [each for each in found.settings if each.figure is not None]
    if found.best is None or not known:
        raise UsageError(f"--per {per}: {found.trial} has no figures of settings")
    kind: Kind = (found.metric, found.unit, found.better)
    runs = [
        replace(_runs_of(found, each, cases[each.number], kind), folder=folder) for each in known
    ]
    based = per_resource(Side(found.trial, [], runs), per).cases
    rows, unit = list[BasedSetting](), ""
    figures = {}
    for each, case in zip(known, based, strict=True):
        figure_on = {name: (name_unit, v) for (name, name_unit, _), v in case.values.items()}
        if found.metric not in figure_on:
            raise UsageError(f"--per {per}: {found.metric} is no rate, and no time in a known unit")
        unit, (figures[each.number],) = figure_on[found.metric]
    best = found.settings[found.best]
    for each in known:
        rows.append(BasedSetting(each.number, figures[each.number], _ratio(each, best, figures)))
    sign = 1 if found.better == "lower" else -1
    rows.sort(key=lambda row: (sign * row.figure, row.number))
    return BasedTuning(per, found.metric, unit, found.better, rows)


def _runs_of(found: Tuned, setting: TunedSetting, case: Case, kind: Kind) -> CaseRuns:
    """Return the figure of a setting, and the time of its runs, as studies have them."""
    values = {kind: [setting.figure or 0.0]}
    if setting.node_hours and setting.nodes:
        values.setdefault(ELAPSED, [setting.node_hours * 3600 / setting.nodes])
    return CaseRuns(
        test=case.test,
        case=case.id,
        parameters={name: str(value) for name, value in case.parameters.items()},
        machine=found.machine,
        toolchain=case.toolchain,
        stage="",
        node=case.node,
        trial=found.trial,
        nodes=case.nodes,
        tasks=case.tasks,
        threads=case.threads,
        build="",
        runs=[],
        values=values,
        excluded={},
    )


def _ratio(each: TunedSetting, best: TunedSetting, figures: dict[int, float]) -> FigureRatio | None:
    """Return the ratio of figures on the basis: that of rounds, times that of what they took."""
    if each.to_best is None or not each.figure or not best.figure:
        return None
    own, of_best = figures[each.number] / each.figure, figures[best.number] / best.figure
    low, high = (
        None if end is None else end * own / of_best
        for end in (each.to_best.low, each.to_best.high)
    )
    return FigureRatio(each.to_best.ratio * own / of_best, low, high, each.to_best.n)


def basis_text(found: Tuned, based: BasedTuning) -> str:
    """Return which setting is best on the basis, in words."""
    assert found.best is not None
    chosen, alone = found.settings[based.best.number], found.settings[found.best]
    figure = show_figure(based.best.figure, based.unit)
    if chosen is alone:
        return f"per {based.per}, too, {chosen.name} is best: {figure}"
    ratio = based.best.to_best
    text = f"per {based.per}, use {chosen.name}: {figure}"
    if ratio is None:
        return f"{text}; it has no round in common with {alone.name}, so no ratio"
    interval = f"{interval_text(ratio)}, n = {ratio.n}"
    told = f"{ratio.ratio:.3f} times that of {alone.name} ({interval})"
    ends = (ratio.low, ratio.high)
    apart = ends[1] is not None and ends[1] < 1
    if based.better == "higher":
        apart = ends[0] is not None and ends[0] > 1
    return f"{text}, {told}" if apart else f"{text}, {told}; it cannot be told which is better"
