"""What launchers are told of the cores and the memory of tasks.

Each launcher is told by its own words where these mean the same cores, as it knows the node better
than a file does; else by a list: masks or numbers of CPUs, and of cores in a rankfile.
"""

import os
import re
from collections.abc import Sequence

from seatrial.execute.geometry import Cores, RankOrder, TaskGeometry, has_whole_nodes, in_objects
from seatrial.model.machine import Launcher, Machine
from seatrial.model.node_layout import mask, spans
from seatrial.model.orders import rankmap
from seatrial.model.parameters import NODEFILE, ORDER_FILE
from seatrial.model.requirements import reorders
from seatrial.model.test import Bind, Case

RANKFILE = "job.rankfile"  # in the run directory

_BINDING = re.compile(r"-bind-to[ =](\S*)")
_PALS_BINDING = re.compile(r"--cpu-bind\b")
_SRUN_BINDING = re.compile(r"--cpu[-_]bind\b|(?:^|\s)-m|--distribution\b")
_SRUN_WORDS: dict[Bind, str] = {"core": "cores", "numa": "ldoms", "socket": "sockets"}


def says_binding(launcher: Launcher) -> bool:
    """Return whether the machine's options of a launcher say what tasks are bound to."""
    options = " ".join(launcher.options)
    pattern = _PALS_BINDING if launcher.flavour == "cray" else _BINDING
    pattern = _SRUN_BINDING if launcher.kind == "srun" else pattern
    return pattern.search(options) is not None


def numa_policy(launcher: Launcher, case: Case) -> list[str]:
    """Return the program that starts each task so that its memory is where the test asks; nothing
    where it does not ask, or an option of the launcher says it."""
    policy = case.placement.numa_policy
    if policy == "interleave":
        return ["numactl", "--interleave=all"]
    if policy == "local" and launcher.kind not in ("srun", "aprun"):
        return ["numactl", "--localalloc"]
    return []


# ---- srun ---------------------------------------------------------------------------------


def srun(
    launcher: Launcher, case: Case, geometry: TaskGeometry | None, order: RankOrder | None = None
) -> list[str]:
    """Return the cores of each task of a step. With masks a step must have all CPUs of its nodes,
    so it does not ask for CPUs: Slurm would give it those of its choice."""
    cpus = [f"--cpus-per-task={case.threads}"]
    memory = ["--mem-bind=local"] if case.placement.numa_policy == "local" else []
    if says_binding(launcher):
        return [*cpus, *memory]
    if order is not None and order.cpus:
        return ["--cpu-bind=none", *memory]
    if geometry is None:
        asked = case.placement.bind
        words = [f"--cpu-bind={_SRUN_WORDS.get(asked, 'none')}"] if asked else []
        return [*cpus, *words, *memory]
    if not geometry.layout.numbered:
        in_node = "block" if case.placement.spread == "pack" else "cyclic"
        bind = f"--cpu-bind={_SRUN_WORDS[geometry.bind]}"
        deal = [] if order is not None else [f"--distribution=block:{in_node}"]
        return [*cpus, bind, *deal, *memory]
    return [f"--cpu-bind=mask_cpu:{','.join(map(mask, geometry.cpus))}", *memory]


def srun_order(launcher: Launcher, order: RankOrder | None) -> list[str]:
    """Return the options, last on the line, by which a step has its ranks in order: the host of
    each in a file. cray-mpich orders them itself."""
    if order is None or reorders(launcher):
        return []
    return [f"--nodelist=./{NODEFILE}", "--distribution=arbitrary"]


# ---- mpirun and mpiexec -------------------------------------------------------------------


def mpi(
    launcher: Launcher,
    machine: Machine,
    case: Case,
    geometry: TaskGeometry | None,
    order: RankOrder | None = None,
) -> list[str]:
    """Return the options that bind each task to cores of its own, or to none where there are too
    few. The default would bind all threads of a task to one core. Options of the machine about
    binding replace these."""
    if launcher.flavour == "openmpi":
        root = ["--allow-run-as-root"] if os.geteuid() == 0 else []
        return [*root, *_openmpi(launcher, machine, case, geometry, order)]
    if launcher.flavour == "cray":
        return _pals(launcher, machine, case, geometry)
    if launcher.flavour != "mpich":
        return []
    ranks = ["-rankmap", rankmap(order.order, order.sizes)] if order is not None else []
    bound = _BINDING.search(" ".join(launcher.options))
    ours = [] if bound or (order and order.cpus) else _mpich(machine, case, geometry)
    return ["-ppn", str(case.tasks_per_node), *ranks, *ours]


