"""Networks: the runs that measured every pair of ranks, one such matrix with its findings, and what
the page of a machine shows of its levels.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from msgspec.structs import replace
from numpy.typing import NDArray

from seatrial.errors import UsageError
from seatrial.escaping import plain
from seatrial.judge.statistics.all_pairs import Network
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import topology_of
from seatrial.model.node_set import fold
from seatrial.plugins.network import matrices
from seatrial.plugins.network.matrices import (
    LevelFinding,
    Matrix,
    MatrixJudgement,
    broken_groups,
    judged_on,
    level_findings,
    network_groups,
    slow_groups,
    texts,
)
from seatrial.results.store import nodes, queries
from seatrial.results.store.queries import trial_of, trials
from seatrial.results.store.tables import RunRow
from seatrial.show.web.caches import LruCache
from seatrial.show.web.nodes import View
from seatrial.show.web.output import head
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import version_of
from seatrial.units import show_bytes

MAX_FINDINGS = 200  # of a kind that are listed
NEAR = 32  # ranks that are shown around a finding
FINEST = 2048  # cells each way
MAX_RANKS = 1 << 20


class NetworksPage(Struct, frozen=True):
    """The latest runs that have a matrix, one of each case; None while they are being looked
    for."""

    runs: list[RunRow] | None
    machines: list[str]


def listed(state: ServerState, query: PageQuery) -> NetworksPage:
    runs = runs_with(state)
    machine = query.text("machine")
    machines = sorted({run.machine for run in runs or ()})
    if runs is not None and machine:
        runs = [run for run in runs if run.machine == machine]
    return NetworksPage(runs, machines)


# ---- one matrix ---------------------------------------------------------------------------


class NetworkFinding(Struct, frozen=True, kw_only=True):
    """A fault of the network. ``effect`` is relative (-0.05: 5 % worse). ``x`` and ``y`` are its
    place in the order that is shown."""

    kind: str
    what: str
    rate: float | None = None
    effect: float | None = None
    deviations: float | None = None
    x: int = 0
    y: int = 0


class Pairs(Struct, frozen=True, kw_only=True):
    """A matrix and its findings; there are none while it is being judged (``ready`` is false).
    ``row_order`` are the senders in the order that is shown, as places in ``names``."""

    run: RunRow
    ready: bool
    of: str
    show: str
    part: MatrixPanel
    near: int
    unit: str = ""
    ranks: int = 0
    nodes: int = 0
    noise: float | None = None
    reason: str = ""
    low: float = 0.0
    high: float = 0.0
    grouped: bool = False
    hidden: int = 0
    findings: list[NetworkFinding] = []
    left_out: dict[str, int] = {}
    names: list[str] = []
    groups: list[str] = []
    row_order: list[int] = []
    column_order: list[int] = []


def data(state: ServerState, query: PageQuery) -> Pairs:
    run = _run(state, query)
    rows, columns, aspect, show = _look(query)
    charted = charted_of(state, run)
    if charted is None:
        return Pairs(
            run=run,
            ready=False,
            part=MatrixPanel(0, 0, MAX_RANKS),
            near=NEAR,
            of=aspect,
            show=show,
        )
    scale = charted.scales[show]
    count = len(charted.names)
    net = charted.judged.network
    findings, left_out = _findings(charted, net, rows, columns)
    return Pairs(
        run=run,
        unit=charted.judged.unit,
        ranks=charted.judged.ranks,
        grouped=charted.judged.grouped,
        hidden=charted.judged.hidden,
        ready=True,
        part=_part(query, count),
        near=min(2 * NEAR, count),
        nodes=net.nodes,
        noise=net.noise,
        reason=net.reason,
        low=scale.low,
        high=scale.high,
        findings=findings,
        left_out=left_out,
        names=charted.names,
        groups=charted.groups,
        row_order=charted.orders[rows, 0].tolist(),
        column_order=charted.orders[columns, 1].tolist(),
        of=aspect,
        show=show,
    )


def cells(state: ServerState, query: PageQuery) -> Cells:
    """Return a part of a matrix as a picture."""
    run = _run(state, query)
    rows, columns, aspect, show = _look(query)
    max_cells = query.number("most", 700, least=16, most=FINEST)
    charted = charted_of(state, run)
    if charted is None:
        return Cells()
    part = _part(query, len(charted.names))
    return charted.cells(part, max_cells, (rows, columns), aspect, show)


def _run(state: ServerState, query: PageQuery) -> RunRow:
    return queries.run(state.store(), f"{query.path['trial']}/{query.path['run_id']}")


def _look(query: PageQuery) -> tuple[str, str, str, str]:
    rows, columns = (query.choice(name, ORDERS, "rank") for name in ("rows", "columns"))
    aspect, show = (
        query.choice("of", ASPECTS, "worst"),
        query.choice("show", SHOWS, "rate"),
    )
    return rows, columns, aspect, show


def _part(query: PageQuery, count: int) -> MatrixPanel:
    size = min(query.number("size", count, least=1, most=MAX_RANKS), count)
    x, y = (query.number(name, 0, most=MAX_RANKS) for name in ("x", "y"))
    return MatrixPanel(min(x, count - size), min(y, count - size), size)


# ---- findings -----------------------------------------------------------------------------


def _findings(
    charted: Charted, net: Network, rows: str, columns: str
) -> tuple[list[NetworkFinding], dict[str, int]]:
    """Return the findings of each kind, the worst first, and how many of each kind are not
    listed."""
    at = _Places(charted, rows, columns)
    kinds: dict[str, list[NetworkFinding]] = {}
    levels = charted.levels
    groups = levels is None
    for one in (*_by_level(levels or (), at), *_mute(net, at, groups), *_slow(net, at, groups)):
        kinds.setdefault(one.kind, []).append(one)
    counted = {"slow link": net.slow_links, "single pair cannot talk": net.mute_pairs}
    left_out = {
        kind: more
        for kind, of_kind in kinds.items()
        if (more := max(counted.get(kind, 0), len(of_kind)) - min(len(of_kind), MAX_FINDINGS))
    }
    return [one for of_kind in kinds.values() for one in of_kind[:MAX_FINDINGS]], left_out


class _Places:
    """The first place of each node, rank and group, in the order of senders and of receivers."""

    def __init__(self, charted: Charted, rows: str, columns: str) -> None:
        self._first: list[dict[str, int]] = []
        for axis, order in enumerate((rows, columns)):
            first: dict[str, int] = {}
            for place, rank in enumerate(charted.orders[order, axis].tolist()):
                for name in (charted.names[rank], charted.hosts[rank], charted.groups[rank]):
                    first.setdefault(name, place)
            self._first.append(first)

    def finding(
        self,
        kind: str,
        sender: str,
        receiver: str = "",
        rate: float | None = None,
        effect: float | None = None,
        deviations: float | None = None,
    ) -> NetworkFinding:
        """Return a finding about a pair, or one node, with the corner of a part around it."""
        return NetworkFinding(
            kind=kind,
            what=f"{sender} to {receiver}" if receiver else sender,
            rate=rate,
            effect=effect,
            deviations=deviations,
            x=max(0, self._first[1].get(receiver or sender, 0) - NEAR),
            y=max(0, self._first[0].get(sender, 0) - NEAR),
        )


def _by_level(levels: Iterable[LevelFinding], at: _Places) -> Iterator[NetworkFinding]:
    for one in levels:
        receiver = one.nodes[-1] if len(one.units) > 1 else ""
        finding = at.finding(f"{one.kind}: {one.level}", one.nodes[0], receiver, effect=one.effect)
        yield replace(finding, what=one.text)


def _mute(net: Network, at: _Places, groups: bool) -> Iterator[NetworkFinding]:
    """Yield who cannot talk, of groups too if they are asked for."""
    for name in net.silent:
        yield at.finding("talks with nobody", name)
    for name in net.cut_off if groups else ():
        yield at.finding("group cut off", name)
    for names in net.apart:
        together = ", ".join(names) if any(":" in name for name in names) else fold(names)
        yield replace(at.finding("talk among themselves alone", names[0]), what=together)
    for pair in broken_groups(net) if groups else ():
        yield at.finding("no link between groups", pair.sender, pair.receiver)
    for sender, receiver in net.pairs:
        yield at.finding("single pair cannot talk", sender, receiver)


def _slow(net: Network, at: _Places, groups: bool) -> Iterator[NetworkFinding]:
    for kind, outliers in (("slow sender", net.senders), ("slow receiver", net.receivers)):
        for slow in outliers:
            yield at.finding(kind, slow.name, effect=slow.effect, deviations=slow.deviations)
    for link in net.links:
        yield at.finding("slow link", link.sender, link.receiver, link.value, link.effect)
    for pair in sorted(slow_groups(net), key=lambda pair: pair.effect or 0.0) if groups else ():
        kind = "slow between groups"
        yield at.finding(kind, pair.sender, pair.receiver, pair.median, pair.effect)


# ---- matrices of runs ----------------------------------------------------------------------------


Levels = NDArray[np.uint8]
Rates = NDArray[np.float32]
Places = NDArray[np.intp]
Mask = NDArray[np.bool_]

FILES = (matrices.FILE, "stdout")
HEAD = 64
MAX_CASES = 400  # whose latest runs are searched for a matrix
ORDERS = ("rank", "group", "speed")
ASPECTS = ("worst", "median", "best")
SHOWS = ("rate", "effect")
MUTE, SELF, FIRST, LAST = 0, 1, 2, 255  # levels: no connection, a rank with itself, rates
EXACT = 4096  # at most so many cells come with their rates
MAX_PICTURES = 24
SAMPLE = 1_000_000


class MatrixPanel(Struct, frozen=True):
    """A square part of a matrix, in the order that is shown, and within it."""

    x: int
    y: int
    size: int


class Cells(Struct, frozen=True, kw_only=True):
    """A picture: ``width`` x ``height`` cells of ``pairs`` x ``pairs`` pairs each. ``cells`` is
    base64 of one byte for each cell, row by row. ``rates`` are the rates of the pairs if the part
    is small, row by row."""

    x: int = 0
    y: int = 0
    size: int = 0
    pairs: int = 0
    width: int = 0
    height: int = 0
    cells: str = ""
    rates: list[float] | None = None


class _ColourScale(NamedTuple):
    """A level for each pair, shape (n, n), and the values of the first and the last level."""

    levels: Levels
    low: float
    high: float


class Charted:
    """A matrix that was read and judged. ``rates`` has shape (n, n): senders, receivers. ``scales``
    has the colours of each of SHOWS, ``orders`` the ranks in each of ORDERS, of the senders (axis
    0) and the receivers (1). ``levels``: findings by level of the network; None if it has none."""

    def __init__(
        self,
        matrix: Matrix,
        judged: MatrixJudgement,
        groups: Mapping[str, str],
        levels: list[LevelFinding] | None,
    ) -> None:
        self.judged = judged
        self.levels = levels
        self.names = matrix.names
        self.hosts = matrix.hosts
        self.groups = [
            groups.get(host) or groups.get(host.partition(".")[0], "") for host in self.hosts
        ]
        self.rates: Rates = matrix.rates.astype(np.float32)
        self.scales = _scales(self.rates, self.hosts, self.groups)
        ranks = np.arange(len(self.names))
        grouped = np.array(sorted(ranks.tolist(), key=lambda rank: (self.groups[rank], rank)))
        self.orders: dict[tuple[str, int], Places] = {}
        for axis in (0, 1):
            speeds = np.median(self.rates, axis=1 - axis)
            orders = (ranks, grouped, np.argsort(speeds, kind="stable"))
            self.orders |= {
                (name, axis): ranks_in_order
                for name, ranks_in_order in zip(ORDERS, orders, strict=True)
            }
        self._pictures: LruCache[tuple[object, ...], Levels] = LruCache(MAX_PICTURES)

    def cells(
        self, part: MatrixPanel, max_cells: int, orders: tuple[str, str], aspect: str, show: str
    ) -> Cells:
        """Return a part of the matrix in at most so many cells each way."""
        pairs = -(-part.size // max_cells)

        def chosen(axis: int, start: int) -> Places | slice:
            places = slice(start, start + part.size)  # by rank nothing needs to be copied
            return places if orders[axis] == "rank" else self.orders[orders[axis], axis][places]

        rows, columns = chosen(0, part.y), chosen(1, part.x)
        picture = self._pictures.get_or_make(
            (part, pairs, orders, aspect, show),
            lambda: _reduced(self.scales[show].levels[rows][:, columns], pairs, aspect),
        )
        rates = None
        if pairs == 1 and part.size**2 <= EXACT:
            rates = [round(rate, 3) for rate in self.rates[rows][:, columns].ravel().tolist()]
        return Cells(
            x=part.x,
            y=part.y,
            size=part.size,
            pairs=pairs,
            width=picture.shape[1],
            height=picture.shape[0],
            cells=base64.b64encode(picture.tobytes()).decode(),
            rates=rates,
        )


def _scales(rates: Rates, hosts: Sequence[str], groups: Sequence[str]) -> dict[str, _ColourScale]:
    """Return levels of the rates ("rate": from the 0.1th to the 99.9th percentile of those between
    nodes), and of each relative to the median of its class, within a group or between groups
    ("effect": symmetric about 0). Where all ranks are on one node, of the pairs within it."""
    host, group = (np.unique(names, return_inverse=True)[1] for names in (hosts, groups))
    talks = np.isfinite(rates) & (rates > 0)
    between = talks & (host[:, None] != host[None, :])
    between = between if between.any() else talks
    known = _some(rates[between])
    low, high = np.percentile(known, (0.1, 99.9)).tolist() if len(known) else (0.0, 1.0)
    if high <= low:
        low, high = low - abs(low) / 100 - 1e-6, high + abs(high) / 100 + 1e-6
    same = group[:, None] == group[None, :]
    effects = np.zeros_like(rates)
    for members in (same, ~same):
        if (known := members & between).any():
            effects[members] = rates[members] / np.median(_some(rates[known])) - 1
    known = _some(np.abs(effects[between]))
    largest = float(np.percentile(known, 99.9)) if len(known) else 0.0
    largest = min(0.5, max(0.02, largest))
    return {
        "rate": _ColourScale(_levelled(rates, talks, low, high), low, high),
        "effect": _ColourScale(_levelled(effects, talks, -largest, largest), -largest, largest),
    }


def _some(values: Rates) -> Rates:
    """Return at most a million values, evenly chosen: enough to choose colours."""
    return values[:: max(1, len(values) // SAMPLE)]


def _levelled(values: Rates, talks: Mask, low: float, high: float) -> Levels:
    scaled = np.clip((values - low) / (high - low), 0, 1) * (LAST - FIRST)
    levels: Levels = (FIRST + np.nan_to_num(scaled)).astype(np.uint8)
    levels[~talks] = MUTE
    np.fill_diagonal(levels, SELF)
    return levels


def _reduced(levels: Levels, pairs: int, aspect: str) -> Levels:
    """Return one cell for each square of so many pairs; a rank with itself is ignored."""
    if pairs == 1:
        return np.ascontiguousarray(levels)
    high, wide = (-(-length // pairs) for length in levels.shape)
    more = [(0, n * pairs - length) for n, length in zip((high, wide), levels.shape, strict=True)]
    plain = np.where(levels == SELF, np.uint8(LAST), levels) if aspect == "worst" else levels
    blocks = np.pad(plain, more, "edge").reshape(high, pairs, wide * pairs)
    if aspect == "median":
        split = blocks.reshape(high, pairs, wide, pairs).transpose(0, 2, 1, 3)
        flat = split.reshape(high, wide, -1)
        middle = flat.shape[2] // 2
        medians: Levels = np.partition(flat, middle, axis=2)[:, :, middle]
        return np.ascontiguousarray(medians)
    reduce = np.minimum.reduce if aspect == "worst" else np.maximum.reduce
    return np.ascontiguousarray(reduce(reduce(blocks, 1).reshape(high, wide, pairs), 2))


# ---- runs ---------------------------------------------------------------------------------


def _file_of(run: RunRow) -> tuple[str, int] | None:
    """Return the name and the size of a run's file that holds a matrix, None if there is none."""
    for name in FILES:
        piece = head(run, name, HEAD)
        if not isinstance(piece, str) and matrices.is_matrix(piece.text):
            return name, piece.size
    return None


