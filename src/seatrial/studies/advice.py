"""The advice of a tuning in sentences, for the command line and the page."""

from seatrial.studies.tuned import FigureRatio, Tuned, TunedSetting
from seatrial.units import count, listed, show_number, show_share, show_signed

MAX_NAMED = 4
UNKNOWN = "unknown"


def advice(found: Tuned) -> list[str]:
    """Return the advice: the setting to use first, then what is known of it."""
    if found.search == "largest":
        return [_largest(found)]
    if found.best is None:
        return ["no setting has a figure: there is nothing to advise"]
    default = next((each for each in found.settings if each.is_default), None)
    return [
        _which(found, default),
        *_price(found, default),
        *_untold(found),
        *_on_several_nodes(found),
        *(["the race is not over: this is what is known by now"] if not found.complete else []),
    ]


def _largest(found: Tuned) -> str:
    failed = [each for each in found.settings if each.state == "failed" and each.runs]
    if found.best is None:
        return "no size works" if failed else "no size was tried yet"
    best = found.settings[found.best]
    if not failed:
        return f"the largest size that works is {best.name}, the largest of all that were given"
    other = f"{failed[0].name} does not: {failed[0].cause}"
    return f"the largest size that works is {best.name}; {other}"


def _which(found: Tuned, default: TunedSetting | None) -> str:
    assert found.best is not None
    best, least = found.settings[found.best], show_share(found.least)
    if default is not None and default.state == "failed":
        return f"use {best.name}: the default ({default.name}) failed: {default.cause}"
    n = default.n if default is not None else 0
    if found.advised != found.best or default is None or best.is_default:
        ratio = found.to_default
        text = f"keep the default: no setting is shown to be better than it by more than {least}"
        if ratio is None:
            return f"{text} (n = {n})"
        return f"{text} (n = {ratio.n}); the nearest, {best.name}, has {ratio_text(found, ratio)}"
    ratio = found.to_default
    if ratio is None:
        return f"use {best.name}; it has no round in common with the default, so no ratio"
    text = f"use {best.name}: {ratio_text(found, ratio)}"
    if found.by_rounds:
        text += "; it is told by the rounds, in which both ran side by side: without them, as "
        text += "`compare` sees these runs, it cannot be told"
    return text


def _price(found: Tuned, default: TunedSetting | None) -> list[str]:
    """Return what a run of the setting that is best takes beside one of the default: a faster one
    may need more nodes."""
    assert found.best is not None
    best = found.settings[found.best]
    if default is None or best.is_default or not (best.node_hours and default.node_hours):
        return []
    more = best.node_hours / default.node_hours - 1
    said = f"a run of {best.name} takes {count(best.nodes, 'node')}, one of the default "
    said += f"{default.nodes}; {show_number(best.node_hours)} node-hours, the default "
    return [f"{said}{show_number(default.node_hours)} ({show_signed(100 * more, 1)} %)"]


def ratio_text(found: Tuned, ratio: FigureRatio) -> str:
    """Return a ratio in words: ``0.810 times the time of the default (0.780 to 0.840, n = 9)``."""
    what = f"{ratio.ratio:.3f} times the {found.metric} of the default"
    interval = interval_text(ratio)
    interval = f"interval {interval}" if interval == UNKNOWN else interval
    return f"{what} ({interval}, n = {ratio.n})"


def interval_text(ratio: FigureRatio) -> str:
    """Return an interval as people read it; an end that nothing bounds is a question mark."""
    if ratio.low is None and ratio.high is None:
        return UNKNOWN
    low, high = ("?" if end is None else f"{end:.3f}" for end in (ratio.low, ratio.high))
    return f"{low} to {high}"


def _untold(found: Tuned) -> list[str]:
    untold = [each.name for each in found.settings if each.untold]
    if not untold:
        return []
    return [f"cannot be told from the best: {listed(untold, MAX_NAMED)}"]


def _on_several_nodes(found: Tuned) -> list[str]:
    """Return which blocks compare settings on different nodes, as an allocation ended early."""
    return [
        f"block {number} ran on different nodes ({listed(block.nodes, MAX_NAMED)}), as an "
        "allocation ended early or settings need other sizes: its ratios are less exact"
        for number, block in enumerate(found.blocks, 1)
        if len(block.nodes) > 1
    ]


def cost_text(found: Tuned) -> str:
    """Return what the tuning cost, beside the whole grid."""
    share = show_share(found.runs / found.grid_runs) if found.grid_runs else "?"
    text = f"{count(found.runs, 'run')}, {share} of the grid's {found.grid_runs}"
    hours, grid = found.node_hours, found.grid_node_hours
    if grid > 0:
        text += f"; {show_number(hours)} node-hours, about {hours / grid:.0%} of its "
        text += f"{show_number(grid)} as estimated"
    return text


def untried_text(found: Tuned) -> str:
    """Return which axes were not tried, with the values that were kept; "" if there are none."""
    return ", ".join(f"{name} ({', '.join(values)})" for name, values in found.untried.items())
