"""Find the defective nodes among many, by one figure of each.

survey({"n001": 812.0, ...}, "higher").defective     # {"n047": Defect(value=787.0, ...)}

The rule adapts to the noise. The healthy nodes are those of the best mode that holds a fifth of the
nodes or more, or all nodes if there is one mode; so 110 bad nodes of 200 do not become the norm.
Centre and noise are the median and the median absolute deviation of the healthy nodes (the root
mean square if that is 0, as of rounded figures). A node is defective if it is worse by 2 % and by
so many deviations that half a healthy node is expected beyond them (Chauvenet 1863): 2.9 for 200
nodes, 3.8 for 6,000. A node that is two deviations worse is suspect: measure it again, and pass all
its figures; their median counts.
"""

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise

from msgspec import Struct

from seatrial.lazy import np, statistics
from seatrial.statistics import modes
from seatrial.statistics.spread import MAD_TO_SIGMA, clipped
from seatrial.units import Better, unfit

MIN_RELATIVE_CHANGE = 0.02
MIN_NODES = 5
MIN_HEALTHY = 0.2  # share of the nodes that a mode needs to be the norm
FALSE_NODES = 0.5  # healthy nodes expected beyond the bound in one survey
SUSPECTED = 2.0
SMALL = 5.0  # the noise of few nodes is uncertain: the bound is multiplied by 1 + SMALL / nodes


class Defect(Struct, frozen=True):
    """A node that is worse than the healthy ones, and its figure.

    ``effect``: relative to their centre; -0.03 is 3 % worse, whichever direction is better.
    ``deviations``: the effect in their standard deviations, None if the healthy nodes are equal.
    """

    value: float
    effect: float
    deviations: float | None


class Survey(Struct, frozen=True, kw_only=True):
    """The result for many nodes.

    ``centre`` and ``noise`` (a standard deviation, in the figures' unit): of the ``healthy`` nodes.
    ``bound``: how many deviations make a node defective. ``without``: nodes without a finite
    figure. ``why``: the reason why nothing can be concluded, or "".
    """

    defective: dict[str, Defect] = {}
    suspect: dict[str, Defect] = {}
    nodes: int
    healthy: int = 0
    centre: float | None = None
    noise: float | None = None
    bound: float | None = None
    without: list[str]
    why: str = ""


def survey(values_by_node: Mapping[str, float | Sequence[float]], better: Better) -> Survey:
    """Judge nodes by one or several figures of each. Judge different kinds of nodes separately."""
    figures = {node: _figure(given) for node, given in values_by_node.items()}
    known = {node: value for node, value in figures.items() if value is not None}
    without = [node for node, value in figures.items() if value is None]
    if len(known) < MIN_NODES:
        reason = f"{len(known)} nodes have a figure: "
        reason += f"what is usual can be told of {MIN_NODES} or more"
        return Survey(nodes=len(known), without=without, why=reason)
    healthy = _healthy(list(known.values()), better)
    centre = statistics.median(healthy)
    if centre <= 0:
        reason = f"the healthy centre is {centre:g}: a share of it means nothing"
        return Survey(nodes=len(known), without=without, why=reason)
    bound = _bound(len(known))
    noise = _noise([value - centre for value in healthy], bound)
    worst = _worse(known, centre, noise, better)
    return Survey(
        defective={node: d for node, d in worst if _beyond(d, bound)},
        suspect={node: d for node, d in worst if _beyond(d, SUSPECTED) and not _beyond(d, bound)},
        nodes=len(known),
        healthy=len(healthy),
        centre=centre,
        noise=noise,
        bound=bound,
        without=without,
    )


def _worse(
    known: Mapping[str, float], centre: float, noise: float, better: Better
) -> list[tuple[str, Defect]]:
    """Return the nodes whose figure is worse than the centre by enough to matter, worst first."""
    sign = 1 if better == "higher" else -1
    worse: list[tuple[str, Defect]] = []
    for node, value in known.items():
        effect = sign * (value - centre) / centre
        if effect <= -MIN_RELATIVE_CHANGE:
            z = effect * centre / noise if noise else None
            worse.append((node, Defect(value, effect, z)))
    return sorted(worse, key=lambda item: item[1].effect)


def _figure(given: float | Sequence[float]) -> float | None:
    """Return the median of a node's figures that can be judged, or None."""
    figures = [given] if isinstance(given, int | float) else given
    fit = [float(figure) for figure in figures if not unfit(figure)]
    return statistics.median(fit) if fit else None


def _healthy(values: list[float], better: Better) -> list[float]:
    """Return the figures of the best mode that may be the norm; all if there is only one mode."""
    large = [mode for mode in modes.find(values) if mode.share >= MIN_HEALTHY]
    if len(large) < 2:
        return values
    if better == "higher":
        large.reverse()
    low, high = large[0].low, large[0].high
    distinct = sorted(set(values))
    step = min(b - a for a, b in pairwise(distinct)) if len(distinct) > 2 else 0.0
    for mode in large[1:]:
        apart = max(mode.low - high, low - mode.high)
        if apart > step * (1 + 1e-6):
            break
        low, high = min(low, mode.low), max(high, mode.high)  # rounding splits one mode in two
    return [value for value in values if low <= value <= high]


def _noise(away: list[float], bound: float) -> float:
    """Return the standard deviation of the healthy nodes.

    If more than half of the figures are equal, it is that of the others, defective ones excluded.
    If then the nearest figures on both sides are equally far, as rounded ones are, it is at least
    that of a uniform distribution over such a step on each side. ``away``: distances from the
    centre.
    """
    if robust := MAD_TO_SIGMA * statistics.median(map(abs, away)):
        return robust
    above = min((far for far in away if far > 0), default=0.0)
    below = min((-far for far in away if far < 0), default=0.0)
    step = above if math.isclose(above, below, rel_tol=1e-6) else 0.0
    return max(clipped(np.array(away), bound), step / math.sqrt(3))


def _bound(nodes: int) -> float:
    """Return how many deviations make one of so many nodes defective."""
    return -statistics.NormalDist().inv_cdf(FALSE_NODES / nodes) * (1 + SMALL / nodes)


def _beyond(defect: Defect, bound: float) -> bool:
    return defect.deviations is None or defect.deviations <= -bound
