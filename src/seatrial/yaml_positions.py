"""YAML with places: what a file holds, and in which line of it.

    node = read(Path("test.yaml"), faults)
    node.value["run"].value["nodes"].place          # test.yaml:14

YAML is read by the 1.2 core rules (``no`` and ``on`` are words, not false and true); tags and
merge keys are refused. What is read is bounded in size and depth.
"""

import stat
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from msgspec import Struct

from seatrial.errors import InvalidFiles
from seatrial.file_model import Scalar
from seatrial.lazy import regex, yaml

MAX_FILE_BYTES = 1 << 20
MAX_VALUES = 200_000
MAX_FAULTS = 1000
DEEPEST = 40
LONGEST_INTEGER = 18
LONGEST_NUMBER = 100


class SourceLocation(NamedTuple):
    """Where a value is written. ``line`` counts from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


class Faulty(NamedTuple):
    """Keys of a document that could not be decoded: those with a wrong key or kind of value inside,
    and those whose value is in the right form and means nothing."""

    shapes: Sequence[str] = ()
    values: Sequence[str] = ()

    def explains(self, key: str) -> bool:
        """Return whether a fault of ``key`` may only follow from one of these. A value says nothing
        of what it is a part of."""
        return any(_inside(key, other) or _inside(other, key) for other in self.shapes) or any(
            _inside(key, other) for other in self.values
        )

    def has(self, key: str) -> bool:
        """Return whether a key, or something inside it, is one of these."""
        return any(_inside(other, key) for other in (*self.shapes, *self.values))


def _inside(key: str, other: str) -> bool:
    """Return whether ``key`` is ``other``, or a part of it."""
    return key.startswith(other) and key[len(other) :][:1] in ("", ".", "[")


class Faults(Struct):
    """What is wrong in the files read so far: each text, its place and the key it is about."""

    found: dict[str, tuple[SourceLocation, str]] = {}
    of_values: set[str] = set()  # those of the texts that are about a value in the right form

    @property
    def of_shape(self) -> bool:
        """Whether a file has keys or kinds of values that it must not have."""
        return self.found.keys() > self.of_values

    @property
    def texts(self) -> list[str]:
        """Return each fault once, by file and line."""
        return sorted(self.found, key=lambda text: self.found[text][0])

    def add(self, place: SourceLocation, key: str, message: str) -> None:
        """Add a fault, once. Raises InvalidFiles when there are more than anyone reads."""
        self._record(f"{place}: {key}: {message}" if key else f"{place}: {message}", place, key)

    def add_of_value(self, place: SourceLocation, key: str, message: str) -> None:
        """Add a fault of a value that is in the right form: ``much`` for a size."""
        text = f"{place}: {key}: {message}"
        self.of_values.add(text)
        self._record(text, place, key)

    @property
    def faulty(self) -> "Faulty":
        """The keys that the faults are about."""
        keys = {text: key for text, (_, key) in self.found.items()}
        shapes = [key for text, key in keys.items() if text not in self.of_values]
        return Faulty(shapes, [keys[text] for text in keys if text in self.of_values])

    def add_all(self, others: "Faults") -> None:
        self.of_values |= others.of_values
        for text, (place, key) in others.found.items():
            self._record(text, place, key)

    def raise_any(self) -> None:
        if self.found:
            raise InvalidFiles(self.texts)

    def _record(self, text: str, place: SourceLocation, key: str) -> None:
        self.found[text] = (place, key)
        if len(self.found) == MAX_FAULTS:
            raise InvalidFiles(self.texts)


class YamlNode(Struct):
    """A value with its place: a scalar or None, a list of nodes, or a mapping of nodes."""

    value: Any
    place: SourceLocation
    keys: dict[str, SourceLocation] = {}

    def child(self, step: str | int) -> "YamlNode | None":
        """Return the value of a key or at an index, if there is one."""
        inside = self.value
        if isinstance(step, str):
            return inside.get(step) if isinstance(inside, dict) else None
        return inside[step] if isinstance(inside, list) and step < len(inside) else None

    def place_of(self, *path: str | int) -> SourceLocation:
        """Return the place of a value inside this one, as near as the file goes."""
        node, place = self, self.place
        for step in path:
            found = node.child(step)
            if found is None:
                break
            place = node.keys[step] if isinstance(step, str) else found.place
            node = found
        return place


def lay_over(under: YamlNode, over: YamlNode) -> YamlNode:
    """Return one node merged over another: mappings key by key, an empty value removes a key, any
    other value replaces."""
    if not (isinstance(under.value, dict) and isinstance(over.value, dict)):
        return over
    values = dict(under.value)
    for key, inner in over.value.items():
        if key in values and inner.value is None:
            del values[key]
        else:
            values[key] = lay_over(values[key], inner) if key in values else inner
    return YamlNode(values, over.place, under.keys | over.keys)


# ---- reading ------------------------------------------------------------------------------


def read(path: Path, faults: Faults) -> YamlNode | None:
    """Read a YAML file; return None, with the faults added, if it cannot be read."""
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):
            fault = "is not a regular file; write a text file in its place"
        elif status.st_size > MAX_FILE_BYTES:
            fault = f"has {status.st_size} bytes; the most that is read is {MAX_FILE_BYTES}"
        else:
            # plain: the user's own file, perhaps a FIFO of the shell
            return parse(path.read_bytes(), path, faults)
    except (OSError, ValueError) as error:
        fault = f"cannot be read: {getattr(error, 'strerror', None) or error}"
    faults.add(SourceLocation(path, 1), "", fault)
    return None


def parse(data: bytes, path: Path, faults: Faults) -> YamlNode | None:
    """Read YAML from bytes; ``path`` is only named in faults."""
    try:
        return _Reader(data.decode("utf-8"), path, faults).document()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        faults.add(SourceLocation(path, line), "", "is not UTF-8 text; save the file as UTF-8")
    except _Refused as error:
        faults.add(error.place, "", str(error))
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        position = getattr(error, "position", 0)  # of a character that no YAML file may hold
        line = mark.line if mark is not None else data.count(b"\n", 0, position)
        problem = getattr(error, "problem", None) or getattr(error, "reason", None)
        faults.add(
            SourceLocation(path, line + 1), "", f"is not valid YAML: {problem or 'not readable'}"
        )
    return None


class _Refused(Exception):
    """The file is YAML that is not read; the text says what and why."""

    def __init__(self, place: SourceLocation, why: str) -> None:
        super().__init__(why)
        self.place = place


class _Reader:
    """Makes nodes of the YAML library's events. Its own nodes are not used: it makes them by
    recursion without a bound, so that a file of brackets would overflow the stack."""

    def __init__(self, text: str, path: Path, faults: Faults) -> None:
        self.text = text
        self.loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)(text)
        self._next: Callable[[], Any] = self.loader.get_event
        self.path = path
        self.faults = faults
        self.count = 0
        self.anchors: dict[str, tuple[YamlNode, int]] = {}

    def document(self) -> YamlNode | None:
        try:
            self._next()  # the start of the stream
            start = self._next()
            if start.__class__.__name__ == "StreamEndEvent":
                self.faults.add(SourceLocation(self.path, 1), "", "is empty")
                return None
            root = self.node(self._next(), "", 0)
            self._next()  # the end of the document
            after = self._next()
            if after.__class__.__name__ != "StreamEndEvent":
                raise _Refused(self._place(after), "a second document starts; remove the ---")
            return root
        finally:
            self.loader.dispose()

    def _place(self, event: Any) -> SourceLocation:
        return SourceLocation(self.path, event.start_mark.line + 1)

    def node(self, event: Any, key: str, depth: int) -> YamlNode:
        """The node that starts with this event, its end consumed."""
        place, kind, before = self._place(event), event.__class__.__name__, self.count
        self._count(1, depth, place)
        if kind == "AliasEvent":
            if event.anchor not in self.anchors:
                raise _Refused(place, f"*{event.anchor} stands for nothing that is written above")
            node, size = self.anchors[event.anchor]
            self._count(size, depth, place)
            return node
        if event.tag:
            self.faults.add(place, key, f"the tag {event.tag} is not known; remove it")
        if kind == "ScalarEvent":
            quoted = bool(event.style)  # None or "" where it is plain
            if not quoted and event.value.count("(") > event.value.count(")"):
                self._refuse_cut(event, key, place)
            node = YamlNode(event.value if quoted else plain_scalar(event.value), place)
        elif kind == "SequenceStartEvent":
            node = YamlNode(self._items(key, depth), place)
        else:
            node = self._mapping(place, key, depth)
        if event.anchor:
            self.anchors[event.anchor] = (node, self.count - before)
        return node

    def _refuse_cut(self, event: Any, key: str, place: SourceLocation) -> None:
        """Raise _Refused for a call such as range(0, 12), of which a comma of { } or [ ] ends the
        first part."""
        line = self.text[event.start_mark.index :].partition("\n")[0]
        rest = line[len(event.value) :]
        if not rest.lstrip().startswith(","):
            return
        ends = (i for i, sign in enumerate(line, 1) if sign == ")")
        end = next((i for i in ends if line.count("(", 0, i) == line.count(")", 0, i)), 0)
        written = f'"{line[:end]}", ' if end else ""
        raise _Refused(
            place,
            f"{key}: {event.value!r} ends at a comma, because it stands inside of {{ }} or [ ]; "
            f"quote the whole of it, {written}or write it on a line of its own",
        )

    def _count(self, more: int, depth: int, place: SourceLocation) -> None:
        self.count += more
        if self.count > MAX_VALUES or depth > DEEPEST:
            why = f"holds more than {MAX_VALUES} values or {DEEPEST} levels; make it smaller"
            raise _Refused(place, why)

    def _items(self, key: str, depth: int) -> list[YamlNode]:
        items: list[YamlNode] = []
        while (event := self._next()).__class__.__name__ != "SequenceEndEvent":
            items.append(self.node(event, f"{key}[{len(items)}]", depth + 1))
        return items

    def _mapping(self, place: SourceLocation, key: str, depth: int) -> YamlNode:
        values: dict[str, YamlNode] = {}
        keys: dict[str, SourceLocation] = {}
        while (event := self._next()).__class__.__name__ != "MappingEndEvent":
            at = self._place(event)
            if event.__class__.__name__ != "ScalarEvent":
                raise _Refused(at, f"{key or 'the file'}: a key must be a word")
            name = event.value
            inner = f"{key}.{name}" if key else name
            if name in values:
                self.faults.add(at, inner, f"is given twice, first in line {keys[name].line}")
            if name == "<<" and not event.style:
                self.faults.add(
                    at, inner, "merge keys are not known; use inherits, or write it out"
                )
            keys[name] = at
            values[name] = self.node(self._next(), inner, depth + 1)
        return YamlNode(values, place, keys)


_INTEGER = regex(r"[-+]?[0-9]+")
_OTHER_INTEGER = regex(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = regex(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Scalar | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def plain_scalar(text: str) -> Scalar | None:
    """The value of an unquoted scalar by YAML 1.2's core schema. Infinities, NaN and integers of
    more than 18 digits stay words: no key of ours takes them."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > LONGEST_NUMBER:
        return text
    if _INTEGER.fullmatch(text):
        return int(text) if len(text) <= LONGEST_INTEGER else text
    if _OTHER_INTEGER.fullmatch(text) and len(text) <= LONGEST_INTEGER:
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) < float("inf") else text
    return text
