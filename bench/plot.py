"""How long a browser takes to draw a trial's runs: 100,000 points in Chromium, without a GPU.

The page of a rehearsed trial is served; its plot of runs is given made-up ones. *Drawn* is from
the data's being there to the last stroke of the script; *on the screen* is to the frame after
next, so that what the browser paints later is in it. Zooming draws all again.
"""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

from tests.show.web.harbour import rehearsed
from tests.show.web.served import Served, chromium

from bench.measuring import Row, scratch

if TYPE_CHECKING:
    from playwright.sync_api import Page

POINTS = 100_000
TESTS = 6
LIMIT_MS = 200
TIMES = 9

# Draws what the plot has, and gives (ms to the last stroke, ms to the screen).
_DRAW = """async () => {
  const figure = plots.figures.find((each) => each.element.dataset.plot === "elapsed");
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve()));
  await frame();
  await frame();
  const began = performance.now();
  figure.draw();
  await frame();
  await frame();
  return [Number(figure.element.dataset.ms), performance.now() - began];
}"""
_ZOOM = """async ([from, to]) => {
  const frame = () => new Promise((resolve) => requestAnimationFrame(() => resolve()));
  await frame();
  const began = performance.now();
  plots.look(from, to);
  await frame();
  await frame();
  return performance.now() - began;
}"""


def measure() -> list[Row]:
    with scratch() as folder:
        played = rehearsed(folder / "harbour", "20m")
        with Served(played.folder.parent) as served, chromium() as browser:
            page = browser.new_page(viewport={"width": 1440, "height": 900})
            data = _runs()
            page.route("**/elapsed.json*", lambda route: route.fulfill(json=data))
            page.goto(f"{served.address}/trials/{played.folder.name}")
            page.locator('figure[data-plot="elapsed"][data-drawn]').wait_for()
            drawn = [page.evaluate(_DRAW) for _ in range(TIMES)]
            zoomed = _zooms(page, data["axis"])
    strokes, screen = (_median([each[i] for each in drawn]) for i in (0, 1))
    what = f"{POINTS:,} runs in Chromium"
    return [
        Row(f"{what}, drawn: under {LIMIT_MS} ms", f"{strokes:.0f} ms", "", _of_limit(strokes)),
        Row(f"{what}, on the screen", f"{screen:.0f} ms", "", _of_limit(screen)),
        Row(f"{what}, zoomed, on the screen", f"{zoomed:.0f} ms", "", _of_limit(zoomed)),
    ]


def _of_limit(ms: float) -> str:
    return f"{ms / LIMIT_MS:.2f}"


def _zooms(page: Page, axis: dict[str, Any]) -> float:
    start, width = axis["start"], axis["end"] - axis["start"]
    spans = [(start + width * i / 20, start + width * (0.5 + i / 20)) for i in range(TIMES)]
    return _median([page.evaluate(_ZOOM, span) for span in spans])


def _median(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _runs() -> dict[str, Any]:
    """Ten days of runs: most near the time of their test, one in twenty not as the others."""
    luck = random.Random(1)
    start, length = 1_790_000_000, 10 * 86400
    starts = sorted(luck.uniform(0, length) for _ in range(POINTS))
    tests = [luck.randrange(TESTS) for _ in starts]
    kinds = [luck.choice((1, 2, 3, 4)) if luck.random() < 0.05 else 0 for _ in starts]
    spread = {0: (1.0, 0.03), 1: (4.0, 0.0), 2: (1.6, 0.2), 3: (0.3, 0.1), 4: (0.5, 0.25)}
    times = [
        (test + 1) * 600 * max(0.01, luck.gauss(*spread[kind]))
        for test, kind in zip(tests, kinds, strict=True)
    ]
    return {
        "ready": True,
        "judged": True,
        "axis": {"start": start, "end": start + length, "zone": 0, "running": False},
        "tests": [f"test-{i}" for i in range(TESTS)],
        "kinds": ["normal", "walltime", "slow", "short", "failed"],
        "t": [round(at, 1) for at in starts],
        "y": [round(seconds, 3) for seconds in times],
        "test": tests,
        "kind": kinds,
        "run": [f"run{i:09}" for i in range(POINTS)],
        "left_out": 0,
        "older": 0,
    }


if __name__ == "__main__":
    for row in measure():
        print(" | ".join(row))
