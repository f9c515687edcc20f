"""Compat jobs of several nodes on Grid Engine, Debian's own, by ``qrsh -inherit``; and on PBS by
``pbs_tmrsh``, with commands that stand in for it."""

from __future__ import annotations

import os
import re
import shlex
import shutil
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import CompatStarted, RunJudged
from seatrial.plugins.compat.run import CompatSettings, write
from tests.command_server import COMMAND
from tests.execute.batch.waiting_jobs import OF_MPI, QUICK
from tests.gridengine.server import GridEngineCell
from tests.pbs.stand_in import StandIn
from tests.programs import Workplace
from tests.waiting import LONG_S, until

SCRIPT = r"""
mapfile -t hosts < $SEATRIAL_COMPAT/hosts
cut -d ' ' -f 1 $HOSTFILE | diff - $SEATRIAL_COMPAT/hosts && echo "$NODES of ${#hosts[@]}"
for host in ${hosts[@]}; do ssh -n $host 'echo "$OWN ${STRAY-}$NODES"'; done
STRAY=1 ssh -n ${hosts[1]} 'exit 7'; echo $?
ssh -n ${hosts[1]} 'echo wrong >&2; echo right' 2> said; cat said
ssh -n n099 true 2> said; echo $?
"""
# Grid Engine ends a job a second after one of its tasks ended by a signal.
SIGNALS = r"""
ssh -n ${hosts[1]} 'kill -9 $$'; echo $?
ssh -n ${hosts[1]} 'sleep 300' & sleep 1; kill $!; wait $!; echo $?
sleep 2; ssh -n ${hosts[1]} echo still there
"""
LEFT = """
ssh -n ${hosts[1]} "setsid sleep 300 > /dev/null 2>&1 < /dev/null &"
setsid sleep 300 > /dev/null 2>&1 < /dev/null &
"""
SAID = ["2 of 2", "mine 2", "mine 2", "7", "right", "wrong", "255"]
HELLO = Path(__file__).parents[3] / "suites" / "probes" / "hello" / "hello.c"
TWO: dict[str, Any] = {"nodes": 2, "tasks": 2, "launcher": "compat"}


def left(folder: Path) -> list[str]:
    """The processes of a compat job on all hosts: their namespaces are of this one."""
    mark = f"SEATRIAL_COMPAT={folder}".encode()
    found = []
    for each in Path("/proc").glob("[0-9]*/environ"):
        try:
            if mark in each.read_bytes():
                found.append((each.parent / "cmdline").read_text().replace("\0", " "))
        except OSError:
            continue
    return found


def started(place: Workplace) -> CompatStarted:
    (event,) = place.events("t", CompatStarted)
    return event


# ---- Grid Engine --------------------------------------------------------------------------------


@pytest.fixture
def quick(gridengine_place: Workplace) -> Workplace:
    gridengine_place.constants = {**QUICK, "plugins.gridengine.client.PATIENCE": 0.5}
    return gridengine_place


@pytest.mark.gridengine
@pytest.mark.needs("ssh", "sshd")
@pytest.mark.parametrize("mode", ["shim", "sshd"])
def test_ssh_reaches_each_host_of_a_job_of_grid_engine(
    quick: Workplace, cell: GridEngineCell, mode: str
) -> None:
    """Also where the job has one slot on each host, which a task has meanwhile."""
    quick.gridengine(cell, compat={"mode": mode})
    more = "echo input | ssh ${hosts[1]} cat\nssh -n ${hosts[1]} hostname\n"
    quick.test("two", SCRIPT + more + SIGNALS + LEFT, run=TWO, environment={"OWN": "mine"})
    done = quick.run("--name", "t", timeout=2 * LONG_S)
    assert done.code == 0, done.said
    run = quick.run_folder("two")
    hosts = (run / "compat/hosts").read_text().split()
    assert (run / "stdout").read_text().splitlines() == [
        *(*SAID, "input", hosts[1]),
        *(("137", "143") if mode == "shim" else ("255", "255")),
        "still there",
    ]
    assert len(set(hosts)) == 2
    event = started(quick)
    assert (event.answered, event.asked, event.mode) == (2, 2, mode)
    until(lambda: not left(run / "compat"), "nothing is left", LONG_S, lambda: str(left(run)))


@pytest.mark.gridengine
def test_a_job_of_grid_engine_that_is_deleted_leaves_nothing(
    quick: Workplace, cell: GridEngineCell
) -> None:
    script = (
        f"mapfile -t hosts < $SEATRIAL_COMPAT/hosts\n{LEFT}touch began; ssh ${{hosts[1]}} sleep 300"
    )
    quick.test("two", script, run=TWO)
    with quick.start_run("--name", "t") as driving:
        found: list[Path] = []

        def began() -> bool:
            found[:] = quick.trial("t").path.glob("runs/**/began") if quick.trials.exists() else []
            return bool(found)

        driving.until(began, "the script begins", 2 * LONG_S)
        (mark,) = found
        assert len(left(mark.parent / "compat")) > 2
        quick.seatrial("cancel", "t")
        driving.end()
    folder = mark.parent / "compat"
    until(lambda: not left(folder), "nothing is left", LONG_S, lambda: str(left(folder)))
    assert set(quick.verdicts().values()) == {"cancelled"}