def _pals(
    launcher: Launcher, machine: Machine, case: Case, geometry: TaskGeometry | None
) -> list[str]:
    """Return the options of cray-pals, mpiexec(1): tasks of a node, CPUs of a task, binding."""
    options = ["--ppn", str(case.tasks_per_node), "--depth", str(case.threads)]
    if says_binding(launcher):
        return options
    if geometry is not None and geometry.layout.numbered:
        return [*options, "--cpu-bind", f"list:{':'.join(map(spans, geometry.cpus))}"]
    words = {"numa": "numa", "socket": "socket", "none": "none"}
    fits = "depth" if _fits(machine, case) else "none"
    return [*options, "--cpu-bind", words.get(case.placement.bind or "", fits)]


def _fits(machine: Machine, case: Case) -> bool:
    return case.tasks_per_node * case.threads <= min(kind.cores for kind in machine.nodes)


def _openmpi(
    launcher: Launcher,
    machine: Machine,
    case: Case,
    geometry: TaskGeometry | None,
    order: RankOrder | None,
) -> list[str]:
    bound = _BINDING.search(" ".join(launcher.options))
    if order is not None:
        by_file = slot_cores(launcher, machine, case, geometry) is not None
        return _openmpi_in_order(by_file, bool(bound))
    if geometry is not None and not bound:
        return _openmpi_on_cores(geometry, case)
    return _openmpi_by_node(machine, case, bound[1] if bound else "")


def _openmpi_in_order(by_file: bool, is_bound: bool) -> list[str]:
    """Return the options for a rank order: ``by_file`` names the cores of each rank, too."""
    if by_file:
        return ["--rankfile", RANKFILE]
    return ["--map-by", "seq", *([] if is_bound else ["--bind-to", "none"])]


def _openmpi_by_node(machine: Machine, case: Case, bound: str) -> list[str]:
    """Return the options for nodes of which nothing but the number of cores is known. ``bound``:
    what the machine's file has tasks bound to."""
    fits = _fits(machine, case)
    wanted = {"numa": "numa", "socket": "socket", "none": "none"}.get(case.placement.bind or "")
    to = bound or (wanted or "core" if fits else "none")
    # Open MPI 5 refuses PE together with another binding.
    cores = f":PE={case.threads}" if to.startswith(("core", "hwt")) else ""
    place = f"ppr:{case.tasks_per_node}:node{cores if fits else ':OVERSUBSCRIBE'}"
    return ["--map-by", place, *([] if bound else ["--bind-to", to])]


def _openmpi_on_cores(geometry: TaskGeometry, case: Case) -> list[str]:
    """Return words for the cores of tasks, the same in Open MPI 4 and 5; else a rankfile. Open MPI
    binds to the object that tasks are mapped by, or to cores of it."""
    placed = _object_of(geometry)
    if placed and geometry.bind == "core":
        name, per_object = placed
        place = f"ppr:{per_object}:{name}:PE={case.threads}"
        return ["--map-by", place, "--bind-to", "core"]
    if placed and placed[0] == geometry.bind:
        return ["--map-by", f"ppr:{placed[1]}:{placed[0]}", "--bind-to", geometry.bind]
    return ["--rankfile", RANKFILE]


def _object_of(geometry: TaskGeometry) -> tuple[str, int] | None:
    """Return the object of which each gets the same number of tasks, on consecutive cores, and that
    number; None if there is no such object."""
    layout, tasks = geometry.layout, len(geometry.cores)
    threads = len(geometry.cores[0])
    kinds: dict[str, Sequence[Sequence[int]]] = {
        "numa": [*layout.domains.values()],
        "socket": [*layout.sockets.values()],
        "node": [range(len(layout.cores))],
    }
    for name, objects in kinds.items():
        per_object = tasks // len(objects)
        if per_object and in_objects(objects, tasks, per_object, threads) == geometry.cores:
            return name, per_object
    return None


def slot_cores(
    launcher: Launcher, machine: Machine, case: Case, geometry: TaskGeometry | None
) -> list[Cores] | None:
    """Return the cores of each slot of a node for a rankfile; None where they are not ours to
    say."""
    if _BINDING.search(" ".join(launcher.options)):
        return None
    if geometry is not None:
        return geometry.bound
    if case.placement.bind == "none" or not (
        _fits(machine, case) and has_whole_nodes(machine, case)
    ):
        return None
    starts = range(0, case.tasks_per_node * case.threads, case.threads)
    return [tuple(range(start, start + case.threads)) for start in starts]


