"""Compat jobs: jobs whose nodes look like a cluster of hosts with ssh. Bash, and what writes it."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import Command, JobPart, Key, LauncherKind, hookimpl, load
from seatrial.model.file_model import doc


@hookimpl
def seatrial_launchers() -> list[LauncherKind]:
    arguments = "seatrial.execute.launchers:mpi_arguments"
    return [LauncherKind("compat", arguments, orders=True)]


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "compat",
            "seatrial.plugins.compat.commands:compat",
            "Run a command in a job that looks like a cluster.",
            "Describe the machine",
        ),
    ]


@hookimpl
def seatrial_keys() -> list[Key]:
    compat = load("seatrial.plugins.compat.keys:Compat")
    about = doc("how nodes of a compat job are reached")
    shape = Annotated[compat, about]  # type: ignore[valid-type]
    return [Key("machine", "compat", shape, compat())]


@hookimpl
def seatrial_job_parts() -> list[JobPart]:
    run = "seatrial.plugins.compat.run"
    return [JobPart(f"{run}:job_lines", f"{run}:prepare")]
