"""The policy of a trial: plain numbers by which the conductor decides.

It is made from a component of a plan (``execute/plan``), stored in ``trial.json``, and never
changes. `seatrial run` has a policy without a plan: every case its repeats, once. Durations are in
seconds.
"""

import math
from collections.abc import Mapping, Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct
from msgspec.structs import replace

from seatrial.model.failures import KnownFailure
from seatrial.model.file_model import doc, notes_of
from seatrial.model.node_set import unfold
from seatrial.model.test import Case, Test
from seatrial.model.topology import Topology
from seatrial.units import SECOND_NS

# ---- race rules ----------------------------------------------------------------------------------
#
# The rules of a race, which the policy of a trial holds: see ``decide.race``.


Search = Literal["race", "halving", "grid", "largest", "sweep"]

LEAST_EFFECT = 0.01


class RaceRules(Struct, frozen=True, kw_only=True, rename={"min_effect": "least"}):
    """The rules of a race, in plain numbers."""

    #: Of each setting, its position on each of the axes.
    levels: list[list[int]]
    #: The number of the setting that is used today.
    default: int
    metric: str = ""
    better: Literal["higher", "lower"] = "lower"
    search: Search = "race"
    #: Maximum rounds of a block, blocks and runs of the race.
    rounds: int = 4
    allocations: int = 3
    runs: int = 0
    #: The least effect that matters, as a share.
    min_effect: float = LEAST_EFFECT
    seed: int = 0
    #: For a sweep: whether each axis is ordered, the nodes and tasks of each setting, further
    #: metrics with their directions, and the seconds after which no block begins (0: no limit).
    ordered: list[bool] = []
    sizes: list[tuple[int, int]] = []
    others: dict[str, Literal["higher", "lower"]] = {}
    seconds: float = 0.0

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


# When a member may change in a trial under way: in any, only where each case has its runs (but not
# in waves, whose sizes follow from it), or only in a sustained one.
Changes = Literal["always", "once", "sustained"]

_LARGEST = 1 << 62
Count = Annotated[int, Meta(ge=0, lt=_LARGEST)]
Number = Annotated[float, Meta(ge=0, lt=_LARGEST)]
_Reading = Annotated[float, Meta(gt=-_LARGEST, lt=_LARGEST)]


class Member(Struct, frozen=True):
    """How a change of a member of a policy is made and told."""

    #: When it may change; None: never.
    changes: Changes | None
    #: Its key in a plan; "" if that is its name.
    word: str
    unit: Literal["", "seconds", "share"]
    #: Whether 0 is told as none.
    none_at_0: bool


def limit(
    about: str,
    changes: Changes | None = None,
    word: str = "",
    unit: Literal["", "seconds", "share"] = "",
    none_at_0: bool = False,
) -> Meta:
    """Return all that is to say of a member of a policy: what it is, when it may change in a trial
    under way, and how a change is told: its key in a plan, its unit, and whether 0 is none."""
    return doc(about, extra={"member": Member(changes, word, unit, none_at_0)})


def members_of(part: type[Struct]) -> dict[str, Member]:
    """Return the members of a part of a policy of which there is more to say than their types."""
    return notes_of(part, "member")


class NodePlacing(Struct, frozen=True, kw_only=True):
    """The network of a trial with placed runs."""

    topology: Topology
    #: Sets of nodes that some cases can run on.
    sets: list[str] = []
    #: For each case the number of its set, from 1 on; 0: it is not placed.
    set_of: list[int] = []


class Entry(Struct, frozen=True, kw_only=True):
    """The rules for one test. All its cases share an entry and take turns."""

    name: str
    copies: Annotated[Count, limit("runs kept on nodes", "sustained", none_at_0=True)] = 0
    weight: Annotated[
        Number,
        limit(
            "share of the machine's node-hours; 0: no claim, it gets what the others leave",
            "sustained",
            word="share",
            unit="share",
        ),
    ] = 0.0
    most: Annotated[
        Count,
        limit("maximum runs in flight, waiting ones included; 0: no cap", "once", none_at_0=True),
    ] = 0
    io: Annotated[
        Weight, limit("how heavy its I/O is: a closed throttle holds back all but light", "always")
    ] = "normal"
    file_system: str = ""
    opens: Annotated[Number, limit("load of one run on its metadata target", "once")] = 0.0
    loads: Annotated[
        dict[str, Number],
        limit("what one run adds to the reading of a gauge; of others, its `opens`", "once"),
    ] = {}
    answers: Annotated[
        dict[str, Answer],
        limit("whether a run is retried, by the name of its verdict", "always", "retry.answers"),
    ] = {}
    attempts: Annotated[Count, limit("maximum attempts of a run", "always", "retry.attempts")] = 3
    stop_after: Annotated[
        Count,
        limit(
            "wrong answers in a row that stop the test; 0: never",
            "always",
            word="retry.stop_after, of wrong answers",
            none_at_0=True,
        ),
    ] = 0
    stop_failures: Annotated[
        Count,
        limit(
            "failures of any cause in a row that stop the test; 0: never",
            "always",
            word="retry.stop_after",
            none_at_0=True,
        ),
    ] = 0
    quiet_after: Annotated[
        Number,
        limit(
            "time without output after which a run is hung; 0: it is not watched",
            "always",
            word="quiet_for",
            unit="seconds",
            none_at_0=True,
        ),
    ] = 0.0
    end_quiet: Annotated[
        bool, limit("whether a hung run is ended", "always", "quiet_answer end")
    ] = True
    #: Of ``isolated_then_full``: runs alone, and waves at full machine.
    alone: int = 1
    full: int = 1
    bytes: Annotated[
        int,
        limit("size of the copied deck of a run, and the space it requires", word="bytes of decks"),
    ] = 0

    def load_on(self, gauge: str) -> float:
        """Return what a run adds to the reading of a gauge, as it is declared."""
        return self.loads.get(gauge, self.opens)


