"""Spans of a rehearsal in which runs turn out otherwise than they usually do: its ``events``.

    disturbances = Disturbances(seed, origin, events)
    disturbances.why_refused(now, run), disturbances.held_until(now, run)   # at its submission
    if disturbances.disturb(now, run, has_nodes): ...                       # when it gets its nodes

The usual outcome of a run is drawn as ever; what an event adds is drawn apart. So runs that no
event concerns turn out as they would without events.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.model.policy import Window
from seatrial.plugins.rehearsal.keys import RehearsedEvent
from seatrial.plugins.rehearsal.sampling import SampledOutcome, units_of
from seatrial.plugins.rehearsal.simulated_runs import RehearsedRun

HasNodes = Callable[[str], bool]
"""Returns whether a run has one of the nodes of a node set."""


class Disturbance(NamedTuple):
    """An event of a rehearsal in plain numbers. ``number`` is its place among the events of the
    plan; ``keeps`` is in seconds (inf: to the walltime; None: as ever)."""

    number: int
    window: Window
    slow_by: float = 1.0
    fails: float = 0.0
    hangs: float = 0.0
    keeps: float | None = None
    refused: float = 0.0
    held: bool = False
    reason: str = ""


def disturbance_of(number: int, event: RehearsedEvent) -> Disturbance:
    """Return an event of a plan in plain numbers."""
    start, end = event.start, event.end
    window = Window(
        start=start.seconds, end=end.seconds, nodes=event.nodes, absolute=start.absolute
    )
    return Disturbance(
        number,
        window,
        slow_by=event.slow_by,
        fails=event.fails.fraction,
        hangs=event.hangs.fraction,
        keeps=event.keeps.seconds if event.keeps else None,
        refused=event.refused.fraction,
        held=event.held,
        reason=event.reason,
    )


class Disturbances:
    """The events of one rehearsed trial that started at ``origin`` (ns). ``seed`` is that of its
    random numbers; ``events`` has those of each test."""

    def __init__(self, seed: str, origin: int, events: Mapping[str, Sequence[Disturbance]]) -> None:
        self._seed = seed
        self._by_test = {
            test: [(*each.window.span(origin), each) for each in concerned]
            for test, concerned in events.items()
            if concerned
        }

    def __bool__(self) -> bool:
        return bool(self._by_test)

    def why_refused(self, now: int, run: RehearsedRun) -> str:
        """Return why the scheduler refuses a run that is submitted now; "" if it does not."""
        refusals = (
            each.reason or "the scheduler refuses it"
            for each in self._now(now, run)
            if each.refused and self._chance(run, each, "refused")[0] < each.refused
        )
        return next(refusals, "")

    def held_until(self, now: int, run: RehearsedRun) -> int:
        """Return the time (ns) until which a run that is submitted now is held; 0: it is not."""
        spans = self._by_test.get(run.case.test, ())
        ends = [end for start, end, each in spans if each.held and start <= now < end]
        return max(ends, default=0)

    def disturb(self, now: int, run: RehearsedRun, has_nodes: HasNodes) -> bool:
        """Change the outcome of a run that gets its nodes now. Returns whether it changed."""
        before = run.sampled, run.run_model
        for each in self._now(now, run):
            if not each.window.nodes or has_nodes(each.window.nodes):
                fate, point = self._chance(run, each, "")
                run.sampled = _disturbed(run.sampled, each, fate, point)
                if each.keeps is not None:
                    run.run_model = run.run_model._replace(keeps=each.keeps)
        return (run.sampled, run.run_model) != before

    def _now(self, now: int, run: RehearsedRun) -> list[Disturbance]:
        spans = self._by_test.get(run.case.test, ())
        return [each for start, end, each in spans if start <= now < end]

    def _chance(self, run: RehearsedRun, each: Disturbance, what: str) -> list[float]:
        about = f"event {each.number} {what}"
        return units_of(f"{self._seed}\n{run.case.test}\n{run.attempt}\n{about}", 2)


def _disturbed(
    sampled: SampledOutcome, each: Disturbance, fate: float, point: float
) -> SampledOutcome:
    """Return an outcome under an event. A run that fails or hangs anyway does so."""
    elapsed = sampled.elapsed * each.slow_by
    if sampled.exit_code or sampled.hangs or fate >= each.hangs + each.fails:
        return replace(sampled, elapsed=elapsed)
    if fate < each.hangs:
        return SampledOutcome(elapsed * point, hangs=True)
    return SampledOutcome(elapsed * point, exit_code=1)
