"""``seatrial accept change``: have trials under way follow the plan as it is now."""

import sys
import time
from textwrap import wrap
from typing import Any

import click
from msgspec.structs import replace

from seatrial.cli import Folders
from seatrial.cli.plan_acceptance import WIDTH, Acceptance, made_trials
from seatrial.cli.run_driver import tell_answer
from seatrial.decide.policy_change import (
    Parts,
    before_parts,
    changed_parts,
    differences,
    refused,
    too_short,
)
from seatrial.errors import UsageError
from seatrial.execute import plan_trials
from seatrial.execute.plan.check import load_plan
from seatrial.execute.plan.prepare import PreparedComponent
from seatrial.execute.plan_trials import PlanTrial
from seatrial.execute.requests import Request
from seatrial.execute.trial_folder import known_by
from seatrial.model.documents import Faults
from seatrial.model.policy import Policy


class Changing(Acceptance):
    """The change of the chosen components and phases of a plan (none: all)."""

    def change(self, reason: str, yes: bool) -> int:
        """Show what differs, ask, and have the trials follow it; return the exit code."""
        if not reason.strip():
            raise click.BadParameter("say why", param_hint="--reason")
        made = made_trials(self._trials())
        under_way = [(part, trial) for part, trial in made if trial.state == "open"]
        if not made:
            raise UsageError(self.not_here())
        if not under_way:
            self._tell_not_taken()
            shown = self.command(act="status")
            raise UsageError(f"nothing of {self.plan} is under way; see `{shown}`")
        self._require_possible(under_way)
        changes = []
        for part, trial in under_way:
            before, after = self._policies(part, trial)
            parts = changed_parts(before, after)
            self._show(part, trial, before, parts)
            if parts:
                changes.append((trial, before, parts))
        if not changes or not (yes or _agreed()):
            click.echo("nothing was changed")
            return 1
        codes = [
            tell_answer(
                trial.folder,
                Request(
                    request="change",
                    reason=reason,
                    parts=parts,
                    before=before_parts(before, parts),
                ),
                "changed from now on",
            )
            for trial, before, parts in changes
        ]
        return max(codes)

    def _policies(self, part: PreparedComponent, trial: PlanTrial) -> tuple[Policy, Policy]:
        """Return the policy of a trial by now and as the plan has it, both with known failures."""
        known = trial.policy.known_failures
        before = replace(plan_trials.policy_before(trial, part), known_failures=known)
        wanted = plan_trials.known_failures_to_take(trial, self.prepared, part)
        return before, replace(part.policy, known_failures=known if wanted is None else wanted)

    def _tell_not_taken(self) -> None:
        """Print what of the plan has changed for trials that are over, and what can be done."""
        for part, trial in made_trials(self._trials()):
            if trial.state != "abandoned":
                self._show_not_taken(part, trial)

    def _require_possible(self, under_way: list[tuple[PreparedComponent, PlanTrial]]) -> None:
        """Raise UsageError with all that contradicts what ran, each at its place in the plan."""
        faults, now = Faults(), time.time_ns()
        loaded = load_plan(self.path, Faults())
        assert loaded is not None, "it was prepared"
        at = loaded.location(faults)
        for part, trial in under_way:
            number = loaded.plan.components.index(part.component)
            component, tag = at.inside("components", number), trial.folder.tag
            before = plan_trials.policy_before(trial, part)
            for refusal in refused(before, part.policy, now, trial.life.start):
                at_plan = refusal.key[0] in ("outages", "phases")
                location = at if at_plan else component
                reason = f"cannot change while {tag} is under way: {refusal.reason}"
                location.fault(reason, *refusal.key)
            if fault := too_short(trial.life, before, part.policy, now):
                component.fault(fault, "duration")
            for changed in plan_trials.changed_inputs(trial, self.prepared, part):
                key = {"the machine": "machine", "alerts": "alerts"}.get(changed.split(" (")[0])
                location = at.inside(key) if key else component.inside("tests")
                location.fault(f"{changed} changed, and {tag} keeps what it was made with")
        if faults.texts:
            anew = self.command("--name", f"{self.name or self.plan}-b")
            told = "\n".join(faults.texts)
            raise UsageError(
                f"{told}\nnothing was changed; put that back as it was, and the rest can change, "
                f"or run the plan anew: `{anew}`"
            )

    def _show(
        self, part: PreparedComponent, trial: PlanTrial, before: Policy, parts: Parts
    ) -> None:
        """Print what would differ, and what of the plan does not count."""
        tag = trial.folder.tag
        if parts:
            click.echo(f"{tag}: this would change:")
            known = known_by(trial.record, trial.policy)
            for each in differences(replace(before, known_failures=known), parts):
                lines = wrap(str(each), WIDTH, initial_indent="  ", subsequent_indent="    ")
                click.echo("\n".join(lines))
            if "known_failures" in parts:
                _tell(f"runs that were judged before stay as they are; {_AGAIN}", "  ")
        taken_all = not self._show_not_taken(part, trial)
        if not parts and taken_all:
            _tell(f"{tag}: all that the plan says of it holds already; there is nothing to change")

    def _show_not_taken(self, part: PreparedComponent, trial: PlanTrial) -> bool:
        """Print what changed in the plan and does not count for a trial, with what can be done.
        Return whether there is anything."""
        changed = plan_trials.changed_judging(trial, part)
        anew = self.command("--name", f"{self.name or self.plan}-b")
        for what in changed:
            _tell(
                f"{trial.folder.tag}: {what} changed, and this is not taken: {_KEPT[what]}; "
                f"`{anew}` runs it anew"
            )
        return bool(changed)


_AGAIN = "`seatrial judge TRIAL --again --reason WHY` judges them again"
_AGREED = (
    "it is judged by what it was made with; both sides can leave runs out (`seatrial judge RUN "
    "--exclude`), correct references (`seatrial judge TRIAL --again`), or sign with a reservation "
    "(`seatrial report PLAN --decision reservations --reservation TEXT`)"
)
_KEPT = {
    "the criteria": _AGREED,
    "the waivers": _AGREED,
    "the evidence": "a document that comes later is given by `seatrial accept evidence`",
    "the items": "it has the items that it was made with (`seatrial accept tick`)",
    "keep": "outputs are kept as its runs were made",
    "alongside": "what runs beside it was chosen as it began",
}


def _tell(text: str, indent: str = "") -> None:
    click.echo("\n".join(wrap(text, WIDTH, initial_indent=indent, subsequent_indent=indent + "  ")))


def _agreed() -> bool:
    """Ask whether to change it. Raises UsageError where nobody can answer."""
    try:
        return click.confirm("Change this from now on?")
    except click.Abort:
        if sys.stdin.isatty():
            raise
        raise UsageError("nobody can be asked here; say --yes to change it") from None


def accept_change(folders: Folders, /, reason: str, yes: bool, **chosen: Any) -> int:
    """Do ``seatrial accept change``; return the exit code."""
    return Changing(folders, **chosen).change(reason, yes)
