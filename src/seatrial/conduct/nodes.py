"""Which nodes are fit for use: down, excluded for repeated failures, or to be avoided once."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from seatrial.conduct.in_flight import RunInFlight
from seatrial.conduct.policy import Exclusion
from seatrial.machine.facts import fold, unfold_or_empty
from seatrial.units import SECOND_NS, count, show_seconds

FEW = 4  # nodes of a run, up to which each of them is blamed where nobody names the bad one


class NodeIncident(NamedTuple):
    """Something that is held against a node; ``named`` where the scheduler itself named it."""

    time: int
    cause: str
    named: bool


class NodeRecord:
    """A fold over what the scheduler says of nodes and over how runs ended there. ``usable`` is how
    many can be used now (0 where nobody said how many there are), ``allowed`` how many are not
    excluded (None where nobody said)."""

    def __init__(self, exclusion: Exclusion, nodes: int) -> None:
        self._exclusion = exclusion
        self._all = nodes
        self.usable = nodes
        self.allowed = nodes or None
        self.down: set[str] = set()
        self.excluded: dict[str, str] = {}  # node -> why
        self._avoid: dict[int, set[str]] = {}  # case -> nodes that its next run must not get
        self._failed: dict[str, deque[NodeIncident]] = {}  # the latest failures
        self._suspected: set[str] = set()  # nodes with failures that nobody named
        self._candidates: dict[str, None] = {}  # nodes with enough failures, at whatever times
        self._went_down: dict[str, int] = {}
        self.exclusions = 0  # how many there have been
        self._folded: dict[frozenset[str], str] = {frozenset(): ""}  # with other nodes, by those

    # ---- events in ------------------------------------------------------------------------

    def fall(self, nodes: str, time: int) -> None:
        for node in unfold_or_empty(nodes):
            self.down.add(node)
            self._went_down[node] = time
        self._recount()

    def rise(self, nodes: str) -> None:
        self.down.difference_update(unfold_or_empty(nodes))
        self._recount()

    def exclude(self, nodes: str, why: str) -> None:
        for node in unfold_or_empty(nodes):
            self.excluded[node] = why
            self._candidates.pop(node, None)
        self.exclusions += 1
        self._folded.clear()
        self._recount()

    def admit(self, nodes: str) -> None:
        for node in unfold_or_empty(nodes):
            self.excluded.pop(node, None)
            self._forget(node)
        self._folded.clear()
        self._recount()

    def _recount(self) -> None:
        if self._all:
            self.allowed = max(0, self._all - len(self.excluded))
        self.usable = max(0, self._all - len(self.down | self.excluded.keys()))

    def launched(self, case: int) -> set[str] | None:
        """The nodes that its run alone is to avoid: the next one need not."""
        return self._avoid.pop(case, None)

    def recalled(self, case: int, away: set[str] | None) -> None:
        """A run of a case never started: what it was to avoid, the next one is to."""
        if away:
            self._avoid.setdefault(case, set()).update(away)

    def ended(self, flight: RunInFlight, cause: str, elsewhere: bool) -> None:
        """A run ended badly, for a cause; ``elsewhere``: its case's next run is to avoid what may
        be to blame, all of its nodes if nobody knows better."""
        held_against = cause in self._exclusion.causes and self._exclusion.after > 0
        if not flight.nodes or not (elsewhere or held_against):
            return
        on = unfold_or_empty(flight.nodes)
        since = flight.job_started or flight.submitted or 0
        named = [node for node in on if self._went_down.get(node, -1) >= since]
        if elsewhere:
            self._avoid.setdefault(flight.case, set()).update(named or on)
        if held_against and (named or len(on) <= FEW):
            for node in named or on:
                self._hold_against(node, NodeIncident(flight.judged or 0, cause, bool(named)))

    def _hold_against(self, node: str, failure: NodeIncident) -> None:
        after = self._exclusion.after
        failures = self._failed.setdefault(node, deque(maxlen=after))
        failures.append(failure)
        if not failure.named:
            self._suspected.add(node)
        if len(failures) == after and node not in self.excluded:
            self._candidates[node] = None

    def passed(self, flight: RunInFlight) -> None:
        """A run was good: what was merely suspected of its nodes is forgotten."""
        if not self._suspected or not flight.nodes:
            return
        for node in self._suspected.intersection(unfold_or_empty(flight.nodes)):
            named = [failure for failure in self._failed[node] if failure.named]
            if len(named) < self._exclusion.after:
                self._candidates.pop(node, None)
            self._failed[node] = deque(named, maxlen=self._exclusion.after)
            self._suspected.discard(node)

    def _forget(self, node: str) -> None:
        self._failed.pop(node, None)
        self._suspected.discard(node)
        self._candidates.pop(node, None)

    @property
    def any_suspect(self) -> bool:
        """Whether any node failed often enough to be looked at."""
        return bool(self._candidates)

    # ---- what follows ---------------------------------------------------------------------

    def avoid(
        self, case: int, nodes: int, first: bool = True, shut: frozenset[str] = frozenset()
    ) -> str:
        """The nodes that a run of a case must not get, folded: those that are excluded or ``shut``
        and, if it is the ``first`` one after a failure, those of that, if enough others are
        there."""
        once = self._avoid.get(case) if first else None
        if once:
            away = once.union(self.excluded, shut)
            if self._all - len(away | self.down) >= nodes:
                return fold(away)
        if shut not in self._folded:
            self._folded[shut] = fold(shut.union(self.excluded))
        return self._folded[shut]

    def usable_beside(self, shut: frozenset[str]) -> int:
        """How many can be used now that are not ``shut``."""
        if not shut:
            return self.usable
        return max(0, self._all - len(shut.union(self.down, self.excluded)))

    def to_exclude(self, now: int) -> Iterator[tuple[str, str]]:
        """(node, why) of those that failed too often and are to be excluded now."""
        room = self._most() - len(self.excluded)
        for node, failures in self._bad(now):
            if room <= 0:
                return
            room -= 1
            causes = ", ".join(dict.fromkeys(failure.cause for failure in failures))
            span = show_seconds(self._exclusion.within)
            yield node, f"{count(len(failures), 'failure')} there within {span}: {causes}"

    def beyond_cap(self, now: int) -> str:
        """What people must be told: more nodes fail than may be excluded. "" if that is not so."""
        bad = sum(1 for _ in self._bad(now))
        if bad == 0 or bad <= self._most() - len(self.excluded):
            return ""
        return (
            f"{count(bad, 'node')} failed repeatedly, and no more than {self._most()} may be "
            f"excluded, of which {len(self.excluded)} already; look for what they share"
        )

    def _most(self) -> int:
        """How many may be excluded by us: one at least, but not all that there are."""
        most = max(1, int(self._all * self._exclusion.most))
        return min(most, self._all - 1) if self._all else most

    def _bad(self, now: int) -> Iterator[tuple[str, Sequence[NodeIncident]]]:
        """The nodes that failed so often within the span that they are to be excluded."""
        since = now - round(self._exclusion.within * SECOND_NS)
        for node in self._candidates:
            failures = list(self._failed[node])
            if failures[0].time >= since:
                yield node, failures
