"""What all files that people write have in common, as the Structs that are their shape say it."""

from typing import Annotated, Any

from msgspec import Meta, Struct


def doc(text: str, **limits: Any) -> Meta:
    """Return the description of a key, as its JSON Schema has it, and the limits of its value."""
    return Meta(description=text, **limits)


Scalar = str | int | float | bool
Duration = Annotated[int | float | str, doc("seconds, or e.g. 90s, 5m, 1h30m")]
Size = Annotated[int | str, doc("bytes, or e.g. 64MiB")]
Unit = Annotated[
    str,
    doc(
        "unit of the figure, such as MB/s; 1 for none",
        extra={"also": 1},
        extra_json_schema={"type": ["string", "integer"]},
    ),
]
Share = Annotated[int | float | str, doc("a share, such as 0.05 or 5%")]


class FileModel(Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """Part of a file that a person writes."""
