"""What is wrong with a tune.yaml, told all at once with line and remedy."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.errors import InvalidFiles, UsageError
from seatrial.execute.tuning import PreparedTuning, prepare_tuning

GOOD: dict[str, Any] = {
    "tune": "demo",
    "test": "app",
    "metric": "time",
    "axes": {"threads": [1, 2, 4], "pages": ["4k", "thp"]},
    "blocks": {"rounds": 2, "allocations": 2},
    "cost": "100%",
}
TEST: dict[str, Any] = {
    "app": "demo",
    "parameters": {"threads": [1], "pages": ["4k"], "size": [8]},
    "run": {"script": "true", "threads_per_task": "threads"},
    "metrics": {"time": {"find": "(.)", "better": "lower"}},
}


def prepared(
    folder: Path,
    test: dict[str, Any] | None = None,
    /,
    on: dict[str, Any] | None = None,
    **keys: Any,
) -> PreparedTuning:
    """A tuning of the test above and a machine of one node, with other keys of each."""
    machine = folder / "machine.yaml"
    nodes = [{"names": "here", "cores": 4}]
    machine.write_text(yaml.safe_dump({"machine": "here", "nodes": nodes, **(on or {})}))
    (folder / "app").mkdir(exist_ok=True)
    (folder / "app" / "test.yaml").write_text(
        yaml.safe_dump({**TEST, **(test or {})}, sort_keys=False)
    )
    about = {key: each for key, each in {**GOOD, **keys}.items() if each is not None}
    (folder / "tune.yaml").write_text(yaml.safe_dump(about, sort_keys=False))
    return prepare_tuning(folder / "tune.yaml", str(machine))


def faults(folder: Path, test: dict[str, Any] | None = None, /, **keys: Any) -> str:
    with pytest.raises(InvalidFiles) as caught:
        prepared(folder, test, **keys)
    return str(caught.value)


def test_settings_are_cases_in_the_order_of_the_grid(tmp_path: Path) -> None:
    found = prepared(tmp_path, default={"threads": 2}, where=["threads < 4 or pages == 'thp'"])
    bound = [(each.parameters["threads"], each.parameters["pages"]) for each in found.cases]
    assert bound == [(1, "4k"), (1, "thp"), (2, "4k"), (2, "thp"), (4, "thp")]
    assert found.rules.levels == [[0, 0], [0, 1], [1, 0], [1, 1], [2, 1]]
    assert found.rules.default == 2
    assert (found.rules.grid, found.rules.runs) == (20, 20)
    record = found.record("t")
    assert record.policy.kind == "race"
    assert record.tuning == found.tune
    assert record.tuning_text.startswith("tune: demo")


def test_the_default_is_the_value_that_the_test_has(tmp_path: Path) -> None:
    own: dict[str, Any] = {"parameters": {"size": [8]}, "defaults": {"threads": 2, "pages": "2M"}}
    found = prepared(tmp_path, own)
    assert found.rules.default == 2  # threads=2, pages=4k: 2M is not tried
    assert found.cases[2].parameters == {"size": 8, "threads": 2, "pages": "4k"}
    assert prepared(tmp_path, own, default={"threads": 4}).rules.default == 4


SPREAD: dict[str, Any] = {
    "parameters": {"spread": ["numa"], "threads": [1]},
    "run": {"script": "true", "spread": "spread", "threads_per_task": "threads", "tasks": 1},
}


def test_settings_that_run_in_the_same_way_are_one(tmp_path: Path) -> None:
    axes = {"spread": ["numa", "pack", "socket"], "threads": [1, 2]}
    found = prepared(tmp_path, SPREAD, axes=axes, default={"spread": "pack"})
    assert [(each.parameters["spread"], each.parameters["threads"]) for each in found.cases] == [
        ("numa", 2),
        ("pack", 1),
    ]
    assert found.rules.default == 1
    left_out = dict(found.prepared.skipped)
    assert len(left_out) == 4
    why = "it runs as spread=pack,threads=1 does: the same launch, environment and script"
    assert left_out["app{spread=numa,threads=1}"] == why


def test_an_axis_that_a_script_or_a_file_names_is_tried(tmp_path: Path) -> None:
    axes = {"spread": ["numa", "pack"], "threads": [1, 2]}
    named = {**SPREAD, "run": {**SPREAD["run"], "script": "echo $spread"}}
    assert len(prepared(tmp_path, named, axes=axes).cases) == 4
    (tmp_path / "app" / "model.py").write_text("import os\nprint(os.environ['spread'])\n")
    assert len(prepared(tmp_path, SPREAD, axes=axes).cases) == 4


def test_runs_of_a_tuning_are_hung_as_those_of_a_trial_are(tmp_path: Path) -> None:
    found = prepared(tmp_path, {"run": {**TEST["run"], "quiet_for": "2m"}})
    policy = found.record("t").policy
    assert (policy.kind, policy.race, policy.allocations) == ("race", found.rules, 1)
    assert policy.entries[policy.entry_of[0]].quiet_after == 120
    assert len(set(policy.bundle_of)) == 1


@pytest.mark.parametrize(
    ("keys", "said"),
    [
        ({"test": "apq"}, "tune.yaml:2: test: no test 'apq'"),
        ({"suite": "nowhere"}, "suite: "),
        ({"metric": "tim"}, "metric: the test app has no figure 'tim'; did you mean 'time'?"),
        ({"metric": None}, "metric: is missing; name the figure of merit that decides"),
        ({"axes": {"thread": [1, 2]}}, "axes.thread: is no parameter of the test app"),
        ({"axes": {}}, "axes: is empty"),
        ({"axes": {"threads": []}}, "axes.threads: has no values"),
        ({"axes": {"threads": [1, 1]}}, "axes.threads[1]: 1 stands there twice"),
        ({"where": ["threads > 9"]}, "where: leaves none of the 6 settings"),
        ({"where": ["nosuch > 9"]}, "where[0]: 'nosuch > 9': nosuch has no value here"),
        ({"where": ["threads >"]}, "where[0]: "),
        ({"default": {"threads": 3}}, "default.threads: '3' is not in the grid; threads is one of"),
        ({"default": {"size": 8}}, "default.size: is no axis"),
        ({"where": ["threads > 1"]}, "default: threads=1, pages=4k is not in the grid"),
        ({"cost": "20%"}, "cost: 20 % of 24 runs are 4, and one round of 6 settings takes 6"),
        ({"cost": 0}, "cost: must be above 0 and at most 100%"),
        ({"cost": "much"}, "cost: "),
        ({"blocks": {"nodes": 2}}, "blocks.nodes: is 2, and the runs need 1"),
        ({"parameters": {"pages": "4k"}}, "parameters.pages: is an axis, too"),
        ({"parameters": {"nosuch": 1}}, "parameters.nosuch: is no parameter of the test app"),
        ({"search": "largest"}, "axes.threads: search: largest goes over one axis"),
        ({"search": "luck"}, "search: 'luck' is not one of grid, halving, largest, race"),
        ({"nosuch": 1}, "nosuch: is not a key here"),
    ],
)
def test_faults_name_the_key_and_the_remedy(
    tmp_path: Path, keys: dict[str, Any], said: str
) -> None:
    assert said in faults(tmp_path, **keys)


def test_a_toolchain_that_the_machine_does_not_have(tmp_path: Path) -> None:
    on = {"toolchains": {"gcc": {"cc": "gcc"}, "clang": {"cc": "clang"}}}
    test = {"build": {"script": "true"}}
    said = faults(tmp_path, test, on=on, axes={"toolchain": ["gcc", "clagn", "*"]})
    assert "tune.yaml:7: axes.toolchain[1]: here has no toolchain 'clagn'; did you mean" in said
    assert "axes.toolchain[2]: here has no toolchain '*'; it has clang, gcc" in said
    found = prepared(tmp_path, test, on=on, axes={"toolchain": ["clang", "gcc"]})
    assert [case.toolchain for case in found.cases] == ["clang", "gcc"]


def test_nodes_that_differ_are_a_fault_unless_one_kind_is_chosen(tmp_path: Path) -> None:
    kinds = [
        {"names": "n[1-4]", "cores": 24, "layout": "pack:2 numa:2 core:6 pu:1", "features": ["a"]},
        {"names": "k[1-4]", "cores": 24, "sockets": 1, "features": ["b"]},
    ]
    slurm: dict[str, Any] = {"scheduler": "slurm", "nodes": kinds}
    said = faults(tmp_path, on=slurm)
    assert "tune.yaml:2: test: its runs may get nodes that differ (n[1-4]: 24 cores in 4" in said
    assert "k[1-4]: 24 cores in 1 NUMA domain)" in said
    prepared(tmp_path, {"requires": {"features": ["b"]}}, on=slurm)
    prepared(tmp_path, on={**slurm, "slurm": {"nodelist": "n[1-2]"}})
    same = [{**kind, "layout": kinds[0]["layout"], "sockets": 2} for kind in kinds]
    prepared(tmp_path, on={**slurm, "nodes": same})


def test_faults_are_told_at_once(tmp_path: Path) -> None:
    said = faults(tmp_path, metric="tim", axes={"thread": [1, 2]}, cost=7, default={"x": 1})
    assert all(key in said for key in ("metric:", "axes.thread:", "cost:", "default.x:"))


def test_a_parameter_that_is_no_axis_has_one_value(tmp_path: Path) -> None:
    several = {"parameters": {**TEST["parameters"], "size": [8, 16]}}
    said = faults(tmp_path, several)
    assert "parameters.size: size of the test has 2 values (8, 16) and is no axis" in said
    found = prepared(tmp_path, several, parameters={"size": 16})
    assert {each.parameters["size"] for each in found.cases} == {16}


def test_a_parameter_may_follow_from_an_axis(tmp_path: Path) -> None:
    follows = {"parameters": {**TEST["parameters"], "tasks": "node.cores // threads"}}
    found = prepared(tmp_path, follows)
    assert [each.parameters["tasks"] for each in found.cases] == [4, 4, 2, 2, 1, 1]


def test_a_figure_without_a_direction(tmp_path: Path) -> None:
    either = {"metrics": {"time": {"find": "(.)", "better": "none"}}}
    assert "does not say which direction is better" in faults(tmp_path, either)
    assert prepared(tmp_path, either, better="higher").rules.better == "higher"


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="no such file"):
        prepare_tuning(tmp_path / "nosuch.yaml", None)
