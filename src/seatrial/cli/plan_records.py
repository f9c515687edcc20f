"""Record what happens in an acceptance: evidence that comes later, milestones, parts, incidents,
issues.

    Recording(folders, Path("plan.yaml")).evidence("burn-in.pdf", GivenFile(Path("b.pdf"), ["Ann"]))
"""

import datetime
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from seatrial.acceptance.documents import given
from seatrial.acceptance.plan_records import PlanRecords, records_in
from seatrial.cli import Folders
from seatrial.cli.options import parsed_for
from seatrial.cli.plan_control import OfPlan
from seatrial.cli.query_common import show_time
from seatrial.errors import UsageError
from seatrial.journal.events import EvidenceGiven, IssueRecorded, PersonsEvent, PlanEntry
from seatrial.machine.facts import node_names
from seatrial.machine.node_sets import unfold
from seatrial.plan.model import Evidence
from seatrial.plan.moments import day_of
from seatrial.plan.prepare import prepare_plan
from seatrial.trial import plan_trials
from seatrial.trial.recording import record
from seatrial.units import listed
from seatrial.verify.reading import plain_line

MAX_NAMED = 8


class GivenFile(NamedTuple):
    """A document that a person gives: the file, who signed it and when (a date; "": today), a
    comment, and why it replaces an earlier one."""

    file: Path
    by: Sequence[str]
    on: str = ""
    comment: str = ""
    again: str = ""


class Recording(OfPlan):
    """The records of a plan; ``name`` stands for the plan's in the trials' tags."""

    def __init__(self, folders: Folders, path: Path, name: str = "") -> None:
        super().__init__(folders, path, name)
        self.plan = plan_trials.plan_name(path)
        if not self.plan:
            problem = "is no plan: it has no name" if path.exists() else "no such file"
            raise UsageError(f"{path}: {problem}; name a plan, such as plans/acceptance.yaml")

    def read(self) -> PlanRecords:
        """Return what was recorded."""
        folder = plan_trials.records(self.folders.trials, self.plan, self.name)
        return records_in(folder)

    def evidence(self, name: str, answer: GivenFile) -> int:
        """Record that a document of the plan is there; return the exit code: 1 if another person
        was faster, 3 if it is not recorded yet. Raises UsageError."""
        written = self._awaited(name)
        if answer.on:
            parsed_for("--on", day_of, answer.on)
        document = given(answer.file, self.path.parent)
        if written.sha256 and document.sha256 != written.sha256.lower():
            raise UsageError(
                f"{answer.file} has the checksum {document.sha256}: it is not the document that "
                f"the plan names, {written.sha256}"
            )
        before = self.read().given.get(written.document, [])
        if before and not answer.again.strip():
            raise UsageError(
                f"{written.document}: was given {_when_and_who(before[-1])}; to replace it, say "
                "why with --again TEXT: the one before is kept"
            )
        event = EvidenceGiven(
            document=written.document,
            file=document.name,
            size=document.size,
            sha256=document.sha256,
            on=answer.on or datetime.datetime.now().date().isoformat(),
            comment=answer.comment.strip(),
            why=answer.again.strip() if before else "",
            names=list(answer.by),
        )
        recorded = self._record(event)
        if recorded is None:
            return 3
        stands = self.read().given[written.document][-1]
        if stands.request != recorded.request:
            click.echo(
                f"{written.document}: was given {_when_and_who(stands)}, a moment before; yours is "
                "kept and does not count; to replace it, say why with --again TEXT",
                err=True,
            )
            return 1
        click.echo(f"{plain_line(written.document)}  {document.sha256}  signed by {_names(event)}")
        return 0

    def _awaited(self, name: str) -> Evidence:
        """Return the evidence of that name which comes later. Raises UsageError."""
        plan = prepare_plan(self.path, with_builds=False, with_documents=False).plan
        known = [each for component in plan.components for each in component.evidence]
        named = [
            each for each in known if name in (each.document, Path(each.document).name, each.id)
        ]
        later = listed([each.document for each in known if each.comes_later], MAX_NAMED) or "none"
        if not named:
            raise UsageError(f"{name}: the plan has no such document; these come later: {later}")
        if len({each.document for each in named}) > 1:
            raise UsageError(f"{name}: say which: {', '.join(each.document for each in named)}")
        if not named[0].comes_later:
            raise UsageError(
                f"{name}: the plan has its checksum, so it is there; these come later: {later}"
            )
        return named[0]

    def entry(self, event: PlanEntry) -> int:
        """Record that something happened; return the exit code."""
        self._require_nodes(event.nodes)
        if not event.text.strip():
            raise UsageError("TEXT: say what happened")
        if self._record(event) is None:
            return 3
        click.echo(plain_line(f"{event.kind}: {event.text} (by {_names(event)})"))
        return 0

    def issue(self, event: IssueRecorded) -> int:
        """Record an issue that is new (number 0), or a change of one; return the exit code. Raises
        UsageError for an unknown number."""
        self._require_nodes(event.nodes)
        known = self.read().issues
        if event.issue and event.issue not in known:
            there = listed([str(number) for number in known], MAX_NAMED) or "none"
            raise UsageError(f"{event.issue}: {self.plan} has no such issue; there are {there}")
        if event.issue and event.state and known[event.issue].state == event.state:
            raise UsageError(f"{event.issue}: is {event.state} already")
        if event.component:
            plan = prepare_plan(self.path, with_builds=False, with_documents=False).plan
            names = [each.component for each in plan.components]
            if event.component not in names:
                raise UsageError(
                    f"--component: {self.plan} has no component {event.component!r}; it has "
                    f"{', '.join(names)}"
                )
        recorded = self._record(event)
        if not isinstance(recorded, IssueRecorded):
            return 3
        issue = self.read().issues[recorded.issue]
        click.echo(plain_line(f"issue {issue.issue}  {issue.state}  {issue.text}"))
        return 0

    def _record(self, event: PersonsEvent) -> PersonsEvent | None:
        folder = plan_trials.records(self.folders.trials, self.plan, self.name)
        if folder is None:
            prepared = prepare_plan(self.path, with_builds=False, with_documents=False)
            folder = plan_trials.begin_records(self.folders.trials, prepared, self.name)
        recorded = record(folder, event)
        if recorded is None:
            click.echo(f"{folder.tag}: left for its owner's next command to record", err=True)
        return recorded if isinstance(recorded, PersonsEvent) else None

    def _require_nodes(self, nodes: str) -> None:
        """Raise UsageError for a malformed node set, and for nodes that the machine lacks."""
        if not nodes:
            return
        names = parsed_for("--nodes", unfold, nodes)
        machine = prepare_plan(self.path, with_builds=False, with_documents=False).site.machine
        if unknown := sorted(set(names) - set(node_names(machine))):
            raise UsageError(f"--nodes: {unknown[0]} is not a node of {machine.machine}")


def _when_and_who(event: EvidenceGiven) -> str:
    return f"{show_time(event.time)} by {_names(event)}"


def _names(event: PersonsEvent) -> str:
    return plain_line(" and ".join(event.names))
