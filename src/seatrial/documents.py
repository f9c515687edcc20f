"""Files that people write: YAML read with places, and decoded into typed values.

    node = read(Path("test.yaml"), faults)          # every value knows its file and line
    test = decode(node, TestFile, faults)           # all faults are collected, not the first only
    faults.raise_any()

The shape of a file is a msgspec Struct, which also yields its JSON Schema.
"""

from __future__ import annotations

import functools
import types
import typing
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, cast

import msgspec
from msgspec import Meta

from seatrial.errors import suggest
from seatrial.file_model import Scalar
from seatrial.yaml_positions import Faults, SourceLocation, YamlNode, parse, plain_scalar, read

__all__ = ["Faults", "SourceLocation", "Spot", "YamlNode", "decode", "decode_partly", "json_schema"]
__all__ += ["key_text", "parse", "plain_scalar", "read"]

T = TypeVar("T")
Step = str | int


class _Invalid:
    """Stands for a value that could not be decoded; its fault has been added."""


INVALID = _Invalid()


def decode(node: YamlNode, shape: type[T], faults: Faults, **given: Any) -> T | None:
    """The value of ``node`` as ``shape`` (a msgspec Struct); None with faults added when it does
    not fit. ``given`` are fields of the Struct that the file does not hold, such as its name."""
    own = Faults()
    value = decode_partly(node, shape, own, **given)
    faults.add_all(own)
    return None if own.found else value


def decode_partly(node: YamlNode, shape: type[T], faults: Faults, **given: Any) -> T | None:
    """As ``decode``, but with defaults in place of what does not fit, so that the rest can be
    checked too. None only where the node is no mapping at all."""
    value = _decode_struct(node, cast(Any, shape), faults, "", given)
    return None if value is INVALID else cast(T, value)


class _Option(NamedTuple):
    """One of the alternatives of a type: what it takes, what is inside it, its only values, the
    bounds of a number, and the only names of a mapping."""

    shape: Any
    accepts: tuple[type, ...]
    is_struct: bool = False
    inner: Any = None
    words: tuple[Any, ...] | None = None
    bounds: tuple[Meta, ...] = ()
    names: tuple[str, ...] = ()


def _decode(node: YamlNode, shape: Any, faults: Faults, key: str) -> Any:
    options, value = _options(shape), node.value
    for option in options:
        if type(value) in option.accepts and (option.words is None or value in option.words):
            return _decode_option(node, option, faults, key)
    for option in options:
        if option.shape is int and isinstance(value, float) and value.is_integer():
            return _decode_option(YamlNode(int(value), node.place), option, faults, key)
    expected = " or ".join(dict.fromkeys(_say(option) for option in options))
    faults.add(node.place, key, f"{_show(value)} is not {expected}{_remedy(value, options)}")
    return INVALID


def _remedy(value: Any, options: tuple[_Option, ...]) -> str:
    if isinstance(value, int | float) and any(option.shape is str for option in options):
        return "; put it in quotes if it is meant as text"
    if isinstance(value, Scalar) and any(option.accepts == (list,) for option in options):
        return f"; write [{value}]" if len(str(value)) < 30 else "; put it in [ ]"
    return ""


def _decode_option(node: YamlNode, option: _Option, faults: Faults, key: str) -> Any:
    if option.is_struct:
        return _decode_struct(node, option.shape, faults, key, {})
    inner = option.inner
    if isinstance(node.value, list):
        items = [_decode(v, inner, faults, f"{key}[{i}]") for i, v in enumerate(node.value)]
        return INVALID if any(item is INVALID for item in items) else items
    if isinstance(node.value, dict):
        for name in node.value:
            if option.names and name not in option.names:
                text = f"is not one of {', '.join(option.names)}"
                faults.add(node.keys[name], f"{key}.{name}", text)
        found = {n: _decode(v, inner, faults, f"{key}.{n}") for n, v in node.value.items()}
        return {name: value for name, value in found.items() if value is not INVALID}
    for bound in option.bounds:
        if said := _beyond(node.value, bound):
            faults.add(node.place, key, f"{_show(node.value)} {said}")
            return INVALID
    return float(node.value) if option.shape is float else node.value


