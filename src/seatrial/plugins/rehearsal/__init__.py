"""A plan in virtual time on a simulated machine."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import Command, Key, hookimpl
from seatrial.model.file_model import doc
from seatrial.plugins.rehearsal.keys import FileSystemModel, MachineModel, Rehearsal


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "rehearse",
            "seatrial.plugins.rehearsal.command:command",
            "Rehearse a plan in virtual time on a simulated machine.",
            "Accept a machine by a plan",
        ),
    ]


@hookimpl
def seatrial_keys() -> list[Key]:
    machine = Annotated[MachineModel, doc("how it behaves when a plan is rehearsed on it")]
    file_system = Annotated[FileSystemModel | None, doc("its capacity in a rehearsal")]
    reading = doc("what it reads in a rehearsal: FILESYSTEM or FILESYSTEM/TARGET")
    plan = Annotated[Rehearsal, doc("assumptions of a rehearsal")]
    place = "seatrial.plugins.rehearsal"
    return [
        Key(
            "machine",
            "rehearsal",
            machine,
            MachineModel(),
            check=f"{place}.check_machine:check_machine",
            resolve=f"{place}.check_machine:with_paths",
        ),
        Key("file_system", "rehearsal", file_system, None),
        Key("gauge", "rehearsal", Annotated[str, reading], ""),
        Key("plan", "rehearsal", plan, Rehearsal(), check=f"{place}.check_plan:check_plan"),
    ]
