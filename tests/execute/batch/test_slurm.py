"""The Slurm backend, through the command, on a real Slurm: arrays, end states, lies and outages."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import signal
import subprocess
import time
from collections import Counter, defaultdict
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from seatrial.execute.batch.slurm import SlurmClient
from seatrial.journal.events import (
    AlertRaised,
    JobEnded,
    JobQueued,
    RunJudged,
    RunSubmitted,
    ScriptStarted,
    TrialCancelled,
    TrialPaused,
    TrialResumed,
    TrialStarted,
)
from seatrial.model.machine import Machine, NodeGroup
from tests.gates import wait_for
from tests.programs import LONG_S, Driving, Workplace, until
from tests.slurm.cluster import ClusterOptions, ClusterPair, SlurmCluster

pytestmark = pytest.mark.slurm

QUICK = {
    "execute.batch.batch.SHORTEST_POLL": 0.2,
    "execute.batch.batch.POLL_SHARE": 4.0,
    "execute.batch.submitter.LONGEST_BACK_OFF": 0.5,
    "execute.batch.scheduler_client.QUERY_SECONDS": 3.0,
    "execute.batch.scheduler_client.CALM_SECONDS": 0.2,
}
ECHO = {"script": "echo ok", "verify": [{"contains": "ok"}]}

# In front of a command of Slurm's: each call takes one line of the file of lies, if there is one.
# A line that begins with "always" stays. Honest calls are passed on.
LIAR = """\
#!/bin/bash
lies={lies}; real={real}
read -r lie < $lies 2> /dev/null || lie=none
[ "${{lie#always }}" = "$lie" ] && [ -s $lies ] && sed -i 1d $lies
lie=${{lie#always }}
echo "$lie" >> $lies.told
case $lie in
  fail) echo 'error: Unable to contact slurm controller (connect failure)' >&2; exit 1 ;;
  hang) exec sleep 1000 ;;
  empty) exit 0 ;;
  garbage) head -c 400 /dev/urandom; exit 0 ;;
  digits) printf '\\377\\0\\n7\\n'; exit 0 ;;
  html) echo '<html><body>502 Bad Gateway</body></html>'; exit 0 ;;
  half) said=$("$real" "$@"); echo "${{said:0:$((${{#said}} - 12))}}" | head -c -1; exit 0 ;;
  mute) "$real" "$@" > /dev/null; exit 0 ;;
  late) "$real" "$@" > /dev/null
    echo 'Batch job submission failed: Socket timed out on send/recv operation' >&2; exit 1 ;;
  twice) "$real" "$@" > /dev/null; exec "$real" "$@" ;;
  twice_slowly) "$real" "$@" > /dev/null; sleep 3; exec "$real" "$@" ;;
  unknown) case "$*" in *'show job'*)
      echo 'slurm_load_jobs error: Invalid job id specified' >&2; exit 1 ;;
    esac
    exec "$real" "$@" ;;
  *) exec "$real" "$@" ;;
esac
"""


class Liar:
    """Stands in front of a command of Slurm's and lies when told to."""

    def __init__(self, place: Workplace, program: str) -> None:
        folder = place.folder / "liars"
        folder.mkdir(exist_ok=True)
        self.lies = folder / f"{program}.lies"
        script = folder / program
        script.write_text(LIAR.format(lies=self.lies, real=shutil.which(program)))
        script.chmod(0o755)
        place.env["PATH"] = f"{folder}:{os.environ['PATH']}"

    def tell(self, *lies: str) -> None:
        self.lies.write_text("".join(f"{lie}\n" for lie in lies))

    def always(self, lie: str) -> None:
        self.tell(f"always {lie}")

    def told(self) -> Counter[str]:
        try:
            return Counter(Path(f"{self.lies}.told").read_text().split())
        except FileNotFoundError:
            return Counter()


def gated(place: Workplace, cases: int = 4) -> Path:
    """A test whose runs wait until the gate is there."""
    gate = place.folder / "gate"
    script = f"{wait_for(gate)}; echo ok"
    place.test("wait", script, parameters={"n": f"range(0, {cases})"}, verify=[{"contains": "ok"}])
    return gate


def started(place: Workplace, cases: int = 4) -> Driving:
    driving = place.start_run("--name", "t")
    driving.until(lambda: len(place.ran()) == cases, "the runs")
    return driving


