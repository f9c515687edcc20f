"""What files say of rehearsals: the keys ``rehearsal`` of a machine, its file systems and gauges,
and of a plan."""

import math
from typing import Annotated, Literal

from msgspec import Struct

from seatrial.hooks import value_of
from seatrial.model.file_model import (
    Duration,
    FileModel,
    Name,
    PartOfAll,
    Quantity,
    Share,
    Span,
    WrittenDuration,
    checked,
    doc,
)
from seatrial.model.moments import TimeSpan
from seatrial.units import seconds, span_of


class LoadLevel(FileModel, frozen=True, rename={"since": "from"}):
    """A level of load from a given time on."""

    since: Annotated[Span, doc("time since the trial's start; 0: at its start")]
    load: Annotated[float, doc("open files on each target", ge=0)]
    target: Annotated[str, doc("the target with this load; default: each")] = ""


class FileSystemModel(FileModel, frozen=True):
    """Capacity of a file system, and the load that other users put on it."""

    metadata: Annotated[
        float, doc("open files that a metadata target serves at full speed", ge=0)
    ] = 0
    objects: Annotated[
        int, doc("object targets, over which the data of every run is striped", ge=1)
    ] = 1
    bandwidth: Annotated[float, doc("GB/s of an object target; 0: unlimited", ge=0)] = 0
    production: Annotated[
        list[LoadLevel], doc("load of others on the metadata targets, over time")
    ] = []


class Background(FileModel, frozen=True):
    """Jobs of other users on the same nodes: read from a file in the Standard Workload Format, or
    generated."""

    swf: Annotated[str, doc("a file in the Standard Workload Format 2.2")] = ""
    cores_per_node: Annotated[int, doc("processors of the file that make a node", ge=1)] = 1
    load: Annotated[PartOfAll, doc("share of the node-hours that generated jobs take")] = Share(0)
    nodes: Annotated[list[int], doc("nodes of generated jobs; default: 1, 4, 16, 64")] = []
    elapsed: Annotated[Duration, doc("mean elapsed time of generated jobs")] = Duration("1h")


class MachineModel(FileModel, frozen=True):
    """The behaviour of the machine in a rehearsal. Rates are per node."""

    submit_delay: Annotated[Span, doc("time from submission to the queue")] = Span("1s")
    start_delay: Annotated[Span, doc("from free nodes to the script's start; and its end")] = Span(
        "2s"
    )
    poll: Annotated[
        Span,
        doc(
            "maximum delay until a start or an end is noticed; that of `slurm`, where it gives "
            "another"
        ),
    ] = Span("15s")
    node_failures: Annotated[Span, doc("mean time between failures of one node; 0: none")] = Span(0)
    repair: Annotated[Duration, doc("mean time until a failed node is back")] = Duration("4h")
    slow_nodes: Annotated[PartOfAll, doc("share of nodes that are slow")] = Share(0)
    slow_by: Annotated[float, doc("factor of a run's time on a slow node", ge=1)] = 1.2
    partitions: Annotated[
        dict[Name, str], doc("node sets by partition; default: one of all nodes")
    ] = {}
    background: Annotated[Background | None, doc("jobs of others")] = None


def model_of(machine: Struct) -> MachineModel:
    """Return how a machine behaves in a rehearsal."""
    return value_of(machine, "rehearsal", MachineModel)


def capacity_of(file_system: Struct) -> FileSystemModel:
    """Return the capacity of a file system in a rehearsal."""
    model: FileSystemModel | None = getattr(file_system, "rehearsal")  # noqa: B009
    return model or FileSystemModel()


def reading_of(gauge: Struct) -> str:
    """Return what a gauge reads in a rehearsal: FILESYSTEM or FILESYSTEM/TARGET; "" if nothing."""
    return value_of(gauge, "rehearsal", str)


# ---- rehearsal model -----------------------------------------------------------------------------
#
# What a rehearsal of a plan assumes: the key ``rehearsal`` of a plan.yaml.


class ElapsedModel(FileModel, frozen=True):
    """A distribution of elapsed times: mean and spread, or the times of measured runs."""

    mean: Annotated[Duration | None, doc("mean elapsed time")] = None
    sd: Annotated[Span, doc("standard deviation")] = Span(0)
    values: Annotated[list[Duration], doc("elapsed times to sample")] = []
    trial: Annotated[str, doc("a trial of the store to sample")] = ""


class ModelledMetric(FileModel, frozen=True):
    """A normal distribution of a metric."""

    mean: Annotated[float, doc("mean of a normal distribution")]
    sd: Annotated[float, doc("its standard deviation", ge=0)] = 0.0


class KeptNodes(Quantity):
    """A time that may be 0, or ``walltime``: as long as the job may run (inf)."""

    form = WrittenDuration | Literal["walltime"] | int
    __slots__ = ("seconds",)

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        self.seconds = math.inf if written == "walltime" else span_of(written)


def _duration(elapsed: int | float | str | ElapsedModel) -> None:
    if not isinstance(elapsed, ElapsedModel):
        seconds(elapsed)


class Behaviour(FileModel, frozen=True):
    """How runs of a test turn out in a rehearsal."""

    elapsed: Annotated[
        WrittenDuration | ElapsedModel,
        checked(_duration),
        doc("elapsed time, or a distribution"),
    ]
    build: Annotated[Span, doc("time of its build")] = Span(0)
    wrong: Annotated[Share, doc("share of runs with a wrong answer")] = Share(0)
    fails: Annotated[Share, doc("share of runs that fail early")] = Share(0)
    hangs: Annotated[Share, doc("share of runs that hang")] = Share(0)
    keeps: Annotated[
        KeptNodes,
        doc("time that a job keeps its nodes after its test"),
    ] = KeptNodes(0)
    metadata: Annotated[Share, doc("share of its time spent on metadata")] = Share(0)
    objects: Annotated[Share, doc("share of its time spent on data")] = Share(0)
    bandwidth: Annotated[float, doc("GB/s that a run asks for", ge=0)] = 0
    figures: Annotated[dict[str, ModelledMetric], doc("metrics, by name")] = {}


class RehearsedEvent(TimeSpan, frozen=True):
    """A span of a rehearsal in which runs turn out otherwise, such as a fault of the network. It
    concerns the runs that are submitted (refused, held) or start (all else) in it."""

    slow_by: Annotated[float, doc("factor of their elapsed times", gt=0)] = 1.0
    fails: Annotated[Share, doc("share of runs that fail early, beside the usual")] = Share(0)
    hangs: Annotated[Share, doc("share of runs that hang, beside the usual")] = Share(0)
    keeps: Annotated[
        KeptNodes | None,
        doc("time that a job keeps its nodes after its test; default: the usual"),
    ] = None
    refused: Annotated[Share, doc("share of submissions that the scheduler refuses")] = Share(0)
    held: Annotated[bool, doc("jobs wait until its end, as after scontrol hold")] = False


class Rehearsal(FileModel, frozen=True):
    """What a rehearsal of the plan assumes, in addition to the machine's file."""

    tests: Annotated[
        dict[str, Behaviour], doc("names or patterns of tests; the first that fits")
    ] = {}
    events: Annotated[list[RehearsedEvent], doc("times in which runs turn out otherwise")] = []
    assumed: Annotated[list[str], doc("assumptions, in words")] = []


def assumed_by(plan: Struct) -> Rehearsal:
    """Return what a plan assumes of a rehearsal."""
    return value_of(plan, "rehearsal", Rehearsal)
