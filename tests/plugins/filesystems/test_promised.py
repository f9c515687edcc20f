"""What was promised of a file system: as it is written, and its share in every table."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import Workplace
from tests.show.web.served import Served


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def test_a_promise_that_is_none_is_a_fault_with_its_line(place: Workplace) -> None:
    place.local()
    place.test("hello", "echo hello")
    text = place.machine.read_text() + (
        "file_systems:\n"
        "  scratch:\n"
        "    path: /scratch\n"
        "    servers: -1\n"
        "    advertised:\n"
        "      write: fast\n"
        "      read: 0 GB/s\n"
        "      a/b: 3 s\n"
        "      stat: 50000\n"
        "      creates: 50000 1/s\n"
        "      huge: 1e200 GB/s\n"
    )
    place.machine.write_text(text)
    done = place.run("--name", "t")
    assert done.code == 2, done.said
    first = text.count("\n") - 8
    told = {
        "servers": "-1 is less than 0",
        "advertised.write": "'fast' is no figure with a unit; write e.g. 50 GB/s or 50000 1/s",
        "advertised.read": "'0 GB/s' is not more than 0",
        "advertised.a/b": "'a/b' is no name of a metric",
        "advertised.stat": "'50000' is no figure with a unit",
        "advertised.huge": "beyond 1e+150",
    }
    lines = dict(zip(told, (0, 2, 3, 4, 5, 7), strict=True))
    for key, words in told.items():
        place_of = f"machine.yaml:{first + lines[key] + 1}: file_systems.scratch.{key}: "
        assert any(place_of in line and words in line for line in done.said.splitlines()), done.said
    assert "creates" not in done.said
    assert not place.trials.exists()


WRITE = "scratch advertises write: 50 GB/s = 47684 MiB/s"


def a_benchmark(place: Workplace, **keys: Any) -> None:
    """Three cases that write 11,780, 23,560 and 47,120 MiB/s, the last one 98.8 % of 50 GB/s."""
    place.local(file_systems=file_systems(place))
    units = {"write": "MiB/s", "made": "kops/s", "took": "s", "reads": "GB/s"}
    place.test(
        "io",
        "echo write $((11780*clients)); echo made 25; echo took 3; echo reads 0.009",
        logs=False,
        parameters={"clients": [1, 2, 4]},
        metrics={
            name: {"find": rf"^{name} (\S+)", "unit": unit, "better": "higher"}
            for name, unit in units.items()
        },
        **keys,
    )


def file_systems(place: Workplace) -> dict[str, Any]:
    """Return two file systems: the trials are on scratch, and nothing runs on home."""
    figures = {"write": "50 GB/s", "creates": "50000 1/s", "took": "3 GB/s"}
    return {
        "scratch": {"path": str(place.folder), "servers": 24, "advertised": figures},
        "root": {"path": "/", "advertised": {"write": "1 TB/s"}},
        "home": {"path": "/home", "advertised": {"read": "9 GB/s", "stat": "1 s"}},
    }


ASKED = {"made": "creates", "took": "none", "reads": "home/read"}


def test_each_table_has_the_share_of_what_was_promised(place: Workplace) -> None:
    a_benchmark(place, advertised=ASKED)
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert "98.8 %" in done.out and WRITE in done.out
    place.run("--name", "u")
    shown = {
        words: place.seatrial(*words.split())
        for words in (
            "best t --metric write",
            "scaling t --metric write --x clients",
            "compare t u",
            "matrix t --by clients --cases --metric write",
            "history write",
            "variability t",
        )
    }
    for words, done in shown.items():
        assert "98.8 %" in done.out and "24.7 %" in done.out, (words, done.said)
        assert WRITE in done.out.replace("in brackets: ", ""), (words, done.said)
    for words in ("best t u --over trial --best-of clients --metric write", "records write"):
        said = place.seatrial(*words.split()).out
        assert "of advertised" in said and "98.8 %" in said and WRITE in said, said
        assert words.startswith("records") or "47120 MiB/s at clients=4" in said
    rows = [line for line in shown["compare t u"].out.splitlines() if "%," in line]
    for name, shares in {"made": "50.0 %, 50.0 %", "reads": "0.1 %, 0.1 %"}.items():
        assert [shares in row for row in rows if f" {name} " in row] == [True] * 3
    assert not any(" took " in row for row in rows)
    assert "of advertised" not in place.seatrial("best", "t", "--metric", "took").out


def test_a_run_and_json_tell_what_was_promised(place: Workplace) -> None:
    a_benchmark(place, advertised={"took": "none", "made": "made", "reads": "nowhere/read"})
    place.run("--name", "t", "-k", "clients=4")
    done = place.seatrial("show", "--last")
    (line,) = [line for line in done.out.splitlines() if line.startswith("write")]
    assert line.split() == ["write", "47120", "MiB/s", "higher", "98.8", "%"]
    assert "scratch advertises made: no share: its advertised figures are creates," in done.out
    assert "nowhere advertises read: no share: here has no file system of that name" in done.out
    record = json.loads(place.seatrial("show", "--last", "--format", "json").out)
    promised = {figure["name"]: figure.get("promised") for figure in record["metrics"]}
    assert promised["took"] is None and promised["made"]["share"] is None
    assert promised["write"]["share"] == pytest.approx(0.98818, rel=1e-4)
    assert promised["write"]["value"] == pytest.approx(47683.7, rel=1e-5)
    with Served(place.trials) as served:
        html = served.get(f"/runs/t/{record['run']['run_id']}")[1]
    assert "Of advertised" in html and "98.8 %" in html and WRITE in html


def test_a_promise_of_another_dimension_is_a_fault_with_its_line(place: Workplace) -> None:
    a_benchmark(place, advertised={"made": "home/stat", "reads": "", "wirte": "write"})
    said = place.run("--name", "t").said
    assert "advertised.reads: '' is no figure" in said
    assert "advertised.wirte: the test has no metric wirte; did you mean 'write'?" in said
    a_benchmark(place, advertised={"made": "home/stat"})
    done = place.run("--name", "t")
    assert done.code == 2 and not place.trials.exists()
    text = (place.suite / "io" / "test.yaml").read_text().splitlines()
    for name, fault in {
        "took": "3 GB/s is of another dimension than s, which scratch advertises for took",
        "made": "1 s is of another dimension than kops/s, which home advertises for stat",
    }.items():
        (line,) = [line for line in done.said.splitlines() if f"metrics.{name}.unit" in line]
        assert f"{fault}; write `advertised: {{{name}: none}}`" in line
        place_of = int(line.split("test.yaml:")[1].split(":")[0])
        assert "unit" in text[place_of - 1]


def test_the_file_system_on_which_a_run_works_is_meant(place: Workplace) -> None:
    a_benchmark(place, advertised={"took": "none"}, run={"directory": "/var/tmp"})
    place.run("--name", "t", "-k", "clients=4")
    assert "root advertises write: 1 TB/s = 953674 MiB/s" in place.seatrial("show", "--last").out


def test_what_is_written_later_counts_for_earlier_trials(place: Workplace) -> None:
    a_benchmark(place, advertised={"took": "none"})
    place.local()
    machines = place.folder / "machines"
    machines.mkdir()
    named = place.machine.rename(machines / "here.yaml")
    done = place.seatrial("run", str(place.suite), "-m", "here", "--name", "t", "-k", "clients=4")
    assert done.code == 0 and "advertise" not in done.out, done.said
    about = yaml.safe_load(named.read_text()) | {"file_systems": file_systems(place)}
    named.write_text(yaml.safe_dump(about))
    assert WRITE in place.seatrial("show", "--last").out
    named.write_text("machine: here\n")
    assert "advertise" not in place.seatrial("show", "--last").out
