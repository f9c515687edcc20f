"""Figures of what a matrix of all pairs shows about the network: one for each kind of finding.

findings_in(run_directory, groups)      # network_findings, network_silent_nodes, ...
"""

from collections.abc import Mapping
from pathlib import Path

from seatrial.errors import UsageError
from seatrial.machine.node_sets import not_among
from seatrial.verify import matrices
from seatrial.verify.figures import MetricValue
from seatrial.verify.matrices import MatrixJudgement
from seatrial.verify.network_metrics import FINDINGS, PREFIX
from seatrial.verify.reading import head

_HEAD_BYTES = 64


def findings_in(folder: Path, groups: Mapping[str, str], nodes: str = "") -> list[MetricValue]:
    """Return the figures of the matrix in a run's directory (``pairs.matrix``, or mpiGraph's in its
    stdout), by the groups of the machine's nodes; none where it has no whole matrix. Those of the
    run's ``nodes``, folded, that are not in it are silent."""
    for name in (matrices.FILE, "stdout"):
        beginning = head(folder / name, _HEAD_BYTES)
        if beginning is None or not matrices.is_matrix(beginning.text):
            continue
        try:
            matrix = matrices.read(folder / name)
            missing = not_among(nodes, matrix.hosts)
            return figures_of(matrices.judged(matrix, groups), len(missing))
        except UsageError:
            return []
    return []


def figures_of(judged: MatrixJudgement, missing: int = 0) -> list[MetricValue]:
    """Return the number of findings of each kind, then of all; so many nodes are ``missing``."""
    net = judged.network
    slow_groups = [pair for pair in net.slow_groups if not pair.cut] if judged.grouped else []
    numbers = {
        "silent_nodes": len(net.silent) + missing,
        "cut_groups": len(net.cut_off) + len(net.apart),
        "mute_pairs": net.mute_pairs + judged.hidden,
        "slow_nodes": len({slow.name for slow in (*net.senders, *net.receivers)}),
        "slow_links": net.slow_links,
        "slow_groups": len(slow_groups),
    }
    figures = [_figure(f"{PREFIX}{name}", number) for name, number in numbers.items()]
    return [*figures, _figure(FINDINGS, sum(numbers.values()))]


def _figure(name: str, number: int) -> MetricValue:
    return MetricValue(name, float(number), "1", "lower")
