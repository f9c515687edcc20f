"""What a page is asked: misspelt and unreadable parameters are told beside the form, and the links
and forms of every page ask only for what it knows."""

from __future__ import annotations

import html
import json
import re
from collections.abc import Iterator
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest

from seatrial.show.web.page import BadQuery, PageQuery

from .harbour import WHOLE
from .served import Served

if TYPE_CHECKING:
    from playwright.sync_api import Browser

FORMS = (
    *("/runs", "/failures", "/trials", "/machines", "/network", "/compare", "/history", "/scaling"),
    *("/machines/frontier", "/machines/frontier/nodes/n001", "/runs/weekly/broken1"),
)


# ---- what is refused --------------------------------------------------------------------------


@pytest.mark.parametrize("page", FORMS)
def test_a_misspelt_parameter_is_refused_beside_the_form(harbour: Served, page: str) -> None:
    status, text = harbour.get(f"{page}?limitt=5&machin=frost")
    assert status == 400
    assert "&#39;limitt&#39; is no parameter of this page" in text
    assert '<form class="filters"' in text
    status, text = harbour.get(f"{page}.json?limitt=5")
    assert (status, "no parameter of this page" in json.loads(text)["error"]) == (400, True)


def test_the_nearest_parameter_is_named(harbour: Served) -> None:
    for page, said in (
        (
            "/runs.json?machin=x",
            "did you mean 'machine'? It knows before, cause, limit, machine, match",
        ),
        ("/now.json?foo=bar", "'foo' is no parameter of this page; it knows none"),
        (f"/trials/{WHOLE}.json?tests=a", "did you mean 'test'? It knows from, test, to"),
        (f"/trials/{WHOLE}/loads.json?x=1", "'x' is no parameter"),
    ):
        status, text = harbour.get(page)
        assert (status, said in json.loads(text)["error"]) == (400, True), text


@pytest.mark.parametrize(
    ("address", "status", "said"),
    [
        ("/failures?column=bogus", 400, "column=&#39;bogus&#39;: one of time, tag"),
        (f"/trials/{WHOLE}?from=a", 400, "from=&#39;a&#39;: write a number"),
        ("/runs?match=(&machine=cliff", 400, "match=&#39;(&#39; is no regular expression"),
        ("/runs?state=bogus", 400, "state=&#39;bogus&#39;: one of passed"),
        ("/history?metric=triad&since=never", 400, "since: "),
        ("/runs?trial=nowhere", 404, "nowhere"),
    ],
)
def test_what_cannot_be_read_is_told(harbour: Served, address: str, status: int, said: str) -> None:
    got, text = harbour.get(address)
    assert (got, said in text) == (status, True), text


def test_the_form_keeps_what_was_written(harbour: Served) -> None:
    _, text = harbour.get("/runs?match=(&machine=cliff&since=2h&trial=weekly")
    assert 'name="match" value="("' in text
    assert "<option selected>cliff</option>" in text
    assert 'name="since" value="2h"' in text
    assert "<option selected>weekly</option>" in text
    assert "<tbody>" not in text  # the list is not that of another question


@pytest.mark.needs("chromium")
def test_a_bad_filter_is_told_in_place_of_the_list_and_can_be_mended(
    browser: Browser, harbour: Served
) -> None:
    from playwright.sync_api import expect

    refused = "status of 400 (Bad Request)"
    with browser.new_context(base_url=harbour.address) as context:
        page = context.new_page()
        told: list[str] = []
        page.on("console", lambda line: told.append(line.text) if line.type == "error" else None)
        for place in ("/runs", "/failures"):
            page.goto(place)
            expect(page.locator("#list tbody tr").first).to_be_visible()
            page.locator("input[name=match]").fill("stream(")
            expect(page.locator("#list [role=alert]")).to_contain_text("is no regular expression")
            expect(page.locator("#list tbody")).to_have_count(0)
            assert "match=stream" in page.url
            page.locator("input[name=match]").fill("hpl")
            expect(page.locator("#list [role=alert]")).to_have_count(0)
            expect(page.locator("#list tbody tr").first).to_be_visible()
            page.goto(f"{place}?since=gestern")
            expect(page.locator("#list [role=alert]")).to_contain_text("gestern")
            page.locator("input[name=since]").fill("")
            page.locator("input[name=since]").press("Enter")
            expect(page.locator("#list tbody tr").first).to_be_visible()
        assert all(refused in line for line in told), told


