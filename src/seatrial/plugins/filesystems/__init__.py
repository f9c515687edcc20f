"""File systems: what was promised of them, and what is found."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import Command, Key, Option, Study, hookimpl
from seatrial.model.file_model import doc
from seatrial.plugins.filesystems.advertised import Advertised, AdvertisedName

_PROMISED = "seatrial.plugins.filesystems.promised"


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "io",
            "seatrial.plugins.filesystems.commands:io",
            "Find the best way to write and read a file system.",
            "Judge results",
        ),
    ]


@hookimpl
def seatrial_promises() -> list[str]:
    return [f"{_PROMISED}:promises"]


@hookimpl
def seatrial_keys() -> list[Key]:
    servers = doc("its object servers, as they were bought; 0: not told", ge=0)
    targets = doc("its object targets, likewise; 0: not told", ge=0)
    figures = doc(
        "what was promised of it, by the names of metrics: `{write: 50 GB/s, creates: 50000 1/s}`. "
        "Tables show what share of it the metrics reach of tests that run on it"
    )
    advertised = Annotated[dict[AdvertisedName, Advertised], figures]
    asked = doc(
        "what is advertised beside a metric, by its name: the name among the file system's figures "
        "(`{total: write}`), that of another one (`{total: scratch/write}`), or `none`; default: "
        "the figure of the same name, of the file system on which the test runs"
    )
    check = f"{_PROMISED}:check_test"
    return [
        Key("test", "advertised", Annotated[dict[str, str], asked], {}, check, of_runs=False),
        Key("file_system", "servers", Annotated[int, servers], 0, of_runs=False),
        Key("file_system", "object_targets", Annotated[int, targets], 0, of_runs=False),
        Key("file_system", "advertised", advertised, {}, of_runs=False),
    ]


@hookimpl
def seatrial_studies() -> list[Study]:
    return [
        Study(
            "filesystems",
            "File systems",
            "Show what was promised of file systems and what was found.",
            "seatrial.plugins.filesystems.study:file_systems",
            (Option("machine", "Only those of this machine."),),
            "Look after file systems",
        )
    ]
