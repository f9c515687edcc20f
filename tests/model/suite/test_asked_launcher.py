"""The launcher that a test asks for, also by a parameter."""

from __future__ import annotations

from pathlib import Path

from seatrial.model.kinds import launcher_kinds
from seatrial.model.task_placement import launcher_of

from .helpers import Place


def kinds(place: Place) -> list[str]:
    found = place.plan()
    machine = found.site.machine
    return [
        launcher_of(machine, found.tests[c.test], c.toolchain, c.parameters).kind
        for c in found.cases
    ]


def test_a_parameter_has_the_word(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.machine(launcher={"kind": "srun"})
    place.test(run={"launcher": "way"}, parameters={"way": ["compat", "none", "default"]})
    assert kinds(place) == ["compat", "none", "srun"]


def test_a_parameter_with_a_default_has_the_word(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.test(run={"launcher": "way"}, defaults={"way": "mpirun"})
    assert kinds(place) == ["mpirun"]


def test_each_word_and_none(tmp_path: Path) -> None:
    place = Place(tmp_path)
    for word in launcher_kinds():
        place.test(run={"launcher": word})
        assert kinds(place) == [word]
    place.test()
    assert kinds(place) == ["none"]


def test_a_word_that_is_none(tmp_path: Path) -> None:
    place = Place(tmp_path)
    place.test(run={"launcher": "ways"}, parameters={"way": ["compat"]})
    assert "run.launcher: 'ways' is none of srun, mpirun" in place.fault()
    assert "and no parameter" in place.fault()
    place.test(run={"launcher": "way"}, parameters={"way": ["compat", "yod"]})
    assert "run.launcher: way gives 'yod': it must be one of srun" in place.fault()
    place.test(run={"launcher": "way"}, parameters={"way": [1]})
    assert "way gives 1: it must be one of" in place.fault()


def test_a_compat_job_without_an_mpi_does_not_start_one_task_of_several(tmp_path: Path) -> None:
    place = Place(tmp_path)
    run = {"launcher": "way", "nodes": 2, "script": "cd x\n$LAUNCH ./a.out"}
    place.test(run=run, parameters={"way": ["srun", "compat"]})
    found = place.plan()
    assert [case.parameters["way"] for case in found.cases] == ["srun"]
    ((_, reason),) = found.skipped
    assert "names an MPI, so $LAUNCH would be empty and start 1 of 2 tasks" in reason
    place.machine(launcher={"kind": "mpirun", "flavour": "openmpi"})
    assert kinds(place) == ["srun", "compat"]
    place.machine()
    for other in ({"script": "ssh x; echo $LAUNCH"}, {"nodes": 1}, {"script": "$LAUNCHER x"}):
        place.test(run={**run, **other}, parameters={"way": ["srun", "compat"]})
        assert kinds(place) == ["srun", "compat"], other
