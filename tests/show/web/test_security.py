"""What people of ill will try: scripts in names and output, paths, links, patterns, floods."""

from __future__ import annotations

import contextlib
import http.client
import os
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import pytest

from seatrial.journal.events import MetricRecorded, RunCreated, RunJudged, ScriptStarted
from seatrial.model import codes
from tests.programs import LONG_S, until
from tests.results.store.trials import TrialMaker, a_case

from .lists import EVIL, make_site, run_of
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

SECRET = "the secret of another file"
LISTENERS = 250
SOON_S = 30.0  # on a machine that is slow, and busy with other tests


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("security") / "trials"
    make_site(folder)
    evil(folder)
    odd(folder)
    return folder


@pytest.fixture(scope="module")
def served(trials: Path) -> Iterator[Served]:
    with Served(trials) as opened:
        until(lambda: opened.json("/runs")["total"] > 20, "the journals to be read")
        yield opened


def evil(trials: Path) -> None:
    """A trial whose every word is markup, and whose runs' files lead elsewhere."""
    case = a_case(9, test=EVIL.replace("/", "|"), toolchain=EVIL, parameters={"x": EVIL})
    maker = TrialMaker(trials, "evil", [case, a_case(1)], machine=EVIL)
    maker.start()
    of = run_of(maker, "evil1")
    folder = trials.parent / "elsewhere" / "evil1"
    folder.mkdir(parents=True)
    maker.event(RunCreated, path=f"/nowhere/{EVIL}", **of)
    maker.event(ScriptStarted, nodes=EVIL, modules=EVIL, environment=EVIL, **of)
    maker.event(MetricRecorded, metric=EVIL, value=1.0, unit=EVIL, better="higher", **of)
    maker.event(RunJudged, code=codes.FAILED.number, reason=EVIL, verdict=EVIL, **of)
    (trials.parent / "secret").write_text(SECRET)
    for number, lay in enumerate((_link, _fifo, _folder, _absolute, _hard_name)):
        _lead_away(maker, f"away{number}", lay)
    for number, path in enumerate(_PLACES):
        _placed(maker, f"placed{number}", path.format(folder=maker.folder.path, id="placed"))
    _linked_folder(maker, "linked1")
    maker.end(passed=False)


def odd(trials: Path) -> None:
    """A trial whose words hold a terminal's commands and turn the direction of writing."""
    words = "a\x1b[31mb\u202ec"
    case = a_case(9, test=words, toolchain=words, parameters={"x": words})
    maker = TrialMaker(trials, "odd", [case], machine=words)
    maker.run(case, "odd1", codes.FAILED, why=words, files={"stdout": words.encode()})
    maker.end(passed=False)


# What a journal may say of a run's directory that is none.
_PLACES = (
    "/etc",
    "/dev",
    "/proc/self",
    "{folder}/runs/stream/../../../..",
    "relative/stream/{id}",
    "",
    "/",
    "{folder}/runs/stream/other",
)


def _lead_away(maker: TrialMaker, run_id: str, lay: Any) -> None:
    path = maker.folder.run("stream", run_id)
    path.mkdir(parents=True)
    lay(path, maker.folder.path.parent.parent / "secret")
    _placed(maker, run_id, str(path))


def _link(path: Path, secret: Path) -> None:
    (path / "stdout").symlink_to(secret)
    (path / "stderr").symlink_to("../../../../../secret")


def _fifo(path: Path, secret: Path) -> None:
    os.mkfifo(path / "stdout")


def _folder(path: Path, secret: Path) -> None:
    (path / "stdout").mkdir()


def _absolute(path: Path, secret: Path) -> None:
    (path / "stdout").symlink_to("/dev/zero")


def _hard_name(path: Path, secret: Path) -> None:
    (path / "other").write_text(SECRET)  # a file of the run that is not shown


def _linked_folder(maker: TrialMaker, run_id: str) -> None:
    """The job has put a link where its directory was."""
    elsewhere = maker.folder.path.parent.parent / "other-run"
    elsewhere.mkdir()
    (elsewhere / "stdout").write_text(SECRET)
    path = maker.folder.run("stream", run_id)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.symlink_to(elsewhere)
    _placed(maker, run_id, str(path))


def _placed(maker: TrialMaker, run_id: str, path: str) -> None:
    of = run_of(maker, run_id, case=maker.cases[1])
    maker.event(RunCreated, path=path, **of)
    maker.event(RunJudged, code=codes.FAILED.number, **of)


# ---- what was written stays text ------------------------------------------------------------


PAGES = ("/runs", "/failures", "/runs/evil/evil1", "/runs/weekly/broken1", "/")
EVERYTHING = {"column": ["time", "tag", "machine", "test", "case", "reason", "output", "directory"]}


@pytest.mark.parametrize("page", PAGES)
def test_markup_in_names_and_output_stays_text(served: Served, page: str) -> None:
    query = EVERYTHING if page == "/failures" else {}
    status, text = served.get(f"{page}?{urlencode(query, doseq=True)}")
    assert status == 200
    assert "<script>alert" not in text
    if page != "/":
        assert "&lt;script&gt;alert" in text


