"""A sustained trial of sleeping jobs on the emulated Slurm, disturbed at chosen moments.

    scene = Scene(place, cluster, tick=1.0)
    scene.write("10m")
    supervise(scene.start, kills=[12.5, 80.0], acts=[Act(60.0, lambda: scene.arm("hang"))])
    scene.occupancy()

Jobs stamp their start and their end in one file, so that what kept the nodes busy is measured in
the same way whoever gave the jobs to Slurm. A job takes 5 to 20 ticks and prints a line at each.
"""

from __future__ import annotations

import contextlib
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, NamedTuple, overload

from seatrial.journal.events import (
    JobEnded,
    JobStarted,
    NodeDown,
    NodeUp,
    RunJudged,
    RunSubmitted,
    ScriptStarted,
    TestAdmitted,
    TestStopped,
    TrialPaused,
    TrialResumed,
    TrialStarted,
)
from seatrial.model.node_set import unfold
from tests.execute.plans import TAG, alerts, audit, control, ends, start, write_plan
from tests.gates import pause
from tests.programs import Driving, E, F, Workplace, until
from tests.slurm.cluster import ClusterOptions, SlurmCluster

SIZES = {"small": 1, "middle": 2, "large": 4}  # nodes of each test's jobs
LEAST, MOST = 5, 20  # ticks of a job

# Backfill each second instead of each 30 s: for jobs of seconds, what 30 s are for jobs of minutes.
SCHEDULING = "bf_interval=1,bf_continue"

# A fault is a file: the first job of the test that finds it takes it; doubt stays as long as its
# file is there. The first job that takes "stay" names its node, and stays until that is killed.
JOB = """\
job=${{SEATRIAL_RUN:-$SLURM_JOB_ID}}
stamp() {{ echo "$1 $job $SLURM_JOB_NUM_NODES $EPOCHREALTIME" >> {stamps}; }}
take() {{ [ -e "$1" ] && mv "$1" "$1.$job" 2> /dev/null; }}
answer=42
stamp began
take {faults}/hang.{test} && sleep infinity
for ((left = {least} + RANDOM % {span}; left > 0; left--)); do
  echo "$left more"
  take {faults}/stay && echo $SLURMD_NODENAME > {faults}/stays
  while [ -e {faults}/stay.$job ]; do echo and more; {pause}; done
  {pause}
done
take {faults}/wrong.{test} && answer=41
[ -e {faults}/doubt.{test} ] && answer=41
echo "answer $answer"
stamp ended
"""


def options(**more: Any) -> ClusterOptions:
    """Eight nodes under a scheduler tuned for jobs of seconds."""
    return ClusterOptions(**{"nodes": 8, "scheduling": SCHEDULING, **more})


class Stamp(NamedTuple):
    """When a job began and ended (s), by its own clock; it has no end if it was killed."""

    job: str
    nodes: int
    began: float
    ended: float | None


