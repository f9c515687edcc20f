"""The pages of usage, and the report of a year: what they tell, and what they never tell."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.errors import UsageError
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.report import period_of
from seatrial.show.web.server_state import ServerState
from tests.programs import Workplace, until
from tests.show.web import frost
from tests.show.web.served import Served, chromium, open_page

from .kept import keep

HOUR = 3600
YEAR = int(datetime(2010, 1, 1, tzinfo=UTC).timestamp())
DAY = 24 * HOUR
PAGES = (
    "/usage",
    "/usage/by",
    "/usage/waits",
    "/usage/failures",
    "/usage/charges",
    "/usage/losses",
    "/usage/imports",
)

PLANTED = "zzz"
"""Stands in all that names people: none of it may be on a page."""


def job(number: int, day: int, **more: Any) -> UserJob:
    """A job of 24 cores that waits for an hour and runs for two."""
    submitted = YEAR + day * DAY
    about: dict[str, Any] = {
        "machine": "hopper",
        "job": str(number),
        "submitted": submitted,
        "eligible": submitted,
        "started": submitted + HOUR,
        "ended": submitted + 3 * HOUR,
        "state": "completed",
        "nodes": 1,
        "cores": 24,
        "queue": "regular",
        "user": f"{PLANTED}ann",
        "account": f"{PLANTED}proj",
        "name": f"{PLANTED}job",
        "executable": f"/home/{PLANTED}ann/bin/{PLANTED}prog",
        "reservation": f"{PLANTED}res",
        "reason": f"{PLANTED}reason",
        "node_list": "n1",
    }
    return UserJob(**about | more)


JOBS = [
    *(job(day, day) for day in range(0, 300, 10)),
    *(job(1000 + day, day, name="vasp_run", executable="/opt/vasp") for day in range(0, 300, 20)),
    job(2000, 5, state="failed", exit_code=77),
    job(2001, 6, state="timeout", cores=9600, nodes=400),
    job(2002, 7, state="pending", started=None, ended=None),
    job(3000, 8, machine="carver", cores=8),
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Workplace]:
    """A folder with a year of jobs, and no import of its days 320 to 330."""
    place = Workplace(tmp_path_factory.mktemp("usage"))
    place.env["TZ"] = "UTC"
    keep(place.trials, JOBS, (YEAR, YEAR + 320 * DAY))
    last = [job(4000, 340), job(4001, 340, machine="carver")]
    keep(place.trials, last, (YEAR + 330 * DAY, YEAR + 365 * DAY))
    old = job(5000, -400)  # more than twelve months before the last import
    keep(place.trials, [old], (old.submitted, old.submitted + DAY))
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(place.folder)
        patched.setenv("TZ", "UTC")
        yield place


@pytest.fixture(scope="module")
def served(site: Workplace) -> Iterator[Served]:
    with Served(site.trials) as running:
        yield running


def described(site: Workplace, **usage: Any) -> None:
    """Write the file of the machine."""
    file = site.folder / "machines/hopper.yaml"
    file.parent.mkdir(exist_ok=True)
    nodes = '[{names: "n[1-400]", cores: 24}]'
    keys = ", ".join(f"{key}: {value}" for key, value in usage.items())
    file.write_text(f"machine: hopper\nscheduler: slurm\nnodes: {nodes}\nusage: {{{keys}}}\n")


def answer(served: Served, path: str, **query: Any) -> Any:
    return frost.judged(served, path, **query)["records"]


def test_what_was_used_is_told_with_its_gaps(served: Served) -> None:
    shown = answer(served, "/usage", machine="hopper")
    rows = shown["Hours by month and size"]["rows"]
    hours = sum(job.cores * 2 for job in JOBS if job.machine == "hopper" and job.started) + 48
    assert sum(row["seconds"] for row in rows) == hours * HOUR, "of the last twelve months"
    whole = answer(served, "/usage/by", machine="hopper", since="2008-01-01", by="machine")
    assert whole["total"]["seconds"] == (hours + 48) * HOUR
    assert {row["month"] for row in rows} >= {"2010-01", "2010-10", "2010-12"}
    failed = {row["cause"]: row["failures"] for row in shown["Failures by cause"]["rows"]}
    assert (failed["exit code 77"], failed["time limit"]) == (1, 1)
    apps = {row["application"]: row["jobs"] for row in shown["Applications"]["rows"]}
    assert apps["VASP"] == 15
    for path in set(PAGES) - {"/usage/losses"}:
        answer(served, path, machine="hopper")
        _, html = served.get(f"{path}?machine=hopper")
        assert "2010-11-17 00:00" in html and "2010-11-27 00:00" in html, f"{path}: no gap"


def test_waits_charges_and_losses_have_pages(site: Workplace, served: Served) -> None:
    shown = answer(served, "/usage/waits", size="1", walltime="", by="queue", machine="hopper")
    _, html = served.get("/usage/waits?size=1&by=queue&machine=hopper")
    assert shown["rows"][0]["queue"] == "regular"
    assert re.search(r">1 h|60 m", html), html
    charges = site.folder / "machines/charges.yaml"
    charges.parent.mkdir(exist_ok=True)
    charges.write_text("base: [{rate: 2}]\n")
    described(site, charges="charges.yaml")
    frost.judged(served, "/usage/losses", machine="hopper")  # it is made in the background
    _, html = served.get("/usage/losses?machine=hopper")
    assert "usage incident add" in html
    words = ("--from", "2010-01-06T00:00Z", "--to", "2010-01-07T00:00Z", "--cause", "hardware")
    done = site.seatrial("usage", "incident", "add", "burnt", "-m", "hopper", *words)
    assert done.code == 0, done.said

    def charged() -> Any:  # the answer of before is shown until there is a new one
        return answer(served, "/usage/charges", machine="hopper")["Charges"]["total"]

    until(lambda: charged()["jobs_without"] == 1, "the charges")  # of the one that waits
    assert float(charged()["charge"]) == 2 * charged()["core_seconds"] / HOUR
    until(lambda: answer(served, "/usage/losses", machine="hopper"), "the losses")
    (lost,) = answer(served, "/usage/losses", machine="hopper").values()
    assert (lost["total"]["jobs"], lost["total"]["core_seconds"]) == (1, 48 * HOUR)
    report = site.seatrial("usage", "report", "2010", "-m", "hopper", "-o", "told.md")
    assert report.code == 0, report.said
    text = (site.folder / "told.md").read_text()
    assert "## Charges by month" in text and "## Losses by cause" in text
    assert PLANTED not in text


def test_each_question_has_an_address_json_and_csv(served: Served) -> None:
    asked = {"by": "application", "of": "jobs", "where": "queue=regular", "machine": "hopper"}
    (row,) = [
        row for row in answer(served, "/usage/by", **asked)["rows"] if row["application"] == "VASP"
    ]
    assert row["jobs"] == 15
    _, csv = served.get("/usage/by.csv?by=application&of=jobs&where=queue%3Dregular&machine=hopper")
    assert csv.splitlines()[0].startswith("application,")
    assert any(line.startswith("VASP,") for line in csv.splitlines())
    answer(served, "/usage", machine="hopper")
    _, csv = served.get("/usage.csv?machine=hopper")
    assert csv.splitlines()[0] == "answer,row,column,value"
    for refused, words in {
        "/usage?machine=hoper": "one of",
        "/usage/by?by=colour": "colour",
        "/usage/by?by=,": "write one or two names",
        "/usage/waits?size=-1": "is no size",
        "/usage?since=then": "then",
        "/usage/by?where=queue": "NAME=VALUE",
        "/usage/by?of=hats": "one of",
        "/usage?sinze=3": "sinze",
    }.items():
        status, html = served.get(refused)
        shown = re.sub(r"<[^>]+>", "", html)
        assert status == 400 and words in shown, f"{refused}: {status}"
        assert PLANTED not in html


def test_no_page_names_people_unless_the_site_says_so(site: Workplace, served: Served) -> None:
    described(site)
    questions = [
        *((path, {"machine": name}) for path in PAGES for name in ("hopper", "carver")),
        *((path, {}) for path in PAGES),
        *(
            ("/usage/by", {"by": by, "of": of, "machine": "hopper"})
            for by, of in (
                ("application", "hours"),
                ("application,field", "hours"),
                ("mode", "users"),
                ("queue", "failures"),
                ("node-kind", "jobs"),
                ("state", "waits"),
            )
        ),
        ("/usage/waits", {"size": "1", "by": "application"}),
    ]
    for path, query in questions:
        frost.judged(served, path, **query)
        for ending in ("", ".json", ".csv"):
            status, text = served.get(f"{path}{ending}?{urlencode(query)}")
            assert status == 200 and PLANTED not in text, f"{path}{ending} {query}"
    for asked in ("by=user", "by=month,account", "where=user%3D*", "where=account!%3Dx"):
        _, html = served.get(f"/usage/by?{asked}&machine=hopper")
        assert "names_on_pages" in html and PLANTED not in html, asked

    described(site, names_on_pages="true")
    rows = answer(served, "/usage/by", by="user", machine="hopper", of="jobs")["rows"]
    assert [row["user"] for row in rows] == [f"{PLANTED}ann"]
    _, html = served.get("/usage/by?by=user")
    assert "names_on_pages" in html, "of all machines, one says nothing of names"
    described(site, names_on_pages="false")
    _, html = served.get("/usage/by?by=user&machine=hopper&of=jobs")
    assert "names_on_pages" in html and PLANTED not in html


@pytest.mark.needs("chromium")
def test_pages_fit_a_telephone_and_need_neither_mouse_nor_script(served: Served) -> None:
    for path in PAGES:
        frost.judged(served, path)
    frost.judged(served, "/usage/by", by="queue")
    small = {"width": 320, "height": 900}
    with (
        chromium() as browser,
        open_page(browser, served.address, viewport=small, java_script_enabled=False) as page,
    ):
        for path in PAGES:
            page.goto(path)
            main = page.locator("main").bounding_box()
            assert main is not None and main["width"] <= 320, path
            assert page.locator("[data-pending]").count() == 0
        page.goto("/usage/by")
        page.get_by_label("By").focus()
        page.keyboard.type("queue")
        page.keyboard.press("Enter")
        page.wait_for_url("**by=queue*")
        page.get_by_role("rowheader", name="regular").wait_for()
    with (
        chromium() as browser,
        open_page(browser, served.address, viewport=small, color_scheme="dark") as page,
    ):
        page.goto("/usage")
        page.get_by_role("heading", name="Applications").wait_for()
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_a_server_without_imports_says_how_to_import(tmp_path: Path) -> None:
    with Served(tmp_path / "trials") as running:
        for path in PAGES:
            status, html = running.get(path)
            assert status == 200 and "seatrial usage import" in html, path
        assert running.json("/usage")["records"] == []


def test_open_pages_ask_again_after_an_import(tmp_path: Path) -> None:
    state = ServerState(tmp_path, tmp_path / "store.sqlite")
    try:
        generations = []
        for number in range(4):
            if number in (1, 2):
                keep(tmp_path, [UserJob(machine="hopper", job=str(number), submitted=1000)])
            state.refresh()
            generations.append(state.generation)
        assert not state.trouble
    finally:
        state.close()
    first, second, third, last = generations
    assert first < second < third == last


# ---- the report of a year ------------------------------------------------------------------------


def test_a_year_is_one_file_that_loads_nothing(site: Workplace) -> None:
    described(site)
    done = site.seatrial("usage", "report", "2010", "-m", "hopper", "--zone", "UTC")
    assert done.code == 0, done.said
    text = (site.folder / "usage-hopper-2010.html").read_text()
    assert "Usage of hopper in 2010" in text and "<svg" in text
    assert not re.search(r"<script|src=|href=\"(?!#)|url\(", text)
    assert "no jobs were imported of 2010-11-17 00:00 to 2010-11-27 00:00" in text
    assert "VASP" in text and "exit code 77" in text
    assert PLANTED not in text
    done = site.seatrial("usage", "report", "2010", "-m", "hopper", "-o", "year.md")
    assert done.code == 0, done.said
    text = (site.folder / "year.md").read_text()
    assert "| VASP | 720 |" in text and PLANTED not in text
    assert "## Waits by month" in text
    assert text.count("Months are those of the time zone") == 1, "told once"


def test_a_report_that_cannot_be_made_says_why(site: Workplace) -> None:
    described(site)
    for words, said in {
        ("2010",): "no machine",
        ("2013", "-m", "hopper"): "nothing is known of hopper in 2013",
        ("20100", "-m", "hopper"): "write 2010",
        ("2010-13", "-m", "hopper"): "write 2010",
        ("2010", "-m", "hopper", "-o", "year.pdf"): "print the HTML",
        ("2010", "-m", "hopper", "-o", "nowhere/year.html"): "-o",
        ("2010", "-m", "hoper"): "hoper",
    }.items():
        done = site.seatrial("usage", "report", *words)
        assert done.code == 2 and said in done.err, f"{words}: {done.said}"


@given(st.integers(1970, 2999), st.integers(1, 12))
def test_a_period_is_a_calendar_year_or_month(year: int, month: int) -> None:
    whole = period_of(str(year), UTC)
    months = [period_of(f"{year}-{number:02d}", UTC) for number in range(1, 13)]
    assert (months[0].since, months[-1].until) == (whole.since, whole.until)
    assert all(a.until == b.since for a, b in pairwise(months))
    first = datetime.fromtimestamp(months[month - 1].since, UTC)
    assert (first.year, first.month, first.day, first.hour) == (year, month, 1, 0)
    with pytest.raises(UsageError):
        period_of(f"{year}-{month + 12}", UTC)
