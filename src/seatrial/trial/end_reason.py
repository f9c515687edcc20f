"""The reasons of runs that did not end by themselves."""

from seatrial.conduct.state import ConductorState
from seatrial.journal.codes import CANCELLED, HUNG, RECALLED, TIMEOUT, Code
from seatrial.units import show_seconds


def cancellation(state: ConductorState, run_id: str) -> tuple[int, str]:
    """Return the verdict code of a run that Seatrial cancelled, and the reason: its output did not
    grow, a person asked for it, or the trial was cancelled."""
    flight = state.in_flight.get(run_id)
    if flight is None or flight.ended_for is None:
        return CANCELLED.number, state.held
    return flight.ended_for, flight.ended_why


def end_reason(code: Code, state: str, nodes: str, walltime: float) -> str:
    """Return the reason for a verdict that the end of a job decides: ``state`` is the scheduler's
    word for it, or the reason of a cancellation; ``walltime`` is in seconds."""
    if code is RECALLED:
        return code.meaning
    if code is HUNG:
        return state
    limit = f" of {show_seconds(walltime)}" if code is TIMEOUT else ""
    return f"{code.meaning}{limit}: {state}" + (f" on {nodes}" if nodes else "")
