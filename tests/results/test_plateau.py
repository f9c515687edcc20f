"""The plateau about the best setting, over one parameter or two."""

from __future__ import annotations

from seatrial.results.best import Key, plateau_of


def test_a_gap_ends_it() -> None:
    ratios: dict[Key, float | None] = {
        ("1",): 0.99,
        ("2",): 0.7,
        ("4",): 1.0,
        ("8",): 0.96,
        ("16",): 0.5,
    }
    assert plateau_of(ratios, ("4",), told={*ratios} - {("4",)}) == {("4",), ("8",)}


def test_what_is_not_told_to_be_worse_belongs_to_it() -> None:
    ratios: dict[Key, float | None] = {("1",): 0.9, ("2",): 1.0}
    assert plateau_of(ratios, ("2",), told=set()) == {("1",), ("2",)}
    assert plateau_of(ratios, ("2",), told={("1",)}) == {("2",)}


def test_numbers_have_an_order_and_words_have_none() -> None:
    ratios: dict[Key, float | None] = {
        ("a", "1"): 1.0,
        ("b", "10"): 0.99,
        ("a", "10"): 0.5,
        ("c", "1"): 0.98,
    }
    told = {*ratios}
    assert plateau_of(ratios, ("a", "1"), told) == {("a", "1"), ("c", "1")}
    ratios["a", "2"] = 0.97
    ratios["b", "2"] = None
    found = plateau_of({k: r for k, r in ratios.items() if k != ("a", "10")}, ("a", "1"), told)
    assert found == {("a", "1"), ("c", "1"), ("a", "2")}


def test_a_setting_that_was_not_measured_is_stepped_over() -> None:
    ratios: dict[Key, float | None] = {("1",): 1.0, ("2",): None, ("4",): 0.99}
    assert plateau_of(ratios, ("1",), told={("4",)}) == {("1",), ("4",)}