def all_passed(place: Workplace, driving: Driving, cases: int = 4) -> None:
    done = driving.end()
    assert done.code == 0, done.said
    tally = Counter(event.verdict for event in place.events("t", RunJudged))
    assert tally == {"pass": cases}
    place.audit()


def arrays(place: Workplace, cluster: SlurmCluster) -> dict[str, set[str]]:
    """By Slurm's own list: the ids of the arrays of every submission of the trial."""
    shown = cluster.run("squeue", "-h", "--array", "-t", "all", "--Format=ArrayJobID:|,Name:|")
    names = {event.submission for event in place.events("t", RunSubmitted)}
    found: dict[str, set[str]] = defaultdict(set)
    for line in shown.splitlines():
        array, name = (field.strip() for field in line.split("|")[:2])
        if name in names:
            found[name].add(array)
    return found


@pytest.fixture
def quick(slurm_place: Workplace) -> Workplace:
    """On the shared cluster, asking often."""
    slurm_place.constants = dict(QUICK)
    return slurm_place


def ends_in(runs: Path) -> int:
    """Return how many runs have written their ends."""
    return sum("execute_end" in file.read_text() for file in runs.glob("*/events.jsonl"))


# ---- arrays ------------------------------------------------------------------------------------


def test_twenty_cases_of_one_shape_are_one_array(quick: Workplace, cluster: SlurmCluster) -> None:
    quick.test("many", parameters={"n": "range(0, 20)"})
    done = quick.run("--name", "t")
    assert done.code == 0, done.said
    (ids,) = arrays(quick, cluster).values()
    assert len(ids) == 1
    quick.audit()


def test_shapes_have_arrays_of_their_own(quick: Workplace, cluster: SlurmCluster) -> None:
    quick.test("many", "echo $SLURM_JOB_NUM_NODES $SLURM_NTASKS $SLURM_CPUS_PER_TASK",
               parameters={"n": [1, 2], "m": [1, 2, 3]},
               run={"nodes": "n", "tasks_per_node": 2, "threads_per_task": 2})  # fmt: skip
    done = quick.run("--name", "t")
    assert done.code == 0, done.said
    assert len(arrays(quick, cluster)) == 2
    said = Counter(p.read_text() for p in quick.trial().path.glob("runs/many/*/stdout"))
    assert said == {"1 2 2\n": 3, "2 4 2\n": 3}


def test_arrays_keep_within_the_largest_that_slurm_takes(place: Workplace) -> None:
    options = ClusterOptions(nodes=2, cores=8, max_array_size=4)
    with SlurmCluster(place.folder / "cluster", options) as cluster:
        place.slurm(cluster)
        place.constants = dict(QUICK)
        place.test("many", parameters={"n": "range(0, 9)"})
        done = place.run("--name", "t")
        assert done.code == 0, done.said
        assert len(arrays(place, cluster)) == 3
    place.audit()


def test_an_array_is_found_again_after_a_kill(quick: Workplace, cluster: SlurmCluster) -> None:
    gate = gated(quick, 6)
    with started(quick, 6) as driving:
        driving.kill()
    with quick.start("resume", "t") as driving:
        driving.until(lambda: quick.count(TrialResumed) == 1, "the resume")
        gate.touch()
        all_passed(quick, driving, 6)
    assert all(len(ids) == 1 for ids in arrays(quick, cluster).values())


@pytest.mark.parametrize("how", ["link", "moved"])
def test_jobs_whose_ids_were_not_noted_are_found_by_whatever_path(
    quick: Workplace, cluster: SlurmCluster, how: str
) -> None:
    """The driver is killed before it knows the job id; the trial is resumed by another path."""
    liar = Liar(quick, "sbatch")
    liar.tell("mute")
    quick.constants["execute.batch.submitter.SHORTEST_BACK_OFF"] = 100.0
    quick.test("a", "echo ok", parameters={"n": "range(0, 4)"})
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: quick.count(AlertRaised) > 0, "sbatch to have answered nothing")
        runs = quick.trial().path / "runs/a"
        until(lambda: ends_in(runs) == 4, "the ends")
        driving.kill()
    assert quick.count(JobQueued) == 0
    other = quick.folder / "scratch"
    if how == "link":
        other.symlink_to("trials")
    else:
        quick.trials = quick.trials.rename(other)
    done = quick.seatrial("--trials", str(other), "resume", "t")
    assert done.code == 0, done.said
    assert {event.verdict for event in quick.events("t", RunJudged)} == {"pass"}
    quick.audit()
    (ids,) = arrays(quick, cluster).values()
    assert len(ids) == 1
    assert {event.job_id.partition("_")[0] for event in quick.events("t", JobQueued)} == ids
    assert "unfollowed" not in [event.kind for event in quick.events("t", AlertRaised)]


