"""``run.prove`` through the command, with the MPI of this host."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from seatrial.journal.events import RunJudged
from seatrial.machine.detect import detect
from seatrial.machine.model import Toolchain
from tests.programs import Workplace


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    workplace = Workplace(tmp_path)
    workplace.local(cores=2)
    return workplace


@pytest.fixture
def chain() -> Toolchain:
    return next(iter(detect("here").toolchains.values()))


def machine(place: Workplace, chain: Toolchain, before: str = "", **changes: str) -> None:
    """This host with its MPI, whose launcher does not bind, with a command ``before`` it."""
    assert chain.launcher is not None, "make test brings an MPI where the machine has none"
    launcher = place.folder / "launcher"
    launcher.write_text(f'#!/bin/sh\nexec {before} {chain.launcher.command or "mpirun"} "$@"\n')
    launcher.chmod(0o755)
    about = msgspec.to_builtins(chain) | changes
    about["launcher"] |= {"command": str(launcher), "options": ["--bind-to", "none"]}
    place.local(cores=2, toolchains={"plain": about})


def reason(place: Workplace, tag: str) -> str:
    (judged,) = place.events(tag, RunJudged)
    return judged.reason


def test_the_launcher_is_proved_before_the_script(place: Workplace, chain: Toolchain) -> None:
    """Two ranks that the launcher keeps on one CPU; the script says nothing of it."""
    machine(place, chain, "taskset -c 1")
    place.test("app", "cat placement.txt; cd /", run={"tasks": 2, "prove": True})
    done = place.run("--name", "t")
    assert (done.code, place.verdicts()) == (1, {"app": "misplaced"})
    assert reason(place, "t") == "ranks 0-1 on CPU 1; 2 cores asked"
    lines = (place.run_folder("app") / "stdout").read_text().splitlines()
    assert lines[0].startswith("given node ")
    assert [line.split()[:4] for line in lines[1:3]] == [
        ["rank", "0", "of", "2"],
        ["rank", "1", "of", "2"],
    ]


def test_a_program_without_openmp_runs_one_thread(place: Workplace, chain: Toolchain) -> None:
    machine(place, chain, openmp="")
    run = {"tasks": 1, "threads_per_task": 6, "prove": True}
    build = {"script": "echo built > built; exit"}
    place.test("app", 'echo "$OMP_NUM_THREADS"; cat "$BUILD/built"', run=run, build=build)
    place.run("--name", "t")
    assert place.verdicts() == {"app": "misplaced"}
    assert reason(place, "t") == "asked 6 threads, 1 ran"
    assert (place.run_folder("app") / "stdout").read_text() == "6\nbuilt\n"


def test_what_cannot_be_proved_is_told(place: Workplace) -> None:
    place.test("app", run={"prove": True})
    done = place.run("--name", "t")
    assert place.verdicts() == {"app": "build failed"}
    assert "run.prove: the toolchain has no MPI compiler (mpicc)" in done.said
    binary = place.folder / "suite" / "app" / "binary"
    binary.write_text("")
    sha256 = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    place.test("app", run={"prove": True}, build={"prebuilt": "binary", "sha256": sha256})
    done = place.run("--name", "u")
    assert done.code == 2
    assert "run.prove: builds the probe hello, but `build` is prebuilt" in done.said


def test_the_source_of_hello_is_that_of_the_probe() -> None:
    root = Path(__file__).parents[2]
    probe = root / "suites" / "probes" / "hello" / "hello.c"
    assert (root / "src" / "seatrial" / "suite" / "seatrial_hello.c").samefile(probe)
