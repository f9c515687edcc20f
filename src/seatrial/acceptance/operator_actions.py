"""What people did to a trial while it was under way: who, when, why, and what.

action_of(event, policy)        # None for what nobody asked for
"""

from collections.abc import Callable
from typing import Any

from msgspec import Struct

from seatrial.conduct.policy import Policy
from seatrial.conduct.policy_difference import differences
from seatrial.journal import events
from seatrial.units import show_seconds

CORRECT = "correct"  # the references
HEAVY = "tests whose I/O is not light"


class OperatorAction(Struct, frozen=True, kw_only=True):
    """What a person did. ``time`` is in ns; ``by`` is "" where a version before 0.2 recorded no
    name. ``action`` is one word, as of the command; ``subject`` is the test, nodes or run that it
    is about, "" for the trial; ``changes`` are the values that a change made others."""

    time: int
    by: str
    action: str
    subject: str
    reason: str
    changes: list[str] = []

    @property
    def text(self) -> str:
        """What was done, in words."""
        return " ".join(filter(None, (self.action, self.subject)))


_ACTIONS: dict[type[events.Event], tuple[str, Callable[[Any], str]]] = {
    events.PolicyChanged: ("change", lambda event: ""),
    events.TestHeld: ("hold", lambda event: HEAVY if event.io else event.test),
    events.TestReleased: ("release", lambda event: HEAVY if event.io else event.test),
    events.TestStopped: ("stop", lambda event: event.test),
    events.TestAdmitted: ("admit", lambda event: event.test),
    events.NodeExcluded: ("exclude", lambda event: event.nodes),
    events.NodeAdmitted: ("admit", lambda event: event.nodes),
    events.RunCancelAsked: ("cancel", lambda event: event.run_id),
    events.TrialPaused: ("pause", lambda event: ""),
    events.TrialExtended: ("extend", lambda event: f"by {show_seconds(event.seconds)}"),
    events.TrialAbandoned: ("abandon", lambda event: ""),
    events.ReferencesCorrected: (CORRECT, lambda event: "the references"),
    events.RequestRefused: ("refused:", lambda event: event.asked),
}
# These are also recorded where nobody asked.
_OFTEN_BY_ITSELF = (events.TestStopped, events.NodeExcluded, events.TrialPaused)


def action_of(event: events.Event, policy: Policy) -> OperatorAction | None:
    """Return what a person did by an event, under the policy before it; None for other events."""
    found = _ACTIONS.get(type(event))
    by = getattr(event, "by", "")
    if found is None or (not by and isinstance(event, _OFTEN_BY_ITSELF)):
        return None
    word, subject = found
    changes: list[str] = []
    if isinstance(event, events.PolicyChanged):
        changes = [str(each) for each in differences(policy, event.parts)]
    return OperatorAction(
        time=event.time,
        by=by,
        action=word,
        subject=subject(event),
        reason=getattr(event, "reason", ""),
        changes=changes,
    )
