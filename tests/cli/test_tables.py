"""Tables on a narrow terminal: never wider than it, readable as long as there is room."""

from __future__ import annotations

import pytest
from click import unstyle
from hypothesis import given
from hypothesis import strategies as st

from seatrial.cli import run_driver
from seatrial.cli.tables import TextTable, labelled
from seatrial.show.text import fold, parts_of_cases

CASE = "sort{size=1000000}@gcc-openmpi"
SUMMARY = [
    [CASE, "sort_time", "0.1441 s", "101.5 %", "5", "", "0.1383 s", "2 of 5 wrong answer"],
    [
        CASE,
        "bandwidth",
        "912.8 Msteps/s",
        "3.9 %",
        "5",
        "98.8 %",
        "913.2 Msteps/s",
        "3 of 5 performance",
    ],
]


@pytest.fixture(autouse=True)
def screen(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 80)


def rows_of(text: str) -> list[str]:
    return text.splitlines()[1:]


def test_a_summary_fits_and_breaks_no_number() -> None:
    text = unstyle(str(TextTable(run_driver.COLUMNS, SUMMARY)))
    assert all(len(line) <= 80 for line in text.splitlines()), text
    words = text.split()
    for whole in ("sort{", "size=1000000}", "gcc-", "openmpi", "Msteps/s", "912.8", "performance"):
        assert any(whole in word for word in words), (whole, text)


def test_a_unit_is_not_broken() -> None:
    assert fold("median 461 Msteps/s of 5 runs", 18) == ["median 461 ", "Msteps/s of 5 runs"]
    assert fold("after 1 m 50 s of 5 %", 8) == ["after ", "1 m 50 s ", "of 5 %"]
    assert fold("stream/copy/long", 12) == ["stream/copy/", "long"]
    assert fold("until: none -> 2027", 13) == ["until: none ", "-> 2027"]
    assert fold("judge it --again", 11) == ["judge it ", "--again"]
    assert fold("a well-known-name", 8) == ["a well-", "known-", "name"]


def test_white_space_at_the_end_of_a_line_needs_no_room() -> None:
    assert fold("one two six", 7) == ["one two ", "six"]
    text = str(TextTable("a~ | b", [["one two six " * 9, "x" * 68]]))
    assert all(len(line) <= 80 for line in text.splitlines())


def test_what_is_spared_is_said() -> None:
    columns = "name | sd?2 | max>?1 | n"
    text = unstyle(str(TextTable(columns, [["x" * 60, "1" * 9, "2" * 9, 3]])))
    assert text.splitlines()[-1] == "(too narrow to show sd)"
    assert "max" in text.splitlines()[0]
    assert "narrow" not in str(TextTable(columns, [["x", 1, 2.5, None]]))


NBODY = "nbody{{n={},steps=100,ranks={}}}@gcc-{}"
COMPARED = [
    [verdict, NBODY.format(n, ranks, flags), "rate", 150.3, "Msteps/s", "-51.7..-49.9", "6,6"]
    for verdict, n, ranks, flags in [
        ("worse", 1500, 1, "O2"),
        ("same", 800, 2, "O2"),
        ("worse", 800, 1, "O3"),
    ]
]
COLUMNS = "verdict~ | case~ | metric~ | A> | unit~ | 95 %> | n"


def test_what_all_rows_share_is_said_once_where_there_is_no_room() -> None:
    head, titles, *rows = unstyle(str(TextTable(COLUMNS, COMPARED))).splitlines()
    assert head == "all rows: nbody{steps=100}"
    assert titles.split() == ["verdict", "case", "metric", "A", "unit", "95", "%", "n"]
    cases = [row.split()[1] for row in rows]
    assert cases == ["n=1500,ranks=1@gcc-O2", "n=800,ranks=2@gcc-O2", "n=800,ranks=1@gcc-O3"]


def test_columns_that_all_rows_share_go_as_far_as_there_is_no_room(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def head(width: int) -> str:
        monkeypatch.setattr("seatrial.show.text.screen_width", lambda: width)
        return unstyle(str(TextTable(COLUMNS, COMPARED))).splitlines()[0]

    assert head(65) == "all rows: nbody{steps=100}; 95 % -51.7..-49.9"
    assert head(52) == "all rows: nbody{steps=100}; unit Msteps/s; 95 %"
    assert head(0).startswith("verdict  case"), "in a pipe each row says all"
    assert head(120).startswith("verdict  case"), "there is room"
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 30)
    alone = unstyle(str(TextTable(COLUMNS, COMPARED[:1]))).splitlines()[0]
    assert "all rows" not in alone


def test_the_common_part_of_cases() -> None:
    assert parts_of_cases(["a{x=1}@g", "a{x=2}@g"]) == ("a@g", ["x=1", "x=2"])
    assert parts_of_cases(["a{x=1,y=2}@g", "b{y=2}@g"]) == ("y=2@g", ["a{x=1}", "b"])
    assert parts_of_cases(["a@g", "a@h"]) == ("a", ["@g", "@h"])
    commas = ["a{x=[1,2],n=4}", "a{x=[1,3],n=4}"]
    assert parts_of_cases(commas) == ("a{n=4}", ["x=[1,2]", "x=[1,3]"])
    assert parts_of_cases(["a{x=p,q,n=4}", "a{x=p,r,n=4}"]) == ("a{n=4}", ["x=p,q", "x=p,r"])
    nothing = [
        ["a@g", "a@g"],
        ["a", "b"],
        ["a@g", "a{x=1}@g"],
        ["a@g", "one of two"],
        ["3 %", "4 %"],
    ]
    for names in nothing:
        assert parts_of_cases(names) == ("", names)


@given(
    st.lists(st.tuples(*(st.text(min_size=1, max_size=n) for n in (120, 120, 50))), min_size=1),
    st.booleans(),
)
def test_no_table_is_wider_than_the_screen(rows: list[tuple[str, ...]], folds: bool) -> None:
    found = unstyle(str(TextTable(f"one~ | two> | three{'~' if folds else ''}", rows)))
    if found.isascii():
        assert all(len(line) <= 80 for line in found.split("\n"))


def test_sentences_beside_labels_are_folded_and_commands_are_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pairs = [
        ("advice", "one two three four five"),
        ("launcher", "srun --nodes=1 --ntasks=4"),
        ("why", ""),
    ]
    whole = "advice    one two three four five\nlauncher  srun --nodes=1 --ntasks=4"
    assert unstyle(labelled(pairs, ("advice",))) == whole, "there is room"
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 25)
    narrow = whole.replace("three four", "three\n          four")
    assert unstyle(labelled(pairs, ("advice",))) == narrow
    monkeypatch.setattr("seatrial.show.text.screen_width", lambda: 15)
    assert unstyle(labelled(pairs, ("advice",))) == whole, "there is no room"
