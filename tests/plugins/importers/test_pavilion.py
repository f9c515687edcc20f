from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.programs import Workplace

DATA = Path(__file__).parent / "data" / "pavilion"

RESULT: dict[str, Any] = {
    "name": "mytests.base.36",
    "id": 16176,
    "uuid": "8c2e",
    "created": "2020-07-06 15:28:01.5",
    "started": "2020-07-06 15:28:02.0",
    "finished": "2020-07-06 15:28:08.5",
    "duration": "0:00:06.5",
    "job_info": {"id": "123"},
    "permute_on": {"cores": "36"},
    "sched": {"nodes": "2"},
    "avg_speed": 3.75,
    "flag": True,
    "pav_result_errors": [],
    "per_file": {"node01": {"raw_speed": 33}},
    "result": "PASS",
    "return_value": 0,
    "sys_name": "trinity",
    "user": "bob",
}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def log(place: Workplace, *results: dict[str, Any] | str) -> None:
    lines = [
        each if isinstance(each, str) else msgspec.json.encode(each).decode() for each in results
    ]
    (place.folder / "results.log").write_text("\n".join(lines) + "\n")


def runs(place: Workplace) -> list[dict[str, Any]]:
    done = place.seatrial("runs", "--trial", "old", "--limit", "0", "--format", "json")
    assert done.code == 0, done.said
    return list(msgspec.json.decode(done.out))


def imported(place: Workplace, *options: str) -> str:
    done = place.seatrial("import", "pavilion", ".", "-o", "old", *options)
    assert done.code == (3 if "note: " in done.out else 0), done.said
    return done.out


def test_a_log_and_the_results_of_its_runs(place: Workplace) -> None:
    failed = {"result": "FAIL", "uuid": "8c2f", "return_value": 3, "pav_result_errors": ["no file"]}
    log(place, RESULT, RESULT | failed)
    folder = place.folder / "test_runs/16176"
    folder.mkdir(parents=True)
    (folder / "results.json").write_bytes(msgspec.json.encode(RESULT))
    (folder / "results.log").write_text("Gathering results.\n  name: mytests.base\n")
    out = imported(place, "--higher", "avg_speed")
    assert "old: 2 results of 1 test on trinity, 1 passed, 1 did not" in out
    bad, good = sorted(runs(place), key=lambda run: str(run["verdict"]))
    assert good["case_name"] == "mytests.base{cores=36}"
    assert good["elapsed"] == 6.5
    assert good["job_id"] == "123"
    assert bad["why"] == "Pavilion2 recorded FAIL; no file"
    assert bad["exit_code"] == 3
    assert (good["path"], bad["path"]) == (str(folder), ""), "of a log alone no folder is known"
    shown = place.seatrial("show", f"old/{good['run_id']}").out
    assert "raw_speed{file=node01}" in shown
    assert "flag" not in shown


def test_lines_that_are_no_results(place: Workplace) -> None:
    odd = {"name": "a", "result": "PERHAPS", "created": 1594049281.5}
    log(place, RESULT, '{"name": "cut', odd, {"id": 1})
    out = imported(place)
    assert "old: 1 result" in out
    for line in (2, 3, 4):
        assert f"results.log:{line}" in out


def test_several_systems(place: Workplace) -> None:
    log(place, RESULT, RESULT | {"sys_name": "snow", "uuid": "x"})
    done = place.seatrial("import", "pavilion", ".", "-o", "old")
    assert done.code == 2
    assert "several systems, trinity (1), snow (1)" in done.err
    assert "on snow" in imported(place, "-m", "snow")


def test_no_results(place: Workplace) -> None:
    done = place.seatrial("import", "pavilion", ".", "-o", "old")
    assert done.code == 2
    assert "has no results.json and no results.log of Pavilion2" in done.err


def test_what_pavilion_itself_wrote(place: Workplace) -> None:
    """Captured from Pavilion 2.4: its log has a line for each file of a result; the same results
    are in `results.json`; and a test run that reached its time limit has none."""
    done = place.seatrial("import", "pavilion", str(DATA), "-o", "old", "--higher", "triad")
    assert "old: 6 results of 4 tests on vm, 4 passed, 2 did not" in done.out
    assert "has no result, Pavilion2 recorded RESULTS_ERROR" in done.out
    assert "twice" not in done.out
    found = {run["case_name"]: run for run in runs(place)}
    assert found.keys() == {
        *("nodes.two{n=1}", "nodes.two{n=2}", "stream.base{size=1}", "stream.base{size=2}"),
        *("stream.fails", "stream.wrong"),
    }
    assert found["stream.fails"]["exit_code"] == 3
    assert found["stream.wrong"]["verdict"] == "check error"
    shown = place.seatrial("show", f"old/{found['nodes.two{n=2}']['run_id']}", "--format", "json")
    figures = {each["name"]: each["value"] for each in msgspec.json.decode(shown.out)["metrics"]}
    wanted = {"bw{file=node01}": 11, "bw{file=node02}": 12.5, "total": 23}
    assert {name: figures[name] for name in wanted} == wanted