def test_jobs_that_ended_meanwhile_are_settled_at_resume(quick: Workplace) -> None:
    gate = gated(quick)
    with started(quick) as driving:
        driving.kill()
    gate.touch()
    ends = list(quick.trial().path.glob("runs/wait/*/events.jsonl"))
    until(lambda: all("execute_end" in file.read_text() for file in ends), "the ends")
    with quick.start("resume", "t") as driving:
        all_passed(quick, driving)


def test_what_waits_when_a_blackout_begins_is_taken_back_and_runs_later(
    quick: Workplace,
) -> None:
    gate = quick.folder / "gate"
    quick.test("wait", wait_for(gate), parameters={"n": "range(0, 10)"}, run={"exclusive": True})
    blackout = {"from": "8s", "to": "12s"}  # the others have long begun by then
    component = {"component": "c", "tests": ["wait"], "blackouts": [blackout]}
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": [component]}
    (quick.folder / "plan.yaml").write_text(yaml.safe_dump(plan))
    with quick.start("accept", "plan.yaml") as driving:
        driving.until(lambda: quick.count(RunJudged, tag="p-c") == 2, "the two that waited")
        gate.touch()
        done = driving.end()
    assert done.code == 0, done.said
    judged = quick.events("p-c", RunJudged)
    assert Counter(event.verdict for event in judged) == {"recalled": 2, "pass": 10}
    assert [event.verdict for event in judged if event.will_rerun] == ["recalled"] * 2
    recalled = {event.run_id for event in quick.events("p-c", JobEnded) if event.recalled}
    assert recalled == {event.run_id for event in judged if event.verdict == "recalled"}
    start = quick.events("p-c", TrialStarted)[0].time
    begins = [(e.time - start) / 1e9 for e in quick.events("p-c", ScriptStarted)]
    assert sorted(begin > 12 for begin in begins) == [False] * 8 + [True] * 2
    assert len(quick.events("p-c", TrialStarted)) == 1


def test_what_slurm_refuses_is_told_in_its_words(quick: Workplace, cluster: SlurmCluster) -> None:
    quick.slurm(cluster, {"partition": "nowhere"})
    quick.test("a", parameters={"n": [1, 2]})
    done = quick.run("--name", "t")
    assert done.code == 1, done.said
    assert set(quick.verdicts().values()) == {"launch failed"}
    assert "invalid partition" in quick.why("a")
    assert quick.ran() == []


# ---- end states --------------------------------------------------------------------------------


def test_a_waiting_run_that_is_cancelled_by_its_task_id_is_cancelled(
    quick: Workplace, cluster: SlurmCluster
) -> None:
    """Although Slurm then forgets the number of the only task."""
    quick.slurm(cluster, {"options": ["--hold"]})
    quick.test("a")
    with quick.start_run("--name", "t") as driving:
        driving.until(quick.more(0, JobQueued), "the job")
        cluster.run("scancel", quick.events("t", JobQueued)[0].job_id)
        done = driving.end()
    assert done.code == 1, done.said
    assert quick.verdicts() == {"a": "cancelled"}


