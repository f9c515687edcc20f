"""A run of a rehearsal: what the simulated cluster is given of it, and how it is judged."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from seatrial.backends.simulated.jobs import FinishedJob, SimulatedJob
from seatrial.conduct.commands import Launch
from seatrial.conduct.policy import Entry
from seatrial.journal.codes import CANCELLED, CHECK_ERROR, FAILED, PASS, WRONG_ANSWER, Code, code_of
from seatrial.rehearse.sampling import RunModel, SampledOutcome
from seatrial.suite.model import Case
from seatrial.units import show_seconds
from seatrial.verify import references as refs
from seatrial.verify.figures import MetricValue
from seatrial.verify.references import AmbiguousReference, References

UNDRAWN = SampledOutcome(0.0)


@dataclass(slots=True)
class RehearsedRun:
    """A run without a verdict, and what it is drawn to do. ``number`` is the position of its case,
    ``attempt`` counts those of its test."""

    id: str
    number: int
    case: Case
    app: str
    entry: Entry
    run_model: RunModel
    attempt: int = 0
    sampled: SampledOutcome = UNDRAWN
    cancelled: bool = False
    recalled: bool = False


def job_of(run: RehearsedRun, launch: Launch, partition: str, lacking: str) -> SimulatedJob:
    """The job that a run is; ``lacking`` are nodes that have not the features it needs."""
    case, run_model, sampled = run.case, run.run_model, run.sampled
    return SimulatedJob(
        run_id=run.id,
        nodes=case.nodes,
        walltime=case.walltime,
        elapsed=sampled.elapsed,
        exit_code=sampled.exit_code,
        hangs=sampled.hangs,
        keeps=min(run_model.keeps, case.walltime),
        avoid=",".join(filter(None, (launch.avoid, lacking))) if lacking else launch.avoid,
        node=case.node,
        partition=partition,
        file_system=run.entry.file_system,
        target=launch.target.partition("/")[2],
        opens=run.entry.opens,
        metadata=run_model.metadata,
        objects=run_model.objects,
        bandwidth=run_model.bandwidth,
    )


def judge(
    run: RehearsedRun, found: Sequence[MetricValue], references: References
) -> tuple[Code, str]:
    """The verdict of a run whose script came to its end with these figures, and why."""
    if run.sampled.exit_code:
        return FAILED, f"exit code {run.sampled.exit_code}, not 0"
    if run.sampled.wrong:
        return WRONG_ANSWER, "a check of its answer did not hold"
    case = run.case
    for figure in found:
        try:
            reference = refs.matching(
                references, case.test, figure.name, case.parameters, case.toolchain
            )
        except AmbiguousReference as error:
            return CHECK_ERROR, str(error)
        if reference is not None and (finding := refs.judge(figure, reference)) is not None:
            return finding
    return PASS, ""


def why_ended(
    run: RehearsedRun, update: FinishedJob, ended_for: int | None, held: str
) -> tuple[Code, str]:
    """The verdict of a run that was ended, and why. Where it was we who did: ``ended_for`` is the
    code that we ended it for, if it was for its own sake, ``held`` why all were."""
    code, state = code_of(update.code or 0), update.state
    if run.cancelled and code is CANCELLED:
        state = held
        if ended_for is not None:
            code, state = code_of(ended_for), f"no output for {show_seconds(run.entry.quiet_after)}"
    return code, f"{code.meaning}: {state}" + (f" on {update.nodes}" if update.nodes else "")
