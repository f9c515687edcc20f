"""An all-pairs matrix of a network: slow senders, receivers and links, and what cannot talk.

survey(bandwidths, "higher", names=hosts, groups=switches).senders

Row i, column j is what i sent to j; the diagonal is not looked at; NaN, 0 and less mean that the
pair could not talk. Of the logarithms the median of each topology class is subtracted (same host,
same group, other group), and a median polish takes out rows and columns: what is left over is the
row's effect = sender, the column's = receiver, the residual = link. A node is slow at 5 robust
deviations of all nodes and 2 %; a link at 8 median absolute deviations of all links. Figures where
lower is better (latency) are judged with the sign turned.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from seatrial.statistics.blocks import Blocks, blocks
from seatrial.statistics.median_polish import medians, polish
from seatrial.statistics.spread import MAD_TO_SIGMA, clipped
from seatrial.units import Better

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]
    Mask = NDArray[np.bool_]
    Numbers = NDArray[np.intp]

MIN_NODES = 5
NODE_DEVIATIONS = 5.0
NODE_EFFECT = 0.02
CLIP = 3.0  # deviations, beyond which a link says nothing about its nodes
LINK_DEVIATIONS = 8.0  # median absolute, not standard, deviations
MIN_DEVIATION = 1e-6  # less is that of single precision
SLOW_GROUPS = 0.05  # a pair of groups this much below the others of its class
MAX_LISTED = 1000  # links and pairs that are listed; all are counted
MAX_GROUP_PAIRS = 65_536  # of groups that are listed; of more those that are cut or slow


class Slow(Struct, frozen=True):
    """A node that sends or receives slowly: its effect on all its links (-0.05: 5 % worse), and
    how many robust deviations of the nodes' effects that is (None where they do not differ)."""

    name: str
    effect: float
    deviations: float | None


class Link(Struct, frozen=True):
    """A link: its figure, and the effect that its sender, receiver and topology do not explain."""

    sender: str
    receiver: str
    value: float
    effect: float


class GroupPair(Struct, frozen=True):
    """Links from one group to another: median, least and greatest figure, ``effect`` against the
    median of its class (None without a figure), links in all, links that could not talk."""

    sender: str
    receiver: str
    median: float | None
    low: float | None
    high: float | None
    effect: float | None
    links: int
    missing: int

    @property
    def cut(self) -> bool:
        """Nothing gets through."""
        return self.links > 0 and self.missing == self.links


class Nic(Struct, frozen=True):
    """Averages and maxima of what a network card (of one rank or more) sent and received."""

    name: str
    sent: float | None
    sent_most: float | None
    received: float | None
    received_most: float | None


class Network(Struct, frozen=True, kw_only=True):
    """What a matrix says. ``groups`` are pairs of groups, all of them up to 256 groups. ``silent``
    are nodes that neither send nor receive; ``cut_off`` groups that talk with no other group;
    ``apart`` further sets of nodes that talk among themselves alone, all but the largest;
    ``pairs`` are single pairs, (sender, receiver), that cannot talk though both nodes and their
    groups do; the worst or first thousand of links and pairs are listed, ``slow_links`` and
    ``mute_pairs`` count all. ``noise`` is the standard deviation of the links, relative. ``why``
    says why speeds were not judged, else it is empty."""

    nodes: int
    senders: list[Slow]
    receivers: list[Slow]
    links: list[Link]
    slow_links: int
    silent: list[str]
    cut_off: list[str]
    apart: list[list[str]]
    pairs: list[tuple[str, str]]
    mute_pairs: int
    groups: list[GroupPair]
    nics: list[Nic]
    noise: float | None
    why: str = ""

    @property
    def slow_groups(self) -> list[GroupPair]:
        """Pairs of groups whose links are 5 % worse than those of other groups, or cut."""
        return [g for g in self.groups if g.cut or (g.effect or 0) < -SLOW_GROUPS]


