"""The digest of the facts of a run's nodes, as `seatrial facts collect` last found them.

    keep(trials, "frost", digests(table))       # after nodes were asked
    NodeDigests(trials, "frost").digest("n[001-064]")   # 9f2c4d5e6a7b8c90

The digests of nodes are beside the trials, in ``.facts/MACHINE``: a line ``NODE<TAB>DIGEST`` each.
The digest of several nodes is made of the distinct digests of these: runs on different nodes with
equal facts have the same.
"""

import hashlib
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.files import make_folder, read_start, replace_file
from seatrial.model.node_set import unfold_or_empty
from seatrial.plugins.facts import node_facts

FOLDER = ".facts"
DIGITS = 16
MAX_BYTES = 64 << 20
_SKIPPED = "skipped."


def digests(table: "node_facts.FactTable") -> dict[str, str]:
    """Return the digest of the facts of each node, without readings."""
    columns = [
        i for i, key in enumerate(table.keys) if not key.startswith((node_facts.READINGS, _SKIPPED))
    ]
    known: dict[bytes, str] = {}
    of_nodes: dict[str, str] = {}
    for node, row in zip(table.nodes, table.numbers[:, columns], strict=True):
        if (key := row.tobytes()) not in known:
            lines = sorted("\t".join(table.lines[number]) for number in row[row >= 0].tolist())
            known[key] = hashlib.sha256("\n".join(lines).encode()).hexdigest()[:DIGITS]
        of_nodes[node] = known[key]
    return of_nodes


def digest_of_nodes(of_nodes: Iterable[str]) -> str:
    """Return the digest of several nodes by those of each."""
    distinct = set(of_nodes)
    return (
        distinct.pop()
        if len(distinct) == 1
        else hashlib.sha256("\n".join(sorted(distinct)).encode()).hexdigest()[:DIGITS]
    )


def keep(trials: Path, machine: str, of_nodes: Mapping[str, str]) -> None:
    """Keep the digests of nodes that were asked; those of other nodes stay. Raises OSError."""
    path = trials / FOLDER / machine
    kept = {**_read(path), **of_nodes}
    make_folder(path.parent)
    text = "".join(f"{node}\t{digest}\n" for node, digest in sorted(kept.items()))
    replace_file(path, text.encode())


def _read(path: Path) -> dict[str, str]:
    try:
        text = read_start(path, MAX_BYTES).data.decode(errors="replace")
    except OSError:
        return {}
    lines = (line.split("\t") for line in text.splitlines())
    return {line[0]: line[1] for line in lines if len(line) == 2 and len(line[1]) == DIGITS}


class NodeDigests:
    """The digests of the nodes of a machine, read again when they changed."""

    def __init__(self, trials: Path, machine: str) -> None:
        self._path = trials / FOLDER / machine
        self._seen: tuple[int, int] | None = None
        self._known: dict[str, str] = {}

    def digest(self, nodes: str) -> str:
        """Return the digest of the facts of a node set; "" if those of one node are not known."""
        try:
            about = self._path.stat()
        except OSError:
            return ""
        if (seen := (about.st_mtime_ns, about.st_ino)) != self._seen:
            self._seen, self._known = seen, _read(self._path)
        of_nodes = {self._known.get(node, "") for node in unfold_or_empty(nodes)}
        if not of_nodes or "" in of_nodes:
            return ""
        return digest_of_nodes(of_nodes)