def test_every_end_state_becomes_its_code(place: Workplace) -> None:
    """One run for each node, pinned to it; each comes to another end."""
    with SlurmCluster(place.folder / "cluster", ClusterOptions(nodes=8)) as cluster:
        place.slurm(cluster, {"options": ["--requeue"], "visible_after": "1s"})
        place.constants = QUICK
        gates = place.folder / "gates"
        gates.mkdir()
        script = (
            'echo "$SLURM_JOB_NODELIST"\n'
            f"{wait_for(gates / '$SLURM_JOB_NODELIST')}\n"
            f'exit "$(cat {gates}/$SLURM_JOB_NODELIST)"'
        )
        place.test("end", script, logs=False, run={"scope": "each_node", "exclusive": True})
        with place.start_run("--name", "t") as driving:
            stdout = place.trial().path / "runs" / "end"
            driving.until(lambda: len(list(stdout.glob("*/stdout"))) == 8, "eight jobs")
            driving.until(lambda: all(p.read_text() for p in stdout.glob("*/stdout")), "nodes")
            jobs = {
                (stdout / event.run_id / "stdout").read_text().strip(): event.job_id
                for event in place.events("t", JobQueued)
            }
            assert sorted(jobs) == cluster.node_names
            array = {node: job.partition("_")[0] for node, job in jobs.items()}
            cluster.time_out(jobs["n001"])
            cluster.out_of_memory(array["n002"])
            urgent = ("-p", "urgent", "-w", "n003", "--exclusive", "-o", "/dev/null")
            cluster.run("sbatch", *urgent, "--wrap", "true")
            cluster.run("scancel", jobs["n004"])
            cluster.run("scontrol", "update", f"jobid={jobs['n005']}", "requeue=0")
            cluster.kill_node("n005", declare_down=True)
            cluster.run("scontrol", "requeue", jobs["n006"])
            # A node refuses the credential of the second in which it saw the job ended.
            again = time.monotonic() + 3.0
            until(lambda: time.monotonic() > again, "its credential to be renewed")
            until(lambda: "PENDING" in cluster.job_state(jobs["n006"]), "it to be queued again")
            cluster.run("scontrol", "update", f"jobid={jobs['n006']}", "starttime=now")
            for node, code in {"n006": "0", "n007": "5", "n008": "0"}.items():
                (gates / "making").write_text(code)
                (gates / "making").rename(gates / node)
            done = driving.end(4 * LONG_S)  # TIMEOUT takes 30 s
    assert done.code == 1, done.said
    assert {name.partition("%")[2]: verdict for name, verdict in place.verdicts().items()} == {
        "n001": "timeout",
        "n002": "out of memory",
        "n003": "preempted",
        "n004": "cancelled",
        "n005": "node failure",
        "n006": "pass",
        "n007": "failed",
        "n008": "pass",
    }
    whys = {event.verdict: event.reason for event in place.events("t", RunJudged)}
    assert "TIMEOUT on n001" in whys["timeout"]
    assert "NODE_FAIL on n005" in whys["node failure"]
    assert "5" in whys["failed"]
    said = {event.verdict: event.cause_line for event in place.events("t", RunJudged)}
    assert said["timeout"].startswith("scheduler: slurmstepd-n001: error: *** JOB ")
    causes = {event.verdict: event.cause for event in place.events("t", RunJudged)}
    assert causes["timeout"] == "time limit of the job or step", "as slurmstepd says it"
    assert causes["pass"] == causes["cancelled"] == ""


# ---- lies --------------------------------------------------------------------------------------


def test_a_queue_that_lies_ends_nothing(quick: Workplace) -> None:
    liar = Liar(quick, "squeue")
    gate = gated(quick)
    quick.constants["execute.batch.scheduler_client.QUERY_SECONDS"] = 1.5
    with started(quick) as driving:
        for lie in ("fail", "hang", "garbage", "html", "half"):
            liar.always(lie)
            driving.until(lambda lie=lie: liar.told()[lie] >= 2, f"it to be told twice: {lie}")  # type: ignore[misc]
        liar.always("empty")  # which might be true
        driving.until(lambda: liar.told()["empty"] >= 3, "three empty answers")
        liar.tell()
        honest = liar.told()["none"]
        driving.until(lambda: liar.told()["none"] >= honest + 2, "honest answers")
        assert quick.count(JobEnded) == 0
        assert quick.count(RunJudged) == 0
        driving.until(lambda: "squeue answers again" in quick.alerts(), "word of it")
        gate.touch()
        all_passed(quick, driving)
    assert "connect failure" in quick.alerts()


def test_jobs_end_although_the_queue_never_shows_them(quick: Workplace) -> None:
    """As when the controller has forgotten them: their own events say how they ended."""
    liar = Liar(quick, "squeue")
    gate = gated(quick)
    with started(quick) as driving:
        liar.always("empty")
        gate.touch()
        all_passed(quick, driving)


