"""Runs that are compat jobs: their nodes, a quorum of them, pieces, and what is told of them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from seatrial.journal.events import CompatStarted, RunJudged
from seatrial.plugins.guard import program
from seatrial.plugins.guard.launch_rules import LaunchRule
from tests.plugins.guard import programs_to_judge as programs
from tests.programs import LONG_S, Driving, Workplace
from tests.slurm.cluster import SlurmCluster
from tests.waiting import until

from .compat_jobs import GONE_S, LEFT, shown, with_mark

pytestmark = pytest.mark.needs("ssh")

EACH = """\
for host in $(cat "$SEATRIAL_COMPAT/hosts"); do
  ssh $host 'echo "$(hostname) $OWN $way"'
done
"""

OF_THREE = r"""
hosts=$(< "$SEATRIAL_COMPAT/hosts")
for host in $hosts; do ssh $host hostname; done
ssh $(scontrol show hostnames "$SLURM_JOB_NODELIST" | tail -n 1) true; echo $?
size='echo "$NODELIST: $NODES nodes, $TASKS tasks, ${LAUNCH%% --host*}"'
ssh ${hosts##*$'\n'} "$size"
eval "$size"
cat "$HOSTFILE"
cut -d ' ' -f 2 job.rankfile
ssh ${hosts##*$'\n'} "setsid sleep 300 > /dev/null 2>&1 < /dev/null &"
"""


@pytest.mark.slurm(hosts=True)
def test_native_and_compat_are_an_axis(slurm_place: Workplace) -> None:
    place = slurm_place
    run = {"nodes": 2, "tasks": 2, "launcher": "way"}
    ways = {"way": ["compat", "none"]}
    script = f'[ "$way" = none ] && exit 0\n{EACH}{LEFT}'
    place.test("two", script, run=run, environment={"OWN": "mine"}, parameters=ways)
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    place.audit("t")
    (started,) = place.events("t", CompatStarted)
    names = {case.id: case.name for case in place.trial("t").cases()}
    assert "way=compat" in names[started.case]
    assert (started.answered, started.asked, started.mode) == (2, 2, "shim")
    assert started.text == f"2 of 2 nodes answered in {started.seconds} s"
    folder = place.trial("t").run("two", started.run_id)
    said = [line.split(" ", 1) for line in (folder / "stdout").read_text().splitlines()]
    hosts = (folder / "compat/hosts").read_text().split()
    assert said == [[host, "mine compat"] for host in hosts]
    assert f"nodes answered in {started.seconds} s" in (folder / "stderr").read_text()
    assert (folder / "compat").stat().st_mode & 0o777 == 0o700
    until(lambda: not with_mark(f"SEATRIAL_RUN={started.run_id}"), "its processes to end", GONE_S)
    assert f"shim: {started.text}" in place.seatrial("show", started.run_id).out


@pytest.mark.slurm(hosts=True)
def test_a_node_that_does_not_answer(place: Workplace, cluster: SlurmCluster) -> None:
    # A real srun, with which the last node of the job starts something else.
    fake = place.folder / "bin" / "srun"
    fake.parent.mkdir()
    fake.write_text(
        "#!/bin/bash\n"
        '[ "${@:$#}" = node ] || exec /usr/bin/srun "$@"\n'
        "node='[ $SEATRIAL_COMPAT_ATTEMPT$((SLURM_PROCID + 1)) = 1$SLURM_NTASKS ] ||\n"
        'exec bash "$0" node; exec sleep 300\'\n'
        'exec /usr/bin/srun "${@:1:$#-3}" bash -c "$node" "${@:$#-1:1}"\n'
    )
    fake.chmod(0o755)
    setup = f"export PATH={fake.parent}:$PATH"
    chain = {"launcher": {"kind": "mpirun", "flavour": "openmpi"}}
    kind = {"names": ",".join(cluster.node_names), "cores": 4, "layout": "pack:2 core:2 pu:1"}
    about: dict[str, Any] = {"nodes": [kind], "toolchains": {"openmpi": chain}}
    place.slurm(cluster, compat={"wait": "2s", "quorum": 2}, setup=setup, **about)
    place.test("two", "echo ran", run={"nodes": 2, "launcher": "compat"})
    asked = {"nodes": 3, "tasks": 9, "spread": "socket", "bind": "socket"}  # so by a rankfile
    place.test("three", OF_THREE, run={**asked, "launcher": "compat"})
    ordered = {"nodes": 4, "tasks": 8, "order": "folded", "launcher": "compat"}
    place.test("four", "echo ran", run=ordered)
    assert place.run("--name", "t").code == 1
    of = {event.asked: event for event in place.events("t", CompatStarted)}
    verdicts = {judged.run_id: judged for judged in place.events("t", RunJudged)}
    hosts, said = _went_on(place, of[3])
    assert verdicts[of[3].run_id].verdict == "pass", said
    size = f"{','.join(hosts)}: 2 nodes, 6 tasks, mpirun -n 6"
    slots = [f"{host} slots=3" for host in hosts]
    assert said == [
        *hosts,
        "255",
        size,
        size,
        *slots,
        *(f"{rank}=+n{rank // 3}" for rank in range(6)),
    ]
    assert of[3].missing not in hosts

    assert (of[4].answered, verdicts[of[4].run_id].verdict) == (3, "boot failure")
    assert "run.order places ranks on 4 nodes; 3 answered" in verdicts[of[4].run_id].reason
    event, judged = of[2], verdicts[of[2].run_id]
    assert (event.answered, event.asked) == (1, 2)
    assert judged.verdict == "boot failure"
    assert f"no answer from {event.missing}" in judged.reason
    folder = place.run_folder("two")
    assert event.missing == (folder / "compat/hosts").read_text().split()[-1]
    assert (folder / "stdout").read_text() == ""
    assert judged.time - event.time < 20e9, "nothing is awaited that cannot come"
    marks = [f"SEATRIAL_RUN={run}" for run in verdicts]
    until(lambda: not any(map(with_mark, marks)), "their processes to end", GONE_S)


def _went_on(place: Workplace, event: CompatStarted) -> tuple[list[str], list[str]]:
    """The hosts of a run that went on with a quorum, and what it wrote."""
    folder = place.trial("t").run("three", event.run_id)
    assert (event.answered, event.asked) == (2, 3)
    assert f"; no answer from {event.missing}" in event.text
    assert event.text.endswith("; the job goes on without, as its quorum is 2")
    assert event.text in (folder / "stderr").read_text()
    hosts = (folder / "compat/hosts").read_text().split()
    assert len(hosts) == 2
    return hosts, (folder / "stdout").read_text().splitlines()


PIECE = r"""
read -r host < "$SEATRIAL_COMPAT/hosts"
ssh $host 'echo "$PIECE" >> "$ROOM/began"; setsid sleep 300 > /dev/null 2>&1 < /dev/null &'
until [ -e "$ROOM/go" ]; do sleep 0.05; done
[ "$PIECE" != 2 ] || ssh $host 'echo; exec sleep 300'
"""


@pytest.mark.slurm(hosts=True)
def test_pieces_a_killed_driver_and_a_walltime(slurm_place: Workplace) -> None:
    place = slurm_place
    run = {"nodes": 1, "pieces": 3, "at_once": 2, "walltime": "8s", "launcher": "compat"}
    place.test("part", PIECE, run=run, environment={"ROOM": str(place.folder)})
    began = place.folder / "began"
    driver = place.start_run("--name", "t")
    driver.until(lambda: began.exists() and len(began.read_text().split()) == 2, "two pieces")
    driver.kill()
    (place.folder / "go").touch()
    assert place.resume().code == 1
    place.audit("t")
    judged = place.events("t", RunJudged)
    assert sorted(one.verdict for one in judged) == ["pass", "pass", "timeout"]
    (late,) = (one.reason for one in judged if one.verdict == "timeout")
    assert late.startswith("it reached its walltime of 8 s")
    assert sorted(began.read_text().split()) == ["1", "2", "3"], "each ran once"
    assert len(place.events("t", CompatStarted)) == 3
    until(lambda: not with_mark(f"ROOM={place.folder}"), "their processes to end", GONE_S)


MOMENTS = (
    *("journal.jsonl", "submissions/*/submit.sh", "submissions/*/answer", "runs/two/*/job.sh"),
    *("runs/two/*/events.jsonl", "runs/two/*/compat/log", "runs/two/*/compat/attempt"),
    *("runs/two/*/compat/answered", "runs/two/*/began", "runs/two/*/compat/over"),
)
"""Files that come one after the other in the life of a compat job."""

LEAVING = f"""\
other=$(tail -n 1 "$SEATRIAL_COMPAT/hosts")
: > began
{LEFT.replace("n002", "$other")}
ssh "$other" hostname
"""


@pytest.mark.slurm(hosts=True)
@pytest.mark.needs("sshd")
def test_a_driver_that_is_killed_at_ten_moments(tmp_path: Path, cluster: SlurmCluster) -> None:
    """Each of ten trials is killed at a moment. Half are resumed while their jobs go on, the others
    when these have ended, with which everything of them must be gone."""
    places, waiting = [], {}
    for number, moment in enumerate(MOMENTS):
        place = Workplace(tmp_path / f"{number}")
        place.folder.mkdir()
        place.slurm(cluster, compat={"mode": ("shim", "sshd")[number // 2 % 2]})
        place.constants = {"execute.batch.batch.SHORTEST_POLL": 0.2}
        place.test("two", LEAVING, run={"nodes": 2, "launcher": "compat"})
        waiting[place.start_run("--name", "t")] = (place, moment)
        places.append(place)
    killed = []

    def kill() -> bool:
        for driver, (place, moment) in [*waiting.items()]:
            if any(place.trial().path.glob(moment)) or not driver.alive:
                killed.append(driver.alive)
                driver.kill()
                del waiting[driver]
        return not waiting

    def end(drivers: list[Driving]) -> None:
        for driver in drivers:
            done = driver.end(2 * LONG_S)
            assert done.code == 0, done.said
        gone()

    def gone() -> None:
        until(
            lambda: not of_trials(tmp_path),
            "all to end",
            GONE_S,
            lambda: shown(of_trials(tmp_path)),
        )

    until(kill, "the moments", 2 * LONG_S)
    assert sum(killed) >= 6, "most drivers had work to do"
    resumed = [place.start("resume", "t") for place in places[::2]]
    until(lambda: not cluster.run("squeue", "-h"), "the jobs to end", 2 * LONG_S)
    gone()
    end(resumed)
    end([place.start("resume", "t") for place in places[1::2]])
    for place in places:
        place.audit("t")
        assert [judged.verdict for judged in place.events("t", RunJudged)] == ["pass"]


def of_trials(folder: Path) -> list[int]:
    """The processes of the compat jobs of trials, also sshd, which overwrites its environment."""
    return [*with_mark(f"SEATRIAL_COMPAT={folder}/"), *with_mark(f"{folder}/", "cmdline")]


def test_this_host_is_a_cluster_of_one(place: Workplace) -> None:
    place.env["HOME"] = "/proc"  # a home that cannot be written
    script = EACH + "ssh elsewhere true || echo refused: $?; rsh $(hostname) 'echo $colour'"
    place.test("one", script, defaults={"colour": "red"}, run={"launcher": "compat"})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    (judged,) = place.events("t", RunJudged)
    folder = place.trial("t").run("one", judged.run_id)
    assert (folder / "stdout").read_text() == f"{os.uname().nodename}  \nrefused: 255\nred\n"
    assert "ssh: elsewhere is no node of this compat job" in (folder / "stderr").read_text()
    (started,) = place.events("t", CompatStarted)
    assert (started.answered, started.asked) == (1, 1)
    assert not with_mark(f"SEATRIAL_RUN={judged.run_id}")


@pytest.mark.needs("sshd")
def test_what_keeps_a_job_from_starting_is_the_reason(place: Workplace) -> None:
    place.local(compat={"mode": "sshd"})
    place.test("one", "echo ran", run={"launcher": "compat"})
    place.folder.chmod(0o775)
    assert place.run("--name", "t").code == 1
    (judged,) = place.events("t", RunJudged)
    assert judged.verdict == "failed"
    assert judged.reason.startswith(f"compat: {place.folder} can be written by its group or by all")
    assert not place.events("t", CompatStarted)
    assert place.ran() == []


@pytest.mark.usefixtures("quick_compiler")
def test_the_guard_of_the_site_is_asked_in_a_compat_job(place: Workplace, tmp_path: Path) -> None:
    """Slurm's filter sees `enter` alone, and the launcher starts programs of other nodes by rsh."""
    rule = LaunchRule(name="no-mpt2", refuse='name == "mpt2.x"', message="No MPT 2.")
    site = tmp_path / "a site"
    program.write(site, [rule])
    programs.compiled(tmp_path / "bin", "mpt2.x", programs.PLAIN)
    programs.compiled(tmp_path / "bin", "good.x", programs.PLAIN)
    place.local(guard=str(site))
    script = f"""
      name=mpt2.x h=$(< "$SEATRIAL_COMPAT/hosts")
      ssh $h "cd {tmp_path}/bin; ./mpt2.x"; echo $?
      ssh $h "A=1 env B=2 '{tmp_path}/bin/$name'"; echo $?
      ssh $h {tmp_path}/bin/good.x; echo $?
      PATH=$PATH:{tmp_path}/bin mpirun --mca plm_ssh_agent rsh mpt2.x; echo $?
    """
    place.test("compat", script, run={"launcher": "compat"})
    place.run("--name", "t")
    folder = place.run_folder("compat")
    said = (folder / "stderr").read_text()
    assert (folder / "stdout").read_text().split() == ["1", "1", "0", "1"], said
    assert said.count("No MPT 2. (rule no-mpt2)") == 3
    assert f"seatrial: compat: refuse: {tmp_path}/bin/mpt2.x: No MPT 2." in said
    assert len(list(program.log_entries(site))) == 3
