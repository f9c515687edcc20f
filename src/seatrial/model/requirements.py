"""The rank order that a test asks for (``run.order``): words, a text with parameters in braces, or
the name of a parameter that has the words.

    asked = AskedOrder(test.run)             # parses the text once
    words = asked.bound(names)                  # "folded"; "" where the launcher decides
    order_of(words, folder, [4, 4])          # [0, 3, 4, 7, 1, 2, 5, 6]
"""

import re
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from seatrial.files import read_regular
from seatrial.model import orders
from seatrial.model.expressions import ExpressionError
from seatrial.model.identifiers import show
from seatrial.model.kinds import NO_LAUNCHER, launcher_kinds
from seatrial.model.machine import Launcher, Machine, NodeGroup
from seatrial.model.node_set import unfold, unfold_or_empty
from seatrial.model.nodes import NodeLayout, layout_of, node_names
from seatrial.model.orders import (
    Order,
    nodes_of_ranks,
    process_mapping,
    rankmap,
    slots_of_tasks,
)
from seatrial.model.run_settings import Text
from seatrial.model.task_placement import DEFAULT, Names, launcher_of
from seatrial.model.test import AskedNodes, Case, JobOptions, RunSpec, Test
from seatrial.model.topology import RANDOM, NodeWish, Topology, axes_of, choose_nodes
from seatrial.units import count, listed, show_bytes

MAX_FILE_BYTES = 64 << 20
LONGEST_RANKMAP = 120_000  # characters; Linux takes 128 KiB as one argument of a command


class AskedOrder:
    """The order that a test asks for. Raises ExpressionError for what cannot be parsed."""

    def __init__(self, run: RunSpec) -> None:
        self._written = run.order
        self._text = Text.parse(run.order, "order") if run.order else None

    def bound(self, names: Names) -> str:
        """Return the words for the values of a case, "" where the launcher decides. Raises
        ExpressionError."""
        if self._text is None:
            return ""
        of_parameter = self._written in names
        words = show(names[self._written]) if of_parameter else self._text.inserted(names)
        if words == DEFAULT:
            return ""
        try:
            return orders.parse_order(words).text
        except ValueError as error:
            raise ExpressionError(str(error), "run", "order") from None


def fault_of_order(text: str) -> str:
    """Return why a text cannot be an order; "" if it can."""
    try:
        if text != DEFAULT:
            orders.parse_order(text)
    except ValueError as error:
        return str(error)
    return ""


def order_of(words: str, folder: str, sizes: Sequence[int]) -> Order:
    """Return the order that words say for nodes with so many slots; files are below the test's
    ``folder``. Raises ValueError."""
    written = orders.parse_order(words)
    if not written.file:
        return _made(words, tuple(sizes))
    path = Path(folder, written.file)
    try:
        text = read_regular(path, MAX_FILE_BYTES).decode(errors="replace")
        return orders.order_in(text, words, sizes)
    except OSError as error:
        raise ValueError(f"{path}: {error.strerror or error}") from None
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from None


@lru_cache(maxsize=16)
def _made(words: str, sizes: tuple[int, ...]) -> Order:
    return orders.parse_order(words).order(sizes)


def sizes_of(case: Case) -> list[int]:
    """Return the slots of each node of a case."""
    return slots_of_tasks(case.nodes, case.tasks, case.tasks_per_node)


def order_of_case(case: Case, folder: str) -> Order:
    """Return the order of a case that has one. Raises ExpressionError where it has other ranks than
    the case, or cannot be read."""
    try:
        return order_of(case.order, folder, sizes_of(case))
    except ValueError as error:
        raise ExpressionError(f"{case.order}: {error}", "run", "order") from None


def refusal_of_order(launcher: Launcher, order: Order, sizes: Sequence[int]) -> str:
    """Return why a launcher refuses an order; "" if it takes it."""
    if launcher.kind == NO_LAUNCHER or (launcher.kind == "compat" and launcher.flavour == "other"):
        return "no launcher that takes an order: `launcher` of the machine or the test names one"
    if not launcher_kinds()[launcher.kind].orders:
        return f"{launcher.kind} takes no order of ranks: name another launcher"
    if reorders(launcher):
        return refused_mapping(launcher, order, sizes)
    if launcher.flavour == "mpich" and launcher.kind != "srun":
        size = len(rankmap(order, sizes))
        if size > LONGEST_RANKMAP:
            return f"has {size} characters as -rankmap of mpiexec, which takes {LONGEST_RANKMAP}"
    elif launcher.kind in ("mpirun", "mpiexec", "compat") and launcher.flavour != "openmpi":
        return f"{launcher.kind} of an unknown MPI: give `flavour: openmpi` or mpich"
    return ""


