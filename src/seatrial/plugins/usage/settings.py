"""The settings of a machine for the jobs of others, by its name."""

from __future__ import annotations

from seatrial.errors import UsageError
from seatrial.hooks import value_of
from seatrial.model.machine import Machine
from seatrial.model.machine_file import described, is_path, load_machine, machine_file
from seatrial.plugins.usage.keys import UsageSettings


def machine_of(name: str) -> Machine | None:
    """Return the machine of that name or file; None if no file describes it: jobs can be asked of a
    machine that Seatrial has never run on. Raises InvalidFiles."""
    if not is_path(name) and name not in described():
        return None
    file = machine_file(name)
    return None if file is None else load_machine(file).machine


def settings_of(name: str) -> UsageSettings:
    """Return the settings of the machine of that name or file; the defaults if no file describes
    it. Raises InvalidFiles."""
    machine = machine_of(name)
    return UsageSettings() if machine is None else value_of(machine, "usage", UsageSettings)


def name_of_machine(given: str | None) -> str:
    """Return the name of the machine that was given by name or file. Raises UsageError."""
    if not given:
        raise UsageError("no machine; name it with -m MACHINE")
    machine = machine_of(given)
    return given if machine is None else machine.machine
