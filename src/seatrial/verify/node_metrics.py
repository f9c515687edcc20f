"""The names of the metrics of what was found on nodes."""

from typing import Final

from seatrial.lazy import regex

FINDINGS: Final = "findings"
PREFIX: Final = "findings_of_"

_NODE = regex(r"failed_node\{node=([^}]+)\}")


def metric_of(node: str) -> str:
    """Return the metric that counts the findings on a node."""
    return f"failed_node{{node={node}}}"


def node_of(metric: str) -> str:
    """Return the node of such a metric; "" for another metric."""
    found = _NODE.fullmatch(metric)
    return found[1] if found else ""
