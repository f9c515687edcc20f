from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.programs import Done, Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def imported(place: Workplace, text: str, *options: str, tag: str = "old") -> Done:
    (place.folder / "old.csv").write_text(text)
    return place.seatrial("import", "csv", "old.csv", "-o", tag, "-m", "frost", *options)


def runs(place: Workplace) -> list[dict[str, Any]]:
    done = place.seatrial("runs", "--trial", "old", "--limit", "0", "--format", "json")
    assert done.code == 0, done.said
    return list(msgspec.json.decode(done.out))


def history(place: Workplace, metric: str) -> list[str]:
    done = place.seatrial("history", metric, "--format", "csv")
    assert done.code == 0, done.said
    return done.out.splitlines()[1:]


LONG = """\
benchmark;metric;value;unit;date;node;status
lulesh{size=60}@gcc;fom;12.5;z/s;2021-02-01T10:00:00Z;n001;passed
lulesh{size=60}@gcc;memory;3;GiB;2021-02-01T10:00:00Z;n001;passed
lulesh{size=60}@gcc;fom;12.75;z/s;2021-02-02T10:00:00Z;n001;passed
lulesh{size=60}@gcc;fom;;z/s;2021-02-03T10:00:00Z;n002;timeout
"""


def test_a_row_for_each_figure(place: Workplace) -> None:
    columns = ("--case", "benchmark", "--time", "date", "--higher", "fom")
    done = imported(place, LONG, *columns)
    assert done.code == 0, done.said
    assert "old: 3 results of 1 test on frost, 2 passed, 1 did not" in done.out
    found = runs(place)
    assert [each["verdict"] for each in found] == ["timeout", "pass", "pass"]
    assert found[0]["case_name"] == "lulesh{size=60}@gcc"
    assert found[0]["nodes"] == "n002"
    assert found[0]["created"] == "2021-02-03T10:00:00.000000Z"
    assert len(history(place, "fom")) == 2
    assert "GiB" in history(place, "memory")[0]


def test_a_column_for_each_figure(place: Workplace) -> None:
    text = "triad[MB/s]\tcopy\tthreads\ttime\n120.5\t90\t4\t1612137600\n121\t\t8\t1612137700\n"
    options = ("--test", "stream", "--figure", "triad[MB/s]", "--figure", "copy=MB/s")
    done = imported(place, text, *options, "--parameter", "threads")
    assert done.code == 0, done.said
    names = {each["case_name"] for each in runs(place)}
    assert names == {"stream{threads=4}", "stream{threads=8}"}
    assert all("MB/s" in line for line in history(place, "triad"))
    assert len(history(place, "copy")) == 1


@pytest.mark.parametrize(
    ("options", "names"),
    [
        ((), {"milc", "gtc{size=2}"}),
        (("--parameter", "cores"), {"milc{cores=8}", "gtc{size=2,cores=8}"}),
        (("--case", "cores"), {"8"}),
        (("--test", "one"), {"one"}),
        (("--test", "one", "--parameter", "Test"), {"one{Test=milc}", "one{Test=gtc{size=2}}"}),
    ],
)
def test_a_column_test_has_the_case(
    place: Workplace, options: tuple[str, ...], names: set[str]
) -> None:
    text = "Test;cores;metric;value\nmilc;8;wait;3\ngtc{size=2};8;wait;4\n"
    done = imported(place, text, *options)
    assert done.code == 0, done.said
    assert {each["case_name"] for each in runs(place)} == names


GTC = [(1, 24576, 1000), (2, 12288, 500), (6, 4096, 480), (12, 2048, 700), (24, 1024, 950)]


