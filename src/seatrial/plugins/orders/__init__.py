"""Rank orders for MPI libraries, and the patterns of communication behind them."""

from __future__ import annotations

from seatrial.hooks import Command, PageAddition, hookimpl


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "pattern",
            "seatrial.plugins.orders.commands:pattern",
            "Record which rank sends how much to which.",
            "Describe the machine",
        ),
        Command(
            "order",
            "seatrial.plugins.orders.commands:order",
            "Write a rank order for an MPI library or Slurm.",
            "Describe the machine",
        ),
    ]


@hookimpl
def seatrial_page_additions() -> list[PageAddition]:
    data = "seatrial.plugins.orders.run_pattern:on_run"
    return [PageAddition("run", data, "pattern.html")]


@hookimpl
def seatrial_collectors() -> list[str]:
    return ["seatrial.plugins.orders.patterns:PatternReader"]
