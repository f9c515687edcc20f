"""The criterion on a gauge of the machine: load of a metadata server, temperature, power."""

from msgspec.structs import replace

from seatrial.model.plan import Criterion
from seatrial.results.criteria.view import (
    Bounds,
    Numbers,
    Reach,
    Result,
    TrialView,
    bounds_of,
    decided,
    undecided,
)
from seatrial.results.gauges import GaugeUse, gauge_spans, gauge_use
from seatrial.results.outages import whole_outages
from seatrial.units import SECOND_NS, count, show_number, show_seconds, show_share


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
