"""Spans of a rehearsal in which runs turn out otherwise than they usually do: its ``events``.

    disturbances = Disturbances(seed, origin, events)
    disturbances.why_refused(now, run), disturbances.held_until(now, run)   # at its submission
    if disturbances.disturb(now, run, has_nodes): ...                       # when it gets its nodes

The usual outcome of a run is drawn as ever; what an event adds is drawn apart. So runs that no
event concerns turn out as they would without events.
"""

from collections.abc import Callable, Mapping, Sequence

from msgspec.structs import replace

from seatrial.model.policy import Window
from seatrial.plugins.rehearsal.keys import RehearsedEvent
from seatrial.plugins.rehearsal.sampling import SampledOutcome, units_of
from seatrial.plugins.rehearsal.simulated_runs import RehearsedRun

HasNodes = Callable[[str], bool]
"""Returns whether a run has one of the nodes of a node set."""

EventsByTest = Mapping[str, Sequence[tuple[int, RehearsedEvent]]]
"""The events that concern each test, with their places among the events of the plan."""


class Disturbances:
    """The events of one rehearsed trial that started at ``origin`` (ns). ``seed`` is that of its
    random numbers."""

    def __init__(self, seed: str, origin: int, events: EventsByTest) -> None:
        self._seed = seed
        self._by_test = {
            test: [(*_window_of(event).span(origin), number, event) for number, event in concerned]
            for test, concerned in events.items()
            if concerned
        }

    def __bool__(self) -> bool:
        return bool(self._by_test)

    def why_refused(self, now: int, run: RehearsedRun) -> str:
        """Return why the scheduler refuses a run that is submitted now; "" if it does not."""
        refusals = (
            event.reason or "the scheduler refuses it"
            for number, event in self._now(now, run)
            if (share := event.refused.fraction) and self._chance(run, number, "refused")[0] < share
        )
        return next(refusals, "")

    def held_until(self, now: int, run: RehearsedRun) -> int:
        """Return the time (ns) until which a run that is submitted now is held; 0: it is not."""
        spans = self._by_test.get(run.case.test, ())
        ends = [end for start, end, _, event in spans if event.held and start <= now < end]
        return max(ends, default=0)

    def disturb(self, now: int, run: RehearsedRun, has_nodes: HasNodes) -> bool:
        """Change the outcome of a run that gets its nodes now. Returns whether it changed."""
        before = run.sampled, run.run_model
        for number, event in self._now(now, run):
            if not event.nodes or has_nodes(event.nodes):
                fate, point = self._chance(run, number, "")
                run.sampled = _disturbed(run.sampled, event, fate, point)
                if event.keeps is not None:
                    run.run_model = run.run_model._replace(keeps=event.keeps.seconds)
        return (run.sampled, run.run_model) != before

    def _now(self, now: int, run: RehearsedRun) -> list[tuple[int, RehearsedEvent]]:
        spans = self._by_test.get(run.case.test, ())
        return [(number, event) for start, end, number, event in spans if start <= now < end]

    def _chance(self, run: RehearsedRun, number: int, what: str) -> list[float]:
        about = f"event {number} {what}"
        return units_of(f"{self._seed}\n{run.case.test}\n{run.attempt}\n{about}", 2)


def _window_of(event: RehearsedEvent) -> Window:
    start = event.start
    return Window(start=start.seconds, end=event.end.seconds, absolute=start.absolute)


def _disturbed(
    sampled: SampledOutcome, event: RehearsedEvent, fate: float, point: float
) -> SampledOutcome:
    """Return an outcome under an event. A run that fails or hangs anyway does so."""
    elapsed, hangs = sampled.elapsed * event.slow_by, event.hangs.fraction
    if sampled.exit_code or sampled.hangs or fate >= hangs + event.fails.fraction:
        return replace(sampled, elapsed=elapsed)
    if fate < hangs:
        return SampledOutcome(elapsed * point, hangs=True)
    return SampledOutcome(elapsed * point, exit_code=1)
