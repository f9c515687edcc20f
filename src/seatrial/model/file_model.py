"""What all files that people write have in common, as the Structs that are their shape say it.

A quantity is a type of its own. The decoder makes it where it stands, so a fault has its line, and
the Struct holds what it means:

    class Gauge(FileModel, frozen=True):
        every: Annotated[Duration, doc("time between two readings")] = Duration("30s")

    gauge.every.seconds     # 30.0
    str(gauge.every)        # 30s, as on disk and in messages

A text that has rules and stays a text is ``Annotated[str, checked(rule)]``.
"""

import re
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any, ClassVar, Literal, Self, TypeVar

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import fields

from seatrial.units import bytes_of, seconds, share_of, span_of


def doc(text: str, **limits: Any) -> Meta:
    """Return the description of a key, as its JSON Schema has it, and the limits of its value. The
    limits of a key that may be None stand inside, at the type that they limit:

    Annotated[Annotated[int, Meta(ge=1)] | None, doc("maximum runs in flight")]
    """
    return Meta(description=text, **limits)


def checked(rule: Callable[[Any], object]) -> Meta:
    """Return a rule for a value that is kept as written: it raises ValueError with a remedy."""
    return Meta(extra={"rule": rule})


NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")

Scalar = str | int | float | bool
Unit = Annotated[
    str,
    doc(
        "unit of the figure, such as MB/s; 1 for none",
        extra={"also": 1},
        extra_json_schema={"type": ["string", "integer"]},
    ),
]


WrittenDuration = Annotated[int | float | str, doc("seconds, or e.g. 90s, 5m, 1h30m")]
WrittenShare = Annotated[int | float | str, doc("a share, such as 0.05 or 5%")]


class Quantity:
    """A value that a person wrote, and what it means. On disk and in messages it is as written.
    Its class raises ValueError, with a remedy, for what is none."""

    #: What it is written in.
    form: ClassVar[Any]

    __slots__ = ("written",)
    _nothing: ClassVar[dict[type, Any]] = {}

    def __new__(cls, written: int | float | str) -> Self:
        """Make a value. Of each class there is one 0, as of numbers: a Struct on disk leaves out
        what is the very default of its key."""
        made = super().__new__(cls)
        return Quantity._nothing.setdefault(cls, made) if _is_zero(written) else made

    def __init__(self, written: int | float | str) -> None:
        self.written = written

    def __reduce__(self) -> tuple[type, tuple[int | float | str]]:
        return type(self), (self.written,)

    def __str__(self) -> str:
        return str(self.written)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.written!r})"

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self) and other.written == self.written

    def __hash__(self) -> int:
        return hash(self.written)


class Duration(Quantity):
    """A time of more than nothing: ``90s``."""

    form = WrittenDuration
    __slots__ = ("seconds",)

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        self.seconds = seconds(written)


class Span(Quantity):
    """A time that may be 0."""

    form = WrittenDuration | int
    __slots__ = ("seconds",)

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        self.seconds = span_of(written)


class Size(Quantity):
    """A number of bytes: ``64MiB``."""

    form = Annotated[int | str, doc("bytes, or e.g. 64MiB")]
    __slots__ = ("bytes",)

    def __init__(self, written: int | str) -> None:
        super().__init__(written)
        self.bytes = bytes_of(written)


class Share(Quantity):
    """A share: ``0.05`` or ``5%``."""

    form = WrittenShare
    __slots__ = ("fraction",)

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        self.fraction = share_of(written)


def _is_zero(written: int | float | str) -> bool:
    return type(written) is int and written == 0


def as_written(value: object) -> object:
    """Return what stands for a quantity on disk: msgspec's hook of encoders."""
    if isinstance(value, Quantity):
        return value.written
    raise NotImplementedError(f"{type(value)} has no JSON")


def from_written(kind: type, written: object) -> object:
    """Return the quantity that is written on disk: msgspec's hook of decoders."""
    return kind(written)


def notes_of(shape: type[Struct], name: str) -> dict[str, Any]:
    """Return what stands at the fields of a Struct under a name, by their keys: that of
    ``Annotated[int, Meta(extra={"of_kind": "once"})]`` is ``once``."""
    return {
        field.encode_name: meta.extra[name]
        for field in fields(shape)
        for meta in getattr(field.type, "__metadata__", ())
        if isinstance(meta, Meta) and meta.extra and name in meta.extra
    }


# ---- texts with rules ----------------------------------------------------------------------------


def _is_name(text: str) -> None:
    if not NAME.fullmatch(text):
        raise ValueError("a name must be letters, digits, ._-")


def is_absolute(path: str) -> None:
    """Raise ValueError if a path is not absolute."""
    if not Path(path).is_absolute():
        raise ValueError(f"{path!r} is no absolute path")


def filled(remedy: str = "") -> Meta:
    """Return the rule that a text is not empty."""

    def rule(text: str) -> None:
        if not text.strip():
            raise ValueError(f"is empty; {remedy}" if remedy else "is empty")

    return checked(rule)


def part_of(whole: str) -> Meta:
    """Return the rule that a share is at most the whole."""

    def rule(written: int | float | str) -> None:
        if share_of(written) > 1:
            raise ValueError(f"{written} is more than {whole}")

    return checked(rule)


PartOfAll = Annotated[Share, part_of("100%")]
Name = Annotated[str, checked(_is_name)]
AbsolutePath = Annotated[str, checked(is_absolute)]
FolderOrNone = Annotated[str, checked(lambda path: path and is_absolute(path))]


class FileModel(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Part of a file that a person writes."""


# ---- JSON ----------------------------------------------------------------------------------------
#
# JSON of values that may hold quantities, and decoders, each made once.
#
#     try:
#         record = decoder(Record).decode(text)
#     except DAMAGED as error: ...
#
# msgspec 0.22 crashes if two threads build the decoder of one type, so they are built under a lock.


T = TypeVar("T")

# What the text of no value raises: a damaged one, one of something else, one nested too deeply.
DAMAGED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_making = threading.Lock()
_made: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type. One at a time is made, as types may hold the same others."""
    with _making:
        if kind not in _made:
            _made[kind] = msgspec.json.Decoder(kind, dec_hook=from_written)
        return _made[kind]


def encode(value: object, order: Literal["deterministic", "sorted"] | None = None) -> bytes:
    """Return the JSON of a value that may hold quantities: they are as written."""
    return msgspec.json.encode(value, enc_hook=as_written, order=order)


def plain(value: object) -> Any:
    """Return a value in the types of JSON alone: mappings, lists, texts and numbers."""
    return msgspec.to_builtins(value, enc_hook=as_written)


def typed(value: object, kind: type[T]) -> T:
    """Return the value of a type that ``plain`` wrote. Raises msgspec.ValidationError."""
    return msgspec.convert(value, kind, dec_hook=from_written)
