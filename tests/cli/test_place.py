"""`seatrial place`: the drawing, the launcher's line, JSON, and what is told of bad input."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from tests.programs import Workplace

HOPPER = """\
gtc{place=numa}: 4 tasks of 3 threads on each of 2 nodes
  socket 0   numa 0    0 0 0 . . .
             numa 1    1 1 1 . . .
  socket 1   numa 2    2 2 2 . . .
             numa 3    3 3 3 . . .
  srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpu-bind=mask_cpu:0x7,0x1c0,0x7000,0x1c0000

gtc{place=default}: 4 tasks of 3 threads on each of 2 nodes
  socket 0   numa 0    0 0 0 . . .
             numa 1    1 1 1 . . .
  socket 1   numa 2    2 2 2 . . .
             numa 3    3 3 3 . . .
  srun --nodes=2 --ntasks=8 --ntasks-per-node=4 --cpu-bind=mask_cpu:0x7,0x1c0,0x7000,0x1c0000
"""


def write_machine(place: Workplace, layout: str, cores: int) -> None:
    kind = {"names": "n[1-4]", "cores": cores, "layout": layout}
    about = {"machine": "m", "scheduler": "slurm", "nodes": [kind], "launcher": {"kind": "srun"}}
    place.machine.write_text(yaml.safe_dump(about))


def write_test(place: Workplace, **run: Any) -> None:
    usual = {"nodes": 2, "tasks_per_node": 4, "threads_per_task": 3, "spread": "place"}
    parameters = {"place": ["numa", "default"]}
    place.test("gtc", "$LAUNCH x", run={**usual, **run}, parameters=parameters)


def test_cores_by_rank_as_text_and_as_json(place: Workplace) -> None:
    write_machine(place, "pack:2 numa:2 core:6 pu:1", 24)
    write_test(place)
    words = ["place", "suite/gtc", "-m", str(place.machine)]
    done = place.seatrial(*words)
    assert (done.code, done.out) == (0, HOPPER), done.said
    first, second = json.loads(place.seatrial(*words, "--format", "json").out)
    assert first["cpus"] == [[0, 1, 2], [6, 7, 8], [12, 13, 14], [18, 19, 20]]
    assert first["launch"].endswith("0x1c0000")
    # It has whole nodes, as the cases have that it is compared with.
    assert second["cpus"] == first["cpus"]


def test_without_whole_nodes_nothing_is_said_of_cores(place: Workplace) -> None:
    write_machine(place, "pack:2 numa:2 core:6 pu:1", 24)
    write_test(place, spread="default")
    words = ["place", "suite/gtc", "-m", str(place.machine), "--set", "place=default"]
    assert (
        "the launcher chooses the cores: other jobs may have cores of its nodes"
        in place.seatrial(*words).out
    )
    (told,) = json.loads(place.seatrial(*words, "--format", "json").out)
    assert (told["cpus"], told["reason"][:10]) == ([], "other jobs")
    assert told["launch"].endswith("--cpus-per-task=3")


def test_without_a_launcher_the_script_chooses_the_cores(place: Workplace) -> None:
    write_machine(place, "pack:1 core:4 pu:1", 4)
    (place.folder / "suite/own").mkdir(parents=True)
    (place.folder / "suite/own/test.yaml").write_text(
        "app: own\nrun: {tasks_per_node: 2, launcher: none, script: hostname}\n"
    )
    told = place.seatrial("place", "suite/own", "-m", str(place.machine)).out
    assert "the script chooses the cores: the node has one NUMA domain" in told
    assert told.endswith("  (no launcher: the script starts its tasks)\n")


def test_tasks_that_fill_a_node_get_their_cores_as_the_remedy_says(place: Workplace) -> None:
    write_machine(place, "pack:2 numa:2 core:6 pu:1", 24)
    filling = {"tasks_per_node": 4, "threads_per_task": 6}
    write_test(place, spread="default", **filling)
    words = ["place", "suite/gtc", "-m", str(place.machine), "--set", "place=default"]
    told = place.seatrial(*words).out
    assert (
        "the launcher chooses the cores: its tasks fill the node; `run.spread: pack` gives" in told
    )
    write_test(place, spread="pack", **filling)
    assert place.seatrial(*words).out.endswith("--cpu-bind=mask_cpu:0x3f,0xfc0,0x3f000,0xfc0000\n")


def test_a_large_node_has_a_line_of_80_columns_for_each_domain(place: Workplace) -> None:
    write_machine(place, "pack:2 [numa] core:64 pu:1", 128)
    write_test(place, tasks_per_node=21, threads_per_task=4, bind="numa", spare_cores=8)
    done = place.seatrial("place", "suite", "-m", str(place.machine), "--set", "place=numa")
    assert done.out.splitlines()[1:4] == [
        "  socket 0   numa 0    0-10 on 4 cores each, 20 free",
        "  socket 1   numa 1    11-20 on 4 cores each, 24 free",
        "  each task may use all cores of its NUMA domain",
    ]


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ({"spread": "nmua"}, "run.spread: 'nmua' is none of numa, socket, pack, default, and no"),
        ({"spread": "'x' if 1 > 0 else place"}, "run.spread: \"'x' if 1 > 0 else place\" gives"),
        ({"bind": "cores"}, "run.bind: 'cores' is none of core, numa, socket, none, default"),
        ({"numa_policy": "16GiB"}, "run.numa_policy: '16GiB' is not an expression"),
        ({"tasks_per_numa": 1}, "run.tasks_per_numa: give spread or tasks_per_numa, not both"),
        ({"tasks_per_numa": 0}, "run.tasks_per_numa: 0 is less than 1"),
        ({"spare_cores": -1}, "run.spare_cores: -1 is less than 0"),
        ({"spare_cores": "13"}, "gtc{place=numa}: needs 12 cores of a node and 13 to spare; it"),
    ],
)
def test_bad_input_is_told(place: Workplace, run: dict[str, Any], told: str) -> None:
    write_machine(place, "pack:2 numa:2 core:6 pu:1", 24)
    write_test(place, **run)
    done = place.seatrial("place", "suite", "-m", str(place.machine))
    assert done.code == 2
    assert told in done.said


def test_runs_are_not_counted_where_nothing_runs(place: Workplace) -> None:
    done = place.seatrial("place", "suite", "--repeat", "3")
    assert done.code == 2
    assert "'--repeat'" in done.said