class Scene:
    """The mix, its faults, and what became of them."""

    def __init__(self, place: Workplace, cluster: SlurmCluster, tick: float) -> None:
        self.place = place
        self.cluster = cluster
        self.tick = tick
        self.faults = place.folder / "faults"
        self.faults.mkdir()
        self.node = ""  # which is killed
        self.back = 0  # ns, when it was started again
        self.starts = 0  # how often seatrial was started,
        self._begun = 0  # and how often it had begun to drive before that
        self._stamps = place.folder / "stamps"

    # ---- what is run ----------------------------------------------------------------------

    def job(self, test: str) -> str:
        """The script of a test's jobs."""
        about = {"least": LEAST, "span": MOST - LEAST + 1, "test": test}
        tick = pause(self.faults, self.tick)
        return JOB.format(stamps=self._stamps, faults=self.faults, pause=tick, **about)

    def write(self, duration: str, quiet_for: str, *, doubtful: bool = True, **keys: Any) -> None:
        """The suite, the machine and the plan of the trial. A run is hung after ``quiet_for``: more
        than Slurm takes to see that a node is gone. ``model`` is the machine's in a rehearsal."""
        sizes = {**SIZES, "doubtful": 1} if doubtful else SIZES
        for test, nodes in sizes.items():
            run = {"nodes": nodes, "exclusive": True, "walltime": f"{3 * MOST * self.tick:g}s"}
            self.place.test(test, self.job(test), run=run, verify=[{"contains": "answer 42"}])
        slurm = {"poll": "1s", "lost_after": "20s"}
        self.place.slurm(self.cluster, slurm, rehearsal=keys.pop("model", {}))
        answers = {"node failure": "elsewhere", "hung": "elsewhere"}
        tests = {test: {"quiet_for": quiet_for} for test in sizes}
        defaults = {
            "reserve": 6,
            "retry": {"answers": answers},  # three wrong answers stop a test
            "exclude": {"after": 3, "most": "25%"},
            "criteria": [{"criterion": "utilisation", "at_least": "50%"}],
        }
        write_plan(self.place, duration, tests=tests, **{**defaults, **keys})

    def start(self) -> Driving:
        self._begun = self._drives()
        self.starts += 1
        return start(self.place, "-q")

    def driven(self, starts: int) -> bool:
        """Whether seatrial was started so often, and drives the trial since then."""
        return self.starts >= starts and self._drives() > self._begun

    def _drives(self) -> int:
        return len(self.events(TrialStarted, TrialResumed))

    def arm(self, fault: str) -> None:
        """``hang.TEST`` or ``wrong.TEST`` once, ``doubt.TEST`` from now on."""
        (self.faults / fault).touch()

    def cure(self, fault: str) -> None:
        (self.faults / fault).unlink()

    # ---- what became of it ----------------------------------------------------------------

    @overload
    def events(self, kind: type[E], /) -> list[E]: ...
    @overload
    def events(self, kind: type[E], /, *others: type[F]) -> list[E | F]: ...

    def events(self, kind: type[E], /, *others: type[F]) -> list[E | F]:
        return self.place.events(TAG, kind, *others)

    def victims(self, fault: str) -> list[str]:
        """The runs that took a fault."""
        return [path.suffix[1:] for path in self.faults.glob(f"{fault}.*.*")]

    def verdict(self, run_id: str) -> RunJudged:
        (found,) = [event for event in ends(self.place) if event.run_id == run_id]
        return found

    def stamps(self) -> list[Stamp]:
        """The jobs that began, in that order."""
        began: dict[str, tuple[int, float]] = {}
        ended: dict[str, float] = {}
        for line in self._stamps.read_text().splitlines():
            word, job, nodes, at = line.split()
            if word == "began":
                assert job not in began, f"{job} ran twice"
                began[job] = (int(nodes), float(at))
            else:
                ended[job] = float(at)
        return [Stamp(job, nodes, at, ended.get(job)) for job, (nodes, at) in began.items()]

    def occupancy(self) -> float:
        """Node-time in jobs over that of the nodes that were up, within the trial's duration, or
        until it was paused. Jobs that were killed end by the scheduler's word."""
        begin = self.events(TrialStarted)[0].time / 1e9
        length = self.place.trial(TAG).record().policy.duration
        for paused in self.events(TrialPaused):
            length = paused.time / 1e9 - begin
        ends = {event.run_id: event.time / 1e9 for event in self.events(JobEnded)}
        return occupancy(self.stamps(), begin, length, self.cluster, self.downs(), ends)

    def downs(self) -> list[tuple[float, float]]:
        """When nodes were down by the scheduler's word (s)."""
        since: dict[str, float] = {}
        spans = []
        for event in self.events(NodeDown, NodeUp):
            for node in unfold(event.nodes):
                if isinstance(event, NodeDown):
                    since[node] = event.time / 1e9
                else:
                    spans.append((since.pop(node), event.time / 1e9))
        return spans + [(at, float("inf")) for at in since.values()]


def occupancy(
    stamps: Sequence[Stamp],
    begin: float,
    length: float,
    cluster: SlurmCluster,
    downs: Sequence[tuple[float, float]] = (),
    ends: Mapping[str, float] = {},
) -> float:
    """The share of a span of time in which the nodes that were up were in jobs. ``ends`` of jobs
    that did not stamp their own; those that have none count to the end of the span."""

    def within(since: float, until: float) -> float:
        return max(0.0, min(until, begin + length) - max(since, begin))

    used = sum(
        job.nodes * within(job.began, job.ended or ends.get(job.job, begin + length))
        for job in stamps
    )
    return used / (cluster.options.nodes * length - sum(within(*down) for down in downs))


# ---- what is done to it -------------------------------------------------------------------


OWNED, OWNED_WORDS = 3, "this trial is being run by another process"


class Act(NamedTuple):
    """Something that is done, so many seconds after the trial was started."""

    time: float
    do: Callable[[], None]


