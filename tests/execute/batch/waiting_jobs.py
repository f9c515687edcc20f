"""Runs on a real batch system that wait until a test lets them go on."""

from __future__ import annotations

import os
from pathlib import Path

from seatrial.journal.events import JobQueued
from tests.gates import wait_for
from tests.programs import Workplace

# Waits of the backend that are shorter than at a site.
QUICK = {
    "execute.batch.batch.SHORTEST_POLL": 0.2,
    "execute.batch.batch.POLL_SHARE": 1.0,
    "execute.batch.submitter.LONGEST_BACK_OFF": 0.5,
    "execute.batch.scheduler_client.CALM_SECONDS": 0.2,
}

# Jobs of PBS and of Grid Engine have no variables of this process: those that make Open MPI start
# soon and wait without a core (tests/conftest.py), and that let root start it.
OF_MPI = {
    **{name: value for name, value in os.environ.items() if name.startswith(("OMPI_MCA_", "UCX_"))},
    "OMPI_ALLOW_RUN_AS_ROOT": "1",
    "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1",
}


def wait_script(place: Workplace) -> str:
    return f"{wait_for(place.folder / 'go')}; echo ok"


def go(place: Workplace) -> None:
    (place.folder / "go").touch()


def claimed(place: Workplace) -> list[Path]:
    """The directories of the runs of a trial whose scripts have started."""
    return [run.parent for run in place.trial().path.glob("runs/*/*/events.jsonl")]


def job_of(place: Workplace, test: str) -> str:
    """The id of the first job of a test."""
    return next(event.job_id for event in place.events("t", JobQueued) if event.test == test)
