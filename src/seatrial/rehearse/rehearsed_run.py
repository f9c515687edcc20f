"""A run of a rehearsal: what the simulated cluster is given of it, and how it is judged."""

from collections.abc import Sequence

from msgspec import Struct
from msgspec.structs import replace

from seatrial.backends.simulated.jobs import SimulatedJob
from seatrial.conduct.commands import Launch
from seatrial.conduct.policy import Entry
from seatrial.journal.codes import FAILED, PASS, WRONG_ANSWER, Code
from seatrial.rehearse.sampling import RunModel, SampledOutcome
from seatrial.suite.model import Case
from seatrial.trial.event_headers import RunEventHeader
from seatrial.verify.figures import ELAPSED, MetricValue
from seatrial.verify.references import References, compare

UNDRAWN = SampledOutcome(0.0)


class RehearsedRun(Struct):
    """A run without a verdict, and what it is drawn to do. ``number`` is the position of its case,
    ``header`` what each of its events has; ``attempt`` counts the runs of its test."""

    id: str
    number: int
    case: Case
    header: RunEventHeader
    entry: Entry
    run_model: RunModel
    stage: str = ""
    attempt: int = 0
    sampled: SampledOutcome = UNDRAWN
    cancelled: bool = False
    recalled: bool = False


def job_of(
    run: RehearsedRun, launch: Launch, partition: str, lacking: str, cores: int
) -> SimulatedJob:
    """The job that a run is; ``lacking`` are nodes that have not the features it needs, ``cores``
    those that it takes of a shared node."""
    case, run_model, sampled = run.case, run.run_model, run.sampled
    return SimulatedJob(
        run_id=run.id,
        nodes=case.nodes,
        cores=cores,
        walltime=case.walltime,
        elapsed=sampled.elapsed,
        exit_code=sampled.exit_code,
        hangs=sampled.hangs,
        keeps=min(run_model.keeps, case.walltime),
        avoid=",".join(filter(None, (launch.avoid, lacking))) if lacking else launch.avoid,
        node=launch.nodes or case.node,
        partition=partition,
        file_system=run.entry.file_system,
        target=launch.target.partition("/")[2],
        opens=run.entry.opens,
        metadata=run_model.metadata,
        objects=run_model.objects,
        bandwidth=run_model.bandwidth,
    )


def with_course(job: SimulatedJob, run: RehearsedRun) -> SimulatedJob:
    """Return a job with the course that its run is now drawn to take."""
    sampled = run.sampled
    return replace(
        job,
        elapsed=sampled.elapsed,
        exit_code=sampled.exit_code,
        hangs=sampled.hangs,
        keeps=min(run.run_model.keeps, run.case.walltime),
    )


def judge(
    run: RehearsedRun, elapsed: float, figures: Sequence[MetricValue], references: References
) -> tuple[Code, str]:
    """Return the verdict of a run whose script came to its end after ``elapsed`` seconds with these
    figures, and the reason."""
    if run.sampled.exit_code:
        return FAILED, f"exit code {run.sampled.exit_code}, not 0"
    if run.sampled.wrong:
        return WRONG_ANSWER, "a check of its answer did not hold"
    if (run.case.test, ELAPSED) in references.by_metric:
        own = any(figure.name == ELAPSED for figure in figures)
        figures = figures if own else [*figures, MetricValue(ELAPSED, elapsed, "s", "lower")]
    for figure in figures:
        _, finding = compare(references, run.case, figure, run.stage)
        if finding is not None:
            return finding
    return PASS, ""