def test_a_job_that_vanished_is_called_lost_and_runs_again(
    quick: Workplace, cluster: SlurmCluster
) -> None:
    quick.slurm(cluster, {"lost_after": "1s"})
    liar = Liar(quick, "squeue")
    gate = gated(quick, 1)
    with started(quick, 1) as driving:
        driving.kill()
    job = quick.events("t", JobQueued)[0].job_id
    cluster.run("scancel", job)
    until(lambda: cluster.job_state(job) == "CANCELLED", "the end")
    liar.always("empty")
    controller = Liar(quick, "scontrol")
    controller.always("unknown")
    gate.touch()
    with quick.start("resume", "t") as driving:
        driving.until(lambda: quick.count(RunJudged) == 1, "it to be called lost")
        liar.tell()  # of its next run they say how it is
        controller.tell()
        done = driving.end()
    assert done.code == 0, done.said
    assert "lost" in done.out
    ends = [event.verdict for event in quick.events("t", RunJudged)]
    assert ends == ["lost", "pass"]
    quick.audit()


def test_an_sbatch_that_lies_doubles_nothing(quick: Workplace, cluster: SlurmCluster) -> None:
    liar = Liar(quick, "sbatch")
    quick.constants["execute.batch.scheduler_client.SUBMIT_SECONDS"] = 1.0
    quick.test("a", "echo ok", parameters={"n": [1, 2, 3]})
    liar.tell("fail", "html", "garbage", "digits", "hang", "empty", "mute")
    with quick.start_run("--name", "t") as driving:
        all_passed(quick, driving, 3)
    assert liar.told()["mute"] == 1  # it was submitted, and found by its name
    (ids,) = arrays(quick, cluster).values()
    assert len(ids) == 1
    assert "connect failure" in quick.alerts()


def test_an_sbatch_that_timed_out_but_was_heard_doubles_nothing(
    quick: Workplace, cluster: SlurmCluster
) -> None:
    liar = Liar(quick, "sbatch")
    queue = Liar(quick, "squeue")
    quick.test("a", "echo ok", parameters={"n": [1, 2, 3]})
    liar.tell("late")
    queue.tell("fail", "garbage")
    with quick.start_run("--name", "t") as driving:
        all_passed(quick, driving, 3)
    (ids,) = arrays(quick, cluster).values()
    assert len(ids) == 1
    assert "timed out" in quick.alerts()


def test_where_a_run_was_is_the_schedulers_word(quick: Workplace, cluster: SlurmCluster) -> None:
    forged = '{"event":"binary_execute_start","time":%s999999999,"nodes":"n003","job_id":"1"}\\n'
    quick.test("a", f"printf '{forged}' $EPOCHSECONDS >> events.jsonl; hostname -s; echo ok")
    with quick.start_run("--name", "t") as driving:
        all_passed(quick, driving, 1)
    placed = {event.nodes for event in quick.events("t", JobEnded)}
    assert {event.nodes for event in quick.events("t", ScriptStarted)} == placed, "the first counts"
    (run,) = json.loads(quick.seatrial("runs", "--format", "json").out)
    assert {run["nodes"]} == placed != {"n003"}


@pytest.mark.parametrize(("lie", "cases"), [("twice", 4), ("twice_slowly", 2), ("twice", 12)])
def test_what_was_submitted_twice_runs_once_and_people_are_told(
    quick: Workplace, cluster: SlurmCluster, lie: str, cases: int
) -> None:
    liar = Liar(quick, "sbatch")
    gate = gated(quick, cases)
    liar.tell(lie)
    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: bool(quick.ran()), "the first run")
        driving.until(lambda: "was submitted twice" in quick.alerts(), "people to be told")
        gate.touch()
        all_passed(quick, driving, cases)
    assert len(quick.ran()) == len(set(quick.ran())) == cases
    (ids,) = arrays(quick, cluster).values()
    assert len(ids) == 2
    told = [e.subject for e in quick.events("t", AlertRaised) if e.kind == "doubled"]
    assert told == list(arrays(quick, cluster))
    (name,) = arrays(quick, cluster)
    until(lambda: not cluster.run("squeue", "-h", "-n", name).strip(), "the others to be gone")


