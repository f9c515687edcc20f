"""What a machine's file says of compat jobs."""

from __future__ import annotations

import re
from typing import Annotated, Literal

from seatrial.model.file_model import Duration, FileModel, checked, doc

_QUORUM = r"[1-9][0-9]{0,6}|([1-9][0-9]?|100)%"
_VARIABLES = r"(?=\**[A-Za-z_])[A-Za-z0-9_*]+"


def check_quorum(quorum: int | str) -> None:
    """Raise ValueError if this is no quorum of a compat job."""
    if not re.fullmatch(_QUORUM, str(quorum)):
        raise ValueError(f"{quorum!r} is no quorum; write a number of nodes, or 1% to 100%")


def check_variables(pattern: str) -> None:
    """Raise ValueError if this names no variables for the nodes of a compat job. ``*`` stands for
    any letters, anywhere but alone."""
    if not re.fullmatch(_VARIABLES, pattern):
        text = "is no name of variables; write e.g. LM_LICENSE_FILE or FLUENT_*"
        raise ValueError(f"{pattern!r} {text}")


class Compat(FileModel, frozen=True):
    """How the nodes of a compat job become a cluster of hosts with ssh."""

    mode: Annotated[
        Literal["shim", "sshd"],
        doc("shim: ssh is a step of the job; sshd: an sshd on each node, for this job alone"),
    ] = "shim"
    port: Annotated[int, doc("first port that sshd tries", ge=1024, le=65_000)] = 22422
    wait: Annotated[
        Duration,
        doc(
            "time within which all nodes of a job must answer; else the run has the verdict "
            "`boot failure`"
        ),
    ] = Duration("30s")
    quorum: Annotated[
        Annotated[int | str, checked(check_quorum)],
        doc("number of nodes that is enough, or per cent of them, such as 95%"),
    ] = "100%"
    environment: Annotated[
        list[Annotated[str, checked(check_variables)]],
        doc(
            "further variables that programs get on the nodes: names, and patterns in which `*` "
            "stands for any letters, such as `FLUENT_*`"
        ),
    ] = []
