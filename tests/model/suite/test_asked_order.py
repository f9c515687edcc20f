"""``run.order``: words, parameters, and what a case or a launcher refuses, with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import Done, Workplace

SRUN = {"kind": "srun"}


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    return Workplace(tmp_path)


def a_place(place: Workplace, launcher: dict[str, Any], **run: Any) -> None:
    nodes = [{"names": "n[1-4]", "cores": 512}]
    machine = {"machine": "m", "scheduler": "slurm", "nodes": nodes, "launcher": launcher}
    place.machine.write_text(yaml.safe_dump({**machine, "toolchains": {"plain": {}}}))
    more = {"parameters": run.pop("parameters")} if "parameters" in run else {}
    folder = place.test("t", "true", logs=False, run={"nodes": 2, "tasks": 8, **run}, **more)
    (folder / "twice").write_text("0,1,1,2\n3-6\n")
    (folder / "whole").write_text("7,6,5,4\n3,2,1,0\n")


def listed(place: Workplace) -> Done:
    return place.seatrial("list", "suite", "-m", str(place.machine), "--format", "json")


@pytest.mark.parametrize(
    ("written", "parameters", "orders"),
    [
        ("folded", {}, ["folded"]),
        ("grid {a}x4 by {a}x{b}", {"a": [2], "b": [1, 2]}, ["grid 2x4 by 2x1", "grid 2x4 by 2x2"]),
        ("how", {"how": ["default", "smp", "file whole"]}, ["", "smp", "file whole"]),
        ("random {tasks}", {"tasks": [3]}, ["random 3"]),
    ],
)
def test_orders_of_cases(
    place: Workplace, written: str, parameters: dict[str, Any], orders: list[str]
) -> None:
    a_place(place, SRUN, order=written, parameters=parameters)
    done = listed(place)
    assert done.code == 0, done.said
    assert [case.get("order", "") for case in yaml.safe_load(done.out)] == orders


@pytest.mark.parametrize(
    ("launcher", "run", "told"),
    [
        (SRUN, {"order": "cyclic"}, "run.order: 'cyclic' is no rank order; write smp"),
        (SRUN, {"order": "{how}"}, "how is not defined"),
        (SRUN, {"order": "how", "parameters": {"how": ["odd"]}}, "'odd' is no rank order"),
        (SRUN, {"order": "grid 4x4 by 2x2"}, "orders 16 ranks, and there are 8"),
        (SRUN, {"order": "file none"}, "none: No such file"),
        (SRUN, {"order": "file twice"}, "twice: rank 1 is in the order twice"),
    ],
)
def test_what_is_refused(
    place: Workplace, launcher: dict[str, Any], run: dict[str, Any], told: str
) -> None:
    a_place(place, launcher, **run)
    done = listed(place)
    assert done.code == 2, done.said
    assert told in done.said
    assert "suite/t/test.yaml:" in done.said


@pytest.mark.parametrize(
    ("launcher", "run", "told"),
    [
        ({"kind": "none"}, {"order": "smp"}, "no launcher that takes an order"),
        ({"kind": "jsrun"}, {"order": "smp"}, "jsrun takes no order of ranks"),
        ({"kind": "mpirun"}, {"order": "smp"}, "mpirun of an unknown MPI: give `flavour:"),
        (
            {"kind": "srun", "flavour": "cray", "version": "9.1"},
            {"order": "round robin", "tasks": 254},
            "PMI_process_mapping of this order has 1,024 bytes, and cray-mpich 9.1 refuses",
        ),
    ],
)
def test_what_a_launcher_refuses_is_left_out(
    place: Workplace, launcher: dict[str, Any], run: dict[str, Any], told: str
) -> None:
    a_place(place, launcher, **run)
    place.test("other", "true", logs=False)
    done = listed(place)
    assert done.code == 0, done.said
    assert [case["test"] for case in yaml.safe_load(done.out)] == ["other"]
    done = place.seatrial("list", "suite", "-m", str(place.machine))
    assert f"left out: t@plain: {run['order']}: {told}" in done.out
    done = place.seatrial("list", "suite/t", "-m", str(place.machine))
    assert done.code == 2 and told in done.said  # nothing is left


def test_an_order_that_the_mpi_may_refuse_is_told(place: Workplace) -> None:
    a_place(place, {"kind": "srun", "flavour": "cray"}, order="round robin", tasks=254)
    done = place.seatrial("list", "suite", "-m", str(place.machine))
    assert done.code == 0, done.said
    assert "note: t@plain: PMI_process_mapping of this order has 1,024 bytes. cray-" in done.out


def test_a_mapping_that_srun_takes(place: Workplace) -> None:
    a_place(place, SRUN, order="round robin", tasks=254)
    assert listed(place).code == 0
