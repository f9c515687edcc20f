"""What others ran on a machine: its jobs, whoever submitted them, and questions about them."""

from __future__ import annotations

from seatrial.hooks import StoreTable, hookimpl


@hookimpl
def seatrial_tables() -> list[StoreTable]:
    place = "seatrial.plugins.usage"
    return [StoreTable("usage_jobs", f"{place}.jobs:JOBS", f"{place}.archive:fill")]
