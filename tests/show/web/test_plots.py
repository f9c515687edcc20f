"""Large plots in a browser: drawn, zoomed, pointed at, used from the keyboard, printed."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import TYPE_CHECKING
from urllib.parse import parse_qs, urlparse

import pytest

from tests.programs import until

from .harbour import TESTS, WHOLE
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Locator, Page, ViewportSize

pytestmark = pytest.mark.needs("chromium")

SIZE: ViewportSize = {"width": 1280, "height": 900}
KINDS = ("utilisation", "in-flight", "elapsed", "load")


@pytest.fixture(scope="module")
def opened(harbour: Served, browser: Browser) -> Iterator[Page]:
    with open_page(browser, harbour.address, viewport=SIZE) as page:
        yield page


@pytest.fixture
def page(opened: Page, harbour: Served) -> Page:
    """The trial's page with all its figures drawn, zoomed nowhere."""
    address = f"{harbour.address}/trials/{WHOLE}"
    opened.set_viewport_size(SIZE)
    opened.mouse.move(0, 0)
    if opened.url != address:
        opened.goto(address)
    for kind in KINDS:
        plot(opened, kind).and_(opened.locator("[data-drawn]")).wait_for()
    return opened


def plot(page: Page, kind: str) -> Locator:
    return page.locator(f'figure[data-plot="{kind}"]')


def paint(page: Page, kind: str) -> str:
    """The pixels of a figure's first canvas."""
    found: str = plot(page, kind).locator(".canvas canvas").first.evaluate("(c) => c.toDataURL()")
    return found


def window(page: Page) -> tuple[float, float] | None:
    """The window of time that the address has."""
    query = parse_qs(urlparse(page.evaluate("location.href")).query)  # page.url comes later
    return (float(query["from"][0]), float(query["to"][0])) if "from" in query else None


def drag(page: Page, kind: str, share: tuple[float, float]) -> None:
    over = plot(page, kind).locator(".over").first
    over.scroll_into_view_if_needed()
    box = over.bounding_box()
    assert box is not None
    y = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + share[0] * box["width"], y)
    page.mouse.down()
    page.mouse.move(box["x"] + share[1] * box["width"], y, steps=4)
    page.mouse.up()


def run_place(page: Page, place: int) -> tuple[float, float, str]:
    """Where on the screen a run is drawn, and its id."""
    plot(page, "elapsed").locator(".over").scroll_into_view_if_needed()
    found = page.evaluate(
        """(i) => {
          const figure = plots.figures.find((each) => each.element.dataset.plot === "elapsed");
          const plot = figure.plots[0], { data } = figure;
          const box = plot.canvas.getBoundingClientRect();
          const x = plot.x(data.axis.start + data.t[i]), y = plot.y(data.y[i]);
          return [box.left + x / plot.ratio, box.top + y / plot.ratio, data.run[i]];
        }""",
        place,
    )
    return found[0], found[1], found[2]


def test_each_figure_is_drawn_with_a_text_beside_it(page: Page) -> None:
    assert plot(page, "utilisation").locator(".canvas canvas").count() == 1
    assert plot(page, "in-flight").locator(".canvas canvas").count() == 1 + len(TESTS)
    assert plot(page, "load").locator(".canvas canvas").count() == 2
    for kind in KINDS:
        figure = plot(page, kind)
        assert figure.locator("figcaption").inner_text()
        label = figure.locator(".canvas").get_attribute("aria-label") or ""
        assert "plus and minus zoom" in label
        assert figure.locator("figcaption a.json").get_attribute("href")
    inked = page.evaluate(
        """() => [...document.querySelectorAll("figure.plot canvas")].map((c) => {
          const { data } = c.getContext("2d").getImageData(0, 0, c.width, c.height);
          return data.some((v) => v > 0);
        })"""
    )
    assert all(inked)


