"""A plan in virtual time on a simulated machine."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import Command, Key, hookimpl, load
from seatrial.model.file_model import doc

_HERE = "seatrial.plugins.rehearsal"


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "rehearse",
            f"{_HERE}.commands:rehearse",
            "Rehearse a plan in virtual time on a simulated machine.",
            "Accept a machine by a plan",
        ),
    ]


@hookimpl
def seatrial_keys() -> list[Key]:
    keys = f"{_HERE}.keys"
    machine, file_system = load(f"{keys}:MachineModel"), load(f"{keys}:FileSystemModel")
    plan = load(f"{keys}:Rehearsal")
    of_machine = doc("how it behaves when a plan is rehearsed on it")
    of_file_system = doc("its capacity in a rehearsal")
    capacity = Annotated[file_system | None, of_file_system]  # type: ignore[valid-type]
    reading = doc("what it reads in a rehearsal: FILESYSTEM or FILESYSTEM/TARGET")
    of_plan = doc("assumptions of a rehearsal")
    return [
        Key(
            "machine",
            "rehearsal",
            Annotated[machine, of_machine],
            machine(),
            check=f"{_HERE}.check_machine:check_machine",
            resolve=f"{_HERE}.check_machine:with_paths",
        ),
        Key("file_system", "rehearsal", capacity, None),
        Key("gauge", "rehearsal", Annotated[str, reading], ""),
        Key(
            "plan",
            "rehearsal",
            Annotated[plan, of_plan],
            plan(),
            check=f"{_HERE}.check_plan:check_plan",
        ),
    ]
