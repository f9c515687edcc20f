"""Scaling as people use it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from bench.quality.curves import SIZES, linear

from tests.cli.test_query_common import ask
from tests.results.figures import Measuring
from tests.results.store.trials import a_case
from tests.results.test_curves import PLACES, osu

from . import frost
from .served import Served, open_page

if TYPE_CHECKING:
    from playwright.sync_api import Browser


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("scaling") / "trials"
    folder.mkdir()
    frost.tell_scaling(folder)
    single = Measuring(
        folder, "single", [a_case(n, parameters={"flag": "ab"[n]}, threads=1) for n in (0, 1)]
    )
    dreamt = Measuring(
        folder, "dreamt", [a_case(n, parameters={"n": n}) for n in (1, 2)], rehearsed=True
    )
    for trial in (single, dreamt):
        for case in trial.cases:
            trial.measure(case)
        trial.done()
    osu(folder, {**PLACES, "Y": linear(2, 1000)}, sizes=[0, *SIZES[:17]])
    return folder


@pytest.fixture(scope="module")
def served(trials: Path) -> Iterator[Served]:
    with Served(trials) as running:
        running.until_read()
        yield running


def judged(served: Served, **query: Any) -> Any:
    """The answer once it is judged."""
    return frost.judged(served, "/scaling", **{"trial": "sweep", "metric": "triad", **query})


@pytest.mark.needs("chromium")
def test_a_trial_is_named_and_judged(served: Served, browser: Browser) -> None:
    with open_page(browser, served.address) as page:
        page.goto("/scaling")
        page.fill("input[name=trial]", "sweep")
        page.fill("input[name=metric]", "triad")
        page.keyboard.press("Enter")
        page.wait_for_selector("table")
        assert page.locator("figure svg[role=img]").count() == 3
        told = page.inner_text("#study")
        assert "gcc: knee at threads 4" in told
        assert "from threads 16 on clang is ahead of gcc" in told
        assert "best median: clang, threads 32" in told
        failed = page.locator("tr:has-text('wrong answer')").inner_text()
        assert failed.split()[0] == "8"
        assert page.locator("tr:has-text('knee')").count() == 2


@pytest.mark.needs("chromium")
def test_it_fits_a_telephone(served: Served, browser: Browser) -> None:
    judged(served)
    with open_page(browser, served.address, viewport={"width": 320, "height": 700}) as page:
        page.goto("/scaling?trial=sweep&metric=triad")
        page.wait_for_selector("table")
        assert page.evaluate("document.documentElement.scrollWidth") <= 320


def test_what_grows_and_the_lines_are_chosen_by_themselves(served: Served) -> None:
    (table,) = judged(served)["records"]
    assert table["x"] == "threads"
    assert [line["by"] for line in table["lines"]] == ["gcc", "clang"]
    assert [line["knee"] for line in table["lines"]] == [4, 8]
    clang = table["lines"][1]["cells"]
    assert clang[-1]["speedup"] == pytest.approx(12100 / 900, rel=0.02)
    html = served.get("/scaling?trial=sweep&metric=triad")[1].replace("\N{NO-BREAK SPACE}", " ")
    assert 'name="x" value="threads"' in html and ">threads</a>" not in html
    assert "from threads 16 on clang is ahead of gcc: 9887 MB/s against 8386 MB/s" in html


def test_its_json_and_csv_are_those_of_the_command(trials: Path, served: Served) -> None:
    (table,) = judged(served)["records"]
    words = ("scaling", "sweep", "--x", "threads", "--metric", "triad", "--by", "toolchain")
    assert json.loads(ask(trials, *words, "--format", "json").out) == [table]
    rows = served.get("/scaling.csv?trial=sweep&metric=triad")[1]
    assert ask(trials, *words, "--format", "csv").out == rows


def test_conditions_choose_lines(served: Served) -> None:
    (table,) = judged(served, trial="sweep:toolchain=gcc")["records"]
    assert len(table["lines"]) == 1
    (table,) = judged(served, pays="10%")["records"]
    assert [line["knee"] for line in table["lines"]] == [16, None]


def test_words_are_compared_with_the_best_of_them(served: Served) -> None:
    (table,) = judged(served, trial="single", metric="elapsed")["records"]
    assert (table["x"], table["names"]) == ("flag", ["a", "b"])
    html = served.get("/scaling?trial=single&metric=elapsed")[1]
    assert "settings: each beside the best" in html and "best median: flag a" in html
    assert html.count('class="drawn"') == 1 and "100.0 %" in html


def test_what_cannot_be_judged_is_said_beside_the_form(served: Served) -> None:
    for query, said in (
        ({"trial": "nope"}, "no trial"),
        ({"x": "odd"}, "“Over” odd: is none of"),
        ({"metric": "odd"}, "“Metric” odd: no run has it"),
        ({"trial": "single:flag=a", "metric": "elapsed"}, "nothing varies"),
        ({"by": "odd"}, "“Lines by” odd: is none of"),
    ):
        found = judged(served, **query)
        assert found["state"] == "refused" and said in found["reason"], found["reason"]
    status, html = served.get("/scaling?trial=sweep&pays=none")
    assert status == 400 and "“Pays from” &#39;none&#39; is no share" in html
    assert served.json("/scaling")["state"] == "asked"


def test_a_rehearsal_is_marked_whatever_comes_of_it(served: Served) -> None:
    mark = 'class="notice rehearsal"'
    assert judged(served, trial="dreamt", metric="elapsed")["rehearsed"]
    assert mark in served.get("/scaling?trial=dreamt&metric=elapsed")[1]
    refused = judged(served, trial="dreamt", x="odd")
    assert refused["state"] == "refused" and refused["rehearsed"]
    assert mark in served.get("/scaling?trial=dreamt&metric=triad&x=odd")[1]
    assert mark not in served.get("/scaling?trial=sweep&metric=triad&x=odd")[1]


def test_patterns_choose_rehearsals_where_these_are_asked_for(served: Served) -> None:
    question = {"trial": "dre*", "metric": "elapsed"}
    assert "no trial fits" in judged(served, **question)["reason"]
    found = judged(served, **question, rehearsed="1")
    assert (found["state"], found["rehearsed"]) == ("judged", True)
    measured = judged(served, rehearsed="1")  # of the trial that is named
    assert (measured["state"], measured["rehearsed"]) == ("judged", False)
    assert 'name="rehearsed" value="1" checked' in served.get("/scaling?trial=a*&rehearsed=1")[1]


def test_sizes_are_curves_with_their_crossings(served: Served) -> None:
    found = judged(served, trial="osu1", metric="", x="bytes")
    (table,) = found["records"]
    assert table["x"] == "bytes"
    assert table["meetings"][0]["crossings"][0]["last"] == 2048
    html = served.get("/scaling?trial=osu1&x=bytes")[1]
    assert '<a href="/scaling?trial=osu1&amp;x=place">place</a> bytes</p>' in html
    assert "place=X is ahead up to 2 KiB, place=Z from 4 KiB: they cross near 2." in html
    assert html.count('fill-opacity="0.2"') == 6 and "Efficiency" not in html
    frost.judged(served, "/best", trial="osu1")
    html = served.get("/best?trial=osu1")[1]
    assert "place=Z from 4 KiB" in html and "at each of 18 sizes" in html
    frost.judged(served, "/ratio", trial="osu1:place=[XZ]", x="bytes")
    html = served.get("/ratio?trial=osu1:place=[XZ]&x=bytes")[1]
    assert "X is ahead up to 2 KiB, Z from 4 KiB" in html
    assert "bytes is a size: no speed-up is to be expected" in html
