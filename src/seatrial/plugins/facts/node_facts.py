"""The facts of nodes, as they were collected: a line ``SECTION.NAME<TAB>VALUE`` for each.

    table = read([Path("facts.txt")])
    table.nodes                             # ["n001", "n002", ...]
    table.facts_of("n001")["node.kernel"]         # 5.14.0-427
    table.folded("node.kernel")             # {"5.14.0-427": ["n001", ...], ...}
    keep(trials, "frost", digests(table))       # after nodes were asked
    NodeDigests(trials, "frost").digest("n[001-064]")   # 9f2c4d5e6a7b8c90

A file has a line ``node<TAB>NAME`` before the facts of a node, and ``end<TAB>LINES`` after them
(``execute/facts/collect.sh``). Equal lines of all nodes are one text here, and a node is a row of
their numbers: 12,288 nodes of 200 facts take some tens of megabytes.

Facts of the section ``now`` are readings, such as counters and free memory. They change by
themselves, so differences and digests leave them out.
"""

import codecs
import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

from seatrial.errors import UsageError
from seatrial.files import make_folder, open_regular, read_start, replace_file
from seatrial.lazy import SmallInts, np
from seatrial.model.node_set import unfold_or_empty
from seatrial.units import count

READINGS = "now."
MISSING = -1
CHUNK = 1 << 20  # bytes
MAX_OF_NODE = 1 << 20  # characters
MAX_LINES = 5000
MAX_KEYS = 20_000
LONGEST = 600

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,99}")
_FACT = re.compile(r"([a-z0-9_]+\.[^\t]{1,200})\t(.+)")
_CONTROL = re.compile(r"[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\ufffd]")


class FactTable(NamedTuple):
    """The facts of nodes."""

    nodes: list[str]
    keys: list[str]
    #: The distinct facts, as (key, value).
    lines: list[tuple[str, str]]
    #: A row for each node and a column for each key, with the number of a line, or ``MISSING``.
    numbers: SmallInts
    #: Nodes that were asked and did not answer.
    silent: list[str]
    #: Sentences about answers that are not whole, each about one node.
    troubles: list[str]
    #: The row of each node.
    rows: dict[str, int]

    def facts_of(self, node: str) -> dict[str, str]:
        """Return the facts of a node by key; none if it is not there."""
        if node not in self.rows:
            return {}
        row = self.numbers[self.rows[node]]
        return dict(self.lines[number] for number in row[row >= 0].tolist())

    def column(self, key: str) -> list[str | None]:
        """Return the value of a fact on each node, in their order; None where it is missing."""
        if key not in self.keys:
            return [None] * len(self.nodes)
        column = self.numbers[:, self.keys.index(key)].tolist()
        return [None if number < 0 else self.lines[number][1] for number in column]

    def folded(self, key: str) -> dict[str | None, list[str]]:
        """Return the nodes by their value of a fact, the value of most nodes first; None are those
        that miss it."""
        by_value: dict[str | None, list[str]] = {}
        for node, value in zip(self.nodes, self.column(key), strict=True):
            by_value.setdefault(value, []).append(node)
        return dict(sorted(by_value.items(), key=lambda item: -len(item[1])))

    def only(self, nodes: Iterable[str]) -> "FactTable":
        """Return the facts of some of the nodes."""
        wanted = set(nodes)
        rows = [i for i, node in enumerate(self.nodes) if node in wanted]
        silent = [node for node in self.silent if node in wanted]
        chosen = [self.nodes[i] for i in rows]
        index = {node: i for i, node in enumerate(chosen)}
        return self._replace(nodes=chosen, numbers=self.numbers[rows], silent=silent, rows=index)

    def having(self, key: str) -> "FactTable":
        """Return the facts of the nodes that have this one."""
        rows = np.flatnonzero(self.numbers[:, self.keys.index(key)] != MISSING)
        nodes = [self.nodes[row] for row in rows]
        index = {node: i for i, node in enumerate(nodes)}
        return self._replace(nodes=nodes, numbers=self.numbers[rows], rows=index)

    def with_keys(self, patterns: Sequence[str]) -> "FactTable":
        """Return only the facts whose keys match a pattern, such as ``limit.*``."""
        columns = [
            i
            for i, key in enumerate(self.keys)
            if any(fnmatchcase(key, pattern) for pattern in patterns)
        ]
        keys = [self.keys[i] for i in columns]
        return self._replace(keys=keys, numbers=self.numbers[:, columns])


