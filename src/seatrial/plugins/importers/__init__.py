"""Suites and results of other harnesses: OTH, ReFrame, Pavilion, JUBE, tables."""

from __future__ import annotations

from seatrial.hooks import Command, hookimpl


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "import",
            "seatrial.plugins.importers.commands:import_",
            "Bring in the tests or results of another harness.",
            "Keep and exchange data",
        ),
    ]