@pytest.mark.parametrize(
    "page",
    ["/", "/trials", "/trials/odd", "/runs", "/failures", "/runs/odd/odd1", "/runs?match=%1b"],
)
def test_control_characters_in_names_and_output_are_shown_as_such(
    served: Served, page: str
) -> None:
    text = served.get(page)[1]
    assert r"a\x1b[31mb\u202ec" in text or page == "/" or "match" in page
    assert not [char for char in text if not char.isprintable() and char not in "\n\t\r\xa0\u2009"]


@pytest.mark.parametrize("name", ["match", "trial", "machine", "tag", "since", "find", "state"])
def test_markup_in_the_question_stays_text(served: Served, name: str) -> None:
    for page in ("/runs", "/failures", "/runs/weekly/broken1"):
        for value in (EVIL, f'"><img src=x onerror={EVIL}>', "javascript:alert(1)", "' or 1=1 --"):
            status, text = served.get(f"{page}?{name}={quote(value)}")
            assert status in (200, 400, 404)
            assert "<script>alert" not in text
            assert "<img" not in text


@pytest.mark.needs("chromium")
def test_no_script_of_a_job_runs_in_a_browser(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        page.on("dialog", lambda dialog: pytest.fail(f"it ran: {dialog.message}"))
        for path in PAGES:
            page.goto(path)
        page.goto("/runs/evil/evil1")
        assert EVIL in page.locator("#head").inner_text()


def test_the_policy_allows_no_script_but_ours(served: Served) -> None:
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=LONG_S)
    for path in ("/runs", "/runs.json", "/static/style.css", "/nowhere", "/runs?state=odd"):
        connection.request("GET", path)
        answer = connection.getresponse()
        answer.read()
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'" in policy
        assert "unsafe" not in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["x-frame-options"] == "DENY"
    connection.close()


@pytest.mark.parametrize("page", ["/runs", "/failures", "/runs/weekly/slow1"])
def test_pages_need_no_inline_script_or_style(served: Served, page: str) -> None:
    _, text = served.get(page)
    assert not re.search(r"<script(?![^>]*\bsrc=)", text)
    assert not re.search(r"<[^>]+\s(?:style|on\w+)=", text)


# ---- paths ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path",
    [
        "/static/../app.py",
        "/static/%2e%2e/app.py",
        "/static/..%2fapp.py",
        "/static//etc/passwd",
        "/static/%2fetc%2fpasswd",
        "/static/vendor/../../door.py",
        "/runs/..%2f..%2fsecret/x",
        "/runs/weekly/..%2f..%2f..%2fsecret",
        "/runs/weekly/%2e%2e",
        "/runs/%00/x",
        "/runs/weekly/a%00b",
        "/runs/%ff%fe/x",
        "/../secret",
        "//etc/passwd",
    ],
)
def test_no_path_leads_out(served: Served, path: str) -> None:
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=LONG_S)
    connection.putrequest("GET", path)
    connection.endheaders()
    answer = connection.getresponse()
    text = answer.read().decode(errors="replace")
    connection.close()
    assert answer.status in (400, 404), text
    assert SECRET not in text
    assert "Traceback" not in text
    assert "root:" not in text


def outputs(served: Served, run_id: str) -> dict[str, Any]:
    found = served.json(f"/runs/evil/{run_id}")
    return {output["name"]: output for output in found["outputs"]}


@pytest.mark.parametrize(
    ("run_id", "why"),
    [
        ("away0", "it is a link, and links are not followed here"),
        ("away1", "it is no regular file"),
        ("away2", "it is no regular file"),
        ("away3", "it is a link, and links are not followed here"),
        ("away4", "is not there"),
        ("linked1", "a link or a file is where its directory was"),
        *((f"placed{number}", "") for number in range(len(_PLACES))),
    ],
)
def test_only_files_of_the_very_run_are_shown(served: Served, run_id: str, why: str) -> None:
    stdout = outputs(served, run_id)["stdout"]
    assert why in stdout["absent"]
    assert stdout["absent"] and not stdout["blocks"]
    status, text = served.get(f"/runs/evil/{run_id}")
    assert status == 200
    assert SECRET not in text
    assert SECRET not in served.get("/failures?trial=evil&limit=200")[1]


def test_a_run_that_its_plan_placed_elsewhere_is_shown(served: Served, trials: Path) -> None:
    """On another file system, whose path may go over links of its owner."""
    real = trials.parent / "lustre" / "mdt0"
    real.mkdir(parents=True)
    (trials.parent / "scratch").symlink_to(trials.parent / "lustre")
    path = trials.parent / "scratch" / "mdt0" / "stream" / "placed-there"
    path.mkdir(parents=True)
    (path / "stdout").write_text("on another target\n")
    (path / "private").write_text(SECRET)
    maker = TrialMaker(trials, "placed", [a_case(1)])
    maker.start()
    of = run_of(maker, "placed-there")
    maker.event(RunCreated, path=str(path), **of)
    maker.event(RunJudged, code=codes.FAILED.number, **of)
    maker.end()
    until(lambda: served.get("/runs/placed/placed-there")[0] == 200, "the new trial")
    assert "on another target" in served.get("/runs/placed/placed-there")[1]


