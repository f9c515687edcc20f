"""What a trial was ordered to do, in plain numbers: the policy that the conductor decides by.

It is made of a plan's component (``seatrial.plan``), kept in ``trial.json``, and never changes. A
plain ``seatrial run`` has the default one: every case its repeats, once. Durations are seconds.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.units import SECOND_NS

Kind = Literal["once", "isolated_then_full", "sustained"]
Weight = Literal["heavy", "normal", "light"]
Answer = Literal["again", "elsewhere", "never"]
Placement = Literal["round_robin", "weighted", "least_loaded"]


class Entry(Struct, frozen=True, kw_only=True):
    """How a test takes part. All cases of it share an entry and take turns.

    ``copies`` are kept in flight; ``weight`` is its part of the node-hours beside the others' (0:
    it has no claim, and fills in where nodes would idle); ``most`` caps the copies in flight (0:
    no cap). ``io`` is how heavy its I/O is: a closed throttle holds back ``heavy`` and ``normal``
    ones. ``opens`` is the load that one copy lays on its metadata target. ``answers`` tells for
    each cause of failure (a verdict's name) whether the run is made good; ``attempts`` bounds
    that; after ``stop_after`` wrong answers in a row the test is stopped (0: never). A run whose
    output has not grown for ``quiet_after`` is hung (0: not watched), and ended if
    ``end_quiet``. ``alone`` and ``full`` are the numbers of runs alone and of waves at full
    machine, for ``isolated_then_full``. ``bytes`` is the space that a run's copied deck takes.
    """

    name: str
    copies: int = 0
    weight: float = 0.0
    most: int = 0
    io: Weight = "normal"
    file_system: str = ""
    opens: float = 0.0
    answers: dict[str, Answer] = {}
    attempts: int = 3
    stop_after: int = 0
    quiet_after: float = 0.0
    end_quiet: bool = True
    alone: int = 1
    full: int = 1
    bytes: int = 0


class PolicyTarget(Struct, frozen=True, kw_only=True):
    """A metadata target that run directories are placed on, ``name`` being FILESYSTEM/TARGET.
    ``weight`` is for weighted placement; ``safe`` is the most load (sum of the ``opens`` of its
    runs) that it is given, 0: no limit."""

    name: str
    file_system: str
    weight: float = 1.0
    safe: float = 0.0


class Caps(Struct, frozen=True, kw_only=True):
    """Most runs in flight: of the trial, on each target, on each file system; 0 or none: no cap.
    ``bytes`` is the most space of copied decks on each file system."""

    machine: int = 0
    per_target: int = 0
    file_systems: dict[str, int] = {}
    bytes: dict[str, int] = {}


class RateLimit(Struct, frozen=True, kw_only=True):
    """A token bucket: at most ``starts`` launches at once, and again as many each ``per`` seconds.
    It counts the entries that are not ``light``."""

    starts: int
    per: float


class ThrottleRule(Struct, frozen=True, kw_only=True):
    """A gauge that holds back I/O: above ``high`` it closes, below ``low`` it opens again. With no
    reading for ``stale_after`` (or readings that fail) it is as ``on_failure`` says."""

    gauge: str
    high: float
    low: float
    on_failure: Literal["open", "closed"] = "closed"
    stale_after: float = 300.0


class Window(Struct, frozen=True, kw_only=True):
    """A span of time: of the trial's since its start, or by the calendar (``absolute``, seconds
    since the epoch). ``nodes`` are those that it is about, "" for the machine; ``entries`` the
    positions of those that it is about, none for all."""

    start: float
    end: float
    why: str = ""
    nodes: str = ""
    entries: list[int] = []
    absolute: bool = False

    def span(self, origin: int) -> tuple[int, int]:
        """Return start and end (ns since the epoch) for a trial that started at ``origin``."""
        since = 0 if self.absolute else origin
        return since + round(self.start * SECOND_NS), since + round(self.end * SECOND_NS)


class Exclusion(Struct, frozen=True, kw_only=True):
    """A node is excluded after ``after`` failures for one of ``causes`` there within ``within``
    (0 failures: never); at most the share ``most`` of the nodes, beyond that people are told."""

    after: int = 0
    within: float = 86400.0
    most: float = 0.05
    causes: tuple[str, ...] = ("node failure", "hung", "timeout")


class WatchLimits(Struct, frozen=True, kw_only=True):
    """When people are told (0: never): a test is short of its copies for ``short_for``; nothing
    at all happened for ``silent_for``; a run waits in the queue ``wait_factor`` times as long as
    is usual in this trial and at least ``wait_least``. The same is told again after ``again``."""

    short_for: float = 0.0
    silent_for: float = 0.0
    wait_factor: float = 0.0
    wait_least: float = 600.0
    again: float = 3600.0


class Limits(NamedTuple):
    """What may be in flight at a time. ``room`` is in cores for a backend that shares a node, 0 for
    one with a queue of its own; ``jobs`` caps the runs given to it, 0 for no cap; ``refill`` is the
    number of free places below which a queue is not topped up, so that jobs go in large arrays;
    ``max_failures`` stops the trial at that many verdicts other than pass, 0 never."""

    room: int = 0
    jobs: int = 0
    builds: int = 2
    refill: int = 1
    max_failures: int = 0


class Policy(Struct, frozen=True, kw_only=True):
    """What a trial does. ``entry_of`` gives each case, by its position, its entry's position.
    ``duration`` is the trial's time in seconds, pauses not counted; ``nodes`` how many there are
    (0: unknown); ``reserve`` how many runs wait at the scheduler so that it always has work."""

    kind: Kind = "once"
    entries: list[Entry] = []
    entry_of: list[int] = []
    duration: float = 0.0
    nodes: int = 0
    reserve: int = 0
    caps: Caps = Caps()
    targets: list[PolicyTarget] = []
    placement: Placement = "round_robin"
    stagger: RateLimit | None = None
    throttles: list[ThrottleRule] = []
    blackouts: list[Window] = []
    outages: list[Window] = []
    exclusion: Exclusion = Exclusion()
    watch: WatchLimits = WatchLimits()

    def subject_of(self, window: Window) -> str:
        """Return the tests and nodes of a window: "a, b on n[1-2]", or "everything"."""
        tests = ", ".join(self.entries[entry].name for entry in window.entries)
        return " on ".join(filter(None, (tests, window.nodes))) or "everything"


def whole(policy: Policy, cases: int) -> Policy:
    """The policy with an entry for every case."""
    if policy.entries:
        return policy
    return replace(policy, entries=[Entry(name="")], entry_of=[0] * cases)
