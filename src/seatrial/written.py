"""What all files that people write have in common, as the Structs that are their shape say it."""

from __future__ import annotations

from msgspec import Struct

Scalar = str | int | float | bool


class Written(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Part of a file that a person writes."""
