"""Figures that others gave, on the pages: marked, and never among what was measured."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any
from urllib.request import urlopen

import pytest

from tests.programs import Workplace
from tests.waiting import until


@contextmanager
def pages(place: Workplace) -> Iterator[str]:
    with place.start("serve", "--port", "0") as server:
        server.until(lambda: "at http://" in server.said, "its address")
        found = re.search(r"http://\S+:\d+", server.said)
        assert found
        yield found[0]


@pytest.fixture
def given(place: Workplace) -> Workplace:
    rate = {"find": r"rate (\d+)", "unit": "MB/s", "better": "higher"}
    sizes = {"size": [1, 2]}
    place.test("hello", "echo rate 950", metrics={"rate": rate}, repeat=4, parameters=sizes)
    assert place.run("--name", "pt").code == 0
    (place.folder / "vt.csv").write_text(
        "case,metric,unit,value,n\nhello{size=1}@plain,rate,MB/s,999,5\n"
    )
    done = place.seatrial("figures", "import", "vt.csv", "--as", "vt", "--by", "Example Corp.")
    assert done.code == 0
    return place


def test_each_page_marks_them(given: Workplace) -> None:
    with pages(given) as address:

        def read(path: str) -> str:
            with urlopen(f"{address}{path}", timeout=20) as answer:
                return str(answer.read().decode())

        def compared() -> dict[str, Any]:
            return dict(json.loads(read("/compare.json?before=vt&after=pt")))

        def is_judged(path: str) -> bool:
            return bool(json.loads(read(path))["state"] == "judged")

        until(lambda: "vt" in read("/trials"), "the trial")
        page = read("/trials/vt")
        assert "were given, by Example Corp." in page
        assert "Utilisation" not in page and "seatrial report vt" not in page
        assert "given" in read("/trials") and "given" in read("/runs?trial=vt")
        until(lambda: compared()["state"] == "judged", "the judgement")
        (one,) = compared()["records"]["comparisons"]
        assert sorted(row["verdict"] for row in one["rows"]) == ["given", "missing"]
        page = read("/compare?before=vt&after=pt")
        assert "given, not measured" in page and "vt" not in read("/machines")
        assert "999" not in read("/history?test=hello&metric=rate")
        assert "vt/" not in read("/failures")
        marked = 'title="given by others, not measured here">given</span>'
        for page, json_page in (
            ("/history?metric=rate&given=1", "/history.json?metric=rate&given=1"),
            ("/records?metric=rate", "/records.json?metric=rate"),
            ("/scaling?trial=pt+vt&x=size", "/scaling.json?trial=pt+vt&x=size"),
            ("/best?trial=pt+vt&over=machine", "/best.json?trial=pt+vt&over=machine"),
            ("/best?trial=pt+vt&best_of=nodes", "/best.json?trial=pt+vt&best_of=nodes"),
        ):
            until(partial(is_judged, json_page), json_page)
            shown = read(page)
            assert marked in shown and "999" in shown and "Example Corp." in shown, page
        assert "1 figure is given by others" in read("/history?metric=rate")
