"""The network between nodes, judged by what all pairs of them reach."""

from __future__ import annotations

from seatrial.hooks import Command, CriterionKind, PageAddition, WebPage, hookimpl


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "network",
            "seatrial.plugins.network.commands:network",
            "Judge an all-pairs matrix and the impact of congestion.",
            "Judge results",
        ),
    ]


@hookimpl
def seatrial_criteria() -> list[CriterionKind]:
    judge = "seatrial.plugins.network.criterion:network"
    return [CriterionKind("network", judge, "count", noun="finding")]


@hookimpl
def seatrial_page_additions() -> list[PageAddition]:
    data = "seatrial.plugins.network.page:on_machine"
    return [PageAddition("machine", data, "levels.html")]


@hookimpl
def seatrial_pages() -> list[WebPage]:
    page = "seatrial.plugins.network.page"
    run = "/network/{trial}/{run_id}"
    return [
        WebPage("/network", "networks", f"{page}:listed", "networks.html", form=True),
        WebPage(run, "networks", f"{page}:data", "network.html", form=True),
        WebPage(f"{run}/cells", "networks", f"{page}:cells"),
    ]


@hookimpl
def seatrial_collectors() -> list[str]:
    return ["seatrial.plugins.network.matrices:MatrixReader"]