def survey(
    matrix: Sequence[Sequence[float]] | Array,
    better: Better,
    names: Sequence[str] | None = None,
    groups: Sequence[str] | None = None,
    nics: Sequence[str] | None = None,
    hosts: Sequence[str] | None = None,
) -> Network:
    """Judge an all-pairs matrix. ``names``, ``groups`` (topology: switch, rack), ``nics`` and
    ``hosts`` are one for each row; without groups all are in one, without nics each row has its
    own; ``hosts`` make a class of rows of one host, as of ranks that share memory. Raises
    ValueError for a matrix that is not square or labels that do not fit."""
    import numpy as np

    figures = np.array(matrix, dtype=float)
    count = _checked(figures, names=names, groups=groups, nics=nics, hosts=hosts)
    labels = [str(i) for i in range(count)] if names is None else list(names)
    kinds, member = np.unique(
        ["all"] * count if groups is None else list(groups), return_inverse=True
    )
    figures[~(np.isfinite(figures) & (figures > 0))] = np.nan
    np.fill_diagonal(figures, np.nan)
    talks = ~np.isnan(figures)
    found = blocks(figures, member, len(kinds))
    silent = ~(talks.any(axis=0) | talks.any(axis=1))
    part = _parts(talks)
    mute = _mute_pairs(talks, silent, found, member)
    mute = mute[part[mute[:, 0]] == part[mute[:, 1]]]
    cut_off = _cut_off(found, kinds.tolist())
    classes = (
        [member] if hosts is None else [np.unique(list(hosts), return_inverse=True)[1], member]
    )
    effects = _Effects(figures, classes, better) if not (why := _too_little(talks)) else None
    slow = _slow_links(figures, effects, labels) if effects else ([], 0)
    return Network(
        nodes=count,
        senders=_slow_nodes(effects.rows, talks.sum(axis=1), labels) if effects else [],
        receivers=_slow_nodes(effects.columns, talks.sum(axis=0), labels) if effects else [],
        links=slow[0],
        slow_links=slow[1],
        silent=[labels[i] for i in np.flatnonzero(silent)],
        cut_off=cut_off,
        apart=_apart(part, silent | np.isin(kinds[member], cut_off), labels),
        pairs=[(labels[i], labels[j]) for i, j in mute[:MAX_LISTED].tolist()],
        mute_pairs=len(mute),
        groups=_group_table(found, kinds.tolist(), better),
        nics=_nic_table(figures, labels if nics is None else list(nics)),
        noise=effects.noise if effects else None,
        why=why,
    )


def _checked(figures: Array, **labels: Sequence[str] | None) -> int:
    if figures.ndim != 2 or figures.shape[0] != figures.shape[1]:
        raise ValueError(f"the matrix is {' x '.join(map(str, figures.shape))}; it must be square")
    count = len(figures)
    for what, given in labels.items():
        if given is not None and len(given) != count:
            raise ValueError(f"{len(given)} {what} for {count} rows; give one for each")
    names = labels["names"]
    if names is not None and len(set(names)) < count:
        raise ValueError("two rows have one name")
    return count


def _too_little(talks: Mask) -> str:
    import numpy as np

    count = int(np.count_nonzero(talks.any(axis=0) | talks.any(axis=1)))
    if count < MIN_NODES:
        return f"{count} nodes talk; what is slow can be told among {MIN_NODES} or more"
    return ""


# ---- speeds -------------------------------------------------------------------------------


