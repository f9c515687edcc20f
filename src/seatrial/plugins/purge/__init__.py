"""Old files are removed by a policy: plan, warnings, act, audit, and a way back."""

from __future__ import annotations

from seatrial.hooks import Command, FileKind, hookimpl

_HERE = "seatrial.plugins.purge"


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "purge",
            f"{_HERE}.command:command",
            "Remove old files by a policy: plan, act, audit, undo.",
            "Look after file systems",
        ),
    ]


@hookimpl
def seatrial_events() -> list[str]:
    kinds = ("PurgeBegun", "PurgeBatchBegun", "PurgeBatchEnded", "PurgeEnded")
    return [f"{_HERE}.events:{kind}" for kind in kinds]


@hookimpl
def seatrial_files() -> list[FileKind]:
    return [
        FileKind("purge", "purge.yaml", f"{_HERE}.policy:PurgeFile"),
        FileKind("purge-list", "Exceptions of a purge", f"{_HERE}.policy:WhitelistFile"),
    ]
