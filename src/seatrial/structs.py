"""Structs and named tuples made of others."""

from typing import Any, TypeVar

S = TypeVar("S")


def copied(kind: type[S], source: object, /, **others: Any) -> S:
    """Return a Struct or named tuple of this kind with the ``others``; each further field has the
    value of the attribute of that name of ``source``, or its default where that has none."""
    fields = getattr(kind, "_fields", ()) or getattr(kind, "__struct_fields__", ())
    names = [name for name in fields if hasattr(source, name)]
    return kind(**{name: getattr(source, name) for name in names if name not in others}, **others)