class PolicyTarget(Struct, frozen=True, kw_only=True):
    """A metadata target for run directories."""

    #: FILESYSTEM/TARGET.
    name: str
    file_system: str
    weight: Annotated[float, Meta(gt=0, lt=_LARGEST), doc("its part in weighted placement")] = 1.0
    safe: Annotated[
        Number,
        limit(
            "maximum load, as the sum of the `opens` of its runs; 0: no limit",
            word="safe load",
            none_at_0=True,
        ),
    ] = 0.0
    #: The gauge that reads its open files; "" if none does.
    gauge: str = ""


class Caps(Struct, frozen=True, kw_only=True):
    """The maximum numbers of runs in flight."""

    machine: Annotated[Count, limit("of the trial; 0: no cap", none_at_0=True)] = 0
    per_target: Annotated[Count, limit("on each target; 0: no cap", none_at_0=True)] = 0
    file_systems: Annotated[
        dict[str, Count], limit("on each file system", word="runs on file systems")
    ] = {}
    bytes: Annotated[
        dict[str, Count],
        limit("maximum size of copied decks and space on each file system", word="bytes of decks"),
    ] = {}


class RateLimit(Struct, frozen=True, kw_only=True):
    """A token bucket. Entries that are ``light`` do not count."""

    starts: Annotated[int, Meta(ge=1), doc("launches at once")]
    per: Annotated[
        float, Meta(gt=0, lt=_LARGEST), limit("time until as many may follow", unit="seconds")
    ]


class ThrottleRule(Struct, frozen=True, kw_only=True):
    """A throttle of I/O by a gauge: with ``high`` and ``low``, or with a ``target``."""

    gauge: str
    high: Annotated[_Reading | None, doc("it closes above it")] = None
    low: Annotated[_Reading | None, doc("it opens below it")] = None
    target: Annotated[
        _Reading | None,
        doc("the reading, what was started since and a further run stay at or below it"),
    ] = None
    settle: Annotated[
        Number, limit("time from the start of a run until a reading has its load", unit="seconds")
    ] = 0.0
    on_failure: Annotated[Literal["open", "closed"], doc("what it is without a good reading")] = (
        "closed"
    )
    stale_after: Annotated[Number, limit("time for which a reading is good", unit="seconds")] = (
        300.0
    )

    def __post_init__(self) -> None:
        by_bounds = self.high is not None and self.low is not None
        if by_bounds == (self.target is not None):
            raise ValueError(f"a throttle by {self.gauge} has high and low, or a target")

    @property
    def highest(self) -> float:
        """The reading above which it closes."""
        bounds = (each for each in (self.target, self.high) if each is not None)
        return next(bounds, math.inf)

    @property
    def lowest(self) -> float:
        """The reading below which it opens."""
        bounds = (each for each in (self.target, self.low) if each is not None)
        return next(bounds, -math.inf)


class Window(Struct, frozen=True, kw_only=True, rename={"reason": "why"}):
    """A span of time, in seconds."""

    start: float
    end: float
    reason: str = ""
    #: The nodes concerned; "" for all.
    nodes: str = ""
    #: The positions of the entries concerned; none for all.
    entries: list[int] = []
    #: Whether the times are since the epoch, in place of since the start of the trial.
    absolute: bool = False

    def span(self, origin: int) -> tuple[int, int]:
        """Return start and end (ns since the epoch) for a trial that started at ``origin``."""
        since = 0 if self.absolute else origin
        return since + round(self.start * SECOND_NS), since + round(self.end * SECOND_NS)


