"""JSON of values that may hold quantities (``file_model``), and decoders, each made once.

    try:
        record = decoder(Record).decode(text)
    except DAMAGED as error: ...

msgspec 0.22 crashes if two threads build the decoder of one type, so they are built under a lock.
"""

import threading
from typing import Any, Literal, TypeVar

import msgspec

from seatrial.model.file_model import as_written, from_written

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