def reorders(launcher: Launcher) -> bool:
    """Return whether the MPI itself puts ranks in their order, as cray-mpich does."""
    return launcher.kind == "aprun" or (
        launcher.kind in ("srun", "mpiexec") and launcher.flavour == "cray"
    )


MAPPING_LIMITS = {"9.1": 1023}
"""Bytes of PMI_process_mapping that versions of cray-mpich take, as far as known. Those of 2012 ran
longer orders: Hopper, a Cray XE6, had ones of 3,072 ranks."""


def refused_mapping(launcher: Launcher, order: Order, sizes: Sequence[int]) -> str:
    """Return why the cray-mpich of a launcher refuses an order, by what the machine's file says of
    it; "" if it does not, or nothing says so."""
    size, known = _mapping_bytes(order, sizes), _known_version(launcher.version)
    limit, by = MAPPING_LIMITS.get(known), f"cray-mpich {known} refuses more than"
    if launcher.mapping_limit is not None:
        limit, by = None, "`mapping_limit` in the machine's file is"
        if launcher.mapping_limit != "none":
            limit = launcher.mapping_limit
    if limit is None or size <= limit:
        return ""
    return (
        f"PMI_process_mapping of this order has {size:,} bytes, and {by} {limit:,}; use larger "
        "cells, fewer ranks, or srun -m arbitrary"
    )


def doubt_of_mapping(launcher: Launcher, order: Order, sizes: Sequence[int]) -> str:
    """Return a warning where some cray-mpich refuses an order, and nothing says whether that of a
    launcher does; else ""."""
    size, known = _mapping_bytes(order, sizes), _known_version(launcher.version)
    version, limit = min(MAPPING_LIMITS.items(), key=lambda item: item[1])
    if launcher.mapping_limit is not None or known or size <= limit:
        return ""
    unknown, write = (
        "the version on this machine is not known",
        "`version`, or `mapping_limit: none`",
    )
    if launcher.version:
        unknown, write = f"of {launcher.version} no limit is known", "`mapping_limit: none`"
    return (
        f"PMI_process_mapping of this order has {size:,} bytes. cray-mpich {version} refuses more "
        f"than {limit:,}; {unknown}. Where such orders run, write {write} below `launcher` in the "
        "machine's file"
    )


def _mapping_bytes(order: Order, sizes: Sequence[int]) -> int:
    return len(process_mapping(nodes_of_ranks(order, sizes)))


def _known_version(version: str) -> str:
    """Return the version in the table of limits that a version is, or is a part of; else ""."""
    return next((each for each in MAPPING_LIMITS if f"{version}.".startswith(f"{each}.")), "")


def told_orders(machine: Machine, tests: Mapping[str, Test], cases: Iterable[Case]) -> str:
    """Return a warning of the orders that the MPI may refuse; "" if there are none."""
    doubts: dict[str, str] = {}
    for case in cases:
        launcher = launcher_of(machine, tests[case.test], case.toolchain, case.parameters)
        if case.order and reorders(launcher):
            order = order_of_case(case, tests[case.test].folder)
            if doubt := doubt_of_mapping(launcher, order, sizes_of(case)):
                doubts[case.name] = doubt
    if not doubts:
        return ""
    return f"{listed([*doubts], MAX_NAMED)}: {next(iter(doubts.values()))}"


# ---- asked place ---------------------------------------------------------------------------------
#
# Where a test wants its nodes in the network (``run.place``).
#
#     asked = AskedPlace(test.run)             # parses the texts once
#     asked.bound(names, topology)  # NodeWish(within="chassis"), None where none is asked
#
# A mapping (``{within: chassis, order: Y}``), or words: ``within chassis``, ``across group``,
# ``order Y``, ``near lnet``, with commas or ``and`` between; in short ``chassis`` (within one),
# ``groups`` (across them), ``Y`` or ``random``. Values may be names of parameters, or hold some in
# braces.


