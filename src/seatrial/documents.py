"""Files that people write: YAML read with places, and decoded into typed values.

    node = read(Path("test.yaml"), faults)          # every value knows its file and line
    test = decode(node, TestFile, faults)           # all faults are collected, not the first only
    faults.raise_any()

YAML is read by the 1.2 core rules (``no`` and ``on`` are words, not false and true); tags and
merge keys are refused. The shape of a file is a msgspec Struct, which also yields its JSON Schema.
"""

from __future__ import annotations

import difflib
import functools
import re
import types
import typing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, cast

import msgspec

from seatrial.errors import InvalidFiles

Scalar = str | int | float | bool
T = TypeVar("T")

LARGEST_FILE = 1 << 20
MOST_VALUES = 200_000
DEEPEST = 40
LONGEST_INTEGER_DIGITS = 18


@dataclass(frozen=True, slots=True)
class Place:
    """Where a value is written. ``line`` counts from 1."""

    path: Path
    line: int

    def __str__(self) -> str:
        return f"{self.path}:{self.line}"


@dataclass(slots=True)
class Faults:
    """What is wrong in the files read so far."""

    texts: list[str] = field(default_factory=list)

    def add(self, place: Place, key: str, message: str) -> None:
        text = f"{place}: {key}: {message}" if key else f"{place}: {message}"
        if text not in self.texts:
            self.texts.append(text)

    def raise_any(self) -> None:
        if self.texts:
            raise InvalidFiles(self.texts)


@dataclass(slots=True)
class Node:
    """A value with its place: a scalar or None, a list of nodes, or a mapping of nodes."""

    value: Any
    place: Place
    keys: dict[str, Place] = field(default_factory=dict)

    def place_of(self, *path: str | int) -> Place:
        """The place of a value inside this one, as near as the file goes."""
        node, place = self, self.place
        for step in path:
            if isinstance(step, str) and isinstance(node.value, dict) and step in node.value:
                place = node.keys[step]
                node = node.value[step]
            elif isinstance(step, int) and isinstance(node.value, list) and step < len(node.value):
                node = node.value[step]
                place = node.place
            else:
                break
        return place


# ---- reading ------------------------------------------------------------------------------


def read(path: Path, faults: Faults) -> Node | None:
    """Read a YAML file; None when it cannot be read, with the faults added."""
    start = Place(path, 1)
    try:
        size = path.stat().st_size
        data = path.read_bytes() if size <= LARGEST_FILE else b""
    except OSError as error:
        faults.add(start, "", f"cannot be read: {error.strerror}")
        return None
    if size > LARGEST_FILE:
        faults.add(start, "", f"has {size} bytes; the most that is read is {LARGEST_FILE}")
        return None
    return parse(data, path, faults)


def parse(data: bytes, path: Path, faults: Faults) -> Node | None:
    """As ``read``, for bytes at hand; ``path`` is only named in faults."""
    import yaml

    loader_class = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        text = data.decode("utf-8")
        loader = loader_class(text)
        try:
            root = loader.get_single_node()
        finally:
            loader.dispose()
        if root is None:
            faults.add(Place(path, 1), "", "is empty")
            return None
        return _Reader(path, faults).node(root, "", 0)
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        faults.add(Place(path, line), "", "is not UTF-8 text; save the file as UTF-8")
    except yaml.YAMLError as error:
        faults.add(*_syntax_fault(error, path))
    except (RecursionError, _TooMuch):
        faults.add(Place(path, 1), "", f"holds more than {MOST_VALUES} values or {DEEPEST} levels")
    return None


def _syntax_fault(error: Exception, path: Path) -> tuple[Place, str, str]:
    mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
    problem = getattr(error, "problem", None) or getattr(error, "reason", None) or "not YAML"
    line = mark.line + 1 if mark is not None else 1
    return Place(path, line), "", f"is not valid YAML: {problem}"


class _TooMuch(Exception):
    pass


