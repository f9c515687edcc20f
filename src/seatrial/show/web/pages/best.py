"""Best: settings ranked over any parameters, as ``seatrial best`` ranks them."""

import re
from typing import Any

from seatrial.results.best import BestQuery, BestTable, Setting, best_settings
from seatrial.results.panels import varying
from seatrial.results.selection import Side, cases_of
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW, WIDE
from seatrial.show.web.filters import cases_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

DRAWN = 40
LABELS = {"over": "Over", "metric": "Metric"}  # of the form

_LOOKS: dict[str, tuple[str, int]] = {
    "best": ("good", 4),
    "as good": ("good", 1),
    "unclear": ("muted", 1),
    "worse": ("muted", 3),
}


def forest(table: BestTable, wide: bool) -> Any:
    """Return the speed of each setting in per cent of the best one's, with its interval, as
    SVG."""
    measured = [one for one in table.settings if one.ratio is not None]
    rows = []
    for one in measured[:DRAWN]:
        value = 100 * (one.ratio or 0.0)
        low, high = (end and 100 * end for end in (one.low, one.high))
        label = f"{value:.1f} % {one.verdict}"
        rows.append(plots.Interval(one.name, value, low, high, label, *_LOOKS[one.verdict]))
    return plots.forest(
        rows,
        title=f"{table.case}: speed over that of the best setting",
        about="A row for each setting, with its 95 % interval",
        axis=Axis("of the best", "%"),
        centre=100,
        width=WIDE if wide else NARROW,
        stacked=not wide,
        bars=True,
    )


def grid(table: BestTable) -> list[tuple[str, list[Setting | None]]]:
    """Return the settings over two parameters: a row for each value of the first, with the
    setting for each of ``columns``."""
    by_values = {tuple(one.values.values()): one for one in table.settings}
    rows = dict.fromkeys(sorted((one[0] for one in by_values), key=_place))
    return [(row, [by_values.get((row, each)) for each in columns(table)]) for row in rows]


def columns(table: BestTable) -> list[str]:
    """Return the values of the second of two parameters."""
    if len(table.over) != 2:
        return []
    second = (list(one.values.values())[1] for one in table.settings)
    return list(dict.fromkeys(sorted(second, key=_place)))


def _place(value: str) -> tuple[int, float, str]:
    """Return a key to sort values by: numbers by size, then words."""
    return (0, float(value), "") if re.fullmatch(r"-?\d+(\.\d+)?", value) else (1, 0.0, value)


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    over = tuple(name.strip() for name in query.text("over").split(",") if name.strip())
    question = BestQuery(
        over=tuple(dict.fromkeys(over)),
        metric=query.text("metric"),
        statistic="least" if query.flag("least") else "median",
    )

    def judged(sides: list[Side]) -> tuple[list[BestTable], dict[str, list[str]]]:
        names = varying(cases_of(sides))
        return best_settings(sides, question), {"names": names}

    return cases_page(
        *(state, query, ("best", question), LABELS, judged),
        panel=lambda table: {"table": table},
        over=list(question.over),
        names=[],
    )
