"""What people did to a trial while it was under way: who, when, why, and what.

action_of(event, policy)        # None for what nobody asked for
"""

from msgspec import Struct

from seatrial.decide.policy_change import differences
from seatrial.journal import events
from seatrial.model.policy import Policy


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


def action_of(event: events.Event, policy: Policy) -> OperatorAction | None:
    """Return what a person did by an event, under the policy before it; None for other events."""
    if not event.action or (event.is_also_automatic and not event.by):
        return None
    changes: list[str] = []
    if isinstance(event, events.PolicyChanged):
        changes = [str(each) for each in differences(policy, event.parts)]
    return OperatorAction(
        time=event.time,
        by=event.by,
        action=event.action,
        subject=event.acted_on,
        reason=event.reason,
        changes=changes,
    )
