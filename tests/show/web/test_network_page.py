"""The heat map of a network and what is found in it."""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from seatrial.model.machine import Machine, NetworkModel, NodeGroup
from seatrial.plugins.network.matrices import Matrix, judged
from seatrial.plugins.network.page import MUTE, SELF, Cells, Charted, MatrixPanel
from tests.plugins.network import test_network_levels
from tests.plugins.network.test_matrices import pairs_text
from tests.programs import until
from tests.results.store.trials import TrialMaker, a_case

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

RUN = "aa11network"
PAGE = f"/network/network/{RUN}"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("network") / "trials"
    folder.mkdir()
    assert frost.tell_network(folder) == RUN
    tell_broken(folder)
    tell_levels(folder)
    with Served(folder) as running:
        running.until_read()
        yield running


LEVELLED = Machine(
    machine="levelled",
    scheduler="slurm",
    nodes=[NodeGroup(names="n[00-47]", cores=4)],
    topology=NetworkModel(kind="dragonfly", levels=[{"router": 2}, {"chassis": 8}, {"group": 16}]),
)


def tell_levels(folder: Path) -> None:
    """A matrix of a machine with levels, one of whose groups is cut off."""
    case = a_case(600, test="levels", nodes=48)
    trial = TrialMaker(folder, "levels", [case], machine="levelled")
    frost.describe(trial, LEVELLED)
    trial.start()
    sent = test_network_levels.rates()
    sent[:16, 16:] = sent[16:, :16] = 0
    sent[test_network_levels.unit(8, 2), test_network_levels.unit(8, 5)] *= 0.8
    names = [f"{name}:{i}" for i, name in enumerate(test_network_levels.NAMES)]
    trial.run(case, "lev1", files={"pairs.matrix": pairs_text(sent.T, names).encode()})
    trial.end()


def tell_broken(folder: Path) -> None:
    """Runs whose matrix is cut short, is a link out of the directory, is of the ranks of one node,
    falls into two parts, or is none."""
    cases = [a_case(n, test=f"pairs{n}") for n in (1, 2, 3, 4, 5)]
    trial = TrialMaker(folder, "broken", cases)
    trial.start()
    alone = pairs_text(1 - np.eye(4), [f"a:{rank}" for rank in range(4)])
    trial.run(cases[3], "alone", files={"pairs.matrix": alone.encode()})
    text = pairs_text(np.ones((3, 3)), ["a:0", "b:1", "c:2"])
    secret = folder.parent / "secret"
    secret.write_text(text)
    trial.run(cases[0], "cut", files={"pairs.matrix": text[:-20].encode()})
    trial.run(cases[1], "link", files={})
    (trial.folder.run("pairs2", "link") / "pairs.matrix").symlink_to(secret)
    rates = 100.0 * (1 - np.eye(6))
    rates[:4, 4:] = rates[4:, :4] = 0.0
    split = pairs_text(rates, [f"n{rank}:{rank}" for rank in range(6)])
    trial.run(cases[4], "split", files={"pairs.matrix": split.encode()})
    trial.run(cases[2], "none", files={"stdout": b"Recv nothing"})
    trial.end()


def ready(served: Served, **query: Any) -> Any:
    """The page of the matrix once it is judged."""
    until(lambda: bool(served.json(PAGE)["ready"]), "the matrix")
    return served.json(PAGE, **query)


# ---- through the server -------------------------------------------------------------------


@pytest.mark.needs("chromium")
def test_the_heat_map_is_drawn_zoomed_and_walked(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address, viewport={"width": 1280, "height": 900}) as page:
        page.goto("/network")
        page.locator(f"a[href='{PAGE}']").first.click()
        page.wait_for_selector(".heat-where:has-text('all 32 ranks')")
        assert page.locator("table tbody tr").count() == 3
        assert page.evaluate(PIXELS) > 20  # colours
        page.focus("figure.heat")
        page.keyboard.press("ArrowDown")
        page.wait_for_selector("#heat-said:has-text(' to n009:16: ')")
        page.keyboard.press("+")
        page.wait_for_url("**size=16**")
        page.wait_for_selector("#heat-said:has-text('n009:17 to n009:16: ')")
        page.wait_for_selector(".heat-where:has-text('senders n005')")
        page.keyboard.press("Home")
        page.wait_for_selector(".heat-where:has-text('all 32 ranks')")
        assert "size=" not in page.url
        box = page.locator("figure.heat canvas").bounding_box()
        assert box is not None
        side = box["width"] / 32
        page.mouse.move(box["x"] + 22.5 * side, box["y"] + 4.5 * side)
        page.wait_for_selector("#heat-said:has-text('n003:4 to n012:22: 6')")
        page.mouse.dblclick(box["x"] + 22.5 * side, box["y"] + 4.5 * side)
        page.wait_for_url("**size=16**")


