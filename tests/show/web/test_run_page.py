"""The page of one run: what is told of it, its figures, its output and what is found in that."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from seatrial.journal.events import (
    JobQueued,
    RunCreated,
    RunJudged,
    RunJudgedAgain,
    ScriptEnded,
    ScriptStarted,
    SubmitEnded,
)
from seatrial.model import codes
from seatrial.model.test import JobOptions
from seatrial.results.store.tables import RUN_TIMES
from tests.programs import Workplace, until
from tests.results.store.trials import TrialMaker, a_case

from .lists import EVIL, STREAMS, make_site, run_of, weekly
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

LONG = 300_000


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    trials = tmp_path_factory.mktemp("run") / "trials"
    make_site(trials)
    again(trials)
    with Served(trials) as opened:
        until(lambda: opened.json("/runs", trial="later")["total"] == 3, "the journals to be read")
        yield opened


def again(trials: Path) -> None:
    """The cases of weekly once more, a while later: one with long output and several nodes."""
    on_gpus = JobOptions(gpus_per_node=4, memory=1 << 34, partition="gpu", options=("--x=<b>",))
    cases = [replace(a_case(1), job=on_gpus), a_case(7)]
    maker = TrialMaker(trials, "later", cases, created=1_795_300_000_000_000_000)
    maker.start()
    maker.run(maker.cases[0], "later1", figures={"triad": 5650.0, "scale": 1.5})
    output = b"\xc3\xa9" * (LONG // 2) + b"\nthe end of it: error E42\n"
    path = maker.folder.run("stream", "later2")
    path.mkdir(parents=True)
    (path / "stdout").write_bytes(output)
    of = run_of(maker, "later2")
    maker.event(RunCreated, path=str(path), **of)
    maker.event(SubmitEnded, refused=0, **of)
    maker.event(JobQueued, job_id="77", **of)
    said = {"modules": "gcc/13:openmpi/5", "environment": "feed", "gpus": "GPU-0a1b GPU-<b>"}
    maker.event(ScriptStarted, nodes="n[001-003]", **said, **of)
    maker.event(ScriptEnded, exit_code=0, **of)
    why = "first line\nsecond line"
    maker.event(RunJudged, code=codes.WRONG_ANSWER.number, reason=why, **of)
    maker.timed_run(maker.cases[1], "later3")
    maker.end(passed=False)


def test_what_was_asked_of_the_scheduler(served: Served) -> None:
    asked = "gpus_per_node=4 memory=16.0GiB partition=gpu --x=<b>"
    assert told(served, "later", "later1")["asked"] == asked
    assert "--x=&lt;b&gt;" in served.get("/runs/later/later1")[1]
    assert told(served, "later", "later3")["asked"] == ""


def test_ranks_on_the_cpus_of_nodes(place: Workplace) -> None:
    """Two ranks on one CPU of two; lines that a job may have written, too."""
    place.test("app", f"echo '{EVIL}'; cat {place.folder}/lines", verify=[{"placement": {}}])
    mask = "rank {0} of 2 thread 0 of 1 node <n>{0} cpu 1 core 1 numa 0 mask 0-1\n"
    lines = "".join(map(mask.format, (0, 1))) + "hello finished\n"
    (place.folder / "lines").write_text(lines)
    place.run("--name", "t")
    assert place.verdicts() == {"app": "misplaced"}
    with Served(place.trials) as opened:
        run_id = place.run_folder("app").name
        found = opened.json(f"/runs/t/{run_id}")["placement"]
        text = opened.get(f"/runs/t/{run_id}")[1]
    assert (found["ranks"], found["threads"], found["known"]) == (2, 2, True)
    assert [node["node"] for node in found["nodes"]] == ["<n>0", "<n>1"]
    assert [cpu["ranks"] for cpu in found["nodes"][1]["cpus"]] == ["", "1"]
    assert "Where its ranks were" in text
    assert "<n>" not in text


def test_who_sent_how_much_to_whom(place: Workplace) -> None:
    """A ring of 100 ranks on two hosts, of which the last left no record; then a file that is none,
    which the script wrote over it. The compilers do nothing: no MPI is started."""
    records = place.folder / "records"
    records.mkdir()
    launch = "18ebf17a2f82bd9b"
    (records / f"{launch}.begin").write_text("100")
    for rank in range(99):
        (records / f"{launch}.{rank}").write_text(
            f"seatrial record 1\nrank {rank}\nranks 100\nhost n{rank // 50}\noutside 0 0\n"
            f"pairs 1\ncalls 1\n{rank} {rank + 1} 2 2048\nMPI_Send 1024 2 2048\nend\n"
        )
    place.local(toolchains={"none": {"mpicc": "true", "cc": "true"}})
    place.test("app", f"cp {records}/* pattern", run={"pattern": True})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    folder = place.run_folder("app")
    with Served(place.trials) as opened:
        address = f"/runs/t/{folder.name}"
        until(lambda: opened.json(address)["pattern"]["summary"], "the pattern")
        found = opened.json(address)["pattern"]
        text = opened.get(address)[1]
        assert (found["per"], len(found["cells"])) == (3, 34)
        assert found["cells"][0][:3] == [4096, 2048, 0]
        assert found["summary"]["sent"] == [198, 99 * 2048]
        assert found["summary"]["off_node"] == [2, 2048]
        assert found["missing"] == 1
        for said in ("ranks 0 to 2 to ranks 3 to 5: 2.0 KiB", "1 rank left no record", "MPI_Send"):
            assert said in text
    (folder / "pattern.txt").write_text(f"seatrial pattern 1\nranks {EVIL}\n")
    with Served(place.trials) as opened:
        until(lambda: opened.json(address)["pattern"]["reason"], "what is wrong with it")
        text = opened.get(address)[1]
        assert "pattern.txt is not shown: line 2" in text
        assert EVIL not in text


def told(served: Served, trial: str, run_id: str, **query: Any) -> Any:
    return served.json(f"/runs/{trial}/{run_id}", **query)


def test_a_run_is_told_in_full(served: Served) -> None:
    found = told(served, "weekly", "broken1")
    assert found["run"]["test"] == "io/write"
    assert (found["verdict"], found["state"]) == ("failed", "failed")
    assert found["case"]["parameters"] == {"touch": "all", "threads": 4}
    names = [event["event"] for event in found["events"]]
    assert names[0] == "logging_start"
    assert names[-1] == "check_end"
    assert [e["text"] for e in found["events"] if e["event"] == "binary_execute_end"] == [
        "exit code 3"
    ]
    assert found["events"][1]["after"] == 1.0
    phases = [phase["name"] for phase in found["phases"]]
    assert phases == ["prepared", "queued", "running", "judged"]
    assert [s["title"] for s in found["scripts"]] == [
        *("build script of io/write", "run script of io/write", "job.sh")
    ]
    assert found["scripts"][1]["text"] == "echo io/write"
    assert found["scripts"][2]["text"] == "#!/bin/bash\nfalse\n"
    assert found["nodes"] == {"text": "n001", "names": ["n001"], "number": 1}


def test_what_was_loaded_and_on_which_nodes(served: Served) -> None:
    found = told(served, "later", "later2")
    assert found["modules"] == "gcc/13 openmpi/5"
    assert found["gpus"] == ["GPU-0a1b", "GPU-<b>"]
    (began,) = [e["text"] for e in found["events"] if e["event"] == "binary_execute_start"]
    assert began == "n[001-003] GPUs GPU-0a1b GPU-<b>: gcc/13:openmpi/5"
    assert found["nodes"]["names"] == ["n001", "n002", "n003"]
    assert found["reason"] == "first line\nsecond line"
    _, text = served.get("/runs/later/later2")
    assert '<a href="/machines/frontier/nodes/n002">n002</a>' in text
    assert '<dt>GPUs</dt><dd class="mono">GPU-0a1b, GPU-&lt;b&gt;</dd>' in text


def test_figures_stand_beside_their_reference_and_their_past(served: Served) -> None:
    (triad,) = told(served, "weekly", "slow1")["metrics"]
    wanted = triad["expected"]
    assert (wanted["value"], wanted["low"], wanted["high"]) == (5700.0, 5415.0, 5985.0)
    assert wanted["meets"] is False
    assert wanted["off"] == pytest.approx(-12.28, abs=0.01)
    past = [figure["value"] for figure in triad["past"]]
    assert past == [5694.0, *(5700.0 + i for i in range(STREAMS))]
    first = told(served, "weekly", "stream00")["metrics"][0]
    assert first["expected"]["meets"] is True
    _, text = served.get("/runs/weekly/slow1")
    assert '<circle class="own missed"' in text
    assert 'class="band"' in text


def test_history_goes_over_trials_and_names_what_had_no_reference(served: Served) -> None:
    metrics = {one["name"]: one for one in told(served, "later", "later1")["metrics"]}
    assert metrics["triad"]["expected"] is None
    tags = {figure["trial"] for figure in metrics["triad"]["past"]}
    assert tags == {"nightly", "weekly"}
    assert metrics["scale"]["past"] == []


def test_siblings_are_those_of_the_case_and_lead_on(served: Served) -> None:
    found = told(served, "weekly", "stream05")["siblings"]
    assert found["found"] == 1 + STREAMS + 1 + 2  # nightly's, weekly's, later's
    assert (found["older"]["run_id"], found["newer"]["run_id"]) == ("stream04", "stream06")
    assert told(served, "weekly", "broken1")["siblings"]["newer"]["run_id"] == "lost1"
    dream = told(served, "dream", "dream1")["siblings"]
    assert {one["run_id"] for one in dream["runs"]} == {"dream1", "dream2"}


def test_the_eight_times_of_a_run_are_on_its_page_and_in_its_json(served: Served) -> None:
    run = told(served, "later", "later3")["run"]
    times = [run[name] for name in RUN_TIMES]
    assert all(times) and times == sorted(times)
    line = served.json("/runs", trial="later")["runs"][0]
    assert [line[name] for name in RUN_TIMES] == times
    page = served.get("/runs/later/later3")[1]
    assert all(f"<dt>{name.replace('_', ' ')}</dt>" in page for name in RUN_TIMES)
    row = next(csv.DictReader(io.StringIO(served.get("/runs.csv?trial=later")[1], newline="")))
    assert [row[name] for name in RUN_TIMES] == times


def test_what_waits_or_runs_has_no_end_yet(served: Served) -> None:
    queued = told(served, "weekly", "queue1")
    assert queued["state"] == "waiting"
    assert [(p["name"], p["until"]) for p in queued["phases"]] == [("prepared", None)]
    going = told(served, "weekly", "going1")
    assert going["state"] == "running"
    assert going["phases"][-1] == {**going["phases"][-1], "name": "running", "until": None}
    assert text_of(going["outputs"][0]) == ["so far"]
    assert going["outputs"][1]["absent"] == "is not there"


def text_of(output: Any) -> list[str]:
    return [
        "".join(text for text, _ in line["parts"]) for block in output["blocks"] for line in block
    ]


def test_the_end_of_long_output_is_shown_and_what_is_left_out(served: Served) -> None:
    stdout = told(served, "later", "later2")["outputs"][0]
    assert stdout["size"] == LONG + 26
    assert 0 < stdout["left_out"] == stdout["size"] - (32 << 10) + stdout["left_out"] % 2
    lines = text_of(stdout)
    assert lines[-1] == "the end of it: error E42"
    assert lines[0].startswith("…é")
    assert lines[0].endswith("more characters")
    whole = told(served, "later", "later2", whole=1)["outputs"][0]
    assert whole["left_out"] < stdout["left_out"]
    assert whole["size"] - whole["left_out"] <= 256 << 10


@pytest.mark.parametrize(
    ("query", "numbers", "marked"),
    [
        ({"find": "LINE 40"}, [40, 400], "line 40"),
        ({"find": r"^line 2\d$", "regex": 1}, list(range(20, 30)), "line 2"),
        ({"find": "script"}, [401], "script"),
        ({"find": "(("}, [], ""),
        ({"find": "nothing like it"}, [], ""),
    ],
)
def test_output_is_searched(
    served: Served, query: dict[str, Any], numbers: list[int], marked: str
) -> None:
    stdout = told(served, "weekly", "broken1", **query)["outputs"][0]
    lines = [line for block in stdout["blocks"] for line in block]
    found = [line for line in lines if any(marked for _, marked in line["parts"])]
    assert [line["number"] for line in found] == numbers
    assert stdout["found"] == len(numbers)
    assert all(
        text.lower().startswith(marked) for line in found for text, hit in line["parts"] if hit
    )
    if numbers == [40, 400]:  # with what stands around, and a gap between
        assert [[line["number"] for line in block] for block in stdout["blocks"]] == [
            [38, 39, 40, 41, 42],
            [398, 399, 400, 401],
        ]


def test_a_run_is_found_by_the_beginning_of_its_id(served: Served) -> None:
    assert told(served, "weekly", "broken")["run"]["run_id"] == "broken1"
    status, text = served.get("/runs/weekly/stream0")
    assert status == 404
    assert "could be several runs" in text


def test_what_is_not_there_says_so(served: Served) -> None:
    for path in ("/runs/weekly/unheard", "/runs/unheard/broken1", "/runs/weekly/%20"):
        status, text = served.get(path)
        assert status == 404, path
        assert "Traceback" not in text


def test_rehearsed_runs_say_so_and_have_no_files(served: Served) -> None:
    found = told(served, "dream", "dream2")
    assert {output["absent"] for output in found["outputs"]} == {
        "is not there: a rehearsed run leaves no files"
    }
    _, text = served.get("/runs/dream/dream2")
    assert 'class="notice rehearsal"' in text


@pytest.mark.needs("chromium")
def test_people_search_and_go_on_in_a_browser(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        page.goto("/runs/weekly/broken1")
        assert page.locator("h1").inner_text().startswith("io/write")
        page.get_by_label("Find in stdout and stderr").fill("error")
        page.wait_for_url("**find=error**")
        page.locator("#output mark").first.wait_for()
        assert page.locator("#output mark").all_inner_texts() == ["ERROR"]
        assert EVIL in page.locator("#output pre").first.inner_text()
        page.get_by_text("job.sh").last.click()
        page.locator("details[open] pre", has_text="#!/bin/bash").wait_for()
        page.get_by_role("link", name="the next one").click()
        page.wait_for_url("**/runs/weekly/lost1")
        assert "It does not count" in page.locator("#head").inner_text()


@pytest.mark.needs("chromium")
def test_all_of_its_events_is_within_a_narrow_screen(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address, viewport={"width": 400, "height": 800}) as page:
        page.goto("/runs/later/later2")
        cells = page.locator(".events tbody td")
        cells.first.wait_for()
        ends = [box["x"] + box["width"] for each in cells.all() if (box := each.bounding_box())]
        assert len(ends) > 8 and max(ends) <= 400
        times = page.locator("#time .facts dd").all_inner_texts()
        assert times[0].startswith("20") and len(set(times)) == len(times), "told apart"


@pytest.mark.needs("chromium")
def test_a_run_that_ends_is_told_at_once(tmp_path: Path, browser: Browser) -> None:
    maker = weekly(tmp_path / "trials")
    with Served(tmp_path / "trials") as opened, open_page(browser, opened.address) as page:
        opened.until_read()
        page.goto("/runs/weekly/going1")
        page.locator("#live[data-state=on]").wait_for()
        page.locator("#head .verdict.running").wait_for()
        of = run_of(maker, "going1", case=maker.cases[2])
        maker.event(ScriptEnded, exit_code=0, **of)
        maker.event(RunJudged, code=0, verdict="pass", **of)
        maker.write()
        page.locator("#head .verdict.pass").wait_for()
        assert "judged" in page.locator(".phases").inner_text()


def test_the_page_tells_the_first_verdict_of_a_run_that_was_judged_again(tmp_path: Path) -> None:
    trials = tmp_path / "trials"
    maker = TrialMaker(trials, "t", [a_case(1)])
    maker.start()
    maker.run(maker.cases[0], "r1", codes.WRONG_ANSWER)
    of = run_of(maker, "r1")
    by: dict[str, Any] = {"by": "lead@login1", "why": "4 was <b>wrong</b>\x1b[31m"}
    maker.event(RunJudgedAgain, code=0, verdict="pass", before=2, **by, **of)
    maker.write()
    with Served(trials) as opened:
        until(lambda: opened.json("/runs", trial="t")["total"] == 1, "the journal to be read")
        page = opened.json("/runs/t/r1")
        assert (page["verdict"], page["former"]["verdict"]) == ("pass", "wrong answer")
        assert page["former"]["by_and_why"] == "lead@login1: 4 was <b>wrong</b>\\x1b[31m"
        _, text = opened.get("/runs/t/r1")
        assert "It was <b>wrong answer</b>" in text
        assert "4 was &lt;b&gt;wrong&lt;/b&gt;" in text


def test_a_run_without_a_job_shows_the_log_of_its_build(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local()
    folder = place.suite / "lib"
    folder.mkdir(parents=True)
    (folder / "test.yaml").write_text("app: lib\nbuild: {script: echo compiling}\n")
    assert place.run("--name", "t").code == 0
    (judged,) = place.events("t", RunJudged)
    with Served(place.trials) as served:
        served.until_read()
        found = served.json(f"/runs/t/{judged.run_id}")
        assert [one["name"] for one in found["outputs"]] == ["build.log"]
        assert "compiling" in str(found["outputs"][0]["blocks"])
        page = served.get(f"/runs/t/{judged.run_id}")[1]
        assert "no job: it passes when it builds" in page
        assert ">not started<" not in page