@pytest.mark.gridengine
def test_an_mpi_starts_its_ranks_over_the_rsh_of_the_job(
    quick: Workplace, cell: GridEngineCell
) -> None:
    programs = Path(sys.executable).parent
    toolchain = {"cc": "cc", "mpicc": str(programs / "mpicc")}
    options = {"command": str(programs / "mpirun"), "options": ["--bind-to", "none"]}
    launcher = {"kind": "compat", "flavour": "openmpi", **options}
    quick.gridengine(cell, toolchains={"mpi": toolchain}, launcher=launcher, environment=OF_MPI)
    build = {"sources": ["hello.c"], "script": "$MPICC -o hello hello.c"}
    folder = quick.test("hello", "$LAUNCH $BUILD/hello", run={"nodes": 2, "tasks": 4}, build=build)
    shutil.copy(HELLO, folder)
    done = quick.run("--name", "t", timeout=2 * LONG_S)
    assert done.code == 0, done.said
    said = (quick.run_folder("hello") / "stdout").read_text()
    assert sorted(Counter(re.findall(r"node (\w+)", said)).values()) == [2, 2], said


@pytest.mark.gridengine
def test_by_hand_in_a_job_of_grid_engine(tmp_path: Path, cell: GridEngineCell) -> None:
    shown = tmp_path / "out"
    inside = "for host in $(< $SEATRIAL_COMPAT/hosts); do ssh -n $host hostname; done; exit 5"
    run = shlex.join([str(COMMAND), "compat", "run", "bash", "-c", inside])
    (tmp_path / "job.sh").write_text(f"cd {tmp_path}\n{run}\necho code $?\n")
    words = ["-terse", "-j", "y", "-o", str(shown), "-pe", "one", "2", "-S", "/bin/bash"]
    job = cell.run("qsub", *words, str(tmp_path / "job.sh")).strip()
    until(
        lambda: shown.exists() and "code" in shown.read_text(),
        "its end",
        2 * LONG_S,
        shown.read_text,
    )
    said = shown.read_text().splitlines()
    assert said[0].startswith(f"In compat job {job}: 2 of 2 nodes answered")
    assert len({*said[1:3]}) == 2 and said[3] == "code 5"
    until(lambda: not list(tmp_path.glob("compat-*")), "its directory is removed")


# ---- PBS, by commands that stand in for it -----------------------------------------------------


@pytest.fixture
def pbs(place: Workplace) -> Any:
    stand_in = StandIn(place.folder / "pbs")
    place.constants = dict(QUICK)
    place.pbs(stand_in, {"visible_after": "1s"}, compat={"wait": "3s"})
    yield stand_in
    stand_in.delete_all()


@pytest.mark.usefixtures("pbs")
def test_ssh_reaches_each_node_of_a_job_of_pbs(place: Workplace) -> None:
    more = "echo input | ssh ${hosts[1]} cat 2> said; echo $?; cut -c -31 said\n"
    place.test("two", SCRIPT + more + LEFT, run=TWO, environment={"OWN": "mine"})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    run = place.run_folder("two")
    refused = ["255", "ssh: pbs_tmrsh passes no input "]
    assert (run / "stdout").read_text().splitlines() == [*SAID, *refused]
    assert (started(place).answered, started(place).asked) == (2, 2)
    until(lambda: not left(run / "compat"), "nothing is left", LONG_S, lambda: str(left(run)))


def test_one_of_two_nodes_is_a_failure(place: Workplace, pbs: StandIn) -> None:
    (place.folder / "pbs/refusing").write_text("n002\n")
    place.test("two", "echo never", run=TWO)
    assert place.run("--name", "t").code == 1
    (judged,) = place.events("t", RunJudged)
    assert judged.verdict == "boot failure"
    assert "1 of 2 nodes answered" in judged.reason
    assert "no answer from n002" in judged.reason
    assert (started(place).answered, started(place).missing) == (1, "n002")


@pytest.mark.usefixtures("pbs")
def test_without_pbs_tmrsh_it_is_refused_in_words(place: Workplace) -> None:
    (place.folder / "pbs/pbs_tmrsh").unlink()
    place.test("two", "echo never", run=TWO)
    place.test("one", "ssh -n localhost 'exit 0'", run={"nodes": 1, "launcher": "compat"})
    assert place.run("--name", "t").code == 1
    assert "are reached by pbs_tmrsh, which is not on PATH here" in place.why("two")
    assert place.why("one") == ""


