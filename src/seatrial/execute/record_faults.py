"""What is wrong with a record of people: names, texts and values that no command would write.

    if fault := fault_of(event): ...        # "--by: 'x...' has 20000 characters; ..."

A record comes from a command or from a file that anybody of the group may have written: both are
held to this.
"""

import datetime
import re
import time
from collections.abc import Callable, Iterator
from typing import Any

from seatrial.execute.plan.checklist import RESULTS
from seatrial.journal import events
from seatrial.model.moments import day_of

MAX_NAME = 100  # characters
MAX_NAMES = 20
MAX_TEXT = 2000  # characters
DAY_SECONDS = 86400  # a date may be that of another time zone
STATES = ("", "open", "closed")
KINDS = ("milestone", "part", "incident")
_SUM = r"[0-9a-f]{64}"


def fault_of(event: events.PersonsEvent | events.RunReviewed) -> str:
    """Return the first fault of a record with its remedy; "" if it has none."""
    return next(_faults(event), "")


def _faults(event: events.PersonsEvent | events.RunReviewed) -> Iterator[str]:
    yield from _faults_of_names(event.names)
    for name, text in _texts(event):
        if len(text) > MAX_TEXT:
            yield (
                f"{name} has {len(text)} characters; give at most {MAX_TEXT}, and put the rest "
                "into a document"
            )
    if (faults_of_kind := _OF_KINDS.get(type(event))) is not None:
        yield from faults_of_kind(event)


def _faults_of_review(event: events.RunReviewed) -> Iterator[str]:
    people = {name.strip().casefold() for name in event.names}
    if event.is_excluded and len(people) < 2:
        yield "an exclusion is by agreement of both sides; name them: --by A --by B"


def _faults_of_tick(event: events.ItemTicked) -> Iterator[str]:
    if event.result not in RESULTS:
        yield f"{event.result!r} is no result; there are {', '.join(RESULTS)}"


def _faults_of_issue(event: events.IssueRecorded) -> Iterator[str]:
    if event.issue < 0 or event.state not in STATES:
        yield f"issue {event.issue} {event.state}: is no issue with a state"


def _faults_of_entry(event: events.PlanEntry) -> Iterator[str]:
    if event.kind not in KINDS:
        yield f"{event.kind!r} is no kind of record; there are {', '.join(KINDS)}"
    if event.at < 0:
        yield "the time of a record is before 1970"


def _faults_of_names(names: list[str]) -> Iterator[str]:
    if len(names) > MAX_NAMES:
        yield f"--by: {len(names)} names; give at most {MAX_NAMES}"
    for name in names:
        if len(name) > MAX_NAME:
            yield f"--by: {name[:20]!r}... has {len(name)} characters; give at most {MAX_NAME}"
        if not name.isprintable():
            yield f"--by: {name!r} has control characters or line ends; write a name in one line"


def _texts(event: events.PersonsEvent | events.RunReviewed) -> Iterator[tuple[str, str]]:
    """Yield each text of a record with its name."""
    for name in event.__struct_fields__:
        value = getattr(event, name)
        if isinstance(value, str):
            yield name, value


def _faults_of_document(event: events.EvidenceGiven) -> Iterator[str]:
    if event.size < 0 or not re.fullmatch(_SUM, event.sha256):
        yield f"{event.document}: has no size and SHA-256 of a document"
    try:
        day_of(event.on)
    except ValueError as error:
        yield f"--on: {error}"
        return
    latest = datetime.datetime.fromtimestamp(time.time() + DAY_SECONDS).date()
    if datetime.date.fromisoformat(event.on) > latest:
        yield f"--on: {event.on} is yet to come; give the day on which it was signed"


_OF_KINDS: dict[type[events.Event], Callable[[Any], Iterator[str]]] = {
    events.RunReviewed: _faults_of_review,
    events.ItemTicked: _faults_of_tick,
    events.EvidenceGiven: _faults_of_document,
    events.PlanEntry: _faults_of_entry,
    events.IssueRecorded: _faults_of_issue,
}
