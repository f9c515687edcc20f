"""Criteria on the machine over time: utilisation, availability, failures, jobs, gauges."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from msgspec.structs import replace

from seatrial.decide.in_flight import expected_runs, requests_of, widest_of
from seatrial.judge.log_rules import FINDINGS, PREFIX
from seatrial.model import codes
from seatrial.model.plan import Criterion
from seatrial.model.policy import Policy
from seatrial.results.criteria.view import (
    Bounds,
    NodeCases,
    Numbers,
    Reach,
    Result,
    TrialView,
    bounds_of,
    decided,
    undecided,
    unless_newer,
    unless_silent,
    with_worst,
)
from seatrial.results.holds import GaugeUse, gauge_spans, gauge_use
from seatrial.results.node_hours import losses, sentence, sharing
from seatrial.results.trial_history import RunHistory, outages_of, outside, whole_outages
from seatrial.results.utilisation import (
    USES,
    LevelSpan,
    Use,
    available_in_all,
    dips,
    in_flight,
    kept_level,
)
from seatrial.units import SECOND_NS, count, show_number, show_seconds, show_share

HOUR_NS = 3600 * SECOND_NS
SHORT = 60.0  # seconds for which fewer runs may be in flight: one ends, the next one starts
LATE_NS = 600 * SECOND_NS  # until when a scheduler tells that the node of a failed run is down


def utilisation(view: TrialView, criterion: Criterion) -> list[Result]:
    """Accepted node-hours over available node-hours.

        accepted    = sum over nodes of the time in which a script of a passed run ran there
        available   = nodes * the trial's time - planned outages
        utilisation = accepted / available

    Each node-hour counts once, though several runs share the node, and never while the node was
    down. With ``tests`` the accepted node-hours are those of these tests, of all available
    ones; the utilisation by all tests is among the numbers. The rest is lost: runs that failed,
    nodes that were idle or down, and the time in which jobs hold nodes beside their script. If
    the criterion is missed, the reason is the largest loss, with the span of time that has more
    than half of it above the mean of the trial.

    Undecided: before the end, while the accepted node-hours so far over all that will have been
    available are below ``at_least``, and the losses so far do not make it impossible.

    Example: 100 nodes for 10 hours, 2 hours of them a planned outage: 800 node-hours are
    available. 600 accepted, 80 in failed runs, 120 idle: 75 %.
    """
    whole_use = view.timeline.total
    tests = view.tests(criterion)
    total = whole_use
    if criterion.tests:
        total = view.utilisation.total_of(frozenset(tests))
    value = total.accepted / total.available if total.available else None
    numbers = _hours_of_uses(whole_use)
    numbers["accepted node-hours"] = total.accepted / HOUR_NS
    whole = available_in_all(view.history, view.now)
    reach = (0.0, 1.0)
    if whole:
        lost = total.available - total.accepted - total.going
        reach = (total.accepted / whole, 1 - lost / whole)
    largest = losses(view.timeline)
    if largest:
        numbers["cause"] = largest[0][0]
    if criterion.tests:
        numbers["of all tests"] = whole_use.share("accepted")
    reason = "no node-hours were available yet"
    if value is not None:
        is_missed = not bounds_of(criterion).holds(value)
        reason = _used(view, criterion, total, is_missed and bool(largest))
    n = sum(run.passed and view.history.test_of(run) in tests for run in view.history.runs)
    return [decided(view, criterion, value, reason, n=n, reach=reach, numbers=numbers)]


def _hours_of_uses(total: Use) -> Numbers:
    """Return the node-hours that were available, and those of each use that had some."""
    numbers: Numbers = {"available node-hours": total.available / HOUR_NS}
    for use in USES:
        node_ns = getattr(total, use)
        if node_ns or use == "accepted":
            numbers[f"{use} node-hours"] = node_ns / HOUR_NS
    return numbers


def _used(view: TrialView, criterion: Criterion, total: Use, is_missed: bool) -> str:
    """Return how much of the node-hours was used, or the largest loss where too few were."""
    reason = f"{_hours(total.accepted)} of {_hours(total.available)} node-hours"
    if criterion.tests:
        reason += f", by all tests together {show_share(view.timeline.total.share('accepted'))}"
    elif is_missed:
        reason = sentence(view.history, view.timeline, view.now)
    reason += of_machine(view)
    shared = sharing(view.node_shares)
    return f"{reason}; {shared}" if shared else reason


def of_machine(view: TrialView) -> str:
    """Return of how many of the machine's nodes the trial speaks, in words; "" if it has all, or
    nobody knows how many there are."""
    nodes, whole = view.history.nodes, view.history.machine_nodes
    return f", of {nodes:,} of {whole:,} nodes" if nodes < whole else ""


def _hours(node_ns: float) -> str:
    """Return node-hours as people write them: ``213,088``, ``12.5``."""
    hours = node_ns / HOUR_NS
    return f"{hours:,.0f}" if hours >= 1000 else show_number(hours)


def availability(view: TrialView, criterion: Criterion) -> list[Result]:
    """Node-hours in which nodes were up over all node-hours, without planned outages.

        availability = 1 - down node-hours / (nodes * the trial's time - planned outages)

    A node is down from when the scheduler says so until it says that the node is back; n is how
    often one went down. A node that is excluded from the trial is not down. The nodes are those
    of the component and its phase; where the machine has more, the reason says so. While the
    trial's clock runs, the time since its last event counts for neither side: if its driver
    died, nobody has seen whether nodes were down.

    Undecided: before the end, as utilisation.

    Example: 1,920 nodes for 240 hours, 6 failures of 4 hours each: 1 - 24 / 460,800 = 99.9948
    %.
    """
    available, down = view.timeline.total.available, view.timeline.down
    went = len(_failures(view))
    whole = available_in_all(view.history, view.now)
    reach = (0.0, 1.0)
    if whole:
        reach = ((available - down - _unwatched(view)) / whole, 1 - down / whole)
    reason = "no node-hours were available yet"
    if available:
        reason = f"{_hours(down)} node-hours down in {count(went, 'failure')} of nodes"
    reason += of_machine(view)
    result = decided(
        view,
        criterion,
        max(0.0, 1 - down / available) if available else None,
        reason,
        n=went,
        reach=reach,
        goes_on=view.goes_on + of_machine(view),
        numbers={
            "available node-hours": available / HOUR_NS,
            "down node-hours": down / HOUR_NS,
            "failures": went,
            **_part_of_machine(view),
        },
    )
    return [result]


def _part_of_machine(view: TrialView) -> dict[str, int]:
    history = view.history
    if history.nodes >= history.machine_nodes:
        return {}
    return {"nodes": history.nodes, "nodes of the machine": history.machine_nodes}


def _unwatched(view: TrialView) -> int:
    """Return the node-ns since the last event of a trial whose clock runs: if its driver died,
    nobody has seen since whether nodes were down."""
    history = view.history
    if not history.clock_runs:
        return 0
    spans = view.timeline.spans
    return history.nodes * sum(max(0, end - max(start, history.last)) for start, end in spans)


def mtbf(view: TrialView, criterion: Criterion) -> list[Result]:
    """Mean time between failures of nodes: the trial's time T over their number. The bound is a
    duration.

        mtbf = T / failures          with one failure or more
        mtbf = T / ln 10             with none

    Failures are the times at which a node went down outside planned outages, and runs with the
    verdict node failure during which, and within 10 minutes after which, no node was reported
    down. Without a failure the value is the lower bound of the one-sided 90 % confidence
    interval: if the true mean were less, a trial without a failure would have a probability of
    less than 10 %.

    Undecided: before the end, unless duration / failures is below the bound. Without a failure
    also after it, if T / ln 10 is below the bound: to show a bound of B takes 2.303 B without a
    failure.

    Example: 10 days and 4 failures: 60 h. 10 days and none: at least 104 h with 90 %
    confidence.
    """
    time = view.timeline.end / SECOND_NS
    seen = _failures(view)
    unseen = _unseen_failures(view, seen)
    failures = len(seen) + unseen
    value = None
    reason = "the trial has not run yet"
    if time:
        value = time / failures if failures else time / math.log(10)
        reason = f"{count(failures, 'node failure')} in {show_seconds(time)}{of_machine(view)}"
        if not failures:
            reason += "; the value is the lower bound that holds with 90 % confidence, T / ln 10"
    duration = view.history.duration
    reach = (0.0, max(duration, time) / max(1, failures) if duration else None)
    bounds = bounds_of(criterion)
    numbers: Numbers = {"time": time, "failures": failures, "not told by the scheduler": unseen}
    result = decided(
        view, criterion, value, reason, n=failures, bounds=bounds, reach=reach, numbers=numbers
    )
    if result.state == "not met" and not failures and bounds.most is None:
        too_short = f"{reason}: too short a time to show {bounds.words}"
        return [replace(result, state="undecided", reason=too_short)]
    return [result]


def _clock_ran(view: TrialView, time: int) -> bool:
    return any(start <= time < end for start, end in view.timeline.spans)


def _failures(view: TrialView) -> list[int]:
    """Return the times at which a node went down, while the clock ran and outside its planned
    outages."""
    outages = outages_of(view.history)
    return [
        down.start
        for down in view.history.downs
        if _clock_ran(view, down.start)
        and any(outside(down.node, down.start, down.start + 1, outages))
    ]


def _unseen_failures(view: TrialView, seen: Sequence[int]) -> int:
    failed = (run for run in view.history.runs if run.code == codes.NODE_FAILURE.number)
    spans = [run.held_nodes(view.now) or (run.judged or 0, run.judged or 0) for run in failed]
    return sum(
        not any(start <= time <= end + LATE_NS for time in seen)
        for start, end in spans
        if _clock_ran(view, end)
    )


def jobs_in_flight(view: TrialView, criterion: Criterion) -> list[Result]:
    """The largest number of runs that always held nodes, but for short dips, from when
    ``at_least`` was first reached to the end of the trial's time.

        jobs_in_flight = largest n with every dip below n shorter than D
        D = min(1 minute, duration / 100)          without a duration: 1 minute

    A dip below n is an unbroken time in which fewer than n runs held nodes; a pause or an
    outage does not end it. Runs that wait in the queue do not count. Planned outages of all
    nodes are left out. Without a duration the time ends with the last start. With ``at_most``
    alone the value is the largest number. Where people changed the plan so that it kept fewer
    runs of these tests, the runs that it did not ask for are added in that span. Among the
    numbers are D (``shortest counted``), the share of time below the bound, and the longest
    dip.

    Undecided: until the bound is reached, then until the end unless it is missed.

    Example: ``at_least: 20``, reached after 2 hours; for one of the 238 hours that followed 14
    ran: not met, value 14. Had 14 run for a second only, it would be met.
    """
    bounds = bounds_of(criterion)
    found = in_flight(view.history, view.now, view.tests(criterion))
    found = _to_last_start(view, criterion, found)
    found, fewer = _as_planned(view, criterion, bounds.least, found)
    n = sum(run.held_nodes(view.now) is not None for run in view.runs(criterion))
    reached = [i for i, level in enumerate(found) if level.value >= (bounds.least or 0.0)]
    if bounds.least is None or not reached:
        return [_largest(view, criterion, bounds, found, n)]
    return [_held(view, criterion, bounds, found[reached[0] :], n, fewer)]


def _largest(
    view: TrialView, criterion: Criterion, bounds: Bounds, found: Sequence[LevelSpan], n: int
) -> Result:
    """Return the result of the largest number of runs in flight, where that is what is asked for,
    or it is less than what is."""
    largest = max((level.value for level in found), default=0.0)
    value: float | None = largest
    reason = f"never more than {largest:.0f} ran"
    if bounds.least is None:
        value = largest if found else None
        reason = f"at most {largest:.0f} ran at a time"
    if not found:
        reason = "no run has started"
    reach = (value, None)
    return decided(view, criterion, value, reason, n=n, bounds=bounds, reach=reach)


def _held(
    view: TrialView,
    criterion: Criterion,
    bounds: Bounds,
    held: Sequence[LevelSpan],
    n: int,
    fewer: str,
) -> Result:
    """Return whether as many runs were in flight as asked, from when they first were. ``fewer``:
    what people changed."""
    assert bounds.least is not None
    history = view.history
    short = min(SHORT, history.duration / 100) if history.duration else SHORT
    kept, since = kept_level(held, round(short * SECOND_NS))
    below = dips(held, bounds.least)
    time = sum(dip.length for dip in below)
    share = time / sum(level.end - level.start for level in held)
    numbers: Numbers = {
        "share of time below": share,
        "longest below": max((dip.length for dip in below), default=0) / SECOND_NS,
        "shortest counted": short,
        "reached after": history.clock(held[0].start),
    }
    reason = f"never fewer than {kept:.0f} ran"
    if below:
        reason += f" for {show_seconds(short)} or longer"
    if kept < bounds.least:
        reason = (
            f"only {kept:.0f} ran {show_seconds(history.clock(since))} after the start;"
            f" {bounds.words} was missed for {show_seconds(time / SECOND_NS)},"
            f" {100 * share:.3g} % of the time"
        )
    reason += fewer
    reach = (0.0, kept)
    return decided(view, criterion, kept, reason, n=n, bounds=bounds, reach=reach, numbers=numbers)


def _as_planned(
    view: TrialView, criterion: Criterion, least: float | None, found: list[LevelSpan]
) -> tuple[list[LevelSpan], str]:
    """Return the levels, and a note. Where people changed the policy, and it then kept fewer runs
    than the bound, runs that it did not ask for are added."""
    spans = view.history.policies
    if least is None or len(spans) == 1:
        return found, ""
    planned = [_kept_by(view, criterion, span.policy) for span in spans]
    missing = [least - max(kept, 0) if kept < least <= planned[0] else 0 for kept in planned]
    if not any(missing):
        return found, ""
    starts = [span.start for span in spans]
    added = list(zip(starts, [*starts[1:], view.now], missing, strict=True))
    note = ", ".join(
        f"{kept} from {show_seconds(view.history.clock(start))} on"
        for start, kept in zip(starts, planned, strict=True)
        if kept < least
    )
    return list(_raised(found, added)), f"; the changed plan kept fewer: {note}"


def _raised(
    levels: Sequence[LevelSpan], added: Sequence[tuple[int, int, float]]
) -> Iterator[LevelSpan]:
    """Yield levels, each with what is added from a start to an end."""
    for level in levels:
        for start, end, more in added:
            since, until = max(level.start, start), min(level.end, end)
            if since < until:
                yield LevelSpan(since, until, level.value + more)


def _kept_by(view: TrialView, criterion: Criterion, policy: Policy) -> int:
    """Return how many runs of the criterion's tests a policy keeps in flight."""
    history, wanted = view.history, set(view.tests(criterion))
    shapes = requests_of(history.cases, policy, history.room)
    widths = widest_of(shapes, len(policy.entries))
    expected = expected_runs(policy, widths, history.room or policy.nodes)
    pairs = zip(policy.entries, expected, strict=True)
    return sum(each.runs for entry, each in pairs if entry.name in wanted)


def _to_last_start(
    view: TrialView, criterion: Criterion, found: list[LevelSpan]
) -> list[LevelSpan]:
    """Return the levels; of a trial that is over and had no duration, those until its last
    start."""
    if view.history.duration or not view.history.over:
        return found
    starts = [held[0] for run in view.runs(criterion) if (held := run.held_nodes(view.now))]
    last = max(starts, default=0)
    cut = [level._replace(end=min(level.end, last)) for level in found if level.start < last]
    return cut or found[:1]


# ---- findings ------------------------------------------------------------------------------------
#
# The criterion on nodes: what rules over facts, or a test's own checks, found on them.


MAX_TOLD = 5


def findings(view: TrialView, criterion: Criterion) -> list[Result]:
    """The number of findings on nodes in the latest right run of each case that told of its nodes,
    each finding on each node once; of cases that differ in their node alone, in the latest of
    each, together. The largest number counts; ``at_most: 0`` asks for nodes without any.

    A run tells of its nodes by ``facts.txt``, as ``facts collect`` leaves it, which the rules
    that ship and those of the site judge; or by ``nodecheck.txt``, in which one job over all
    nodes speaks for each. Its metrics are ``findings``, ``findings_of_RULE`` and
    ``failed_node{node=NAME}``.

    Undecided: no such run; a case whose latest run left neither, if it would be met by an older
    one; a rehearsal.
    """
    reason = (
        "no run with a right answer left facts.txt or nodecheck.txt" if view.over else view.goes_on
    )
    results, told = [], False
    for group in view.groups(criterion):
        result = _of_case(view, criterion, group)
        if result is not None:
            results.append(result)
            told = True
        elif criterion.tests and (group.runs or not group.stage):
            results.append(undecided(criterion, reason, subject=group.name))
    return (
        with_worst(results, lambda one: one.value or 0.0)
        if told
        else [undecided(criterion, reason)]
    )


def _by_rule(runs: Iterable[RunHistory]) -> Counter[str]:
    """Return how many findings of each rule runs have."""
    of_rule: Counter[str] = Counter()
    for run in runs:
        for name, figure in (run.figures or {}).items():
            if name.startswith(PREFIX):
                of_rule[name.removeprefix(PREFIX)] += int(figure.value)
    return of_rule


def _of_case(view: TrialView, criterion: Criterion, group: NodeCases) -> Result | None:
    runs = group.right(FINDINGS)
    if not runs:
        return None
    latest = {run.case: run for run, _ in runs}
    value = sum({run.case: value for run, value in runs}.values())
    of_rule = _by_rule(latest.values())
    most = sorted(of_rule.items(), key=lambda item: -item[1])[:MAX_TOLD]
    parts = ", ".join(f"{name} on {count(value, 'node')}" for name, value in most)
    numbers: Numbers = {**of_rule}
    where = f" on each of {len(latest)} nodes" if len(latest) > 1 else ""
    reason = f"{parts or 'nothing'} in the latest of {count(len(runs), 'run')}{where}"
    subject = group.name
    result = decided(view, criterion, value, reason, n=len(runs), subject=subject, numbers=numbers)
    lacks = "left neither facts.txt nor nodecheck.txt that tells of a node"
    for run in latest.values():
        result = unless_newer(result, group, run, lacks)
    return unless_silent(result, group, view, FINDINGS)


# ---- gauges --------------------------------------------------------------------------------------
#
# The criterion on a gauge of the machine: load of a metadata server, temperature, power.


def gauge(view: TrialView, criterion: Criterion) -> list[Result]:
    """The share of the time in which a gauge of the machine read no more than ``at_most`` and no
    less than ``at_least``; it must be ``share`` of the trial's time or more (default: all of it).

        share = time inside the bounds / time with a reading

    A reading holds until the next one, at most for the gauge's `every` and `timeout` together and
    a second. The time of a pause and of a planned outage of all nodes does not count. A gap is the
    time without a reading: the command failed, or nobody read it. It is not good: the criterion is
    met only if the time inside the bounds is ``share`` of the whole time, gaps among it; and not
    met only if it would be missed had the gauge been inside in each gap. The trial reads the gauge
    because the criterion names it.

    Undecided: before the end, while the rest of the time can decide it; no reading; gaps that can
    decide it.

    Example: ``{criterion: gauge, gauge: mds_load, at_most: 400, share: 95%}`` in a trial of 10 h
    that read 300 for 9 h and 600 for 15 minutes, with a gap of 45 minutes: 97.3 % of the time with
    a reading, but 90 % of the whole: undecided, as 97.5 % are possible.
    """
    history, name = view.history, criterion.gauge
    limits = bounds_of(criterion)
    share = criterion.share.fraction
    bounds = Bounds(share, None, f"at least {show_share(share)} of the time {limits.words}")
    spans, window = gauge_spans(history, name, view.now), history.window(view.now)
    outages = whole_outages(history)
    use = gauge_use(spans, window, outages, lambda value: limits.contains((value, value)))
    if not use.sampled:
        reason = f"gauge {name} gave no reading" if view.over else view.goes_on
        return [undecided(criterion, reason, bounds.words)]
    left = _left(view, use)
    whole = use.whole + left
    reach: Reach = (use.good / whole, (use.good + use.gap + left) / whole)
    if not view.over and not history.duration:
        reach = (0.0, 1.0)
    result = decided(
        view,
        criterion,
        use.good / use.sampled,
        _words(use),
        n=use.readings,
        bounds=bounds,
        reach=reach,
        numbers=_numbers(use),
    )
    if view.over and not (bounds.contains(reach) or bounds.excludes(reach)):
        sampled = show_share(use.sampled / use.whole)
        doubt = f"only {sampled} of the time has a reading, and the rest decides"
        return [replace(result, state="undecided", reason=f"{doubt}; {result.reason}")]
    return [result]


def _left(view: TrialView, use: GaugeUse) -> int:
    """Return the time (ns) of the trial that is still to come."""
    duration = round(view.history.duration * SECOND_NS)
    return 0 if view.over or not duration else max(0, duration - use.whole)


def _words(use: GaugeUse) -> str:
    parts = [f"{show_share(use.good / use.sampled)} of {show_seconds(use.sampled / SECOND_NS)}"]
    if use.least is not None and use.highest is not None:
        span = f"{show_number(use.least)} to {show_number(use.highest)}"
        parts.append(f"{count(use.readings, 'reading')} from {span}")
    if use.gap:
        longest = show_seconds(use.longest_gap / SECOND_NS)
        parts.append(f"no reading for {show_seconds(use.gap / SECOND_NS)}, at once {longest}")
    return ", ".join(parts)


def _numbers(use: GaugeUse) -> Numbers:
    numbers: Numbers = {
        "inside": use.good / SECOND_NS,
        "outside": use.bad / SECOND_NS,
        "gaps": use.gap / SECOND_NS,
    }
    if use.least is not None and use.highest is not None:
        numbers |= {"least": use.least, "highest": use.highest}
    return numbers
