"""A plan as one accepts it: run its components, or show how far they are and their criteria.

acceptance = Acceptance(folders, Path("plan.yaml"), components=("stability",))
acceptance.run(quiet=False, form="table")     # the exit code
"""

from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from textwrap import wrap
from typing import Any

import click
from msgspec.structs import asdict

from seatrial.cli import Folders, status_table
from seatrial.cli.commands.accept import FORMER, accept
from seatrial.cli.plan_control import OfPlan, Steering
from seatrial.cli.run_driver import answer_late, drive, drive_together
from seatrial.cli.supervise import supervise
from seatrial.errors import InvalidFiles, UsageError
from seatrial.execute import plan_trials
from seatrial.execute.alerts import write_next
from seatrial.execute.batch.batch import require_scheduler
from seatrial.execute.creation import require_consent
from seatrial.execute.detect import require_chosen
from seatrial.execute.plan import prepare
from seatrial.execute.plan.component import place_of, together
from seatrial.execute.plan.prepare import PreparedComponent, prepare_plan
from seatrial.execute.plan_trials import PlanTrial
from seatrial.execute.prepare import MAX_TOLD, left_out_of
from seatrial.execute.requests import DriveOutcome
from seatrial.execute.trial_folder import TrialFolder
from seatrial.model.plan import Component, phases_of
from seatrial.results.records import (
    EvidenceStatus,
    PlanRecords,
    evidence_of,
    records_in,
    state_of_evidence,
)
from seatrial.results.status import AWAITED, Status, with_evidence
from seatrial.show.report.planned import rehearsals
from seatrial.show.text import folded, table_text
from seatrial.show.trial import entries_table, issues_table
from seatrial.units import count, show_seconds

WIDTH = 78

_PartTrial = tuple[PreparedComponent, PlanTrial | None]
_MadeTrial = tuple[PreparedComponent, PlanTrial]
Proofs = Mapping[str, Sequence[EvidenceStatus]]
"""The documents of components, by their names."""