class _Reader:
    """Turns the YAML library's node graph into ours, bounded in size and depth."""

    def __init__(self, path: Path, faults: Faults) -> None:
        self.path = path
        self.faults = faults
        self.count = 0

    def node(self, source: Any, key: str, depth: int) -> Node:
        self.count += 1
        if self.count > MOST_VALUES or depth > DEEPEST:
            raise _TooMuch
        place = Place(self.path, source.start_mark.line + 1)
        kind = source.id
        if kind == "scalar":
            return Node(self._scalar(source, place, key), place)
        if kind == "sequence":
            items = [self.node(v, f"{key}[{i}]", depth + 1) for i, v in enumerate(source.value)]
            return Node(items, place)
        return self._mapping(source, place, key, depth)

    def _mapping(self, source: Any, place: Place, key: str, depth: int) -> Node:
        values: dict[str, Node] = {}
        keys: dict[str, Place] = {}
        for key_source, value_source in source.value:
            key_place = Place(self.path, key_source.start_mark.line + 1)
            if key_source.id != "scalar":
                self.faults.add(key_place, key, "a key must be a word")
                continue
            name = str(key_source.value)
            inner = f"{key}.{name}" if key else name
            if name in values:
                self.faults.add(
                    key_place, inner, f"is given twice, first in line {keys[name].line}"
                )
            keys[name] = key_place
            values[name] = self.node(value_source, inner, depth + 1)
        return Node(values, place, keys)

    def _scalar(self, source: Any, place: Place, key: str) -> Scalar | None:
        if source.tag.startswith("!") or source.tag.startswith("tag:yaml.org,2002:python"):
            self.faults.add(place, key, f"the tag {source.tag} is not known; remove it")
        text = str(source.value)
        quoted = bool(source.style)  # None or "" where it is plain
        return text if quoted else plain_scalar(text)


_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_INTEGER = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_WORDS: dict[str, Scalar | None] = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}


def plain_scalar(text: str) -> Scalar | None:
    """The value of an unquoted scalar by YAML 1.2's core schema. Infinities and NaN stay words:
    no key of ours takes them."""
    if text in _WORDS:
        return _WORDS[text]
    if text[0] not in "+-.0123456789" or len(text) > LONGEST_INTEGER_DIGITS + 10:
        return text
    if _INTEGER.fullmatch(text) and len(text) <= LONGEST_INTEGER_DIGITS:
        return int(text)
    if _OTHER_INTEGER.fullmatch(text) and len(text) <= LONGEST_INTEGER_DIGITS:
        return int(text, 0)
    if _FLOAT.fullmatch(text):
        number = float(text)
        return number if abs(number) < float("inf") else text
    return text


# ---- decoding -----------------------------------------------------------------------------


class _Invalid:
    """Stands for a value that could not be decoded; its fault has been added."""


INVALID = _Invalid()


def decode(node: Node, shape: type[T], faults: Faults, **given: Any) -> T | None:
    """The value of ``node`` as ``shape`` (a msgspec Struct); None with faults added when it does
    not fit. ``given`` are fields of the Struct that the file does not hold, such as its name."""
    value = _decode_struct(node, cast(Any, shape), faults, "", given)
    return None if value is INVALID else cast(T, value)


def _decode(node: Node, shape: Any, faults: Faults, key: str) -> Any:
    options = _options(shape)
    for option in options:
        if _fits(node.value, option):
            return _decode_option(node, option, faults, key)
    expected = " or ".join(dict.fromkeys(_say(option) for option in options))
    faults.add(
        node.place, key, f"{_show(node.value)} is not {expected}{_quoting_hint(node, options)}"
    )
    return INVALID


def _decode_option(node: Node, option: Any, faults: Faults, key: str) -> Any:
    origin, arguments = typing.get_origin(option), typing.get_args(option)
    if origin is list:
        items = [_decode(v, arguments[0], faults, f"{key}[{i}]") for i, v in enumerate(node.value)]
        return INVALID if any(item is INVALID for item in items) else items
    if origin is dict:
        values = {
            name: _decode(inner, arguments[1], faults, f"{key}.{name}")
            for name, inner in node.value.items()
        }
        return INVALID if any(value is INVALID for value in values.values()) else values
    if isinstance(option, type) and issubclass(option, msgspec.Struct):
        return _decode_struct(node, option, faults, key, {})
    return float(node.value) if option is float else node.value