def test_people_are_told_of_second_jobs_that_ended_between_two_polls(
    quick: Workplace, cluster: SlurmCluster
) -> None:
    """They found the directories of their runs claimed, and were gone before anybody asked."""
    Liar(quick, "sbatch").tell("twice")
    queue = Liar(quick, "squeue")
    queue.always("fail")
    gate = gated(quick, 2)

    def second_jobs_have_ended() -> bool:
        names = {event.submission for event in quick.events("t", RunSubmitted)}
        shown = cluster.run("squeue", "-h", "--array", "-t", "all", "--Format=Name:|,StateCompact")
        rows = [line.split("|") for line in shown.splitlines()]
        return [state.strip() for name, state in rows if name in names].count("F") == 2

    with quick.start_run("--name", "t") as driving:
        driving.until(lambda: bool(quick.ran()), "the first run")
        driving.until(second_jobs_have_ended, "the second jobs to end")
        queue.tell()
        driving.until(lambda: "was submitted twice" in quick.alerts(), "people to be told")
        gate.touch()
        all_passed(quick, driving, 2)
    assert len(quick.ran()) == len(set(quick.ran())) == 2


def test_a_submission_that_a_person_repeats_runs_once_where_the_driver_is_in_a_requeued_job(
    quick: Workplace, cluster: SlurmCluster
) -> None:
    """The variables of the driver's own job do not reach the jobs of the runs."""
    outer = {"SLURM_RESTART_COUNT": "1", "SLURM_JOB_ID": "4711", "SLURM_ARRAY_JOB_ID": "4711"}
    quick.env |= {**outer, "SLURM_ARRAY_TASK_ID": "5", "SLURM_MEM_PER_NODE": "1"}
    gate = gated(quick, 2)
    with started(quick, 2) as driving:
        (script,) = quick.trial().submissions.glob("*/submit.sh")
        environment = {**os.environ, **quick.env}  # as if the person was in that job, too
        subprocess.run(["bash", str(script)], env=environment, check=True, capture_output=True)
        driving.until(lambda: "was submitted twice" in quick.alerts(), "people to be told")
        gate.touch()
        all_passed(quick, driving, 2)
    assert len(quick.ran()) == 2
    (name,) = arrays(quick, cluster)
    until(lambda: not cluster.run("squeue", "-h", "-n", name).strip(), "the others to be gone")
    assert len(quick.ran()) == 2
    for file in quick.trial().path.glob("runs/wait/*/job.environment"):
        assert "4711" not in file.read_text()


# ---- outages -----------------------------------------------------------------------------------


@pytest.fixture
def frail(place: Workplace) -> Iterator[SlurmCluster]:
    """A cluster of the test's own, whose controller may be ended or frozen."""
    options = ClusterOptions(nodes=2, message_timeout_s=2)
    with SlurmCluster(place.folder / "cluster", options) as cluster:
        place.slurm(cluster)
        place.constants = dict(QUICK)
        yield cluster


def test_a_controller_that_is_frozen_while_jobs_are_submitted(
    place: Workplace, frail: SlurmCluster
) -> None:
    """sbatch gives up, the controller hears it when it thaws: submitted once, run once."""
    place.test("a", "echo ok", parameters={"n": [1, 2, 3]})
    frail.freeze_controller()
    with place.start_run("--name", "t") as driving:
        given_up = place.trial().submissions
        driving.until(
            lambda: any(p.read_text() for p in given_up.glob("*/errors")), "sbatch to give up"
        )
        frail.thaw_controller()
        all_passed(place, driving, 3)
    (ids,) = arrays(place, frail).values()
    assert len(ids) == 1


def test_a_frozen_controller_and_a_driver_that_is_killed(
    place: Workplace, frail: SlurmCluster
) -> None:
    place.test("a", "echo ok", parameters={"n": [1, 2, 3]})
    frail.freeze_controller()
    with place.start_run("--name", "t") as driving:
        driving.until(lambda: place.count(RunSubmitted) == 3, "the intents")
        driving.until(lambda: any(place.trial().submissions.glob("*/errors")), "sbatch")
        driving.kill()
    with place.start("resume", "t") as driving:
        driving.until(lambda: place.count(AlertRaised) > 0, "an alert")
        frail.thaw_controller()
        all_passed(place, driving, 3)
    (ids,) = arrays(place, frail).values()
    assert len(ids) == 1


