"""Files that people write: YAML read with places, and decoded into typed values.

    node = read(Path("test.yaml"), faults)          # every value knows its file and line
    test = decode(node, TestFile, faults)           # all faults are collected, not the first only
    faults.raise_any()

The shape of a file is a msgspec Struct, which also yields its JSON Schema.
"""

import functools
import re
import stat
import types
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import (
    Annotated,
    Any,
    Literal,
    NamedTuple,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import msgspec
from msgspec import Struct
from msgspec import inspect as shapes
from msgspec.inspect import Type
from msgspec.structs import FieldInfo

from seatrial.errors import InvalidFiles, suggest
from seatrial.hooks import WITHOUT, missing, plugin_with
from seatrial.lazy import yaml
from seatrial.model.file_model import Quantity, Scalar, plain
from seatrial.model.yaml_faults import fault_of_yaml

# ---- yaml positions ------------------------------------------------------------------------------
#
# YAML with places: what a file holds, and in which line of it.
#
#     node = read(Path("test.yaml"), faults)
#     node.value["run"].value["nodes"].place          # test.yaml:14
#
# YAML is read by the 1.2 core rules (``no`` and ``on`` are words, not false and true); tags and
# merge keys are refused. What is read is bounded in size and depth.


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
        of what it is a part of, and the name of a part nothing of what is inside."""
        return key in self.values or any(
            _inside(key, other) or _inside(other, key) for other in self.shapes
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

    def values(self) -> Any:
        """Return this value without places."""
        inside = self.value
        if isinstance(inside, dict):
            return {key: node.values() for key, node in inside.items()}
        return [node.values() for node in inside] if isinstance(inside, list) else inside

    def place_of(self, *path: str | int) -> SourceLocation:
        """Return the place of a value inside this one, as near as the file goes."""
        node, place = self, self.place
        for step in path:
            child = node.child(step)
            if child is None:
                break
            place = node.keys[step] if isinstance(step, str) else child.place
            node = child
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
        line, words = fault_of_yaml(error, data.decode("utf-8"))
        faults.add(SourceLocation(path, line), "", f"is not valid YAML: {words}")
    return None


class _Refused(Exception):
    """The file is YAML that is not read; the text says what and why."""

    def __init__(self, place: SourceLocation, reason: str) -> None:
        super().__init__(reason)
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
            reason = f"holds more than {MAX_VALUES} values or {DEEPEST} levels; make it smaller"
            raise _Refused(place, reason)

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


_INTEGER = re.compile(r"[-+]?[0-9]+")
_OTHER_INTEGER = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
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


# ---- documents -----------------------------------------------------------------------------------


T = TypeVar("T")
Step = str | int


PLUGINS = "plugins"  # the key that names the plug-ins which a file needs
INVALID: Any = object()  # stands for a value that could not be decoded; its fault has been added

# For each kind of type: the types of the values of YAML that it takes, and what it is called.
_KINDS: dict[type[Type], tuple[tuple[type, ...], str]] = {
    shapes.BoolType: ((bool,), "true or false"),
    shapes.DictType: ((dict,), "a mapping"),
    shapes.FloatType: ((int, float), "a number"),
    shapes.IntType: ((int,), "a whole number"),
    shapes.ListType: ((list,), "a list"),
    shapes.NoneType: ((types.NoneType,), "empty"),
    shapes.StrType: ((str,), "text"),
    shapes.StructType: ((dict,), "a mapping"),
}


def decode(node: YamlNode, shape: type[T], faults: Faults, **given: Any) -> T | None:
    """Return ``node`` as ``shape`` (a msgspec Struct); None, with faults added, if it does not fit.
    ``given`` are fields of the Struct that the file does not hold, such as its name."""
    own_faults = Faults()
    value = decode_partly(node, shape, own_faults, **given)
    faults.add_all(own_faults)
    return None if own_faults.found else value


def decode_partly(node: YamlNode, shape: type[T], faults: Faults, **given: Any) -> T | None:
    """Decode, with defaults in place of what does not fit, so that the rest can be checked too.
    Return None only if the node is no mapping."""
    struct = cast(type[msgspec.Struct], shape)
    value = _decode_struct(node, struct, _fields(struct), faults, "", given)
    return None if value is INVALID else cast(T, value)


def load_checked(path: Path, shape: type[T], check: "Callable[[T, Location], None]") -> T:
    """Return what a file holds. ``check`` adds the faults that its shape does not show. Raises
    InvalidFiles with every fault, also if there is no such file."""
    faults = Faults()
    node = read(path, faults)
    value = decode_partly(node, shape, faults) if node is not None else None
    if node is not None and value is not None:
        check(value, Location(node, faults, faults.faulty))
    faults.raise_any()
    assert value is not None  # a file without a mapping has a fault
    return value


def _decode(node: YamlNode, shape: Type, faults: Faults, key: str) -> Any:
    value = _decode_form(node, shape, faults, key)
    if value is INVALID or value is None:
        return value
    return _made(node, shape, value, faults, key)


def _made(node: YamlNode, shape: Type, value: Any, faults: Faults, key: str) -> Any:
    """Return the quantity of a value that is written in the right form, or the value itself if it
    keeps the rules of its type."""
    try:
        for rule in _rules(shape):
            rule(value)
        kind = _quantity(shape)
        return kind(value) if kind else value
    except ValueError as error:
        faults.add_of_value(node.place, key, str(error))
        return INVALID


def _rules(shape: Type) -> list[Callable[[Any], object]]:
    """Return the rules that a value is kept to (``file_model.checked``)."""
    if isinstance(shape, shapes.UnionType):
        return [rule for part in shape.types for rule in _rules(part)]
    if not isinstance(shape, shapes.Metadata):
        return []
    rule = (shape.extra or {}).get("rule")
    return _rules(shape.type) + ([rule] if rule else [])


def _quantity(shape: Type) -> type[Quantity] | None:
    """Return the quantity that a type, or one of its alternatives, is."""
    if isinstance(shape, shapes.Metadata):
        return _quantity(shape.type)
    if isinstance(shape, shapes.UnionType):
        return next(filter(None, map(_quantity, shape.types)), None)
    return shape.cls if isinstance(shape, shapes.CustomType) else None


def _decode_form(node: YamlNode, shape: Type, faults: Faults, key: str) -> Any:
    node = _as_text(node, shape)
    options, value = _options(shape), node.value
    option = next((each for each in options if _takes(each, value)), None)
    if option is None and isinstance(value, float) and value.is_integer():
        node = YamlNode(int(value), node.place)
        option = next((each for each in options if isinstance(each, shapes.IntType)), None)
    if option is not None:
        return _decode_option(node, option, faults, key)
    faults.add(node.place, key, _misfit(value, options))
    return INVALID


def _as_text(node: YamlNode, shape: Type) -> YamlNode:
    """Return a node with text in place of a number that is meant as such (``file_model.Unit``)."""
    also = shape.extra.get("also") if isinstance(shape, shapes.Metadata) and shape.extra else None
    is_meant = type(node.value) is int and node.value == also
    return YamlNode(str(node.value), node.place) if is_meant else node


def _misfit(value: Any, options: list[Type]) -> str:
    """Return that a value is none of what it may be, and what to write."""
    expected = " or ".join(dict.fromkeys(map(_say, options)))
    return f"{_show(value)} is not {expected}{_remedy(value, options) or _of_plugin(value)}"


def _options(shape: Type) -> list[Type]:
    """Return the alternatives of a type."""
    if isinstance(shape, shapes.Metadata):
        return _options(shape.type)
    if isinstance(shape, shapes.UnionType):
        return [option for part in shape.types for option in _options(part)]
    if isinstance(shape, shapes.CustomType):
        return _options(_form(shape.cls))
    return [shape]


@functools.cache
def _form(quantity: type[Quantity]) -> Type:
    """Return what a quantity is written in."""
    return shapes.type_info(quantity.form)


def _takes(option: Type, value: Any) -> bool:
    if isinstance(option, shapes.LiteralType):
        return any(value == word and type(value) is type(word) for word in option.values)
    return type(value) in _KINDS[type(option)][0]


def _say(option: Type) -> str:
    if isinstance(option, shapes.LiteralType):
        return "one of " + ", ".join(map(str, option.values))
    return _KINDS[type(option)][1]


def _remedy(value: Any, options: list[Type]) -> str:
    if isinstance(value, int | float) and any(isinstance(each, shapes.StrType) for each in options):
        return "; put it in quotes if it is meant as text"
    if isinstance(value, Scalar) and any(isinstance(each, shapes.ListType) for each in options):
        return f"; write [{value}]" if len(str(value)) < 30 else "; put it in [ ]"
    return ""


def _decode_option(node: YamlNode, option: Type, faults: Faults, key: str) -> Any:
    match option:
        case shapes.StructType():
            fields = {field.encode_name: field for field in option.fields}
            return _decode_struct(node, option.cls, fields, faults, key, {})
        case shapes.ListType():
            return _decode_list(node, option.item_type, faults, key)
        case shapes.DictType():
            return _decode_mapping(node, option, faults, key)
        case shapes.IntType() | shapes.FloatType():
            if fault := _beyond(node.value, option):
                faults.add(node.place, key, f"{_show(node.value)} {fault}")
                return INVALID
            return float(node.value) if isinstance(option, shapes.FloatType) else node.value
    return node.value


def _decode_list(node: YamlNode, inner: Type, faults: Faults, key: str) -> Any:
    items = [_decode(each, inner, faults, f"{key}[{i}]") for i, each in enumerate(node.value)]
    return INVALID if any(item is INVALID for item in items) else items


def _decode_mapping(node: YamlNode, shape: shapes.DictType, faults: Faults, key: str) -> Any:
    _decode_keys(node, shape.key_type, faults, key)
    values = {
        name: _decode(inner, shape.value_type, faults, f"{key}.{name}")
        for name, inner in node.value.items()
    }
    return {name: value for name, value in values.items() if value is not INVALID}


def _decode_keys(node: YamlNode, shape: Type, faults: Faults, key: str) -> None:
    names = shape.values if isinstance(shape, shapes.LiteralType) else None
    for name in node.value:
        if names is None:
            _made(YamlNode(name, node.keys[name]), shape, name, faults, f"{key}.{name}")
        elif name not in names:
            text = f"is not one of {', '.join(map(str, names))}"
            faults.add(node.keys[name], f"{key}.{name}", text)


def _beyond(value: float, bound: shapes.IntType | shapes.FloatType) -> str:
    """Return how a number is outside its bounds; "" if it is inside."""
    if bound.ge is not None and value < bound.ge:
        return f"is less than {bound.ge}"
    if bound.gt is not None and value <= bound.gt:
        return f"is not more than {bound.gt}"
    if bound.le is not None and value > bound.le:
        return f"is more than {bound.le}"
    return ""


def _decode_struct(
    node: YamlNode,
    shape: type[msgspec.Struct],
    fields: Mapping[str, FieldInfo | shapes.Field],
    faults: Faults,
    key: str,
    given: dict[str, Any],
) -> Any:
    """Decode a mapping. ``fields`` are those of the Struct; one around it told their types."""
    prefix = f"{key}." if key else ""
    if not isinstance(node.value, dict):
        faults.add(node.place, key, f"{_show(node.value)} is not a mapping of keys to values")
        return INVALID
    values: dict[str, Any] = dict(given)
    lacking = PLUGINS in fields and _lacking(node.child(PLUGINS), faults)
    for name, inner in node.value.items():
        known = fields.get(name)
        if known is not None and known.name not in given:
            value = _decode(inner, _type_of(known, shape), faults, prefix + name)
            if value is not INVALID:
                values[known.name] = value
        elif known is not None or not lacking:  # else it may be of the plug-in that is not there
            message = f"is not a key here{_of_plugin(name) or _nearest(name, fields, given)}"
            faults.add(node.keys[name], prefix + name, message)
    _fill(node, shape, fields, values, faults, prefix)
    return shape(**values)


def _fill(
    node: YamlNode,
    shape: type[msgspec.Struct],
    fields: Mapping[str, FieldInfo | shapes.Field],
    values: dict[str, Any],
    faults: Faults,
    prefix: str,
) -> None:
    """Give required fields without a value one in its place, and tell of those that the file does
    not have."""
    for name, known in fields.items():
        if known.required and known.name not in values:
            if name not in node.value:
                faults.add(node.place, prefix + name, "is missing; it must be given")
            values[known.name] = _blank(_type_of(known, shape))


def _lacking(needed: YamlNode | None, faults: Faults) -> bool:
    """Return whether a file names plug-ins that are not there, and add a fault for each."""
    names = needed.value if needed is not None and isinstance(needed.value, list) else []
    lacking = missing([str(name.value) for name in names])
    for name in names:
        if name.value in lacking:
            text = f"the plug-in {name.value} is not there; install its package"
            faults.add(name.place, PLUGINS, text)
    return bool(lacking)


def _of_plugin(word: Any) -> str:
    """Return which plug-in has a name that is not known, where that is switched off."""
    plugin = plugin_with(word) if isinstance(word, str) else ""
    return f"; it is of the plug-in {plugin}, which {WITHOUT} switches off" if plugin else ""


def _blank(shape: Type) -> Any:
    """Return a value in place of one whose fault has been added, so that others can be checked."""
    if kind := _quantity(shape):
        return kind(1)
    option = _options(shape)[0]
    if isinstance(option, shapes.StructType):
        return option.cls(**{f.name: _blank(f.type) for f in option.fields if f.required})
    if isinstance(option, shapes.LiteralType):
        return option.values[0]
    return _KINDS[type(option)][0][0]()


@functools.cache
def _fields(shape: type[msgspec.Struct]) -> dict[str, FieldInfo]:
    """Return the fields of a Struct by the key that files use."""
    return {field.encode_name: field for field in msgspec.structs.fields(shape)}


def _type_of(field: FieldInfo | shapes.Field, shape: type[msgspec.Struct]) -> Type:
    """Return what a field of a Struct holds."""
    return field.type if isinstance(field, shapes.Field) else _type(shape, field.encode_name)


@functools.cache
def _type(shape: type[msgspec.Struct], key: str) -> Type:
    """Return the type of a field of a Struct.

    Computed on demand, for the keys that a file has: inspecting a nested Struct takes about 1 ms.
    """
    return shapes.type_info(_fields(shape)[key].type)


def _show(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    if value is None:
        return "an empty value"
    text = repr(value) if isinstance(value, str) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(
    name: str, fields: Mapping[str, FieldInfo | shapes.Field], given: dict[str, Any]
) -> str:
    known = [key for key, item in fields.items() if item.name not in given]
    longer = [repr(key) for key in known if key.startswith(f"{name}_")]  # gpus: gpus_per_task
    near = f"did you mean {' or '.join(longer)}?" if longer else suggest(name, known)
    return "; " + (near or f"the keys are {', '.join(known)}")


class Location(NamedTuple):
    """A value of a document that is being checked: ``key`` leads to it from the root ``node``.
    ``faulty`` are keys that could not be decoded; what only follows from them is not told.

    location = Location(node, faults).inside("components", 0)
    location.fault("is empty; name it", "component")     # plan.yaml:7: components[0].component: ...
    """

    node: YamlNode
    faults: Faults
    faulty: Faulty = Faulty()
    key: tuple[Step, ...] = ()

    def inside(self, *key: Step) -> "Location":
        return self._replace(key=(*self.key, *key))

    @property
    def whole(self) -> "Location":
        """The whole document."""
        return self._replace(key=())

    def fault(self, message: str, *key: Step) -> None:
        """Add a fault of a value inside, at its place or as near as the file goes."""
        whole = (*self.key, *key)
        text = key_text(whole)
        if not self.faulty.explains(text):
            self.faults.add(self.node.place_of(*whole), text, message)

    def given(self, *key: Step) -> bool:
        """Return whether the file gives a value for a key inside."""
        node: YamlNode | None = self.node
        for step in (*self.key, *key):
            node = node.child(step) if node is not None else None
        return node is not None

    def parsed(self, parse: Callable[[Any], T], value: Any, *key: Step) -> T | None:
        """Return what ``parse`` makes of a value inside, such as the seconds of a duration; None,
        with a fault added, if it raises ValueError."""
        try:
            return parse(value)
        except ValueError as error:
            self.fault(str(error), *key)
            return None


def unread(at: Location, *key: str | int) -> bool:
    """Return True if a key, or something inside it, could not be decoded: the value is then a
    default, or only a part of what the file says."""
    return at.faulty.has(key_text((*at.key, *key)))


def key_text(key: Sequence[Step]) -> str:
    """Return a key as faults show it: ``components[0].tests.cm4.share``."""
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def json_schema(shape: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """Return the JSON Schema of a file's shape, as editors use it. Where a file may inherit, or
    include others, one that does need not have what it takes over: no key of it is required but
    ``inherits`` (``include``) itself."""
    written = _as_written(shape)
    schema = msgspec.json.schema(written)
    takes_over = [key for key in ("inherits", "include") if key in _fields(shape)]
    if takes_over:
        template = "#/$defs/Inheriting{name}"
        (heir,), parts = msgspec.json.schema_components((written,), ref_template=template)
        for name, part in parts.items():
            required = takes_over if name == shape.__name__ else []
            schema["$defs"][f"Inheriting{name}"] = {**part, "required": required}
        schema = {"anyOf": [{"$ref": schema.pop("$ref")}, heir], **schema}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


@functools.cache
def _as_written(shape: Any) -> Any:
    """Return a type with what quantities are written in in place of them. msgspec writes no
    defaults of other types than its own into a schema."""
    if isinstance(shape, type) and issubclass(shape, Quantity):
        return shape.form
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        return _struct_as_written(shape)
    origin, inside = get_origin(shape), get_args(shape)
    if origin is None or origin is Literal:
        return shape
    if origin is Annotated:
        return Annotated[(_as_written(inside[0]), *inside[1:])]
    parts = tuple(_as_written(each) for each in inside)
    return Union[parts] if origin is types.UnionType else origin[parts]  # noqa: UP007


def _default(field: FieldInfo) -> Any:
    if field.default_factory is not msgspec.NODEFAULT:
        return field.default_factory()
    default = field.default
    return default if isinstance(default, msgspec.Struct) else plain(default)


def _struct_as_written(shape: type[msgspec.Struct]) -> type[msgspec.Struct]:
    fields = [
        (each.name, _as_written(each.type))
        if each.required
        else (each.name, _as_written(each.type), _default(each))
        for each in msgspec.structs.fields(shape)
    ]
    return msgspec.defstruct(
        shape.__name__,
        fields,
        namespace={"__doc__": shape.__doc__},
        rename={each.name: each.encode_name for each in msgspec.structs.fields(shape)},
        kw_only=True,
        forbid_unknown_fields=shape.__struct_config__.forbid_unknown_fields,
    )
