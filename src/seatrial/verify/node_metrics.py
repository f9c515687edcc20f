"""The names of the files that tell what was found on nodes, and of its metrics."""

from collections.abc import Collection
from typing import Final

from seatrial.lazy import regex
from seatrial.rules.model import FACTS_FILE

FINDINGS: Final = "findings"
PREFIX: Final = "findings_of_"
NODECHECK: Final = "nodecheck.txt"
FILES: Final = frozenset({FACTS_FILE, NODECHECK})

_NODE = regex(r"failed_node\{node=([^}]+)\}")


def is_named(names: Collection[str]) -> bool:
    """Return whether the files of a run that are judged tell of its nodes."""
    return not FILES.isdisjoint(names)


def metric_of(node: str) -> str:
    """Return the metric that counts the findings on a node."""
    return f"failed_node{{node={node}}}"


def node_of(metric: str) -> str:
    """Return the node of such a metric; "" for another metric."""
    found = _NODE.fullmatch(metric)
    return found[1] if found else ""
