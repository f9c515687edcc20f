"""Runs and Failures as CSV: the rows of the page by the same filters, safe in a spreadsheet."""

from __future__ import annotations

import csv
import io
import json

import pytest
from msgspec import Struct

from seatrial.show.web.render import as_csv

from .served import Served


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text, newline="")))


@pytest.mark.parametrize("page", ["runs", "failures"])
def test_a_list_as_csv_has_the_rows_of_its_page(harbour: Served, page: str) -> None:
    query = "?trial=weekly&verdict=failed"
    status, text = harbour.get(f"/{page}.csv{query}")
    assert status == 200
    found = rows_of(text)
    shown = json.loads(harbour.get(f"/{page}.json{query}")[1])[page]
    assert [row["run_id"] for row in found] == [row["run_id"] for row in shown] == ["broken1"]
    assert found[0]["case_name"] == shown[0]["case_name"]
    assert found[0]["rehearsed"] == "False"
    assert f'href="/{page}.csv{query}"' in harbour.get(f"/{page}{query}")[1].replace("&amp;", "&")


def test_failures_tell_the_event_in_columns_of_its_own(harbour: Served) -> None:
    (one, *_) = rows_of(harbour.get("/failures.csv?trial=weekly&column=time")[1])
    assert {"event_event", "event_value", "event_text", "time", "reason"} <= set(one)
    assert one["time"].endswith("Z")


def test_a_list_of_nothing_has_its_heading(harbour: Served) -> None:
    (heading,) = harbour.get("/runs.csv?trial=weekly&match=nothing-like-it")[1].splitlines()
    assert heading.startswith("verdict,first_verdict,trial,machine,run_id")


def test_what_is_refused_is_told(harbour: Served) -> None:
    status, text = harbour.get("/runs.csv?machin=x")
    assert (status, "did you mean 'machine'?" in json.loads(text)["error"]) == (400, True)
    assert harbour.get("/trials.csv")[0] == 404


class Odd(Struct):
    text: str
    value: float


class Table(Struct):
    rows: list[Odd]


@pytest.mark.parametrize(
    ("text", "kept"),
    [
        ("=HYPERLINK(1)", "'=HYPERLINK(1)"),
        ("+1", "'+1"),
        ("-1+1", "'-1+1"),
        ("@SUM(A1)", "'@SUM(A1)"),
        ("  =1", "'  =1"),
        ("\t=1", "'\t=1"),
        ("\uff1d1", "'\uff1d1"),
        ("\rx", "'\rx"),
        ("a\0=b", "a=b"),
        ("", ""),
        ('stream, 2=two\n"x"', 'stream, 2=two\n"x"'),
    ],
)
def test_what_somebody_wrote_is_no_formula(text: str, kept: str) -> None:
    (row,) = rows_of(as_csv(Table([Odd(text, -1.5)]), "rows").decode())
    assert row == {"text": kept, "value": "-1.5"}