class Exclusion(Struct, frozen=True, kw_only=True):
    """The rule to exclude nodes."""

    after: Annotated[Count, limit("failures there; 0: never", none_at_0=True)] = 0
    within: Annotated[Number, limit("time in which they are counted", unit="seconds")] = 86400.0
    most: Annotated[
        Number,
        limit(
            "maximum share of the nodes; beyond that people are alerted",
            unit="share",
            none_at_0=True,
        ),
    ] = 0.05
    causes: Annotated[tuple[str, ...], doc("failures held against nodes")] = (
        "node failure",
        "boot failure",
        "hung",
        "timeout",
    )


class WatchLimits(Struct, frozen=True, kw_only=True):
    """When people are alerted; 0: never."""

    short_for: Annotated[
        Number, limit("time for which a test lacks runs", unit="seconds", none_at_0=True)
    ] = 0.0
    silent_for: Annotated[
        Number, limit("time in which nothing happens", unit="seconds", none_at_0=True)
    ] = 0.0
    wait_factor: Annotated[
        Number,
        limit("a run waits in the queue so many times as long as is usual here", none_at_0=True),
    ] = 0.0
    wait_least: Annotated[Number, limit("and at least so long", unit="seconds")] = 600.0
    again: Annotated[Number, limit("time until the same alert is repeated", unit="seconds")] = (
        3600.0
    )
    failing: Annotated[
        bool | None,
        doc(
            "whether a test, a node or all tests fail more often than is usual; None: where "
            "there is any other alert"
        ),
    ] = None


class Limits(Struct, frozen=True):
    """Limits on what is in flight."""

    #: Cores for a backend that shares a node, 0 for one with a queue.
    cores: int = 0
    #: Maximum number of runs at the backend; 0: no cap.
    jobs: int = 0
    builds: int = 2
    #: Number of free places below which a queue is not filled up, so that jobs form large arrays.
    refill: int = 1
    #: Number of verdicts other than pass at which the trial stops; 0: never.
    max_failures: int = 0
    #: GPUs of the node that is shared.
    gpus: int = 0


class Policy(Struct, frozen=True, kw_only=True):
    """The policy of a trial."""

    kind: Kind = "once"
    entries: Annotated[list[Entry], limit("the rules for each test", word="tests")] = []
    #: For each case the position of its entry.
    entry_of: list[int] = []
    #: Sets of nodes that some cases cannot run on.
    unfit: list[str] = []
    #: For each case the number of its set, from 1 on; 0: it can run on all nodes. Empty: all can.
    unfit_of: list[int] = []
    #: For each case the number of its group, from 1 on, of cases whose runs share allocations; 0:
    #: each run has its own. Empty: none shares.
    bundle_of: list[int] = []
    #: The repeats of a group are spread over so many.
    allocations: int = 1
    duration: Annotated[
        Number, limit("time of the trial, pauses not counted", "sustained", unit="seconds")
    ] = 0.0
    #: Number of nodes; 0: unknown.
    nodes: int = 0
    reserve: Annotated[
        Count,
        limit("runs that wait at the scheduler, so that it always has work", "sustained"),
    ] = 0
    caps: Annotated[Caps, limit("caps on runs in flight", "once")] = Caps()
    targets: Annotated[list[PolicyTarget], limit("metadata targets", "once")] = []
    placement: Annotated[Placement, limit("how metadata targets are chosen", "always")] = (
        "round_robin"
    )
    stagger: Annotated[RateLimit | None, limit("spreads starts over time", "always")] = None
    throttles: Annotated[list[ThrottleRule], limit("throttles of I/O by gauges", "always")] = []
    sampled: Annotated[
        list[str], limit("gauges that are read though nothing goes by them", "always", "gauges")
    ] = []
    blackouts: Annotated[list[Window], limit("times without starts", "always")] = []
    outages: Annotated[list[Window], limit("planned outages", "always")] = []
    exclusion: Annotated[
        Exclusion, limit("the rule to exclude nodes", "always", word="exclude")
    ] = Exclusion()
    watch: Annotated[WatchLimits, limit("when people are alerted", "always")] = WatchLimits()
    #: The rules of a tuning, whose settings are the cases.
    race: RaceRules | None = None
    #: The network in which nodes of runs are chosen; None: the scheduler chooses.
    placing: NodePlacing | None = None
    known_failures: Annotated[
        list[KnownFailure] | None,
        limit(
            "those that people gave while the trial was under way, in place of those that it was "
            "made with; None: nobody did",
            "always",
        ),
    ] = None

    @property
    def component_kind(self) -> ComponentKind:
        """The kind of component that a trial without a plan is judged as: a tuning is judged as
        one that runs once."""
        return "once" if self.kind == "race" else self.kind

    @property
    def gauges(self) -> list[str]:
        """The gauges that throttles and metadata targets go by, then those that are read for
        people alone; each once."""
        names = [each.gauge for each in self.throttles] + [each.gauge for each in self.targets]
        return list(dict.fromkeys(filter(None, [*names, *self.sampled])))

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
