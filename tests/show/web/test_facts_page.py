"""The page Facts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import pytest

from tests.programs import Workplace

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser

HOSTILE = "<script>alert(1)</script>"


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    place = Workplace(tmp_path_factory.mktemp("facts"))
    place.local(cores=2)
    texts = {
        "n[1-7]": "node.kernel\t5.1\npci.narrow\tnone\n",
        "n8": f"node.kernel\t{HOSTILE}\npci.narrow\t0000:3b:00.0\n",
    }
    given = []
    for number, (nodes, text) in enumerate(texts.items()):
        (place.folder / f"own{number}").write_text(text)
        given += ["--read", f"{nodes}={place.folder}/own{number}"]
    machine = ("-m", str(place.machine))
    done = place.seatrial("facts", "collect", *machine, *given[:2], "--name", "torn")
    assert done.code == 0, done.said
    (facts,) = (place.trials / "torn").rglob("facts.txt")
    facts.write_text(f"silent\tn9\n{facts.read_text()}")
    done = place.seatrial("facts", "collect", *machine, *given, "--name", "asked")
    assert done.code == 0, done.said
    with Served(place.trials) as running:
        running.until_read()
        yield running


def test_findings_and_nodes_that_differ(served: Served) -> None:
    page = frost.judged(served, "/facts")
    assert (page["machine"], page["trial"]) == ("here", "asked")
    found = page["found"]
    named = {(each["rule"], each["nodes"]) for each in found["findings"]}
    assert named == {("pcie-width", "n8"), ("same-software", "n8")}
    rows = {(row["fact"], row["usual"], row["nodes"]) for row in found["differing"]}
    assert rows == {("node.kernel", "5.1", "n8"), ("pci.narrow", "none", "n8")}
    assert found["nodes"] == 8 and not found["silent"] and not found["troubles"]


def test_nodes_that_did_not_answer_are_not_found_healthy(served: Served) -> None:
    found = frost.judged(served, "/facts", trial="torn")["found"]
    assert (found["silent"], found["findings"]) == ("n9", [])
    assert "was changed since it was judged" in found["troubles"][0], "a line was put in by hand"
    _, html = served.get("/facts?trial=torn")
    assert "No rule found anything on the nodes that told all of their facts" in html
    assert "No rule found anything.<" not in html


def test_a_machine_without_facts_is_told(served: Served) -> None:
    assert served.json("/facts", machine="elsewhere")["state"] == "none"


@pytest.mark.needs("chromium")
def test_as_people_see_it(served: Served, browser: Browser) -> None:
    frost.judged(served, "/facts")
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto(f"{served.address}/facts")
        assert page.get_by_role("cell", name="pcie-width").is_visible()
        assert HOSTILE in page.inner_text("#facts")
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 320
