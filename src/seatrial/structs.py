"""Structs made of others."""

from __future__ import annotations

from typing import Any, TypeVar

from msgspec import Struct

S = TypeVar("S", bound=Struct)


def copied(kind: type[S], source: object, /, **others: Any) -> S:
    """Return a Struct of this kind with the ``others``; each further field has the value of the
    attribute of that name of ``source``, or its default where that has none."""
    names = [name for name in kind.__struct_fields__ if hasattr(source, name)]
    return kind(**{name: getattr(source, name) for name in names if name not in others}, **others)