@pytest.mark.parametrize("options", [(), ("--parameter", "threads", "--parameter", "tasks")])
def test_a_sweep_over_the_same_cores_is_no_strong_scaling(
    place: Workplace, options: tuple[str, ...]
) -> None:
    rows = [f"{threads},{tasks},{wall}" for threads, tasks, wall in GTC]
    text = "\n".join(["threads,tasks,wall,run", *(f"{row},{i}" for i in "ab" for row in rows)])
    given = ("--test", "gtc", "--figure", "wall=s", "--lower", "wall", "--id", "run")
    assert imported(place, text, *given, *options).code == 0
    scaled = place.seatrial("scaling", "old", "--x", "threads", "--metric", "wall").out
    assert "constant resources" in scaled and "strong" not in scaled
    assert "plateau: threads 2 to 6" in scaled
    ranked = place.seatrial("best", "old", "--over", "threads,tasks").out
    assert "constant resources: 24576 cores in each setting" in ranked
    by_core = place.seatrial("best", "old", "--over", "threads", "--per", "core")
    assert by_core.code == 0, by_core.said


def test_names_in_a_column_are_no_numbers(place: Workplace) -> None:
    text = "case,wall,nodes,tasks\na,1,n001,4\na,2,n002,0\n"
    done = imported(place, text, "--figure", "wall=s")
    assert done.code == 0 and "2 results" in done.out, done.said
    text = text.replace("a,", "b,")
    done = imported(place, text, "--figure", "wall=s", "--tasks", "tasks", tag="again")
    assert "tasks '0' is no whole number above 0: left out" in done.said


def test_repeats_and_rows_that_are_there_twice(place: Workplace) -> None:
    text = "case,metric,value,time\na,fom,1,2021-02-01\na,fom,2,2021-02-01\na,fom,2,2021-02-01\n"
    done = imported(place, text)
    assert "old: 2 results" in done.out
    assert "old.csv:4" in done.out
    assert "is there twice, the same in all columns" in done.out
    again = imported(place, text, tag="again")
    assert again.code == 2
    assert "imported before (2 in old)" in again.err


def test_results_that_were_imported_with_other_values_are_told(place: Workplace) -> None:
    text = "case,metric,value,time\na,wall,224,2021-02-01\nb,wall,7,2021-02-01\n"
    assert imported(place, text).code == 0
    changed = text.replace("224", "140")
    again = imported(place, changed, tag="again")
    assert again.code == 2
    differs = "old has a result of the same case and time with other values: left out; --id names"
    assert f"1 time {differs} a column that tells them apart" in again.err
    assert "old.csv:2: wall 140 here, 224 there" in again.err
    more = imported(place, f"{changed}c,wall,8,2021-02-01\n", tag="more")
    assert more.code == 3
    assert "more: 1 result of 1 test" in more.out and f"note: {differs}" in more.out


def test_a_result_that_was_imported_with_another_verdict_is_told(place: Workplace) -> None:
    text = "case,metric,value,time,status\na,wall,224,2021-02-01,ok\n"
    assert imported(place, text).code == 0
    again = imported(place, text.replace("ok", "failed"), tag="again")
    assert "old.csv:2: failed here, pass there" in again.err
    assert "other values" not in imported(place, text, tag="same").err


SACCT = """\
JobID|JobName|Elapsed|State|Start
12|cm4|1-02:00:00|COMPLETED|2026-01-01T10:00:00
13|cm4|27:00:00|TIMEOUT|2026-01-03T10:00:00
14|cm4|00:10:00.5|CANCELLED by 1000|2026-01-05T10:00:00
15|cm4|00:01:00|OUT_OF_MEMORY|2026-01-05T11:00:00
16|cm4|-|NODE_FAIL|2026-01-05T12:00:00
17|cm4|later|FAILED|2026-01-05T13:00:00
18|cm4|00:00:09|RUNNING|2026-01-05T14:00:00
19|cm4|00:00:09|COMPLETED with errors|2026-01-05T15:00:00
"""


