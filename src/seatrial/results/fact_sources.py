"""What plug-ins know of the nodes of runs: beside comparisons and histories, and of slow runs."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from msgspec import Struct

from seatrial.hooks import FactSource, load, provided
from seatrial.results.compare import Difference
from seatrial.results.history import History
from seatrial.results.selection import Side
from seatrial.results.store import series
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import Filters, RunOutcome

LATELY_NS = 7 * 86_400_000_000_000


class SlowFact(Struct, frozen=True):
    """A value of facts whose nodes are slower or faster than the others."""

    #: Several facts where they divide the nodes alike.
    keys: list[str]
    value: str
    #: The nodes that have it, folded; they are ``count`` of ``of``.
    nodes: str
    count: int
    of: int
    #: How many times as long runs take there as elsewhere.
    ratio: float
    #: Multiplied by the number of questions.
    p: float


class SlowFacts(NamedTuple):
    """The facts that go with times, the surest first, and how many questions were asked."""

    facts: list[SlowFact]
    questions: int


def _sources() -> Iterator[FactSource]:
    yield from provided("seatrial_fact_sources")


def node_differences(store: Store, first: Side, second: Side) -> list[Difference]:
    """Return how the nodes of two sides differ."""
    return [
        difference
        for source in _sources()
        for difference in load(source.differences)(store, first, second)
    ]


def with_node_changes(store: Store, histories: list[History]) -> list[History]:
    """Return histories with what changed on the nodes when their levels did."""
    for source in _sources():
        histories = load(source.changes)(store, histories)
    return histories


def told_of_nodes(store: Store, machine: str, runs: Sequence[RunOutcome]) -> dict[str, list[str]]:
    """Return what is known of nodes of a machine beside its runs: sentences by node."""
    told: dict[str, list[str]] = {}
    for source in _sources():
        if source.nodes:
            sentences: dict[str, str] = load(source.nodes)(store, machine, runs)
            for node, sentence in sentences.items():
                told.setdefault(node, []).append(sentence)
    return told


def told_lately(store: Store, machine: str) -> dict[str, list[str]]:
    """Return what is known of nodes of a machine beside its runs of the last seven days: sentences
    by node."""
    chosen = Filters(machine=machine, since=time.time_ns() - LATELY_NS)
    return told_of_nodes(store, machine, series.outcomes(store, chosen))


def slow_facts(store: Store, machine: str, runs: Sequence[RunOutcome]) -> SlowFacts | None:
    """Return the facts of nodes that go with slow runs of a machine; None if none are known."""
    known = [load(source.slow)(store, machine, runs) for source in _sources()]
    told: list[SlowFacts] = [one for one in known if one is not None]
    if not told:
        return None
    facts = [fact for one in told for fact in one.facts]
    return SlowFacts(sorted(facts, key=lambda fact: fact.p), sum(one.questions for one in told))
