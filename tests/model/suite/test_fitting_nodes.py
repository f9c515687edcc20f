"""Which nodes a case can have, and in which partition, on machines whose nodes differ."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.model.requirements import lacking
from tests.model.suite.helpers import Place

CPU = {"names": "c[1-4]", "cores": 8, "memory": "64GiB"}
FAT = {"names": "f[1-2]", "cores": 8, "memory": "1TiB", "partition": "big"}
GPU = {"names": "g[1-3]", "cores": 16, "gpus": 4, "features": ["a100"], "partition": "gpu"}


def machine(place: Place, *nodes: dict[str, Any], **keys: Any) -> None:
    place.machine(nodes=list(nodes), **keys)


def outcome(place: Place, run: dict[str, Any], **keys: Any) -> Any:
    """The partition of the case and its tasks, or why there is none."""
    place.test(run=run, **keys)
    prepared = place.plan()
    if prepared.skipped:
        return prepared.skipped[0][1]
    (case,) = prepared.cases
    return case.job.partition, case.tasks


@pytest.mark.parametrize(
    ("run", "expected"),
    [
        ({}, (None, 1)),
        ({"tasks_per_node": "node.cores"}, (None, 8)),
        ({"gpus_per_node": 4, "tasks_per_node": "node.cores"}, ("gpu", 16)),
        ({"gpus_per_node": "node.gpus"}, ("gpu", 1)),
        ({"gpus_per_node": 0}, (None, 1)),
        ({"memory": "512GiB"}, ("big", 1)),
        ({"partition": "gpu", "tasks_per_node": "node.cores"}, ("gpu", 16)),
        ({"partition": "debug"}, ("debug", 1)),
        ({"partition": "", "nodes": 4}, ("", 4)),
        ({"nodes": 5}, "needs 5 nodes in the partition batch; there are 4"),
        ({"nodes": 4, "partition": "batch,gpu"}, ("batch,gpu", 4)),
        ({"nodes": 8, "partition": "batch,gpu"},
         "needs 8 nodes in the partition batch,gpu; there are 7"),
        ({"nodes": 4, "gpus_per_task": 1},
         "needs 4 nodes with 1 GPU in the partition gpu; there are 3"),
        ({"gpus_per_node": 5}, "needs 1 node with 5 GPUs; there are 0"),
        ({"gpus_per_node": 1, "partition": "batch"},
         "needs 1 node with 1 GPU in the partition batch; there are 0"),
        ({"gpus_per_node": 1, "memory": "2TiB"}, ("gpu", 1)),  # its memory is not described
        ({"nodes": 9, "partition": "debug"}, ("debug", 9)),
    ],
)  # fmt: skip
def test_the_partition_of_what_fits(place: Place, run: dict[str, Any], expected: Any) -> None:
    machine(place, GPU, FAT, CPU, slurm={"partition": "batch"})
    assert outcome(place, run) == expected


def test_cpus_are_sought_on_nodes_without_gpus(place: Place) -> None:
    machine(place, GPU, {**FAT, "partition": "gpu"}, {**CPU, "partition": "cpu"})
    assert outcome(place, {"tasks_per_node": "node.cores", "memory": "32GiB"}) == ("gpu", 8)
    machine(place, GPU, {**CPU, "partition": "cpu"})
    assert outcome(place, {"tasks_per_node": "node.cores"}) == ("cpu", 8)


def test_features_find_their_partition(place: Place) -> None:
    machine(place, CPU, GPU)
    assert outcome(place, {}, requires={"features": ["a100"]}) == ("gpu", 1)


def test_each_node_in_its_own_partition(place: Place) -> None:
    machine(place, CPU, GPU, FAT)
    place.test(run={"scope": "each_node"})
    partitions = {case.node: case.job.partition for case in place.plan().cases}
    assert partitions == {
        **{f"c{n}": None for n in range(1, 5)},
        **{f"f{n}": "big" for n in range(1, 3)},
        **{f"g{n}": "gpu" for n in range(1, 4)},
    }
    place.test(run={"scope": "each_node", "gpus_per_node": 1})
    prepared = place.plan()
    assert sorted(case.node for case in prepared.cases) == ["g1", "g2", "g3"]


def test_all_gpus_of_nodes_that_have_none_is_left_out(place: Place) -> None:
    why = outcome(place, {"gpus_per_node": "node.gpus"})
    assert why == "needs 1 node with GPUs; there are 0"


def test_machines_that_name_no_partitions_are_as_ever(place: Place) -> None:
    place.machine(slurm={"partition": "batch"})
    assert outcome(place, {"nodes": 4, "partition": "other"}) == ("other", 4)
    assert outcome(place, {"nodes": 4}) == (None, 4)


def test_gpus_are_part_of_a_case_and_partitions_are_not(place: Place) -> None:
    machine(place, CPU, GPU)

    def identity(**run: Any) -> str:
        place.test(run=run)
        return place.plan().cases[0].id

    plain = identity()
    assert plain == identity(partition="gpu", qos="q", options=["--x"], memory="1GiB")
    assert plain == identity(gpus_per_node=0)
    one = identity(gpus_per_node=1)
    assert len({plain, one, identity(gpus_per_node=2)}) == 3
    assert one == identity(gpus_per_task=1)


@pytest.mark.parametrize(
    ("run", "nodes"),
    [
        ({}, "g[1-3],f[1-2]"),
        ({"gpus_per_node": 1}, "c[1-4],f[1-2]"),
        ({"memory": "512GiB", "partition": "debug"}, "c[1-4]"),
    ],
)
def test_the_nodes_that_a_rehearsal_keeps_a_case_from(
    place: Place, run: dict[str, Any], nodes: str
) -> None:
    machine(place, CPU, GPU, FAT)
    place.test(run=run)
    prepared = place.plan()
    (case,) = prepared.cases
    assert set(lacking(prepared.site.machine, [], case).split(",")) == set(nodes.split(","))
