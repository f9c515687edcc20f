"""Control the trials of a plan: pause, extend, abandon, hold, stop, admit ...; print their status.

The trials are found by their own records alone, so a running acceptance can be controlled even if
its plan, a suite or a document has a fault by now.
"""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import click

from seatrial.cli import Folders, as_typed, run_driver, status_table
from seatrial.cli.options import parsed_for
from seatrial.errors import InvalidFiles, UsageError
from seatrial.escaping import shell_word
from seatrial.execute.alerts import alarm_limit, alarms, to_begin, write_next
from seatrial.execute.plan_trials import PlanTrial, elsewhere, made, plan_name
from seatrial.execute.requests import HEAVY, Request, RequestKind
from seatrial.journal.events import HEAVY_TESTS
from seatrial.model.node_set import fold, unfold
from seatrial.model.nodes import node_names
from seatrial.model.plan import Component
from seatrial.units import seconds, show_seconds


class OfPlan:
    """A plan's file, and the chosen components and phases (none: all); ``name`` stands for the
    plan's in the trials' tags."""

    def __init__(
        self,
        folders: Folders,
        path: Path,
        name: str = "",
        components: Sequence[str] = (),
        phases: Sequence[str] = (),
    ) -> None:
        self.folders, self.path, self.name = folders, path, name
        self.components, self.phases = components, phases

    def chooses(self, trial: PlanTrial) -> bool:
        """Return whether a trial is of the chosen components and phases."""
        of_component = not self.components or component_of(trial).component in self.components
        return of_component and (not self.phases or trial.record.phase in self.phases)

    def command(self, *words: str, act: str = "") -> str:
        """Return `seatrial accept [ACT] PLAN ...` as one would type it here."""
        shortest = min(str(self.path.absolute()), os.path.relpath(self.path), key=len)
        named = ["--name", self.name] if self.name and "--name" not in words else []
        return self.folders.command("accept", *filter(None, [act]), shortest, *words, *named)

    def not_here(self) -> str:
        """Return in which folder no trial of the plan is, and in which one near its file some
        are."""
        trials = self.folders.trials
        text = f"no component of {self.path} has a trial in {trials.absolute()}"
        other = elsewhere(trials, self.path, self.name)
        if other is None:
            return text
        folder = as_typed(other)
        return f"{text}; {folder} has trials of it: `seatrial --trials {shell_word(folder)} ...`"


