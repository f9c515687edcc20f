"""The share of the machine's node-hours that each test was to get, and the share that it had.

    found = node_shares(history, timeline, now)
    found.tests[0].planned, found.tests[0].achieved, found.unused
    sharing(found)      # runs shared nodes: ...

A run has its nodes while its script runs, whatever its verdict. The time of a node on which several
scripts run is divided among them, in proportion to the cores that their runs ask for. On a host
whose cores runs share, a run has its part of the cores. What jobs hold before and after their
scripts counts for their tests, too, as far as the plan gives it to any: a scheduler needs it to
start the next job, and its length is known to a poll only. The shares are of the node-hours that
were available; what no run had is unused.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from itertools import accumulate, pairwise

from msgspec import Struct

from seatrial.decide.in_flight import planned_for
from seatrial.model.codes import code_of
from seatrial.model.node_set import unfold_or_empty
from seatrial.model.policy import Policy
from seatrial.results.trial_history import RunHistory, Span, TrialHistory, whole_outages
from seatrial.results.utilisation import USES, Timeline
from seatrial.units import SECOND_NS, show_share

MIN_SHARED = 0.01  # of the node-hours, from which it is said that runs shared nodes
_HOUR_NS = 3600 * SECOND_NS


class TestShare(Struct, frozen=True, kw_only=True):
    """The share of the available node-hours of a test: ``planned`` (None: none was, as the
    component is not sustained) and ``achieved``. ``fill``: it was to get what others leave."""

    test: str
    planned: float | None
    achieved: float
    node_hours: float
    fill: bool = False

    @property
    def only_fills(self) -> bool:
        """Whether it gets gaps alone, because others were planned to have all."""
        return self.fill and not self.planned


class NodeShares(Struct, frozen=True, kw_only=True):
    """The shares of all tests. ``unclaimed`` is the share that the plan gives to no test (None
    where it gives none), ``unused`` the share that no run had. ``occupied`` is the node-hours of
    all scripts over those available, more than 1 where runs shared nodes; ``passed`` is the share
    of those of the runs with a verdict that passed; ``shared`` is the share of the node-hours in
    which several scripts were on a node."""

    tests: list[TestShare]
    unclaimed: float | None
    unused: float
    occupied: float
    shared: float
    passed: float = 0.0


class _Held:
    """What runs had of nodes in the ``counted`` spans of time, in node-ns."""

    def __init__(self, history: TrialHistory, counted: Sequence[Span]) -> None:
        self._history = history
        self._counted = counted
        #: by test, with its script; without what is divided among the runs of a node
        self.had = {case.test: 0.0 for case in history.cases}
        #: by test, beside its script
        self.without_script = dict(self.had)
        #: by node, the start, end and case of runs that leave some of its cores to others
        self.beside: dict[str, list[tuple[int, int, int]]] = defaultdict(list)
        #: of scripts: of all runs, of those with a verdict, of those that passed
        self.scripts = self.over = self.passed = 0

    def add(self, run: RunHistory, held: Span) -> None:
        """Add a run that held its nodes for a span."""
        history, counted = self._history, self._counted
        test, part, script = history.test_of(run), history.part_of_node(run), run.script(held)
        ran = _overlap(script, counted)
        self.without_script[test] += part * (_overlap(held, counted) - ran)
        self.scripts += run.size * ran
        self.over += run.size * ran * run.over
        self.passed += run.size * ran * run.passed
        names = self._nodes_to_share(run) if ran else ()
        for name in names:
            self.beside[name] += [(*span, run.case) for span in _within(script, counted)]
        if history.room or not names:
            self.had[test] += part * ran

    def _nodes_to_share(self, run: RunHistory) -> Sequence[str]:
        """Return the nodes of a run that leaves some of their cores to others."""
        shares = self._history.room or self._history.can_share(run.case)
        return unfold_or_empty(run.nodes) if shares else ()


def node_shares(history: TrialHistory, timeline: Timeline, now: int) -> NodeShares | None:
    """Return the shares up to ``now`` (ns); None before any node-hours were available."""
    available = timeline.total.available
    if not available:
        return None
    found = _Held(history, list(_outside(timeline.spans, whole_outages(history))))
    for run in history.runs:
        if (held := run.held_nodes(now)) is not None:
            found.add(run, held)
    had = found.had
    divided = dict(had) if history.room else had  # there each run has its part of the cores
    shared = sum(_divide(history, runs, divided) for runs in found.beside.values())
    planned, unclaimed, fills = _planned(history, timeline)
    most = min(timeline.total.held, available * (1 - (unclaimed or 0.0)))
    _credit(had, found.without_script, most)
    tests = [
        TestShare(
            test=test,
            planned=planned.get(test),
            achieved=node_ns / available,
            node_hours=node_ns / _HOUR_NS,
            fill=test in fills,
        )
        for test, node_ns in had.items()
    ]
    return NodeShares(
        tests=tests,
        unclaimed=unclaimed,
        unused=max(0.0, 1 - sum(had.values()) / available),
        occupied=found.scripts / available,
        shared=shared / available,
        passed=found.passed / found.over if found.over else 0.0,
    )


def sharing(found: NodeShares | None) -> str:
    """Return how far runs shared nodes, as a sentence without its full stop; "" if they did not."""
    if not (shared := shared_time(found)) or found is None:
        return ""
    return (
        f"{shared}, which is accepted if one of them passed: all scripts took "
        f"{100 * found.occupied:.3g} % of the node time, {show_share(found.passed)} of that in "
        "runs that passed"
    )


def shared_time(found: NodeShares | None) -> str:
    """Return in which share of the node time runs shared nodes, in words; "" if they did not."""
    if found is None or found.shared < MIN_SHARED:
        return ""
    return f"runs shared nodes in {show_share(found.shared)} of the node time"


def _planned(
    history: TrialHistory, timeline: Timeline
) -> tuple[dict[str, float], float | None, set[str]]:
    """Return the planned share of each test, the share of none, and the tests that fill. Where the
    policy changed, the shares are means over the node-hours that were available under each."""
    policy = history.policy
    if policy.kind != "sustained":
        return {}, None, set()
    shares = [0.0] * len(policy.entries)
    left, fills = 0.0, set[str]()
    for each, part in _parts_of_policies(history, timeline):
        planned = planned_for(history.cases, each, history.room)
        shares = [had + part * more for had, more in zip(shares, planned.shares, strict=True)]
        left += part * planned.left
        fills.update(each.entries[number].name for number in planned.fills)
    named = zip(policy.entries, shares, strict=True)
    return {entry.name: share for entry, share in named}, left, fills


def _parts_of_policies(history: TrialHistory, timeline: Timeline) -> Iterator[tuple[Policy, float]]:
    """Yield each policy of the trial with its part of the available node-hours."""
    if len(history.policies) == 1:
        yield history.policy, 1.0
        return
    starts = [span.start for span in history.policies]
    available = [0] * len(starts)
    columns = (timeline.starts, timeline.ends, timeline.nodes_in("available"))
    for begin, end, nodes in zip(*columns, strict=True):
        for number, start in enumerate(starts):
            until = starts[number + 1] if number + 1 < len(starts) else end
            available[number] += nodes * max(0, min(end, until) - max(begin, start))
    total = sum(available)
    for span, part in zip(history.policies, available, strict=True):
        yield span.policy, part / total


def _credit(had: dict[str, float], without_script: dict[str, float], most: float) -> None:
    """Add what the jobs of tests held without a script, so that all comes to at most ``most``."""
    total = sum(without_script.values())
    if total > 0:
        part = min(1.0, max(0.0, (most - sum(had.values())) / total))
        for test, each in without_script.items():
            had[test] += part * each


def _within(span: Span, counted: Sequence[Span]) -> list[Span]:
    """Return the parts of a span that are in the counted ones."""
    start, end = span
    return [
        (max(start, since), min(end, until))
        for since, until in counted
        if start < until and since < end
    ]


def _overlap(span: Span, counted: Sequence[Span]) -> int:
    """Return for how long (ns) a span is in the counted ones."""
    start, end = span
    total = 0
    for since, until in counted:  # mostly one
        if start < until and since < end:
            total += (end if end < until else until) - (start if start > since else since)
    return total


def _outside(spans: Sequence[Span], outages: Sequence[Span]) -> Iterator[Span]:
    """Yield the parts of the spans that are in no outage of all nodes."""
    for start, end in spans:
        for since, until in outages:
            if since < end and start < until:
                if start < since:
                    yield start, since
                start = max(start, until)
        if start < end:
            yield start, end


def _divide(history: TrialHistory, runs: list[tuple[int, int, int]], had: dict[str, float]) -> int:
    """Add the time of one node to the tests of its runs; return for how long (ns) it had several.
    Each run is its start, its end and its case."""
    runs.sort()
    ends = accumulate((end for _, end, _ in runs), max)
    if all(start >= end for end, (start, _, _) in zip(ends, runs[1:], strict=False)):
        for start, end, case in runs:
            had[history.cases[case].test] += end - start
        return 0
    changes = sorted(
        change for start, end, case in runs for change in ((start, 1, case), (end, -1, case))
    )
    there: dict[int, int] = defaultdict(int)  # case -> its runs on the node
    shared = 0
    for (time, change, case), (until, _, _) in pairwise([*changes, changes[-1]]):
        there[case] += change
        cores = {one: number * _cores(history, one) for one, number in there.items() if number}
        span, total = until - time, sum(cores.values())
        if span and total:
            for one, part in cores.items():
                had[history.cases[one].test] += span * part / total
            shared += span * (sum(there.values()) > 1)
    return shared


def _cores(history: TrialHistory, case: int) -> int:
    about = history.cases[case]
    return about.tasks_per_node * about.threads


# ---- lost node hours -----------------------------------------------------------------------------
#
# Where node-hours went that no accepted run used: the first reason of a low utilisation.
#
# losses(timeline)            # [("idle", 0.31), ("kept", 0.05), ...]
# sentence(history, timeline, now)
#                             # idle 31 % of node-hours: nothing queued from hour 100 to 168


BINS = 240
MIN_SHARE_NAMED = 0.5  # share of a loss that a span must hold to be named

_WORDS = {
    "idle": "idle {share} of node-hours: nothing queued {when}",
    "unfilled": "idle {share} of node-hours though runs were queued {when}",
    "failed": "{share} of node-hours went into runs that did not pass {when}",
    "kept": "{share} of node-hours were kept by jobs after their test's end {when}",
    "starting": "{share} of node-hours passed before scripts began {when}",
    "down": "{share} of node-hours were on nodes that were down {when}",
    "drained": "idle {share} of node-hours at the end: nothing queued after the last start {when}",
    "going": "{share} of node-hours are in runs without a verdict {when}",
}


def losses(timeline: Timeline) -> list[tuple[str, float]]:
    """Return the uses other than accepted, with their shares of the available node-hours, the
    largest first."""
    total = timeline.total
    found = [(use, total.share(use)) for use in USES if use != "accepted"]
    return sorted((one for one in found if one[1]), key=lambda one: -one[1])


def sentence(history: TrialHistory, timeline: Timeline, now: int) -> str:
    """Return the largest loss in words: how much, when, and of which test; "" where nothing was
    lost."""
    found = losses(timeline)
    if not found:
        return ""
    use, share = found[0]
    text = _WORDS[use].format(share=f"{100 * share:.3g} %", when=_when(timeline, use)).rstrip()
    whose = _whose(history, use, now)
    return f"{text}; {whose}" if whose else text


def _when(timeline: Timeline, use: str) -> str:
    """Return the span of the trial that holds most of a loss, if there is one: the bins with the
    largest sum above the mean (maximum subarray, Kadane)."""
    bins = timeline.bins(BINS)
    lost = [getattr(one.use, use) for one in bins]
    mean = sum(lost) / len(lost) if lost else 0
    best, start, run, begin = 0.0, 0, 0.0, 0
    end = 0
    for i, value in enumerate(lost):
        if run <= 0:
            run, begin = 0.0, i
        run += value - mean
        if run > best:
            best, start, end = run, begin, i + 1
    if not sum(lost[start:end]) > MIN_SHARE_NAMED * sum(lost):
        return "throughout"
    first, last = bins[start].start, bins[end - 1].end
    if last - first > 0.9 * (bins[-1].end - bins[0].start):
        return "throughout"
    return _between(first, last, bins[-1].end)


def _between(first: float, last: float, whole: float) -> str:
    size, unit = next(
        (each for each in ((3600.0, "hour"), (60.0, "minute")) if whole >= 3 * each[0]),
        (1.0, "second"),
    )
    return f"from {unit} {first / size:.3g} to {last / size:.3g}"


def _whose(history: TrialHistory, use: str, now: int) -> str:
    """Return the test that caused most of a loss in jobs, and by which verdict."""
    parts: Counter[str] = Counter()
    for run in history.runs:
        held = run.held_nodes(now)
        if held is None or not run.over:
            continue
        test = history.test_of(run)
        if use == "failed" and not run.passed:
            parts[f"{test} ({code_of(run.code).name})"] += run.size * (held[1] - held[0])
        elif use == "kept" and run.passed:
            script = run.script(held)
            parts[test] += run.size * (held[1] - script[1])
    name, most = max(parts.items(), key=lambda one: (one[1], one[0]), default=("", 0))
    return f"most by {name}, {most / SECOND_NS / 3600:.4g} node-hours" if most > 0 else ""
