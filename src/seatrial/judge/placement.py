"""Where the threads of a run were, and whether that is as asked.

    places = xthi.places(text)                              # or hello.places(text)
    judgement = judge(places, AskedShape(nodes=1, tasks=4, ...), PlacementCheck(), given)
    judgement.fault     # ranks 0-3 on CPU 1; 4 cores asked
    judgement.notice    # could not be apart: 4 ranks, 2 CPUs

Pure. CPUs have the numbers that Linux gives to hardware threads.
"""

import functools
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from seatrial.escaping import plain_line
from seatrial.files import read_regular
from seatrial.model.codes import CHECK_ERROR, MISPLACED
from seatrial.model.figures import Finding, MetricValue
from seatrial.model.nodes import spans
from seatrial.model.task_placement import COUNTED_FILE, COUNTED_LINE
from seatrial.model.test import Case, PlacementCheck
from seatrial.units import count, listed

MAX_CPUS = 8192
LONGEST_SET = 8192  # characters of a set of CPUs

Cpus = frozenset[int]

_RANGE = r"([0-9]{1,4})(?:-([0-9]{1,4}))?"


class ThreadPlace(NamedTuple):
    """A thread of a rank: the CPUs that it may use (None: not known), and, if the program tells
    them, the CPU that it was on, all CPUs of that core, and its NUMA domain."""

    rank: int
    thread: int
    node: str
    allowed: Cpus | None
    cpu: int | None = None
    core: Cpus | None = None
    numa: int | None = None


class CpusGiven(Struct, frozen=True):
    """The CPUs that a job was given on a node, before anything was bound."""

    node: str
    cpus: Cpus


class AskedShape(NamedTuple):
    """What a case asked for. ``cores`` and ``cores_per_numa`` are of a node; 0: not known.
    ``hosts`` has the host, ``slots`` the slot of each rank by its order, if there is one. ``cpus``
    are those that the launcher asks for, of each slot of a node; none where it decides."""

    nodes: int
    tasks: int
    tasks_per_node: int
    threads: int
    cores: int = 0
    cores_per_numa: int = 0
    hosts: tuple[str, ...] = ()
    slots: tuple[int, ...] = ()
    cpus: tuple[Cpus, ...] = ()


class PlacementJudgement(Struct, frozen=True):
    """What is not as asked, and what could not be; "" for nothing."""

    fault: str
    notice: str


NOTHING = PlacementJudgement("", "")


@functools.lru_cache(maxsize=4096)
def cpus_of(text: str) -> Cpus:
    """Return the CPUs of ``0-3,8``. Raises ValueError for any other text."""
    cpus: set[int] = set()
    for part in text[: LONGEST_SET + 1].split(","):
        match = re.fullmatch(_RANGE, part.strip())
        first, last = (int(match[1]), int(match[2] or match[1])) if match else (1, 0)
        if last < first or last >= MAX_CPUS or len(text) > LONGEST_SET:
            raise ValueError(f"{text[:60]!r} is not a set of CPUs such as 0-3,8")
        cpus.update(range(first, last + 1))
    return frozenset(cpus)


def figures_of(places: Sequence[ThreadPlace]) -> list[MetricValue]:
    """Return for each thread the number of CPUs that it may use (0: not known)."""
    return [
        MetricValue(
            "cpus",
            len(place.allowed or ()),
            "1",
            "none",
            labels={
                "rank": place.rank,
                "thread": place.thread,
                "node": place.node,
                **({} if place.cpu is None else {"cpu": place.cpu}),
                **({} if place.numa is None else {"numa": place.numa}),
            },
        )
        for place in places
    ]


def judge(
    places: Sequence[ThreadPlace],
    asked: AskedShape,
    check: PlacementCheck,
    given: CpusGiven | None = None,
) -> PlacementJudgement:
    """Compare where threads were with what was asked. ``given`` is of one node of the job; the
    others were given as many CPUs."""
    if faults := list(_miscounted(places, asked, check)):
        return PlacementJudgement(_first_of(faults), "")
    nodes: dict[str, list[ThreadPlace]] = defaultdict(list)
    for place in places:
        nodes[place.node].append(place)
    cpus = {given.node: given.cpus} if given is not None and given.node in nodes else {}
    number_given = sum(map(len, cpus.values()))
    judgements: list[PlacementJudgement] = []
    for node, threads in nodes.items():
        where = f" of {node}" if len(nodes) > 1 else ""
        judgements += _of_node(threads, asked, check, number_given, cpus.get(node), where)
    return PlacementJudgement(
        _first_of(each.fault for each in judgements),
        _first_of(each.notice for each in judgements),
    )


