"""The policy of a trial: plain numbers by which the conductor decides.

It is made from a component of a plan (``execute/plan``), stored in ``trial.json``, and never
changes. `seatrial run` has a policy without a plan: every case its repeats, once. Durations are in
seconds.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.model.failures import KnownFailure
from seatrial.model.nodes import unfold
from seatrial.model.test import Case, Test
from seatrial.model.topology import Topology
from seatrial.units import SECOND_NS

# ---- race rules ----------------------------------------------------------------------------------
#
# The rules of a race, which the policy of a trial holds: see ``race``.


Search = Literal["race", "halving", "grid", "largest"]

LEAST_EFFECT = 0.01


class RaceRules(Struct, frozen=True, kw_only=True):
    """The rules of a race, in plain numbers. ``levels``: of each setting, its position on each of
    the axes; ``default``: the number of the setting that is used today. A block has at most
    ``rounds`` rounds, the race at most ``allocations`` blocks and ``runs`` runs. ``least``: the
    least effect that matters, as a share."""

    levels: list[list[int]]
    default: int
    metric: str = ""
    better: Literal["higher", "lower"] = "lower"
    search: Search = "race"
    rounds: int = 4
    allocations: int = 3
    runs: int = 0
    least: float = LEAST_EFFECT
    seed: int = 0

    @property
    def grid(self) -> int:
        """The runs of the whole grid."""
        return len(self.levels) * self.rounds * self.allocations


# ---- policy --------------------------------------------------------------------------------------


ComponentKind = Literal["once", "isolated_then_full", "sustained", "checklist"]
Kind = ComponentKind | Literal["race"]  # a race is a tuning, and no component of a plan
Weight = Literal["heavy", "normal", "light"]
Answer = Literal["again", "elsewhere", "never"]
Placement = Literal["round_robin", "weighted", "least_loaded"]


class NodePlacing(Struct, frozen=True, kw_only=True):
    """The network of a trial with placed runs. ``sets`` are sets of nodes that some cases can run
    on, and ``set_of`` has for each case the number of its set, from 1 on (0: it is not placed)."""

    topology: Topology
    sets: list[str] = []
    set_of: list[int] = []


class Entry(Struct, frozen=True, kw_only=True):
    """The rules for one test. All its cases share an entry and take turns.

    ``copies`` is the number of runs to keep on nodes. ``weight`` is the share of the machine's
    node-hours (0: no claim; the test gets what the others leave). ``most`` is the maximum number of
    runs in flight, those that wait included (0: no cap). ``io`` is how heavy its I/O is: a closed
    throttle holds back ``heavy`` and ``normal`` tests. ``opens`` is the load of one run on its
    metadata target. ``answers`` says for each cause of failure (a verdict's name) whether the run
    is retried, at most ``attempts`` times. After ``stop_after`` wrong answers in a row the test is
    stopped (0: never), and after ``stop_failures`` failures of any cause in a row. A run whose
    output has not grown for ``quiet_after`` is hung (0: not watched), and is ended if
    ``end_quiet``. ``alone`` and ``full`` are the numbers of runs alone and of waves at full
    machine, for ``isolated_then_full``. ``bytes`` is the size of the copied deck of a run.
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
    stop_failures: int = 0
    quiet_after: float = 0.0
    end_quiet: bool = True
    alone: int = 1
    full: int = 1
    bytes: int = 0


class PolicyTarget(Struct, frozen=True, kw_only=True):
    """A metadata target for run directories; ``name`` is FILESYSTEM/TARGET. ``weight`` is for
    weighted placement; ``safe`` is the maximum load, as the sum of the ``opens`` of its runs (0: no
    limit). ``gauge`` reads its open files, "" if none does."""

    name: str
    file_system: str
    weight: float = 1.0
    safe: float = 0.0
    gauge: str = ""


class Caps(Struct, frozen=True, kw_only=True):
    """The maximum numbers of runs in flight: of the trial, on each target, on each file system; 0
    or none: no cap. ``bytes`` is the maximum size of copied decks on each file system."""

    machine: int = 0
    per_target: int = 0
    file_systems: dict[str, int] = {}
    bytes: dict[str, int] = {}


class RateLimit(Struct, frozen=True, kw_only=True):
    """A token bucket: at most ``starts`` launches at once, and as many again in each ``per``
    seconds. Entries that are ``light`` do not count."""

    starts: int
    per: float


class ThrottleRule(Struct, frozen=True, kw_only=True):
    """A throttle of I/O by a gauge: it closes above ``high`` and opens below ``low``. Without a
    good reading for ``stale_after``, ``on_failure`` says whether it is open."""

    gauge: str
    high: float
    low: float
    on_failure: Literal["open", "closed"] = "closed"
    stale_after: float = 300.0


class Window(Struct, frozen=True, kw_only=True):
    """A span of time, since the start of the trial or by the calendar (``absolute``: seconds since
    the epoch). ``nodes`` are those concerned, "" for all; ``entries`` the positions of the entries
    concerned, none for all."""

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
    """The rule to exclude nodes: after ``after`` failures for one of ``causes`` within ``within``
    seconds (0 failures: never); at most the share ``most`` of the nodes. Beyond that people are
    alerted."""

    after: int = 0
    within: float = 86400.0
    most: float = 0.05
    causes: tuple[str, ...] = ("node failure", "boot failure", "hung", "timeout")


class WatchLimits(Struct, frozen=True, kw_only=True):
    """When people are alerted (0: never): a test is short of its runs for ``short_for``; nothing
    happened for ``silent_for``; a run has waited in the queue ``wait_factor`` times as long as is
    usual in this trial, and at least ``wait_least``. ``failing``: whether people are alerted if a
    test, a node or all tests fail more often than is usual (None: where any of these is on). The
    same alert is raised again after ``again``."""

    short_for: float = 0.0
    silent_for: float = 0.0
    wait_factor: float = 0.0
    wait_least: float = 600.0
    again: float = 3600.0
    failing: bool | None = None


class Limits(NamedTuple):
    """Limits on what is in flight. ``room`` is in cores for a backend that shares a node, 0 for one
    with a queue; ``gpus`` are those of that node. ``jobs`` is the maximum number of runs at
    the backend, 0: no cap. ``refill`` is the number of free places below which a queue is not
    filled up, so that jobs form large arrays. ``max_failures`` is the number of verdicts other than
    pass at which the trial stops, 0: never."""

    room: int = 0
    jobs: int = 0
    builds: int = 2
    refill: int = 1
    max_failures: int = 0
    gpus: int = 0


class Policy(Struct, frozen=True, kw_only=True):
    """The policy of a trial. ``entry_of`` has the position of the entry of each case. ``unfit`` are
    sets of nodes that some cases cannot run on, and ``unfit_of`` has for each case the number of
    its set, from 1 on (0: it can run on all nodes; none: no case has a set). ``bundle_of`` has for
    each case the number of its group, from 1 on, of cases whose runs share allocations (0: each run
    has its own; none: no case shares); the repeats of a group are spread over so many
    ``allocations``. ``duration`` is the time of the trial in seconds, pauses not counted; ``nodes``
    is the number of nodes (0: unknown); ``race`` are the rules of a tuning, whose settings are the
    cases; ``reserve`` is the number of runs that wait at the scheduler, so that it always has
    work; ``placing`` is the network in which nodes of runs are chosen (None: by the scheduler).
    ``known_failures`` are those that people gave while the trial was under way, in place of those
    that it was made with (None: nobody did)."""

    kind: Kind = "once"
    entries: list[Entry] = []
    entry_of: list[int] = []
    unfit: list[str] = []
    unfit_of: list[int] = []
    bundle_of: list[int] = []
    allocations: int = 1
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
    race: RaceRules | None = None
    placing: NodePlacing | None = None
    known_failures: list[KnownFailure] | None = None

    @property
    def component_kind(self) -> ComponentKind:
        """The kind of component that a trial without a plan is judged as: a tuning is judged as
        one that runs once."""
        return "once" if self.kind == "race" else self.kind

    @property
    def gauges(self) -> list[str]:
        """The gauges that throttles and metadata targets go by, each once."""
        asked = [each.gauge for each in self.throttles] + [each.gauge for each in self.targets]
        return list(dict.fromkeys(filter(None, asked)))

    def subject_of(self, window: Window) -> str:
        """Return the tests and nodes of a window: "a, b on n[1-2]", or "everything"."""
        tests = ", ".join(self.entries[entry].name for entry in window.entries)
        return " on ".join(filter(None, (tests, window.nodes))) or "everything"


def fitting(policy: Policy, unfit: int) -> int:
    """Return the number of nodes beside those of a set of unfit nodes (0: none)."""
    return policy.nodes - len(unfold(policy.unfit[unfit - 1])) if unfit else policy.nodes


def without_plan(tests: Mapping[str, Test], cases: Sequence[Case]) -> Policy:
    """Return the policy of `seatrial run`: the default one, or with an entry for each test where a
    test says when its runs are hung."""
    names = list(dict.fromkeys(case.test for case in cases))
    if not any(tests[name].run.quiet_for.seconds for name in names):
        return Policy()
    entries = [
        Entry(
            name=name,
            quiet_after=tests[name].run.quiet_for.seconds,
            end_quiet=tests[name].run.quiet_answer == "end",
        )
        for name in names
    ]
    positions = {name: i for i, name in enumerate(names)}
    return Policy(entries=entries, entry_of=[positions[case.test] for case in cases])


def whole(policy: Policy, cases: int) -> Policy:
    """Return the policy with an entry for every case."""
    if policy.entries:
        return policy
    return replace(policy, entries=[Entry(name="")], entry_of=[0] * cases)
