"""Drills: something is stopped on purpose, and it is measured for how long nothing went on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from seatrial.hooks import CheckKind, JobPart, Key, OutputFormat, ShippedSuite, hookimpl, load
from seatrial.model.file_model import Duration, doc

_HERE = "seatrial.plugins.drills"


@hookimpl
def seatrial_keys() -> list[Key]:
    drill = load(f"{_HERE}.keys:Drill")
    variables = load(f"{_HERE}.keys:Variables")
    about = doc("what is stopped while its script runs, and watched")
    of_test = Annotated[drill | None, about]  # type: ignore[valid-type]
    of_machine = doc("variables that a drill has on this machine, by the name of its test")
    return [
        Key("test", "drill", of_test, None, f"{_HERE}.run:check"),
        Key("machine", "drills", Annotated[variables, of_machine], {}),
    ]


@hookimpl
def seatrial_job_parts() -> list[JobPart]:
    return [JobPart(f"{_HERE}.run:lines", f"{_HERE}.run:prepare")]


@hookimpl
def seatrial_output_formats() -> list[OutputFormat]:
    return [OutputFormat("drill", f"{_HERE}.run")]


@hookimpl
def seatrial_checks() -> list[CheckKind]:
    stops = doc(
        "that the drill went as it should, and the longest time for which each of its probes (and "
        "`load`, the script's own operations) may have had no good operation: `{write: 30s}`"
    )
    return [CheckKind("drill", Annotated[dict[str, Duration], stops], f"{_HERE}.run:fault")]


@hookimpl
def seatrial_suites() -> list[ShippedSuite]:
    return [ShippedSuite("drills", Path(__file__).with_name("suite"))]
