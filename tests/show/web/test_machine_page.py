"""Machines, a machine's map of nodes and a node's page, as people use them."""

from __future__ import annotations

import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from msgspec import structs

from seatrial.journal.events import (
    NodeAdmitted,
    NodeDown,
    NodeExcluded,
    RunJudged,
    ScriptEnded,
    ScriptStarted,
)
from seatrial.model.machine import Machine, NetworkModel, NodeGroup
from seatrial.model.nodes import node_names
from seatrial.results.store.ingest import sync
from seatrial.results.store.opening import reopen_empty
from seatrial.show.web import nodes as node_figures
from seatrial.show.web.nodes import RunFigures, View, blocks_of, judged, view_of
from seatrial.show.web.page import PageQuery
from seatrial.show.web.pages import machine, node
from seatrial.show.web.server_state import ServerState
from tests.programs import until
from tests.results.figures import TRIAD, Measuring
from tests.results.store.trials import NOON, SECOND, a_case

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Route

STREAM = "/machines/frost?test=stream&metric=triad&show=z"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    folder = tmp_path_factory.mktemp("machines") / "trials"
    folder.mkdir()
    frost.tell_nodes(folder, "nodes-1")
    frost.tell_nodes(folder, "nodes-2", NOON + frost.DAY, running=True)
    rehearsed = frost.Fleet(folder, "made-up", [a_case(900, test="lsms")], rehearsed=True)
    rehearsed.ran(rehearsed.cases[0], "n[001-064]")
    rehearsed.end()
    with Served(folder) as running:
        running.until_read()
        yield running


# ---- through the server -------------------------------------------------------------------


def test_machines_are_listed(served: Served) -> None:
    (row,) = served.json("/machines")["machines"]
    assert (row["name"], row["trials"], row["rehearsals"]) == ("frost", 2, 1)
    (both,) = served.json("/machines", rehearsed=1)["machines"]
    assert both["passed"] == row["passed"] + 1