# ---- by hand, anywhere --------------------------------------------------------------------------


def by_hand(place: Workplace, **variables: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(COMMAND), "compat", "run", "true"],
        cwd=place.folder,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_job_whose_other_nodes_cannot_be_reached_is_no_cluster(place: Workplace) -> None:
    nodes = place.folder / "nodes"
    nodes.write_text("n001\nn002\n")
    done = by_hand(place, PBS_JOBID="77.srv", PBS_NODEFILE=str(nodes), PATH="/usr/bin:/bin")
    assert done.returncode == 95
    assert "other nodes of a job of PBS are reached by pbs_tmrsh" in done.stderr
    done = by_hand(place, PBS_JOBID="77.srv", PBS_NODEFILE=str(place.folder / "none"))
    assert done.returncode == 95
    assert "the nodes of job 77.srv are not known" in done.stderr
    done = by_hand(place, LSB_JOBID="5")
    assert done.returncode == 2
    assert "this is a job of LSF" in done.stderr
    assert not list(place.folder.glob("compat-*"))


class TestTasks:
    """The bash alone, with a `qrsh` of our own that starts programs on this host."""

    def run(self, folder: Path, qrsh: str, script: str, **settings: Any) -> tuple[int, str]:
        programs = folder / "bin"
        programs.mkdir()
        (programs / "qrsh").write_text(f"#!/bin/bash\n{qrsh}\n")
        (programs / "qrsh").chmod(0o755)
        hosts = folder / "pe"
        hosts.write_text("n001 1 all.q@n001 UNDEFINED\nn002 1 all.q@n002 UNDEFINED\n")
        given: dict[str, Any] = {"wait": 1, "nodes": "gridengine", **settings}
        write(folder / "compat", CompatSettings(**given), [])
        done = subprocess.run(
            ["bash", str(folder / "compat/compat.sh"), "run", "bash", "-c", script],
            env={
                "PATH": f"{programs}:{os.environ['PATH']}",
                "PE_HOSTFILE": str(hosts),
                "JOB_ID": "9",
            },
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        return done.returncode, done.stdout

    HERE = 'while [ "${1#-}" != "$1" ]; do shift; done; shift; exec "$@"'

    def test_a_job_of_fewer_hosts_than_were_asked_for(self, tmp_path: Path) -> None:
        code, said = self.run(tmp_path, self.HERE, "echo never", expect=3)
        assert (code, said) == (95, "seatrial: compat: the job has 2 of 3 nodes: n001 n002\n")

    def test_a_node_without_an_answer_is_named(self, tmp_path: Path) -> None:
        refusal = 'echo "error: executing task of job 9 failed" >&2; exit 1'
        code, said = self.run(tmp_path, refusal, "echo never")
        assert code == 96
        assert "1 of 2 nodes answered" in said and "no answer from n002" in said
        assert "executing task of job 9 failed" in said

    def test_a_command_that_gets_no_slot_did_not_run(self, tmp_path: Path) -> None:
        refusal = "echo error: executing task of job 9 failed >&2; exit 1"
        once = f"[ ! -e {tmp_path}/full ] || {{ {refusal}; }}\n{self.HERE}"
        script = (
            "sed -i 's/^wait=.*/wait=1/' $SEATRIAL_COMPAT/settings\n"
            "ssh -n n002 'echo first; exit 1'; echo $?\n"
            f"touch {tmp_path}/full; ssh -n n002 true; echo $?\n"
            "sed -i 's/^wait=.*/wait=20/' $SEATRIAL_COMPAT/settings\n"
            f"(sleep 0.7; rm {tmp_path}/full) & ssh -n n002 'echo later'; wait; exit 3"
        )
        code, said = self.run(tmp_path, once, script, wait=20)
        lines = said.splitlines()[1:]
        assert lines[:3] == [
            "first",
            "1",
            "ssh: n002 took no command within 1 s: each slot that the job has there may have one",
        ]
        assert lines[3:] == ["255", "later"]
        assert code == 3

    def test_input_that_would_hang_qrsh_is_refused(self, tmp_path: Path) -> None:
        script = (
            "head -c 60000 /dev/zero | ssh n002 'wc -c'; echo $?\n"
            "head -c 100000 /dev/zero | ssh n002 'cat > /dev/null; sleep 300'; echo $?"
        )
        code, said = self.run(tmp_path, self.HERE, script, wait=20)
        lines = said.splitlines()[1:]
        assert lines[:2] == ["60000", "0"]
        assert "takes no more than 60 KiB of input" in lines[2]
        assert lines[3:] == ["255"]
        assert code == 0
