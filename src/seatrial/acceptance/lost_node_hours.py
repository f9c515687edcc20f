"""Where node-hours went that no accepted run used: the first reason of a low utilisation.

losses(timeline)            # [("idle", 0.31), ("kept", 0.05), ...]
sentence(history, timeline, now)
                            # idle 31 % of node-hours: nothing queued from hour 100 to 168
"""

from collections import Counter

from seatrial.acceptance.trial_history import TrialHistory
from seatrial.acceptance.utilisation import USES, Timeline
from seatrial.journal.codes import code_of
from seatrial.units import SECOND_NS

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
