"""The report in a browser, from disk, without a network: on screens, in the dark, for paper."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from msgspec import Struct
from msgspec.structs import replace

from seatrial.show.report import render
from seatrial.show.report.content import Report
from tests.show.web.served import chromium

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page, ViewportSize

pytestmark = pytest.mark.needs("chromium")

# Pairs of texts of one figure that lie on each other by more than their margins.
OVERLAPS = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const texts = [...svg.querySelectorAll('text')]
    .map(t => [t.firstChild.nodeName === 'title' ? t.lastChild.data : t.textContent,
               t.getBoundingClientRect()]);
  return texts.flatMap(([a, p], i) => texts.slice(i + 1).filter(([b, q]) =>
    Math.min(p.right, q.right) - Math.max(p.left, q.left) > 1 &&
    Math.min(p.bottom, q.bottom) - Math.max(p.top, q.top) > 4).map(([b]) => [a, b]));
})"""
OUTSIDE = """() => [...document.querySelectorAll('svg')].flatMap(svg => {
  const box = svg.getBoundingClientRect();
  return [...svg.querySelectorAll('text')].filter(t => {
    const r = t.getBoundingClientRect();
    return r.left < box.left - 1 || r.right > box.right + 1 || r.bottom > box.bottom + 1;
  }).map(t => t.textContent);
})"""

PAPER = 673  # px: A4 without its margins; browsers shrink what is up to 1.5 times as wide


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def file(rehearsed: Report, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("report") / "r.html"
    path.write_text(render.as_html(rehearsed))
    return path


def opened(browser: Browser, file: Path, width: int = 1100, **more: Any) -> tuple[Page, list[str]]:
    """The report, and what the browser complained of or asked for besides it."""
    size: ViewportSize = {"width": width, "height": 900}
    page = browser.new_context(offline=True, viewport=size, **more).new_page()
    odd: list[str] = []
    page.on("console", lambda message: odd.append(message.text))
    page.on("pageerror", lambda error: odd.append(str(error)))
    page.on("request", lambda request: None if request.url == file.as_uri() else
            odd.append(request.url))  # fmt: skip
    page.goto(file.as_uri())
    return page, odd


def test_it_opens_offline_and_nothing_else_is_asked_for(browser: Browser, file: Path) -> None:
    page, odd = opened(browser, file)
    assert page.title() == "Rehearsed: Acceptance report: p on toy"
    page.locator("summary").first.click()
    assert page.locator("details table").first.is_visible()
    page.get_by_role("link", name="stability").click()
    assert page.get_by_role("heading", name="stability").is_visible()
    assert not odd, "the policy allows its own style, and nothing else happens"
    accessible = page.get_by_role("img", name="Each application alone and at full machine")
    assert accessible.count() == 1
    page.context.close()


def test_words_of_figures_lie_apart_and_pages_do_not_scroll_sideways(
    browser: Browser, file: Path
) -> None:
    page, _ = opened(browser, file)
    for width in (320, 700, 1100, 2560):
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.scrollingElement.scrollWidth") <= width, width
        assert page.evaluate(OVERLAPS) == [], width
        assert page.evaluate(OUTSIDE) == [], width
    page.context.close()


def test_it_is_dark_where_people_want_it_and_white_on_paper(browser: Browser, file: Path) -> None:
    page, _ = opened(browser, file, color_scheme="dark")
    paper = "getComputedStyle(document.documentElement).backgroundColor"
    bar = "getComputedStyle(document.querySelector('svg path[fill^=var], svg rect')).fill"
    assert page.evaluate(paper) == "rgb(18, 23, 28)"
    dark = page.evaluate(bar)
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate(paper) == "rgb(255, 255, 255)"
    assert page.evaluate(bar) != dark
    assert page.locator(".watermark").is_visible()
    short = page.locator("details.few").first
    assert short.locator("table").is_visible(), "short tables are printed though nobody opened them"
    assert page.locator("details.many table").first.is_hidden()
    page.context.close()


def test_paper_has_pages(browser: Browser, file: Path) -> None:
    page, _ = opened(browser, file)
    pdf = page.pdf(prefer_css_page_size=True)
    assert pdf.startswith(b"%PDF")
    assert 5 <= pdf.count(b"/Type /Page\n") <= 20
    page.context.close()


def renamed(value: Any, names: dict[str, str]) -> Any:
    """Return a report, or a part of it, with other names in all of its texts."""
    if isinstance(value, Struct):
        changed = {key: renamed(getattr(value, key), names) for key in value.__struct_fields__}
        return replace(value, **changed)
    if isinstance(value, dict):
        return {renamed(key, names): renamed(part, names) for key, part in value.items()}
    if isinstance(value, list):
        return [renamed(part, names) for part in value]
    if isinstance(value, tuple):
        parts = [renamed(part, names) for part in value]
        return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
    if isinstance(value, str) and type(value) is str:
        for pattern, name in names.items():
            value = re.sub(pattern, name, value)
    return value


def test_long_names_are_not_cut_on_paper(
    browser: Browser, rehearsed: Report, tmp_path: Path
) -> None:
    """Each test, component and metric has a name of 60 letters or more, with signs at which a line
    may break and without."""
    longer: dict[str, str] = {}
    names = {part.test for one in rehearsed.components for part in one.status.parts}
    names |= {one.title for one in rehearsed.components}
    for number, name in enumerate(sorted(names, key=len, reverse=True)):
        long = ("abcdefghij" * 6, "a_name_of_" * 6)[number % 2] + str(number)
        longer[rf"(?<![\w-]){re.escape(name)}(?![\w-])"] = long
    path = tmp_path / "long.html"
    path.write_text(render.as_html(renamed(rehearsed, longer)))
    page, _ = opened(browser, path, width=PAPER)
    page.emulate_media(media="print")
    wide = page.evaluate(
        "widest => [...document.querySelectorAll('table')].filter(t => t.checkVisibility())"
        ".map(t => [t.getBoundingClientRect().right, t.innerText]).filter(t => t[0] > widest)",
        1.25 * PAPER,
    )
    assert "abcdefghij" * 2 in page.locator("main").inner_text()
    assert wide == []
    page.context.close()
