"""Who may come in: the token, its form and its cookie."""

from __future__ import annotations

import contextlib
import http.client
import json
import re
import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING
from urllib.parse import urlencode

import pytest

from tests.programs import LONG_S, until

from .lists import make_site
from .served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def guarded(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Served, str]]:
    trials = tmp_path_factory.mktemp("door") / "trials"
    make_site(trials)
    file = trials.parent / "token"
    with Served(trials, "--host", "0.0.0.0", "--token-file", str(file)) as opened:
        opened.address = re.sub(r"//[^:]+:", "//127.0.0.1:", opened.address)
        token = file.read_text().strip()
        assert file.stat().st_mode & 0o077 == 0
        known = {"Authorization": f"Bearer {token}"}
        until(lambda: '"hpl' in opened.get("/runs.json", **known)[1], "the journals to be read")
        yield opened, token


def test_without_the_token_nothing_is_told(guarded: tuple[Served, str]) -> None:
    served, token = guarded
    for path in ("/runs", "/runs.json", "/news", "/runs/weekly/slow1", "/nowhere"):
        status, text = served.get(path)
        assert status == 401
        assert "weekly" not in text
        for wrong in (f"{path}?token={token}", f"{path}?seatrial={token}"):
            assert served.get(wrong)[0] == 401
    assert served.get("/runs.json", Authorization=f"Bearer {token}")[0] == 200
    assert served.get("/runs.json", Authorization=f"Basic {token}")[0] == 401
    status, text = served.get("/runs.json", Authorization="Bearer of-another-server")
    assert status == 401 and "That is not the token of this server" in text
    assert "A token is needed" in served.get("/runs.json")[1]
    port = served.address.rpartition(":")[2].strip("/")
    assert served.get("/runs.json", Cookie=f"seatrial-{port}={token}")[0] == 401
    assert served.get("/static/style.css")[0] == 200
    for path in ("/api/x/static/", "/runs/static/style.css", "/staticx", "//static/style.css"):
        assert served.get(path)[0] == 401, "a path is free of the token only below /static/"


def post(served: Served, form: dict[str, str], **headers: str) -> http.client.HTTPResponse:
    connection = http.client.HTTPConnection(served.address.removeprefix("http://"), timeout=LONG_S)
    kind = {"content-type": "application/x-www-form-urlencoded"}
    connection.request("POST", "/sign-in", urlencode(form), {**kind, **headers})
    answer = connection.getresponse()
    answer.read()
    connection.close()
    return answer


def test_signing_in_leads_back_and_gives_a_cookie(guarded: tuple[Served, str]) -> None:
    served, token = guarded
    _, form = served.get("/runs?match=io", Accept="text/html")
    assert 'name="way" value="/runs?match=io"' in form
    answer = post(served, {"token": token, "way": "/runs?match=io"})
    assert (answer.status, answer.headers["location"]) == (303, "/runs?match=io")
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=lax" in cookie
    assert "Secure" not in cookie
    assert token not in cookie
    pair = cookie.partition(";")[0]
    assert served.get("/runs", Cookie=pair)[0] == 200
    assert served.get("/runs", Cookie=pair[:-1] + "x")[0] == 401
    behind_tls = post(served, {"token": token}, **{"x-forwarded-proto": "https"})
    assert "Secure" in behind_tls.headers["set-cookie"]


@pytest.mark.parametrize(
    "way",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "/a\r\nb"],
)
def test_signing_in_leads_nowhere_else(guarded: tuple[Served, str], way: str) -> None:
    served, token = guarded
    assert post(served, {"token": token, "way": way}).headers["location"] == "/"


def test_a_wrong_token_is_answered_late(guarded: tuple[Served, str]) -> None:
    served, _ = guarded
    acts: list[Callable[[], bool]] = [
        lambda: post(served, {"token": "wrong"}).status == 403,
        lambda: served.get("/runs", Authorization="Bearer wrong")[0] == 401,
        lambda: post(served, {"token": "x" * 100_000}).status == 403,
    ]
    for act in acts:
        began = time.monotonic()
        assert act()
        assert time.monotonic() - began > 0.9


def test_guessing_is_bounded(guarded: tuple[Served, str]) -> None:
    served, token = guarded
    began = time.monotonic()
    with contextlib.ExitStack() as stack:
        many = [stack.enter_context(served.connected()) for _ in range(50)]
        for raw in many:
            raw.sendall(b"GET /runs HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer wrong\r\n\r\n")
        status, _ = served.get("/runs.json", Authorization=f"Bearer {token}")
        assert status == 200, "the right token is judged in its turn"
        assert [raw.recv(12) for raw in many] == [b"HTTP/1.1 401"] * 50
    assert time.monotonic() - began > 2.5, "20 a second"


def test_a_token_is_compared_in_constant_time() -> None:
    import inspect

    from seatrial.show.web import access

    assert "hmac.compare_digest" in inspect.getsource(access._same)
    assert not access._same("\ud800", "token")
    assert access._same("token", "token")


@pytest.mark.needs("chromium")
def test_people_sign_in_in_a_browser(guarded: tuple[Served, str], browser: Browser) -> None:
    served, token = guarded
    with browser.new_context(base_url=served.address) as context:
        page = context.new_page()
        page.goto("/runs?match=hpl")
        page.get_by_label("Token").fill("wrong")
        page.get_by_role("button", name="Sign in").click()
        page.get_by_text("That is not the token").wait_for()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        page.wait_for_url("**/runs?match=hpl")
        page.locator("#list tbody tr").nth(2).wait_for()
        assert json.loads(page.request.get("/runs.json").text())["total"]
        assert token not in page.url
