"""The facts of nodes, and rules that judge them."""

from __future__ import annotations

from pathlib import Path

from seatrial.hooks import Command, FactSource, FileKind, WebPage, hookimpl


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "facts",
            "seatrial.plugins.facts.commands:facts",
            "Collect the facts of nodes; show which nodes differ.",
            "Describe the machine",
        ),
        Command(
            "lint",
            "seatrial.plugins.facts.commands:lint",
            "Judge the facts of nodes by rules, each with its source.",
            "Describe the machine",
        ),
        Command(
            "check",
            "seatrial.plugins.facts.commands:check",
            "Check nodes by rules; drain those with findings.",
            "Describe the machine",
        ),
        Command(
            "lnet",
            "seatrial.plugins.facts.commands:lnet",
            "Write the configuration of LNet from a routing plan.",
            "Describe the machine",
        ),
    ]


@hookimpl
def seatrial_pages() -> list[WebPage]:
    return [
        WebPage("/facts", "machines", "seatrial.plugins.facts.page:data", "facts.html", form=True),
    ]


@hookimpl
def seatrial_collectors() -> list[str]:
    return ["seatrial.plugins.facts.collector:FactsReader"]


@hookimpl
def seatrial_rules() -> list[Path]:
    return sorted((Path(__file__).parent / "shipped").glob("*.yaml"))


@hookimpl
def seatrial_fact_sources() -> list[FactSource]:
    changed = "seatrial.plugins.facts.changed"
    return [FactSource(f"{changed}:facts_changed", f"{changed}:with_facts", f"{changed}:slow")]


@hookimpl
def seatrial_files() -> list[FileKind]:
    return [
        FileKind("rules", "Rules over facts of nodes", "seatrial.judge.log_rules:RuleFile"),
        FileKind("routing", "Routing plans of LNet", "seatrial.plugins.facts.routing:RoutingPlan"),
    ]
