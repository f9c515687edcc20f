"""``seatrial accept``: run an acceptance plan, and see where it stands."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.cli import Folders
from seatrial.errors import InvalidFiles, UsageError

if TYPE_CHECKING:
    from seatrial.plan.model import Component
    from seatrial.plan.prepare import PreparedComponent, PreparedPlan
    from seatrial.trial.folder import TrialFolder
    from seatrial.trial.plan_trials import PlanTrial


@click.command("accept")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option(
    "--component",
    "components",
    multiple=True,
    metavar="NAME",
    help="Only this one; may be repeated.",
)
@click.option(
    "--phase", "phases", multiple=True, metavar="NAME", help="Only this phase; may be repeated."
)
@click.option("--name", default="", help="Name in the trials' tags instead of the plan's.")
@click.option("--status", is_flag=True, help="Show where it stands, and run nothing.")
@click.option("--pause", is_flag=True, help="Start nothing more; the trial's clock stops.")
@click.option("--extend", metavar="TIME", help="Give a sustained component more time: 2h, 1d.")
@click.option("--abandon", metavar="WHY", help="Give a trial up for ever, and say why.")
@click.option("--admit", metavar="NODES|TEST", help="Let excluded nodes or a stopped test back in.")
@click.option("--dry-run", is_flag=True, help="Check the plan, tell what would run, run nothing.")
@click.option(
    "--format",
    "form",
    type=click.Choice(["table", "json"]),
    default="table",
    show_default=True,
    help="How the standing is shown.",
)
@click.option("-q", "--quiet", is_flag=True, help="Print no line for each run.")
@click.pass_obj
def command(
    folders: Folders,
    /,
    plan: Path,
    components: tuple[str, ...],
    phases: tuple[str, ...],
    name: str,
    status: bool,
    pause: bool,
    extend: str | None,
    abandon: str | None,
    admit: str | None,
    dry_run: bool,
    form: str,
    quiet: bool,
) -> int:
    """Run an acceptance plan, component by component and phase by phase.

    What is complete is left alone, what was interrupted or paused goes on, what has not begun
    begins: the same command starts a plan and continues it. Each component has a trial of its own
    in every phase, PLAN-COMPONENT[-PHASE].

    \b
    seatrial accept plan.yaml            start it, or go on
    seatrial accept plan.yaml --status   where it stands, by its criteria
    seatrial accept plan.yaml --pause    from another terminal
    seatrial accept plan.yaml --component stability --extend 12h

    \b
    Exit codes:  0  all criteria are met
                 1  some criterion is not met, also of what is not complete
                 2  a fault in the plan, or usage; nothing was run
                 3  it is not complete, or a criterion is not decided yet
    """
    from seatrial.plan.prepare import prepare_plan

    given = [act for act, on in (("--status", status), ("--pause", pause)) if on]
    given += ["--dry-run"] if dry_run else []
    texts = (("--extend", extend), ("--abandon", abandon), ("--admit", admit))
    given += [act for act, value in texts if value is not None]
    if len(given) > 1:
        raise click.UsageError(f"{' and '.join(given)}: one at a time")
    if abandon is not None and not abandon.strip():
        raise click.UsageError("--abandon: say why")
    if pause or extend is not None or abandon is not None or admit is not None:
        from seatrial.cli.plan_control import Steering

        steering = Steering(folders, plan, name, components, phases)
        if extend is not None:
            return steering.extend(extend)
        if abandon is not None:
            return steering.abandon(abandon)
        return steering.admit(admit) if admit is not None else steering.pause()
    try:
        prepared = prepare_plan(plan, components, phases, with_builds=not status)
    except InvalidFiles as error:
        if not status:
            raise
        from seatrial.cli.plan_control import Steering

        return Steering(folders, plan, name, components, phases).print_status(form, error)
    acceptance = Acceptance(folders, prepared, name, components, phases)
    if dry_run:
        return acceptance.tell()
    if not status and not acceptance.run(quiet):
        return acceptance.tell_not_met()
    return acceptance.print_status(form)


class Acceptance:
    """A plan's components that were asked for, with their trials."""

    def __init__(
        self,
        folders: Folders,
        prepared: PreparedPlan,
        name: str,
        components: Sequence[str] = (),
        phases: Sequence[str] = (),
    ) -> None:
        self.components, self.phases = components, phases  # none: all
        self.folders = folders
        self.prepared = prepared
        self.plan = prepared.plan.plan
        self.name = name

    def _latest(self, part: PreparedComponent) -> PlanTrial | None:
        from seatrial.trial.plan_trials import latest

        return latest(self.folders.trials, self.plan, part, self.name)

    def _next_tag(self, part: PreparedComponent) -> str:
        from seatrial.trial.plan_trials import next_tag

        return next_tag(self.folders.trials, self.plan, part, self.name)

    def _latest_answered(self, part: PreparedComponent) -> PlanTrial | None:
        """As it stands when what was asked of it too late for its driver is noted."""
        from seatrial.cli.run_driver import answer_late

        trial = self._latest(part)
        if trial is not None and trial.state == "complete" and answer_late(trial.folder):
            return self._latest(part)
        return trial

    # ---- running it -----------------------------------------------------------------------

    def run(self, quiet: bool) -> bool:
        """Run what is not complete; whether all of it came to its end."""
        trials = [(part, self._latest_answered(part)) for part in self.prepared.parts]
        for part, trial in trials:
            if trial is not None and trial.state == "open":
                self._require_unchanged(part, trial)
        for part, trial in trials:
            if trial is not None and trial.state == "complete":
                click.echo(f"{trial.folder.tag} is complete.")
                self._tell_changed(part, trial)
                continue
            if trial is not None and trial.state == "open":
                self._tell_changed(part, trial)
            self._tell_left_out(part)
            if not self._drive(self._folder(part, trial), quiet):
                return False
        return True

    def _folder(self, part: PreparedComponent, trial: PlanTrial | None) -> TrialFolder:
        from seatrial.backends.choose import require_scheduler
        from seatrial.trial.plan_trials import begin

        if trial is not None and trial.state == "open":
            return trial.folder
        require_scheduler(part.machine)
        return begin(self.folders.trials, self.prepared, part, self.name)

    def _drive(self, folder: TrialFolder, quiet: bool) -> bool:
        """Whether the trial came to its end."""
        from seatrial.cli.run_driver import drive
        from seatrial.trial.plan_trials import state_of

        outcome = drive(folder, self.folders, quiet)
        if not outcome.complete:
            click.echo(f"{folder.tag} is not complete: {outcome.why}")
            anew = "  (begins it anew)" if state_of(folder) == "abandoned" else ""
            click.echo(f"next   {self._command()}{anew}")
        return outcome.complete

    def _require_unchanged(self, part: PreparedComponent, trial: PlanTrial) -> None:
        """A trial goes on by what it was made with; whoever changed the plan must know."""
        from seatrial.trial.plan_trials import changes

        changed = changes(trial, self.prepared, part)
        if not changed:
            return
        tag = trial.folder.tag
        which = ["--component", part.component.component]
        which += ["--phase", part.phase] if part.phase else []
        raise UsageError(
            f"{tag}: {', '.join(changed)} changed since it was made, and it keeps what it was made "
            "with.\n"
            f"  to go on as it was:  {self.folders.command('resume', tag)}\n"
            f"  to begin it anew:    {self._command(*which, '--abandon', 'the plan changed')}\n"
            f"                       {self._command()}\n"
            f"  to run both:         {self._command('--name', f'{self.plan}-b')}"
        )

    def _tell_changed(
        self, part: PreparedComponent, trial: PlanTrial, builds: bool = True, err: bool = False
    ) -> None:
        """Tell of a plan that is not as it was when the trial was made."""
        from seatrial.trial.plan_trials import changed_judging, changes

        changed = changed_judging(trial, part) + changes(trial, self.prepared, part, builds)
        if changed and trial.state != "abandoned":
            anew = self._command("--name", f"{self.name or self.plan}-b")
            click.echo(
                f"{trial.folder.tag}: its plan changed since: {', '.join(changed)}; it is judged "
                f"by what it was made with; `{anew}` runs it anew",
                err=err,
            )

    def _tell_left_out(self, part: PreparedComponent) -> None:
        for what, why in part.skipped[:10]:
            click.echo(f"left out: {what}: {why}", err=True)

    def _command(self, *words: str) -> str:
        from seatrial.cli.plan_control import command_of

        return command_of(self.folders, self.prepared.path, self.name, *words)

    def tell(self) -> int:
        """A dry run: what would be run, continued, left alone or refused."""
        from seatrial.trial.plan_trials import changes, duration_of
        from seatrial.units import count, show_seconds

        state = {"open": "goes on", "complete": "is complete", "abandoned": "begins anew"}
        trials = [(part, self._latest(part)) for part in self.prepared.parts]
        for part, trial in trials:
            goes_on = trial if trial is not None and trial.state != "abandoned" else None
            duration = duration_of(goes_on) if goes_on else part.policy.duration
            cases = goes_on.folder.cases() if goes_on else part.cases
            component = goes_on.record.component if goes_on else None
            kind = (component or part.component).kind
            size = count(len(cases), "case")
            if duration:
                size += f" for {show_seconds(duration)}"
            elif kind == "once":
                size += f", {count(sum(case.repeat for case in cases), 'run')}"
            tag = goes_on.folder.tag if goes_on else self._next_tag(part)
            course = state[trial.state] if trial else "begins"
            if trial is not None and trial.state == "open" and changes(trial, self.prepared, part):
                course = "cannot go on"
            click.echo(f"{tag}: {course}; {kind}, {size}")
            if goes_on is not None and course != "cannot go on":
                self._tell_changed(part, goes_on)
            self._tell_left_out(part)
        for part, trial in trials:
            if trial is not None and trial.state == "open":
                self._require_unchanged(part, trial)
        return 0

    # ---- where it stands ------------------------------------------------------------------

    def print_status(self, form: str) -> int:
        """Show where the trials stand; the exit code of that."""
        from seatrial.cli import status_table

        trials = [(part, self._latest(part)) for part in self.prepared.parts]
        made = [(part, trial) for part, trial in trials if trial is not None]
        found = [status_table.status_of(trial) for _, trial in made]
        waiting = [self._next_tag(part) for part, trial in trials if trial is None]
        shown = [each for each in self._asked_components() if each.evidence]
        if form == "json":
            status_table.print_json(found, [_of_evidence(self.plan, each) for each in shown])
        else:
            if found or waiting or not shown:
                status_table.print_status(found, form)
            if waiting:
                click.echo(f"not begun: {', '.join(waiting)}")
                self._tell_rehearsed(part for part, trial in trials if trial is None)
            _print_evidence(shown)
        for part, trial in made:
            self._tell_changed(part, trial, builds=False, err=form == "json")
        if form != "json":
            status_table.print_next(found, self._command())
        code = status_table.exit_code(found, [trial for _, trial in made])
        return 3 if waiting and code == 0 else code

    def tell_not_met(self) -> int:
        """Name the criteria that are not met of what did not come to its end; the exit code, as
        that of ``print_status``."""
        from seatrial.cli import status_table

        trials = [trial for part in self.prepared.parts if (trial := self._latest(part))]
        found = [status_table.status_of(trial) for trial in trials]
        for one in found:
            labels = [each[0].label for each in one.criteria if each[0].state == "not met"]
            if labels:
                click.echo(f"{one.tag}: not met: {', '.join(labels)}")
        return status_table.exit_code(found, trials) or 3

    def _tell_rehearsed(self, parts: Iterable[PreparedComponent]) -> None:
        """Name the rehearsals of what has not begun, which are no trials of the plan."""
        from seatrial.report.planned import rehearsals

        waiting = {part.tag for part in parts}
        for part, trial in rehearsals(self.folders.trials, self.prepared):
            if trial is not None and part.tag in waiting:
                tag = trial.folder.tag
                show = self.folders.command("runs", "--trial", tag)
                click.echo(f"only rehearsed: {tag}: see `{show}`")

    def _asked_components(self) -> list[Component]:
        """The plan's components, as far as they were asked for."""
        from seatrial.plan.phases import phases_of

        plan = self.prepared.plan
        return [
            each
            for each in plan.components
            if (not self.components or each.component in self.components)
            and (not self.phases or any(p.phase in self.phases for p in phases_of(plan, each)))
        ]


def _print_evidence(components: list[Component]) -> None:
    for component in components:
        for each in component.evidence:
            about = f"{each.document}, signed by {each.signed_by} on {each.signed_on}"
            click.echo(f"evidence of {component.component}: {about}")


def _of_evidence(plan: str, component: Component) -> dict[str, Any]:
    """The documents of a component, whose checksums were found to be right when the plan was
    loaded."""
    import msgspec

    documents = ("document", "sha256", "signed_by", "signed_on", "about")
    return {
        "plan": plan,
        "component": component.component,
        "state": "shown by evidence",
        "evidence": [
            {key: msgspec.to_builtins(getattr(each, key)) for key in documents}
            for each in component.evidence
        ],
    }
