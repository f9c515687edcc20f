"""Which facts of nodes go with slow runs: "on nodes with firmware 1.2 they take 7 % longer".

    found = slow_facts(outcomes, table)
    found.facts[0].keys, found.facts[0].ratio     # ["node.firmware"], 1.07

Each run is compared with the median of its case. The runs of the same nodes are one figure, the
median of theirs, so that many runs on few nodes are no more evidence than the nodes are. Nodes with
a value of a fact are compared with all others by Welch's test on logarithms. Facts that divide the
nodes in the same way are one question, and p is multiplied by the number of questions (Bonferroni).
"""

import math
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from seatrial.lazy import statistics
from seatrial.machine.node_sets import fold, unfold_or_empty
from seatrial.rules.facts import READINGS, FactTable
from seatrial.statistics.multiple_testing import student_p
from seatrial.store.queries import MEASURED
from seatrial.store.rows import RunOutcome

LEVEL = 0.05
LEAST = 0.005  # a smaller difference is not told, however certain it is
MIN_NODES = 2  # on each side
MIN_RUNS = 4  # of a case
MAX_QUESTIONS = 2000


class SlowFact(Struct, frozen=True):
    """A value of facts (several if they divide the nodes alike) whose nodes are slower or faster.
    ``ratio``: how many times as long runs take there as elsewhere; ``nodes`` folded, ``count`` of
    ``of`` nodes have it; ``p`` is corrected."""

    keys: list[str]
    value: str
    nodes: str
    count: int
    of: int
    ratio: float
    p: float


class SlowFacts(NamedTuple):
    """The facts that go with times, the surest first, and how many questions were asked."""

    facts: list[SlowFact]
    questions: int


def slow_facts(outcomes: Sequence[RunOutcome], table: FactTable) -> SlowFacts:
    """Return the facts of nodes that explain times of runs of one machine better than chance."""
    figures = _figures(outcomes, set(table.nodes))
    used = {node for nodes in figures for node in nodes}
    questions = _questions(table.only(used))
    found = []
    for members, facts in questions.items():
        inside = [math.exp(x) for nodes, x in figures.items() if members.issuperset(nodes)]
        outside = [math.exp(x) for nodes, x in figures.items() if members.isdisjoint(nodes)]
        p = student_p(inside, outside)
        if p is None or min(len(inside), len(outside)) < MIN_NODES:
            continue
        ratio = math.exp(
            statistics.mean(map(math.log, inside)) - statistics.mean(map(math.log, outside))
        )
        corrected = min(1.0, p * len(questions))
        if corrected < LEVEL and abs(math.log(ratio)) >= LEAST:
            keys = [key for key, _ in facts]
            nodes = fold(members)
            found.append(
                SlowFact(keys, facts[0][1], nodes, len(members), len(used), ratio, corrected)
            )
    return SlowFacts(sorted(found, key=lambda one: one.p), len(questions))


def _figures(outcomes: Sequence[RunOutcome], known: set[str]) -> dict[tuple[str, ...], float]:
    """Return the logarithm of the time of runs beside the median of their case, for each set of
    nodes that ran some."""
    of_nodes: dict[tuple[str, ...], list[float]] = {}
    for one, deviation in deviations(outcomes):
        nodes = unfold_or_empty(one.nodes)
        if nodes and known.issuperset(nodes):
            of_nodes.setdefault(nodes, []).append(deviation)
    return {nodes: statistics.median(times) for nodes, times in of_nodes.items()}


def deviations(outcomes: Sequence[RunOutcome]) -> Iterator[tuple[RunOutcome, float]]:
    """Yield the runs whose answer was right, each with the logarithm of its time beside the median
    of its case. Cases of few runs are left out."""
    cases: dict[tuple[str, ...], list[RunOutcome]] = {}
    for one in outcomes:
        if one.code in MEASURED and one.elapsed:
            cases.setdefault(one.case_key, []).append(one)
    for runs in cases.values():
        if len(runs) >= MIN_RUNS:
            times = [math.log(one.elapsed or 1.0) for one in runs]
            middle = statistics.median(times)
            yield from zip(runs, (time - middle for time in times), strict=True)


def _questions(table: FactTable) -> dict[frozenset[str], list[tuple[str, str]]]:
    """Return the facts (key, value) by the nodes that have them, each division of the nodes into
    two sides once: the smaller side stands for it."""
    found: dict[frozenset[str], list[tuple[str, str]]] = {}
    for key in table.keys:
        if key.startswith((READINGS, "skipped.")):
            continue
        for value, nodes in table.folded(key).items():
            members = frozenset(nodes)
            rest = len(table.nodes) - len(members)
            if value is None or not MIN_NODES <= len(members) <= rest or rest < MIN_NODES:
                continue
            if members in found or len(found) < MAX_QUESTIONS:
                found.setdefault(members, []).append((key, value))
    return found
