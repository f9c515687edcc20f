"""Programs that are made for something else, and users over a quota, are refused."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import Command, FileKind, Key, hookimpl
from seatrial.model.file_model import FolderOrNone, doc


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "guard",
            "seatrial.plugins.guard.commands:guard",
            "Tell what programs are made for; refuse wrong ones.",
            "Describe the machine",
        ),
        Command(
            "quota",
            "seatrial.plugins.guard.commands:quota",
            "Let Slurm refuse jobs of users over a quota.",
            "Describe the machine",
        ),
    ]


@hookimpl
def seatrial_keys() -> list[Key]:
    about = doc("folder of `seatrial guard write`; runs that it refuses are not submitted")
    return [Key("machine", "guard", Annotated[FolderOrNone, about], "")]


@hookimpl
def seatrial_guards() -> list[str]:
    return ["seatrial.plugins.guard.watch:guard_of"]


@hookimpl
def seatrial_files() -> list[FileKind]:
    guard = "seatrial.plugins.guard"
    return [
        FileKind("guard", "guard.yaml", f"{guard}.launch_rules:LaunchRuleFile"),
        FileKind("submit", "submit.yaml", f"{guard}.quota:SubmitRules"),
    ]
