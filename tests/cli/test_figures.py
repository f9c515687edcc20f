"""`seatrial figures import`: figures that others give, beside measured ones, never among them."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.journal.events import FigureGiven, FiguresImported
from tests.programs import Done, Workplace

HEAD = "case,metric,unit,value,n,sd\n"


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A place with the trial ``pt``: five runs of a test whose rate is about 952. A copy of it is
    in ``kept``."""
    place = Workplace(tmp_path_factory.mktemp("measured"))
    place.local(cores=2)
    script = "echo rate $((950 + ${SEATRIAL_ATTEMPT:-0} + $(ls -d ../*/ | wc -l)))"
    rate = {"find": r"rate (\d+)", "unit": "MB/s", "better": "higher"}
    parameters = {"size": ["small", "large"]}
    place.test("hello", script, metrics={"rate": rate}, repeat=5, parameters=parameters)
    assert place.run("--name", "pt").code == 0
    shutil.copytree(place.trials, place.folder / "kept")
    return place


@pytest.fixture
def measured(ran: Workplace) -> Workplace:
    """The place as it was after its trial."""
    shutil.rmtree(ran.trials)
    shutil.copytree(ran.folder / "kept", ran.trials)
    return ran


def write(place: Workplace, text: str, head: str = HEAD) -> Path:
    path = place.folder / "vt.csv"
    path.write_text(head + text)
    return path


def bring(place: Workplace, text: str, *words: str, head: str = HEAD) -> Done:
    write(place, text, head)
    return place.seatrial("figures", "import", "vt.csv", "--as", "vt", *words)


def compared(place: Workplace, *words: str) -> tuple[int, list[dict[str, Any]]]:
    done = place.seatrial("compare", *words, "--format", "json")
    assert done.out, done.err
    return done.code, json.loads(done.out)["comparisons"][0]["rows"]


FIGURES = (
    '"hello{size=small}@plain",rate,MB/s,1000,7,3.5\nhello{size=large}@plain,rate,MB/s,900,3,\n'
)


def test_given_figures_are_a_side_and_decide_nothing(measured: Workplace) -> None:
    done = bring(measured, FIGURES, "--by", "Example Corp.")
    assert (done.code, done.err) == (0, "") and "Example Corp." in done.out
    code, rows = compared(measured, "vt", "pt")
    assert code == 0, "10 % worse than given is no verdict"
    assert [(row["verdict"], row["parameters"]["size"]) for row in rows] == [
        ("given", "large"), ("given", "small")
    ]  # fmt: skip
    small = rows[1]
    assert small["better"] == "higher", "as it was measured"
    assert (small["first"]["n"], small["first"]["median"]) == (7, 1000.0)
    (given,) = small["first"]["given"]
    origin = {"system": "vt", "source": "Example Corp.", "date": ""}
    assert given == {"value": 1000.0, "n": 7, "sd": 3.5, "least": None, "greatest": None} | origin
    assert small["second"]["n"] == 5 and small["second"]["given"] == []
    assert small["ratio"] == pytest.approx(small["second"]["median"] / 1000)
    assert 0.9 < small["low"] <= small["ratio"] <= small["high"] < 1
    ends = small["better_from"], small["better_by"], small["better_to"]
    assert ends == pytest.approx([100 * (small[key] - 1) for key in ("low", "ratio", "high")])
    shown = measured.seatrial("compare", "pt", "vt")
    assert shown.code == 0
    assert "vt: given, not measured" in shown.out and "2 given" in shown.out
    assert "they differ in" not in shown.out


def test_nothing_takes_them_for_measured(measured: Workplace) -> None:
    before = {
        words: measured.seatrial(*words).out
        for words in (("history", "rate"), ("variability", "pt"), ("runs",), ("runs", "--failed"))
    }
    assert bring(measured, FIGURES).code == 0
    for words, out in before.items():
        assert measured.seatrial(*words).out == out, words
    for line in (
        ["resume", "vt"], ["judge", "vt"], ["report", "vt"], ["reference", "accept", "vt"],
        ["scaling", "vt", "--x", "size"], ["variability", "vt"], ["compare", "pt", "v*"],
    ):  # fmt: skip
        done = measured.seatrial(*line)
        assert done.code in (2, 3) and "defect" not in done.err, (line, done.said)
    trials = {row["tag"]: row for row in json.loads(
        measured.seatrial("trials", "--format", "json").out)}  # fmt: skip
    assert (trials["vt"]["state"], trials["vt"]["passed"], trials["vt"]["runs"]) == ("given", 0, 0)
    runs = json.loads(measured.seatrial("runs", "--trial", "vt", "--format", "json").out)
    assert {run["verdict"] for run in runs} == {"given"}
    assert compared(measured, "@given=yes", "pt")[0] == 0
    assert measured.seatrial("compare", "pt:given=yes", "pt").code == 2
    code, rows = compared(measured, "@machine=here", "vt")
    assert code == 0 and rows[0]["first"]["n"] == 5


