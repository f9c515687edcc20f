"""An event: one immutable fact with a time, about a run or a trial; one line of JSON each."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class Event(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """``time`` is in nanoseconds since the epoch, UTC. ``value`` is a number for codes and figures.

    ``case`` and ``run_id`` are empty for events about the trial or a build; a build's ``path`` is
    its directory and its ``alias`` the build's key. ``unit`` and ``better`` belong to metrics.
    """

    time: int
    event: str
    trial: str = ""
    machine: str = ""
    app: str = ""
    test: str = ""
    case: str = ""
    run_id: str = ""
    value: int | float | str | None = None
    alias: str = ""
    text: str = ""
    path: str = ""
    job_id: str = ""
    nodes: str = ""
    unit: str = ""
    better: str = ""


encode = msgspec.json.Encoder().encode
decode = msgspec.json.Decoder(Event).decode