class Steering(OfPlan):
    """The trials of the chosen components and phases of a plan (none: all)."""

    def __init__(
        self, folders: Folders, path: Path, name: str = "", **chosen: Sequence[str]
    ) -> None:
        super().__init__(folders, path, name, **chosen)
        trials = made(folders.trials, path, name)
        self.checklists = [trial for trial in trials if is_checklist(trial)]
        if not trials and not path.exists():
            raise UsageError(f"{path}: no such file, and no trial of it in {folders.trials}")
        self.plan = trials[0].record.plan if trials else plan_name(path) or str(path)
        self.trials = [
            trial
            for trial in trials
            if self.chooses(trial) and (self.components or not is_checklist(trial))
        ]

    def print_status(self, form: str, fault: InvalidFiles) -> int:
        """Print the status of the trials of a plan that has faults by now; return the exit code,
        which is never 0."""
        trials = [*self.checklists, *(each for each in self.trials if not is_checklist(each))]
        statuses = [status_table.status_of(trial) for trial in trials]
        if not statuses:
            raise fault
        for text in fault.faults:
            click.echo(f"warning: {text}", err=True)
        if form == "json":
            status_table.print_json(self.plan, statuses, {})
        else:
            status_table.print_status(statuses)
            status_table.print_next(statuses, self.command())
        return status_table.exit_code(statuses, trials) or 3

    def check(self, limit: str) -> int:
        """Raise the alarm for trials whose drivers are silent; return the exit code. Raises
        UsageError where the trials of the plan are in another folder, which nobody watches."""
        if not self.trials and elsewhere(self.folders.trials, self.path, self.name):
            raise UsageError(self.not_here())
        longest = parsed_for("--limit", alarm_limit, limit)
        silent = False
        for alarm in alarms([trial.folder for trial in self.trials], longest):
            silent |= alarm.silent
            click.echo(alarm.text if alarm.new else f"{alarm.text}; people were told")
            if alarm.failure:
                click.echo(f"seatrial: the command of alerts fails: {alarm.failure}", err=True)
        return 1 if silent else 0

    def pause(self) -> int:
        resume = self.command(act="resume")
        under_way = [trial for trial in self.trials if _is_under_way(trial)]
        if not under_way and (waiting := self._await_no_more()):
            tags = ", ".join(waiting)
            click.echo(f"{tags}: not begun, and not awaited any more; `{resume}` begins it.")
            return 0
        for trial in self._open():
            answer = run_driver.ask(trial.folder, Request(request="pause"))
            tag = trial.folder.tag
            if not answer.waits:
                click.echo(f"{tag}: it is paused; `{resume}` continues it.")
            else:
                click.echo(
                    f"{tag}: its driver was asked to pause. Running jobs are waited for; then "
                    f"`{resume}` continues it."
                )
        return 0

    def extend(self, text: str) -> int:
        more = parsed_for("TIME", seconds, text)
        timed = [trial for trial in self.trials if trial.record.policy.duration]
        trial = self._one("extended", [trial for trial in timed if trial.state != "abandoned"])
        run_driver.ask(trial.folder, Request(request="extend", value=more))
        click.echo(f"{trial.folder.tag}: it is given {show_seconds(more)} more.")
        if trial.state == "complete":
            click.echo(f"next   {self.command()}")
        return 0

    def abandon(self, reason: str) -> int:
        trials = [trial for trial in self.trials if trial.state != "abandoned"]
        trial = self._one("abandoned", trials)
        if trial.state == "complete" and is_checklist(trial):
            again = self.command("ITEM", "--fail", "--by", "NAME", "--again", "WHY", act="tick")
            raise UsageError(
                f"{trial.folder.tag}: all its items have results, and it cannot be abandoned; "
                f"`{again}` replaces a result"
            )
        if trial.state == "complete":
            anew = self.command("--name", f"{self.name or self.plan}-b")
            raise UsageError(
                f"{trial.folder.tag}: it is complete, and cannot be abandoned; "
                f"`{anew}` runs it anew"
            )
        return run_driver.abandon(trial.folder, self.folders, reason, self.command())

    def hold(self, name: str, reason: str) -> int:
        """Hold a test, or all whose I/O is not light (`heavy`)."""
        trial = self._one("told to hold a test", self._open())
        release = self.command(name, act="release")
        done = f"{_held(name)} held: no run of it starts until `{release}`"
        return self._steer(trial, "hold", self._known(trial, name, HEAVY), reason, done)

    def release(self, name: str, reason: str) -> int:
        trial = self._one("told to release a test", self._open())
        self._known(trial, name, HEAVY)
        held = [each.subject for each in status_table.status_of(trial).held]
        if not {name, HEAVY_TESTS if name == HEAVY else name}.intersection(held):
            click.echo(f"{trial.folder.tag}: {name} is not held: there is nothing to release.")
            return 0
        return self._steer(trial, "release", name, reason, f"{_held(name)} released")

    def stop(self, test: str, reason: str) -> int:
        trial = self._one("told to stop a test", self._open())
        admit = self.command(test, act="admit")
        done = f"{test} is stopped: it is launched no more, unless `{admit}`"
        return self._steer(trial, "stop", self._known(trial, test), reason, done)

    def exclude(self, nodes: str, reason: str) -> int:
        trial = self._one("told to exclude nodes", self._open())
        folded = fold(self._known_nodes(trial, nodes))
        admit = self.command(folded, act="admit")
        done = f"{folded}: no more runs go there; `{admit}` lets them back in"
        return self._steer(trial, "exclude", folded, reason, done)

    def _steer(self, trial: PlanTrial, kind: RequestKind, text: str, reason: str, done: str) -> int:
        """Hand a request to the trial; tell what follows; return the exit code."""
        if kind not in ("admit", "release") and not reason.strip():
            raise click.BadParameter("say why", param_hint="--reason")
        return run_driver.tell_answer(
            trial.folder, Request(request=kind, text=text, reason=reason), done
        )

    def _known(self, trial: PlanTrial, name: str, *more: str) -> str:
        """Return the name of a test of a trial, or one of ``more``. Raises UsageError."""
        if name not in trial.record.tests and name not in more:
            tests = ", ".join(trial.record.tests)
            raise UsageError(f"{name}: {trial.folder.tag} has no such test; its tests are {tests}")
        return name

    def admit(self, names: str, reason: str) -> int:
        trial = self._one("told to admit anything", self._open())
        tag = trial.folder.tag
        is_test = names in trial.record.tests
        shut_out = _stopped(trial, names) if is_test else self._excluded(trial, names)
        if not shut_out:
            was = "not stopped" if is_test else "not excluded"
            click.echo(f"{tag}: {names} is {was}: there is nothing to let back in.")
            return 0
        return self._steer(trial, "admit", shut_out, reason, f"{shut_out} is let back in")

    def _excluded(self, trial: PlanTrial, nodes: str) -> str:
        """Return those of the nodes that are excluded, folded."""
        asked = self._known_nodes(trial, nodes)
        excluded = {
            name for names, _ in status_table.status_of(trial).excluded for name in unfold(names)
        }
        return fold([name for name in asked if name in excluded])

    def _known_nodes(self, trial: PlanTrial, nodes: str) -> Sequence[str]:
        """Return the names of a node set of the trial's machine. Raises UsageError."""
        names = parsed_for("NODES", unfold, nodes)
        if unknown := sorted(set(names) - set(node_names(trial.record.machine))):
            raise UsageError(
                f"{nodes}: {trial.folder.tag} has no node and no test {unknown[0]}; "
                f"its tests are {', '.join(trial.record.tests)}"
            )
        return names

    def _await_no_more(self) -> list[str]:
        """Tell the dead man's alarm that nobody begins what was to come; return these tags."""
        awaited: dict[str, None] = {}
        for trial in self.trials:
            if trial.state == "complete" and (tags := to_begin(trial.folder)):
                write_next(trial.folder, [])
                awaited |= dict.fromkeys(tags)
        return list(awaited)

    def _open(self) -> list[PlanTrial]:
        open_trials = [each for each in self.trials if _is_under_way(each)]
        if not self.trials:
            raise UsageError(self.not_here())
        if not open_trials:
            shown = self.command(act="status")
            raise UsageError(f"nothing of {self.plan} is under way; see `{shown}`")
        return open_trials

    def _one(self, done: str, trials: list[PlanTrial]) -> PlanTrial:
        """Return the only trial, else the only one that is under way. Raises UsageError."""
        under_way = [trial for trial in trials if trial.state == "open"]
        chosen = trials if len(trials) == 1 else under_way
        if len(chosen) == 1:
            return chosen[0]
        if not trials:
            can = f"nothing of {self.plan} can be {done}"
            raise UsageError(can if self.trials else f"{can}: {self.not_here()}")
        tags = ", ".join(trial.folder.tag for trial in trials)
        raise UsageError(f"say by --component and --phase which is to be {done}: {tags}")


