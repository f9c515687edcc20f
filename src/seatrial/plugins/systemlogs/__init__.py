"""System logs of the nodes of runs: what they had in the window of each run, by rule and shape."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import (
    Command,
    FactSource,
    Key,
    Option,
    PageAddition,
    StoreTable,
    Study,
    hookimpl,
    load,
)
from seatrial.model.file_model import doc

_FINDINGS = "seatrial.plugins.systemlogs.findings"
_ROWS = "seatrial.plugins.systemlogs.rows"
_STUDY = "seatrial.plugins.systemlogs.study"


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "syslog",
            "seatrial.plugins.systemlogs.commands:syslog",
            "Print lines of system logs in the window of a run.",
            "Judge results",
        )
    ]


@hookimpl
def seatrial_keys() -> list[Key]:
    keys = "seatrial.plugins.systemlogs.keys"
    about = doc("system logs, which are read in the window of each run")
    sources = Annotated[list[load(f"{keys}:LogSource")], about]  # type: ignore[misc, valid-type]
    return [Key("machine", "logs", sources, [], f"{keys}:check", of_runs=False)]


@hookimpl
def seatrial_events() -> list[str]:
    return ["seatrial.plugins.systemlogs.events:LogsRead"]


@hookimpl
def seatrial_tables() -> list[StoreTable]:
    return [
        StoreTable(
            f"systemlogs_{name}",
            f"{_ROWS}:{name.upper()}",
            event="logs_read",
            rows=f"{_ROWS}:{name}",
            news="SELECT count(*) FROM systemlogs_reads" if name == "reads" else "",
        )
        for name in ("reads", "findings", "shapes", "texts")
    ]


@hookimpl
def seatrial_collectors() -> list[str]:
    return ["seatrial.plugins.systemlogs.collector:LogReader"]


_LOGS = """\
Show what system logs had while runs were under way: by node, rule and hour.

The machine's file names the logs (`logs:`). They are read in the window of each run: from a
little before its start to a little after its end. A line is counted once, however many runs
have it in their windows. Beside rules, shapes of lines are told that no run has which passed;
p is the chance of that, times the number of shapes. Lines themselves are not kept.
"""


@hookimpl
def seatrial_studies() -> list[Study]:
    return [
        Study(
            "logs",
            "System logs",
            "Show what system logs had while runs were under way.",
            f"{_STUDY}:logs",
            (
                Option("machine", "Only of this machine."),
                Option("trial", "Only of runs of this trial."),
                Option("since", "Only of runs since then: 2h, 3d, 2026-05-01."),
                Option("node", "Only of this node, or node set."),
                Option("rule", "Only lines that match this rule."),
                Option(
                    "by",
                    "Count by this; a finding is a node, a rule and an hour.",
                    "finding",
                    choices=("finding", "node", "rule", "hour"),
                ),
                Option("unusual", "Only shapes that no run has which passed.", flag=True),
            ),
            about=_LOGS,
        )
    ]


@hookimpl
def seatrial_page_additions() -> list[PageAddition]:
    return [
        PageAddition("run", f"{_STUDY}:on_run", "logs_of_run.html"),
        PageAddition("machine", f"{_STUDY}:on_machine", "logs_of_machine.html"),
    ]


@hookimpl
def seatrial_fact_sources() -> list[FactSource]:
    functions = ("differences", "unchanged", "slow", "told_of_nodes")
    return [FactSource(*(f"{_FINDINGS}:{name}" for name in functions))]
