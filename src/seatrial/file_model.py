"""What all files that people write have in common, as the Structs that are their shape say it."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Scalar = str | int | float | bool
Duration = Annotated[int | float | str, Meta(description="seconds, or e.g. 90s, 5m, 1h30m")]
Size = Annotated[int | str, Meta(description="bytes, or e.g. 64MiB")]
Share = Annotated[int | float | str, Meta(description="a share, such as 0.05 or 5%")]


class FileModel(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Part of a file that a person writes."""
