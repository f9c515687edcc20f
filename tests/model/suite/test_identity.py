"""Which changes make another case or another build, and which do not."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import UsageError
from tests.model.suite.helpers import GCC, NODES, Place


def ids(place: Place, **asked: Any) -> set[str]:
    cases = place.cases(**asked)
    found = {case.id for case in cases}
    assert len(found) == len(cases)
    return found


BASE: dict[str, Any] = {"parameters": {"a": [1], "b": ["x"]}, "run": {"script": "true"}}


@pytest.mark.parametrize(
    "change",
    [
        {"parameters": {"b": ["x"], "a": [1]}},
        {"parameters": {"a": "1", "b": ["x"]}},
        {"parameters": {"a": 1, "b": ["x"]}},
        {"run": {"script": "false", "walltime": "1h", "exclusive": True}},
        {"run": {"nodes": "1 * 1", "tasks_per_node": 1, "threads_per_task": "1"}},
        {"repeat": 7},
        {"about": "another", "tags": ["t"], "environment": {"E": "1"}},
    ],
)
def test_what_does_not_change_a_case(place: Place, change: dict[str, Any]) -> None:
    place.test(**BASE)
    before = ids(place)
    place.test(**{**BASE, **change})
    assert ids(place) == before


def test_setting_a_parameter_to_the_value_it_has_does_not_change_a_case(place: Place) -> None:
    place.test(**BASE)
    assert ids(place, settings={"a": "1", "b": "x"}) == ids(place)


@pytest.mark.parametrize("change", [{"a": [2], "b": ["x"]}, {"a": [1], "b": ["X"]}, {"a": [1]}])
def test_a_value_changes_a_case(place: Place, change: dict[str, Any]) -> None:
    place.test(**BASE)
    before = ids(place)
    place.test(parameters=change)
    assert not ids(place) & before


def test_machine_toolchain_and_name_change_a_case(place: Place) -> None:
    place.test(**BASE)
    before = ids(place)
    place.machine(machine="other")
    other = ids(place)
    place.machine(toolchains={"gcc-2": GCC})
    chain = ids(place)
    place.test("u", **BASE)
    named = ids(place, keyword="u{")
    assert len(before | other | chain | named) == 4


def test_a_size_changes_a_case(place: Place) -> None:
    found = set()
    sizes = [{}, {"nodes": 4}, {"tasks": 4}, {"threads_per_task": 4}, {"nodes": 2, "tasks": 4}]
    for size in sizes:
        place.test(**BASE | {"run": size})
        found |= ids(place)
    assert len(found) == len(sizes)


def test_values_that_hold_what_separates_them(place: Place) -> None:
    place.test(parameters={"a": ["1", "1;b=2"], "b": ["2;b=3", "3"]})
    assert len(ids(place)) == 4


def test_identity_stays_as_it_is_for_ever(place: Place) -> None:
    """Series of years hang on it: this may only be changed with a way to carry them over."""
    place.test(parameters={"touch": ["all"], "threads": [2], "flag": [True]})
    assert ids(place) == {"jcnrpz63di6m75d5"}


# ---- builds -------------------------------------------------------------------------------

BUILD: dict[str, Any] = {
    "parameters": {"used": ["u"], "unused": ["n"]},
    "build": {"sources": ["src.c", "lib"], "script": "$CC -D$used src.c"},
}


@pytest.fixture
def built(place: Place) -> Place:
    place.test(**BUILD)
    folder = place.suite / "t"
    (folder / "src.c").write_text("int main(void) { return 0; }\n")
    (folder / "lib" / "deep").mkdir(parents=True)
    (folder / "lib" / "deep" / "a.h").write_text("1\n")
    (folder / "lib" / "b.h").write_text("2\n")
    (folder / "lib" / "link").symlink_to("b.h")
    (place.suite.parent / "shared.h").write_text("3\n")
    (folder / "lib" / "shared").symlink_to(place.suite.parent / "shared.h")
    return place


def keys(place: Place) -> list[str]:
    return [case.build for case in place.plan(with_builds=True).cases]


def _rewrite(**change: Any) -> Callable[[Place], object]:
    return lambda place: place.test(**{**BUILD, **change})


def _remachine(**change: Any) -> Callable[[Place], object]:
    return lambda place: place.machine(**change)


def _relink(place: Place) -> None:
    link = place.suite / "t/lib/link"
    link.unlink()
    link.symlink_to("deep")


def _move(place: Place) -> None:
    (place.suite / "t/lib/b.h").rename(place.suite / "t/lib/c.h")


CHANGING: dict[str, Callable[[Place], object]] = {
    "source": lambda place: (place.suite / "t/src.c").write_text("int main(void) { return 1; }\n"),
    "deep source": lambda place: (place.suite / "t/lib/deep/a.h").write_text("3\n"),
    "mode": lambda place: (place.suite / "t/src.c").chmod(0o755),
    "link": _relink,
    "linked source": lambda place: (place.suite.parent / "shared.h").write_text("4\n"),
    "name": _move,
    "new file": lambda place: (place.suite / "t/lib/new.h").write_text(""),
    "script": _rewrite(build={**BUILD["build"], "script": "$CC -D$used -O0 src.c"}),
    "value": _rewrite(parameters={"used": ["v"], "unused": ["n"]}),
    "listed": _rewrite(build={**BUILD["build"], "parameters": ["unused"]}),
    "environment": _rewrite(environment={"E": "1"}),
    "modules": _rewrite(modules=["hdf5"]),
    "compiler": _remachine(toolchains={"gcc": {**GCC, "cc": "gcc-14"}}),
    "version": _remachine(toolchains={"gcc": {**GCC, "version": "14"}}),
    "chain's name": _remachine(toolchains={"gcc2": GCC}),
    "machine's environment": _remachine(environment={"E": "1"}),
    "machine's modules": _remachine(modules=["base"]),
    "setup": _remachine(setup="source /etc/profile"),
    "machine's name": _remachine(machine="other"),
}

KEEPING: dict[str, Callable[[Place], object]] = {
    "nothing": lambda place: None,
    "run script": _rewrite(run={"script": "another", "tasks": 2}),
    "unused value": _rewrite(parameters={"used": ["u"], "unused": ["m"]}),
    "order": _rewrite(parameters={"unused": ["n"], "used": ["u"]}),
    "time of a source": lambda place: os.utime(place.suite / "t/src.c", (1, 1)),
    "another file": lambda place: (place.suite / "t/notes.txt").write_text("x"),
    "metrics": _rewrite(metrics={"m": {"find": "(x)", "unit": "s", "better": "lower"}}),
    "launcher": _remachine(toolchains={"gcc": {**GCC, "launcher": {"kind": "mpirun"}}}),
    "nodes": _remachine(nodes=[{**NODES[0], "cores": 16}]),
    "about": _remachine(about="another"),
}


@pytest.mark.parametrize("what", CHANGING)
def test_each_input_changes_the_key(built: Place, what: str) -> None:
    before = keys(built)
    CHANGING[what](built)
    after = keys(built)
    assert len(before) == len(after) == 1
    assert before != after


@pytest.mark.parametrize("what", KEEPING)
def test_what_a_build_does_not_see_does_not_change_the_key(built: Place, what: str) -> None:
    before = keys(built)
    KEEPING[what](built)
    assert keys(built) == before
    assert len(before) == 1
    assert before[0]


def test_cases_that_differ_in_what_the_build_does_not_use_share_it(built: Place) -> None:
    built.test(**{**BUILD, "parameters": {"used": [1, True], "unused": [1, 2, 3]}})
    assert len(keys(built)) == 6
    assert len(set(keys(built))) == 2  # 1 and true are not the same


def test_a_source_that_is_no_file_is_told(built: Place) -> None:
    os.mkfifo(built.suite / "t/lib/pipe")
    with pytest.raises(UsageError, match="lib/pipe: cannot be read: it is a FIFO"):
        keys(built)


def test_a_source_with_any_name(built: Place) -> None:
    before = keys(built)
    (Path(os.fsdecode(bytes(built.suite / "t/lib") + b"/\xff\n.h"))).write_text("")
    assert keys(built) != before
