"""What a machine file says of the jobs of others (``usage:``), and the files that it names."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Struct
from msgspec.structs import replace

from seatrial.hooks import value_of
from seatrial.model.documents import Location
from seatrial.model.file_model import Duration, FileModel, checked, doc
from seatrial.model.moments import zone_of

FILES = ("fields", "applications", "charges")
"""The keys that name files; paths start at the folder of the machine file."""


class UsageSettings(FileModel, frozen=True):
    """What is known of the jobs of others, and what may be shown of them."""

    names_on_pages: Annotated[
        bool, doc("show names of users on pages, in files and in reports, too")
    ] = False
    anonymous: Annotated[
        bool, doc("import all jobs as with `--anonymous`: names of users are not kept")
    ] = False
    keep: Annotated[
        Duration | None, doc("how long jobs are kept after their end; default: for ever")
    ] = None
    time_zone: Annotated[
        str,
        checked(zone_of),
        doc("time zone of months, such as Europe/Berlin; default: that of the host that is asked"),
    ] = ""
    fields: Annotated[str, doc("file that gives accounts or users their field of science")] = ""
    applications: Annotated[str, doc("file of patterns by which applications are known")] = ""
    charges: Annotated[str, doc("file of what is charged: factors by nodes, size, queue, date")] = (
        ""
    )


def check(machine: Struct, at: Location) -> None:
    """Add the faults of the key: files that are not there."""
    settings = value_of(machine, "usage", UsageSettings)
    for key in FILES:
        named = getattr(settings, key)
        if named and not (path := _beside(named, at.inside(key))).is_file():
            at.fault(f"{path} is no file; paths start at the folder of the machine file", key)


def with_paths(settings: UsageSettings, at: Location) -> UsageSettings:
    """Return the settings with absolute paths of their files."""
    named = {key: getattr(settings, key) for key in FILES}
    paths = {key: str(_beside(name, at.inside(key))) for key, name in named.items() if name}
    return replace(settings, **paths)


def _beside(name: str, at: Location) -> Path:
    """Return the absolute path of a file that the machine file names."""
    return (at.node.place_of(*at.key).path.parent / name).absolute()
