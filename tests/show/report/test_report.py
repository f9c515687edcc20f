"""The acceptance report: what it says, in its three forms; what it may not hold."""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path

import pytest
import yaml
from msgspec.structs import replace

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import EVENT_NAMES, TrialEnded, TrialStarted
from seatrial.model.kinds import criterion_kinds
from seatrial.results import notes
from seatrial.show.page import Table
from seatrial.show.report import render
from seatrial.show.report.content import (
    Report,
    ReportComponent,
    as_json,
    bounded,
    shown,
    state_of_criteria,
)
from seatrial.show.report.sign import block, files_in
from tests.execute.plans import accept, short, write_plan
from tests.journals import without_checksums
from tests.programs import Workplace
from tests.show.report.acceptance import UGLY, WORDS, acceptance
from tests.show.report.conftest import Command

GOLDEN = Path(__file__).with_name("golden.md")
MADE = 1_795_262_400_000_000_000


class Page(HTMLParser):
    """What an HTML page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text = ""
        self.style = ""
        self._in: list[str] = []
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        if tag == "style":
            self._in.append(tag)

    def handle_endtag(self, tag: str) -> None:
        if tag == "style":
            self._in.pop()

    def handle_data(self, data: str) -> None:
        if self._in:
            self.style += data
        else:
            self.text += data

    def of(self, tag: str) -> list[dict[str, str]]:
        return [attributes for name, attributes in self.tags if name == tag]


@pytest.fixture(scope="module")
def page(rehearsed: Report) -> Page:
    return Page(render.as_html(rehearsed))


# ---- from the command's own door ----------------------------------------------------------


def test_a_real_trial_of_a_suite(seatrial: Command, real: Path) -> None:
    done = seatrial(real, "report", "t", "-o", "t.html")
    assert done.code == 0, done.said
    assert re.fullmatch(r"t.html: report [0-9a-f]{12} on t on here, [\d.]+ KiB\n", done.out)
    page = Page((real / "t.html").read_text())
    for words in (
        "Report on a trial",
        "here",
        "no criteria",
        "Runs and failures of each application",
    ):
        assert words in page.text
    assert "Scaling of good over threads" in page.text
    assert "1 failed: figures are of runs with a right answer" in page.text
    for words in ("What ran", "Machine as found", platform.release(), "Launch lines",
                  "What a right answer is", "echo rate $threads", "good: run script"):  # fmt: skip
        assert words in page.text
    assert "REHEARSED" not in page.text
    assert not page.of("script")
    assert UGLY[:12] in page.text, "the unit of a metric is shown as it was written"


def test_a_plan_that_was_accepted_and_one_component_that_waits(
    place: Workplace, seatrial: Command
) -> None:
    short(place, "a")
    write_plan(place, criteria=[{"criterion": "pass_rate", "at_least": "90%"}])
    assert accept(place).code == 0
    done = seatrial(place.folder, "report", "plan.yaml")
    assert done.code == 0, done.said
    assert done.out.startswith("p-report.html: report ")
    text = (place.folder / "p-report.html").read_text()
    assert "All 2 criteria are met." in text
    assert "Acceptance report" in text
    shown_by_accept = json.loads(place.seatrial(
        "accept", "status", "plan.yaml", "--format", "json").out)  # fmt: skip
    seatrial(place.folder, "report", "plan.yaml", "-o", "r.json")
    (component,) = json.loads((place.folder / "r.json").read_text())["components"]
    assert component["status"] == shown_by_accept["trials"][0], (
        "the judgement of accept, and no other"
    )
    plan = place.folder / "plan.yaml"
    written = yaml.safe_load(plan.read_text().replace("90%", "95%"))
    written["components"].append({"component": "later", "tests": ["a"]})
    plan.write_text(yaml.safe_dump(written))
    done = seatrial(place.folder, "report", "plan.yaml", "-o", "r.md")
    assert done.code == 0, done.said
    text = (place.folder / "r.md").read_text()
    assert "| later | not begun |" in text
    assert "p-mix: the plan changed since: the criteria." in text
    assert "1 component not begun" in text
    plan.write_text("plan: p\ncomponents: []\nnonsense: 1\n")
    done = seatrial(place.folder, "report", "plan.yaml", "-o", "r.md")
    assert done.code == 0, done.said
    assert "The plan has faults by now" in (place.folder / "r.md").read_text()


def test_all_its_forms_and_stdout(seatrial: Command, planned: Path) -> None:
    words = ("report", "write", "plan.yaml", "--rehearsed", "-o")
    for name in ("r.html", "r.md", "r.json"):
        done = seatrial(planned, *words, name)
        assert done.code == 0, done.said
        assert "(rehearsed)" in done.out
    assert (planned / "r.html").read_text().startswith("<!doctype html>")
    assert (planned / "r.md").read_text().startswith("# Acceptance report: p on toy\n")
    out = seatrial(planned, *words, "-", "--format", "json").out
    assert json.loads(out)["plan"] == "p"
    several = seatrial(planned, "report", "p-stab", "p-func", "-o", "s.md")
    assert several.code == 0, several.said
    assert "## stability: " in (planned / "s.md").read_text()


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none"], "no trial 'none' here; the latest is"),
        (["none.yaml"], "none.yaml: there is no such plan"),
        (["plan.yaml"], "none of its components was started in trials; --rehearsed reports on"),
        (["plan.yaml", "--rehearsed", "--name", "x", "p-perf"], "one plan at a time"),
        (["p-perf", "--rehearsed"], "--name and --rehearsed are of a plan"),
        (["p-perf", "-o", "nowhere/r.html"], "nowhere/r.html: cannot be written: No such file"),
        (["p-perf", "-o", "r.pdf"], "r.pdf: a report ends in .html, .md or .json, not .pdf"),
        (["suite/wide/test.yaml"], "suite/wide/test.yaml: is a test, not a plan"),
        (["machine.yaml"], "machine.yaml: is something else, not a plan"),
        (["p-perf", "-o", "-", "--sign", "k"], "cannot be signed; name a file with -o"),
        (["p-perf", "-o", "r.html", "--sign", "-k"], "-k: there is no such key"),
        ([], "Missing argument"),
    ],
)
def test_what_cannot_be_reported_says_why(
    seatrial: Command, planned: Path, words: list[str], said: str
) -> None:
    done = seatrial(planned, "report", "write", *words)
    assert done.code == 2, done.said
    assert said in done.err


# ---- the page -----------------------------------------------------------------------------


def test_it_is_one_file_that_loads_and_runs_nothing(page: Page) -> None:
    names = {name for name, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "base", "form"}
    for name, attributes in page.tags:
        assert not [key for key in attributes if key.startswith("on") or key in ("style", "src")]
        if "href" in attributes:
            assert name == "a"
            assert attributes["href"].startswith("#component-")
    assert not re.search(r"@import|url\(|expression\(|https?:", page.style)
    policy = next(a["content"] for a in page.of("meta") if "http-equiv" in a)
    assert re.fullmatch(r"default-src 'none'; style-src 'sha256-[A-Za-z0-9+/]{43}='", policy)


def test_links_lead_to_what_is_there(page: Page) -> None:
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    assert {attributes["href"][1:] for attributes in page.of("a")} <= set(ids)


def test_words_of_people_stay_words(page: Page, rehearsed: Report) -> None:
    for words in (f"A toy of {UGLY}", WORDS, f"the compiler's fault {UGLY}", f"cooling {UGLY}"):
        assert words in page.text
    text = render.as_markdown(rehearsed)
    shown = "\n".join(line for line in text.splitlines() if not line.startswith("    "))
    assert "<script" not in shown.replace("\\<script", "")
    assert "A toy of \\<script\\>alert(1)\\</script\\>" in text


def test_every_criterion_is_in_it_with_its_numbers(page: Page, rehearsed: Report) -> None:
    results = [one for part in rehearsed.components for one in part.status.criteria]
    of_runs = {*criterion_kinds()} - {"items_passed"}  # people do not rehearse
    of_runs -= {"gauge"}  # the machine has none
    assert {one[0].criterion for one in results} == of_runs
    for one in results:
        assert one[0].label in page.text
        assert one[0].reason in page.text
    assert "waived by both sides on 2026-06-01" in page.text
    assert "A. Vendor" in page.text
    for word in ("met", "not met", "undecided", "waived"):
        assert {"class": f"state {word.replace(' ', '-')}"} in page.of("span"), word


def test_every_figure_has_its_data_as_a_table(page: Page, rehearsed: Report) -> None:
    figures = [figure for part in rehearsed.components for figure in part.figures]
    assert len(page.of("figure")) == len(page.of("svg")) == len(figures)
    assert len(page.of("details")) == len(figures)
    titles = "\n".join(figure.title for figure in figures)
    for words in (
        "Each application alone and at full machine",
        "Runs and failures of each application",
        "Elapsed time against start: small@gcc",
        "How alike runs are",
        "Node-hours in accepted work",
    ):
        assert words in titles
    assert all(figure.table.rows for figure in figures)
    assert all("<title>" in figure.drawing for figure in figures)


def test_a_span_without_nodes_is_a_gap(rehearsed: Report) -> None:
    stability = rehearsed.components[-1]
    (figure,) = [f for f in stability.figures if f.title.startswith("Node-hours in accepted")]
    ends = [row[0] for row in figure.table.rows]
    assert len(ends) < 48, "the planned outage has no span"
    line = re.findall(r'<path d="(M[^"]*)"[^>]* stroke-linejoin="round"', figure.drawing)[-1]
    assert line.count("M") == 2


def test_every_table_is_rectangular(rehearsed: Report) -> None:
    for table in tables(rehearsed):
        assert all(len(row) == len(table.columns) for row in table.rows), table.title
        assert table.total >= len(table.rows)


def tables(report: Report) -> Iterator[Table]:
    for part in report.components:
        yield from (figure.table for figure in part.figures)
        yield from (*part.tables, *part.excluded, *part.versions)
    yield from report.versions


def test_a_rehearsal_bears_its_mark_on_every_page(page: Page, rehearsed: Report) -> None:
    assert "Rehearsed. In virtual time, on a simulated machine" in page.text
    assert '@top-center {\n    content: "REHEARSED' in page.style
    assert {"class": "watermark", "aria-hidden": "true"} in page.of("div")
    assert "It is of a rehearsal, and accepts nothing." in page.text
    text = render.as_markdown(rehearsed)
    assert text.count(render.MARK) == len(re.findall(r"^##? ", text, re.MULTILINE))
    assert json.loads(as_json(rehearsed))["rehearsed"] is True


def test_both_sides_can_sign_on_paper(page: Page) -> None:
    for words in ("For the vendor", "For the centre", "place and date", "signature"):
        assert words in page.text


def test_the_checksums_are_those_of_the_files(rehearsed: Report, planned: Path) -> None:
    assert [each.name for each in rehearsed.files[9:]] == ["document burn-in.pdf"]
    for each in rehearsed.files:
        path = planned / each.document if each.document else planned / "trials" / each.shown
        data = path.read_bytes()
        assert (each.sha256, each.bytes) == (hashlib.sha256(data).hexdigest(), len(data))
        if each.name == "journal.jsonl":
            assert each.events == data.count(b"\n")


def test_a_change_of_anything_it_rests_on_changes_its_name(rehearsed: Report) -> None:
    first = rehearsed.files[0]
    other = replace(rehearsed, files=[replace(first, sha256="0" * 64), *rehearsed.files[1:]])
    assert other.name != rehearsed.name
    assert replace(rehearsed, made=rehearsed.made + 1).name != rehearsed.name


# ---- the other forms ----------------------------------------------------------------------


def test_the_first_sentence_names_what_was_missed_by_clause_and_figure(rehearsed: Report) -> None:
    def with_clause(part: ReportComponent) -> ReportComponent:
        criteria = [
            [replace(each, clause=f"ST {number}") for each in results]
            for number, results in enumerate(part.status.criteria, 1)
        ]
        return replace(part, status=replace(part.status, criteria=criteria))

    said = state_of_criteria(
        replace(rehearsed, components=[with_clause(each) for each in rehearsed.components])
    )
    first, second, third, last = said.split(". ")
    assert first.startswith("Of 17 criteria 2 not met: clause ST ")
    assert "utilisation of stability 75.99 % (at least 95 %); clause ST " in first
    assert second.startswith("3 undecided: clause ST ")
    assert third == "1 waived: correct answers of functionality 90 % (at least 99 %)"
    assert last == "11 met."


def test_markdown_is_as_it_was(rehearsed: Report, planned: Path) -> None:
    files = [replace(each, sha256="0" * 64, bytes=1000) for each in rehearsed.files]
    fixed = replace(rehearsed, made=MADE, made_by="someone@somewhere", version="V", files=files)
    text = render.as_markdown(fixed).replace(render.escaped(str(planned)), "/work")
    text = re.sub(r"[0-9a-f]{64}", "0" * 64, text)
    text = re.sub(r"(trials made by \| ).*?( \|)", r"\1someone\2", text)
    text = re.sub(r"\| (Seatrial, [^|]*) \| [^|]* \|", r"| \1 | V |", text)
    if os.environ.get("SEATRIAL_REGENERATE"):
        GOLDEN.write_text(text)
    assert text == GOLDEN.read_text()


def test_json_says_the_same(rehearsed: Report) -> None:
    record = json.loads(as_json(rehearsed))
    assert record["report"] == 2
    assert record["name"] == rehearsed.name
    assert [part["tag"] for part in record["components"]] == [
        part.tag for part in rehearsed.components
    ]
    for part, told in zip(rehearsed.components, record["components"], strict=True):
        assert told["status"]["verdict"] == part.status.verdict
        assert [figure["title"] for figure in told["figures"]] == [f.title for f in part.figures]
        assert all("drawing" not in figure for figure in told["figures"])
        assert told["begun"].endswith("Z")
    (course,) = [
        figure["table"]
        for figure in record["components"][0]["figures"]
        if figure["title"] == "Elapsed time against start: odd@gcc"
    ]
    assert course["columns"][0] == {"title": "script started (UTC)", "kind": "time", "unit": ""}
    assert course["rows"][0][0].endswith("Z")


def test_notes_of_that_time_are_marked(seatrial: Command, copied: Path) -> None:
    first = Workplace(copied).events("t", TrialStarted)[0].time
    notes.write(copied / "trials" / notes.FILE, f"fabric reset {UGLY}", first + 10**6)
    notes.write(copied / "trials" / notes.FILE, "long before", first - 10**12)
    notes.write(copied / "trials" / notes.FILE, "elsewhere", first + 10**6, machine="other")
    assert seatrial(copied, "report", "t", "-o", "r.html").code == 0
    text = (copied / "r.html").read_text()
    assert "Notes on the machine" in text
    assert text.count("<title>fabric reset &lt;script&gt;alert(1)&lt;/script&gt;</title>") > 1
    assert "long before" not in text
    assert "elsewhere" not in text


def test_a_plan_in_phases(tmp_path: Path, seatrial: Command) -> None:
    stage = acceptance(tmp_path)
    stage.plan["phases"] = [{"phase": "one", "nodes": "n[1-4]"}, {"phase": "two"}]
    stage.plan["components"] = [each for each in stage.plan["components"]
                                if each["component"] in ("vendor", "functionality")]  # fmt: skip
    stage.plan["rehearsal"]["tests"].pop("wide")
    first, second = stage.play_all()
    shutil.rmtree(second.folder)
    done = seatrial(tmp_path, "report", "plan.yaml", "--rehearsed", "-o", "r.md")
    assert done.code == 0, done.said
    text = (tmp_path / "r.md").read_text()
    assert first.folder.name in text
    assert "## functionality, phase one: " in text
    assert "| functionality, phase two | not begun |" in text
    assert "- nodes: 4: n\\[1-4\\]" in text
    assert "1 component not begun." in text
    assert "- complete: no" in text
    seatrial(tmp_path, "report", "plan.yaml", "--rehearsed", "-o", "r.json")
    (table, *_) = json.loads((tmp_path / "r.json").read_text())["phases"]
    (first_row,) = table["rows"]
    assert first_row[:3] == ["one", "functionality", 4]
    assert first_row[3] == "2026-09-21T14:13:20.000000Z", "when the rehearsal begins"
    assert first_row[4] > first_row[3]
    journal = first.folder / "journal.jsonl"
    journal.write_bytes(b"".join(journal.read_bytes().splitlines(keepends=True)[:-3]))
    seatrial(tmp_path, "report", "plan.yaml", "--rehearsed", "-o", "r.json")
    (table, *_) = json.loads((tmp_path / "r.json").read_text())["phases"]
    assert table["rows"][0][3:] == [first_row[3], None], "its end is not known yet"


# ---- what is long, or damaged, or goes on -------------------------------------------------


def test_long_tables_are_bounded_and_their_length_is_told(rehearsed: Report) -> None:
    rows = [[f"row {i}"] for i in range(1000)]
    long = bounded("Long", [], rows)
    assert (len(long.rows), long.total, long.left_out) == (200, 1000, 800)
    stability = rehearsed.components[-1]
    (figure,) = [f for f in stability.figures if f.title.endswith("start: small@gcc")]
    assert figure.table.total > 600
    assert len(figure.table.rows) == 200
    assert figure.table.rows[0][4], "those that stand out come first"
    assert f"{figure.table.total} rows, of which the first 200 are shown." in render.as_html(
        rehearsed
    )
    assert f"{figure.table.total} rows, of which the first 200 are shown." in render.as_markdown(
        rehearsed
    )


def test_a_damaged_journal_and_one_that_goes_on(seatrial: Command, copied: Path) -> None:
    journal = copied / "trials" / "t" / "journal.jsonl"
    lines = without_checksums(journal).splitlines(keepends=True)
    end = next(i for i, line in enumerate(lines) if EVENT_NAMES[TrialEnded].encode() in line)
    lines[end // 2] = b'{"time": "nonsense"\n'
    journal.write_bytes(b"".join(lines[:end]) + b'{"torn')
    done = seatrial(copied, "report", "t", "-o", "r.md")
    assert done.code == 0, done.said
    text = (copied / "r.md").read_text()
    assert "Interim: this trial is interrupted" in text
    assert "> t: 1 line of its journal could not be read, and is not counted." in text
    assert "- complete: no" in text
    size = len(b"".join(lines[:end]))
    assert re.search(rf" {size}  t/journal.jsonl$", text, re.MULTILINE), "whole lines alone"


def test_damage_alone_makes_a_report_incomplete(seatrial: Command, copied: Path) -> None:
    journal = copied / "trials" / "t" / "journal.jsonl"
    lines = without_checksums(journal).splitlines(keepends=True)
    journal.write_bytes(b"".join([*lines[:3], b"{nonsense\n", b"{nonsense\n", *lines[3:]]))
    assert seatrial(copied, "report", "t", "-o", "r.json").code == 0
    record = json.loads((copied / "r.json").read_text())
    assert record["complete"] is False
    said = "2 lines of its journal could not be read, and are not counted."
    assert record["remarks"] == [f"t: {said}"]


def test_a_trial_that_has_not_begun(seatrial: Command, copied: Path) -> None:
    (copied / "trials" / "t" / "journal.jsonl").unlink()
    done = seatrial(copied, "report", "t", "-o", "r.html")
    assert done.code == 3
    assert "journal.jsonl: cannot be read: No such file" in done.err
    (copied / "trials" / "t" / "journal.jsonl").touch()
    done = seatrial(copied, "report", "t", "-o", "r.html")
    assert done.code == 0, done.said
    assert "Interim: this trial is new" in (copied / "r.html").read_text()


def test_a_report_is_written_whole_or_not_at_all(seatrial: Command, copied: Path) -> None:
    (copied / "r.html").write_text("earlier")
    (copied / "trials" / "t" / "cases.jsonl").write_text("{")
    assert seatrial(copied, "report", "t", "-o", "r.html").code == 3
    assert (copied / "r.html").read_text() == "earlier"
    assert not list(copied.glob(".r.html*"))


# ---- cells --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "number", ""),
        ("", "text", ""),
        (1234567, "count", "1,234,567"),
        (0.9999999, "share", "99.99999 %"),
        (1, "share", "100 %"),
        (0.12345, "share", "12.35 %"),
        (-1.234, "per cent", "-1.23 %"),
        (-0.0, "per cent", "+0.00 %"),
        (5400, "seconds", "1 h 30 m"),
        (MADE + 5, "time", "2026-11-21 12:00:00"),
        (0.42131, "number", "0.4213"),
    ],
)
def test_how_cells_are_shown(value: float | str | None, kind: str, text: str) -> None:
    assert shown(value, kind) == text  # type: ignore[arg-type]


def test_the_block_of_checksums_can_be_checked_by_hand(real: Path, seatrial: Command) -> None:
    assert seatrial(real, "report", "t", "-o", "hand.md").code == 0
    folder = TrialFolder(real / "trials" / "t")
    files = files_in((real / "hand.md").read_bytes())
    for each in files:
        line = f"head -c {each.bytes} {folder.path / each.name} | sha256sum"
        out = subprocess.run(line, shell=True, capture_output=True, text=True, check=True).stdout
        assert out.split()[0] == each.sha256
    assert block(files) in (real / "hand.md").read_text()
