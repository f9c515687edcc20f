"""The model of a machine in a rehearsal, as its file states it (``rehearsal:``)."""

from typing import Annotated

from seatrial.file_model import Duration, FileModel, PartOfAll, Span, doc


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
    load: Annotated[PartOfAll, doc("share of the node-hours that generated jobs take")] = PartOfAll(
        0
    )
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
    slow_nodes: Annotated[PartOfAll, doc("share of nodes that are slow")] = PartOfAll(0)
    slow_by: Annotated[float, doc("factor of a run's time on a slow node", ge=1)] = 1.2
    partitions: Annotated[
        dict[str, str], doc("node sets by partition; default: one of all nodes")
    ] = {}
    background: Annotated[Background | None, doc("jobs of others")] = None
