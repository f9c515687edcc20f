"""Tune: the race of one tuning: its settings by block, their ratios to the best, the advice."""

from pathlib import Path
from typing import Any

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.results.store import queries
from seatrial.results.tuned import (
    Tuned,
    TunedSetting,
    advice,
    cost_text,
    in_order,
    not_needed,
    state_text,
    tuned,
    untried_text,
)
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW, WIDE
from seatrial.show.page import Page
from seatrial.show.sweep import sweep_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

DRAWN = 40
told = state_text  # for the template
_INKS: dict[str, int | str] = {"best": "good", "dropped": "bad", "failed": "bad"}


def forest(data: dict[str, Any], wide: bool) -> Any:
    """Return the ratio of each setting to the best, in per cent, with its interval, as SVG."""
    intervals = []
    for row in [each for each in data["rows"] if each.to_best is not None][:DRAWN]:
        ratio = row.to_best
        assert ratio is not None
        low, high = (None if end is None else 100 * (end - 1) for end in (ratio.low, ratio.high))
        value = 100 * (ratio.ratio - 1)
        name = row.name + (" (default)" if row.is_default else "")
        ink = _INKS.get(row.state, 1)
        label = f"{value:+.1f} %"
        intervals.append(plots.Interval(name, value, low, high, label, ink, 0))
    metric = data["tuned"].metric
    return plots.forest(
        intervals,
        title=f"{metric} of each setting beside the best",
        about="A row for each setting, with an interval that holds at every look",
        axis=Axis(f"{metric} beside the best", "%"),
        centre=0,
        width=WIDE if wide else NARROW,
        stacked=not wide,
    )


def swept(data: dict[str, Any]) -> Page | None:
    """Return the page of a sweep, None for another tuning."""
    race: Tuned | None = data["tuned"]
    return sweep_page(race) if race is not None and race.swept is not None else None


def ran(tuned: Tuned, row: TunedSetting, block: int) -> str:
    """Return how often a setting ran in a block (from 0 on), as a word for its cell."""
    about = tuned.blocks[block]
    return str(about.rounds) if row.number in about.settings else ""


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    """Return the race of a trial. Its ``rows`` are the settings, the best first; ``advice`` are
    sentences, the first of which says what to use."""
    row = queries.trial(state.store(), query.path["tag"])
    folder = TrialFolder(Path(row.path))
    version = folder.journal.stat().st_size if folder.journal.exists() else 0
    study = state.studies.answer(("tune", row.tag), (version,), lambda: _read(folder))
    race: Tuned | None = study.value
    return {
        "tag": row.tag,
        "state": study.state,
        "reason": study.reason,
        "tuned": race,
        "rows": in_order(race) if race else [],
        "advice": advice(race) if race else [],
        "cost": cost_text(race) if race else "",
        "not_needed": not_needed(race) if race else "",
        "untried": untried_text(race) if race else "",
    }


def _read(folder: TrialFolder) -> Tuned:
    if folder.record().policy.race is None:
        raise UsageError(f"{folder.tag} is no tuning")
    return tuned(folder)