# ---- patterns, sizes, numbers ---------------------------------------------------------------


PATTERNS = (
    "(a+)+$",
    "(x+x+)+y",
    "(.*)*(.*)*(.*)*(.*)*[^a]",
    "((a{1,30}){1,30}){1,30}",
    "(a?){150}a{150}",
    "(.?){90}b",
    "a{1000}{1000}",
    "(?:" * 60 + ")" * 60,
    "\\",
    "[",
    "(?P<x>a)(?P=x)",
)


@pytest.mark.parametrize("pattern", PATTERNS)
def test_no_pattern_hangs_the_server(served: Served, pattern: str) -> None:
    began = time.monotonic()
    for path in (
        f"/runs?match={quote(pattern)}",
        f"/failures?match={quote(pattern)}",
        f"/runs/weekly/broken1?regex=1&find={quote(pattern)}",
    ):
        status, text = served.get(path)
        assert status in (200, 400)
        assert "Traceback" not in text
    assert time.monotonic() - began < SOON_S


def test_a_pattern_in_long_lines_takes_bounded_time() -> None:
    from seatrial.show.web.output import MAX_TEXT_READ as MAX_READ
    from seatrial.show.web.output import FilePiece, _search, lines_of, search_of
    from seatrial.show.web.page import PageQuery

    text = ("a" * 8000 + "\n") * (MAX_READ // 8001)
    lines = lines_of(FilePiece(text, len(text), 0))
    for pattern in ("(a?){20}a{20}b", "(x+x+)+y", "(.?){20}b"):
        search = search_of(PageQuery({}, [("find", pattern), ("regex", "1")]))
        assert search is not None
        began = time.thread_time()
        _search(lines, search)
        assert time.thread_time() - began < 2.5


@pytest.mark.parametrize(
    "query",
    [
        "limit=" + "9" * 5000,
        "limit=99999999999999999999",
        "limit=-1",
        "before=" + "9" * 400 + "~1",
        "before=1e308~1",
        "before=inf~1",
        "since=0001-01-01&until=9999-12-31",
        "since=9999-12-31T23:59:59",
        "since=" + "9" * 500 + "d",
        "match=" + "a" * 900,
        "match=" + "%f0%9f%9a%a2" * 200,
        "match=%ff%fe%80",
        "match=a%00b",
        "trial=%00",
        "trial=" + "x" * 999,
        "x=" + "y" * 1001,
        "&".join(f"a{n}=1" for n in range(101)),
        "&".join(f"a{n}=1" for n in range(1200)),
        "column=" + "&column=".join("ab"),
        "a" * 16000,
        "state=%F0%28%8C%28",
        "rehearsed=1&rehearsed=0&rehearsed=1",
    ],
    ids=lambda query: query[:20],
)
def test_odd_questions_are_answered(served: Served, query: str) -> None:
    for page in ("/runs", "/failures", "/runs/weekly/stream00", "/runs.json"):
        status, text = served.get(f"{page}?{query}")
        assert status in (200, 400, 404, 414), text[:300]
        assert "Traceback" not in text


def test_an_endless_address_is_refused(served: Served) -> None:
    assert served.get("/runs?" + "a=1&" * 4200)[0] == 414
    with served.connected() as raw:
        raw.sendall(b"GET /runs?" + b"a" * 200_000)
        with contextlib.suppress(ConnectionError):
            raw.sendall(b"a" * 200_000)
            assert raw.recv(4096)[:12] in (b"HTTP/1.1 400", b"")


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "ODD"])
def test_nothing_can_be_changed(served: Served, method: str) -> None:
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=LONG_S)
    for path in ("/runs", "/sign-in", "/news", "/static/live.js"):
        connection.request(method, path, body=b"" if method in ("POST", "PUT", "PATCH") else None)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == 405
        assert answer.headers["allow"] == "GET, HEAD"
    connection.close()


@pytest.mark.parametrize(
    "request_",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: 127.0.0.1.evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost@evil.example\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: localhost\r\nHost: evil.example\r\n\r\n",
        b"GET / HTTP/1.0\r\n\r\n",
    ],
)
def test_it_answers_to_its_own_name_only(served: Served, request_: bytes) -> None:
    """A page elsewhere whose name is made to mean this machine reads nothing."""
    with served.connected() as raw:
        raw.sendall(request_)
        answer = raw.recv(65536)
    assert answer[:12] in (b"HTTP/1.1 400", b"HTTP/1.1 421")
    assert b"<html" not in answer


def test_ranges_of_static_files_are_bounded(served: Served) -> None:
    many = "bytes=" + ",".join(f"{n}-" for n in range(3000))
    began = time.monotonic()
    for spec in (many, "bytes=0-99999999999999999999", "bytes=5-1", "bytes=-0", "odd"):
        status, _ = served.get("/static/style.css", Range=spec)
        assert status in (200, 206, 400, 416)
    assert time.monotonic() - began < SOON_S
