"""The sinks to which a machine's trials send their events (``sinks:`` in its file)."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta

from seatrial.file_model import Duration, FileModel, Size


class Sink(FileModel, frozen=True):
    """A target that receives the events of every trial of a machine."""

    name: Annotated[str, Meta(description="its name: letters, digits, _-")]
    kind: Literal["influxdb", "webhook", "file"]
    url: Annotated[
        str,
        Meta(description="http(s)://HOST[:PORT][/PATH], or env:NAME or file:PATH that holds it"),
    ] = ""
    path: Annotated[str, Meta(description="file or FIFO that JSON lines are appended to")] = ""
    database: Annotated[str, Meta(description="database of InfluxDB 1.x")] = ""
    retention: Annotated[str, Meta(description="its retention policy")] = ""
    org: Annotated[str, Meta(description="organisation of InfluxDB 2.x")] = ""
    bucket: Annotated[str, Meta(description="bucket of InfluxDB 2.x")] = ""
    user: Annotated[str, Meta(description="user of InfluxDB 1.x; token is the password")] = ""
    token: Annotated[str, Meta(description="env:NAME or file:PATH that holds the token")] = ""
    oth_compatible: Annotated[
        bool, Meta(description="tags and fields exactly as the OLCF Test Harness writes them")
    ] = False
    body: Annotated[
        Literal["lines", "array"], Meta(description="JSON lines, or one JSON array")
    ] = "lines"
    rehearsals: Annotated[bool, Meta(description="also send rehearsals")] = False
    lines: Annotated[int, Meta(description="maximum lines of a request", ge=1, le=100_000)] = 5000
    size: Annotated[Size, Meta(description="maximum bytes of a request")] = "1MiB"
    every: Annotated[Duration, Meta(description="time between two checks for events")] = "2s"
    timeout: Annotated[Duration, Meta(description="maximum time of a request")] = "30s"
    patience: Annotated[
        Duration, Meta(description="time of retries after the end of the trial")
    ] = "1d"
    ca: Annotated[str, Meta(description="file of certificates to trust; default: the host's")] = ""
    verify: Annotated[bool, Meta(description="check the server's certificate")] = True


def path_of(written: str) -> Path:
    """Return a path with the user's home in place of ``~``. It stays as it is if there is no
    home."""
    return Path(os.path.expanduser(written))  # noqa: PTH111 - Path's raises where there is none