PIXELS = """() => {
  const canvas = document.querySelector("figure.heat canvas");
  const data = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
  const seen = new Set();
  for (let i = 0; i < data.length; i += 4) seen.add(`${data[i]},${data[i + 1]},${data[i + 2]}`);
  return seen.size;
}"""


@pytest.mark.needs("chromium")
def test_rows_are_sorted_and_a_finding_is_shown(served: Served, browser: Browser) -> None:
    ready(served)
    with open_page(browser, served.address, color_scheme="dark") as page:
        page.goto(PAGE)
        page.wait_for_selector(".heat-where:has-text('all 32 ranks')")
        page.select_option("select[name=rows]", "speed")
        page.wait_for_url("**rows=speed**")
        page.focus("figure.heat")
        for _ in range(20):
            page.keyboard.press("Shift+ArrowUp")
        page.wait_for_selector("#heat-said:has-text('n009:')")  # the slowest comes first
        page.get_by_role("link", name="show").nth(1).click()
        page.wait_for_selector(".heat-where")
        assert page.evaluate("document.activeElement.className") == "heat"


def test_findings_are_those_of_the_command(served: Served) -> None:
    found = ready(served)
    kinds = {(one["kind"], one["what"]) for one in found["findings"]}
    assert kinds == {
        ("single pair cannot talk", "n005 to n006"),
        ("slow sender", "n009"),
        ("slow link", "n003 to n012"),
    }
    link = next(one for one in found["findings"] if one["kind"] == "slow link")
    assert link["effect"] == pytest.approx(-0.4, abs=0.02)
    assert (found["ranks"], found["nodes"], found["unit"]) == (32, 16, "node")


def test_nodes_that_talk_among_themselves_alone_are_named_together(served: Served) -> None:
    place = "/network/broken/split"
    until(lambda: bool(served.json(place)["ready"]), "the matrix of two parts")
    kinds = {(one["kind"], one["what"]) for one in served.json(place)["findings"]}
    assert ("talk among themselves alone", "n[4-5]") in kinds


def test_what_is_counted_is_named_once(served: Served) -> None:
    place = "/network/broken/alone"
    until(lambda: bool(served.json(place)["ready"]), "the matrix of one node")
    assert served.json(place)["unit"] == "rank"
    counted = re.findall(r"<b>([\d,]+)</b> (\w+)</li>", served.get(place)[1])
    assert counted == [("4", "ranks"), ("0", "findings")]
    ready(served)
    counted = re.findall(r"<b>([\d,]+)</b> (\w+)</li>", served.get(PAGE)[1])
    assert counted == [("16", "nodes"), ("32", "ranks"), ("3", "findings")]


def test_cells_are_bytes_of_the_part_that_is_asked_for(served: Served) -> None:
    ready(served)
    cells = served.json(f"{PAGE}/cells", x=8, y=10, size=4)
    levels = np.frombuffer(base64.b64decode(cells["cells"]), np.uint8).reshape(4, 4)
    assert (cells["pairs"], cells["width"], cells["height"]) == (1, 4, 4)
    assert levels[0, 2] == SELF and levels[1, 3] == SELF
    whole = served.json(f"{PAGE}/cells", most=16, show="effect", of="best")
    assert (whole["pairs"], whole["width"], whole["rates"]) == (2, 16, None)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/network/broken/cut", 404, "is not a whole matrix"),
        ("/network/broken/link", 404, "has no matrix here"),
        ("/network/broken/none", 404, "has no matrix here"),
        ("/network/broken/nope", 404, "no run begins with"),
        ("/network/network/..%2F..%2Fsecret", 404, ""),
        (f"{PAGE}?rows=odd", 400, "one of rank, group, speed"),
        (f"{PAGE}/cells.json?most=100000", 400, "whole number from 16"),
        (f"{PAGE}/cells.json?x=-1", 400, "whole number"),
    ],
)
def test_what_is_no_matrix_is_said(served: Served, path: str, status: int, said: str) -> None:
    until(lambda: served.get(path)[0] == status, f"{status} of {path}")
    assert said in served.get(path)[1]