_ORDERED = """\
_cores=({cores}) _lines=() _node=0
while IFS=, read -r -a _ranks; do
  for _i in "${{!_ranks[@]}}"; do
    _lines[_ranks[_i]]="rank ${{_ranks[_i]}}={host} slot=${{_cores[_i]}}"
  done
  _node=$((_node + 1))
done < {order}
printf '%s\\n' "${{_lines[@]}}" >| {file}
"""


def ordered_rankfile(machine: Machine, cores: Sequence[Cores]) -> str:
    """Return bash that writes a rankfile of Open MPI by the order of the run."""
    host = "localhost" if machine.scheduler == "local" else "+n$_node"
    listed = " ".join(map(spans, cores))
    return _ORDERED.format(cores=listed, host=host, order=ORDER_FILE, file=RANKFILE)


def rankfile(machine: Machine, case: Case, geometry: TaskGeometry) -> str:
    """Return bash that writes a rankfile of Open MPI, in which cores have hwloc's logical numbers.
    The first nodes are full, as ``ppr`` has them. A host is the n-th of the allocation (``+n0``),
    which a host without a scheduler does not have."""
    cores = " ".join(spans(bound) for bound in geometry.bound)
    host = "localhost" if machine.scheduler == "local" else f"+n$((_i / {case.tasks_per_node}))"
    return (
        f"_cores=({cores})\n"
        f"for ((_i = 0; _i < {case.tasks}; _i++)); do\n"
        f'  echo "rank $_i={host} slot=${{_cores[_i % {case.tasks_per_node}]}}"\n'
        f"done >| {RANKFILE}\n"
    )


def _mpich(machine: Machine, case: Case, geometry: TaskGeometry | None) -> list[str]:
    if geometry is None:
        bind = case.placement.bind
        if not _fits(machine, case) or bind == "none":
            return []
        return ["-bind-to", f"core:{case.threads}" if bind in (None, "core") else bind]
    if geometry.layout.numbered:
        return ["-bind-to", "user:" + ",".join("+".join(map(str, cpus)) for cpus in geometry.cpus)]
    # Hydra deals tasks out in turn: the same cores, ranks in another order.
    by = case.placement.spread or "numa"
    to = f"core:{case.threads}" if geometry.bind == "core" else geometry.bind
    return ["-bind-to", to, *([] if by == "pack" else ["-map-by", by])]


# ---- aprun --------------------------------------------------------------------------------


def aprun(case: Case, geometry: TaskGeometry | None) -> list[str]:
    """Return the options of ALPS: tasks of a node (-N) and of a NUMA domain (-S), cores of a task
    (-d), memory of the task's own domain (-ss), binding (-cc), cores for the system (-r)."""
    placement = case.placement
    options = ["-n", str(case.tasks), "-N", str(case.tasks_per_node)]
    words, cc = _aprun_words(geometry) if geometry else ([], "")
    if geometry is None:
        cc = {"none": "none", "numa": "numa_node", "core": "cpu"}.get(placement.bind or "", "")
    options += [*words, "-d", str(case.threads)]
    options += ["-ss"] if placement.numa_policy == "local" else []
    options += ["-cc", cc] if cc else []
    return options + (["-r", str(placement.spare_cores)] if placement.spare_cores else [])


def _aprun_words(geometry: TaskGeometry) -> tuple[list[str], str]:
    """Return -S with its number, and the word of -cc; a list of cores where no number means the
    same: ``0-2:6-8``."""
    tasks, domains = len(geometry.cores), [*geometry.layout.domains.values()]
    per_numa = -(-tasks // len(domains))
    while per_numa <= tasks and geometry.bind in ("core", "numa"):
        filled = domains[: -(-tasks // per_numa)]
        if _filled(filled, tasks, per_numa, len(geometry.cores[0])) == geometry.cores:
            return ["-S", str(per_numa)], {"core": "cpu", "numa": "numa_node"}[geometry.bind]
        per_numa += 1
    return [], ":".join(spans(cpus) for cpus in geometry.cpus)


def _filled(
    domains: Sequence[Sequence[int]], tasks: int, per_numa: int, threads: int
) -> list[Cores] | None:
    """Return the cores of tasks that fill one domain after the other; None where they do not
    fit."""
    objects = in_objects(domains, len(domains) * per_numa, per_numa, threads)
    return objects[:tasks] if objects is not None else None