def read(paths: Sequence[Path]) -> FactTable:
    """Return the facts in files; of a node that is in several, the first file counts. Raises
    UsageError for a file that cannot be read, or that has no node."""
    reader = _Reader()
    for path in paths:
        try:
            with open_regular(path) as file:
                reader.read(iter(lambda: file.read(CHUNK), b""), str(path))
        except OSError as error:
            raise UsageError(f"{path}: cannot be read: {error.strerror}") from error
    return reader.table()


def parsed(text: str) -> FactTable:
    """Return the facts in a text. Raises UsageError if it has none."""
    reader = _Reader()
    reader.read(iter([text.encode()]), "the text")
    return reader.table()


def of_nodes(facts: Mapping[str, Mapping[str, str]]) -> FactTable:
    """Return the table of facts that were read from other files: by node, then by key."""
    blocks = []
    for node, of_node in facts.items():
        lines = "".join(f"{key}\t{value}\n" for key, value in of_node.items())
        blocks.append(f"node\t{node}\n{lines}end\t{len(of_node)}\n")
    return parsed("".join(blocks))


def text_of(table: FactTable) -> str:
    """Return the text from which ``parsed`` makes this table."""
    blocks = [f"silent\t{node}\n" for node in table.silent]
    for node in table.nodes:
        of_node = table.facts_of(node)
        lines = "".join(f"{key}\t{value}\n" for key, value in of_node.items())
        blocks.append(f"node\t{node}\n{lines}end\t{len(of_node)}\n")
    return "".join(sorted(blocks, key=lambda block: block.startswith("node")))


def _missing(lines: Sequence[str], numbers: Sequence[int]) -> str:
    """Return what of an answer is missing: its last line, or lines that this counts; "" if nothing
    is. ``numbers``: those of the lines, by ``_Reader``."""
    if -2 not in numbers:
        return "the end of its answer is missing"
    end = numbers.index(-2)
    written = lines[end].partition("\t")[2]
    sent = int(written) if written.isascii() and written.isdecimal() else 0
    lost = sent - sum(number >= 0 or number == -3 for number in numbers[:end])
    return f"{count(lost, 'line')} of its answer are missing" if lost > 0 else ""


