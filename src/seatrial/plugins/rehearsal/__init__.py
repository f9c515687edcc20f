"""A plan in virtual time on a simulated machine."""

from __future__ import annotations

from seatrial.hooks import Command, hookimpl


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "rehearse",
            "seatrial.plugins.rehearsal.command:command",
            "Rehearse a plan in virtual time on a simulated machine.",
            "Accept a machine by a plan",
        ),
    ]
