"""Files that people write: YAML read with places, and decoded into typed values.

    node = read(Path("test.yaml"), faults)          # every value knows its file and line
    test = decode(node, TestFile, faults)           # all faults are collected, not the first only
    faults.raise_any()

The shape of a file is a msgspec Struct, which also yields its JSON Schema.
"""

import functools
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
from msgspec import inspect as shapes
from msgspec.inspect import Type
from msgspec.structs import FieldInfo

from seatrial.decoding import plain
from seatrial.errors import suggest
from seatrial.file_model import Quantity, Scalar
from seatrial.yaml_positions import (
    Faults,
    Faulty,
    SourceLocation,
    YamlNode,
    lay_over,
    parse,
    plain_scalar,
    read,
)

__all__ = [
    "Faults",
    "Faulty",
    "SourceLocation",
    "Spot",
    "YamlNode",
    "decode",
    "decode_partly",
    "json_schema",
]
__all__ += ["key_text", "lay_over", "load_checked", "parse", "plain_scalar", "read"]

T = TypeVar("T")
Step = str | int


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
    own = Faults()
    value = decode_partly(node, shape, own, **given)
    faults.add_all(own)
    return None if own.found else value


def decode_partly(node: YamlNode, shape: type[T], faults: Faults, **given: Any) -> T | None:
    """Decode, with defaults in place of what does not fit, so that the rest can be checked too.
    Return None only if the node is no mapping."""
    own = cast(type[msgspec.Struct], shape)
    value = _decode_struct(node, own, _fields(own), faults, "", given)
    return None if value is INVALID else cast(T, value)


def load_checked(path: Path, shape: type[T], check: "Callable[[T, Spot], None]") -> T:
    """Return what a file holds. ``check`` adds the faults that its shape does not show. Raises
    InvalidFiles with every fault, also if there is no such file."""
    faults = Faults()
    node = read(path, faults)
    found = decode_partly(node, shape, faults) if node is not None else None
    if node is not None and found is not None:
        check(found, Spot(node, faults, faults.faulty))
    faults.raise_any()
    assert found is not None  # a file without a mapping has a fault
    return found


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
    also = shape.extra and shape.extra.get("also") if isinstance(shape, shapes.Metadata) else None
    if type(node.value) is int and node.value == also:
        node = YamlNode(str(node.value), node.place)  # a number that is meant as text
    options, value = _options(shape), node.value
    for option in options:
        if _takes(option, value):
            return _decode_option(node, option, faults, key)
    for option in options:
        if isinstance(option, shapes.IntType) and isinstance(value, float) and value.is_integer():
            return _decode_option(YamlNode(int(value), node.place), option, faults, key)
    expected = " or ".join(dict.fromkeys(_say(option) for option in options))
    faults.add(node.place, key, f"{_show(value)} is not {expected}{_remedy(value, options)}")
    return INVALID


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
    value = node.value
    if isinstance(option, shapes.StructType):
        fields = {field.encode_name: field for field in option.fields}
        return _decode_struct(node, option.cls, fields, faults, key, {})
    if isinstance(option, shapes.ListType):
        inner = option.item_type
        items = [_decode(v, inner, faults, f"{key}[{i}]") for i, v in enumerate(value)]
        return INVALID if any(item is INVALID for item in items) else items
    if isinstance(option, shapes.DictType):
        _decode_keys(node, option.key_type, faults, key)
        inner = option.value_type
        found = {n: _decode(v, inner, faults, f"{key}.{n}") for n, v in value.items()}
        return {name: value for name, value in found.items() if value is not INVALID}
    if isinstance(option, shapes.IntType | shapes.FloatType) and (said := _beyond(value, option)):
        faults.add(node.place, key, f"{_show(value)} {said}")
        return INVALID
    return float(value) if isinstance(option, shapes.FloatType) else value


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
    for name, inner in node.value.items():
        known = fields.get(name)
        if known is None or known.name in given:
            message = f"is not a key here{_nearest(name, fields, given)}"
            faults.add(node.keys[name], prefix + name, message)
        else:
            if (
                value := _decode(inner, _type_of(known, shape), faults, prefix + name)
            ) is not INVALID:
                values[known.name] = value
    for name, known in fields.items():
        if known.required and known.name not in values:
            if name not in node.value:
                faults.add(node.place, prefix + name, "is missing; it must be given")
            values[known.name] = _blank(_type_of(known, shape))
    return shape(**values)


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
    """Return what a field of a Struct holds. It is found out for the keys that a file has, and no
    others: it takes a millisecond for each Struct inside."""
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
    return "; " + (suggest(name, known) or f"the keys are {', '.join(known)}")


class Spot(NamedTuple):
    """A value of a document that is being checked: ``key`` leads to it from the root ``node``.
    ``faulty`` are keys that could not be decoded; what only follows from them is not told.

    spot = Spot(node, faults).inside("components", 0)
    spot.fault("is empty; name it", "component")     # plan.yaml:7: components[0].component: ...
    """

    node: YamlNode
    faults: Faults
    faulty: Faulty = Faulty()
    key: tuple[Step, ...] = ()

    def inside(self, *key: Step) -> "Spot":
        return self._replace(key=(*self.key, *key))

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
