"""What a test asks of pages, malloc and stripes, by word or by parameter; and its faults."""

from __future__ import annotations

from typing import Any

import pytest

from tests.model.suite.helpers import Place

PARAMETERS = {"pages": ["thp", "2M"], "arenas": ["default", 1], "stripes": [-1, 4], "size": ["4M"]}


def test_all_of_them_follow_from_parameters(place: Place) -> None:
    run = {
        "pages": "{pages}",
        "malloc": {"MALLOC_ARENA_MAX": "arenas", "mmap_max": 0},
        "stripe": {"count": "stripes", "size": "{size}"},
    }
    place.test(parameters=PARAMETERS, run=run)
    settings = {case.name: case.settings for case in place.cases()}
    assert len(settings) == 8
    one = settings["t{pages=thp,arenas=default,stripes=-1,size=4M}@gcc"]
    assert (one.pages, one.malloc) == ("thp", {"mmap_max": 0})
    assert (one.stripe_count, one.stripe_size) == (-1, 4 << 20)
    other = settings["t{pages=2M,arenas=1,stripes=4,size=4M}@gcc"]
    assert (other.pages, other.malloc) == ("2M", {"arena_max": 1, "mmap_max": 0})
    assert other.stripe_count == 4


def test_words_and_what_is_not_asked_for(place: Place) -> None:
    place.test(run={"pages": "default", "malloc": {"arena_max": "default"}})
    place.test("u", run={"stripe": {"count": "default", "size": "1M"}})
    plain, striped = (case.settings for case in place.cases())
    assert (plain.pages, plain.malloc, plain.stripe_count, plain.stripe_size) == ("", {}, 0, 0)
    assert (striped.stripe_count, striped.stripe_size) == (0, 1 << 20)


@pytest.mark.parametrize(
    ("run", "key", "text"),
    [
        ({"pages": "2MB"}, "pages", "'2MB' is not one of default, 4k, thp, 2M, 1G"),
        ({"pages": "{sizes}"}, "pages", "sizes is not defined; did you mean 'size'?"),
        ({"pages": "{size}"}, "pages", "'4M' is not one of default, 4k, thp, 2M, 1G"),
        ({"malloc": {"MALLOC_MMAP_MAX": 0}}, "malloc.MALLOC_MMAP_MAX", "'MALLOC_MMAP_MAX_'?"),
        ({"malloc": {"hugetlb": 1}}, "malloc.hugetlb", "is what `pages` sets"),
        ({"malloc": {"mmap_max": "arena"}}, "malloc.mmap_max", "did you mean 'arenas'?"),
        ({"malloc": {"mmap_max": "size"}}, "malloc", "must be a whole number, or default"),
        ({"stripe": {"count": -2}}, "stripe.count", "above 0, -1 for all targets, or default"),
        ({"stripe": {"count": 1, "size": "3k"}}, "stripe.size", "no multiple of 64 KiB"),
        ({"stripe": {"count": 1, "size": "much"}}, "stripe.size", "is not a size"),
        ({"stripe": {"count": "size"}}, "stripe", "it must be a whole number above 0"),
        ({"directory": "./here"}, "directory", "is no absolute path, and no name"),
        ({"directory": "/scratch/../etc"}, "directory", "is no absolute path, and no name"),
        ({"directory": "{wheer}"}, "directory", "wheer is not defined"),
        ({"directory": "scratch"}, "directory", "no file system of m; there are none"),
    ],
)
def test_faults(place: Place, run: dict[str, Any], key: str, text: str) -> None:
    place.test(parameters=PARAMETERS, run=run)
    (fault,) = place.faults()
    assert f"run.{key}: " in fault
    assert text in fault


def test_a_variable_takes_the_value_of_a_parameter(place: Place) -> None:
    place.test(parameters=PARAMETERS, environment={"X": {"parameter": "size"}, "Y": "{0:4}:8:4"})
    assert len(place.cases()) == 8


@pytest.mark.parametrize("value", ["$size", "${size}", "{size}"])
def test_a_value_that_was_meant_as_a_parameter(place: Place, value: str) -> None:
    place.test(parameters=PARAMETERS, environment={"X": value})
    (fault,) = place.faults()
    expected = f"environment.X: {value!r} is only text; for the parameter write {{parameter: size}}"
    assert expected in fault


def test_a_variable_of_an_unknown_parameter(place: Place) -> None:
    place.test(parameters=PARAMETERS, environment={"X": {"parameter": "sise"}})
    (fault,) = place.faults()
    assert "environment.X.parameter: 'sise' is not a parameter; did you mean 'size'?" in fault


def test_a_variable_that_glibc_ignores(place: Place) -> None:
    place.test(environment={"MALLOC_MMAP_MAX": 0})
    (fault,) = place.faults()
    assert "environment.MALLOC_MMAP_MAX: " in fault
    assert "did you mean 'MALLOC_MMAP_MAX_'?" in fault
