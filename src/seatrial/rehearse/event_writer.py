"""The events of a rehearsal: makes them, applies each at once, and tells them in portions.

writer = EventWriter(record, conductor.apply, tell)
writer.note_of(now, run, "job_start", nodes="n[1-4]")
writer.tell_all()

A job has a dozen events, and a rehearsal a million jobs: what is done for each event is kept short.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from seatrial.conduct.commands import Launch
from seatrial.journal.codes import Name
from seatrial.journal.events import Event
from seatrial.rehearse.rehearsed_run import RehearsedRun
from seatrial.trial.folder import Record
from seatrial.verify.figures import MetricValue

_METRIC, _SUBMIT_START = Name.METRIC.value, Name.SUBMIT_START.value

PORTION = 2000  # events that are told together

Tell = Callable[[Sequence[Event]], None]
"""Is given the events of a rehearsal, in order, some at a time."""


class EventWriter:
    """Events of one trial. ``apply`` is called with each when it is made."""

    def __init__(self, record: Record, apply: Callable[[Event], None], tell: Tell) -> None:
        self._trial, self._machine = record.tag, record.machine.machine
        self._app_of = {name: test.app for name, test in record.tests.items()}
        self._apply = apply
        self._tell = tell
        self._untold: list[Event] = []

    def note(self, time: int, name: str, test: str = "", **more: str | float | None) -> None:
        """Make an event about the trial."""
        self._add(
            Event(
                time=time,
                event=name,
                trial=self._trial,
                machine=self._machine,
                app=self._app_of.get(test, ""),
                test=test,
                **more,  # type: ignore[arg-type]
            )
        )

    def note_of(
        self,
        time: int,
        run: RehearsedRun,
        name: str,
        value: float | None = None,
        alias: str = "",
        text: str = "",
        job_id: str = "",
        nodes: str = "",
        again: bool = False,
    ) -> None:
        """Make an event about a run. (Few arguments, and all of them written out: more, or a
        dictionary of them, would make it three times as long.)"""
        case = run.case
        event = Event(
            time=time,
            event=name,
            trial=self._trial,
            machine=self._machine,
            app=run.app,
            test=case.test,
            case=case.id,
            run_id=run.id,
            value=value,
            alias=alias,
            text=text,
            job_id=job_id,
            nodes=nodes,
            again=again,
        )
        self._untold.append(event)
        self._apply(event)

    def note_submission(self, time: int, run: RehearsedRun, array: str, launch: Launch) -> None:
        """Note that a run goes to the scheduler, with which others, and where it is placed."""
        case = run.case
        self._add(
            Event(
                time=time,
                event=_SUBMIT_START,
                trial=self._trial,
                machine=self._machine,
                app=run.app,
                test=case.test,
                case=case.id,
                run_id=run.id,
                alias=array,
                target=launch.target,
                stage=launch.stage,
            )
        )

    def note_figure(self, time: int, run: RehearsedRun, figure: MetricValue) -> None:
        """Note a figure of merit."""
        case = run.case
        self._add(
            Event(
                time=time,
                event=_METRIC,
                trial=self._trial,
                machine=self._machine,
                app=run.app,
                test=case.test,
                case=case.id,
                run_id=run.id,
                value=figure.value,
                alias=figure.name,
                unit=figure.unit,
                better=figure.better,
            )
        )

    def _add(self, event: Event) -> None:
        self._untold.append(event)
        self._apply(event)

    def tell_some(self) -> None:
        """Tell what there is if it is enough for a portion."""
        if len(self._untold) >= PORTION:
            self.tell_all()

    def tell_all(self) -> None:
        """Tell all that was not told yet."""
        untold, self._untold = self._untold, []
        self._tell(untold)
