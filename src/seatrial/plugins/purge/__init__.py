"""Old files are removed by a policy: plan, warnings, act, audit, and a way back."""

from __future__ import annotations

from seatrial.hooks import Command, FileKind, WebPage, hookimpl

_HERE = "seatrial.plugins.purge"


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "purge",
            f"{_HERE}.commands:purge",
            "Remove old files by a policy: plan, act, audit, undo.",
            "Look after file systems",
        ),
    ]


@hookimpl
def seatrial_events() -> list[str]:
    acts = ("PurgeBegun", "PurgeBatchBegun", "PurgeBatchEnded", "PurgeEnded")
    return [f"{_HERE}.events:{kind}" for kind in (*acts, "PurgeWarning", "PurgeWarned")]


@hookimpl
def seatrial_files() -> list[FileKind]:
    return [
        FileKind("purge", "purge.yaml", f"{_HERE}.policy:PurgeFile"),
        FileKind("purge-list", "Exceptions of a purge", f"{_HERE}.policy:WhitelistFile"),
    ]


@hookimpl
def seatrial_pages() -> list[WebPage]:
    data = f"{_HERE}.page:purge"
    return [WebPage("/purge", "purge", data, "study.html", "Purge", rows="lines", form=True)]
