"""seatrial tune with search: sweep, as a process, on this host."""

from __future__ import annotations

import csv
import io
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import RunJudged
from tests.programs import Workplace

# Rates saturate at 8 clients; with one file they are lower; 64 clients crash.
SCRIPT = """
[ "$clients" -eq 64 ] && { echo "no memory" >&2; exit 7; }
sleep 0.15
rate=$(( (clients < 8 ? clients : 8) * 1000 + RANDOM % 10 ))
[ "$files" = one ] && rate=$((rate * 8 / 10))
echo "write $rate read $((rate * 2 / (clients > 2 ? 2 : 1)))"
"""
METRICS = {
    "write": {"find": r"write (\d+)", "better": "higher", "unit": "MiB/s"},
    "read": {"find": r"read (\d+)", "better": "higher", "unit": "MiB/s"},
}
AXES: dict[str, list[Any]] = {
    "clients": [1, 2, 4, 8, 16, 32, 64],
    "files": ["each", "one"],
    "transfer": ["64K", "1M"],
}


def sweep(place: Workplace, **keys: Any) -> str:
    """Write a test and its tune.yaml; return the file's name."""
    scratch = {"path": str(place.folder), "advertised": {"write": "10 GiB/s"}}
    place.local(cores=1, file_systems={"scratch": scratch})
    first = {name: values[:1] for name, values in AXES.items()}
    run = {"walltime": "10s", "launcher": "none"}
    place.test("app", SCRIPT, parameters=first, metrics=METRICS, run=run)
    about = {"tune": "io", "suite": "suite", "test": "app", "search": "sweep", "metric": "write"}
    path = place.folder / "tune.yaml"
    path.write_text(yaml.safe_dump({**about, "axes": AXES, "also": ["read"], "runs": 22, **keys}))
    return path.name


@pytest.fixture(scope="module")
def swept(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A sweep whose driver was killed, and resumed."""
    place = Workplace(tmp_path_factory.mktemp("sweep"))
    with place.start("tune", sweep(place), "-m", str(place.machine), "--name", "t") as driving:
        driving.until(lambda: place.count(RunJudged) >= 9, "the second block")
        driving.kill()
    assert place.resume().code in (0, 1)
    return place


def test_best_plateau_and_knee_of_both_figures(swept: Workplace) -> None:
    done = swept.seatrial("advise", "t", "--format", "json")
    found = json.loads(done.out)
    write, read = found["swept"]["bests"]
    values = {each["number"]: each["values"] for each in found["settings"]}
    assert values[write["best"]]["clients"] in (8, 16, 32)
    assert values[write["best"]]["files"] == "each" and write["low"] < 8009 < write["high"] * 1.01
    assert all(values[each]["files"] == "each" for each in write["plateau"])
    assert values[read["best"]]["files"] == "each" and read["metric"] == "read"
    runs = Counter(event.run_id for event in swept.events("t", RunJudged))
    assert set(runs.values()) == {1} and found["runs"] <= 22
    swept.audit_log()


def test_a_crash_is_named_and_is_no_slow_point(swept: Workplace) -> None:
    done = swept.seatrial("advise", "t")
    assert done.code == 0, done.said
    assert "failed or ended early, which counts as no figure" in done.out
    assert "clients=64,files=" in done.out and "exit code 7" in done.out
    rows = [*csv.DictReader(io.StringIO(swept.seatrial("advise", "t", "--format", "csv").out))]
    failed = [row for row in rows if row["state"] == "failed"]
    assert {row["clients"] for row in failed} == {"64"}
    assert {row["write"] for row in failed} == {""}


def test_what_a_person_reads(swept: Workplace) -> None:
    said = swept.seatrial("advise", "t").out
    assert "best write: clients=" in said and "best read: clients=" in said
    assert "write in % of the best: clients down, files across" in said
    assert "28 points; " in said and "MiB/s (n = " in said
    assert "of advertised" in said
    assert "scratch advertises write: 10 GiB/s = 10240 MiB/s" in said
    picture = swept.seatrial("advise", "t", "--format", "svg").out
    assert picture.startswith(("<svg", "<?xml"))
    assert "clients=64, files=one: no point ran" in picture
    status = swept.seatrial("tune", "--status", "t").out
    assert "on the plateau" in status and "failed: exit code 7" in status


def test_a_limit_is_told_with_what_it_means(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    file = sweep(place, runs=6, also=[])
    done = place.seatrial("tune", file, "-m", str(place.machine), "--name", "t")
    assert done.code == 0, done.said
    assert "stopped by the limit of 6 runs: the best is of what was tried" in done.out


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"runs": 0}, "25 % of 28 settings are 7 runs"),
        ({"also": ["reed"]}, "no figure 'reed'"),
        ({"also": ["write"]}, "write stands there twice"),
        ({"runs": 2}, "2 is too few"),
        ({"search": "race"}, "is for search: sweep"),
        ({"load": {"gauge": "osts", "below": 5}}, "has no gauge 'osts'"),
        ({"time": "2 weeks ago"}, "time"),
        ({"blocks": {"rounds": 2}}, "is of a race"),
        ({"axes": AXES | {"clients": [4, 2, 1]}}, "rising order, from small to large"),
    ],
)
def test_faults_have_place_and_remedy(tmp_path: Path, keys: dict[str, Any], said: str) -> None:
    place = Workplace(tmp_path)
    file = sweep(place, **keys)
    done = place.seatrial("tune", file, "-m", str(place.machine), "--rehearse", "--seeds", "1")
    if keys == {"runs": 0}:  # 7 runs are enough
        assert done.code == 0 and "at most 7 of the grid's 28 runs" in done.out
        return
    assert done.code == 2 and said in done.said and "tune.yaml:" in done.said
