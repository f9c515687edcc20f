"""``seatrial accept``: run an acceptance plan, and see where it stands."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from seatrial.cli import Folders
from seatrial.errors import UsageError

if TYPE_CHECKING:
    from seatrial.judge.status import Status
    from seatrial.plan.model import Component
    from seatrial.plan.prepare import PreparedComponent, PreparedPlan
    from seatrial.trial.accepting import PlanTrial
    from seatrial.trial.folder import TrialFolder


@click.command("accept")
@click.argument("plan", type=click.Path(path_type=Path))
@click.option("--component", "components", multiple=True, metavar="NAME", help="Only this one.")
@click.option("--phase", "phases", multiple=True, metavar="NAME", help="Only this phase.")
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
    seatrial accept plan.yaml                      start it, or go on
    seatrial accept plan.yaml --status             where it stands, by its criteria
    seatrial accept plan.yaml --pause              from another terminal
    seatrial accept plan.yaml --component stability --extend 12h

    \b
    Exit codes:  0  all criteria are met
                 1  some criterion is not met
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
    running = not given or dry_run
    prepared = prepare_plan(plan, components, phases, with_builds=running)
    acceptance = Acceptance(folders, prepared, name, components, phases)
    if dry_run:
        return acceptance.tell()
    if pause:
        return acceptance.pause()
    if extend is not None:
        return acceptance.extend(extend)
    if abandon is not None:
        return acceptance.abandon(abandon)
    if admit is not None:
        return acceptance.admit(admit)
    code = 0 if status else acceptance.run(quiet)
    return acceptance.print_status(form) if code == 0 else code


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
        from seatrial.trial.accepting import latest

        return latest(self.folders.trials, self.plan, part, self.name)

    def _latest_answered(self, part: PreparedComponent) -> PlanTrial | None:
        """As it stands when what was asked of it too late for its driver is noted."""
        from seatrial.cli.driving import answer_late

        trial = self._latest(part)
        if trial is not None and trial.state == "complete" and answer_late(trial.folder):
            return self._latest(part)
        return trial

    # ---- running it -----------------------------------------------------------------------

    def run(self, quiet: bool) -> int:
        """Run what is not complete; 0, or the exit code of what could not go on."""
        trials = [(part, self._latest_answered(part)) for part in self.prepared.parts]
        for part, trial in trials:
            if trial is not None and trial.state == "open":
                self._require_unchanged(part, trial)
        for part, trial in trials:
            if trial is not None and trial.state == "complete":
                click.echo(f"{trial.folder.tag} is complete.")
                continue
            self._tell_left_out(part)
            if not self._drive(self._folder(part, trial), quiet):
                return 3
        return 0

    def _folder(self, part: PreparedComponent, trial: PlanTrial | None) -> TrialFolder:
        from seatrial.trial.accepting import begin

        if trial is not None and trial.state == "open":
            return trial.folder
        return begin(self.folders.trials, self.prepared, part, self.name)

    def _drive(self, folder: TrialFolder, quiet: bool) -> bool:
        """Whether the trial came to its end."""
        from seatrial.cli.driving import drive

        outcome = drive(folder, self.folders, quiet)
        if not outcome.complete:
            click.echo(f"{folder.tag} is not complete: {outcome.why}")
            click.echo(f"next   {self._command()}")
        return outcome.complete

    def _require_unchanged(self, part: PreparedComponent, trial: PlanTrial) -> None:
        """A trial goes on by what it was made with; whoever changed the plan must know."""
        from seatrial.trial.accepting import changes

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

    def _tell_left_out(self, part: PreparedComponent) -> None:
        for what, why in part.skipped[:10]:
            click.echo(f"left out: {what}: {why}", err=True)

    def _command(self, *words: str) -> str:
        import os

        path = min(str(self.prepared.path), os.path.relpath(self.prepared.path), key=len)
        named = ["--name", self.name] if self.name and "--name" not in words else []
        return self.folders.command("accept", path, *named, *words)

    def tell(self) -> int:
        """A dry run: what would be run, continued or left alone."""
        from seatrial.units import count, show_seconds

        for part in self.prepared.parts:
            trial = self._latest(part)
            state = {"open": "goes on", "complete": "is complete", "abandoned": "begins anew"}
            what = state[trial.state] if trial else "begins"
            tag = trial.folder.tag if trial else part.tag
            runs = sum(case.repeat for case in part.cases)
            size = count(len(part.cases), "case")
            if part.policy.duration:
                size += f" for {show_seconds(part.policy.duration)}"
            elif part.component.kind == "once":
                size += f", {count(runs, 'run')}"
            click.echo(f"{tag}: {what}; {part.component.kind}, {size}")
            self._tell_left_out(part)
        return 0

    # ---- asking of its trials -------------------------------------------------------------

    def pause(self) -> int:
        from seatrial.cli.driving import ask
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
        from seatrial.cli.driving import ask
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
        from seatrial.cli.driving import abandon

        trial = self._one("abandoned", self._of_state("open", "complete"))
        return abandon(trial.folder, self.folders, why, self._command())

    def admit(self, whom: str) -> int:
        from seatrial.cli.driving import ask
        from seatrial.machine.facts import unfold
        from seatrial.plan.phases import names_of
        from seatrial.trial.requests import Request

        trial = self._one("told to admit anything", self._of_state("open"))
        if whom not in trial.record.tests:
            try:
                unknown = sorted(set(unfold(whom)) - set(names_of(trial.record.machine)))
            except ValueError as error:
                raise click.BadParameter(str(error), param_hint="--admit") from error
            if unknown:
                tests = ", ".join(trial.record.tests)
                raise UsageError(
                    f"--admit {whom}: {trial.folder.tag} has no node and no test {unknown[0]}; "
                    f"its tests are {tests}"
                )
        ask(trial.folder, Request(request="admit", text=whom))
        click.echo(f"{trial.folder.tag}: {whom} is let back in.")
        return 0

    def _trials(self) -> list[PlanTrial]:
        found = [self._latest(part) for part in self.prepared.parts]
        return [trial for trial in found if trial is not None]

    def _timed(self) -> list[PlanTrial]:
        return [trial for trial in self._trials() if trial.record.policy.duration]

    def _of_state(self, *states: str) -> list[PlanTrial]:
        found = [trial for trial in self._trials() if trial.state in states]
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

    # ---- where it stands ------------------------------------------------------------------

    def print_status(self, form: str) -> int:
        """Show where the trials stand; the exit code of that."""
        from seatrial.cli import standing

        found = [_status(trial) for trial in self._trials()]
        waiting = [part.tag for part in self.prepared.parts if self._latest(part) is None]
        shown = [each for each in self._asked_components() if each.evidence]
        if form == "json":
            _print_json(found, [_of_evidence(self.plan, each) for each in shown])
        else:
            if found or waiting or not shown:
                standing.print_status(found, form)
            if waiting:
                click.echo(f"not begun: {', '.join(waiting)}")
            _print_evidence(shown)
        verdicts = {one.verdict for one in found}
        if "not met" in verdicts:
            return 1
        open_ones = any(trial.state != "complete" for trial in self._trials())
        return 3 if waiting or open_ones or "undecided" in verdicts else 0

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


def _print_json(found: list[Status], evidence: list[dict[str, Any]]) -> None:
    """The trials, then the components that documents speak for."""
    import msgspec

    from seatrial.store.export import to_json

    click.echo(to_json([*(msgspec.to_builtins(one) for one in found), *evidence]), nl=False)


def _status(trial: PlanTrial) -> Status:
    from seatrial.journal.journal import read
    from seatrial.judge.status import status

    return status(trial.record, trial.folder.cases(), read(trial.folder.journal))
