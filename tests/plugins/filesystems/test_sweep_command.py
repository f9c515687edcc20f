"""seatrial io sweep, on this host."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import GaugeRead, RunJudged, RunSubmitted
from tests.programs import Workplace

TEST = {
    "app": "writes",
    "requires": {"space": "hosts * writers * size(block) B"},
    "parameters": {"api": ["posix", "mpiio"]},
    "defaults": {"hosts": 1, "writers": 1, "block": "1M", "transfer": "64K", "folder": "."},
    "run": {
        "walltime": "10s",
        "launcher": "none",
        "script": 'touch "$folder/ran" || exit\necho "write $((writers * 100)) read $writers"',
    },
    "metrics": {
        "write": {"find": r"write (\d+)", "unit": "MiB/s", "better": "higher"},
        "read": {"find": r"read (\d+)", "unit": "MiB/s", "better": "higher"},
    },
}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    """A machine with a file system, and a suite with a recipe that writes."""
    place = Workplace(tmp_path)
    scratch, gauge = tmp_path / "scratch", tmp_path / "gauge"
    scratch.mkdir()
    gauge.write_text("99")
    place.local(
        cores=4,
        file_systems={"scratch": {"path": str(scratch)}},
        gauges={"load": {"command": f"cat {gauge}", "every": "100ms"}},
    )
    folder = tmp_path / "own" / "writes"
    folder.mkdir(parents=True)
    (folder.parent / "suite.yaml").write_text("# a suite\n")
    (folder / "test.yaml").write_text(yaml.safe_dump(TEST))
    return place


def words(place: Workplace, *more: str) -> list[str]:
    recipe = ["--suite", str(place.folder / "own"), "--recipe", "writes"]
    return ["io", "sweep", "scratch", "-m", str(place.machine), "--name", "t", *recipe, *more]


def test_the_io_probe_is_swept_for_real(tmp_path: Path) -> None:
    """Writing and reading by MPI, every byte checked, in a folder of the file system."""
    place = Workplace(tmp_path)
    (tmp_path / "scratch").mkdir()
    scratch = {"scratch": {"path": str(tmp_path / "scratch")}}
    chain = {"mpi": {"cc": "gcc", "mpicc": "mpicc"}}
    place.local(cores=2, toolchains=chain, file_systems=scratch)
    axes = ["block=1M", "api=posix", "files=each,one", "transfer=64K,1M"]
    asked = [word for axis in axes for word in ("--axis", axis)]
    line = ["io", "sweep", "scratch", "-m", str(place.machine), "--name", "t", *asked]
    done = place.seatrial(*line, "--max-runs", "6")
    assert done.code == 0, done.said
    assert "best write: writers=" in done.out and "best read: writers=" in done.out
    assert "8 points; " in done.out and "in 6 runs (75% of the grid)" in done.out
    assert not list((tmp_path / "scratch").rglob("io.*"))  # it cleans up
    assert "free on" in done.err and "a run may take 10% of it" in done.err


def test_axes_follow_from_the_machine_and_the_recipe(place: Workplace) -> None:
    target = place.folder / "tune.yaml"
    done = place.seatrial(*words(place, "--write", str(target), "--time", "2h"))
    assert done.code == 0, done.said
    tuning = yaml.safe_load(target.read_text())
    assert tuning["axes"] == {
        "writers": [1, 2, 4],
        "api": ["posix", "mpiio"],
        "transfer": ["64K", "256K", "1M", "4M", "16M"],
    }
    assert tuning["parameters"] == {"hosts": 1, "folder": str(place.folder / "scratch")}
    assert (tuning["metric"], tuning["also"]) == ("write", ["read"])
    assert tuning["time"] == "2h" and tuning["space"] > 0
    again = place.seatrial(*words(place, "--write", str(target)))
    assert again.code == 2 and "is there already" in again.err
    rehearsed = place.seatrial(
        "tune", str(target), "-m", str(place.machine), "--rehearse", "--seeds", "2"
    )
    assert rehearsed.code == 0 and "18 settings of writes" in rehearsed.out  # transfer <= block


def test_a_recipe_whose_outputs_name_its_figures(place: Workplace) -> None:
    target = place.folder / "fio.yaml"
    line = ["io", "sweep", "scratch", "-m", str(place.machine), "--recipe", "fio"]
    done = place.seatrial(*line, "--axis", "block=16M", "--max-runs", "8", "--write", str(target))
    assert done.code == 0, done.said
    tuning = yaml.safe_load(target.read_text())
    assert (tuning["metric"], tuning["also"], tuning["better"]) == ("write", ["read"], "higher")
    assert tuning["parameters"]["block"] == "16M" and "writers" in tuning["axes"]


def test_it_waits_for_production_and_names_what_takes_too_much(place: Workplace) -> None:
    """Nothing starts while the gauge is high; settings above the limit of space never run."""
    asked = ["--axis", "block=1M,8M", "--axis", "transfer=64K", "--space", "8M", "--max-runs", "6"]
    with place.start(*words(place, *asked, "--gauge", "load", "--below", "40")) as driving:
        driving.until(lambda: place.count(GaugeRead) >= 2, "two readings")
        assert not place.count(RunSubmitted)
        (place.folder / "gauge").write_text("12")
        done = driving.end()
    assert done.code == 0, done.said
    assert place.count(RunJudged) == 6
    assert (place.folder / "scratch" / "ran").exists()
    assert "not in the grid: 2 points: takes 16.0 MiB, more than 8.0 MiB" in done.out
    rows = csv.DictReader(io.StringIO(place.seatrial("advise", "t", "--format", "csv").out))
    assert {(row["block"], row["writers"]) for row in rows} == {
        *(("1M", each) for each in ("1", "2", "4")),
        ("8M", "1"),
    }


@pytest.mark.parametrize(
    ("more", "said"),
    [
        (["--axis", "nodes"], "write a name and values"),
        (["--axis", "nodes=1,,2"], "write a name and values"),
        (["--axis", "ost=1"], "has no parameter 'ost'"),
        (["--axis", "nodes=1", "--axis", "hosts=2"], "is given twice"),
        (["--gauge", "load"], "belong together"),
        (["--gauge", "lod", "--below", "1"], "has no gauge 'lod'"),
        (["--gauge", "load", "--below", "nan"], "is not a number"),
        (["--budget", "0%"], "above 0 and at most 100%"),
        (["--budget", "many"], "is not a share"),
        (["--time", "soon"], "--time soon"),
        (["--space", "much"], "is not a size"),
        (["--space", "0%"], "leaves no space"),
        (["--space", "1K"], "smallest takes 1.0 MiB\n1 fault; nothing was done. `--write"),
        (["--metric", "wirte"], "no figure 'wirte'"),
        (["--recipe", "wrote"], "no such test"),
        (["--axis", "writers=1", "--axis", "api=posix", "--axis", "transfer=1M"], "nothing to sw"),
    ],
)
def test_faults_are_told_with_a_remedy(place: Workplace, more: list[str], said: str) -> None:
    done = place.seatrial(*words(place, *more))
    assert done.code == 2 and said in done.said, done.said
    assert not place.trials.exists() or not list(place.trials.glob("t"))


def test_a_file_system_that_is_none(place: Workplace) -> None:
    line = ["io", "sweep", "scrach", "-m", str(place.machine)]
    said = place.seatrial(*line).said
    assert "has no file system 'scrach'; did you mean 'scratch'?" in said
    line[2] = "/nosuch/folder"
    assert "what is free there is unknown" in place.seatrial(*line).said