def _decode_struct(
    node: Node, shape: type[msgspec.Struct], faults: Faults, key: str, given: dict[str, Any]
) -> Any:
    prefix = f"{key}." if key else ""
    if not isinstance(node.value, dict):
        faults.add(node.place, key, f"{_show(node.value)} is not a mapping of keys to values")
        return INVALID
    fields = _fields(shape)
    values: dict[str, Any] = dict(given)
    valid = True
    for name, inner in node.value.items():
        known = fields.get(name)
        if known is None or known.name in given:
            message = f"is not a key here{_nearest(name, fields, given)}"
            faults.add(node.keys[name], prefix + name, message)
            valid = False
            continue
        value = _decode(inner, known.type, faults, prefix + name)
        valid = valid and value is not INVALID
        values[known.name] = value
    for name, known in fields.items():
        if known.required and known.name not in values:
            faults.add(node.place, prefix + name, "is missing; it must be given")
            valid = False
    return shape(**values) if valid else INVALID


@functools.cache
def _fields(shape: type[msgspec.Struct]) -> dict[str, Any]:
    """The fields of a Struct by the key that files use."""
    hints = typing.get_type_hints(shape, include_extras=True)
    fields = {}
    for item in msgspec.structs.fields(shape):
        fields[item.encode_name] = _Field(item.name, hints[item.name], item.required)
    return fields


@dataclass(frozen=True, slots=True)
class _Field:
    name: str
    type: Any
    required: bool


@functools.cache
def _options(shape: Any) -> tuple[Any, ...]:
    """The alternatives of a type, with Annotated and Union taken apart."""
    origin = typing.get_origin(shape)
    if origin is Annotated:
        return _options(typing.get_args(shape)[0])
    if origin in (typing.Union, types.UnionType):
        return tuple(option for part in typing.get_args(shape) for option in _options(part))
    return (shape,)


def _fits(value: Any, option: Any) -> bool:
    origin = typing.get_origin(option)
    if origin is list:
        return isinstance(value, list)
    if origin is dict:
        return isinstance(value, dict)
    if origin is Literal:
        return not isinstance(value, list | dict) and value in typing.get_args(option)
    if option is types.NoneType:
        return value is None
    if option is bool:
        return isinstance(value, bool)
    if option in (int, float):
        return isinstance(value, (int, option)) and not isinstance(value, bool)
    if isinstance(option, type) and issubclass(option, msgspec.Struct):
        return isinstance(value, dict)
    return option is str and isinstance(value, str)


def _say(option: Any) -> str:
    origin = typing.get_origin(option)
    if origin is list:
        return "a list"
    if origin is dict or (isinstance(option, type) and issubclass(option, msgspec.Struct)):
        return "a mapping"
    if origin is Literal:
        return "one of " + ", ".join(str(word) for word in typing.get_args(option))
    words = {str: "text", int: "a whole number", float: "a number", bool: "true or false"}
    return words.get(option, "empty")


def _show(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    if value is None:
        return "an empty value"
    text = repr(value) if isinstance(value, str) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."


def _quoting_hint(node: Node, options: tuple[Any, ...]) -> str:
    if str in options and isinstance(node.value, int | float):
        return "; put it in quotes if it is meant as text"
    return ""


def _nearest(name: str, fields: dict[str, Any], given: dict[str, Any]) -> str:
    known = [key for key, item in fields.items() if item.name not in given]
    near = difflib.get_close_matches(name[:40], known, n=1, cutoff=0.6)
    return f"; did you mean {near[0]!r}?" if near else f"; the keys are {', '.join(known)}"


def json_schema(shape: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """The JSON Schema of a file's shape, as editors use it."""
    schema = msgspec.json.schema(shape)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}
