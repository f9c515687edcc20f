"""Compat jobs: jobs whose nodes look like a cluster of hosts with ssh. Bash, and what writes it."""

from __future__ import annotations

from seatrial.hooks import Command, hookimpl

# ---- compat --------------------------------------------------------------------------------------
#
# Jobs whose nodes look like a cluster of hosts with ssh.


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "compat",
            "seatrial.plugins.compat.command:command",
            "Run a command in a job that looks like a cluster.",
            "Describe the machine",
        ),
    ]
