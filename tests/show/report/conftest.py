"""A rehearsed plan and a small real trial, made once; their reports."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from seatrial.cli import main
from seatrial.results.store.ingest import synced
from seatrial.show.report.content import Report
from seatrial.show.report.gather import gather
from seatrial.show.report.planned import find
from tests.programs import Done, Workplace
from tests.show.report.acceptance import UGLY, acceptance

Command = Callable[..., Done]


@pytest.fixture(scope="package")
def planned(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a plan that was rehearsed: ``plan.yaml``, ``trials/``."""
    folder = tmp_path_factory.mktemp("planned")
    acceptance(folder).play_all()
    return folder


@pytest.fixture(scope="package")
def rehearsed(planned: Path) -> Report:
    """The report on that plan."""
    plan = planned / "plan.yaml"
    found = find(planned / "trials", plan, rehearsed=True)
    with synced(planned / "store.sqlite", planned / "trials") as store:
        return gather(found, store)


@pytest.fixture(scope="package")
def real(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the trial ``t`` of this host: two tests, of which one fails, and one in three
    sizes."""
    place = Workplace(tmp_path_factory.mktemp("real"))
    place.local(cores=4)
    rate = {"rate": {"find": r"rate (\S+)", "unit": UGLY[:12], "better": "higher"}}
    place.test("good", "echo rate $threads", logs=False, parameters={"threads": [1, 2, 4]},
               run={"threads_per_task": "threads"}, metrics=rate, repeat=5)  # fmt: skip
    place.test("bad", f"echo '{UGLY}' >&2; exit 3", logs=False)
    done = place.run("--name", "t", "-q")
    assert done.code == 1, done.said
    return place.folder


@pytest.fixture
def seatrial(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Command:
    """The command's own door, in this process."""

    def run(folder: Path, *words: str) -> Done:
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["seatrial", *words])
        with pytest.raises(SystemExit) as ended:
            main()
        said = capsys.readouterr()
        assert isinstance(ended.value.code, int)
        return Done(ended.value.code, said.out, said.err)

    return run


@pytest.fixture
def copied(real: Path, tmp_path: Path) -> Path:
    """A copy of the real trial, to be damaged."""
    import shutil

    shutil.copytree(real / "trials", tmp_path / "trials", symlinks=True)
    return tmp_path
