"""The members of an event that follow from its trial and its test."""

from typing import TypedDict

from msgspec.structs import replace

from seatrial.journal import events
from seatrial.suite.model import Case
from seatrial.trial.record import Record

_OF_A_TEST = (events.BuildEvent, events.TestEvent, events.AlertRaised)


class RunEventHeader(TypedDict):
    """What each event of a run has."""

    trial: str
    machine: str
    app: str
    test: str
    case: str
    run_id: str


def run_header(record: Record, case: Case, run_id: str) -> RunEventHeader:
    """Return the header of the events of a run."""
    return {
        "trial": record.tag,
        "machine": record.machine.machine,
        "app": record.tests[case.test].app,
        "test": case.test,
        "case": case.id,
        "run_id": run_id,
    }


def of_run(event: events.RunEvent, record: Record, case: Case, time: int) -> events.RunEvent:
    """Return an event of a run with its time and the other members of its header."""
    return replace(event, time=time, **run_header(record, case, event.run_id))


def header_of(record: Record, event: events.Event) -> dict[str, str]:
    """Return the header of an event of no run. ``app`` is "" if it is of no test either."""
    header = {"trial": record.tag, "machine": record.machine.machine}
    if not isinstance(event, _OF_A_TEST):
        return header
    name = event.subject if isinstance(event, events.AlertRaised) else event.test
    return {**header, "app": record.tests[name].app if name in record.tests else ""}
