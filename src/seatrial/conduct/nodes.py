"""Which nodes are fit for use: down, excluded for repeated failures, or to be avoided once."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import NamedTuple

from seatrial.conduct.flights import Flight
from seatrial.conduct.policy import Exclusion
from seatrial.machine.facts import unfold
from seatrial.units import SECOND_NS, count, show_seconds

FEW = 4  # nodes of a run, up to which each of them is blamed where nobody names the bad one


class Failure(NamedTuple):
    """Something that is held against a node; ``named`` where the scheduler itself named it."""

    time: int
    cause: str
    named: bool


class NodeRecord:
    """A fold over what the scheduler says of nodes and over how runs ended there."""

    def __init__(self, exclusion: Exclusion, nodes: int) -> None:
        self._exclusion = exclusion
        self._all = nodes
        self.down: set[str] = set()
        self.excluded: dict[str, str] = {}  # node -> why
        self._avoid: dict[int, set[str]] = {}  # entry -> nodes that its next run must not get
        self._failed: dict[str, list[Failure]] = {}
        self._went_down: dict[str, int] = {}
        self._cap_told = False

    @property
    def usable(self) -> int:
        """How many nodes can be used; 0 where their number is not known."""
        return max(0, self._all - len(self.down | self.excluded.keys()))

    @property
    def any_bad(self) -> bool:
        """Whether there may be nodes that a run must not get."""
        return bool(self.excluded or self._avoid)

    # ---- events in ------------------------------------------------------------------------

    def fall(self, nodes: str, time: int) -> None:
        for node in _names(nodes):
            self.down.add(node)
            self._went_down[node] = time

    def rise(self, nodes: str) -> None:
        self.down.difference_update(_names(nodes))

    def exclude(self, nodes: str, why: str) -> None:
        for node in _names(nodes):
            self.excluded[node] = why

    def admit(self, nodes: str) -> None:
        for node in _names(nodes):
            self.excluded.pop(node, None)
            self._failed.pop(node, None)

    def ended(self, flight: Flight, cause: str, elsewhere: bool, time: int) -> None:
        """A run ended badly, for a cause."""
        if not flight.on:
            return
        blamed, named = self._blamed(flight)
        if elsewhere:
            self._avoid[flight.entry] = set(blamed)
        if cause in self._exclusion.causes:
            for node in blamed:
                self._failed.setdefault(node, []).append(Failure(time, cause, named))

    def passed(self, flight: Flight) -> None:
        """A run was good: what was merely suspected of its nodes is forgotten."""
        if not self._failed or not flight.on:
            return
        for node in _names(flight.on):
            failures = [failure for failure in self._failed.get(node, []) if failure.named]
            if failures:
                self._failed[node] = failures
            else:
                self._failed.pop(node, None)

    def launched(self, entry: int) -> None:
        self._avoid.pop(entry, None)

    def _blamed(self, flight: Flight) -> tuple[Collection[str], bool]:
        """The nodes that a failure is held against, and whether the scheduler named them."""
        on = _names(flight.on)
        since = flight.started or flight.launched
        named = [node for node in on if self._went_down.get(node, -1) >= since]
        if named:
            return named, True
        return (on, False) if len(on) <= FEW else ((), False)

    # ---- what follows ---------------------------------------------------------------------

    def avoid(self, entry: int, nodes: int) -> str:
        """The nodes that a run must not get, folded; as far as enough others are there."""
        away = set(self.excluded)
        once = self._avoid.get(entry)
        if once and self._all - len(away | once | self.down) >= nodes:
            away |= once
        return fold(away) if away else ""

    def to_exclude(self, now: int) -> Iterator[tuple[str, str]]:
        """(node, why) of those that failed too often and are to be excluded now."""
        room = self._room()
        for node, why in self._bad(now):
            if room > 0:
                room -= 1
                yield node, why

    def beyond_cap(self, now: int) -> str:
        """What people must be told: more nodes fail than may be excluded. "" if that is not so."""
        bad = sum(1 for _ in self._bad(now))
        if bad <= self._room():
            return ""
        return (
            f"{count(bad, 'node')} failed repeatedly, but {len(self.excluded)} are excluded and "
            f"at most {self._most()} may be; look for what they share"
        )

    def _most(self) -> int:
        return max(1, int(self._all * self._exclusion.most))

    def _room(self) -> int:
        return self._most() - len(self.excluded)

    def _bad(self, now: int) -> Iterator[tuple[str, str]]:
        after = self._exclusion.after
        if not after:
            return
        since = now - round(self._exclusion.within * SECOND_NS)
        for node, failures in self._failed.items():
            recent = [failure for failure in failures if failure.time >= since]
            if len(recent) >= after and node not in self.excluded:
                causes = ", ".join(dict.fromkeys(failure.cause for failure in recent))
                span = show_seconds(self._exclusion.within)
                yield node, f"{count(len(recent), 'failure')} there within {span}: {causes}"


def _names(nodes: str) -> tuple[str, ...]:
    """The names of a node set; of what is none, nothing is concluded."""
    try:
        return unfold(nodes) if nodes else ()
    except ValueError:
        return ()


def fold(names: Collection[str]) -> str:
    """A node set of these names."""
    if len(names) == 1:
        return next(iter(names))
    from ClusterShell.NodeSet import NodeSet

    return str(NodeSet.fromlist(sorted(names), resolver=None))