def _beyond(value: float, bound: Meta) -> str:
    """How a number is outside its bounds; "" when it is inside."""
    if bound.ge is not None and value < bound.ge:
        return f"is less than {bound.ge}"
    if bound.gt is not None and value <= bound.gt:
        return f"is not more than {bound.gt}"
    if bound.le is not None and value > bound.le:
        return f"is more than {bound.le}"
    return ""


def _decode_struct(
    node: YamlNode, shape: type[msgspec.Struct], faults: Faults, key: str, given: dict[str, Any]
) -> Any:
    prefix = f"{key}." if key else ""
    if not isinstance(node.value, dict):
        faults.add(node.place, key, f"{_show(node.value)} is not a mapping of keys to values")
        return INVALID
    fields = _fields(shape)
    values: dict[str, Any] = dict(given)
    for name, inner in node.value.items():
        known = fields.get(name)
        if known is None or known.name in given:
            message = f"is not a key here{_nearest(name, fields, given)}"
            faults.add(node.keys[name], prefix + name, message)
        elif (value := _decode(inner, known.type, faults, prefix + name)) is not INVALID:
            values[known.name] = value
    for name, known in fields.items():
        if known.required and known.name not in values:
            if name not in node.value:
                faults.add(node.place, prefix + name, "is missing; it must be given")
            values[known.name] = _blank(known.type)
    return shape(**values)


def _blank(shape: Any) -> Any:
    """Stands in a value whose fault has been added, so that its other fields can be checked."""
    option = _options(shape)[0]
    if option.is_struct:
        fields = _fields(option.shape).values()
        return option.shape(**{f.name: _blank(f.type) for f in fields if f.required})
    return option.words[0] if option.words else option.accepts[0]()


@functools.cache
def _fields(shape: type[msgspec.Struct]) -> dict[str, _Field]:
    """The fields of a Struct by the key that files use."""
    hints = typing.get_type_hints(shape, include_extras=True)
    fields = msgspec.structs.fields(shape)
    return {f.encode_name: _Field(f.name, hints[f.name], f.required) for f in fields}


class _Field(NamedTuple):
    name: str
    type: Any
    required: bool


@functools.cache
def _options(shape: Any, bounds: tuple[Meta, ...] = ()) -> tuple[_Option, ...]:
    """The alternatives of a type, with Annotated and Union taken apart."""
    origin, arguments = typing.get_origin(shape), typing.get_args(shape)
    if origin is Annotated:
        metas = tuple(m for m in arguments[1:] if isinstance(m, Meta))
        return _options(arguments[0], (*bounds, *metas))
    if origin in (typing.Union, types.UnionType):
        return tuple(option for part in arguments for option in _options(part, bounds))
    if origin is Literal:
        return (_Option(shape, tuple({type(word) for word in arguments}), words=arguments),)
    if shape in (int, float):
        return (_Option(shape, (int, float) if shape is float else (int,), bounds=bounds),)
    if isinstance(shape, type) and issubclass(shape, msgspec.Struct):
        return (_Option(shape, (dict,), is_struct=True),)
    inner = arguments[-1] if arguments else None
    names = typing.get_args(arguments[0]) if origin is dict else ()
    return (_Option(shape, (origin or shape,), inner=inner, names=names),)


def _say(option: _Option) -> str:
    if option.words:
        return "one of " + ", ".join(str(word) for word in option.words)
    words = {list: "a list", dict: "a mapping", str: "text", int: "a whole number"}
    words |= {bool: "true or false", types.NoneType: "empty"}
    return "a number" if option.shape is float else words[option.accepts[0]]