def test_only_runs_with_a_matrix_are_listed(served: Served) -> None:
    until(lambda: served.json("/network")["runs"] is not None, "the runs")
    listed = [run["run_id"] for run in served.json("/network")["runs"]]
    # What is cut short is listed, and says so when it is opened.
    assert listed == ["split", "cut", RUN, "lev1", "alone"]
    assert served.json("/network", machine="nowhere")["runs"] == []


# ---- details ------------------------------------------------------------------------------


def charted() -> Charted:
    received, names = frost.matrix(nodes=8, ranks=2)
    matrix = Matrix(names, received.T, "made")
    groups = {f"n{n:03}": "ab"[n % 2] for n in range(1, 9)}
    return Charted(matrix, judged(matrix, groups), groups, None)


def levels_of(cells: Cells) -> np.ndarray:
    data = np.frombuffer(base64.b64decode(cells.cells), np.uint8)
    return data.reshape(cells.height, cells.width)


@pytest.mark.parametrize(("aspect", "rule"), [("worst", np.min), ("best", np.max)])
def test_a_cell_is_the_worst_or_the_best_of_its_pairs(aspect: str, rule: Any) -> None:
    chart = charted()
    whole = MatrixPanel(0, 0, 16)
    fine = levels_of(chart.cells(whole, 16, ("rank", "rank"), aspect, "rate"))
    coarse = levels_of(chart.cells(whole, 5, ("rank", "rank"), aspect, "rate"))
    assert coarse.shape == (4, 4)
    for row in range(4):
        for column in range(4):
            pairs = fine[4 * row : 4 * row + 4, 4 * column : 4 * column + 4].ravel()
            assert coarse[row, column] == rule(pairs[pairs != SELF])


def test_the_median_of_a_cell_and_ragged_edges() -> None:
    chart = charted()
    coarse = levels_of(chart.cells(MatrixPanel(0, 0, 16), 3, ("rank", "rank"), "median", "rate"))
    assert coarse.shape == (3, 3)
    fine = levels_of(chart.cells(MatrixPanel(0, 0, 16), 16, ("rank", "rank"), "worst", "rate"))
    assert coarse[0, 1] == sorted(fine[0:6, 6:12].ravel())[18]


def test_orders_put_groups_together_and_the_slowest_first() -> None:
    chart = charted()
    groups = [chart.groups[rank] for rank in chart.orders["group", 0]]
    assert groups == sorted(groups)
    middles = np.median(chart.rates, axis=1)[chart.orders["speed", 0]]
    assert (np.diff(middles) >= 0).all()
    cells = levels_of(chart.cells(MatrixPanel(0, 0, 16), 16, ("speed", "group"), "worst", "rate"))
    plain = levels_of(chart.cells(MatrixPanel(0, 0, 16), 16, ("rank", "rank"), "worst", "rate"))
    rows, columns = chart.orders["speed", 0], chart.orders["group", 1]
    assert (cells == plain[rows][:, columns]).all()


def test_what_cannot_talk_has_its_own_level() -> None:
    received, names = frost.matrix(nodes=8, ranks=1)
    matrix = Matrix(names, received.T, "made")
    chart = Charted(matrix, judged(matrix, {}), {}, None)
    levels = chart.scales["rate"].levels
    assert np.argwhere(levels == MUTE).tolist() == [[4, 5]]
    assert (np.diag(levels) == SELF).all()
    effects = chart.scales["effect"]
    assert effects.low == -effects.high and effects.levels[4, 5] == MUTE


def test_units_of_the_network_are_named_here_and_on_the_machines_page(served: Served) -> None:
    until(lambda: served.json("/network/levels/lev1")["ready"], "the matrix")
    found = served.json("/network/levels/lev1")["findings"]
    assert [(one["kind"], one["what"]) for one in found[:2]] == [
        ("cut off: group", "group 0 talks with no other group"),
        ("slow link: chassis", "slow from chassis 2 to chassis 5"),
    ]
    assert found[2:] == [], "units are told by level alone, not by their nodes"
    until(lambda: served.json("/machines/levelled")["by_level"] is not None, "the levels")
    assert served.json("/machines/levelled")["matrix"]["run_id"] == "lev1"
    html = served.get("/machines/levelled")[1]
    assert "<li>group 0 talks with no other group</li>" in html
    assert "slow from chassis 2 to chassis 5 (-19.8 %)" in html
    assert served.json("/machines/frost")["by_level"] == []
