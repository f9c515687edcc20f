"""Best: settings ranked over any parameters, as ``seatrial best`` ranks them."""

from typing import Any

from seatrial.model.figures import place_of_value
from seatrial.results.best import (
    BestQuery,
    BestTable,
    OverSizes,
    Setting,
    best_settings,
    over_sizes,
)
from seatrial.results.panels import varying
from seatrial.results.selection import Side, cases_of, words_of
from seatrial.show.best import forest as forest
from seatrial.show.best import range_sections, size_sections
from seatrial.show.given import given_section
from seatrial.show.page import Page
from seatrial.show.web.filters import cases_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

LABELS = {"over": "Over", "best-of": "Best of", "metric": "Metric", "x": "By"}  # of the form


def is_page(table: BestTable | OverSizes) -> bool:
    """Return whether all that is shown of a table is ``beside``."""
    return isinstance(table, OverSizes) or bool(table.best_of)


def beside(table: BestTable | OverSizes) -> Page:
    """Return what a page shows of the best over a range or sizes, and of given figures."""
    if isinstance(table, OverSizes):
        return Page("", size_sections(table))
    if table.best_of:
        return Page("", range_sections(table))
    return Page("", [given_section(table.given)] if table.given else [])


def grid(table: BestTable) -> list[tuple[str, list[Setting | None]]]:
    """Return the settings over two parameters: a row for each value of the first, with the
    setting for each of ``columns``."""
    by_values = {tuple(one.values.values()): one for one in table.settings}
    rows = dict.fromkeys(sorted((one[0] for one in by_values), key=place_of_value))
    return [(row, [by_values.get((row, each)) for each in columns(table)]) for row in rows]


def columns(table: BestTable) -> list[str]:
    """Return the values of the second of two parameters."""
    if len(table.over) != 2:
        return []
    second = (list(one.values.values())[1] for one in table.settings)
    return list(dict.fromkeys(sorted(second, key=place_of_value)))


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    question = BestQuery(
        over=words_of(query.text("over")),
        best_of=words_of(query.text("best_of")),
        metric=query.text("metric"),
        x=query.text("x"),
        statistic="least" if query.flag("least") else "median",
    )

    def judged(sides: list[Side]) -> tuple[list[BestTable | OverSizes], dict[str, list[str]]]:
        names = varying(cases_of(sides))
        return over_sizes(best_settings(sides, question)), {"names": names}

    return cases_page(
        *(state, query, ("best", question), LABELS, judged),
        panel=lambda table: {"table": table},
        given=True,
        over=list(question.over),
        names=[],
    )