_SEPARATOR = r",|\sand\s"
KEYS = ("within", "across", "order", "near")
EXAMPLE = "write e.g. within chassis, across group, order Y, near lnet"


class AskedPlace:
    """What a test asks for; ``any`` is False if that is nothing. Raises ExpressionError for what
    cannot be parsed."""

    def __init__(self, run: RunSpec) -> None:
        place = run.place
        self.any = place is not None
        written = {"": place} if isinstance(place, str) else {}
        if isinstance(place, AskedNodes):
            written = {key: value for key in KEYS if (value := getattr(place, key))}
        self._texts = {
            key: (text, Text.parse(text, "place", *([key] if key else [])))
            for key, text in written.items()
        }

    def bound(self, names: Names, topology: Topology) -> NodeWish | None:
        """Return the wish for the values of a case. Raises ExpressionError."""
        texts = {
            key: show(names[text]) if text in names else parsed.inserted(names)
            for key, (text, parsed) in self._texts.items()
        }
        try:
            wishes = wishes_in(texts.pop("", ""), topology) | texts
            given = {k: v for k, v in wishes.items() if v != DEFAULT}
            return NodeWish(**given) if given else None
        except ValueError as error:
            raise ExpressionError(str(error), "run", "place") from None


def wishes_in(text: str, topology: Topology) -> dict[str, str]:
    """Return what words say, by key. Raises ValueError."""
    wishes: dict[str, str] = {}
    for part in filter(None, map(str.strip, re.split(_SEPARATOR, text))):
        key, _, value = part.partition(" ")
        key, value = (key, value.strip()) if value else _in_short(part, topology)
        if key not in KEYS:
            raise ValueError(f"{part!r} is no place; {EXAMPLE}")
        if key in wishes:
            raise ValueError(f"{text!r} says {key} twice; give it once")
        wishes[key] = value
    return wishes


def _in_short(word: str, topology: Topology) -> tuple[str, str]:
    levels = [level.name for level in topology.levels]
    if word == DEFAULT:
        return "within", DEFAULT
    if word == RANDOM or word.upper() in map(str.upper, axes_of(topology)):
        return "order", word
    if word in levels:
        return "within", word
    for level in levels:
        if word in (f"{level}s", f"{level}es"):
            return "across", level
    return "within", word  # it is no level of this network


def _unknown(wish: NodeWish, topology: Topology) -> str:
    """Return which name of a wish the network lacks; "" if it has all."""
    levels = [level.name for level in topology.levels]
    axes = [axis.upper() for axis in axes_of(topology)]
    known = [
        (wish.within, levels, "level of the network"),
        (wish.across, levels, "level of the network"),
        (wish.near, list(topology.roles), "role in `topology.roles`"),
        (wish.order if wish.order == RANDOM else wish.order.upper(), [*axes, RANDOM], "axis"),
    ]
    for name, names, what in known:
        if name and name not in names:
            return f"{name!r} is no {what}; there are {', '.join(names) or 'none'}"
    if wish.within and wish.across and levels.index(wish.across) >= levels.index(wish.within):
        return f"{wish.across} is not smaller than {wish.within}"
    return ""


def why_never(machine: Machine, features: Sequence[str], case: Case, topology: Topology) -> str:
    """Return why no nodes of a machine hold the wish of a case, though all are up, or which name
    its network lacks; "" if some do."""
    if case.place is None:
        return ""
    if unknown := _unknown(case.place, topology):
        return f"{case.place.words}: {unknown}"
    numbers = topology.number_of
    names = usable_nodes(machine, features, case)
    usable = [numbers[name] for name in names if name in numbers]
    short = choose_nodes(topology, usable, case.place, case.nodes, "").short
    return f"{case.place.words}: {short}" if short else ""


# ---- fitting nodes -------------------------------------------------------------------------------
#
# The nodes that a case can run on, by what it asks for, and the partition that they are in.
#
# Where the kinds of a machine's nodes name partitions, a case that names none goes to the
# partition of the first kind that fits: kinds of the machine's own partition come first, then
# those without GPUs for which nobody asks.


class Fit(NamedTuple):
    """How many nodes a case can have, the demand in words (`` with 4 GPUs``), and its options with
    its partition."""

    available: int
    such: str
    options: JobOptions


