"""What keeps a trial from being driven, or cancelled. Each function raises TrialError for it."""

import os
from collections.abc import Sequence

from seatrial.conduct.state import ConductorState
from seatrial.errors import TrialError
from seatrial.file_origin import FileOrigin
from seatrial.trial.ledger import Ledger, Unresolved
from seatrial.trial.record import Record


def require_real(tag: str, record: Record) -> None:
    """Refuse a rehearsal, figures that others gave, results of other tools, and a checklist: none
    is mixed with real runs."""
    if record.policy.kind == "checklist":
        raise TrialError(
            f"{tag} is a checklist: nothing runs; `seatrial accept tick` gives its items their "
            "results"
        )
    if record.given is not None:
        raise TrialError(f"{tag} has the figures of {record.given.file}; nothing of it runs")
    if (made := record.imported) is not None:
        raise TrialError(
            f"{tag} has results of {made.tool}, from {made.file}; nothing of it runs here; "
            "`seatrial run` starts a trial"
        )
    if record.rehearsed:
        raise TrialError(f"{tag} is a rehearsal; `seatrial accept` runs its plan for real")


def require_own(tag: str, origin: FileOrigin) -> None:
    """Refuse the trial of another user: what its folder names would run under the own name."""
    if origin.other:
        raise TrialError(
            f"{tag} is not yours: {origin.other}, and its scripts would run under your name; its "
            "owner resumes it, or you start a trial of your own"
        )


def require_not_abandoned(tag: str, state: ConductorState) -> None:
    if state.abandoned:
        raise TrialError(f"{tag} was abandoned: {state.held}")


def require_host(tag: str, there: str) -> None:
    """Refuse any host but the one where processes of runs were started: another cannot see them,
    and would run them a second time. ``there`` is "" where no host is known."""
    here = os.uname().nodename
    if there not in ("", here):
        raise TrialError(
            f"{tag}: its runs were started on {there}, and this is {here}; "
            f"resume it there, or with --host-is-gone if {there} is down for good"
        )


def require_to_cancel(tag: str, ledger: Ledger, unresolved: Sequence[Unresolved]) -> None:
    """Refuse to cancel where all runs have ended and some have no verdict: that would keep them
    from it."""
    state = ledger.conductor.state
    ended = state.finished + sum(run.ended is not None for run in unresolved)
    judged = state.finished == state.wanted
    if ledger.lost_verdicts or (0 < state.wanted <= ended and not judged):
        raise TrialError(
            f"{tag}: all its runs have ended, there is nothing to cancel; "
            f"`seatrial resume {tag}` judges those that have no verdict"
        )
