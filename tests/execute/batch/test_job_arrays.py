"""The list of the runs of an array: a run is known by its id, whatever the path of its trial."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.execute.backends import Job, Submission
from seatrial.execute.batch.submitter import FORGOTTEN, NO_PLACE, places, tasks_of, write_submission


def submission(trial: Path, *names: str) -> Submission:
    jobs = tuple(Job(name, trial / "runs/t" / name, 1, 1, 1, 1, 60.0, "", False) for name in names)
    return Submission(f"seatrial-{names[0]}", jobs)


def written(trial: Path, *names: str) -> Path:
    made = submission(trial, *names)
    folder = trial / "submissions" / made.name
    write_submission(folder, made, "$INDEX", ["true"])
    return folder


def test_runs_have_the_places_of_their_ids_by_whatever_path(tmp_path: Path) -> None:
    folder = written(tmp_path / "a", "r1", "r2", "r3")
    (tmp_path / "a").rename(tmp_path / "b")
    folder = tmp_path / "b" / folder.relative_to(tmp_path / "a")
    left = submission(tmp_path / "b", "r1", "r3")  # r2 has its verdict
    assert [(task.array, task.index) for task in tasks_of(left, 7, folder)] == [(7, 0), (7, 2)]


def test_the_job_of_a_build_is_known_by_the_name_of_its_submission(tmp_path: Path) -> None:
    folder = tmp_path / "seatrial-b12"
    job = Job("b12", folder / "build", 1, 1, 1, 1, 60.0, "", False)
    write_submission(folder, Submission("seatrial-b12", (job,)), "$INDEX", ["true"])
    (task,) = tasks_of(Submission("seatrial-b12", (job,)), 7, folder)
    assert (task.index, task.alone) == (0, True)


@pytest.mark.parametrize("there", [True, False], ids=["another list", "no list"])
def test_a_run_without_a_place_is_no_task_of_another_s(tmp_path: Path, there: bool) -> None:
    folder = written(tmp_path, "r1", "r2") if there else tmp_path / "submissions/seatrial-r1"
    if not there:
        assert places(folder) == {}
    (*_, task) = tasks_of(submission(tmp_path, "r1", "r9"), 7, folder)
    assert (task.job.run_id, task.array, task.index) == ("r9", FORGOTTEN, NO_PLACE)