def fit(
    machine: Machine, kinds: Sequence[NodeGroup], options: JobOptions, gpus: int, cpus: int
) -> Fit:
    """Return the fit of a case that needs so many GPUs and CPUs of each node, among these kinds of
    nodes. A node whose memory is not described (0) has enough."""
    fitting = [kind for kind in kinds if _has(kind, gpus, options.memory, cpus)]
    place = ""
    if fitting and has_partitions(machine):
        if options.partition is None:
            options = replace(options, partition=_usual_partition(fitting, gpus))
        wanted = _asked_partition(machine, options)
        kinds = _in_asked_partition(machine, kinds, options)
        place = f" in the partition {wanted}" if wanted else ""
    such = _demand(options, gpus, cpus if min(map(cpus_of, kinds), default=cpus) < cpus else 0)
    fitting = [kind for kind in kinds if _has(kind, gpus, options.memory, cpus)]
    return Fit(sum(len(unfold(kind.names)) for kind in fitting), f"{such}{place}", options)


def _usual_partition(kinds: Sequence[NodeGroup], gpus: int) -> str | None:
    """Return the partition of the first of these kinds: those of the machine's own partition (None)
    come first, then those without GPUs for which nobody asks."""
    first = min(kinds, key=lambda kind: (kind.partition != "", kind.gpus > gpus == 0))
    return first.partition or None


def _demand(options: JobOptions, gpus: int, cpus: int) -> str:
    words = [count(cpus, "CPU")] if cpus else []
    words += [count(gpus, "GPU")] if gpus else []
    words += [show_bytes(options.memory)] if options.memory else []
    return f" with {' and '.join(words)}" if words else ""


def lacking(machine: Machine, features: Sequence[str], case: Case) -> str:
    """Return the nodes, folded, that a case cannot run on."""
    return ",".join(kind.names for kind in unfit_groups(machine, features, case))


def unfit_groups(machine: Machine, features: Sequence[str], case: Case) -> list[NodeGroup]:
    """Return the groups of nodes that a case cannot run on; ``features`` are those that its test
    requires."""
    fitting = [
        kind
        for kind in _in_asked_partition(machine, machine.nodes, case.job)
        if set(features) <= set(kind.features) and _has(kind, case.gpus, case.job.memory, cpus=0)
    ]
    # One that is too large for each of them oversubscribes them.
    cpus = case.tasks_per_node * case.threads
    fitting = [kind for kind in fitting if cpus_of(kind) >= cpus] or fitting
    return [kind for kind in machine.nodes if kind not in fitting]


def usable_nodes(machine: Machine, features: Sequence[str], case: Case) -> list[str]:
    """Return the nodes that a case can run on, of those that jobs get at all."""
    lost = {name for kind in unfit_groups(machine, features, case) for name in unfold(kind.names)}
    lost.update(unfold_or_empty(machine.slurm.exclude))
    kept = set(unfold_or_empty(machine.slurm.nodelist))
    return [name for name in node_names(machine) if name not in lost and (not kept or name in kept)]


def has_partitions(machine: Machine) -> bool:
    """Return True if kinds of nodes name their partitions."""
    return any(kind.partition for kind in machine.nodes)


def in_partition(machine: Machine, kind: NodeGroup, wanted: str) -> bool:
    """Return False if the nodes of a kind are in none of these partitions, as sbatch lists them. Of
    a partition that the machine's file does not name, such as one for debugging, every node may be
    a part."""
    names = wanted.split(",")
    known = {_partition(machine, each) for each in machine.nodes}
    return _partition(machine, kind) in names or not known.issuperset(names)


def _asked_partition(machine: Machine, options: JobOptions) -> str:
    """Return the partition of a job: the one that its options name, else the machine's."""
    return machine.slurm.partition if options.partition is None else options.partition


def _in_asked_partition(
    machine: Machine, kinds: Sequence[NodeGroup], options: JobOptions
) -> Sequence[NodeGroup]:
    """Return the kinds of nodes to which a job may go."""
    if not has_partitions(machine):
        return kinds
    wanted = _asked_partition(machine, options)
    return [kind for kind in kinds if in_partition(machine, kind, wanted)]


def _partition(machine: Machine, kind: NodeGroup) -> str:
    return kind.partition or machine.slurm.partition


