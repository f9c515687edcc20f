"""Which rank of a run sent how much to which, for its page: what its recorder left."""

from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import plain
from seatrial.execute.trial_folder import Record
from seatrial.model.suite import PATTERN_FILE
from seatrial.plugins.orders.patterns import Pattern, PatternSummary, parsed, rank_map, summary_of
from seatrial.results.store.tables import RunRow
from seatrial.show.draw import maps
from seatrial.show.formatting import NARROW, WIDE
from seatrial.show.web.output import head
from seatrial.show.web.server_state import ServerState
from seatrial.units import show_bytes

MAX_READ = 64 << 20
MAX_CELLS = 48  # of a row of the picture
MAX_PAIRS = 10
MAX_CALLS = 200
MAX_NODES = 64
MAX_MISSING = 64


class RunPattern(Struct, frozen=True, kw_only=True):
    """What a run sent. ``cells`` are the bytes from ranks (rows) to ranks, each for ``per`` ranks;
    ``borders`` are the cells before which another node begins. ``reason`` is why there is no
    ``summary``; with neither the file is being read. ``missing``: so many ranks left no record."""

    reason: str = ""
    summary: PatternSummary | None = None
    per: int = 1
    cells: list[list[float]] = []
    borders: list[int] = []
    missing: int = 0
    calls_left_out: int = 0
    nodes_left_out: int = 0

    def picture(self, wide: bool) -> Any:
        """Return the bytes from ranks to ranks, as SVG."""
        return maps.heat_map(
            self.cells,
            title="Bytes from rank to rank",
            about="A row for each sender and a column for each receiver, coloured by bytes",
            show=show_bytes,
            per=self.per,
            borders=self.borders,
            width=WIDE if wide else NARROW,
        )

    def legend(self) -> list[tuple[str, str]]:
        """Return the colour of each level, and its least bytes as text."""
        scale = maps.AmountScale([value for row in self.cells for value in row])
        levels = [(maps.colour(level), show_bytes(least)) for level, least in scale.starts()]
        return [(maps.colour(0), "nothing"), *levels]


def on_run(state: ServerState, run: RunRow, record: Record | None) -> dict[str, RunPattern | None]:
    """Return what the page of a run shows of what it sent; None if its test does not record it."""
    test = record.tests.get(run.test) if record else None
    if test is None or not test.run.pattern or run.judged is None:
        return {"pattern": None}
    version = (run.row, run.judged)
    found: RunPattern | None = state.studies.latest(
        ("pattern", run.trial, run.run_id), version, lambda: _read(run), large=True
    )
    return {"pattern": found or RunPattern()}


def _read(run: RunRow) -> RunPattern:
    piece = head(run, PATTERN_FILE, MAX_READ)
    if isinstance(piece, str):
        return RunPattern(reason=piece)
    if piece.size > MAX_READ:
        return RunPattern(reason=f"has {show_bytes(piece.size)}, too much for this page")
    try:
        return _drawn(parsed(piece.text))
    except ValueError as error:
        return RunPattern(reason=f"is not shown: {plain(str(error))[:300]}")


def _drawn(pattern: Pattern) -> RunPattern:
    cells, per = rank_map(pattern, MAX_CELLS)
    summary = summary_of(pattern, MAX_PAIRS)
    return RunPattern(
        summary=replace(
            summary,
            calls=summary.calls[:MAX_CALLS],
            nodes=summary.nodes[:MAX_NODES],
            missing=summary.missing[:MAX_MISSING],
        ),
        missing=len(summary.missing),
        per=per,
        cells=cells.tolist(),
        borders=_borders(pattern) if per == 1 else [],
        calls_left_out=max(0, len(summary.calls) - MAX_CALLS),
        nodes_left_out=max(0, len(summary.nodes) - MAX_NODES),
    )


def _borders(pattern: Pattern) -> list[int]:
    node_of = {rank: node.node for node in pattern.nodes for rank in node.ranks}
    return [rank for rank in range(1, pattern.ranks) if node_of.get(rank) != node_of.get(rank - 1)]
