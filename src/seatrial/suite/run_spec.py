"""How a test is run: the key ``run`` of a test.yaml."""

from typing import Annotated, Literal

from seatrial.file_model import FileModel, Span, doc

Expression = Annotated[int | str, doc("a whole number or an expression over parameters and facts")]
Launcher = Literal["srun", "mpirun", "mpiexec", "aprun", "jsrun", "compat", "none"]
Spread = Literal["numa", "socket", "pack"]
Bind = Literal["core", "numa", "socket", "none"]
NumaPolicy = Literal["local", "interleave"]
QuietAnswer = Literal["end", "tell"]


class Stripe(FileModel, frozen=True):
    """How the files of a run are striped over the targets of Lustre."""

    count: Annotated[Expression, doc("number of stripes; -1: all targets; default: Lustre's")]
    size: Annotated[str, doc("size of a stripe, e.g. 4M; {name} stands for a parameter")] = ""


class AskedNodes(FileModel, frozen=True):
    """Where the nodes of a run are in the network of the machine."""

    within: Annotated[
        str,
        doc(
            "level of the network: all nodes are in one unit of it, the one with the fewest free "
            "nodes that are enough"
        ),
    ] = ""
    across: Annotated[
        str,
        doc(
            "level of the network: nodes are spread evenly over its units, over as many as there "
            "are nodes for"
        ),
    ] = ""
    order: Annotated[
        str,
        doc(
            "order in which ranks go to the nodes: the axis along which they go up first (X, Y, "
            "Z), or random; without `across` and `near` the nodes are the first free ones in "
            "this order; default: the machine's order"
        ),
    ] = ""
    near: Annotated[
        str,
        doc(
            "role of nodes, by `roles` of the topology: the nodes with the fewest hops to one of "
            "them"
        ),
    ] = ""


class RunSpec(FileModel, frozen=True):
    """How a test is run."""

    script: Annotated[str, doc("bash as written; it starts in the run directory")]
    nodes: Annotated[Expression, doc("number of nodes")] = 1
    tasks: Annotated[
        Expression | None, doc("total number of tasks; not together with `tasks_per_node`")
    ] = None
    tasks_per_node: Annotated[Expression | None, doc("tasks on each node; default: 1")] = None
    threads_per_task: Annotated[Expression, doc("threads of each task, and cores that it gets")] = 1
    walltime: Annotated[Expression | float, doc("maximum time, e.g. 5m")] = "10m"
    launcher: Annotated[
        str | None,
        doc("starter of the tasks, or a parameter that has it; default: the machine's"),
    ] = None
    scope: Annotated[
        Literal["machine", "each_node"],
        doc("each_node: one run for every node, pinned to it"),
    ] = "machine"
    exclusive: Annotated[
        bool,
        doc(
            "nothing else may run on its nodes meanwhile; without it Slurm may give the cores "
            "that a run leaves free to others"
        ),
    ] = False
    tasks_per_numa: Annotated[
        Expression | None, doc("maximum tasks of a NUMA domain; alone: that many in each domain")
    ] = None
    spread: Annotated[
        str | None,
        doc("numa, socket or pack: where tasks go on a node that is not full; or an expression"),
    ] = None
    bind: Annotated[
        str | None, doc("core, numa, socket or none: what each task is bound to; or an expression")
    ] = None
    numa_policy: Annotated[
        str | None,
        doc("local or interleave: the domain in which a task's memory is; or an expression"),
    ] = None
    spare_cores: Annotated[
        Expression,
        doc(
            "cores of each node that get no task; all cases of the test get whole nodes then, "
            "also those that spare none"
        ),
    ] = 0
    order: Annotated[
        str,
        doc(
            "rank order: smp, round robin, folded, grid 8x8 by 2x2, mfdn 5 BDM, file NAME, "
            "random SEED, default; or a parameter that has it"
        ),
    ] = ""
    place: Annotated[
        str | AskedNodes | None,
        doc(
            "place of its nodes in the network: words such as chassis, groups, order Y, or mapping"
        ),
    ] = None
    within: Annotated[
        Literal["allocation"] | None,
        doc("allocation: all cases and repeats share one, in turn on the same nodes"),
    ] = None
    pieces: Annotated[
        Expression | None, doc("so many runs share an allocation, each with its number, $PIECE")
    ] = None
    at_once: Annotated[Expression, doc("pieces that run at a time, beside each other")] = 1
    gpus_per_node: Annotated[Expression | None, doc("GPUs of each node; 0: none")] = None
    gpus_per_task: Annotated[Expression | None, doc("GPUs of each task; 0: none")] = None
    memory: Annotated[
        int | str | None,
        doc("memory of each node: a number or an expression, and a unit, e.g. 16GiB"),
    ] = None
    partition: Annotated[str | None, doc("Slurm partition; {name} stands for a parameter")] = None
    qos: Annotated[str | None, doc("Slurm quality of service")] = None
    reservation: Annotated[str | None, doc("Slurm reservation")] = None
    account: Annotated[str | None, doc("Slurm account")] = None
    options: Annotated[list[str], doc("further arguments of sbatch")] = []
    prove: Annotated[
        bool,
        doc(
            "start the probe `hello` by `$LAUNCH` first, and check where its ranks and threads "
            "are, and that the program runs its threads"
        ),
    ] = False
    pattern: Annotated[bool, doc("record which rank sends how much to which")] = False
    quiet_for: Annotated[Span, doc("time without output after which a run is hung; 0: never")] = (
        Span(0)
    )
    quiet_answer: Annotated[
        QuietAnswer,
        doc("reaction to a hung run: end it with the verdict `hung`, or only send an alert"),
    ] = "end"
    pages: Annotated[
        str,
        doc("pages of the memory: default, 4k, thp, 2M or 1G; {name} stands for a parameter"),
    ] = ""
    malloc: Annotated[
        dict[str, Expression], doc("tunables of glibc's malloc by name; default: glibc's value")
    ] = {}
    stripe: Annotated[Stripe | None, doc("stripes of the files that it writes on Lustre")] = None
    container: Annotated[
        str,
        doc(
            "image in which $LAUNCH starts programs: a path (/ or ./ first), a name that the "
            "machine's runtime knows, or default (none); {name} stands for a parameter"
        ),
    ] = ""
    directory: Annotated[
        str,
        doc(
            "where the script works: default (the run directory), a file system of the machine, "
            "or an absolute path; {name} stands for a parameter"
        ),
    ] = ""


NO_RUN = RunSpec(script="")
