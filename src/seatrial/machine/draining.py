"""Nodes that Slurm gives no jobs: which, on whose word; drain a node, and return it.

    states()["n004"].away                       # True: down, drained, in maintenance, ...
    drain(["n004"], "pcie-width")               # Reason=seatrial: pcie-width

A node is drained with a note that begins ``seatrial: ``, and only a node with such a note is
returned. What others drained stays as it is. At most a share of the machine is drained so without
a question: a wrong rule, or a fault that all nodes share, must not stop a machine.
"""

import math
from collections.abc import Collection
from typing import NamedTuple

from seatrial.lazy import regex
from seatrial.machine.detect_slurm import ask_slurm, fields_of
from seatrial.machine.node_sets import fold

NOTE = "seatrial:"
LONGEST_NOTE = 200
MOST = 0.05  # of the nodes of a machine

_REASON = regex(r"\sReason=(.*?)(?:\s\[[^\[\]]*\])?\s*(?:\s[A-Z][A-Za-z]*=.*)?$")
_AWAY = regex(r"DOWN|DRAIN|FAIL|MAINT|NOT_RESPONDING|POWER|REBOOT|FUTURE|UNKNOWN|\*")


class DrainState(NamedTuple):
    """Whether Slurm gives a node no jobs now, whether it is drained, and if our note drained it,
    that note: ``seatrial: pcie-width``."""

    away: bool
    drained: bool
    note: str = ""

    @property
    def reasons(self) -> list[str]:
        """The reasons in our note: names of rules."""
        return [each.strip() for each in self.note.removeprefix(NOTE).split(",")]


def states() -> dict[str, DrainState]:
    """Return the state of each node. Raises UsageError if Slurm does not answer."""
    found = {}
    for line in ask_slurm("scontrol", "show", "node", "--oneliner").splitlines():
        fields = fields_of(line)
        if name := fields.get("NodeName"):
            state = fields.get("State", "")
            drained = "DRAIN" in state
            note = ""
            if drained and fields.get("Reason", "") == NOTE:
                told = _REASON.search(line)
                note = told[1] if told else NOTE
            found[name] = DrainState(bool(_AWAY.search(state)), drained, note)
    return found


def limit_of(nodes: int, most: float = MOST) -> int:
    """Return how many of a machine's nodes may be drained without a question: at least one."""
    return max(1, math.floor(nodes * most + 1e-9))


def drain(nodes: Collection[str], reason: str) -> None:
    """Drain nodes with our note. Raises UsageError if Slurm refuses, as it does to most users."""
    note = f"{NOTE} {reason}"[:LONGEST_NOTE]
    ask_slurm("scontrol", "update", f"NodeName={fold(nodes)}", "State=DRAIN", f"Reason={note}")


def resume(nodes: Collection[str]) -> None:
    """Return nodes that our note drained. Raises UsageError if Slurm refuses."""
    ask_slurm("scontrol", "update", f"NodeName={fold(nodes)}", "State=RESUME")