class Acceptance(OfPlan):
    """The chosen components and phases of a plan (none: all), with their trials. ``name`` stands
    for the plan's in the trials' tags. With ``rebuild`` the trials that begin take no build from
    other trials; ``consent``: who consented to harmful tests. Raises InvalidFiles with
    every fault, and UsageError."""

    def __init__(
        self,
        folders: Folders,
        path: Path,
        name: str = "",
        components: Sequence[str] = (),
        phases: Sequence[str] = (),
        *,
        with_builds: bool = True,
        with_documents: bool = True,
        rebuild: bool = False,
        consent: Sequence[str] = (),
    ) -> None:
        super().__init__(folders, path, name, components, phases)
        self._with_builds, self._rebuild = with_builds, rebuild
        self._consent = consent
        # plain: the user's own plan
        self._text = path.read_bytes() if path.is_file() else b""
        self.prepared = prepare_plan(path, components, phases, with_builds, with_documents)
        self.plan = self.prepared.plan.plan

    def _load_again(self) -> None:
        """Take the plan as people have edited it while a component ran; if it has a fault, or
        another name, by now, keep it as it was."""
        try:
            text = self.path.read_bytes()  # plain: the user's own plan
            if text == self._text:
                return
            self._text = text
            prepared = prepare_plan(self.path, self.components, self.phases, self._with_builds)
        except (OSError, UsageError) as error:
            click.echo(f"{self.path}: it is followed as it was: {error}", err=True)
            return
        if prepared.plan.plan == self.plan:
            self.prepared = prepared

    def _trials(self) -> list[_PartTrial]:
        """Return each component that runs in a phase, with its latest trial."""
        return [(part, self._latest(part)) for part in self.prepared.parts]

    def _checklists(self) -> list[_PartTrial]:
        """Return each checklist in a phase, with its latest trial."""
        return [(part, self._latest(part)) for part in self.prepared.checklists]

    def _latest(self, part: PreparedComponent) -> PlanTrial | None:
        return plan_trials.latest(self.folders.trials, self.plan, part, self.name)

    def _next_tag(self, part: PreparedComponent) -> str:
        return plan_trials.next_tag(self.folders.trials, self.plan, part, self.name)

    # ---- running it -----------------------------------------------------------------------

    def require_begun(self) -> None:
        """Raise UsageError if no trial of the chosen components exists."""
        if not any(trial for _, trial in [*self._checklists(), *self._trials()]):
            raise UsageError(f"{self.not_here()}; `{self.command()}` begins it there")

    def run(self, quiet: bool, form: str) -> int:
        """Run every trial that is not complete, then print the status; return the exit code.
        Checklists are made first, so that people can tick them while the others run."""
        self._print_broken()
        for part, trial in self._checklists():
            if trial is None:
                made = plan_trials.checklist(self.folders.trials, self.prepared, part, self.name)
                tick = self.command("ITEM", "--pass", "--by", "NAME", act="tick")
                items = count(len(part.component.items), "item")
                click.echo(f"{made.folder.tag} awaits {items}: {tick}")
        is_complete = self._run_all(quiet)
        self._load_again()
        if is_complete:
            return self.print_status(form)
        return self._print_not_met()

    def _run_all(self, quiet: bool) -> bool:
        """Run what is not complete. Return False as soon as a trial does not reach its end."""
        trials = self._trials()
        complete = (trial for _, trial in trials if trial and trial.state == "complete")
        answered = [answer_late(trial.folder) for trial in complete]
        if any(answered):  # requests that came too late for a driver
            trials = self._trials()
        self._require_unchanged(trials)
        self._require_consent(trials)
        groups = list(together(trials, lambda each: place_of(each[0].component, each[0].phase)))
        for number, group in enumerate(groups):
            folders = [
                folder
                for part, trial in group
                if (folder := self._to_drive(part, trial)) is not None
            ]
            following = self._first_to_drive(groups[number + 1 :])
            for folder in folders:
                write_next(folder, following)
            if folders and not self._drive(folders, quiet):
                return False
            for part, trial in group:
                if trial is not None and trial.state == "complete":
                    self._print_changed(part, trial)
        return True

    def _first_to_drive(self, groups: Sequence[Sequence[_PartTrial]]) -> list[str]:
        """Return the tags of the trials that are driven first of these groups."""
        for group in groups:
            if tags := [
                trial.folder.tag if trial and trial.state == "open" else self._next_tag(part)
                for part, trial in group
                if trial is None or trial.state != "complete"
            ]:
                return tags
        return []

    def _to_drive(self, part: PreparedComponent, trial: PlanTrial | None) -> TrialFolder | None:
        """Return the trial of a component, which begins if there is none; None for a complete
        one."""
        if trial is not None and trial.state == "complete":
            if trial.damaged:  # it may have lost verdicts
                return trial.folder
            click.echo(f"{trial.folder.tag} is complete.")
            return None
        _print_left_out(part)
        if trial is not None and trial.state == "open":
            self._print_changed(part, trial)
            return trial.folder
        self._load_again()
        part = next((each for each in self.prepared.parts if each.tag == part.tag), part)
        require_chosen(self.prepared.plan.machine or None, "machine:")
        require_scheduler(part.machine)
        return plan_trials.begin(
            self.folders.trials, self.prepared, part, self.name, self._rebuild, self._consent
        )

    def _drive(self, folders: Sequence[TrialFolder], quiet: bool) -> bool:
        """Drive trials, several at once. Return True if all are complete."""
        if len(folders) == 1:
            return self._came_to_end(folders[0], drive(folders[0], self.folders, quiet))
        outcomes = drive_together(folders, self.folders, quiet)
        complete = [self._came_to_end(*each) for each in zip(folders, outcomes, strict=True)]
        return all(complete)  # after each was told

    def _came_to_end(self, folder: TrialFolder, outcome: DriveOutcome | None) -> bool:
        """Return True if a trial is complete, else say so; of None the reason was told."""
        if outcome is None:
            return False
        if not outcome.complete:
            click.echo(f"{folder.tag} is not complete: {outcome.reason}")
            anew = "  (begins it anew)" if plan_trials.state_of(folder) == "abandoned" else ""
            click.echo(f"next   {self.command()}{anew}")
        return outcome.complete

    def _require_consent(self, trials: Iterable[_PartTrial]) -> None:
        """Require consent to the harmful tests of all that begins, before anything runs."""
        for part, trial in trials:
            if trial is None or trial.state == "abandoned":
                require_consent(part.tests, part.machine, self._consent)

    def _require_unchanged(self, trials: Sequence[_PartTrial]) -> None:
        """Raise UsageError if the plan of a trial that people stopped has changed. The trial keeps
        what it was made with, so whoever changed the plan must choose. One whose driver died should
        run: it goes on as it was made."""
        for part, trial in trials:
            if trial is None or trial.state != "open" or trial.life.clock_runs:
                continue
            changed = plan_trials.changes(trial, self.prepared, part)
            if not changed:
                continue
            tag = trial.folder.tag
            which = ["--component", part.component.component]
            which += ["--phase", part.phase] if part.phase else []
            abandon = self.command("the plan changed", *which, act="abandon")
            raise UsageError(
                f"{tag}: {', '.join(changed)} changed since it was made, and it keeps what it was "
                "made with.\n"
                f"  to continue as it was:  {self.folders.command('resume', tag)}\n"
                f"  to change it from now:  {self.command('--reason', 'WHY', act='change')}\n"
                f"  to begin it anew:       {abandon}\n"
                f"                          {self.command()}\n"
                f"  to run both:            {self.command('--name', f'{self.plan}-b')}"
            )

    def _print_changed(
        self, part: PreparedComponent, trial: PlanTrial, builds: bool = True, err: bool = False
    ) -> None:
        """Name what changed in the plan since the trial was made."""
        changed = plan_trials.changed_judging(trial, part)
        changed += plan_trials.changes(trial, self.prepared, part, builds)
        if changed and trial.state != "abandoned":
            anew = self.command("--name", f"{self.name or self.plan}-b")
            follow = ""
            if trial.state == "open" and trial.life.clock_runs:
                change = self.command("--reason", "WHY", act="change")
                follow = f"`{change}` makes it follow the plan; "
            click.echo(
                f"{trial.folder.tag}: its plan changed since: {', '.join(changed)}; it is judged "
                f"by what it was made with; {follow}`{anew}` runs it anew",
                err=err,
            )

    def _print_broken(self) -> None:
        """Print what has faults and is in no component."""
        for line in left_out_of((), self.prepared.broken, at_most=MAX_TOLD):
            click.echo(line, err=True)

    def print_dry_run(self) -> int:
        """Print what would begin, continue, be left alone or be refused; return 0."""
        self._print_broken()
        trials = self._trials()
        for part, trial in [*self._checklists(), *trials]:
            going = trial if trial is not None and trial.state != "abandoned" else None
            tag = going.folder.tag if going else self._next_tag(part)
            course = self._course(part, trial)
            click.echo(f"{tag}: {course}; {_size(part, going)}")
            if going is not None and course != "cannot continue":
                self._print_changed(part, going)
            if mix := prepare.sentence(part):
                click.echo(
                    "\n".join(
                        wrap(f"mix: {mix}", WIDTH, initial_indent="  ", subsequent_indent="    ")
                    )
                )
            _print_left_out(part)
        self._require_unchanged(trials)
        return 0

    def _course(self, part: PreparedComponent, trial: PlanTrial | None) -> str:
        if trial is None:
            return "begins"
        if part.component.kind == "checklist" and trial.state == "open":
            return AWAITED
        stopped = trial.state == "open" and not trial.life.clock_runs
        if stopped and plan_trials.changes(trial, self.prepared, part):
            return "cannot continue"
        return {"open": "continues", "complete": "is complete", "abandoned": "begins anew"}[
            trial.state
        ]

    # ---- its status -----------------------------------------------------------------------

    def print_status(self, form: str) -> int:
        """Print the status of each trial and its criteria; return the exit code."""
        trials = [*self._checklists(), *self._trials()]
        made = made_trials(trials)
        waiting = [part for part, trial in trials if trial is None]
        records = records_in(plan_trials.records(self.folders.trials, self.plan, self.name))
        statuses = [self._status(part, trial, records) for part, trial in made]
        proofs = self._documents(records)
        in_json = form == "json"
        if waiting and not statuses:
            click.echo(folded(self.not_here()), err=in_json)
        if in_json:
            status_table.print_json(self.plan, statuses, _as_json(proofs, records))
        else:
            tried = {part.component.component for part, _ in trials}
            self._print_tables(statuses, tried, waiting, proofs)
            _print_records(records)
        left_over = self._left_over()
        self._print_differences(made, left_over, err=in_json)
        if not in_json:
            status_table.print_next(statuses, self.command())
        code = status_table.exit_code(statuses, [trial for _, trial in made])
        return 3 if code == 0 and (waiting or left_over or not _as_given(proofs)) else code

    def _status(self, part: PreparedComponent, trial: PlanTrial, records: PlanRecords) -> Status:
        """Return the status of a trial, with the documents of its component."""
        return with_evidence(status_table.status_of(trial), self._proofs(part.component, records))

    def _proofs(self, component: Component, records: PlanRecords) -> list[EvidenceStatus]:
        """Return the documents of a component as they are now."""
        return evidence_of(component.evidence, records.given, self.prepared.path.parent)

    def _print_tables(
        self,
        statuses: Sequence[Status],
        tried: Collection[str],
        waiting: Sequence[PreparedComponent],
        proofs: Proofs,
    ) -> None:
        """Print the status of trials and documents; ``tried`` are the components that have
        trials, ``waiting`` those that have not begun."""
        if statuses:
            alone = {
                name: state_of_evidence(found)
                for name, found in proofs.items()
                if name not in tried
            }
            status_table.print_status(statuses, alone)
        if waiting:
            click.echo(folded(f"not begun: {', '.join(map(self._next_tag, waiting))}"))
            self._print_rehearsed(waiting)
        if statuses and proofs:
            click.echo()
        for name, found in proofs.items():
            for proof in found:
                click.echo(folded(status_table.evidence_line(name, proof)))

    def _print_differences(
        self, made: Sequence[_MadeTrial], left_over: Sequence[PlanTrial], err: bool
    ) -> None:
        """Tell where trials are not those of the plan as it is now."""
        for part, trial in made:
            self._print_changed(part, trial, builds=False, err=err)
        for trial in left_over:
            click.echo(plan_trials.left_over_words(trial), err=err)

    def _left_over(self) -> list[PlanTrial]:
        """Return the trials of components that the plan has no more; none if some were chosen."""
        if self.components or self.phases:
            return []
        path = self.prepared.path
        return plan_trials.left_over(self.folders.trials, self.prepared, path, self.name)

    def _print_not_met(self) -> int:
        """Name the criteria of incomplete trials that are not met; return the exit code."""
        trials = [trial for _, trial in made_trials(self._trials())]
        statuses = [status_table.status_of(trial) for trial in trials]
        for status in statuses:
            labels = [result[0].label for result in status.criteria if result[0].state == "not met"]
            if labels:
                click.echo(f"{status.tag}: not met: {', '.join(labels)}")
        return status_table.exit_code(statuses, trials) or 3

    def _print_rehearsed(self, parts: Iterable[PreparedComponent]) -> None:
        """Name the rehearsals of components that have not begun."""
        waiting = {part.tag for part in parts}
        for part, trial in rehearsals(self.folders.trials, self.prepared):
            if trial is not None and part.tag in waiting:
                show = self.folders.command("runs", "--trial", trial.folder.tag)
                click.echo(f"only rehearsed: {trial.folder.tag}: see `{show}`")

    def _documents(self, records: PlanRecords) -> Proofs:
        """Return the documents on which the chosen components rest."""
        plan = self.prepared.plan
        return {
            component.component: self._proofs(component, records)
            for component in plan.components
            if component.evidence
            and (not self.components or component.component in self.components)
            and (not self.phases or any(p.phase in self.phases for p in phases_of(plan, component)))
        }