def _of_node(
    threads: Sequence[ThreadPlace],
    asked: AskedShape,
    check: PlacementCheck,
    number_given: int,
    given: Cpus | None,
    where: str,
) -> Iterator[PlacementJudgement]:
    """Yield what is not as asked on one node."""
    if check.cores == "apart":
        yield _not_apart(threads, number_given, where)
    if check.numa == "within":
        yield _not_within(threads, asked, where)
    if check.cpus == "asked" and asked.cpus:
        yield _elsewhere(threads, asked, given, where)


def _first_of(texts: Iterable[str]) -> str:
    """Return the first text that is not empty, and how many more there are."""
    present = list(filter(None, texts))
    return f"{present[0]}{_more('; and', len(present))}" if present else ""


def _more(words: str, number: int, noun: str = "") -> str:
    """Return how many more there are beside the first of a number; "" if there is none."""
    if number < 2:
        return ""
    return f"{words} {count(number - 1, noun) if noun else number - 1} more"


# ---- how many ------------------------------------------------------------------------------


def _miscounted(
    places: Sequence[ThreadPlace], asked: AskedShape, check: PlacementCheck
) -> Iterator[str]:
    """Yield what is wrong with the numbers of ranks, threads and nodes."""
    threads = Counter(place.rank for place in places)
    if twice := _ran_twice(places):
        yield twice
    elif len(threads) != asked.tasks:
        yield f"asked {count(asked.tasks, 'rank')}, {len(threads)} ran"
    else:
        if check.threads == "asked":
            yield from _of_other_threads(threads, asked.threads)
        if check.nodes == "asked":
            yield from _misspread(places, asked)
        if check.order == "asked" and asked.hosts:
            yield from _misordered(places, asked.hosts)


def _ran_twice(places: Sequence[ThreadPlace]) -> str:
    """Return that a thread of a rank ran several times; "" if none did."""
    (place, times), *_ = Counter((place.rank, place.thread) for place in places).most_common(1)
    if times == 1:
        return ""
    rank, thread = place
    which = f"rank {rank}" if thread == 0 else f"thread {thread} of rank {rank}"
    return (
        f"{which} ran {times} times: each task is an MPI program of its own; use the launcher "
        "of its MPI"
    )


def _of_other_threads(threads: Counter[int], asked: int) -> Iterator[str]:
    """Yield the first rank that ran another number of threads than asked."""
    for rank in sorted(threads):
        if threads[rank] != asked:
            where = "" if len(set(threads.values())) == 1 else f" of rank {rank}"
            yield f"asked {count(asked, 'thread')}, {threads[rank]} ran{where}"
            return


def _misordered(places: Sequence[ThreadPlace], hosts: Sequence[str]) -> Iterator[str]:
    """Yield the first rank that is not on the node where the order has it. Programs may call nodes
    otherwise than the scheduler; then ranks of one node must be on one node."""
    node_of = {place.rank: place.node for place in places if place.rank < len(hosts)}
    called = _names_of_hosts(node_of, hosts)
    twice = [name for name, times in Counter(called.values()).items() if times > 1]
    if twice:
        yield f"the rank order asks for {count(len(called), 'node')}; {twice[0]} is two of them"
        return
    wrong = [rank for rank in sorted(node_of) if node_of[rank] != called[hosts[rank]]]
    if wrong:
        rank, more = wrong[0], _more(", and", len(wrong))
        asked_for = called[hosts[rank]]
        yield f"rank {rank} on {node_of[rank]}; the rank order has it on {asked_for}{more}"


def _names_of_hosts(node_of: Mapping[int, str], hosts: Sequence[str]) -> dict[str, str]:
    """Return what programs call each host of a rank order, by the first rank that is on it."""
    if {*node_of.values()} == {*hosts}:
        return {host: host for host in hosts}
    called: dict[str, str] = {}
    for rank in sorted(node_of):
        called.setdefault(hosts[rank], node_of[rank])
    return called


def _misspread(places: Sequence[ThreadPlace], asked: AskedShape) -> Iterator[str]:
    ranks = Counter(node for node, _ in {(place.node, place.rank) for place in places})
    if len(ranks) != asked.nodes:
        names = listed(sorted(ranks), 4)
        yield f"asked {count(asked.nodes, 'node')}, {len(ranks)} had ranks: {names}"
        return
    node, max_ranks = ranks.most_common(1)[0]
    if max_ranks > asked.tasks_per_node:
        yield f"asked {count(asked.tasks_per_node, 'rank')} a node, {node} had {max_ranks}"


# ---- on which cores ------------------------------------------------------------------------


