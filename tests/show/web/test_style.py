"""The one stylesheet: what is written can be read: in the light, in the dark, on a telephone."""

from __future__ import annotations

import re
from itertools import product
from typing import TYPE_CHECKING, Any

import pytest

from seatrial.show.web.render import STATIC

from .harbour import WHOLE
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

GROUNDS = ("paper", "panel")
INKS = ("ink", "quiet", "accent", "pass", "slow", "failed", "running", "waiting", "rehearsed")
BADGES = ("pass", "slow", "failed", "running", "waiting", "rehearsed", "accent")
SERIES = tuple(f"series-{number}" for number in range(1, 9))


def colours(scheme: str) -> dict[str, str]:
    """The variables of a scheme that are colours."""
    text = (STATIC / "style.css").read_text()
    dark = re.findall(r"\(prefers-color-scheme: dark\) \{\n  :root \{(.*?)\n  \}", text, re.S)
    light = re.sub(r"@media screen and \(prefers-color-scheme.*?\n\}", "", text, flags=re.S)
    assert len(dark) == 2, "of the pages, and of the maps"
    found = re.compile(r"--([\w-]+): (#[0-9a-f]{3,6});")
    own = dict(found.findall(light.partition("@media print")[0]))
    return own | (dict(found.findall("".join(dark))) if scheme == "dark" else {})


def brightness(colour: str) -> float:
    """The relative luminance of WCAG 2.2."""
    digits = colour.lstrip("#")
    digits = "".join(2 * digit for digit in digits) if len(digits) == 3 else digits
    parts = [int(digits[at : at + 2], 16) / 255 for at in (0, 2, 4)]
    red, green, blue = (p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def contrast(one: str, other: str) -> float:
    """The contrast ratio of WCAG 2.2: 4.5 for text, 3 for lines that matter."""
    low, high = sorted(map(brightness, (one, other)))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out(scheme: str) -> None:
    known = colours(scheme)
    pairs = [*product(INKS, GROUNDS), *((name, f"{name}-soft") for name in BADGES)]
    pairs += [*product(("ink", "quiet"), ("sunken", "accent-soft", "rehearsed-soft"))]
    least = dict.fromkeys(pairs, 4.5)
    least |= dict.fromkeys(product((*SERIES, "edge", "focus"), GROUNDS), 3.0)
    found = {pair: contrast(known[pair[0]], known[pair[1]]) for pair in least}
    assert {pair: ratio for pair, ratio in found.items() if ratio < least[pair]} == {}
    assert contrast("#fff", "#000000") == pytest.approx(21)


OUT = """() => [...document.querySelectorAll(".cards > tbody > tr > *")].filter((cell) => {
  const box = cell.getBoundingClientRect();
  return box.width > 0 && (box.left < 0 || box.right > innerWidth + 1);
}).map((cell) => cell.textContent.trim())"""


def telephone(browser: Browser, served: Served) -> Any:
    return open_page(browser, served.address, viewport={"width": 320, "height": 800})


def fits(page: Page, path: str, rows: str = ".cards > tbody > tr") -> None:
    """Whether a list of rows as cards is within a narrow screen."""
    page.goto(path)
    page.locator(rows).first.wait_for()
    assert page.evaluate(OUT) == []
    assert page.evaluate("document.documentElement.scrollWidth") == 320


@pytest.mark.needs("chromium")
def test_lists_are_cards_on_a_telephone(browser: Browser, harbour: Served) -> None:
    with telephone(browser, harbour) as page:
        for path in ("/runs", "/failures", "/trials", "/", f"/trials/{WHOLE}"):
            fits(page, path)
        page.goto("/trials")
        label = page.locator("[data-label=failed]").first
        assert label.evaluate("cell => getComputedStyle(cell, '::before').content") == '"failed "'


@pytest.mark.needs("chromium")
def test_the_first_column_of_a_wide_table_stays(browser: Browser, harbour: Served) -> None:
    with telephone(browser, harbour) as page:
        page.goto(f"/trials/{WHOLE}")
        page.locator("#variability-now table").first.wait_for()
        box = page.locator("#variability-now .wide").first
        assert box.evaluate("box => { box.scrollLeft = 400; return box.scrollLeft; }") > 50
        name = box.locator("tbody th").first.bounding_box()
        assert name is not None
        assert name["x"] == pytest.approx(0, abs=1)
