"""Structs and named tuples made of others."""

from typing import Any, TypeVar

S = TypeVar("S")

_MISSING: Any = object()


def copied(kind: type[S], source: object, /, **others: Any) -> S:
    """Return a Struct or named tuple of this kind with the ``others``; each further field has the
    value of the attribute of that name of ``source``, or its default where that has none."""
    fields = getattr(kind, "_fields", ()) or getattr(kind, "__struct_fields__", ())
    values = {
        name: value
        for name in fields
        if name not in others and (value := getattr(source, name, _MISSING)) is not _MISSING
    }
    return kind(**values, **others)
