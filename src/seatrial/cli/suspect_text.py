"""Suspect nodes in plain words, for the commands that report them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click
import msgspec

from seatrial.statistics.suspects import Suspect, Suspects
from seatrial.studies.evidence import NodeEvidence
from seatrial.units import count, listed, show_number
from seatrial.verify.reading import plain_line

MAX_SUSPECTS = 30
LEVEL = 0.05
BESIDE = "chance by these runs alone, but it explains best what the other suspects leave"


def print_suspects(found: Suspects, evidence: NodeEvidence) -> None:
    """Print the suspects with their odds against chance, or why there are none."""
    share = f"{found.bad} of {count(found.runs, 'run')} failed or were slow"
    if more := sum(evidence.left_out.values()):
        share += f" ({count(more, 'run')} more left out, as told below)"
    if found.why:
        click.echo(f"{share}; no node can be accused: {found.why}")
    elif not found.suspects:
        click.echo(f"{share}; no node or group explains that better than chance")
    else:
        click.echo(
            f"{share}; {found.unexplained} of these without any of the suspects "
            f"({found.candidates} nodes and groups compared)"
        )
        for suspect in found.suspects[:MAX_SUSPECTS]:
            click.echo(f"  {_sentence(suspect)}")
        if len(found.suspects) > MAX_SUSPECTS:
            click.echo(f"  and {len(found.suspects) - MAX_SUSPECTS} more")
    _print_left_out(evidence.left_out)


def _sentence(suspect: Suspect) -> str:
    names = plain_line(listed(suspect.names, 8))
    what = "group " if suspect.kind == "group" else ""
    together = " (always together, and not to be told apart)" if len(suspect.names) > 1 else ""
    p = f"p = {suspect.p:.2g}" if suspect.p >= 1e-12 else "p < 1e-12"
    return (
        f"{what}{names}{together}: {suspect.bad} of {count(suspect.runs, 'run')} with it "
        f"went wrong, where chance would give {show_number(suspect.expected)}; {p}, corrected"
        + (f": {BESIDE}" if suspect.p >= LEVEL else "")
    )


def _print_left_out(left_out: Mapping[str, int]) -> None:
    if left_out:
        reasons = ", ".join(f"{number} {plain_line(why)}" for why, number in left_out.items())
        click.echo(f"left out: {count(sum(left_out.values()), 'run')}: {reasons}")


def suspects_record(found: Suspects, evidence: NodeEvidence) -> dict[str, Any]:
    """Return the suspects for JSON."""
    record: dict[str, Any] = msgspec.to_builtins(found)
    return {**record, "left_out": evidence.left_out}
