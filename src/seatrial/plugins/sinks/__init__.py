"""Events of trials, sent to InfluxDB, a webhook, by mail or into a file."""

from __future__ import annotations

from seatrial.hooks import Command, hookimpl


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "sink",
            "seatrial.plugins.sinks.command:command",
            "Send a trial's events to InfluxDB, a webhook or a file.",
            "Keep and exchange data",
        ),
    ]
