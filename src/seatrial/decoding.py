"""Decoders of JSON, each made once, and by one thread.

try:
    record = decoder(Record).decode(text)
except DAMAGED as error: ...

What msgspec knows of a Struct it makes when the type is first decoded, and it lets other threads
use that before it is whole: the process then dies of a segmentation fault (seen with 0.22).
"""

import threading
from typing import Any, TypeVar

import msgspec

T = TypeVar("T")

# What the text of no value raises: a damaged one, one of something else, one nested too deeply.
DAMAGED = (msgspec.DecodeError, UnicodeDecodeError, RecursionError)

_making = threading.Lock()
_made: dict[type[Any], msgspec.json.Decoder[Any]] = {}


def decoder(kind: type[T]) -> msgspec.json.Decoder[T]:
    """Return the decoder of a type. One at a time is made, as types may hold the same others."""
    with _making:
        if kind not in _made:
            _made[kind] = msgspec.json.Decoder(kind)
        return _made[kind]
