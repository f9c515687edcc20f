"""Networks: the runs that measured every pair of ranks, and one such matrix with its findings."""

from collections.abc import Iterable, Iterator

from msgspec import Struct
from msgspec.structs import replace

from seatrial.judge.statistics.all_pairs import Network
from seatrial.model.node_set import fold
from seatrial.plugins.network import run_matrices
from seatrial.plugins.network.levels import LevelFinding
from seatrial.plugins.network.matrices import broken_groups, slow_groups
from seatrial.results.store import queries
from seatrial.results.store.tables import RunRow
from seatrial.show.web.page import PageQuery
from seatrial.show.web.server_state import ServerState

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
    runs = run_matrices.runs_with(state)
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
    part: run_matrices.MatrixPanel
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
    charted = run_matrices.charted_of(state, run)
    if charted is None:
        return Pairs(
            run=run,
            ready=False,
            part=run_matrices.MatrixPanel(0, 0, MAX_RANKS),
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


def cells(state: ServerState, query: PageQuery) -> run_matrices.Cells:
    """Return a part of a matrix as a picture."""
    run = _run(state, query)
    rows, columns, aspect, show = _look(query)
    max_cells = query.number("most", 700, least=16, most=FINEST)
    charted = run_matrices.charted_of(state, run)
    if charted is None:
        return run_matrices.Cells()
    part = _part(query, len(charted.names))
    return charted.cells(part, max_cells, (rows, columns), aspect, show)


def _run(state: ServerState, query: PageQuery) -> RunRow:
    return queries.run(state.store(), f"{query.path['trial']}/{query.path['run_id']}")


def _look(query: PageQuery) -> tuple[str, str, str, str]:
    rows, columns = (
        query.choice(name, run_matrices.ORDERS, "rank") for name in ("rows", "columns")
    )
    aspect, show = (
        query.choice("of", run_matrices.ASPECTS, "worst"),
        query.choice("show", run_matrices.SHOWS, "rate"),
    )
    return rows, columns, aspect, show


def _part(query: PageQuery, count: int) -> run_matrices.MatrixPanel:
    size = min(query.number("size", count, least=1, most=MAX_RANKS), count)
    x, y = (query.number(name, 0, most=MAX_RANKS) for name in ("x", "y"))
    return run_matrices.MatrixPanel(min(x, count - size), min(y, count - size), size)


# ---- findings -----------------------------------------------------------------------------


def _findings(
    charted: run_matrices.Charted, net: Network, rows: str, columns: str
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

    def __init__(self, charted: run_matrices.Charted, rows: str, columns: str) -> None:
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
    for kind, nodes in (("slow sender", net.senders), ("slow receiver", net.receivers)):
        for slow in nodes:
            yield at.finding(kind, slow.name, effect=slow.effect, deviations=slow.deviations)
    for link in net.links:
        yield at.finding("slow link", link.sender, link.receiver, link.value, link.effect)
    for pair in sorted(slow_groups(net), key=lambda pair: pair.effect or 0.0) if groups else ():
        kind = "slow between groups"
        yield at.finding(kind, pair.sender, pair.receiver, pair.median, pair.effect)
