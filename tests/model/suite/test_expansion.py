"""Cases: their resources, toolchains, nodes, and what a machine cannot run."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.execute.prepare import notes_of, require_cases
from tests.model.suite.helpers import CLANG, GCC, Place


def resources(place: Place) -> list[tuple[int, int, int, int, float]]:
    return [
        (case.nodes, case.tasks, case.tasks_per_node, case.threads, case.walltime)
        for case in place.cases()
    ]


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({}, (1, 1, 1, 1, 600.0)),
        ({"nodes": 2, "tasks_per_node": 3, "threads_per_task": 2}, (2, 6, 3, 2, 600.0)),
        ({"nodes": 2, "tasks": 5}, (2, 5, 3, 1, 600.0)),
        ({"nodes": "p", "tasks_per_node": "node.cores / p"}, (2, 8, 4, 1, 600.0)),
        ({"nodes": 2.0, "tasks": "2 * p"}, (2, 4, 2, 1, 600.0)),
        ({"walltime": 90}, (1, 1, 1, 1, 90.0)),
        ({"walltime": 0.5}, (1, 1, 1, 1, 0.5)),
        ({"walltime": "1h30m"}, (1, 1, 1, 1, 5400.0)),
        ({"walltime": "10:00"}, (1, 1, 1, 1, 600.0)),
        ({"walltime": "60 * p"}, (1, 1, 1, 1, 120.0)),
        ({"walltime": "10 * 60"}, (1, 1, 1, 1, 600.0)),
        ({"walltime": "p"}, (1, 1, 1, 1, 2.0)),
        ({"walltime": "'5m' if p == 2 else 1"}, (1, 1, 1, 1, 300.0)),
    ],
)
def test_resources(place: Place, run: dict[str, Any], expected: tuple[float, ...]) -> None:
    place.test(parameters={"p": [2]}, run=run)
    assert resources(place) == [expected]


@pytest.mark.parametrize(
    ("run", "fault"),
    [
        ({"nodes": "p - 2"}, "run.nodes: 'p - 2' gives 0: it must be at least 1"),
        ({"tasks": "p / 4"}, "run.tasks: 'p / 4' gives 0.5: it must be a whole number"),
        ({"tasks": "[1, 2]"}, "run.tasks: '[1, 2]' gives [1, 2]: it must be a whole number"),
        ({"threads_per_task": "p > 1"}, "run.threads_per_task: 'p > 1' gives True: it must be "),
        ({"tasks_per_node": "1 / (p - 2)"}, "run.tasks_per_node: '1 / (p - 2)' divides by zero"),
        ({"walltime": "-60 * p"}, "run.walltime: '-60 * p' gives -120: -120 is not a duration "),
        ({"walltime": "p > 1"}, "run.walltime: 'p > 1' gives True: True is not a duration; "),
        ({"walltime": "[60] if p > 1 else 1"}, "gives [60]: "),
    ],
)
def test_an_expression_with_an_unfit_value_is_told_at_its_line(
    place: Place, run: dict[str, Any], fault: str
) -> None:
    path = place.test(parameters={"p": [2]}, run=run)
    (key,) = run
    line = next(
        i for i, t in enumerate(path.read_text().splitlines(), 1) if t.startswith(f"  {key}:")
    )
    text = place.fault()
    assert text.startswith(f"suite/t/test.yaml:{line}: run.{key}: ")
    assert fault in text


def test_a_case_may_have_as_many_nodes_as_there_are(place: Place) -> None:
    place.test(parameters={"p": [4, 5]}, run={"nodes": "p"})
    assert [case.nodes for case in place.cases()] == [4]


# ---- toolchains ---------------------------------------------------------------------------


def test_a_package_needs_a_toolchain_where_a_script_compiles_beside_it(place: Place) -> None:
    place.machine(toolchains={"gcc": GCC, "clang": CLANG})
    place.test("alone", build={"spack": "hpl@2.3"})
    place.test("beside", build={"spack": "hpl@2.3", "script": "$CC main.c"})
    assert place.names() == ["alone@gcc", "beside@gcc", "beside@clang"]


@pytest.fixture
def two_chains(place: Place) -> Place:
    place.machine(toolchains={"gcc-13": GCC, "clang-16": CLANG, "gcc-12": GCC})
    return place


def chains(place: Place, **asked: Any) -> list[str]:
    return [case.toolchain for case in place.cases(**asked)]


def test_a_test_that_is_built_runs_on_every_toolchain(two_chains: Place) -> None:
    two_chains.test(build={"script": "true"})
    assert chains(two_chains) == ["gcc-13", "clang-16", "gcc-12"]


def test_a_test_without_a_build_runs_on_the_first_alone(two_chains: Place) -> None:
    two_chains.test()
    assert chains(two_chains) == ["gcc-13"]
    assert chains(two_chains, toolchains=["clang*"]) == ["clang-16"]


def test_a_test_may_restrict_them(two_chains: Place) -> None:
    two_chains.test(toolchains=["gcc*"])
    assert chains(two_chains) == ["gcc-13", "gcc-12"]
    assert chains(two_chains, toolchains=["default"]) == ["gcc-13"]
    plan = two_chains.plan(toolchains=["clang-16"])
    assert (plan.cases, plan.skipped) == ([], [("t", "needs a toolchain gcc*")])


def test_an_unknown_toolchain_is_told_with_those_there_are(two_chains: Place) -> None:
    two_chains.test()
    with pytest.raises(UsageError, match="--toolchain icc: m has gcc-13, clang-16, gcc-12"):
        two_chains.plan(toolchains=["icc"])


def test_a_machine_without_toolchains(place: Place) -> None:
    place.machine(toolchains={})
    place.test("built", build={"script": "true"})
    place.test("plain")
    plan = place.plan()
    assert [case.name for case in plan.cases] == ["plain"]
    reason = (
        "needs a toolchain to be built; the machine has none: write `toolchains: {gcc: {cc: gcc}}`"
    )
    assert plan.skipped == [("built", reason)]


# ---- nodes --------------------------------------------------------------------------------

MIXED = [
    {"names": "c[1-2]", "cores": 64, "features": ["cpu"]},
    {"names": "g[1-3]", "cores": 16, "gpus": 4, "features": ["gpu", "new"]},
]


def test_facts_are_those_of_the_nodes_that_have_the_features(place: Place) -> None:
    place.machine(nodes=MIXED)
    place.test("any", run={"tasks": "node.cores"})
    place.test("gpu", run={"tasks": "node.gpus"}, requires={"features": ["gpu"]})
    assert [(case.test, case.tasks) for case in place.cases()] == [("any", 64), ("gpu", 4)]


def test_each_node_gives_one_pinned_case_for_every_node_by_its_own_facts(place: Place) -> None:
    place.machine(nodes=MIXED)
    place.test(run={"scope": "each_node", "tasks_per_node": "node.cores"})
    cases = place.cases()
    assert [(case.node, case.nodes, case.tasks) for case in cases] == [
        ("c1", 1, 64), ("c2", 1, 64), ("g1", 1, 16), ("g2", 1, 16), ("g3", 1, 16),
    ]  # fmt: skip
    assert len({case.id for case in cases}) == 5
    assert cases[0].name == "t@gcc%c1"


def test_each_node_of_those_with_a_feature(place: Place) -> None:
    place.machine(nodes=MIXED)
    place.test(run={"scope": "each_node"}, requires={"features": ["new"]}, parameters={"p": [1, 2]})
    assert [(case.node, case.parameters["p"]) for case in place.cases()] == [
        ("g1", 1), ("g2", 1), ("g3", 1), ("g1", 2), ("g2", 2), ("g3", 2),
    ]  # fmt: skip


def test_each_node_of_five_thousand(place: Place) -> None:
    place.machine(nodes=[{"names": "n[0001-5000]", "cores": 2}])
    place.test(run={"scope": "each_node"})
    cases = place.cases()
    assert len({case.id for case in cases}) == len({case.node for case in cases}) == 5000
    assert (cases[0].node, cases[-1].node) == ("n0001", "n5000")


@pytest.mark.parametrize(
    ("requires", "why"),
    [
        ({"nodes": 5}, "needs 5 nodes; there are 4"),
        ({"features": ["gpu", "new"]}, "needs 1 nodes with gpu, new; there are 0"),
        ({"commands": ["sh", "no-such-command"]}, "needs the command no-such-command, which is "),
    ],
)
def test_what_a_machine_has_not_is_a_reason_not_a_fault(
    place: Place, requires: dict[str, Any], why: str
) -> None:
    place.test(requires=requires)
    plan = place.plan()
    ((what, reason),) = plan.skipped
    assert (what, plan.cases) == ("t", [])
    assert reason.startswith(why)
    with pytest.raises(UsageError, match="no case can run on this machine"):
        require_cases(plan)


def test_a_case_for_more_nodes_than_there_are_is_left_out_alone(place: Place) -> None:
    place.test(parameters={"n": [2, 8]}, run={"nodes": "n"})
    plan = place.plan()
    assert [case.name for case in plan.cases] == ["t{n=2}@gcc"]
    assert plan.skipped == [("t{n=8}@gcc", "needs 8 nodes; there are 4")]


# ---- selection ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("keyword", "count"),
    [
        ("stream", 4),
        ("STREAM", 4),
        ("memory", 4),  # a tag
        ("mem", 0),  # a tag is matched as a whole
        ("touch=all", 2),
        ("touch=al", 0),
        ("stream and not touch=one", 2),
        ("touch=one and threads=2 or io", 2),
        ("not (stream or io)", 0),
        ("not not io", 1),
        ("@gcc", 5),
        ('flags="-O3 -g"', 1),
        ("flags='-O3 -g' and io", 1),
        ('"O3 -g"', 1),
        ("tream", 0),
        ("thread", 4),
        ("it's", 0),
        ("threads=2,", 0),
    ],
)
def test_keywords(place: Place, keyword: str, count: int) -> None:
    touch = {"touch": ["all", "one"], "threads": [1, 2]}
    place.test("stream", parameters=touch, tags=["memory"])
    place.test("io", parameters={"flags": ["-O3 -g"]})
    assert len(place.cases(keyword=keyword)) == count


@pytest.mark.parametrize(
    ("keyword", "names"),
    [
        ("pi", ["pi@gcc-openmpi"]),
        ("openmpi", ["pi@gcc-openmpi", "stream@gcc-openmpi"]),
        ("@gcc-open", ["pi@gcc-openmpi", "stream@gcc-openmpi"]),
        ("pi@gcc-openmpi", ["pi@gcc-openmpi"]),
        ("cc", []),
    ],
)
def test_a_word_is_not_looked_for_inside_of_the_words_of_a_toolchain(
    place: Place, keyword: str, names: list[str]
) -> None:
    place.machine(toolchains={"gcc-openmpi": {}})
    for name in ("pi", "stream"):
        place.test(name)
    assert [case.name for case in place.cases(keyword=keyword)] == names


@pytest.mark.parametrize(
    ("keyword", "why"),
    [
        ("and", "a word is missing"),
        ("a and", "a word is missing"),
        ("(a", r"a \) is missing"),
        ("a b", "nothing was expected at 'b'"),
        ("a)", r"nothing was expected at '\)'"),
        ("a (b)", r"nothing was expected at '\('"),
        ("not " * 60 + "a", "it is nested too deeply"),
        ("(" * 60, "it is nested too deeply"),
    ],
)
def test_a_keyword_that_is_none(place: Place, keyword: str, why: str) -> None:
    place.test()
    with pytest.raises(UsageError, match=f"^-k .*: {why}; write e.g. "):
        place.plan(keyword=keyword)


@pytest.mark.parametrize(
    ("keyword", "names"),
    [
        ("io", ["io@gcc", "io_read@gcc", "t-IO@gcc"]),
        ("IO", ["io@gcc", "io_read@gcc", "t-IO@gcc"]),
        ("read", ["io_read@gcc"]),
        ("congest", ["congestion@gcc"]),
        ("network", ["congestion@gcc"]),
        ("work", []),
    ],
)
def test_a_word_is_looked_for_where_a_word_of_the_name_begins(
    place: Place, keyword: str, names: list[str]
) -> None:
    for name in ("io", "io_read", "t-IO"):
        place.test(name)
    place.test("congestion", app="the network")
    assert [case.name for case in place.cases(keyword=keyword)] == names


@pytest.mark.parametrize(
    ("keyword", "note"),
    [
        ("ring or piars", "'piars' fits no case"),
        ("ring or pairs or not nothing", ""),
        ("not nothing", ""),
        ("(ring or hosts=9) and not pairs", "'hosts=9' fits no case"),
        ("", ""),
    ],
)
def test_a_word_that_selects_nothing_is_told(place: Place, keyword: str, note: str) -> None:
    place.test("ring", parameters={"hosts": [1, 2]})
    place.test("pairs")
    plan = place.plan(keyword=keyword)
    require_cases(plan)
    assert notes_of(plan) == ([f"-k: {note} that is selected"] if note else [])


def test_a_setting_must_concern_a_selected_case(place: Place) -> None:
    place.test("ring", parameters={"ranks": [4]})
    place.test("pairs", parameters={"hosts": [2]})
    require_cases(place.plan(keyword="ring", settings={"ranks": "1"}))
    require_cases(place.plan(settings={"ranks": "1"}))
    why = "^--set ranks: no selected test has this parameter, ring has it; pairs has hosts$"
    with pytest.raises(UsageError, match=why):
        require_cases(place.plan(keyword="pairs", settings={"ranks": "1"}))


def test_tags_must_all_be_there(place: Place) -> None:
    place.test("one", tags=["a"])
    place.test("two", tags=["a", "b"])
    assert place.names(tags=["a", "b"]) == ["two@gcc"]
    place.test("three", tags=["c"])
    with pytest.raises(UsageError, match="no case is selected of 3 tests by --tag b and --tag c"):
        require_cases(place.plan(tags=["b", "c"]))
    with pytest.raises(UsageError, match="no test has the tag 'd'; there are a, b, c"):
        require_cases(place.plan(tags=["d"]))


def test_repeats_of_the_test_and_of_the_command(place: Place) -> None:
    place.test(repeat=3)
    assert [case.repeat for case in place.cases()] == [3]
    assert [case.repeat for case in place.cases(repeat=5)] == [5]


def test_each_piece_is_a_case_of_its_own_in_order(place: Place) -> None:
    run = {"pieces": "number", "nodes": 1}
    place.test(run=run, parameters={"number": [1, 3]})
    assert place.names() == [
        f"t{{number={n},piece={i}}}@gcc" for n in (1, 3) for i in range(1, n + 1)
    ]
    place.test(run={"nodes": 1}, parameters={"number": [1, 3]})
    assert place.names() == ["t{number=1}@gcc", "t{number=3}@gcc"]


def test_how_many_pieces_run_at_once_is_bounded_by_a_node(place: Place) -> None:
    place.test(run={"pieces": 4, "at_once": 4, "nodes": 1})
    assert [case.at_once for case in place.cases()] == [4] * 4
    place.test(run={"pieces": 9, "at_once": 9, "nodes": 1})
    assert place.names() == [], "a node has 8 cores"
    place.test(run={"pieces": 4, "at_once": 2, "nodes": 2})
    assert place.names() == [], "they go with one node"
