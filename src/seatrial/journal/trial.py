"""The fold of a trial's journal: what its events make of its runs, nodes, tests and builds.

    trial = Trial(new_run=lambda event: RunLife(), nodes=node_names(machine))
    for event in read(journal): trial.apply(event)
    trial.runs_by_id["flc6evne6aub"].state, trial.excluded, trial.downs

All that reads a journal builds on it: the history that criteria are judged by, the pages, and a
driver that goes on with its trial. It depends on the events alone: it has no clock, and the pieces
in which a journal comes do not matter. Times are in ns.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable
from typing import Any, Generic, NamedTuple, TypeVar

from seatrial.journal import events
from seatrial.journal.run_life import RUN_KINDS, RunLife
from seatrial.journal.trial_life import TrialLife
from seatrial.model import codes
from seatrial.model.node_set import unfold_or_empty

Run = TypeVar("Run", bound=RunLife)


class Down(NamedTuple):
    """A node was down from a time to another (ns); ``end`` is None while it is."""

    node: str
    start: int
    end: int | None


class Trial(TrialLife, Generic[Run]):
    """The life of a trial, with its runs, nodes, tests, builds, gauges and alerts.

    ``new_run`` makes the run of the first event that names it, or None where that begins no run.
    Nodes other than ``nodes`` do not count; None: all do. Runs follow events of these ``kinds``."""

    def __init__(
        self,
        new_run: Callable[[events.RunEvent], Run | None],
        duration: float = 0.0,
        nodes: Iterable[str] | None = None,
        kinds: Collection[type[events.Event]] = RUN_KINDS,
    ) -> None:
        super().__init__(duration)
        self._new_run = new_run
        self._kinds = kinds
        self._names = None if nodes is None else frozenset(nodes)
        #: the runs in the order of their creation
        self.runs_by_id: dict[str, Run] = {}
        self.alerts: list[events.AlertRaised] = []
        #: nodes that are down, and since when (ns)
        self.down: dict[str, int] = {}
        #: nodes that get no more runs, and why
        self.excluded: dict[str, str] = {}
        #: tests that are launched no more, and why
        self.stopped: dict[str, str] = {}
        #: when tests were stopped (ns)
        self.stops: dict[str, list[tuple[int, int | None]]] = {}
        #: tests that people hold; "": all with I/O
        self.held: dict[str, events.TestHeld] = {}
        #: builds that failed, by their keys
        self.failed_builds: dict[str, events.BuildEnded] = {}
        #: the readings of each gauge: when (ns), and what was read if it was a number
        self.readings: dict[str, list[tuple[int, float | None]]] = {}
        #: by which references people judged the trial again, the latest last
        self.corrections: list[events.ReferencesCorrected] = []
        #: the time of its latest event (ns); what people record long after it does not count
        self.last = 0
        self._downs: list[Down] = []

    def apply(self, event: events.Event) -> bool:
        """Fold one event. Return whether it says anything of a run or of the trial."""
        if event.time > self.last and not event.is_late:
            self.last = event.time
        if event.run_id:
            run = self.runs_by_id.get(event.run_id) or self._begun_by(event)
            if run is not None and type(event) in self._kinds:
                run.apply(event)
            return run is not None
        handler = _HANDLERS.get(type(event))
        if handler is not None:
            handler(self, event)
            return True
        return super().apply(event)

    def _begun_by(self, event: events.Event) -> Run | None:
        """Return the run that an event begins, if it begins one."""
        run = self._new_run(event) if isinstance(event, events.RunEvent) else None
        if run is not None:
            self.runs_by_id[event.run_id] = run
        return run

    @property
    def downs(self) -> list[Down]:
        """The times in which nodes were down."""
        return [*self._downs, *(Down(name, since, None) for name, since in self.down.items())]

    # ---- nodes and tests ------------------------------------------------------------------

    def _ours(self, folded: str) -> Iterable[str]:
        """Return those of a node set that the trial has."""
        names = unfold_or_empty(folded)
        return names if self._names is None else [name for name in names if name in self._names]

    def _on_down(self, event: events.NodeDown) -> None:
        for name in self._ours(event.nodes):
            self.down.setdefault(name, event.time)

    def _on_up(self, event: events.NodeUp) -> None:
        for name in self._ours(event.nodes):
            since = self.down.pop(name, None)
            if since is not None:
                self._downs.append(Down(name, since, max(since, event.time)))

    def _on_excluded(self, event: events.NodeExcluded) -> None:
        self.excluded.update((name, event.reason) for name in self._ours(event.nodes))

    def _on_admitted(self, event: events.NodeAdmitted) -> None:
        for name in self._ours(event.nodes):
            self.excluded.pop(name, None)

    def _on_test_stopped(self, event: events.TestStopped) -> None:
        if event.test not in self.stopped:
            self.stops.setdefault(event.test, []).append((event.time, None))
        self.stopped[event.test] = event.reason

    def _on_test_admitted(self, event: events.TestAdmitted) -> None:
        if self.stopped.pop(event.test, None) is not None:
            spans = self.stops[event.test]
            spans[-1] = (spans[-1][0], max(spans[-1][0], event.time))

    def _on_test_held(self, event: events.TestHeld) -> None:
        if event.io or event.test:
            self.held["" if event.io else event.test] = event

    def _on_test_released(self, event: events.TestReleased) -> None:
        self.held.pop("" if event.io else event.test, None)

    # ---- builds, gauges, alerts -----------------------------------------------------------

    def _on_build_ended(self, event: events.BuildEnded) -> None:
        if event.code == codes.PASS.number:
            self.failed_builds.pop(event.key, None)
        else:
            self.failed_builds[event.key] = event

    def _on_gauge(self, event: events.GaugeRead) -> None:
        readings = self.readings.setdefault(event.gauge, [])
        readings.append((event.time, events.finite(event.value)))

    def _on_alert(self, event: events.AlertRaised) -> None:
        self.alerts.append(event)

    def _on_references(self, event: events.ReferencesCorrected) -> None:
        self.corrections.append(event)


_HANDLERS: dict[type[events.Event], Callable[[Trial[Any], Any], None]] = {
    events.AlertRaised: Trial._on_alert,
    events.BuildEnded: Trial._on_build_ended,
    events.GaugeRead: Trial._on_gauge,
    events.NodeDown: Trial._on_down,
    events.NodeUp: Trial._on_up,
    events.NodeExcluded: Trial._on_excluded,
    events.NodeAdmitted: Trial._on_admitted,
    events.TestStopped: Trial._on_test_stopped,
    events.TestAdmitted: Trial._on_test_admitted,
    events.TestHeld: Trial._on_test_held,
    events.TestReleased: Trial._on_test_released,
    events.ReferencesCorrected: Trial._on_references,
}
