"""Steering the trials of a plan that are there: pause, extend, abandon, admit; and their standing.

They are found by their own records and nothing else: a running acceptance can be steered even when
its plan, a suite or a document has a fault by now.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from seatrial.cli import Folders
from seatrial.errors import InvalidFiles, UsageError

if TYPE_CHECKING:
    from seatrial.trial.plan_trials import PlanTrial


class Steering:
    """The trials of a plan's components and phases that were asked for (none: all)."""

    def __init__(
        self,
        folders: Folders,
        path: Path,
        name: str,
        components: Sequence[str] = (),
        phases: Sequence[str] = (),
    ) -> None:
        from seatrial.trial.plan_trials import made, plan_name

        self.folders, self.path, self.name = folders, path, name
        found = made(folders.trials, path, name)
        if not found and not path.exists():
            raise UsageError(f"{path}: no such file, and no trial of it in {folders.trials}")
        self.plan = found[0].record.plan if found else plan_name(path) or str(path)
        self.trials = [
            trial
            for trial in found
            if (not components or _component(trial) in components)
            and (not phases or trial.record.phase in phases)
        ]

    def print_status(self, form: str, fault: InvalidFiles) -> int:
        """Where they stand, for a plan that could not be begun now; it is never all met."""
        from seatrial.cli import status_table

        found = [status_table.status_of(trial) for trial in self.trials]
        if not found:
            raise fault
        for text in fault.faults:
            click.echo(f"warning: {text}", err=True)
        status_table.print_status(found, form)
        if form != "json":
            status_table.print_next(found, self._command())
        return status_table.exit_code(found, self.trials) or 3

    def _command(self, *words: str) -> str:
        return command_of(self.folders, self.path, self.name, *words)

    def pause(self) -> int:
        from seatrial.cli.run_driver import ask
        from seatrial.trial.requests import Request

        for trial in self._of_state("open"):
            seen = ask(trial.folder, Request(request="pause"))
            tag = trial.folder.tag
            if seen:
                click.echo(f"{tag}: it is paused; `{self._command()}` goes on.")
            else:
                click.echo(
                    f"{tag}: its driver was asked to pause. What runs is waited for; then "
                    f"`{self._command()}` goes on."
                )
        return 0

    def extend(self, text: str) -> int:
        from seatrial.cli.run_driver import ask
        from seatrial.trial.requests import Request
        from seatrial.units import seconds, show_seconds

        try:
            more = seconds(text)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--extend") from error
        trial = self._one("extended", [t for t in self._timed() if t.state != "abandoned"])
        ask(trial.folder, Request(request="extend", value=more))
        click.echo(f"{trial.folder.tag}: it is given {show_seconds(more)} more.")
        if trial.state == "complete":
            click.echo(f"next   {self._command()}")
        return 0

    def abandon(self, why: str) -> int:
        from seatrial.cli.run_driver import abandon

        trials = [trial for trial in self.trials if trial.state != "abandoned"]
        trial = self._one("abandoned", trials)
        if trial.state == "complete":
            anew = self._command("--name", f"{self.name or self.plan}-b")
            raise UsageError(
                f"{trial.folder.tag}: it has ended and is complete, there is nothing to give up; "
                f"`{anew}` runs it anew"
            )
        return abandon(trial.folder, self.folders, why, self._command())

    def admit(self, whom: str) -> int:
        from seatrial.cli.run_driver import ask
        from seatrial.trial.requests import Request

        trial = self._one("told to admit anything", self._of_state("open"))
        tag = trial.folder.tag
        is_test = whom in trial.record.tests
        shut_out = _stopped(trial, whom) if is_test else self._excluded(trial, whom)
        if not shut_out:
            was = "not stopped" if is_test else "not excluded"
            click.echo(f"{tag}: {whom} is {was}: there is nothing to let back in.")
            return 0
        if ask(trial.folder, Request(request="admit", text=shut_out)):
            click.echo(f"{tag}: {shut_out} is let back in.")
        else:
            click.echo(f"{tag}: its driver was asked to let {shut_out} back in.")
        return 0

    def _excluded(self, trial: PlanTrial, nodes: str) -> str:
        """Those of the nodes that get no more runs, folded."""
        from seatrial.cli.status_table import status_of
        from seatrial.machine.facts import fold, unfold
        from seatrial.plan.phases import names_of

        try:
            asked = unfold(nodes)
        except ValueError as error:
            raise click.BadParameter(str(error), param_hint="--admit") from error
        if unknown := sorted(set(asked) - set(names_of(trial.record.machine))):
            raise UsageError(
                f"--admit {nodes}: {trial.folder.tag} has no node and no test {unknown[0]}; "
                f"its tests are {', '.join(trial.record.tests)}"
            )
        excluded = {name for names, _ in status_of(trial).excluded for name in unfold(names)}
        return fold([name for name in asked if name in excluded])

    def _timed(self) -> list[PlanTrial]:
        return [trial for trial in self.trials if trial.record.policy.duration]

    def _of_state(self, *states: str) -> list[PlanTrial]:
        found = [trial for trial in self.trials if trial.state in states]
        if not found:
            raise UsageError(
                f"nothing of {self.plan} is under way; see {self._command('--status')}"
            )
        return found

    def _one(self, done: str, trials: list[PlanTrial]) -> PlanTrial:
        """The trial that is meant: the only one, else the only one that is under way."""
        under_way = [trial for trial in trials if trial.state == "open"]
        chosen = trials if len(trials) == 1 else under_way
        if len(chosen) == 1:
            return chosen[0]
        if not trials:
            raise UsageError(f"nothing of {self.plan} can be {done}")
        tags = ", ".join(trial.folder.tag for trial in trials)
        raise UsageError(f"say by --component and --phase which is to be {done}: {tags}")


def _stopped(trial: PlanTrial, test: str) -> str:
    """The test, where it is stopped; "" where it runs. Raises UsageError where it cannot be built:
    to let it in would not help."""
    from seatrial.cli.status_table import status_of

    found = status_of(trial)
    if any(part.test == test and part.stopped for part in found.parts):
        return test
    for hold in found.held_back_by:
        if hold.kind == "unbuilt" and test in hold.what.split(", "):
            raise UsageError(
                f"--admit {test}: {trial.folder.tag} has not stopped it: its build failed, and is "
                "not made again; mend it, and begin the plan anew under another --name"
            )
    return ""


def _component(trial: PlanTrial) -> str:
    return trial.record.component.component if trial.record.component else ""


def command_of(folders: Folders, path: Path, name: str, *words: str) -> str:
    """`seatrial accept` on a plan, as one would write it here."""
    import os

    shortest = min(str(path.absolute()), os.path.relpath(path), key=len)
    named = ["--name", name] if name and "--name" not in words else []
    return folders.command("accept", shortest, *named, *words)
