"""Reading an all-pairs matrix of a network, and judging it with the machine's groups.

    matrix = read(path)                       # mpiGraph's output, or the probe pairs's pairs.matrix
    judged(matrix, groups_of(machine)).network.senders

Where several ranks ran on a node, the figure of two nodes is the median over their pairs of
ranks: memory that ranks of one node share says nothing of the network. ``by_rank`` judges each
rank for itself, as where each has a network card of its own.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from seatrial.errors import UsageError
from seatrial.statistics import all_pairs
from seatrial.statistics.blocks import blocks
from seatrial.verify.figures import shown
from seatrial.verify.outputs import mpigraph
from seatrial.verify.reading import TooLarge, Unreadable, plain, read_text

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

FILE = "pairs.matrix"  # what the probe pairs writes into its run's directory
LIMIT = mpigraph.LIMIT
NO_GROUP = "(no group)"
MAX_DIGITS = 16  # that are a whole number which a float holds


class Matrix(NamedTuple):
    """Rates in MiB/s of every rank (``host:rank``) to every other: row = sender, column =
    receiver, 0 with itself. ``source`` says what it was read from."""

    names: list[str]
    rates: Array
    source: str

    @property
    def hosts(self) -> list[str]:
        return [name.rpartition(":")[0] or name for name in self.names]


class MatrixJudgement(NamedTuple):
    """What was judged: ``unit`` is "node" or "rank", ``ranks`` how many there were; ``grouped`` is
    whether groups were known; ``ungrouped`` nodes are in none of them; ``hidden`` pairs of ranks
    could not talk though others of the same two nodes could."""

    network: all_pairs.Network
    unit: str
    ranks: int
    grouped: bool
    ungrouped: list[str]
    hidden: int


def is_matrix(text: str) -> bool:
    """Whether a text begins as a matrix does: mpiGraph's, or that of the probe pairs."""
    return text.startswith(("START mpiGraph", "Recv\t"))


def read(path: Path) -> Matrix:
    """The matrix in a file. Raises UsageError with the reason where it is not a whole one."""
    try:
        text = read_text(Path(), str(path), LIMIT, "judge fewer ranks")
    except (Unreadable, TooLarge) as error:
        raise UsageError(str(error)) from None
    try:
        return parsed(text, str(path))
    except ValueError as error:
        raise UsageError(f"{path}: is not a whole matrix: {plain(str(error))[:300]}") from None


def parsed(text: str, source: str) -> Matrix:
    """The matrix of a text. Where both directions were measured, at the sender and at the
    receiver, a link's rate is their mean. Raises ValueError with the reason."""
    import numpy as np

    if text.startswith("START mpiGraph"):
        if not text.endswith("\nEND mpiGraph\n") and not text.endswith("\nEND mpiGraph"):
            raise ValueError("its closing line 'END mpiGraph' is missing")
        names, sent = _rates(text, "Send")
        others, received = _rates(text, "Recv")
        if names != others:
            raise ValueError("its two matrices are of different ranks")
        both = (sent + received.T) / 2
        return Matrix(names, np.where((sent > 0) & (received.T > 0), both, 0.0), source)
    if not text.startswith("Recv\t"):
        raise ValueError("it is neither mpiGraph's output nor a matrix of the probe pairs")
    names, received = _rates("\n" + text, "Recv")
    return Matrix(names, received.T, source)


def _rates(text: str, way: mpigraph.Way) -> tuple[list[str], Array]:
    import numpy as np

    names: list[str] = []
    rates = np.zeros((0, 0))
    for name, line in mpigraph.lines(text, way):
        values = _numbers(name, line)
        if not names:
            rates = np.zeros((len(values), len(values)))
        rates[len(names)] = values
        names.append(name)
    if len(names) < 2:
        raise ValueError("it has fewer than two ranks: there is no pair to judge")
    for i in np.flatnonzero(rates.diagonal()):
        raise ValueError(f"its row of {shown(names[i])} has a rate of the rank with itself")
    return names, rates


def _numbers(name: str, line: bytes) -> Array:
    """The figures of a row. Cells are not empty, so where there are as many figures as cells none
    was torn in two. Written with three decimals, as they should be, they are read as thousandths:
    whole numbers are read twice as fast."""
    import numpy as np

    cells = line.count(b"\t") + 1
    plainly = line.replace(b".", b"") if _in_thousandths(line, cells) else b""
    with warnings.catch_warnings():
        warnings.simplefilter("error", DeprecationWarning)  # numpy's, of what is no number
        try:
            values: Array = (
                np.fromstring(plainly, dtype=np.int64, sep="\t") / 1000
                if plainly
                else np.fromstring(line, sep="\t")
            )
        except (ValueError, DeprecationWarning):
            values = np.empty(0)
    if len(values) != cells:
        raise ValueError(f"its row of {shown(name)} has what is not a number")
    return values


def _in_thousandths(line: bytes, cells: int) -> bool:
    """Whether each cell is a number of three decimals, and of few digits."""
    import numpy as np

    signs = np.frombuffer(line, dtype=np.uint8)
    points = np.flatnonzero(signs == ord("."))
    if len(points) != cells or points[-1] + 4 != len(signs):
        return False
    if (signs[points[:-1] + 4] != ord("\t")).any():  # then there is one behind each but the last
        return False
    widths = np.diff(points, prepend=-5) - 1
    return bool(widths.min() >= 5 and widths.max() <= MAX_DIGITS)


def judged(matrix: Matrix, groups: Mapping[str, str], by_rank: bool = False) -> MatrixJudgement:
    """Judge a matrix; ``groups`` is the group of each node. Of one node, or with ``by_rank``, ranks
    are judged; those of one node are then a group where no groups are known."""
    hosts = matrix.hosts
    nodes = list(dict.fromkeys(hosts))
    ungrouped = [node for node in nodes if groups and _group(node, groups) == NO_GROUP]
    several = len(nodes) < len(hosts)
    rates, names, hidden = matrix.rates, matrix.names, 0
    kinds = [_group(host, groups) if groups else host for host in hosts]
    if several and len(nodes) > 1 and not by_rank:
        rates, hidden = _between(matrix.rates, hosts, nodes)
        kinds = [_group(node, groups) for node in nodes]
    elif not groups and (len(nodes) == 1 or not several):
        kinds = []
    ranks = several and rates is matrix.rates
    if not ranks:
        names = nodes
    grouped = bool(groups)
    known = kinds if grouped or (ranks and kinds) else None
    found = all_pairs.survey(rates, "higher", names, known, hosts=hosts if ranks else None)
    return MatrixJudgement(
        found, "rank" if ranks else "node", len(hosts), grouped, ungrouped, hidden
    )


def _group(host: str, groups: Mapping[str, str]) -> str:
    """A node's group, by its name or, of a full name, its first part."""
    return groups.get(host) or groups.get(host.partition(".")[0]) or NO_GROUP


def _between(rates: Array, hosts: list[str], nodes: list[str]) -> tuple[Array, int]:
    """Rates from node to node: medians over the pairs of their ranks that could talk; and how many
    pairs of ranks could not though others of the same nodes could."""
    import numpy as np

    number = {node: i for i, node in enumerate(nodes)}
    known = np.where(rates > 0, rates, np.nan)
    found = blocks(known, np.array([number[host] for host in hosts]), len(nodes))
    between = (found.known > 0) & ~np.eye(len(nodes), dtype=bool)
    result = np.where(between, found.median, 0.0)
    return result, int((found.cells - found.known)[between].sum())
