"""All-pairs matrices of runs: find, read and judge them, and reduce parts to heat maps.

    charted = charted_of(state, run)                  # None: it is being read and judged
    cells = charted.cells(MatrixPanel(0, 0, 4096), 700, ("group", "rank"), "worst", "rate")

A rate is drawn as one of 254 levels, by itself or relative to the median of its class. A cell of
the picture that stands for several pairs shows their worst, median or best.
"""

import base64
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from seatrial.errors import UsageError
from seatrial.escaping import plain
from seatrial.model.machine import Machine
from seatrial.model.machine_topology import topology_of
from seatrial.plugins.network import matrices
from seatrial.plugins.network.levels import (
    LevelFinding,
    judged_on,
    level_findings,
    network_groups,
    texts,
)
from seatrial.plugins.network.matrices import Matrix, MatrixJudgement
from seatrial.results.store import nodes
from seatrial.results.store.queries import trial_of, trials
from seatrial.results.store.tables import RunRow
from seatrial.show.web.caches import LruCache
from seatrial.show.web.nodes import View
from seatrial.show.web.output import head
from seatrial.show.web.server_state import ServerState
from seatrial.units import show_bytes

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
    version = tuple((trial.row, trial.last, trial.passed) for trial in trials(state.store()))

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
    run, by_level = _by_level(state, view)
    return {"matrix": run, "by_level": by_level}


def _by_level(state: ServerState, view: View) -> tuple[RunRow | None, list[str] | None]:
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