def runs_with(state: ServerState) -> list[RunRow] | None:
    """Return the latest measured runs that have a matrix, the newest first; None while they are
    being looked for."""
    version = version_of(trials(state.store()))

    def look() -> list[RunRow]:
        return [run for run in nodes.widest_runs(state.store(), MAX_CASES) if _file_of(run)]

    return state.studies.latest("runs with a matrix", version, look)


def charted_of(state: ServerState, run: RunRow) -> Charted | None:
    """Return the judged matrix of a run; None while that is being made. Raises UsageError if the
    run has no complete one."""
    trial = trial_of(state.store(), run)
    record = state.records.record(trial)
    machine = record.machine if record is not None else None
    version = (run.row, run.judged)
    return state.studies.latest(
        ("matrix", trial.path, run.run_id), version, lambda: _charted(run, machine), large=True
    )


def levels_of(state: ServerState, run: RunRow, machine: Machine) -> list[LevelFinding] | None:
    """Return what the matrix of a run shows of a machine's network by level; None while that is
    being made. Raises UsageError if the run has no complete one."""
    return state.studies.latest(
        ("levels", run.trial, run.run_id),
        (run.row, run.judged),
        lambda: level_findings(_read(run), topology_of(machine)),
    )


def on_machine(state: ServerState, view: View) -> dict[str, Any]:
    """Return what the page of a machine shows of its network: the latest run that has a matrix, and
    what that shows by level; None while it is being judged."""
    run, by_level = _levels_of_run(state, view)
    return {"matrix": run, "by_level": by_level}