def _has(kind: NodeGroup, gpus: int, memory: int, cpus: int) -> bool:
    enough_memory = not memory or (kind.memory.bytes or memory) >= memory
    return kind.gpus >= gpus and enough_memory and cpus_of(kind) >= cpus


OVERCOMMIT = "--overcommit"
OVERCOMMITTING = ("local", "slurm")
"""Schedulers that give a node more tasks than it has CPUs where they are told to."""


def why_crowded(machine: Machine, kinds: Sequence[NodeGroup], case: Case) -> str:
    """Return why no node of these kinds has a CPU for each thread of the tasks of a node; "" if one
    has, or the scheduler is told to overcommit."""
    tasks, threads = case.tasks_per_node, case.threads
    largest = max((cpus_of(kind) for kind in kinds), default=0)
    if tasks * threads <= largest or not largest or overcommits(machine, case.job):
        return ""
    each = "" if threads == 1 else f" of {count(threads, 'thread')}"
    remedy = "fewer tasks" if machine.scheduler == "local" else "more nodes or fewer tasks"
    if machine.scheduler in OVERCOMMITTING:
        remedy += ", or write `oversubscribe: true` below `run`"
    return (
        f"needs {count(tasks * threads, 'CPU')} of a node for {count(tasks, 'task')}{each}, and a "
        f"node has {largest}; ask for {remedy}"
    )


def overcommits(machine: Machine, options: JobOptions) -> bool:
    """Return whether the scheduler is told to give a node more tasks than it has CPUs."""
    said = {*machine.slurm.options, *options.options}
    is_told = options.oversubscribe or not said.isdisjoint({OVERCOMMIT, "-O"})
    return is_told and machine.scheduler in OVERCOMMITTING


def cpus_of(kind: NodeGroup) -> int:
    """Return the CPUs of a node of a kind: its hardware threads."""
    return kind.cores * kind.threads_per_core


# ---- unlike nodes --------------------------------------------------------------------------------
#
# Nodes that differ among those that a case may get: a figure of one kind is none of another.
#
# unlike_nodes(machine, features, cases) # "n[001-004]: 2 cores in 1 NUMA domain; n[005-006]: ..."


MAX_NAMED = 3


def unlike_nodes(machine: Machine, features: Sequence[str], cases: Iterable[Case]) -> str:
    """Return the kinds of nodes that the cases of a test, which requires the ``features``, may run
    on, in words, if their cores differ; else an empty text."""
    if len({layout_of(kind) for kind in machine.nodes}) < 2:
        return ""
    examples = {(case.job, case.gpus): case for case in cases}.values()
    usable = {name for case in examples for name in usable_nodes(machine, features, case)}
    kinds = [kind for kind in machine.nodes if usable.intersection(unfold(kind.names))]
    return kinds_text(kinds)


def kinds_text(kinds: Iterable[NodeGroup]) -> str:
    """Return kinds of nodes in words, one of each layout; "" for kinds that are alike."""
    layouts: dict[NodeLayout, str] = {}
    for kind in kinds:
        domains = count(kind.numa_domains, "NUMA domain")
        text = f"{kind.names}: {count(kind.cores, 'core')} in {domains}"
        layouts.setdefault(layout_of(kind), text)
    return "; ".join([*layouts.values()][:MAX_NAMED]) if len(layouts) > 1 else ""


def told_unlike(machine: Machine, tests: Mapping[str, Test], cases: Iterable[Case]) -> str:
    """Return a note on the tests whose runs may get nodes that differ; "" if there are none."""
    if machine.scheduler == "local":
        return ""
    by_test: dict[str, list[Case]] = {}
    for case in cases:
        if not case.only_builds and not case.node:
            by_test.setdefault(case.test, []).append(case)
    kinds: dict[str, list[str]] = {}
    for test, members in by_test.items():
        if kinds_of_test := unlike_nodes(machine, tests[test].requires.features, members):
            kinds.setdefault(kinds_of_test, []).append(test)
    if not kinds:
        return ""
    kinds_of_test, named = next(iter(kinds.items()))
    return (
        f"runs of {listed(named, MAX_NAMED)} may get nodes that differ ({kinds_of_test}): "
        "node.cores and other facts are those of the first kind that fits, and figures are of "
        "both; choose one kind by run.partition or requires.features"
    )