def test_dragging_zooms_all_figures_and_a_double_click_shows_all(page: Page) -> None:
    from playwright.sync_api import expect

    before = {kind: paint(page, kind) for kind in KINDS}
    drag(page, "elapsed", (0.25, 0.5))
    found = window(page)
    assert found is not None
    # The trial lasts two hours, and its last runs some minutes longer.
    assert found[1] - found[0] == pytest.approx(1900, rel=0.06)
    expect(plot(page, "load").locator(".said")).to_contain_text(re.compile(r"\b3\d m\b"))
    for kind in KINDS:
        until(lambda kind=kind: paint(page, kind) != before[kind], kind)  # type: ignore[misc]
    link = plot(page, "elapsed").locator(".said a").get_attribute("href") or ""
    assert "since=" in link
    assert page.request.get(link).ok
    plot(page, "load").locator(".over").first.dblclick()
    assert window(page) is None
    until(lambda: paint(page, "elapsed") == before["elapsed"], "all of it")


def test_a_zoom_can_be_sent_to_a_colleague(page: Page) -> None:
    drag(page, "utilisation", (0.5, 0.75))
    found = window(page)
    before = paint(page, "elapsed")
    page.reload()
    plot(page, "elapsed").and_(page.locator("[data-drawn]")).wait_for()
    assert window(page) == found
    until(lambda: paint(page, "elapsed") == before, "the same picture")


def test_the_keyboard_zooms_moves_and_shows_all(page: Page) -> None:
    holder = plot(page, "utilisation").locator(".canvas")
    holder.focus()
    page.keyboard.press("+")
    first = window(page)
    assert first is not None
    page.keyboard.press("ArrowRight")
    second = window(page)
    assert second is not None
    assert second[0] > first[0]
    assert second[1] - second[0] == pytest.approx(first[1] - first[0], rel=0.01)
    page.keyboard.press("-")
    page.keyboard.press("-")
    assert window(page) is None
    page.keyboard.press("+")
    page.keyboard.press("0")
    assert window(page) is None
    plot(page, "load").get_by_role("button", name="Zoom in").click()
    assert window(page) is not None


def test_pointing_at_a_run_tells_it_and_a_click_opens_it(page: Page) -> None:
    x, y, run = run_place(page, 3)
    page.mouse.move(x, y)
    tip = plot(page, "elapsed").locator(".tip")
    tip.wait_for()
    assert run in tip.inner_text()
    page.mouse.click(x, y)
    page.wait_for_url(f"**/runs/{WHOLE}/{run}")


def test_runs_can_be_walked_and_opened_by_keys(page: Page) -> None:
    plot(page, "elapsed").locator(".canvas").focus()
    page.keyboard.press("n")
    page.keyboard.press("n")
    page.keyboard.press("p")
    page.keyboard.press("n")
    run = page.evaluate(
        'plots.figures.find((each) => each.element.dataset.plot === "elapsed").data.run[1]'
    )
    assert run in plot(page, "elapsed").locator(".said").inner_text()
    page.keyboard.press("Enter")
    page.wait_for_url(f"**/runs/{WHOLE}/{run}")


def test_tests_and_classes_can_be_hidden_and_told_by_shape(page: Page) -> None:
    figure = plot(page, "elapsed")
    names = [name.split(" ")[0] for name in figure.locator(".toggle").all_inner_texts()]
    assert names[: len(TESTS)] == list(TESTS)
    assert {"failed", "at"} <= set(names)
    before = paint(page, "elapsed")
    figure.get_by_role("button", name="failed").click()
    until(lambda: paint(page, "elapsed") != before, "the failed ones to vanish")
    figure.get_by_role("button", name="failed").click()
    until(lambda: paint(page, "elapsed") == before, "the failed ones to return")
    figure.get_by_role("button", name="log").click()
    until(lambda: paint(page, "elapsed") != before, "a logarithmic scale")


def test_pointing_at_strips_and_shares_tells_their_numbers(page: Page) -> None:
    for kind, words in (("utilisation", "accepted"), ("in-flight", "all tests"), ("load", "safe")):
        figure = plot(page, kind)
        figure.locator(".over").first.hover()
        tip = figure.locator(".tip")
        tip.wait_for()
        assert words in tip.inner_text(), kind