def _levels_of_run(state: ServerState, view: View) -> tuple[RunRow | None, list[str] | None]:
    if view.machine.topology is None:
        return None, []
    runs = runs_with(state)
    run = next((run for run in runs or () if run.machine == view.name), None)
    if run is None:
        return None, None if runs is None else []
    try:
        findings = levels_of(state, run, view.machine)
    except UsageError:  # no whole matrix: the page Networks says why
        return None, []
    return run, None if findings is None else texts(findings)


def _charted(run: RunRow, machine: Machine | None) -> Charted:
    matrix = _read(run)
    judged, levels = judged_on(matrix, machine)
    return Charted(matrix, judged, network_groups(machine) if machine else {}, levels)


def _read(run: RunRow) -> Matrix:
    file = _file_of(run)
    if file is None:
        raise UsageError(
            f"run {run.run_id[:8]} of {run.trial} has no matrix here: no {matrices.FILE} of the "
            "probe pairs and no output of mpiGraph"
        )
    name, size = file
    source = f"{name} of run {run.run_id[:8]}"
    if size > matrices.LIMIT:
        raise UsageError(f"{source} has {show_bytes(size)}: too large to be judged here")
    piece = head(run, name, size)
    if isinstance(piece, str):
        raise UsageError(f"{source} {piece}")
    try:
        return matrices.parsed(piece.text.replace("\r\n", "\n"), name)
    except ValueError as error:
        raise UsageError(f"{source} is not a whole matrix: {plain(str(error))[:300]}") from None