def made_trials(trials: Iterable[_PartTrial]) -> list[_MadeTrial]:
    """Return the components that have a trial, with it."""
    return [(part, trial) for part, trial in trials if trial is not None]


def _size(part: PreparedComponent, trial: PlanTrial | None) -> str:
    """Return the kind of a component and its number of cases and runs."""
    duration = trial.life.duration if trial else part.policy.duration
    cases = trial.folder.cases() if trial else part.cases
    recorded = trial.record.component if trial else None
    kind = (recorded or part.component).kind
    size = count(len(cases), "case")
    if kind == "checklist":
        return f"{kind}, {count(len((recorded or part.component).items), 'item')}"
    if duration:
        size += f" for {show_seconds(duration)}"
    elif kind == "once":
        size += f", {count(sum(case.repeat for case in cases), 'run')}"
    return f"{kind}, {size}"


def _print_left_out(part: PreparedComponent) -> None:
    for line in left_out_of(part.skipped, at_most=MAX_TOLD):
        click.echo(line, err=True)
    for warning in prepare.warnings(part):
        click.echo(f"{part.tag}: {warning}", err=True)


def _as_json(proofs: Proofs, records: PlanRecords) -> dict[str, Any]:
    """Return the documents of components, and what people recorded about a plan, as JSON has
    them."""
    evidence = [
        {
            "component": name,
            "state": state_of_evidence(found),
            "evidence": [asdict(proof) for proof in found],
        }
        for name, found in proofs.items()
    ]
    issues = [asdict(each) for each in records.issues.values()]
    entries = [asdict(each) for each in records.entries]
    return {"evidence": evidence, "issues": issues, "entries": entries}