def _show(value: Any) -> str:
    if isinstance(value, list):
        return "a list"
    if isinstance(value, dict):
        return "a mapping"
    if value is None:
        return "an empty value"
    text = repr(value) if isinstance(value, str) else str(value).lower()
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(name: str, fields: dict[str, _Field], given: dict[str, Any]) -> str:
    known = [key for key, item in fields.items() if item.name not in given]
    return "; " + (suggest(name, known) or f"the keys are {', '.join(known)}")


class Spot(NamedTuple):
    """A value of a document that is being checked: ``key`` leads to it from the root ``node``.
    ``faulty`` are keys that could not be decoded; what only follows from them is not told.

    spot = Spot(node, faults).inside("components", 0)
    spot.fault("is empty; name it", "component")     # plan.yaml:7: components[0].component: ...
    """

    node: YamlNode
    faults: Faults
    faulty: Sequence[str] = ()
    key: tuple[Step, ...] = ()

    def inside(self, *key: Step) -> Spot:
        """A value inside this one."""
        return self._replace(key=(*self.key, *key))

    def fault(self, message: str, *key: Step) -> None:
        """Add a fault of a value inside, at its place or as near as the file goes."""
        whole = (*self.key, *key)
        text = key_text(whole)
        if not any(_related(text, other) for other in self.faulty):
            self.faults.add(self.node.place_of(*whole), text, message)

    def given(self, *key: Step) -> bool:
        """Whether the file gives a value for a key inside."""
        node = self.node
        for step in (*self.key, *key):
            inside = node.value
            if isinstance(step, str):
                found = inside.get(step) if isinstance(inside, dict) else None
            else:
                found = inside[step] if isinstance(inside, list) and step < len(inside) else None
            if found is None:
                return False
            node = found
        return True

    def parsed(self, parse: Callable[[Any], T], value: Any, *key: Step) -> T | None:
        """What ``parse`` makes of a value inside, such as the seconds of a duration; None with a
        fault added where it raises ValueError."""
        try:
            return parse(value)
        except ValueError as error:
            self.fault(str(error), *key)
            return None


def key_text(key: Sequence[Step]) -> str:
    """A key as faults show it: ``components[0].tests.cm4.share``."""
    text = ""
    for step in key:
        text += f"[{step}]" if isinstance(step, int) else f".{step}" if text else step
    return text


def _related(key: str, other: str) -> bool:
    """Whether one of two keys is, or is part of, the other."""
    shorter, longer = sorted((key, other), key=len)
    return longer.startswith(shorter) and longer[len(shorter) :][:1] in ("", ".", "[")


def json_schema(shape: type[msgspec.Struct], title: str) -> dict[str, Any]:
    """The JSON Schema of a file's shape, as editors use it. Where a file may inherit, one that does
    need not have what it takes over: no key of it is required but ``inherits`` itself."""
    schema = msgspec.json.schema(shape)
    root = shape.__name__
    if "inherits" in _fields(shape):
        whole = schema["$defs"]
        partial = {f"{_INHERITING}{name}": _nothing_required(part) for name, part in whole.items()}
        partial[f"{_INHERITING}{root}"]["required"] = ["inherits"]
        schema["$defs"] = {**whole, **partial}
        heir = {"$ref": f"#/$defs/{_INHERITING}{root}"}
        schema = {"anyOf": [{"$ref": schema.pop("$ref")}, heir], **schema}
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", "title": title, **schema}


_INHERITING = "Inheriting"


def _nothing_required(part: Any) -> Any:
    """A copy of a part of a schema that requires no key, and refers to copies like itself."""
    if isinstance(part, list):
        return [_nothing_required(item) for item in part]
    if not isinstance(part, dict):
        return part
    copy = {key: _nothing_required(value) for key, value in part.items() if key != "required"}
    if "$ref" in copy:
        copy["$ref"] = copy["$ref"].replace("#/$defs/", f"#/$defs/{_INHERITING}")
    return copy