class _Effects:
    """Effects in logarithms, less than 0 where worse: of rows, of columns, and what remains."""

    def __init__(self, figures: Array, classes: Sequence[Numbers], better: Better) -> None:
        import numpy as np

        # Single precision, a millionth of a figure, halves time and memory.
        self.rest = np.log(figures).astype(np.float32)
        if better == "lower":
            np.negative(self.rest, out=self.rest)
        self._remove_classes(classes)
        self.rows, self.columns = polish(self.rest)
        self.deviation = float(medians(np.abs(self.rest).reshape(1, -1))[0])
        if self.deviation < MIN_DEVIATION:  # more than half are equal: rounded figures
            self.deviation = clipped(self.rest, LINK_DEVIATIONS / MAD_TO_SIGMA) / MAD_TO_SIGMA
        self.noise = MAD_TO_SIGMA * self.deviation
        self._sharpen()

    def _sharpen(self) -> None:
        """Add the mean of the rest within three deviations: a median alone is a quarter less
        precise, for nodes a few per cent slow the difference between found and not."""
        import numpy as np

        near = np.abs(self.rest) <= CLIP * self.noise  # not so where there is none
        rest = np.where(near, self.rest, np.float32(0))
        for effects, axis in ((self.rows, 1), (self.columns, 0)):
            effects += rest.sum(axis=axis, dtype=float) / np.maximum(near.sum(axis=axis), 1)

    def _remove_classes(self, classes: Sequence[Numbers]) -> None:
        """Pairs that are together in the first of the classes, in the second of them, ..., in
        none."""
        import numpy as np

        left = np.ones(self.rest.shape, dtype=bool)
        for member in [*classes, np.zeros(len(self.rest))]:
            those = left & (member[:, None] == member[None, :])
            self.rest[those] -= np.float32(medians(self.rest[those][None, :])[0])
            left &= ~those


def _slow_nodes(effects: Array, links: Numbers, labels: list[str]) -> list[Slow]:
    """Worst first. The effect of a node with few links is less sure, as the root of them."""
    import numpy as np

    away = effects - np.nanmedian(effects)
    sure = away * np.sqrt(links / np.median(links[links > 0]))
    deviation = MAD_TO_SIGMA * float(np.nanmedian(np.abs(sure)))
    if deviation < MIN_DEVIATION:
        deviation = clipped(sure, NODE_DEVIATIONS)
    found = []
    for i in np.flatnonzero(away < math.log1p(-NODE_EFFECT)):
        deviations = float(sure[i]) / deviation if deviation > MIN_DEVIATION else None
        if deviations is None or deviations < -NODE_DEVIATIONS:
            found.append(Slow(labels[i], math.expm1(float(away[i])), deviations))
    return sorted(found, key=lambda slow: slow.effect)


def _slow_links(figures: Array, effects: _Effects, labels: list[str]) -> tuple[list[Link], int]:
    """The worst, worst first, and how many there are."""
    import numpy as np

    bound = min(-LINK_DEVIATIONS * effects.deviation, math.log1p(-NODE_EFFECT))
    senders, receivers = np.nonzero(effects.rest < bound)
    away = effects.rest[senders, receivers]
    told = [
        Link(labels[i], labels[j], float(figures[i, j]), math.expm1(float(effects.rest[i, j])))
        for i, j in zip(
            *(side[np.argsort(away, kind="stable")[:MAX_LISTED]] for side in (senders, receivers)),
            strict=True,
        )
    ]
    return told, len(away)


# ---- who cannot talk ----------------------------------------------------------------------


def _group_table(found: Blocks, kinds: list[str], better: Better) -> list[GroupPair]:
    """All pairs of groups; of more than ``MAX_GROUP_PAIRS`` those that are cut or slow, the first
    thousand."""
    import numpy as np

    own = np.eye(len(kinds), dtype=bool)
    norms = np.full(found.median.shape, np.nan)
    for those in (own, ~own):
        if (of_class := found.median[those & (found.known > 0)]).size:
            norms[those] = np.median(of_class)
    ratio = found.median / norms if better == "higher" else norms / found.median
    links = _links(found)
    chosen = np.argwhere(np.ones_like(own))
    if len(chosen) > MAX_GROUP_PAIRS:
        told = ((links > 0) & (found.known == 0)) | (ratio - 1 < -SLOW_GROUPS)
        chosen = np.argwhere(told)[:MAX_LISTED]

    def figure(value: float) -> float | None:
        return None if math.isnan(value) else float(value)

    return [
        GroupPair(
            *(kinds[a], kinds[b], figure(found.median[a, b])),
            *(figure(found.low[a, b]), figure(found.high[a, b]), figure(ratio[a, b] - 1)),
            *(int(links[a, b]), int(links[a, b] - found.known[a, b])),
        )
        for a, b in chosen.tolist()
    ]