class _Reader:
    """Collects the answers of nodes."""

    def __init__(self) -> None:
        self.rows: dict[str, SmallInts] = {}
        self.silent: list[str] = []
        self.troubles: list[str] = []
        self._again: set[str] = set()
        self._numbers: dict[str, int] = {}  # of each distinct line; below 0: it is no fact
        self._lines: list[tuple[str, str]] = []
        self._known: dict[tuple[str, str], int] = {}
        self._keys: dict[str, int] = {}
        self._column: list[int] = []  # of each line

    def read(self, chunks: Iterator[bytes], source: str) -> None:
        """Add the answers in a file. Raises UsageError if it is none of facts."""
        decode = codecs.getincrementaldecoder("utf-8")(errors="replace").decode
        rest = "\n" + decode(next(chunks, b""))
        if not rest.startswith(("\nnode\t", "\nsilent\t", "\nagain\t")):
            raise UsageError(f"{source}: has no facts; its first line must be node<TAB>NAME")
        before, *blocks = rest.split("\nnode\t")
        self._tell_others(before.split("\n"))
        for chunk in chunks:
            rest = (blocks.pop() if blocks else "") + decode(chunk)
            if len(rest) > MAX_OF_NODE + len(chunk):
                rest = rest[: MAX_OF_NODE + 1] + rest[-len(chunk) - 6 :]
            *whole, last = rest.split("\nnode\t")
            for block in (*blocks, *whole):
                self.add(block)
            blocks = [last]
        for block in blocks:
            self.add(block)

    def add(self, block: str) -> None:
        """Add the answer of a node: its name, and lines of facts."""
        cut = len(block) > MAX_OF_NODE
        name, *lines = block[:MAX_OF_NODE].split("\n")
        if not _NAME.fullmatch(name):
            shown = _CONTROL.sub("?", name[:40])
            self.troubles.append(f"an answer is left out: {shown!r} is not the name of a node")
            return
        if name in self.rows:
            self.troubles.append(f"{name} answered twice; its first answer counts")
            return
        if cut := cut or len(lines) > MAX_LINES:
            lines = lines[:MAX_LINES]
            self.troubles.append(
                f"{name} told more than {MAX_LINES} facts or 1 MiB; the rest is cut"
            )
        numbers = self._numbers
        try:
            known = list(map(numbers.__getitem__, lines))
        except KeyError:
            known = [numbers[line] if line in numbers else self._number(line) for line in lines]
        self.rows[name] = np.array(known, dtype=np.int32)
        if not cut and (missing := _missing(lines, known)):
            self.troubles.append(f"{name}: {missing}; what is there counts")
        elif -3 in known:
            self.troubles.append(f"{name}: lines that are no facts are left out")
        if -4 in known:
            self._tell_others(lines)

    def _tell_others(self, lines: Iterable[str]) -> None:
        for line in lines:
            word, _, node = line.partition("\t")
            if word == "silent" and _NAME.fullmatch(node):
                self.silent.append(node)
            elif word == "again" and _NAME.fullmatch(node) and node not in self._again:
                self._again.add(node)
                self.troubles.append(f"{node} answered twice; its first answer counts")

    def _number(self, line: str) -> int:
        """Return the number of a line: at least 0 for a fact, -1 for a blank line, -2 for the end
        of an answer, -3 for what is no fact, -4 for a line about another node."""
        parts = _FACT.fullmatch(_CONTROL.sub("?", line[:LONGEST]))
        if parts is None or (parts[1] not in self._keys and len(self._keys) >= MAX_KEYS):
            about = line.startswith(("silent\t", "again\t"))
            number = -1 if not line else -2 if line.startswith("end\t") else -4 if about else -3
        else:
            fact = (parts[1], parts[2].strip())
            number = self._known.setdefault(fact, len(self._lines))
            if number == len(self._lines):
                self._lines.append(fact)
                self._column.append(self._keys.setdefault(fact[0], len(self._keys)))
        self._numbers[line] = number
        return number

    def table(self) -> FactTable:
        """Return what was collected."""
        nodes, rows = list(self.rows), list(self.rows.values())
        numbers = np.full((len(nodes), len(self._keys)), MISSING, dtype=np.int32)
        if rows and self._column:
            flat = np.concatenate(rows)
            of_row = np.repeat(np.arange(len(rows)), [len(row) for row in rows])
            facts = flat >= 0
            columns = np.array(self._column, dtype=np.int32)[flat[facts]]
            numbers[of_row[facts], columns] = flat[facts]
        silent = [node for node in dict.fromkeys(self.silent) if node not in self.rows]
        index = {node: i for i, node in enumerate(nodes)}
        keys = list(self._keys)
        return FactTable(nodes, keys, self._lines, numbers, silent, self.troubles, index)


# ---- digests -------------------------------------------------------------------------------------


FOLDER = ".facts"
DIGITS = 16
MAX_BYTES = 64 << 20
_SKIPPED = "skipped."


def digests(table: FactTable) -> dict[str, str]:
    """Return the digest of the facts of each node, without readings."""
    columns = [i for i, key in enumerate(table.keys) if not key.startswith((READINGS, _SKIPPED))]
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