def supervise(
    start: Callable[[], Driving],
    acts: Sequence[Act] = (),
    kills: Sequence[float] = (),
    codes: Sequence[int] = (0, 1),
) -> int:
    """``until seatrial accept ...; do :; done``, killed at these moments, while the acts are done
    beside it. How often it was killed; it ends by itself after the last, with one of the codes. If
    an act fails, seatrial is ended and the failure raised."""
    began = time.monotonic()

    def end_if_failed(acts: Future[None]) -> None:
        if acts.exception() is not None:
            driving.send(signal.SIGTERM)

    with ThreadPoolExecutor(1) as beside:
        doing = beside.submit(_do, sorted(acts, key=lambda act: act.time), began)
        doing.add_done_callback(end_if_failed)
        left, killed = sorted(kills), 0
        while True:
            if doing.done():
                doing.result()
            with start() as driving:
                try:
                    wait = began + left[0] - time.monotonic() if left else 3600.0
                    driving.process.wait(max(0.0, wait))
                except subprocess.TimeoutExpired:
                    driving.kill()
                    left.pop(0)
                    killed += 1
                    continue
                done = driving.end()
            # A request that is answered while nobody drives owns the trial for a moment: started
            # then, seatrial says so and ends.
            if done.code == OWNED and OWNED_WORDS in done.said:
                continue
            if doing.done():
                doing.result()
            assert done.code in codes, done.said
            doing.result()
            return killed


def _do(acts: Sequence[Act], began: float) -> None:
    for act in acts:
        time.sleep(max(0.0, began + act.time - time.monotonic()))
        act.do()


# ---- faults, and whether each was found, classed and answered --------------------------------

NOTICED_S = 45.0  # by then Slurm has called a silent node down, after its timeout of 10 s


def kill_busy_node(scene: Scene, *, declare_down: bool = False) -> None:
    """A slurmd, and what runs on its node, at a moment when that is the script of a job."""
    scene.arm("stay")
    stays = scene.faults / "stays"
    until(lambda: stays.exists() and stays.read_text().endswith("\n"), "a script that stays")
    scene.node = stays.read_text().strip()
    scene.cluster.kill_node(scene.node, declare_down=declare_down)


def let_back_in(scene: Scene) -> None:
    """The stopped test, when it is cured, as a person would."""
    until(lambda: bool(scene.events(TestStopped)), "doubtful to be stopped")
    scene.cure("doubt.doubtful")
    done = control(scene.place, "admit", "doubtful")
    assert done.code == 0, done.said


def start_node(scene: Scene) -> None:
    """The node comes back, but not before seatrial has called it down."""

    def called_down() -> bool:
        return any(scene.node in unfold(event.nodes) for event in scene.events(NodeDown))

    until(called_down, f"{scene.node} to be called down")
    scene.back = time.time_ns()
    scene.cluster.start_node(scene.node)


def restart_controller(scene: Scene, away: float, *, abruptly: bool = False) -> None:
    """It ends, abruptly without saving what it knows, and comes back after some seconds."""
    scene.cluster.kill_controller(abruptly=abruptly)
    time.sleep(away)
    scene.cluster.start_controller()


def node_failure(scene: Scene) -> str:
    """The node was called down, what ran there was a node failure, and was run elsewhere."""
    node = scene.node
    downs = [event for event in scene.events(NodeDown) if node in unfold(event.nodes)]
    assert len(downs) == 1, f"{node} was called down {len(downs)} times"
    ups = [event for event in scene.events(NodeUp) if node in unfold(event.nodes)]
    assert len(ups) == 1, f"{node} was called up {len(ups)} times"
    failed = [event for event in ends(scene.place) if event.verdict == "node failure"]
    assert failed, "no run was called a node failure"
    for verdict in failed:
        assert node in nodes_of(scene, verdict.run_id), f"{verdict.run_id} was not on {node}"
        assert node not in nodes_of(scene, next_run(scene, verdict))
    there = [e for e in scene.events(ScriptStarted) if node in unfold(e.nodes)]
    assert not [e for e in there if downs[0].time < e.time < scene.back], f"runs on {node}"
    return f"slurmd killed: {node} down, {len(failed)} node failure, next run elsewhere"


def hung(scene: Scene) -> str:
    """The silent job was ended as hung, and its test's next run was elsewhere."""
    for run_id in (victims := scene.victims("hang")):
        verdict = scene.verdict(run_id)
        assert verdict.verdict == "hung", f"the hung run is called {verdict.verdict}"
        elsewhere = nodes_of(scene, next_run(scene, verdict))
        assert not elsewhere & nodes_of(scene, run_id), "it is run again where it hung"
    assert victims, "no job hung"
    called = {event.run_id for event in ends(scene.place) if event.verdict == "hung"}
    assert called == set(victims), "others are called hung"
    told = [event.text for event in alerts(scene.place, "hung")]
    assert len(told) == len(victims), "each is told once"
    assert all(any(run_id in text for text in told) for run_id in victims)
    return f"hung job: {len(victims)} ended as hung, next run elsewhere, told"


