"""Tune: the race of one tuning: its settings by block, their ratios to the best, the advice."""

from pathlib import Path
from typing import Any

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.results.store import queries
from seatrial.results.tuned import (
    Tuned,
    TunedSetting,
    advice,
    cost_text,
    in_order,
    state_text,
    tuned,
    untried_text,
)
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.formatting import NARROW, WIDE
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

DRAWN = 40
_INKS: dict[str, int | str] = {"best": "good", "dropped": "bad", "failed": "bad"}


class TunePage(Struct, frozen=True, kw_only=True):
    """The race of a trial; ``state`` is "judging", "judged" or "refused" (``reason``). ``rows`` are
    the settings, the best first; ``advice`` are sentences, the first of which says what to use."""

    tag: str
    state: str
    reason: str = ""
    tuned: Tuned | None = None
    rows: list[TunedSetting] = []
    advice: list[str] = []
    cost: str = ""
    untried: str = ""

    def forest(self, wide: bool) -> Any:
        """Return the ratio of each setting to the best, in per cent, with its interval, as SVG."""
        intervals = []
        for row in [each for each in self.rows if each.to_best is not None][:DRAWN]:
            ratio = row.to_best
            assert ratio is not None
            low, high = (
                None if end is None else 100 * (end - 1) for end in (ratio.low, ratio.high)
            )
            value = 100 * (ratio.ratio - 1)
            name = row.name + (" (default)" if row.is_default else "")
            ink = _INKS.get(row.state, 1)
            label = f"{value:+.1f} %"
            intervals.append(plots.Interval(name, value, low, high, label, ink, 0))
        metric = self.tuned.metric if self.tuned is not None else ""
        return plots.forest(
            intervals,
            title=f"{metric} of each setting beside the best",
            about="A row for each setting, with an interval that holds at every look",
            axis=Axis(f"{metric} beside the best", "%"),
            centre=0,
            width=WIDE if wide else NARROW,
            stacked=not wide,
        )

    def ran(self, row: TunedSetting, block: int) -> str:
        """Return how often a setting ran in a block (from 0 on), as a word for its cell."""
        assert self.tuned is not None
        about = self.tuned.blocks[block]
        return str(about.rounds) if row.number in about.settings else ""

    def told(self, row: TunedSetting) -> str:
        """Return what became of a setting."""
        return state_text(row)


def data(state: ServerState, query: PageQuery) -> TunePage:
    row = queries.trial(state.store(), query.path["tag"])
    folder = TrialFolder(Path(row.path))
    version = folder.journal.stat().st_size if folder.journal.exists() else 0
    study = state.studies.answer(("tune", row.tag), (version,), lambda: _read(folder))
    if study.value is None:
        return TunePage(tag=row.tag, state=study.state, reason=study.reason)
    found: Tuned = study.value
    return TunePage(
        tag=row.tag,
        state="judged",
        tuned=found,
        rows=in_order(found),
        advice=advice(found),
        cost=cost_text(found),
        untried=untried_text(found),
    )


def _read(folder: TrialFolder) -> Tuned:
    if folder.record().policy.race is None:
        raise UsageError(f"{folder.tag} is no tuning")
    return tuned(folder)
