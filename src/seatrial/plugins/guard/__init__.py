"""Programs that are made for something else, and users over a quota, are refused."""

from __future__ import annotations

from seatrial.hooks import Command, hookimpl


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "guard",
            "seatrial.plugins.guard.command:command",
            "Tell what programs are made for; refuse wrong ones.",
            "Describe the machine",
        ),
        Command(
            "quota",
            "seatrial.plugins.guard.quota_command:command",
            "Let Slurm refuse jobs of users over a quota.",
            "Describe the machine",
        ),
    ]
