"""The answer to a person's request: the event that records it, or that says why it is refused.

    event = answer_to(request, conductor.state, record, by="mara", file="requests/...json", now=now)

A request comes from a file that anybody in the group may have written, and perhaps an hour ago: all
of it is checked again, against the trial as it is now.
"""

from msgspec.structs import replace

from seatrial.conduct.policy_change import refused, too_short, with_parts
from seatrial.conduct.policy_difference import conflicts
from seatrial.conduct.state import ConductorState
from seatrial.journal import events
from seatrial.machine.facts import node_names
from seatrial.machine.node_sets import unfold
from seatrial.trial.record import Record
from seatrial.trial.requests import MAX_REASON, Request, recorded
from seatrial.units import seconds
from seatrial.verify.reading import plain_line

HEAVY = "heavy"


def answer_to(
    request: Request, state: ConductorState, record: Record, *, by: str, file: str = "", now: int
) -> events.RequestedEvent | events.RunCancelAsked | events.RunReviewed:
    """Return the event that answers a request of a person (``by``) at ``now`` (ns)."""
    if request.request == "record":
        return recorded(request, by, file)
    reason = plain_line(request.reason)[:MAX_REASON]
    text = plain_line(request.text)[:MAX_REASON]
    try:
        answer = _answer(request, text, reason, by, state, record, now)
    except ValueError as error:
        asked = " ".join(filter(None, (request.request, text)))
        answer = events.RequestRefused(asked=asked, reason=str(error), by=by)
    return replace(answer, request=file)


def _answer(
    request: Request,
    text: str,
    reason: str,
    by: str,
    state: ConductorState,
    record: Record,
    now: int,
) -> events.RequestedEvent | events.RunCancelAsked:
    kind = request.request
    if kind == "extend":
        if not state.policy.duration:
            raise ValueError("the trial has no duration to extend; only a sustained one has")
        return events.TrialExtended(seconds=seconds(request.value), by=by)
    if kind == "abandon":
        return events.TrialAbandoned(reason=text or "abandoned", by=by)
    if kind == "pause":
        return events.TrialPaused(reason=text or "paused by `seatrial accept`", by=by)
    if kind == "change":
        return _change(request, reason, by, state, now)
    if kind == "cancel":
        return _cancel(text, reason, by, state)
    if kind in ("hold", "release"):
        made = events.TestHeld if kind == "hold" else events.TestReleased
        if text == HEAVY and HEAVY not in record.tests:
            return made(io=HEAVY, reason=reason, by=by)
        return made(test=_test(text, record), reason=reason, by=by)
    if kind == "stop":
        return events.TestStopped(test=_test(text, record), reason=reason, by=by)
    if kind == "exclude":
        return events.NodeExcluded(nodes=_nodes(text, record), reason=reason, by=by)
    if text in record.tests:
        return events.TestAdmitted(test=text, reason=reason, by=by)
    return events.NodeAdmitted(nodes=_nodes(text, record), reason=reason, by=by)


def _change(
    request: Request, reason: str, by: str, state: ConductorState, now: int
) -> events.PolicyChanged:
    """Return the change of the policy. Raises ValueError if it contradicts what ran, or what
    somebody else has changed in the meantime."""
    changed = with_parts(state.policy, request.parts)
    others = conflicts(state.policy, request.before, request.parts)
    if others:
        values = "; ".join(map(str, others[:3]))
        raise ValueError(f"somebody else changed it in the meantime: {values}")
    life = state.trial
    if faults := refused(state.policy, changed, now, life.start):
        raise ValueError("; ".join(map(str, faults)))
    if fault := too_short(life, state.policy, changed, now):
        raise ValueError(fault)
    return events.PolicyChanged(parts=request.parts, reason=reason, by=by)


def _cancel(run_id: str, reason: str, by: str, state: ConductorState) -> events.RunCancelAsked:
    flight = state.in_flight.get(run_id)
    if flight is None or not flight.holds_room:
        raise ValueError(f"run {run_id} is not in flight")
    return events.RunCancelAsked(run_id=run_id, reason=reason, by=by)


def _test(name: str, record: Record) -> str:
    if name not in record.tests:
        raise ValueError(f"there is no test {name}")
    return name


def _nodes(text: str, record: Record) -> str:
    if unknown := sorted(set(unfold(text)) - set(node_names(record.machine))):
        raise ValueError(f"there is no node and no test {unknown[0]}")
    return text
