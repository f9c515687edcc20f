"""Tell people that a trial has ended, or could not go on: by the command of ``--alert``."""

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager

import click

from seatrial.errors import Owned, SeatrialError
from seatrial.journal.codes import PASS
from seatrial.runs.shell import Shell
from seatrial.trial.folder import TrialFolder
from seatrial.trial.outcome import DriveOutcome

KIND = "end"
TIMEOUT_SECONDS = 30.0


@contextmanager
def told_if_it_stops(folder: TrialFolder, command: str) -> Iterator[None]:
    """Run the command if the block, which drives a trial, does not come to its end. That another
    process drives the trial is no news."""
    try:
        yield
    except Owned:
        raise
    except SeatrialError as error:
        tell_end(folder, command, f"{folder.tag} cannot go on: {error}", 3)
        raise
    except SystemExit:
        said = "its driver was told to stop; jobs that run go on"
        tell_end(folder, command, f"{folder.tag}: {said}", 3)
        raise


def counts(outcome: DriveOutcome) -> str:
    """Return the verdicts of a drive as people read them: ``9 passed, 1 failed``."""
    verdicts = dict(outcome.verdicts)
    parts = [f"{verdicts.pop(PASS.name, 0)} passed"]
    parts += [f"{number} {name}" for name, number in sorted(verdicts.items())]
    if outcome.left:
        parts.append(f"{outcome.left} left to run")
    return ", ".join(parts)


def outcome_text(folder: TrialFolder, outcome: DriveOutcome) -> str:
    """Return the outcome of a drive in one line."""
    early = "" if outcome.complete else f"; ended before all cases ran: {outcome.reason}"
    return f"{folder.tag}: {counts(outcome)}{early}"


def tell_end(folder: TrialFolder, command: str, text: str, code: int) -> None:
    """Run the command, if there is one, with the text and the exit code in its environment. Say so
    on stderr if it fails."""
    if not command:
        return
    variables = {"ALERT": text, "ALERT_KIND": KIND, "ALERT_SUBJECT": "", "EXIT_CODE": str(code)}
    variables |= {"TRIAL": folder.tag, "MACHINE": folder.record().machine.machine}
    shell = Shell(command, TIMEOUT_SECONDS)
    told = {name: value.replace("\0", "") for name, value in variables.items()}
    if failure := asyncio.run(shell.run(told)).failure:
        click.echo(f"seatrial: the command of --alert fails: {failure}", err=True)
