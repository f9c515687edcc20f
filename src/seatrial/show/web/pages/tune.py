"""Tune: what a tuning advises, and its race."""

from __future__ import annotations

from pathlib import Path

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.results.store import queries
from seatrial.results.tuned import tuned
from seatrial.show.formatting import trial_address
from seatrial.show.page import Link, Page, Section, Text
from seatrial.show.tune import tuning_page
from seatrial.show.web.page import PageQuery
from seatrial.show.web.state.server_state import ServerState
from seatrial.show.web.study_view import StudyView


def data(state: ServerState, query: PageQuery) -> StudyView:
    row = queries.trial(state.store(), query.path["tag"])
    folder = TrialFolder(Path(row.path))
    version = folder.journal.stat().st_size if folder.journal.exists() else 0
    study = state.studies.answer(("tune", row.tag), (version,), lambda: _read(folder))
    view = StudyView(title=f"Tuning {row.tag}", fields=(), rehearsed=row.rehearsed)
    return view.answered(study)


def _read(folder: TrialFolder) -> Page:
    if folder.record().policy.race is None:
        raise UsageError(f"{folder.tag} is no tuning")
    found = tuned(folder)
    page = tuning_page(found, rows=len(found.settings))
    trial = Text(["trial", Link(found.trial, trial_address(found.trial))], "quiet")
    return replace(page, sections=[Section("", [trial]), *page.sections])