@pytest.mark.needs("chromium")
def test_a_map_of_nodes_to_look_at_and_to_walk(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        page.goto("/machines")
        page.get_by_role("link", name="frost").click()
        page.wait_for_selector("text=n041")
        assert page.locator(".block h3").all_inner_texts() == [f"switch{g}" for g in (1, 2, 3, 4)]
        assert "down (2)" in page.inner_text(".legend")
        page.select_option("select[name=test]", "stream")
        page.wait_for_url("**test=stream**")
        page.select_option("select[name=metric]", "triad")
        page.wait_for_url("**metric=triad**")
        page.select_option("select[name=show]", "z")
        page.wait_for_url("**show=z**")
        page.wait_for_selector("text=Deviation of triad")
        page.wait_for_selector("text=defective (1)")
        assert page.locator("tbody tr:has-text('defective') td").first.inner_text() == frost.SLOW
        page.focus("#map")
        page.keyboard.press("ArrowRight")
        page.wait_for_selector("#map-said:has-text('n001')")
        for key in ("ArrowRight", "ArrowRight", "ArrowDown"):
            page.keyboard.press(key)
        page.wait_for_selector("#map-said:has-text('n007')")
        page.keyboard.press("End")
        page.wait_for_selector("#map-said:has-text('n064')")
        page.keyboard.press("Enter")
        page.wait_for_url("**/machines/frost/nodes/n064?**")
        assert "metric=triad" in page.url and "show=" not in page.url


@pytest.mark.needs("chromium")
def test_an_answer_of_before_a_filter_was_set_does_not_take_its_place(
    served: Served, browser: Browser
) -> None:
    """A page that keeps itself true had asked for what it showed before."""
    held: list[Route] = []
    asked: list[str] = []

    def hold(route: Route) -> None:
        asked.append(route.request.url)
        if len(asked) == 2:  # the filter's
            route.continue_()
        else:
            held.append(route)

    with open_page(browser, served.address) as page:
        page.goto(STREAM.replace("show=z", "show=state"))
        page.route("**/machines/frost**", hold)
        page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
        until(lambda: page.title() and held, "the page to ask for itself")
        page.select_option("select[name=show]", "z")
        page.locator("text=defective (1)").wait_for()
        held[0].continue_()
        until(lambda: page.title() and len(held) > 1, "it to ask again")
        assert "show=z" in held[1].request.url
        assert page.locator("text=defective (1)").is_visible()


@pytest.mark.needs("chromium")
def test_news_while_a_filter_is_asked_for_do_not_lose_its_answer(
    served: Served, browser: Browser
) -> None:
    """The answer would replace a part that is no longer in the page."""
    held: list[Route] = []
    asked: list[str] = []
    with open_page(browser, served.address) as page:
        page.goto(STREAM.replace("show=z", "show=state"))
        page.route("**show=z**", lambda route: held.append(route))
        page.select_option("select[name=show]", "z")
        until(lambda: page.title() and held, "the filter to be asked for")
        page.on("requestfinished", lambda request: asked.append(request.url))
        page.evaluate("() => document.getElementById('machine').append('old')")  # so it has news
        page.evaluate("() => document.activeElement.blur()")
        page.evaluate("() => document.dispatchEvent(new Event('visibilitychange'))")
        until(lambda: page.title() and asked, "the page to ask for itself")
        held[0].continue_()
        page.locator("text=defective (1)").wait_for()


@pytest.mark.needs("chromium")
def test_a_click_on_a_square_opens_its_node(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address, viewport={"width": 320, "height": 800}) as page:
        page.goto(STREAM)
        square = page.locator("svg[data-block='1']").bounding_box()
        assert square is not None
        side = square["width"] / 4  # n023 is the third of the second row of four
        x, y = square["x"] + 2.5 * side, square["y"] + 1.5 * side
        page.mouse.move(x, y)
        page.wait_for_selector("#map-said:has-text('z -')")
        page.mouse.click(x, y)
        page.wait_for_url(f"**/nodes/{frost.SLOW}?**")
        page.wait_for_selector("text=defective")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320
        page.get_by_role("link", name="frost").first.click()
        page.wait_for_url("**/machines/frost?**")


@pytest.mark.needs("chromium")
def test_the_map_follows_the_journal(tmp_path: Path, browser: Browser) -> None:
    folder = tmp_path / "trials"
    folder.mkdir()
    trial = frost.Fleet(folder, "live", [a_case(1, test="lsms")])
    trial.ran(trial.cases[0], "n[001-004]", code=None)
    trial.write()
    with Served(folder) as running, open_page(browser, running.address) as page:
        running.until_read()
        page.goto("/machines/frost")
        page.wait_for_selector(".legend:has-text('running a run (4)')")
        page.focus("#map")
        page.keyboard.press("End")
        page.wait_for_selector("#map-said:has-text('n064: up')")
        trial.event(NodeDown, nodes="n[060-064]", reason="power")
        trial.write()
        page.wait_for_selector(".legend:has-text('down (5)')")
        page.wait_for_selector("#map-said:has-text('n064: down')")
        assert page.evaluate("document.activeElement.id") == "map"


def test_what_the_map_shows_is_counted_from_the_runs(served: Served) -> None:
    found = served.json("/machines/frost", show="failures")
    states = dict(zip(found["names"], found["told"], strict=True))
    assert states["n055"].startswith("down, ") and states["n001"].startswith("running, ")
    assert states[frost.BROKEN].startswith("excluded, ")
    rows = {row["name"]: row for row in served.json("/machines/frost", rows=100)["rows"]}
    assert rows["n055"]["why"] == "drained: <b>memory</b>"
    assert sum(row["failed"] for row in rows.values()) == 8 * found["failed"]
    listed = served.json("/machines/frost/nodes/n012", runs=500)
    assert len([run for run in listed["listed"] if run["code"] != 17]) == rows["n012"]["runs"]
    assert all("n012" in run["nodes"] or "[" in run["nodes"] for run in listed["listed"])


def test_the_window_and_the_trial_are_chosen(served: Served) -> None:
    whole = served.json("/machines/frost")["runs"]
    first = served.json("/machines/frost", trial="nodes-1")["runs"]
    later = served.json("/machines/frost", since="2026-11-22")["runs"]
    assert 0 < first < whole and first + later == whole
    assert served.json("/machines/frost", until="2026-11-21")["runs"] == 0
    assert served.json("/machines/frost", rehearsed=1)["runs"] == whole + 1
    assert served.json("/machines/frost", sort="failed")["rows"][0]["name"] == frost.BROKEN


def test_the_table_begins_with_what_the_map_shows(served: Served) -> None:
    for show in ("z", "metric"):
        found = served.json("/machines/frost", show=show, test="stream", metric="triad")
        deviations = [row["z"] for row in found["rows"] if row["z"] is not None]
        assert found["sort"] == "z"
        assert deviations == sorted(deviations) and deviations[0] < deviations[-1]
    assert served.json("/machines/frost", show="z", sort="name")["sort"] == "name"
    assert served.json("/machines/frost", show="failures")["sort"] == "worst"


def test_the_suspect_is_named(served: Served) -> None:
    def named() -> bool:
        found = served.json("/machines/frost")["suspects"]
        return bool(found) and [one["names"] for one in found["suspects"]] == [[frost.BROKEN]]

    until(named, "the suspects")
    node = served.json(f"/machines/frost/nodes/{frost.BROKEN}")
    assert node["suspect"] and node["state"]["excluded_why"] == "3 failures of its runs"
    assert {cause["name"] for cause in node["causes"]} >= {"failed", "node failure", "pass"}


def test_a_node_tells_what_became_of_it(served: Served) -> None:
    turns = served.json("/machines/frost/nodes/n007")["turns"]
    assert [(turn["state"], turn["why"]) for turn in turns] == 2 * [
        ("down", "not responding"),
        ("up", ""),
    ]
    _, html = served.get("/machines/frost/nodes/n055")
    assert "drained: &lt;b&gt;memory" in html and "<b>memory" not in html
    _, html = served.get("/machines/frost/nodes/n023?test=stream&metric=triad")
    assert 'role="img"' in html and "triad of n023 over time" in html


def test_figures_of_a_node_beside_the_others(served: Served) -> None:
    until(
        lambda: bool(served.json(f"/machines/frost/nodes/{frost.SLOW}")["figures"]), "its figures"
    )
    figures = served.json(f"/machines/frost/nodes/{frost.SLOW}")["figures"]
    worst = figures[0]
    assert (worst["test"], worst["metric"], worst["judged"]) == ("stream", "triad", "defective")
    assert (worst["place"], worst["nodes"], worst["n"]) == (1, 64, 2)
    assert worst["z"] < -5 and worst["figure"] == pytest.approx(310_000 * 0.93, rel=0.01)


@pytest.mark.parametrize(
    ("path", "status", "said"),
    [
        ("/machines/nowhere", 404, "no trial ran on a machine"),
        ("/machines/frost/nodes/n999", 404, "did you mean &#39;n0"),
        ("/machines/frost?trial=nope", 404, "no trial"),
        ("/machines/frost?show=odd", 400, "one of state, runs"),
        ("/machines/frost?rows=0", 400, "whole number"),
        ("/machines/frost?since=soon", 400, "since"),
    ],
)
def test_what_cannot_be_shown_is_said(served: Served, path: str, status: int, said: str) -> None:
    code, html = served.get(path)
    assert code == status and said in html


def test_a_metric_that_no_run_has_is_told_on_the_page(served: Served) -> None:
    code, html = served.get("/machines/frost?show=metric&metric=%3Cb%3Enone")
    assert code == 200 and "no chosen run with a right answer has a metric" in html
    assert "<b>none" not in html


# ---- details ------------------------------------------------------------------------------


def view_over(state: ServerState, **query: str) -> View:
    """The view of frost's page, after a look at the journals."""
    state.refresh()
    return view_of(state, PageQuery({"machine": "frost"}, list(query.items())))


def test_the_counts_are_those_of_every_set_written_out(tmp_path: Path) -> None:
    trial = frost.Fleet(tmp_path, "t", [a_case(1, test="lsms", nodes=3)])
    sets = ["n[001-003]", "n[002,005-006]", "n004,n006", "n001", "odd[1-2]x,n001", "]n[", ""]
    for nodes in sets:
        trial.ran(trial.cases[0], nodes, seconds=10 + len(nodes))
    trial.end()
    view = view_over(ServerState(tmp_path, tmp_path / "s.sqlite"))
    counts = view.counts(view.over()).tolist()
    assert counts[:7] == [3, 2, 1, 1, 1, 2, 0]
    assert view.names[view.described :] == ["odd1x", "odd2x"] and counts[64:] == [1, 1]
    assert view.on(view.names.index("n006")).tolist() == [False, True, True] + 4 * [False]
    values = np.array([5.0, 1.0, 9.0, 3.0, np.nan, 7.0, 8.0])
    found = judged(view, RunFigures("m", values, {}, better="lower"))
    assert found.values[:6].tolist() == [4.0, 3.0, 5.0, 9.0, 1.0, 5.0]
    assert found.counts[:6].tolist() == [2, 2, 1, 1, 1, 2]
    assert found.latest_only == 0


def test_of_too_many_runs_the_latest_are_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(node_figures, "MAX_PAIRS", 5)
    trial = frost.Fleet(tmp_path, "t", [a_case(1, test="lsms", nodes=2)])
    for seconds, nodes in enumerate(["n[001-002]", "n[001-002]", "n[002-003]"], 1):
        trial.ran(trial.cases[0], nodes, seconds)
    trial.end()
    found = of_machine(tmp_path, sort="name")
    assert found.latest_only == 2
    assert [row.figure for row in found.rows[:4]] == [2.0, 2.5, 3.0, None]


def test_a_view_follows_runs_to_their_ends(tmp_path: Path) -> None:
    trial = frost.Fleet(tmp_path, "t", [a_case(1, test="lsms")])
    state = ServerState(tmp_path, tmp_path / "s.sqlite")
    trial.ran(trial.cases[0], "n001")
    trial.ran(trial.cases[0], "n002", code=None)
    run = trial.events[-1]
    assert isinstance(run, ScriptStarted)
    trial.write()
    view = view_over(state)
    assert sorted(view.runs.code.tolist()) == [0, 17]
    assert view.counts(view.over())[:2].tolist() == [1, 0]
    of = {"test": "lsms", "case": run.case, "run_id": run.run_id}
    trial.event(ScriptEnded, exit_code=0, **of)
    trial.event(RunJudged, code=0, verdict="pass", **of)
    trial.write()
    assert view_over(state).runs is not view.runs
    view = view_over(state)
    assert view.counts(view.over())[:2].tolist() == [1, 1]
    assert view_over(state).runs is view.runs  # nothing is read again without news


def test_a_store_that_is_rebuilt_has_its_runs_in_other_rows(tmp_path: Path) -> None:
    parts = [frost.Fleet(tmp_path, tag, [a_case(1, test="lsms")]) for tag in ("a", "b")]
    place = tmp_path / "store.sqlite"
    state = ServerState(tmp_path, place)
    for _ in range(2):  # read by turns, so that the rows of one trial are among the other's
        for trial in parts:
            trial.ran(trial.cases[0], "n001")
            trial.write()
            state.refresh()

    def listed() -> dict[str, int]:
        query = PageQuery({"machine": "frost", "node": "n001"}, [("trial", "a")])
        return {run.run_id: run.row for run in node.data(state, query)["listed"]}

    before = listed()
    with reopen_empty(place) as store:
        sync(store, tmp_path)
    after = listed()
    assert before.keys() == after.keys() == {"f00001a", "f00002a"}
    assert before != after


def test_a_node_without_runs_has_no_figures_and_takes_none_from_the_map(tmp_path: Path) -> None:
    trial = frost.Fleet(tmp_path, "t", [a_case(1, test="lsms")])
    for number in range(1, 7):
        trial.ran(trial.cases[0], f"n{number:03}", seconds=100 + number)
    trial.end()
    state = ServerState(tmp_path, tmp_path / "store.sqlite")
    state.refresh()
    of = {"machine": "frost"}
    for _ in range(2):
        found = node.data(state, PageQuery(of | {"node": "n064"}, []))
        assert (found["over"], found["unit"], found["runs"]) == (None, "", 0)
        rows = machine.data(state, PageQuery(of, [("sort", "name")]))["rows"]
        assert [row.figure for row in rows[:7]] == [101, 102, 103, 104, 105, 106, None]


@pytest.mark.parametrize(
    ("names", "titles", "count"),
    [
        ("x[1000-1001]c[0-1]s[0-3]b0n[0-1]", ["cabinet x1000", "chassis 0"], 4),
        ("c[0-1]-0c[0-2]s[0-3]n[0-3]", ["cabinet c0-0", "chassis 0"], 6),
        ("r[1-2]i[0-3]n[0-8]", ["rack r1", "IRU 0"], 8),
        ("c5n[0001-1920]", [], 1),
    ],
)
def test_names_tell_where_nodes_stand(names: str, titles: list[str], count: int) -> None:
    described = Machine(machine="m", nodes=[NodeGroup(names=names, cores=1)])
    nodes = node_names(described)
    blocks = blocks_of(described, nodes, len(nodes))
    assert blocks[0].titles == titles and len(blocks) == count
    assert sorted(place for block in blocks for place in block.places) == list(range(len(nodes)))


FLY = NetworkModel(kind="dragonfly", levels=[{"router": 4}, {"chassis": 16}, {"group": 32}])


@pytest.mark.parametrize(
    ("told", "titles", "count"),
    [
        (FLY, ["group 0", "chassis 0"], 4),
        (NetworkModel(kind="tree", levels=[{"switch": 16}]), ["switch 0"], 4),
        (NetworkModel(kind="torus", axes={"x": 8, "y": 8}), [], 1),
    ],
)
def test_the_levels_of_the_network_are_drawn(
    tmp_path: Path, told: NetworkModel, titles: list[str], count: int
) -> None:
    fleet = frost.Fleet(tmp_path, "run-1", [a_case(1, test="stream")])
    frost.describe(fleet, structs.replace(frost.FROST, topology=told))
    fleet.ran(fleet.cases[0], "n[001-004]")
    fleet.end()
    page = of_machine(tmp_path)
    assert page.network.startswith(f"{told.kind}")
    assert "64 nodes; units by level: " in page.network
    assert page.blocks[0].titles == titles and len(page.blocks) == count
    assert sorted(place for block in page.blocks for place in block.places) == list(range(64))


def of_machine(folder: Path, **query: str) -> Any:
    """The data of frost's page, without a server."""
    site = ServerState(folder, folder / "store.sqlite")
    site.refresh()
    return SimpleNamespace(**machine.data(site, PageQuery({"machine": "frost"}, [*query.items()])))


def of_node(folder: Path, name: str) -> Any:
    """The data of the page of a node of frost's, without a server."""
    site = ServerState(folder, folder / "store.sqlite")
    site.refresh()
    return SimpleNamespace(**node.data(site, PageQuery({"machine": "frost", "node": name}, [])))


def spans_of(found: Any) -> list[tuple[float, float, str]]:
    """What its chart shades, by time."""
    assert found.over is not None
    return sorted(node._spans(found.turns, found.over, found.ends))


def test_a_node_let_back_in_was_excluded_until_then_though_its_trial_is_over(
    tmp_path: Path,
) -> None:
    trial = frost.Fleet(tmp_path, "t", [a_case(1, test="lsms")])
    at = []
    for kind in (NodeExcluded, NodeAdmitted, NodeExcluded):
        trial.ran(trial.cases[0], "n009")
        at.append(trial.event(kind, nodes="n009").time / SECOND)
    trial.now += 3600 * SECOND
    trial.ran(trial.cases[0], "n001,n009")
    trial.end()
    found = of_node(tmp_path, "n009")
    last = found.ends["t"]
    assert last > at[2] + 3600
    assert spans_of(found) == [(at[0], at[1], "excluded"), (at[2], last, "excluded")]


def test_a_node_is_excluded_while_any_trial_excludes_it(tmp_path: Path) -> None:
    one, two = (frost.Fleet(tmp_path, tag, [a_case(1, test="lsms")]) for tag in ("one", "two"))
    at: list[float] = []

    def tell(trial: frost.Fleet, kind: type[NodeExcluded | NodeAdmitted]) -> None:
        trial.now = NOON + (len(at) + 1) * 3600 * SECOND
        at.append(trial.event(kind, nodes="n009", reason=f"by {trial.tag}").time / SECOND)
        trial.ran(trial.cases[0], "n009")
        trial.write()

    one.start()
    two.start()
    tell(one, NodeExcluded)
    tell(two, NodeExcluded)
    assert of_node(tmp_path, "n009").state.excluded_why == "by two"
    tell(two, NodeAdmitted)
    found = of_node(tmp_path, "n009")
    assert (found.state.word, found.state.excluded_why) == ("excluded", "by one")
    assert found.state.excluded / SECOND == at[0]
    assert spans_of(found)[1] == (at[1], at[2], "excluded")
    tell(one, NodeAdmitted)
    found = of_node(tmp_path, "n009")
    assert found.state.word == "up"
    assert spans_of(found) == [(at[0], at[3], "excluded"), (at[1], at[2], "excluded")]


def test_a_node_that_is_down_and_excluded_is_marked_once_as_down(tmp_path: Path) -> None:
    trial = frost.Fleet(tmp_path, "t", [a_case(1, test="lsms")])
    trial.event(NodeExcluded, nodes="n[009-010]", reason="3 failures of its runs")
    trial.event(NodeDown, nodes="n[010-011]", reason="power")
    trial.end()
    found = of_machine(tmp_path)
    marked = {kind: [found.names[place] for place in found.marks[kind]] for kind in found.marks}
    assert marked == {"suspect": [], "down": ["n010", "n011"], "excluded": ["n009"]}
    words = {row.name: row.state for row in found.rows if row.state != "up"}
    assert words == {"n009": "excluded", "n010": "down", "n011": "down"}


def test_a_trial_folder_that_is_gone_leaves_what_runs_named(tmp_path: Path) -> None:
    frost.tell_nodes(tmp_path, "t")
    assert of_machine(tmp_path).described
    shutil.rmtree(tmp_path / "t")
    found = of_machine(tmp_path)
    assert not found.described and len(found.names) == frost.NODES
    assert found.blocks[0].titles == ["in no description"]
    assert found.runs == 184 and found.down == 2


def test_ten_thousand_nodes_are_a_small_picture(tmp_path: Path) -> None:
    trial = frost.Fleet(tmp_path, "t", [a_case(1, test="lsms")])
    large = Machine(machine="frost", nodes=[NodeGroup(names="m[00001-10000]", cores=1)])
    frost.describe(trial, large)
    trial.ran(trial.cases[0], "m[00001-09999]")
    trial.end()
    found = of_machine(tmp_path, show="runs")
    picture = str(machine.picture(vars(found), 0))
    squares = dict(re.findall(r'<path class="([^"]+)" d="([^"]+)"', picture))
    assert {kind: path.count("z") for kind, path in squares.items()} == {
        "many-0": 1,
        "many-4": 9999,
    }
    assert len(picture) < 250_000


def history(served: Served, stage: str) -> Any:
    return served.json("/history", metric="triad", stage=stage)


def test_runs_alone_and_at_full_machine_are_kinds_of_their_own(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "t", [a_case(1)])
    for value, stage in [(100.0, "alone"), (80.0, "full")] * 5:
        trial.measure(trial.cases[0], {TRIAD: value}, stage=stage)
    trial.done()
    with Served(tmp_path) as running:
        running.until_read()
        found = running.json("/machines/frontier", metric="triad", show="metric")
        stages = {}
        for stage in ("", "alone", "full"):
            until(lambda: history(running, stage)["state"] == "judged", "the history")  # noqa: B023
            stages[stage] = [each["stage"] for each in history(running, stage)["records"]]
    assert stages == {"": ["alone", "full"], "alone": ["alone"], "full": ["full"]}
    assert (found["kinds"], found["relative"]) == (2, True), "each over the median of its own stage"
