"""Ask a scheduler of this host by one of its commands, and describe the nodes that it shows."""

import shutil
import subprocess
from collections.abc import Iterable

from msgspec.structs import replace

from seatrial.decoding import encode
from seatrial.errors import UsageError
from seatrial.machine.model import NodeGroup
from seatrial.machine.node_sets import fold

PATIENCE_SECONDS = 20.0


def ask_scheduler(scheduler: str, daemon: str, *command: str) -> str:
    """Return the output of a command of a scheduler, whose ``daemon`` answers it. Raises UsageError
    if it fails."""
    line = " ".join(command)
    if shutil.which(command[0]) is None:
        remedy = f"load {scheduler}'s module, or go to a login node"
        raise UsageError(f"{command[0]} is not on PATH, so there is no {scheduler} here; {remedy}")
    try:
        done = subprocess.run(
            command, capture_output=True, timeout=PATIENCE_SECONDS, stdin=subprocess.DEVNULL
        )
    except subprocess.TimeoutExpired:
        message = f"{line}: no answer within {PATIENCE_SECONDS:g} s; is {daemon} up? Try again"
        raise UsageError(message) from None
    except OSError as error:
        raise UsageError(f"{line}: cannot be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode(errors="replace").strip()[:400] or "it said nothing"
        raise UsageError(f"{line}: ended with code {done.returncode}: {said}")
    return done.stdout.decode(errors="replace")


def by_kind(nodes: Iterable[tuple[str, NodeGroup]]) -> list[NodeGroup]:
    """Return nodes, given as (name, its kind without names), by kind."""
    alike: dict[bytes, tuple[NodeGroup, list[str]]] = {}
    for name, kind in nodes:
        alike.setdefault(encode(kind), (kind, []))[1].append(name)
    return [replace(kind, names=fold(names)) for kind, names in alike.values()]