def _held(name: str) -> str:
    return f"{HEAVY_TESTS} are" if name == HEAVY else f"{name} is"


def _stopped(trial: PlanTrial, test: str) -> str:
    """Return the test if it is stopped, else "". Raises UsageError if it cannot be built: to admit
    it would not help."""
    status = status_table.status_of(trial)
    if any(part.test == test and part.stopped for part in status.parts):
        return test
    for hold in status.held_back_by:
        if hold.kind == "unbuilt" and test in hold.what.split(", "):
            raise UsageError(
                f"{test}: {trial.folder.tag} has not stopped it: its build failed, and is not made "
                "again; mend it, and begin the plan anew under another --name"
            )
    return ""


def is_checklist(trial: PlanTrial) -> bool:
    return trial.record.policy.kind == "checklist"


def _is_under_way(trial: PlanTrial) -> bool:
    return trial.state == "open" and not is_checklist(trial)


def component_of(trial: PlanTrial) -> Component:
    """Return the component of a plan that a trial was made of."""
    return trial.record.component or Component(component="")


# ---- acts ----------------------------------------------------------------------------------------


def accept_check(folders: Folders, /, limit: str, **chosen: Any) -> int:
    """Do ``seatrial accept check``; return the exit code."""
    return Steering(folders, **chosen).check(limit)


def accept_pause(folders: Folders, /, **chosen: Any) -> int:
    """Do ``seatrial accept pause``; return the exit code."""
    return Steering(folders, **chosen).pause()


def accept_extend(folders: Folders, /, time: str, **chosen: Any) -> int:
    """Do ``seatrial accept extend``; return the exit code."""
    return Steering(folders, **chosen).extend(time)


def accept_abandon(folders: Folders, /, reason: str, **chosen: Any) -> int:
    """Do ``seatrial accept abandon``; return the exit code."""
    if not reason.strip():
        raise click.BadParameter("say why the trial is abandoned", param_hint="REASON")
    return Steering(folders, **chosen).abandon(reason)


def accept_admit(folders: Folders, /, names: str, reason: str, **chosen: Any) -> int:
    """Do ``seatrial accept admit``; return the exit code."""
    return Steering(folders, **chosen).admit(names, reason)


def accept_hold(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Do ``seatrial accept hold``; return the exit code."""
    return Steering(folders, **chosen).hold(test, reason)


def accept_release(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Do ``seatrial accept release``; return the exit code."""
    return Steering(folders, **chosen).release(test, reason)


def accept_stop(folders: Folders, /, test: str, reason: str, **chosen: Any) -> int:
    """Do ``seatrial accept stop``; return the exit code."""
    return Steering(folders, **chosen).stop(test, reason)


def accept_exclude(folders: Folders, /, nodes: str, reason: str, **chosen: Any) -> int:
    """Do ``seatrial accept exclude``; return the exit code."""
    return Steering(folders, **chosen).exclude(nodes, reason)
