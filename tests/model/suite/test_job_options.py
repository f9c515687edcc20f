"""What a test asks of the scheduler: its values, its faults, who decides."""

from __future__ import annotations

from typing import Any

import pytest

from seatrial.model.machine import SlurmOverride
from seatrial.model.run_settings import (
    described,
    effective,
    faults_of_options,
    overridden,
    overridden_settings,
)
from seatrial.model.schedulers import Slurm
from seatrial.model.test import JobOptions
from tests.model.suite.helpers import Place


def asked(place: Place, run: dict[str, Any], **keys: Any) -> list[JobOptions]:
    place.machine(nodes=[{"names": "n[1-4]", "cores": 8, "gpus": 4, "memory": "64GiB"}])
    place.test(run=run, **keys)
    return [case.job for case in place.plan().cases]


def faults_of(place: Place, **run: Any) -> list[str]:
    place.machine(nodes=[{"names": "n[1-4]", "cores": 8, "gpus": 4, "memory": "64GiB"}])
    place.test(run=run, parameters={"size": [1, 2], "word": ["a", "b c"]})
    return [fault.split(": ", 1)[1] for fault in place.faults()]


def test_nothing_is_asked_for_by_default(place: Place) -> None:
    assert asked(place, {}) == [JobOptions()]


def test_values_of_parameters(place: Place) -> None:
    run = {
        "gpus_per_node": "min(size, node.gpus)",
        "memory": "2 * size GiB",
        "partition": "p{size}",
        "qos": "",
        "account": "a",
        "reservation": "{'r' if size > 1 else ''}",
        "options": ["--gres=nvme:{size}", "-L", "matlab:{2 ** size}"],
    }
    assert asked(place, run, parameters={"size": [1, 8]}) == [
        JobOptions(
            gpus_per_node=min(size, 4),
            memory=2 * size << 30,
            partition=f"p{size}",
            qos="",
            account="a",
            reservation="r" if size > 1 else "",
            options=(f"--gres=nvme:{size}", "-L", f"matlab:{2**size}"),
        )
        for size in (1, 8)
    ]


def test_gpus_of_tasks_are_those_of_their_node(place: Place) -> None:
    run = {"nodes": 2, "tasks": 6, "gpus_per_task": 1}
    asked(place, run)
    (case,) = place.plan().cases
    assert case.gpus == 3


@pytest.mark.parametrize(
    ("run", "told"),
    [
        ({"gpus_per_node": 1, "gpus_per_task": 1}, "run.gpus_per_task: give gpus_per_node or"),
        ({"gpus_per_node": -1}, "run.gpus_per_node: -1 is less than 0"),
        ({"gpus_per_node": "size / 2"}, "run.gpus_per_node: 'size / 2' gives 0.5: it must be a"),
        ({"gpus_per_node": "1 - size"}, "run.gpus_per_node: '1 - size' gives -1: it must be at"),
        ({"gpus_per_node": "sise"}, "run.gpus_per_node: 'sise': sise is not defined"),
        ({"memory": 1000}, "run.memory: '1000' has no unit; write e.g. 16GiB"),
        ({"memory": "size"}, "run.memory: 'size' has no unit"),
        ({"memory": "sizeGiB"}, "run.memory: 'sizeGiB' has no unit"),
        ({"memory": "size - 1 GiB"}, "run.memory: 'size - 1' gives 0: it must be a number above"),
        ({"memory": "0GiB"}, "run.memory: '0' gives 0: it must be a number above 0"),
        ({"memory": "word GiB"}, "run.memory: 'word' gives 'a': it must be a number above 0"),
        ({"partition": "a b"}, "run.partition: 'a b' is not a name of Slurm's"),
        ({"account": "-x"}, "run.account: '-x' is not a name of Slurm's"),
        ({"partition": "{sise}"}, "run.partition: 'sise': sise is not defined"),
        ({"partition": "{size"}, "run.partition: '{size' has half a pair of braces"),
        ({"qos": "{word}"}, "run.qos: 'b c' is not a name of Slurm's"),
        ({"options": ["--x={1/0}"]}, "run.options[0]: '1/0' divides by zero"),
        ({"options": ["{word}"]}, "run.options[0]: 'a' is no option; it must begin with -"),
        ({"options": ["--a\nb"]}, "run.options[0]: '--a\\nb' holds '\\n', which no argument"),
    ],
)
def test_faults_are_told_at_their_key(place: Place, run: dict[str, Any], told: str) -> None:
    (fault,) = faults_of(place, **run)
    assert fault.startswith(told)


@pytest.mark.parametrize(
    ("options", "places"),
    [
        (["--gres=nvme:1", "-p", "gpu", "-pgpu", "--licenses", "a", "--exclusive"], []),
        (["gpu"], [0]),
        (["--x=1", "gpu"], [1]),
        (["-p", "gpu", "more"], [2]),
        (["--array=1", "-n", "4", "--time=5", "-N2", "--wrap", "x", "-o", "f"], [0, 1, 3, 4, 5, 7]),
        (["--parsable", "--ntasks-per-node=2", "--no-requeue"], [0, 1]),
        (["--"], [0]),
        ([""], [0]),
    ],
)
def test_options_that_cannot_be_given_to_sbatch(options: list[str], places: list[int]) -> None:
    assert [place for place, _ in faults_of_options(options)] == places


def test_the_remedy_names_the_key_of_the_test() -> None:
    ((_, text),) = faults_of_options(["--nodes=2"])
    assert text == "'--nodes=2' is given by Seatrial itself; use run.nodes"


def test_who_decides() -> None:
    machine = Slurm(partition="m", account="m", qos="m", constraint="m", options=["-m"])
    phase = overridden_settings(machine, SlurmOverride(partition="f", account="f", options=["-f"]))
    test = JobOptions(partition="t", qos="", options=("-t",), gpus_per_node=2, memory=1 << 30)
    component = SlurmOverride(partition="c", constraint="", options=["-c"])
    alone = effective(phase, test)
    assert (alone.partition, alone.account, alone.qos, alone.constraint) == ("t", "f", "", "m")
    assert alone.options == ("-m", "-f", "-t")
    said = effective(phase, overridden(test, component))
    assert (said.partition, said.account, said.qos, said.constraint) == ("c", "f", "", "")
    assert said.options == ("-m", "-f", "-t", "-c")
    assert (said.gpus_per_node, said.memory) == (2, 1 << 30)
    assert described(said) == ("gpus_per_node=2 memory=1.0GiB partition=c account=f -m -f -t -c")