@pytest.mark.needs("chromium")
def test_a_server_that_went_away_is_told_in_place_of_the_list(
    browser: Browser, harbour: Served
) -> None:
    from playwright.sync_api import expect

    with browser.new_context(base_url=harbour.address) as context:
        page = context.new_page()
        page.goto("/runs")
        page.route("**/runs?*", lambda route: route.abort())
        page.locator("select[name=verdict]").select_option("pass")
        expect(page.locator("#list [role=alert]")).to_contain_text("does not answer")
        page.unroute("**/runs?*")
        page.route("**/runs?*", lambda route: route.fulfill(status=502, body="bad gateway"))
        page.locator("select[name=verdict]").select_option("failed")
        expect(page.locator("#list [role=alert]")).to_contain_text("answers 502")
        page.unroute("**/runs?*")
        page.locator("select[name=verdict]").select_option("pass")
        expect(page.locator("#list tbody tr").first).to_be_visible()


# ---- what pages ask of each other -------------------------------------------------------------


def test_links_and_forms_ask_for_what_pages_know(harbour: Served) -> None:
    """Every page, what it links to, its form with all its fields, and the JSON of each."""
    seen: dict[str, str] = {}
    bad = []
    todo = ["/", f"/trials/{WHOLE}?test=work&from=1&to=2", "/history?metric=elapsed&points=9"]
    while todo:
        address = todo.pop()
        kind = _kind(address)
        if kind in seen:
            continue
        seen[kind] = address
        status, text = harbour.get(address)
        if status == 400:
            bad.append((address, re.findall(r'role="alert">([^<]*)', text) or text[-300:]))
        todo += _asked_by(text, urlsplit(address).path)
    assert not bad
    assert len(seen) > 60
    paths = {kind.partition("?")[0] for kind in seen}
    assert {"/history", "/compare", "/machines/*", "/machines/*/nodes/*", "/runs/*/*"} <= paths


def _kind(address: str) -> str:
    """A page and the names of what it is asked: one of each kind is enough."""
    path, _, query = address.partition("?")
    words = path.split("/")
    for place in (2, 3, 4):
        if len(words) > place and words[place] not in ("nodes", "") and "." not in words[place]:
            words[place] = words[place] if place > 3 and words[1] == "trials" else "*"
    return "/".join(words) + "?" + ",".join(sorted({name for name, _ in parse_qsl(query)}))


def _asked_by(text: str, path: str) -> Iterator[str]:
    found = re.findall(r'(?:href|data-src)="([^"#]+)', text)
    for address in map(html.unescape, found):
        if address.startswith("?"):
            yield path + address
        elif address.startswith("/") and not address.startswith("/static"):
            yield address
    for action, fields in re.findall(
        r'<form class="filters".*?action="([^"]*)"(.*?)</form>', text, re.S
    ):
        query = [(name, "1") for name in re.findall(r'<input[^>]* name="([^"]+)"', fields)]
        query = [(name, value) for name, value in query if name not in ("column", "rehearsed")]
        for name, options in re.findall(r'<select name="([^"]+)">(.*?)</select>', fields, re.S):
            values = re.findall(r'<option(?: value="([^"]*)")?[^>]*>([^<]*)', options)
            usable = [value or shown for value, shown in values if value or shown]
            if usable:
                query.append((name, html.unescape(usable[-1])))
        times = {"since": "900d", "until": "1s", "pays": "40%", "least": "3%", "across": "hosts"}
        for name, value in query:
            yield f"{html.unescape(action)}?{urlencode({name: times.get(name, value)})}"


def test_what_was_asked_for_is_known() -> None:
    asked = PageQuery({}, [("limit", "3"), ("sort", ""), ("later", "1")])
    assert asked.number("limit", 1) == 3
    with pytest.raises(BadQuery, match="'later' is no parameter of this page; it knows limit"):
        asked.check_names()
    assert asked.text("later") == "1"
    asked.check_names()
    assert asked.without("limit").query == [("later", "1")]
    assert asked.without("").query == []
