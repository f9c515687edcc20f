"""Bands: latency and bandwidth of a trial's pairs by level."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.model.machine_topology import known_topology
from seatrial.results.bands import bands_of, lines_of_trial
from seatrial.results.store import queries
from seatrial.show.bands import bands_page, origin_section
from seatrial.show.page import Page
from seatrial.show.web.filters import suggested_trials
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import Field, StudyView, choices_of

ASKS = "Name a trial with runs of the probe pingpong."


def data(state: ServerState, query: PageQuery) -> StudyView:
    tags = suggested_trials(state)
    field = Field("Trial", "trial", size=30, suggested=tags, required=True)
    choices = choices_of("trial", tags)
    view = StudyView(title="Bands", fields=[field], asks=ASKS, choices=choices)
    name = query.text("trial")
    if not name:
        return view
    trial = queries.trial(state.store(), name)

    def judged() -> Page:
        lines, machine = lines_of_trial(state.store(), trial)
        page = bands_page(bands_of(lines, known_topology(machine)))
        return replace(page, sections=[origin_section(machine.machine, trial.tag), *page.sections])

    version = (trial.row, trial.last, trial.passed)
    answer = state.studies.answer(("bands", trial.path), version, judged)
    return replace(view, title=f"Bands of {name}").answered(answer)
