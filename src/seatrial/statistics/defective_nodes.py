"""Which of many nodes are defective, by one figure of each.

defective({"n001": 812.0, "n002": 811.2, ...}, "higher")   # {"n047": Defect(value=787.0, ...)}

The rule adapts to the noise. What is healthy is the best mode of the figures that a fifth of the
nodes or more are in (of all nodes, where there is one mode): so 110 bad nodes of 200 do not pass
for the norm. Centre and noise are the median and the median absolute deviation of the healthy (the
root mean square where that is 0, as of rounded figures). A node is defective where it is worse by
2 % at least and by so many deviations that of all healthy nodes together half of one is expected
there (Chauvenet 1863): 2.9 of 200, 3.8 of 6,000. A node two deviations worse is suspect: measure
it again, and give all its figures, whose median counts.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from itertools import pairwise
from statistics import NormalDist, median

from msgspec import Struct

from seatrial.statistics import modes
from seatrial.statistics.spread import MAD_TO_SIGMA, clipped
from seatrial.units import Better, unfit

MIN_RELATIVE_CHANGE = 0.02
MIN_NODES = 5
MIN_HEALTHY = 0.2  # share of the nodes in a mode that may be the norm
FALSE_NODES = 0.5  # healthy nodes expected beyond the bound, in one survey
SUSPECTED = 2.0
SMALL = 5.0  # deviations of few nodes are uncertain: the bound grows by 1 + SMALL / nodes


class Defect(Struct, frozen=True):
    """A node that is worse than the healthy ones: its figure, the ``effect`` relative to their
    centre (-0.03: 3 % worse, whichever direction is better), and that in their deviations (None
    where the healthy nodes do not differ)."""

    value: float
    effect: float
    deviations: float | None


class Survey(Struct, frozen=True):
    """What the figures of many nodes say. ``centre`` and ``noise`` (a standard deviation, in the
    figures' unit) are those of the healthy mode, in which ``healthy`` nodes are; ``bound`` is how
    many deviations make a node defective. ``without`` are nodes without a finite figure. ``why``
    says why nothing can be concluded, else it is empty."""

    defective: dict[str, Defect]
    suspect: dict[str, Defect]
    nodes: int
    healthy: int
    centre: float | None
    noise: float | None
    bound: float | None
    without: list[str]
    why: str = ""


def defective(
    values_by_node: Mapping[str, float | Sequence[float]], better: Better
) -> dict[str, Defect]:
    """The defective nodes, worst first. See ``survey``, which also says why there are none."""
    return survey(values_by_node, better).defective


def survey(
    values_by_node: Mapping[str, float | Sequence[float]],
    better: Better,
    least: float = MIN_RELATIVE_CHANGE,
) -> Survey:
    """Judge nodes by one figure or several of each. Nodes of different kinds are to be judged
    apart. ``least`` is the least effect of a defect."""
    figures = {node: _figure(given) for node, given in values_by_node.items()}
    known = {node: value for node, value in figures.items() if value is not None}
    without = [node for node, value in figures.items() if value is None]

    def nothing(why: str) -> Survey:
        return Survey({}, {}, len(known), 0, None, None, None, without, why)

    if len(known) < MIN_NODES:
        return nothing(
            f"{len(known)} nodes have a figure: what is usual can be told of {MIN_NODES} or more"
        )
    healthy = _healthy(list(known.values()), better)
    centre = median(healthy)
    if centre <= 0:
        return nothing(f"the healthy centre is {centre:g}: a share of it means nothing")
    bound = _bound(len(known))
    noise = _noise([value - centre for value in healthy], bound)
    sign = 1 if better == "higher" else -1
    found: dict[str, Defect] = {}
    for node, value in known.items():
        effect = sign * (value - centre) / centre
        if effect <= -least:
            found[node] = Defect(value, effect, effect * centre / noise if noise else None)
    worst = sorted(found.items(), key=lambda item: item[1].effect)
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


def _figure(given: float | Sequence[float]) -> float | None:
    """The median of a node's figures that can be judged."""
    figures = [given] if isinstance(given, int | float) else given
    fit = [float(figure) for figure in figures if not unfit(figure)]
    return median(fit) if fit else None


def _healthy(values: list[float], better: Better) -> list[float]:
    """The figures of the best mode that may be the norm; all of them where modes cannot be told."""
    found = [mode for mode in modes.find(values).modes if mode.share >= MIN_HEALTHY]
    if len(found) < 2:
        return values
    if better == "higher":
        found.reverse()
    low, high = found[0].low, found[0].high
    distinct = sorted(set(values))
    step = min(b - a for a, b in pairwise(distinct)) if len(distinct) > 2 else 0.0
    for mode in found[1:]:
        apart = max(mode.low - high, low - mode.high)
        if apart > step * (1 + 1e-6):
            break
        low, high = min(low, mode.low), max(high, mode.high)  # one mode, but for rounding
    return [value for value in values if low <= value <= high]


def _noise(away: list[float], bound: float) -> float:
    """The deviation of the healthy. Where more than half are equal, what the others say but for
    those that are defective; and where the nearest are as far on either side, as of rounded
    figures, that of one which may be anywhere within such a step."""
    import numpy as np

    if robust := MAD_TO_SIGMA * median(map(abs, away)):
        return robust
    above = min((far for far in away if far > 0), default=0.0)
    below = min((-far for far in away if far < 0), default=0.0)
    step = above if math.isclose(above, below, rel_tol=1e-6) else 0.0
    return max(clipped(np.array(away), bound), step / math.sqrt(3))


def _bound(nodes: int) -> float:
    return -NormalDist().inv_cdf(FALSE_NODES / nodes) * (1 + SMALL / nodes)


def _beyond(defect: Defect, bound: float) -> bool:
    return defect.deviations is None or defect.deviations <= -bound