def _as_given(proofs: Proofs) -> bool:
    """Return whether each document is as it was when it was given."""
    return all(proof.state == "as it was" for found in proofs.values() for proof in found)


def _print_records(records: PlanRecords) -> None:
    if records.open_issues:
        click.echo(f"\n{table_text(issues_table(records.open_issues))}")
    if records.entries:
        click.echo(f"\n{table_text(entries_table(records.entries))}")


# ---- acts ----------------------------------------------------------------------------------------


def accept_run(
    folders: Folders,
    /,
    dry_run: bool,
    form: str,
    quiet: bool,
    rebuild: bool,
    consent: tuple[str, ...],
    supervised: bool,
    **chosen: Any,
) -> int:
    """Do ``seatrial accept run``; return the exit code."""
    former = {name: chosen.pop(name) for name in FORMER}
    given = [name for name, value in former.items() if value is not None]
    flags = [f"--{name}" for name in given] + ["--dry-run"] * dry_run
    flags += ["--supervise"] * supervised
    if len(flags) > 1:
        raise click.UsageError(f"{' and '.join(flags)}: one at a time")
    for name in given:
        if argument := FORMER[name]:
            chosen[argument] = former[name]
        elif name == "status":
            chosen["form"] = form
        if name == "admit":
            chosen["reason"] = ""
        code: int = click.get_current_context().invoke(accept.commands[name], **chosen)
        return code
    if supervised:
        return supervise(folders, chosen["path"], chosen["name"])
    acceptance = Acceptance(folders, **chosen, rebuild=rebuild, consent=consent)
    return acceptance.print_dry_run() if dry_run else acceptance.run(quiet, form)


def accept_resume(folders: Folders, /, form: str, quiet: bool, **chosen: Any) -> int:
    """Do ``seatrial accept resume``; return the exit code."""
    acceptance = Acceptance(folders, **chosen)
    acceptance.require_begun()
    return acceptance.run(quiet, form)


def accept_status(folders: Folders, /, form: str, **chosen: Any) -> int:
    """Do ``seatrial accept status``; return the exit code."""
    try:
        acceptance = Acceptance(folders, **chosen, with_builds=False, with_documents=False)
    except InvalidFiles as error:
        return Steering(folders, **chosen).print_status(form, error)
    return acceptance.print_status(form)