def _not_apart(places: Sequence[ThreadPlace], cpus: int, where: str) -> PlacementJudgement:
    """Return which threads of a node share a core, or a CPU if it has fewer cores than threads.
    ``cpus`` is the number of CPUs that the job was given there; 0: not known."""
    if cpus and len(places) > cpus:
        ranks = {place.rank for place in places}
        threads = "" if len(places) == len(ranks) else f" of {count(len(places), 'thread')}"
        notice = f"could not be apart{where}: {count(len(ranks), 'rank')}{threads}"
        return PlacementJudgement("", f"{notice}, {count(cpus, 'CPU')}")
    in_core = max(len(place.core or (0,)) for place in places)
    by_core = not cpus or len(places) <= cpus // in_core
    locations = [_locations(place, by_core) for place in places]
    if not all(locations):
        rank = places[locations.index(frozenset())].rank
        return PlacementJudgement("", f"the CPUs of rank {rank}{where} are not known")
    crowd = _crowd(locations)
    return NOTHING if crowd is None else _shared(crowd, places, by_core, where)


def _shared(
    crowd: "_Crowd", places: Sequence[ThreadPlace], by_core: bool, where: str
) -> PlacementJudgement:
    """Return who shares which CPUs on a node."""
    members, shared = [places[i] for i in crowd.members], crowd.cpus
    if by_core:
        shared = shared.union(*(place.core or () for place in members))
    asked = count(len(members), "core")
    return PlacementJudgement(f"{_who(members)}{where} on {_named(shared)}; {asked} asked", "")


def _named(cpus: Iterable[int]) -> str:
    """Return ``CPU 3`` or ``CPUs 0-3``."""
    text = spans(cpus)
    return f"CPU {text}" if text.isdigit() else f"CPUs {text}"


def _locations(place: ThreadPlace, by_core: bool) -> Cpus:
    """Return the CPUs on which a thread may be taken to be: the one that it was on, or its core's
    first if cores count; else all that it may use."""
    if place.cpu is None:
        return place.allowed or frozenset()
    return frozenset((min(place.core) if by_core and place.core else place.cpu,))


class _Crowd(Struct, frozen=True):
    members: list[int]
    cpus: Cpus


def _crowd(wanted: Sequence[Cpus]) -> _Crowd | None:
    """Return threads that have together fewer CPUs than they are (Hall 1935), by their index, and
    all that these CPUs are for; None if each can have one of its own. By augmenting paths (Kuhn
    1955)."""
    holder: dict[int, int] = {}  # of each CPU
    held: dict[int, int] = {}  # by each thread
    for start in range(len(wanted)):
        free, came = _free_cpu(start, wanted, holder)
        if free is None:
            shared = frozenset(came)
            return _Crowd([i for i, cpus in enumerate(wanted) if cpus <= shared], shared)
        while free is not None:  # each on the path takes the CPU of the one before
            thread = came[free]
            holder[free], held[thread], free = thread, free, held.get(thread)
    return None


def _free_cpu(
    start: int, wanted: Sequence[Cpus], holder: Mapping[int, int]
) -> tuple[int | None, dict[int, int]]:
    """Return a CPU without a holder that is reached from a thread, where each holder may move to
    another of its CPUs (None: there is none), and the thread from which each CPU was reached."""
    came: dict[int, int] = {}
    queue = [start]
    while queue:
        thread = queue.pop()
        new = wanted[thread] - came.keys()
        came |= dict.fromkeys(new, thread)
        for cpu in new - holder.keys():
            return cpu, came
        queue += [holder[cpu] for cpu in new]
    return None, came


def _who(members: Sequence[ThreadPlace]) -> str:
    ranks = {place.rank for place in members}
    if len(ranks) == 1:
        return f"threads {spans({p.thread for p in members})} of rank {min(ranks)}"
    if len(ranks) == len(members):
        return f"ranks {spans(ranks)}"
    return f"{len(members)} threads of ranks {spans(ranks)}"


# ---- in which NUMA domains -----------------------------------------------------------------


def _not_within(places: Sequence[ThreadPlace], asked: AskedShape, where: str) -> PlacementJudgement:
    """Return the first rank of a node whose threads are in several NUMA domains."""
    cores = asked.cores_per_numa
    if asked.threads == 1 or (cores and cores == asked.cores):
        return NOTHING
    if cores and asked.threads > cores:
        fit = f"{count(asked.threads, 'thread')} do not fit in a NUMA domain"
        return PlacementJudgement("", f"{fit} of {count(cores, 'core')}")
    domains: dict[int, set[int]] = defaultdict(set)
    for place in places:
        if place.numa is None:
            return PlacementJudgement("", "its output does not tell NUMA domains")
        domains[place.rank].add(place.numa)
    wrong = sorted(rank for rank, numbers in domains.items() if len(numbers) > 1)
    if not wrong:
        return NOTHING
    rank, more = wrong[0], _more(" and of", len(wrong), "rank")
    fault = f"threads of rank {rank}{more}{where} in NUMA domains {spans(domains[rank])}; one asked"
    return PlacementJudgement(fault, "")