def test_dark_light_and_paper_have_their_own_colours(harbour: Served, browser: Browser) -> None:
    marked = """(c, [r, g, b]) => {
      const m = c.getContext("2d").getImageData(0, 0, c.width, c.height).data;
      const near = (i, v) => Math.abs(m[i] - v) < 4;
      let n = 0;
      for (let i = 0; i < m.length; i += 4) {
        if (m[i + 3] > 250 && near(i, r) && near(i + 1, g) && near(i + 2, b)) n++;
      }
      return n; }"""
    light, dark = [0x0B, 0x5E, 0x80], [0x6F, 0xC3, 0xE4]  # --accent of style.css
    with open_page(browser, harbour.address, color_scheme="light") as page:
        page.goto(f"/trials/{WHOLE}")
        plot(page, "in-flight").and_(page.locator("[data-drawn]")).wait_for()
        canvas = plot(page, "in-flight").locator("canvas").first

        def inked(colour: list[int], other: list[int]) -> bool:
            return bool(canvas.evaluate(marked, colour) > 50 > canvas.evaluate(marked, other))

        until(lambda: inked(light, dark), "the colours of a light screen")
        page.emulate_media(color_scheme="dark")
        until(lambda: inked(dark, light), "the colours of a dark screen")
        page.emulate_media(color_scheme="dark", media="print")
        until(lambda: inked(light, dark), "the colours of paper")


WRITTEN = """(() => {
  const { fillText, clearRect } = CanvasRenderingContext2D.prototype;
  const written = window.written = new Map();  // of each canvas, since it was cleared
  Object.assign(CanvasRenderingContext2D.prototype, {
    clearRect(...box) { written.set(this.canvas, []); return clearRect.apply(this, box); },
    fillText(text, x, y) {
      if (this.textAlign === "center") {
        written.get(this.canvas)?.push([y, x, this.measureText(text).width]);
      }
      return fillText.apply(this, arguments);
    },
  });
})()"""
TIMES = "() => [...window.written].filter(([c, said]) => c.width === 690).map(([c, said]) => said)"


def test_times_on_paper_do_not_overlap(browser: Browser, harbour: Served) -> None:
    """A plot becomes narrower on paper: the times below it are chosen anew."""
    with open_page(browser, harbour.address, viewport={"width": 2000, "height": 900}) as page:
        page.add_init_script(WRITTEN)
        page.goto(f"/trials/{WHOLE}")
        for kind in KINDS:
            plot(page, kind).and_(page.locator("[data-drawn]")).wait_for()
        page.emulate_media(media="print")
        until(lambda: len(page.evaluate(TIMES)) >= len(KINDS), "the figures on paper")

        def apart() -> bool:
            found = [sorted(map(tuple, each)) for each in page.evaluate(TIMES)]
            return any(found) and all(
                at + width / 2 < after - other / 2
                for each in found
                for (line, at, width), (below, after, other) in pairwise(each)
                if line == below
            )

        until(apart, "times that stand apart")


def test_a_figure_follows_the_width_of_the_window(page: Page) -> None:
    canvas = plot(page, "utilisation").locator("canvas").first
    wide = canvas.bounding_box()
    page.set_viewport_size({"width": 400, "height": 900})
    assert wide is not None

    def narrower() -> bool:
        box = canvas.bounding_box()
        return box is not None and box["width"] < 400 < wide["width"]

    until(narrower, "a narrower plot")


def test_one_test_is_drawn_alone(page: Page) -> None:
    page.goto(f"/trials/{WHOLE}?test=tide#elapsed")
    plot(page, "elapsed").and_(page.locator("[data-drawn]")).wait_for()
    texts = plot(page, "elapsed").locator(".toggle").all_inner_texts()
    assert not [text for text in texts if text.startswith("work")]


def test_a_figure_that_cannot_be_had_says_why(harbour: Served, browser: Browser) -> None:
    with open_page(browser, harbour.address) as page:
        page.route("**/loads.json*", lambda route: route.fulfill(status=200, body="no JSON"))
        page.goto(f"/trials/{WHOLE}")
        plot(page, "load").locator("text=This could not be drawn").wait_for()