def test_a_report_shows_them_beside_what_was_measured(measured: Workplace) -> None:
    assert bring(measured, FIGURES).code == 0
    done = measured.seatrial("report", "pt", "--given", "vt", "-o", "pt.json")
    assert done.code == 0, done.said
    report = json.loads((measured.folder / "pt.json").read_text())
    (figure,) = [
        one
        for one in report["components"][0]["figures"]
        if one["title"] == "Beside given figures: vt"
    ]
    rows = {row[0]: row for row in figure["table"]["rows"]}
    row = rows["hello{size=small}"]
    assert row[1:5] == ["rate", "MB/s", 1000, 7] and row[6] == 5
    assert row[7] == pytest.approx(100 * (row[5] / 1000 - 1))
    assert "not measured here" in figure["about"]
    assert {"vt"} <= {file["trial"] for file in report["files"]}
    assert measured.seatrial("report", "pt", "--given", "vt", "-o", "pt.html").code == 0
    page = (measured.folder / "pt.html").read_text()
    assert "worse than given" in page and "given, not measured" in page
    assert measured.seatrial("report", "verify", "pt.html").code == 3, "nobody signed it"
    journal = measured.trial("vt").journal
    journal.write_text(journal.read_text().replace("1000", "1001"))
    assert measured.seatrial("report", "verify", "pt.html").code == 1
    assert measured.seatrial("report", "pt", "--given", "pt").code == 2


def test_a_report_shows_each_system_of_a_file(measured: Workplace) -> None:
    head = "case,metric,unit,value,n,system,source\n"
    row = "hello{{size=small}}@plain,rate,MB/s,1000,7,{},a paper\n"
    rows = "".join(map(row.format, ("X", "Y")))
    assert bring(measured, rows, head=head).code == 0
    done = measured.seatrial("compare", "vt", "pt")
    assert done.code == 2 and "choose one machine, such as 'vt:machine=X'" in done.err
    assert compared(measured, "vt:machine=Y", "pt:size=small")[1][0]["verdict"] == "given"
    done = measured.seatrial("report", "pt", "--given", "vt", "-o", "pt.json")
    assert done.code == 0, done.said
    report = json.loads((measured.folder / "pt.json").read_text())
    figures = report["components"][0]["figures"]
    assert any("not measured here (of X, a paper)" in one["about"] for one in figures)
    titles = [one["title"] for one in figures]
    beside = [title for title in titles if title.startswith("Beside given")]
    assert beside == ["Beside given figures: vt of X", "Beside given figures: vt of Y"]


