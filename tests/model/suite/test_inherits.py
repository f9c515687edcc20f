"""Tests that take over the keys of others."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.model.test import Input, Test
from tests.model.suite.helpers import Place

PARENT: dict[str, Any] = {
    "about": "the parent",
    "tags": ["a", "b"],
    "parameters": {"n": [1, 2], "m": "2 * n"},
    "environment": {"E": "parent", "F": "kept"},
    "run": {"script": "parent", "tasks": "n", "walltime": "1h"},
}


@pytest.fixture
def parent(place: Place) -> Place:
    place.test("base", **PARENT)
    return place


def child(place: Place, text: str) -> Test:
    place.write("child", f"inherits: base\n{text}")
    return place.plan().tests["child"]


def test_mappings_are_merged_deeply_and_all_else_is_replaced(parent: Place) -> None:
    test = child(
        parent, "tags: [c]\nenvironment: {E: child}\nrun: {script: child}\nparameters: {n: [3]}\n"
    )
    assert (test.about, test.tags, test.run.script) == ("the parent", ["c"], "child")
    assert (test.run.tasks, test.run.walltime) == ("n", "1h")
    assert test.environment == {"E": "child", "F": "kept"}
    assert test.parameters == {"n": [3], "m": "2 * n"}
    assert parent.bound(keyword="child") == [(3, 6)]
    assert parent.plan().tests["base"].run.script == "parent"


def test_an_empty_value_takes_a_key_away(parent: Place) -> None:
    test = child(parent, "about:\nparameters: {m: }\nrun: {tasks: , tasks_per_node: 2}\n")
    assert (test.about, test.parameters) == ("", {"n": [1, 2]})
    assert (test.run.tasks, test.run.tasks_per_node) == (None, 2)


def test_what_is_taken_away_but_still_used_is_told_where_it_is_used(parent: Place) -> None:
    parent.write("child", "inherits: base\nparameters: {n: }\n")
    faults = parent.faults()
    assert [fault.split(": ")[:2] for fault in faults] == [
        ["suite/base/test.yaml:4", "run.tasks"],
        ["suite/base/test.yaml:14", "parameters.m"],
    ]


def test_of_three(parent: Place) -> None:
    parent.write("child", "inherits: base\nparameters: {n: [3]}\n")
    parent.write("grandchild", "inherits: child\nabout: the last\n")
    test = parent.plan().tests["grandchild"]
    assert (test.about, test.parameters["n"], test.inherits) == ("the last", [3], None)


def test_paths_are_relative_to_the_file_that_names_them(place: Place) -> None:
    place.test(
        "deep/base",
        build={"script": "make", "sources": ["a.c", "../shared"]},
        inputs=["in", {"source": "in", "name": "copy", "how": "copy"}],
    )
    place.write("child", "inherits: deep/base\n")
    place.write("other", "inherits: deep/base\nbuild: {sources: [b.c]}\n")
    for name in ("deep/base/a.c", "deep/base/in", "other/b.c", "deep/shared/x.h"):
        (place.suite / name).parent.mkdir(exist_ok=True)
        (place.suite / name).touch()
    tests = place.plan().tests
    build, root = tests["child"].build, place.suite
    assert build is not None
    assert build.sources == [f"{root}/deep/base/a.c", f"{root}/deep/shared"]
    own = tests["other"].build
    assert own is not None
    assert (own.script, own.sources) == ("make", [f"{root}/other/b.c"])
    source = f"{root}/deep/base/in"
    assert tests["child"].inputs == [
        Input(source=source), Input(source=source, name="copy", how="copy")
    ]  # fmt: skip
    assert tests["child"].folder == f"{root}/child"


def test_a_function_for_figures_in_the_own_folder_stays_relative_to_it(place: Place) -> None:
    place.test(metrics={"python": "figures.py:read"})
    (place.suite / "t/figures.py").write_text("def read(folder): return {}\n")
    assert place.plan().tests["t"].metrics == {"python": "figures.py:read"}


def test_a_missing_source_of_the_parent_is_told_in_the_parents_file_once(place: Place) -> None:
    place.test("base", build={"script": "make", "sources": ["no.c"]})
    place.write("child", "inherits: base\n")
    assert place.fault() == (
        "suite/base/test.yaml:7: build.sources[0]: suite/base/no.c does not exist"
    )


@pytest.mark.parametrize(
    ("chain", "circles"),
    [
        ({"a": "a"}, ["a -> a"]),
        ({"a": "b", "b": "a"}, ["b -> a -> b", "a -> b -> a"]),
        ({"a": "b", "b": "b"}, ["a -> b -> b", "b -> b"]),
    ],
)
def test_circles(place: Place, chain: dict[str, str], circles: list[str]) -> None:
    for name, parent_name in chain.items():
        place.test(name, inherits=parent_name)
    told = [fault.partition(": inherits: goes round in a circle: ") for fault in place.faults()]
    assert [circle for _, _, circle in told] == circles


@pytest.mark.parametrize(
    ("written", "fault"),
    [
        ("bse", "no test 'bse'; did you mean 'base'?"),
        ("other", "no test 'other'; name a test that is here"),
        ("", "must be the name of a test of this suite"),
        ("[base]", "must be the name of a test of this suite"),
    ],
)
def test_a_parent_that_is_not_there(parent: Place, written: str, fault: str) -> None:
    parent.write("child", f"about: x\ninherits: {written}\n")
    assert parent.fault() == f"suite/child/test.yaml:2: inherits: {fault}"


def test_a_parent_that_cannot_be_read_is_told_alone(place: Place) -> None:
    place.write("base", "a: [")
    place.write("child", "inherits: base\n")
    assert place.fault().startswith("suite/base/test.yaml:")
