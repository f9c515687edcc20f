"""``run.prove`` through the command, with the MPI of this host."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from seatrial.execute.detect import detect
from seatrial.journal.events import RunJudged
from seatrial.model.machine import Toolchain
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster


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
    run = {"tasks": 1, "threads_per_task": 6, "prove": True, "oversubscribe": True}
    build = {"script": "echo built > built; exit"}
    place.test("app", 'echo "$OMP_NUM_THREADS"; cat "$BUILD/built"', run=run, build=build)
    place.run("--name", "t")
    assert place.verdicts() == {"app": "misplaced"}
    assert reason(place, "t") == "asked 6 threads, 1 ran"
    assert (place.run_folder("app") / "stdout").read_text() == "6\nbuilt\n"


# ---- the threads of the program itself ------------------------------------------------------

PROGRAM = """
#include <mpi.h>
#include <stdio.h>
int main(int count, char **words) {
  int threads = 0;
  MPI_Init(&count, &words);
  #pragma omp parallel reduction(+ : threads)
  threads++;
  printf("threads %d\\n", threads);
  return MPI_Finalize();
}
"""
BUILT = """
$MPICC $CFLAGS {options} -o app app.c
echo 'int main(void) {{ return 0; }}' | gcc -static -x c -o static -
echo '#include <time.h>
#include <unistd.h>
int main(void) {{
  #pragma omp parallel
  {{
    struct timespec computed;
    do clock_gettime(CLOCK_THREAD_CPUTIME_ID, &computed);
    while (computed.tv_sec == 0 && computed.tv_nsec < 100 * 1000 * 1000);
    sleep(1);
  }}
  return 0;
}}' | gcc -static -fopenmp -x c -o busy -
"""


def proved(
    place: Workplace, chain: Toolchain, options: str, scripts: dict[str, str]
) -> dict[str, str]:
    """Return the verdicts and their reasons of tests that build their program with options."""
    machine(place, chain)
    run = {"threads_per_task": 2, "tasks": 2, "prove": True, "oversubscribe": True}
    verify = [{"placement": {"cores": "any", "numa": "any", "cpus": "any"}, "in": "placement.txt"}]
    build = {"sources": ["app.c"], "script": BUILT.format(options=options)}
    for name, script in scripts.items():
        place.test(name, script, run=run, build=build, verify=verify)
        (place.folder / "suite" / name / "app.c").write_text(PROGRAM)
    done = place.run("--name", "t")
    verdicts = place.verdicts()
    assert {*verdicts.values()} <= {"pass", "misplaced", "check error"}, done.said
    return {name: f"{verdicts[name]} {place.why(name)}".strip() for name in scripts}


def test_a_program_without_openmp_is_misplaced_though_hello_ran(
    place: Workplace, chain: Toolchain
) -> None:
    told = proved(place, chain, "", {"app": "cd /; $LAUNCH $BUILD/app"})
    assert told == {"app": "misplaced app ran 1 thread of 2 asked: ranks 0-1"}
    run = place.run_folder("app")
    assert (run / "stdout").read_text() == "threads 1\n" * 2
    assert "thread 1 of 2" in (run / "placement.txt").read_text(), "hello had both"


def test_a_program_with_its_threads_is_proved(place: Workplace, chain: Toolchain) -> None:
    """One that loads libraries, a static one, and one whose second rank has a thread only."""
    one = "[ $OMPI_COMM_WORLD_RANK$PMI_RANK = 1 ] && export OMP_NUM_THREADS=1; exec $BUILD/app"
    scripts = {name: f"$LAUNCH $BUILD/{name}" for name in ("app", "busy")}
    scripts["half"] = f"$LAUNCH bash -c '{one}'"
    told = proved(place, chain, "$OPENMP", scripts)
    assert told == {
        "app": "pass",
        "busy": "pass",
        "half": "misplaced app ran 1 thread of 2 asked: rank 1",
    }
    for name in ("app", "busy"):
        lines = (place.run_folder(name) / "job.threads.txt").read_text().splitlines()
        assert lines == [f"rank {rank} threads 2 mpi 1 program {name}" for rank in (0, 1)]


def test_threads_that_are_not_seen_are_not_proved(place: Workplace, chain: Toolchain) -> None:
    scripts = {
        "nothing": "true",
        "otherwise": "${LAUNCH% *} $BUILD/app",
        "without": "$LAUNCH bash -c 'unset LD_PRELOAD; exec $BUILD/app'",
        "other": "$LAUNCH env -i /bin/true",
        "static": "$LAUNCH $BUILD/static",
    }
    told = proved(place, chain, "$OPENMP", scripts)
    reason = "run.prove: not proved: the threads of the program of ranks 0-1 were not seen"
    assert all(each.startswith(f"check error {reason}") for each in told.values()), told


@pytest.mark.slurm(hosts=True)
def test_ranks_on_several_nodes_are_counted(
    slurm_place: Workplace, cluster: SlurmCluster, chain: Toolchain
) -> None:
    """The second node is told of the library by the script that starts its rank."""
    about = msgspec.to_builtins(chain)
    about["launcher"] |= {"options": ["--bind-to", "none"]}
    slurm_place.slurm(cluster, {"poll": "0.5s"}, toolchains={"plain": about})
    run = {"nodes": 2, "tasks": 2, "threads_per_task": 2, "prove": True}
    verify = [{"placement": {"cores": "any", "numa": "any"}, "in": "placement.txt"}]
    one = "[ $OMPI_COMM_WORLD_RANK = 1 ] && export OMP_NUM_THREADS=1; exec $BUILD/app"
    build = {"sources": ["app.c"], "script": BUILT.format(options="$OPENMP")}
    place = slurm_place
    place.test("app", f"$LAUNCH bash -c '{one}'", run=run, build=build, verify=verify)
    (place.folder / "suite" / "app" / "app.c").write_text(PROGRAM)
    done = place.run("--name", "t")
    assert place.verdicts() == {"app": "misplaced"}, done.said
    assert reason(place, "t") == "app ran 1 thread of 2 asked: rank 1"
    hosts = [path.name for path in (place.run_folder("app") / "job.threads.d").iterdir()]
    assert len(hosts) == 2, hosts


def test_a_check_that_takes_any_number_asks_for_no_proof(
    place: Workplace, chain: Toolchain
) -> None:
    machine(place, chain)
    any_number = {"placement": {"threads": "any", "cores": "any", "numa": "any", "cpus": "any"}}
    verify = [{**any_number, "in": "placement.txt"}]
    run = {"threads_per_task": 2, "tasks": 1, "prove": True}
    place.test("app", "true", run=run, verify=verify)
    place.run("--name", "t")
    assert place.verdicts() == {"app": "pass"}


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
    root = Path(__file__).parents[3]
    probe = root / "suites" / "probes" / "hello" / "hello.c"
    assert (root / "src" / "seatrial" / "model" / "seatrial_hello.c").samefile(probe)
