"""File systems: what was promised of them, and what is found."""

from __future__ import annotations

import re
from typing import Annotated

from seatrial.hooks import Command, Key, Option, Study, hookimpl
from seatrial.model.file_model import Quantity, checked, doc
from seatrial.units import unfit

_PROMISED = "seatrial.plugins.filesystems.promised"

_FIGURE = r"(\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?)(?:\s+|(?=[A-Za-z]))(\S{1,40})"
_LONGEST = 80


class Advertised(Quantity):
    """A figure that was promised: ``50 GB/s``."""

    form = Annotated[int | float | str, doc("a number above 0 and its unit: 50 GB/s, 50000 1/s")]
    __slots__ = ("unit", "value")

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        text = str(written).strip()[:_LONGEST]
        match = re.fullmatch(_FIGURE, text)
        if not match:
            raise ValueError(f"{text!r} is no figure with a unit; write e.g. 50 GB/s or 50000 1/s")
        self.value, self.unit = float(match[1]), match[2]
        if fault := "not more than 0" if self.value <= 0 else unfit(self.value):
            raise ValueError(f"{text!r} is {fault}; write what was promised, e.g. 50 GB/s")


def _is_metric(name: str) -> None:
    if not name.strip() or not name.isprintable() or "{" in name or "/" in name:
        raise ValueError(f"{name!r} is no name of a metric; write e.g. write, read or file_create")


AdvertisedName = Annotated[str, checked(_is_metric)]


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


_FILE_SYSTEMS = """\
Show each file system: what was promised of it and the best that was found, sweeps, drills.

The best is the best median of a case: of several cases the best one looks better than it is,
so it is no more than a beginning; `seatrial best` and `seatrial io sweep` tell more.

\b
seatrial filesystems
seatrial filesystems --machine frost --format json
"""


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
            about=_FILE_SYSTEMS,
        )
    ]