def wrong(scene: Scene) -> str:
    """A wrong answer is called so, and its test goes on."""
    (victim,) = scene.victims("wrong")
    verdict = scene.verdict(victim)
    assert verdict.verdict == "wrong answer", f"it is called {verdict.verdict}"
    assert next_run(scene, verdict)
    others = {e.run_id for e in ends(scene.place, verdict.test) if e.verdict == "wrong answer"}
    assert others == {victim}, "others are called wrong"
    return "wrong answer: called so, its test went on"


def stopped(scene: Scene) -> str:
    """The test that gave three wrong answers in a row was stopped, and people were told."""
    (stop,) = scene.events(TestStopped)
    assert stop.test == "doubtful", f"{stop.test} was stopped"
    assert [event.subject for event in alerts(scene.place, "stopped")] == ["doubtful"]
    before = [e.verdict for e in ends(scene.place, "doubtful") if e.time <= stop.time]
    assert before.count("wrong answer") >= 3
    (back,) = [event.time for event in scene.events(TestAdmitted)]
    launched = [e for e in scene.events(RunSubmitted) if e.test == "doubtful"]
    assert not [e for e in launched if stop.time < e.time < back], "it was launched after that"
    after = [e.verdict for e in ends(scene.place, "doubtful") if e.time > back]
    assert "pass" in after, "let back in, it never passed"
    return "3 wrong answers in a row: stopped, told, let back in by hand"


def controller(scene: Scene) -> str:
    """What the controller forgot when it ended is lost by name, and run again; nothing else is."""
    lost = [event for event in ends(scene.place) if event.verdict == "lost"]
    last = max(event.time for event in scene.events(RunSubmitted))
    before_the_end = [event for event in lost if event.time < last]
    assert all(next_run(scene, each) for each in before_the_end if each.test != "doubtful")
    assert not [
        event for event in ends(scene.place) if event.verdict in ("failed", "launch failed")
    ]
    return f"slurmctld restarted: {len(lost)} runs that it forgot lost by name, and run again"


def disturbances(scene: Scene, seconds: float, *, quick: bool = False) -> list[Act]:
    """All faults, spread over a trial of that length. ``quick``: the node is declared down, as a
    site's health check would, and the controller saves its state before it ends."""
    back = 0.35 if quick else max(0.35, 0.12 + NOTICED_S / seconds)
    shares: list[tuple[float, Callable[[], None]]] = [
        (0.12, lambda: kill_busy_node(scene, declare_down=quick)),
        (0.25, lambda: scene.arm("hang.middle")),
        (0.30, lambda: scene.arm("wrong.small")),
        (back, lambda: start_node(scene)),
        (0.40, lambda: scene.arm("doubt.doubtful")),
        (0.60, lambda: restart_controller(scene, 2, abruptly=not quick)),
        (0.72, lambda: let_back_in(scene)),
    ]
    return [Act(share * seconds, do) for share, do in shares]


FAULTS = (node_failure, hung, wrong, stopped, controller)


def pause_when_seen(scene: Scene, starts: int, patience: float) -> None:
    """Pause the trial when every fault is answered, or after so many seconds, and seatrial was
    started so often: one that is killed forgets that it is to pause."""

    def answered() -> bool:
        try:
            return all(check(scene) for check in FAULTS)
        except (AssertionError, ValueError, IndexError):
            return False

    until(lambda: scene.driven(starts), "the last start")
    with contextlib.suppress(AssertionError):  # which one it was is found out later
        until(answered, "all faults to be answered", patience)
    done = control(scene.place, "pause")
    assert done.code == 0, done.said


def nothing_lost_or_doubled(scene: Scene) -> None:
    """Every announced run has one verdict, no script ran twice, every array is in the journal."""
    audit(scene.place)
    known = {event.run_id for event in ends(scene.place)}
    assert {stamp.job for stamp in scene.stamps()} <= known


def nodes_of(scene: Scene, run_id: str) -> set[str]:
    """The nodes that a run was on: none if it was taken back before it started."""
    reports = [*scene.events(JobStarted, ScriptStarted), *scene.events(JobEnded)]
    return {n for e in reports if e.run_id == run_id and e.nodes for n in unfold(e.nodes)}


def next_run(scene: Scene, verdict: RunJudged) -> str:
    """The run of a case that was launched next after a verdict."""
    later = [
        event.run_id
        for event in scene.events(RunSubmitted)
        if event.case == verdict.case and event.time > verdict.time
    ]
    assert later, f"{verdict.test} was not launched again"
    return later[0]