# ---- on which CPUs -------------------------------------------------------------------------


def _used(places: Sequence[ThreadPlace]) -> dict[int, set[int]]:
    """Return by rank the CPUs that its threads may use, or were on."""
    used: dict[int, set[int]] = defaultdict(set)
    for place in places:
        used[place.rank] |= place.allowed or (set() if place.cpu is None else {place.cpu})
    return used


def _elsewhere(
    places: Sequence[ThreadPlace], asked: AskedShape, given: Cpus | None, where: str
) -> PlacementJudgement:
    """Return the first rank of a node that may use, or was on, CPUs that its launcher did not ask
    for. ``given``: the CPUs that the job was given there, None if they are not known."""
    used = _used(places)
    wanted = _wanted(sorted(used), asked)
    beyond = [rank for rank, cpus in wanted.items() if given is not None and not cpus <= given]
    if given is not None and beyond:
        asked_for = f"rank {beyond[0]} could not be on CPUs {spans(wanted[beyond[0]])}{where}"
        return PlacementJudgement("", f"{asked_for}: its job had {spans(given)}")
    wrong = [rank for rank in wanted if not used[rank] <= wanted[rank]]
    if not wrong:
        return NOTHING
    rank, more = wrong[0], _more("; and", len(wrong), "rank")
    fault = f"rank {rank}{where} on {_named(used[rank])}; {spans(wanted[rank])} asked{more}"
    return PlacementJudgement(fault, "")


def _wanted(ranks: Sequence[int], asked: AskedShape) -> dict[int, Cpus]:
    """Return the CPUs that the launcher asks for, of each rank of a node that has a slot there."""
    slots = dict(zip(ranks, range(len(asked.cpus)), strict=False))
    if asked.slots:
        slots = {rank: asked.slots[rank] for rank in ranks if rank < len(asked.slots)}
    return {rank: asked.cpus[slot] for rank, slot in slots.items() if slot < len(asked.cpus)}


# ---- threads ran ---------------------------------------------------------------------------------
#
# Whether the program of a run ran the threads that its case asks for, by what was counted.
#
#     fault_of_threads(case, run_directory)    # gtc ran 1 thread of 6 asked: ranks 0-3
#
# The library of ``model/seatrial_threads.c`` counts. A rank of which nothing was counted is not
# proved, and its run does not pass.


MAX_BYTES = 64 << 20
LONGEST_RANKS = 120  # characters

_REMEDY = (
    "it must be started by $LAUNCH, and a static one must run for a while; `placement: {threads: "
    "any}` in placement.txt asks for no proof of threads"
)


def fault_of_threads(case: Case, folder: Path) -> list[Finding]:
    """Return the finding that ranks ran fewer threads than asked, or that nothing is known of
    them; none where all ran as many."""
    ran = _counted(case, folder)
    few = [rank for rank, (threads, _) in ran.items() if threads < case.threads]
    silent = [rank for rank in range(case.tasks) if rank not in ran]
    if few:
        threads, program = ran[few[0]]
        ranks = "" if case.tasks == 1 else f": {_ranks(few)}"
        fault = f"{program} ran {count(threads, 'thread')} of {case.threads} asked{ranks}"
        return [Finding(MISPLACED, plain_line(fault))]
    if silent:
        which = "the program" if case.tasks == 1 else f"the program of {_ranks(silent)}"
        fault = f"run.prove: not proved: the threads of {which} were not seen; {_REMEDY}"
        return [Finding(CHECK_ERROR, fault)]
    return []


def _counted(case: Case, folder: Path) -> dict[int, tuple[int, str]]:
    """Return the number of threads and the program of each rank that was counted."""
    try:
        text = read_regular(folder / COUNTED_FILE, MAX_BYTES, follow=False).decode(errors="replace")
    except OSError:
        return {}
    lines = COUNTED_LINE.findall(text)
    counted = {rank: (int(threads), program) for rank, threads, _, program in lines}
    if case.tasks == 1 and "-" in counted:  # without a launcher no rank has a number
        counted.setdefault("0", counted["-"])
    return {rank: counted[str(rank)] for rank in range(case.tasks) if str(rank) in counted}


def _ranks(ranks: list[int]) -> str:
    text = spans(frozenset(ranks))
    text = text if len(text) <= LONGEST_RANKS else f"{text[:LONGEST_RANKS]}..."
    return f"rank {text}" if len(ranks) == 1 else f"ranks {text}"