def _links(found: Blocks) -> Numbers:
    """The links of each pair of groups: all cells, but those of a node with itself."""
    import numpy as np

    links: Numbers = found.cells - np.diag(np.sqrt(found.cells.diagonal()).round().astype(int))
    return links


def _cut_off(found: Blocks, kinds: list[str]) -> list[str]:
    """Groups with no link to another group, whether they talk among themselves or not."""
    import numpy as np

    known = np.where(np.eye(len(kinds), dtype=bool), 0, found.known)
    talks = known.any(axis=0) | known.any(axis=1)
    return [] if len(kinds) < 2 else [kinds[i] for i in np.flatnonzero(~talks)]


def _parts(talks: Mask) -> Numbers:
    """For each node the number of its part: nodes that talk, be it by way of others."""
    import numpy as np

    either = talks | talks.T
    part = np.full(len(talks), -1)
    for first in range(len(talks)):
        if part[first] >= 0:
            continue
        members = np.zeros(len(talks), dtype=bool)
        newest = np.array([first])
        while newest.size:
            members[newest] = True
            newest = np.flatnonzero(either[newest].any(axis=0) & ~members)
        part[members] = first
    return part


def _apart(part: Numbers, known: Mask, labels: list[str]) -> list[list[str]]:
    """The parts but for the largest, and those all of whose nodes are ``known`` to be cut off."""
    import numpy as np

    numbers, sizes = np.unique(part, return_counts=True)
    others = np.delete(numbers, sizes.argmax()) if len(numbers) else numbers
    members = [np.flatnonzero(part == number) for number in others]
    return [[labels[i] for i in some] for some in members if not known[some].all()]


def _mute_pairs(talks: Mask, silent: Mask, found: Blocks, member: Numbers) -> Numbers:
    """Pairs that cannot talk, where neither a node nor a pair of groups is wholly mute."""
    import numpy as np

    mute = ~talks
    np.fill_diagonal(mute, False)
    mute[silent, :] = False
    mute[:, silent] = False
    if not mute.any():
        return np.empty((0, 2), dtype=np.intp)
    pairs = np.argwhere(mute)
    cut = (_links(found) > 0) & (found.known == 0)
    single: Numbers = pairs[~cut[member[pairs[:, 0]], member[pairs[:, 1]]]]
    return single


# ---- network cards ------------------------------------------------------------------------


def _nic_table(figures: Array, labels: list[str]) -> list[Nic]:
    import numpy as np

    names, member = np.unique(labels, return_inverse=True)
    known = ~np.isnan(figures)
    plain = np.where(known, figures, 0.0)
    sides = []
    for axis in (1, 0):
        sums = np.bincount(member, plain.sum(axis=axis), minlength=len(names))
        counts = np.bincount(member, known.sum(axis=axis), minlength=len(names))
        most = np.zeros(len(names))
        np.maximum.at(most, member, plain.max(axis=axis, initial=0.0))
        sides.append((sums / np.maximum(counts, 1), most, counts))
    (sent, sent_most, out), (received, received_most, into) = sides
    return [
        Nic(
            str(name),
            float(sent[i]) if out[i] else None,
            float(sent_most[i]) if out[i] else None,
            float(received[i]) if into[i] else None,
            float(received_most[i]) if into[i] else None,
        )
        for i, name in enumerate(names)
    ]