def test_the_accounts_of_slurm(place: Workplace) -> None:
    columns = ("--case", "JobName", "--figure", "Elapsed", "--time", "Start", "--status", "State")
    done = imported(place, SACCT, *columns, "--id", "JobID", "--lower", "Elapsed")
    assert done.code == 3, done.said
    assert re.findall(r"note: (.*)\n +(.*)", done.out) == [
        ("Elapsed: 'later' is not a number: left out, the run did not pass", "old.csv:7"),
        ("its status is 'RUNNING': it is not over: left out", "old.csv:8"),
        (
            "status 'COMPLETED with errors' is none of pass, failed, timeout, ...: left out",
            "old.csv:9",
        ),
    ]
    verdicts = [each["verdict"] for each in reversed(runs(place))]
    ends = ["pass", "timeout", "cancelled", "out of memory", "node failure", "failed"]
    assert verdicts == ends
    (line,) = history(place, "Elapsed")
    assert "93600" in line and ",s," in line


def test_a_direction_that_is_none_is_told(place: Workplace) -> None:
    done = imported(place, "case,metric,value,better\na,fom,1,up\n", "--higher", "fom")
    assert done.code == 0
    assert "better is 'up', which is none of higher, lower and none: higher was taken" in done.out


def test_times_with_dots_and_zones(place: Workplace) -> None:
    rows = "2026.01.02 3:00:00 +0100,a,rate,1\n2026.01.03 3:00:00 +0100,a,rate,2\n"
    assert imported(place, f"time,case,metric,value\n{rows}").code == 0
    created = [each["created"] for each in runs(place)]
    assert created == ["2026-01-03T02:00:00.000000Z", "2026-01-02T02:00:00.000000Z"]


def test_rows_without_a_time_are_runs_of_their_own(place: Workplace) -> None:
    done = imported(place, "case,metric,value\na,fom,1\na,size,2\n")
    assert "old: 2 results" in done.out


@pytest.mark.parametrize(
    ("row", "what"),
    [
        ("a,fom,fast,s,2021-02-01,ok", "fom: 'fast' is not a number: left out"),
        ("a,fom,nan,s,2021-02-01,ok", "'nan' is not a finite number"),
        ('a,fom,"1,5",s,2021-02-01,ok', "write a point"),
        ("a,fom,1,s,yesterday,ok", "'yesterday' is no time"),
        ("a,fom,1,s,2021-02-01,maybe", "status 'maybe' is none of"),
        ("a,,1,s,2021-02-01,ok", "has no metric"),
        ("a,fom,1,s", "has 4 values, and the head 6"),
    ],
)
def test_a_bad_row_is_named_and_the_others_come(place: Workplace, row: str, what: str) -> None:
    good = "a,fom,1,s,2021-02-03,ok"
    done = imported(place, f"case,metric,value,unit,time,status\n{row}\n{good}\n")
    assert done.code == 3, done.said
    assert "old: 1 result of 1 test" in done.out
    assert what in done.out
    assert "old.csv:2" in done.out


@pytest.mark.parametrize(
    ("text", "options", "what"),
    [
        ("", (), "is empty"),
        ("case,value\na,1\n", (), "no column has the metric or its value"),
        ("test,metric,value\na,f,1\n", ("--parameter", "test"), "no column has the case"),
        (
            "metric,value\nfom,1\n",
            (),
            "no column has the case; name it with --case, or give --test; there are metric, value",
        ),
        ("case,metric,value\na,f,1\n", ("--time", "daet"), "no column 'daet' (--time)"),
        ("case,metric,value\na,f,x\n", (), "old.csv:2: f: 'x' is not a number"),
    ],
)
def test_nothing_can_be_imported(
    place: Workplace, text: str, options: tuple[str, ...], what: str
) -> None:
    done = imported(place, text, *options)
    assert done.code == 2
    assert what in done.err
    assert not (place.folder / "trials/old").exists()


def test_the_machine_must_be_named(place: Workplace) -> None:
    (place.folder / "old.csv").write_text("case,metric,value\na,f,1\n")
    done = place.seatrial("import", "csv", "old.csv", "-o", "old")
    assert done.code == 2
    assert "Missing option '-m' / '--machine'" in done.err
    done = place.seatrial("import", "csv", "old.csv", "-o", "old", "-m", "")
    assert done.code == 2
    assert "does not name the machine; give it with --machine NAME" in done.err