def test_a_controller_that_is_down_ends_nothing(place: Workplace, frail: SlurmCluster) -> None:
    gate = gated(place)
    last = place.folder / "last"
    place.test("last", wait_for(last))
    with started(place, 5) as driving:
        frail.kill_controller()
        driving.until(lambda: "Slurm" in place.alerts(), "an alert")
        driving.kill()
    alerts = place.count(AlertRaised)
    with place.start("resume", "t") as driving:
        driving.until(place.more(alerts, AlertRaised), "an alert after the resume")
        gate.touch()
        assert place.count(RunJudged) == 0
        frail.start_controller()
        driving.until(lambda: "answers again" in place.alerts(), "word of it")
        last.touch()
        all_passed(place, driving, 5)


def test_ctrl_c_while_the_controller_is_down_can_be_waited_out(
    place: Workplace, frail: SlurmCluster
) -> None:
    gated(place, 2)
    with started(place, 2) as driving:
        frail.kill_controller()
        driving.until(lambda: "Slurm" in place.alerts(), "an alert")
        driving.send(signal.SIGINT)
        driving.until(place.more(0, TrialPaused), "the word of the first")
        driving.send(signal.SIGINT)
        driving.until(place.more(0, TrialCancelled), "the word of the second")
        frail.start_controller()
        done = driving.end()
    assert done.code == 3, done.said
    assert set(place.verdicts().values()) == {"cancelled"}


# ---- accounting, several clusters --------------------------------------------------------------


@pytest.mark.slurm(accounting=True)
def test_two_clusters_with_accounting(place: Workplace) -> None:
    """Jobs go to the cluster that is named, are found again there, and where its controller has
    forgotten them the accounting says how they ended."""
    small = ClusterOptions(nodes=2, name="one")
    with ClusterPair(place.folder / "pair", small, ClusterOptions(nodes=2, name="two")) as pair:
        place.slurm(pair.first, {"cluster": "two"})
        place.constants = {**QUICK, "execute.batch.scheduler_client.QUERY_SECONDS": 20.0}
        liar = Liar(place, "squeue")
        gate = place.folder / "gate"
        script = f"echo $SLURM_CLUSTER_NAME; {wait_for(gate)}"
        verify = [{"matches": "^two$"}]
        place.test("wait", script, parameters={"n": [0, 1, 2]}, verify=verify)
        with started(place, 3) as driving:
            driving.kill()
        assert not arrays(place, pair.first)
        (ids,) = arrays(place, pair.second).values()
        (array,) = ids
        pair.second.run("scancel", f"{array}_1")
        pair.second.await_state(f"{array}_1", "CANCELLED")
        gate.touch()
        done_states = ("COMPLETED", "CANCELLED")
        for task in range(3):
            pair.second.await_state(f"{array}_{task}", *done_states)
        liar.always("empty")
        done = place.resume()
    with pair:  # again, in folders and a database that know both
        assert pair.first.run("squeue", "-h", "-M", "one,two", "-t", "running") == ""
    assert done.code == 1, done.said
    assert place.verdicts() == {"wait{n=0}": "pass", "wait{n=1}": "cancelled", "wait{n=2}": "pass"}
    ended = {event.state for event in place.events("t", JobEnded)}
    assert any(state.startswith("CANCELLED") for state in ended)
    # gone: the accounting lags behind
    assert {state.split()[0] for state in ended} <= {"COMPLETED", "CANCELLED", "gone"}
    place.audit_log()


def test_of_tasks_that_wait_in_one_array_those_that_are_named_are_recalled(
    tmp_path: Path, cluster: SlurmCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`scancel --state=PENDING 5_0` of Slurm 22.05 cancels all that waits of the array 5, so that
    runs of another test vanished, and were waited for until they were called lost."""
    for name, value in cluster.env.items():
        monkeypatch.setenv(name, value)
    machine = Machine(
        machine=cluster.options.name,
        nodes=[NodeGroup(names=",".join(cluster.node_names), cores=4)],
        scheduler="slurm",
    )
    line = ("sbatch", "--parsable", "--hold", f"--output={tmp_path}/%a", "--wrap", "true")
    array = cluster.run(*line[:3], "--array=0-4", *line[3:]).strip()
    client = SlurmClient(machine, lambda _: None)
    asyncio.run(client.cancel([f"{array}_0", f"{array}_3"], pending_only=True))
    there = cluster.run("squeue", "--array", "--noheader", "--states=PENDING", "--format=%i")
    left = sorted(task for task in there.split() if task.startswith(f"{array}_"))
    cluster.run("scancel", array)
    assert left == [f"{array}_{n}" for n in (1, 2, 4)]
