"""What a test's file says of a drill, and a machine's file of how it is done there."""

from __future__ import annotations

import re
from typing import Annotated

from seatrial.model.file_model import Duration, FileModel, checked, doc, filled

LOAD = "load"
"""Stands for the operations of the test's script in bounds, beside the probes."""

_KILL_SECONDS = 5.0  # after act_limit, by drill.sh

_NAME = r"[a-z][a-z0-9_-]{0,31}"
_VARIABLE = r"[A-Za-z][A-Za-z0-9_]*"


def _is_probe(name: str) -> None:
    if not re.fullmatch(_NAME, name) or name == LOAD:
        raise ValueError(f"{name!r} is no name of a probe; use letters, digits, - and _, not load")


def _is_variable(name: str) -> None:
    if not re.fullmatch(_VARIABLE, name):
        raise ValueError(f"{name!r} is no name of a variable")


Variables = dict[str, dict[Annotated[str, checked(_is_variable)], str]]


class Drill(FileModel, frozen=True):
    """Something that is stopped while the script of the test runs, the load. Probes watch on the
    first node of the run, from before the act until all has gone on for a while."""

    act: Annotated[
        Annotated[str, filled("say what is done")],
        doc("bash that stops something, and may start it again"),
    ]
    undo: Annotated[
        Annotated[str, filled("say what brings back what the act stops; `true`: it does itself")],
        doc("bash that brings everything back; it runs after the act, however that ended"),
    ]
    watch: Annotated[
        dict[Annotated[str, checked(_is_probe)], str],
        doc("probes by name, one or more: bash that ends with 0 if what it asks for went well"),
    ]
    every: Annotated[Duration, doc("time from one look of a probe to the next")] = Duration("1s")
    slow: Annotated[Duration, doc("an operation that takes longer is part of a stop")] = Duration(
        "2s"
    )
    before: Annotated[Duration, doc("time for which all must go well before the act")] = Duration(
        "10s"
    )
    act_limit: Annotated[Duration, doc("maximum time of act and of undo; then it is ended")] = (
        Duration("2m")
    )
    quiet: Annotated[Duration, doc("time for which all must go well before the end")] = Duration(
        "10s"
    )
    give_up: Annotated[Duration, doc("maximum time of waiting for that, twice")] = Duration("5m")

    @property
    def longest(self) -> float:
        """The seconds that it can take at most, without the script's own end."""
        waits = self.act_limit.seconds + _KILL_SECONDS + self.give_up.seconds
        return 2 * (self.before.seconds + waits)