def test_a_report_with_a_checklist_shows_given_figures(measured: Workplace) -> None:
    assert bring(measured, FIGURES).code == 0
    parts: list[dict[str, object]] = [
        {"component": "people", "kind": "checklist", "items": [{"text": "a node is drained"}]},
        {"component": "pt", "tests": ["hello"]},
    ]
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": parts}
    (measured.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    assert measured.seatrial("accept", "plan.yaml", "-q").code == 3, "an item is awaited"
    done = measured.seatrial("report", "plan.yaml", "--given", "vt", "-o", "r.json")
    assert done.code == 0, done.said
    found = json.loads((measured.folder / "r.json").read_text())["components"]
    titles = {part["title"]: [one["title"] for one in part["figures"]] for part in found}
    assert titles["people"] == []
    assert "Beside given figures: vt" in titles["pt"]


def test_the_store_is_rebuilt_from_their_journal(measured: Workplace) -> None:
    assert bring(measured, FIGURES).code == 0
    before = compared(measured, "vt", "pt")
    kinds = {type(event) for event in measured.events("vt")}
    assert kinds == {FiguresImported, FigureGiven}
    assert measured.seatrial("store", "rebuild").code == 0
    assert compared(measured, "vt", "pt") == before
    shutil.move(measured.trials / "vt", measured.trials / "vendor")
    assert compared(measured, "vendor", "pt")[1] == before[1]
    again = bring(measured, FIGURES)
    assert again.code == 0
    assert bring(measured, FIGURES).code == 2, "the tag is taken"


def test_other_columns_and_delimiters(measured: Workplace) -> None:
    head = "\ufeffTest;Parameters;toolchain;stage;metric;unit;better;value;n;min;max\r\n"
    row = "hello;size=small;plain;;rate;MB/s;higher;1D+03;2;9.9D2;1010\r\n"
    assert bring(measured, row, "-m", "here", head=head).code == 0
    _, rows = compared(measured, "vt", "pt:size=small")
    (given,) = rows[0]["first"]["given"]
    assert (given["least"], given["greatest"], rows[0]["verdict"]) == (990.0, 1010.0, "given")


def test_given_figures_in_another_unit_of_the_dimension_are_converted_and_told(
    measured: Workplace,
) -> None:
    bring(measured, FIGURES)
    _, alike = compared(measured, "vt", "pt")
    shutil.rmtree(measured.trials / "vt")
    rows = "hello{size=small}@plain,rate,GB/s,1,7,0.0035\n"
    rows += "hello{size=large}@plain,rate,kB/s,900000,3,\n"
    assert bring(measured, rows).code == 0
    code, found = compared(measured, "vt", "pt")
    assert (code, [row["unit"] for row in found]) == (0, ["MB/s", "MB/s"])
    for row, same in zip(found, alike, strict=True):
        assert row["verdict"] == "given"
        assert row["ratio"] == pytest.approx(same["ratio"])
    assert found[1]["first"]["given"][0]["sd"] == pytest.approx(3.5)
    shown = " ".join(measured.seatrial("compare", "pt", "vt").out.split())
    assert shown.count("1 GB/s = 1000 MB/s") == 1
    assert shown.count("kB/s = 900 MB/s") == 1


def test_units_and_directions_that_differ_are_not_compared(measured: Workplace) -> None:
    head = "case,metric,unit,better,value,n\n"
    rows = "hello{size=small}@plain,rate,GB,,1,5\nhello{size=large}@plain,rate,MB/s,lower,900,5\n"
    assert bring(measured, rows, head=head).code == 0
    code, found = compared(measured, "vt", "pt")
    assert (code, {row["verdict"] for row in found}) == (3, {"not compared"})


FAULTS = {
    "hello,rate,MB/s,fast,5,": ["2: value"],
    "hello,rate,MB/s,nan,0,-1": ["2: value", "2: sd", "2: n"],
    '"hello{size}",rate,MB/s,1,5,': ["2: case"],
    "hello world,,MB/s,1,5,": ["2: case", "2: metric"],
    "hello,rate,,1.5,2.5,": ["2: n", "2: unit"],
    "hello,rate,MB/s,1": ["2:"],
    '"hello,rate': ["2:"],
    "a,rate,x,1,1,\n\na,rate,x,2,1,": ["4: metric"],
    'a,rate,x,"1,000",1,': ["2: value"],
    "a,rate,x,1_000,1,": ["2: value"],
    "": ["1:"],
}


@pytest.mark.parametrize("text", FAULTS)
def test_each_fault_has_its_line_and_column(place: Workplace, text: str) -> None:
    done = bring(place, text)
    assert done.code == 2, done.said
    lines = [line for line in done.err.splitlines() if line.startswith("vt.csv:")]
    assert sorted(":".join(line.split(":")[1:3]).rstrip() for line in lines) == sorted(
        place if " " in place else f"{place}{line.split(':')[2]}"
        for place, line in zip(FAULTS[text], lines, strict=True)
    )
    assert not (place.trials / "vt").exists()


@pytest.mark.parametrize(
    ("head", "told"),
    [
        ("case,metric,unit,value\n", "n"),
        ("metric,unit,value,n\n", "case"),
        ("case,test,metric,unit,value,n\n", "case"),
        ("case,metric,unit,valeu,n\n", "value"),
        ("case,metric,unit,value,n,n\n", "twice"),
    ],
)
def test_heads_that_are_refused(place: Workplace, head: str, told: str) -> None:
    done = bring(place, "", head=head)
    assert done.code == 2 and told in done.err and "vt.csv:1" in done.err


def test_files_that_are_none(place: Workplace) -> None:
    (place.folder / "vt.csv").mkdir()
    assert place.seatrial("figures", "import", "vt.csv", "--as", "vt").code == 2
    (place.folder / "latin.csv").write_bytes(b"case,metric\n\xe4,")
    done = place.seatrial("figures", "import", "latin.csv", "--as", "vt")
    assert done.code == 2 and "latin.csv:2" in done.err
    (place.folder / "vt.csv").rmdir()
    write(place, "a,rate,x,1,1,\n")
    assert place.seatrial("figures", "import", "vt.csv", "--as", "../vt").code == 2
