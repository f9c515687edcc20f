"""Parameters: lists, ranges, expressions, groups, conditions, and --set."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.model.test import Case
from tests.model.suite.helpers import Place


@pytest.mark.parametrize(
    ("written", "values"),
    [
        ([1, "two", 3.5, True], [1, "two", 3.5, True]),
        (7, [7]),
        ("range(2, 5)", [2, 3, 4]),
        ("range(0, 10, 4)", [0, 4, 8]),
        ("powers_of_two(node.cores)", [1, 2, 4, 8]),
        ("powers_of_two(3, 20)", [4, 8, 16]),
        ("node.cores // 2 + 1", [5]),
        ("node.cores / 2", [4]),
        ("node.memory_gib", [16.0]),
        ("machine.nodes * node.numa_domains", [8]),
        ("[1, node.cores]", [1, 8]),
        ("[8, node.cores, 8.0]", [8, 8.0]),  # each value once, as it is shown
        ("'word' if node.cores > 4 else 'other'", ["word"]),
        ("machine.name", ["m"]),
        ("toolchain.name", ["gcc"]),
    ],
)
def test_values(place: Place, written: Any, values: list[Any]) -> None:
    place.test(parameters={"p": written})
    bound = [value for (value,) in place.bound()]
    assert [(type(v), v) for v in bound] == [(type(v), v) for v in values]


def test_the_full_product_in_the_order_that_is_written(place: Place) -> None:
    place.test(parameters={"b": ["x", "y"], "a": "range(0, 2)"})
    assert place.bound() == [("x", 0), ("x", 1), ("y", 0), ("y", 1)]


def test_an_expression_may_use_the_parameters_above_it(place: Place) -> None:
    place.test(parameters={"a": [1, 2], "b": "range(0, a)", "c": "a + b"})
    assert place.bound() == [(1, 0, 1), (2, 0, 2), (2, 1, 3)]


def test_groups_advance_together(place: Place) -> None:
    parameters = {"n": [1, 1, 2], "t": "range(4, 7)", "u": ["a", "b"]}
    place.test(parameters=parameters, zip=[["n", "t"]])
    assert place.bound() == [
        (1, 4, "a"), (1, 4, "b"), (1, 5, "a"), (1, 5, "b"), (2, 6, "a"), (2, 6, "b"),
    ]  # fmt: skip


def test_a_group_of_unequal_lengths_is_a_fault_of_the_group(place: Place) -> None:
    path = place.test(parameters={"a": [1, 2], "b": "range(0, 3)"}, zip=[["a", "b"]])
    line = path.read_text().splitlines().index("zip:") + 1
    assert place.fault() == (
        f"suite/t/test.yaml:{line}: zip: zipped parameters need equally many values: "
        "a has 2, b has 3"
    )


def test_a_group_whose_member_depends_on_what_is_bound_with_it_or_later(place: Place) -> None:
    place.test(parameters={"a": [1, 2], "b": [3, 4], "c": "2 * b"}, zip=[["a", "c"]])
    assert place.fault().endswith(
        "zip[0]: c depends on b, which is bound with it or after it; "
        "a parameter that depends needs no zip"
    )


def test_a_group_may_depend_on_what_is_bound_before_it(place: Place) -> None:
    parameters = {"n": [2, 3], "a": "range(0, n)", "b": "range(n, 2 * n)"}
    place.test(parameters=parameters, zip=[["a", "b"]])
    assert place.bound() == [(2, 0, 2), (2, 1, 3), (3, 0, 3), (3, 1, 4), (3, 2, 5)]


def test_excluded_conditions(place: Place) -> None:
    place.test(
        parameters={"a": [1, 2, 3], "b": [1, 2]},
        exclude=["a * b > node.cores / 2", "a == 1 and b in [2, 5]"],
    )
    assert place.bound() == [(1, 1), (2, 1), (2, 2), (3, 1)]


def test_a_condition_that_cannot_be_evaluated_is_told_at_its_line(place: Place) -> None:
    path = place.test(parameters={"a": ["x"]}, exclude=["1 == 2", "a > 1"])
    line = path.read_text().splitlines().index("- a > 1") + 1
    fault = place.fault()
    assert fault.startswith(f"suite/t/test.yaml:{line}: exclude[1]: 'a > 1' has no value: ")


@pytest.mark.parametrize(
    ("given", "values"),
    [
        ("5", [5]),
        ("5,7", [5, 7]),
        ("5, 7 ,5", [5, 7]),
        ("0x10", [16]),
        ("1e3", [1000.0]),
        ("true", [True]),
        ("no", ["no"]),
        ("null", ["null"]),
        ("2*node.cores", ["2*node.cores"]),  # literal, though it looks like an expression
        ("a=b", ["a=b"]),
        ("naïve ☃", ["naïve ☃"]),
    ],
)
def test_set_replaces_values_literally(place: Place, given: str, values: list[Any]) -> None:
    place.test(parameters={"p": "range(0, 3)"})
    bound = [value for (value,) in place.bound(settings={"p": given})]
    assert [(type(v), v) for v in bound] == [(type(v), v) for v in values]


def test_set_reaches_what_depends_and_only_the_tests_that_have_it(place: Place) -> None:
    place.test("one", parameters={"a": [1], "b": "10 * a"})
    place.test("two", parameters={"c": [1]})
    assert place.names(settings={"a": "3"}) == ["one{a=3,b=30}@gcc", "two{c=1}@gcc"]


@pytest.mark.parametrize("given", ["", "1,,2", "1,", " ", "a\nb", "a\0b"])
def test_set_refuses_what_no_parameter_can_be(place: Place, given: str) -> None:
    place.test(parameters={"p": [1]})
    with pytest.raises(UsageError, match="--set p="):
        place.plan(settings={"p": given})


def test_set_of_an_unknown_parameter_names_those_there_are(place: Place) -> None:
    place.test(parameters={"p": [1], "q": [1]})
    with pytest.raises(UsageError, match=r"^--set r: no test has this parameter; there are p, q$"):
        place.plan(settings={"r": "1"})


def test_a_set_text_where_a_number_is_needed_is_told_at_the_key_that_needs_it(place: Place) -> None:
    path = place.test(parameters={"p": [1]}, run={"nodes": "p"})
    line = path.read_text().splitlines().index("  nodes: p") + 1
    assert place.fault(settings={"p": "2*p"}) == (
        f"suite/t/test.yaml:{line}: run.nodes: 'p' gives '2*p': it must be a whole number"
    )


@pytest.mark.parametrize(
    "value", ["a b", "it's", 'say "hi"', "naïve ☃", "$(rm -rf /)", "a;b=2", "-x", "[1]", "#no"]
)
def test_any_one_line_text_is_a_value(place: Place, value: str) -> None:
    place.test(parameters={"p": [value]})
    (case,) = place.cases()
    assert case.parameters == {"p": value}
    assert case.name == f"t{{p={value}}}@gcc"


@pytest.mark.parametrize("value", ["['a\\nb']", "[[1, 2], [3]]", "'\\0'"])
def test_an_expression_must_give_one_line_values(place: Place, value: str) -> None:
    place.test(parameters={"p": value})
    assert ": parameters.p: " in place.fault()


def test_a_million_cases_are_refused_at_once(place: Place) -> None:
    place.test(parameters=dict.fromkeys("abcd", "range(0, 1000)"))
    assert "parameters: the parameters give more than 1000000 cases" in place.fault()


def test_parameters_without_an_end_and_without_a_case(place: Place) -> None:
    wide = "range(0, 50000)"
    place.test(parameters={"a": wide, "b": wide, "c": wide, "d": "range(0, 0 * a)"})
    assert "more than 1000000 cases" in place.fault()


# ---- defaults -------------------------------------------------------------------------------


def turned(place: Place, **settings: str) -> list[Case]:
    return place.cases(settings=settings, with_builds=True)


def test_a_default_changes_neither_names_nor_identities(place: Place) -> None:
    plain = {"nodes": 1, "tasks_per_node": 2, "script": "echo"}
    place.test(parameters={"size": [1, 2]}, run=plain)
    before = [(case.id, case.name) for case in place.cases()]
    place.test(
        parameters={"size": [1, 2]},
        defaults={"ranks": 2, "block": "1M"},
        run=plain | {"tasks_per_node": "ranks", "script": "echo $block"},
    )
    assert [(case.id, case.name) for case in place.cases()] == before
    same = turned(place, ranks="2", block="1M")
    assert [(case.id, case.name) for case in same] == before


def test_a_default_is_replaced_as_a_parameter_is(place: Place) -> None:
    place.test(
        parameters={"size": "[ranks, 9]"},
        defaults={"ranks": 2},
        exclude=["ranks == 4 and size == 9"],
        run={"tasks_per_node": "ranks", "script": "echo"},
    )
    found = [(case.name, case.tasks) for case in turned(place, ranks="2,4")]
    assert found == [
        ("t{size=2}@gcc", 2),
        ("t{size=9}@gcc", 2),
        ("t{size=4,ranks=4}@gcc", 4),
    ]


def test_a_default_reaches_builds_and_words_that_choose(place: Place) -> None:
    place.test(
        defaults={"edge": 4, "other": 1},
        build={"script": "cc -DEDGE=$edge"},
        run={"script": "./a"},
    )
    keys = {case.build for value in ("4", "8") for case in turned(place, edge=value)}
    assert len(keys) == 2
    assert len({case.build for value in "12" for case in turned(place, other=value)}) == 1
    assert len(place.cases(keyword="edge=4")) == 1
    assert place.cases(keyword="edge=8") == []


@pytest.mark.parametrize(
    ("keys", "fault"),
    [
        ({"parameters": {"a": [1]}, "defaults": {"a": 2}}, "defaults.a: is in `parameters`, too"),
        ({"defaults": {"HOME": 2}}, "defaults.HOME: scripts use this name for something else"),
        ({"defaults": {"a": "x\ny"}}, "must be one line of text"),
        ({"parameters": {"b": [1]}, "defaults": {"a": 1}, "zip": [["b", "a"]]}, "'a' is not a"),
        ({"defaults": {"a": [1, 2]}}, "defaults.a"),
    ],
)
def test_faults_of_defaults(place: Place, keys: dict[str, Any], fault: str) -> None:
    place.test(**keys)
    assert fault in place.fault()
