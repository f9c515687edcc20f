"""Bands: latency and bandwidth of a trial's pairs by level, as ``seatrial bands`` tells it."""

from typing import Any

from seatrial.model.machine_topology import known_topology
from seatrial.results.bands import LevelFigures, bands_of, hop_text, lines_of_trial, step_texts
from seatrial.results.store import queries
from seatrial.show.draw import plots
from seatrial.show.draw.svg import Axis
from seatrial.show.web.filters import suggested_trials
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState

steps, hop = step_texts, hop_text  # for the template


def picture(one: LevelFigures) -> Any:
    """Return the figures of each level as box plots, as SVG."""
    return plots.boxes(
        [
            plots.BoxGroup(level, values, one.counts[level])
            for level, values in one.quantiles.items()
        ],
        title=f"{one.name} by level",
        axis=Axis(one.name, one.unit),
    )


def data(state: ServerState, query: PageQuery) -> dict[str, Any]:
    tags = suggested_trials(state)
    page = {"state": "asked", "tags": tags, "reason": "", "machine": "", "figures": []}
    name = query.text("trial")
    if not name:
        return page
    trial = queries.trial(state.store(), name)

    def judged() -> tuple[str, list[LevelFigures]]:
        lines, machine = lines_of_trial(state.store(), trial)
        return machine.machine, bands_of(lines, known_topology(machine))

    version = (trial.row, trial.last, trial.passed)
    answer = state.studies.answer(("bands", trial.path), version, judged)
    if answer.value is None:
        return page | {"state": answer.state, "reason": answer.reason}
    machine, figures = answer.value
    return page | {"state": "judged", "machine": machine, "figures": figures}
