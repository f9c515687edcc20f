"""Record what happens in an acceptance: evidence that comes later, milestones, parts, incidents,
issues.

    Recording(folders, Path("plan.yaml")).evidence("burn-in.pdf", GivenFile(Path("b.pdf"), ["Ann"]))
"""

import datetime
from collections.abc import Sequence
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

import click

from seatrial.cli import Folders
from seatrial.cli.options import names_of, parsed_for
from seatrial.cli.plan_control import OfPlan, component_of, is_checklist
from seatrial.cli.query_common import opened, show_time
from seatrial.errors import InvalidFiles, UsageError
from seatrial.escaping import plain_line
from seatrial.execute import plan_trials
from seatrial.execute.ledger import record
from seatrial.execute.plan.component import ItemState, ItemStatus, Ticks, id_of, items_of, result_of
from seatrial.execute.plan.prepare import PreparedComponent, PreparedPlan, prepare_plan
from seatrial.execute.plan_trials import PlanTrial
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import (
    EvidenceGiven,
    IssueRecorded,
    ItemTicked,
    PersonsEvent,
    PlanEntry,
)
from seatrial.journal.journal import read
from seatrial.model.moments import day_of
from seatrial.model.node_set import unfold
from seatrial.model.nodes import node_names
from seatrial.model.plan import ChecklistItem, Component, Evidence
from seatrial.results.records import GivenDocument, PlanRecords, given_document, records_in
from seatrial.results.store import export, queries
from seatrial.results.store.export import to_json
from seatrial.show.text import table_text
from seatrial.show.trial import issues_table
from seatrial.units import count, listed, show_figure

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
        document = given_document(answer.file, self.path.parent)
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
        known = list(chain.from_iterable(component.evidence for component in plan.components))
        named = [
            each for each in known if name in (each.document, Path(each.document).name, each.id)
        ]
        documents = [each.document for each in named]
        if len(set(documents)) > 1:
            raise UsageError(f"{name}: say which: {', '.join(documents)}")
        if named and named[0].comes_later:
            return named[0]
        later = listed([each.document for each in known if each.comes_later], MAX_NAMED) or "none"
        fault = "its checksum, so it is there" if named else "no such document"
        raise UsageError(f"{name}: the plan has {fault}; these come later: {later}")

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
        self._require_component(event.component)
        recorded = self._record(event)
        if not isinstance(recorded, IssueRecorded):
            return 3
        issue = self.read().issues[recorded.issue]
        click.echo(plain_line(f"issue {issue.issue}  {issue.state}  {issue.text}"))
        return 0

    def _require_component(self, name: str) -> None:
        """Raise UsageError for a component that the plan does not have."""
        if not name:
            return
        plan = prepare_plan(self.path, with_builds=False, with_documents=False).plan
        names = [each.component for each in plan.components]
        if name not in names:
            raise UsageError(
                f"--component: {self.plan} has no component {name!r}; it has {', '.join(names)}"
            )

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


# ---- ticking -------------------------------------------------------------------------------------
#
# Give an item of a plan's checklist its result.


MAX_ITEMS_NAMED = 8


class GivenResult(NamedTuple):
    """The result that a person gives: ``value``, a number, stands in place of ``result``.
    ``again``: why it replaces an earlier one."""

    result: ItemState
    value: float | None
    by: Sequence[str]
    comment: str = ""
    document: Path | None = None
    again: str = ""


class _Place(NamedTuple):
    """A checklist that has the item: its trial, or the part of the plan of which one is made."""

    tag: str
    trial: PlanTrial | None
    part: PreparedComponent | None


class Ticking(OfPlan):
    """The checklists of a plan in the chosen components and phases (none: all)."""

    def __init__(
        self, folders: Folders, path: Path, name: str = "", **chosen: Sequence[str]
    ) -> None:
        super().__init__(folders, path, name, **chosen)
        self._prepared: PreparedPlan | None = None
        try:
            self._prepared = prepare_plan(path, self.components, self.phases, with_builds=False)
            self._places = [self._place(part) for part in self._prepared.checklists]
        except InvalidFiles:  # the trials that were made know their items
            self._places = [
                _Place(trial.folder.tag, trial, None)
                for trial in plan_trials.made(folders.trials, path, name)
                if is_checklist(trial) and self.chooses(trial)
            ]
            if not self._places:
                raise

    def _place(self, part: PreparedComponent) -> _Place:
        assert self._prepared is not None
        plan = self._prepared.plan.plan
        trial = plan_trials.latest(self.folders.trials, plan, part, self.name)
        if trial is not None and trial.state == "abandoned":
            trial = None
        tag = trial.folder.tag if trial else part.tag
        return _Place(tag, trial, part)

    def tick(self, name: str, answer: GivenResult) -> int:
        """Record the result of an item; return the exit code: 1 if another person was faster, 3 if
        it is not recorded yet. Raises UsageError."""
        place, item = self._one(name)
        result, figure = _checked(name, item, answer)
        document = self._document(answer.document)
        folder = self._folder(place)
        before = _item(folder, name)
        if before.tick is not None and not answer.again.strip():
            raise UsageError(
                f"{name}: {before.state} since {_since(before)}; to replace it, say why with "
                "--again TEXT: the result before is kept"
            )
        event = ItemTicked(
            item=name,
            result=result,
            figure=figure,
            unit=item.unit,
            comment=answer.comment.strip(),
            document=document.name if document else "",
            sha256=document.sha256 if document else "",
            why=answer.again.strip() if before.tick is not None else "",
            names=list(answer.by),
        )
        recorded = record(folder, event)
        if recorded is None:
            click.echo(f"{folder.tag}: left for its owner's next command to record", err=True)
            return 3
        after = _item(folder, name)
        if any((late.time, late.by) == (recorded.time, event.names) for late in after.uncounted):
            click.echo(
                f"{name}: {after.state} since {_since(after)}, a moment before; yours is kept and "
                "does not count; to replace it, say why with --again TEXT",
                err=True,
            )
            return 1
        shown = "" if figure is None else f" ({show_figure(figure, item.unit)})"
        click.echo(plain_line(f"{folder.tag}: {name} {result}{shown} by {_item_names(answer.by)}"))
        self._print_awaited(folder)
        return 0

    def _print_awaited(self, folder: TrialFolder) -> None:
        awaited = [item.id for item in _items(folder) if item.state == "awaited"]
        if awaited:
            click.echo(f"{count(len(awaited), 'item')} awaited: {listed(awaited, MAX_ITEMS_NAMED)}")
        else:
            click.echo(f"no item is awaited; {self.command(act='status')} shows them")

    def _one(self, name: str) -> tuple[_Place, ChecklistItem]:
        """Return the only checklist that has an item. Raises UsageError."""
        found = []
        known: list[str] = []
        for place in self._places:
            for i, item in enumerate(_component_of(place).items):
                known.append(id_of(item, i))
                if known[-1] == name:
                    found.append((place, item))
        if len(found) == 1:
            return found[0]
        if found:
            tags = ", ".join(place.tag for place, _ in found)
            raise UsageError(f"{name}: say by --component and --phase in which checklist: {tags}")
        if not known:
            raise UsageError(f"{self.path}: has no checklist there (kind: checklist)")
        raise UsageError(f"{name}: is no item; there are {listed(known, MAX_ITEMS_NAMED)}")

    def _folder(self, place: _Place) -> TrialFolder:
        if place.trial is not None:
            return place.trial.folder
        assert self._prepared is not None
        assert place.part is not None
        trials = self.folders.trials
        return plan_trials.checklist(trials, self._prepared, place.part, self.name).folder

    def _document(self, path: Path | None) -> GivenDocument | None:
        return None if path is None else given_document(path, self.path.parent)


def _checked(name: str, item: ChecklistItem, answer: GivenResult) -> tuple[ItemState, float | None]:
    """Return the result and the number. Raises UsageError where they do not fit the item."""
    if answer.result == "waived" and not answer.comment.strip():
        raise UsageError("--waive: say why with --comment; it is kept")
    if answer.value is not None:
        if not item.has_number:
            raise UsageError(f"{name}: takes no number; give --pass, --fail or --waive")
        return result_of(item, answer.value), answer.value
    if item.has_number and answer.result == "pass":
        raise UsageError(f"{name}: passes by a number; give it with --value")
    return answer.result, None


def _component_of(place: _Place) -> Component:
    if place.trial is not None:
        return component_of(place.trial)
    assert place.part is not None
    return place.part.component


def _items(folder: TrialFolder) -> list[ItemStatus]:
    component = folder.record().component
    ticks = Ticks()
    for event in read(folder.journal):
        ticks.apply(event)
    return items_of(component.items if component else (), ticks)


def _item(folder: TrialFolder, name: str) -> ItemStatus:
    return next(item for item in _items(folder) if item.id == name)


def _since(item: ItemStatus) -> str:
    """Return when an item got its result, and by whom."""
    assert item.tick is not None
    return f"{show_time(item.tick.time)} by {_item_names(item.tick.by)}"


def _item_names(by: Sequence[str]) -> str:
    return plain_line(" and ".join(by))


# ---- acts of accept ------------------------------------------------------------------------------


def accept_tick(
    folders: Folders,
    /,
    item: str,
    passed: bool,
    failed: bool,
    value: float | None,
    waive: bool,
    by: tuple[str, ...],
    document: Path | None,
    comment: str,
    again: str,
    **chosen: Any,
) -> int:
    """Do ``seatrial accept tick``; return the exit code."""
    if passed + failed + waive + (value is not None) != 1:
        raise click.UsageError("give one of --pass, --fail, --value and --waive")
    names = names_of(by)
    result: ItemState = "waived" if waive else "pass" if passed else "fail"
    answer = GivenResult(result, value, names, comment, document, again)
    return Ticking(folders, **chosen).tick(item, answer)


def accept_evidence(
    folders: Folders, /, path: Path, name: str, document: str, by: tuple[str, ...], **given: Any
) -> int:
    """Do ``seatrial accept evidence``; return the exit code."""
    file = GivenFile(by=names_of(by), **given)
    return Recording(folders, path, name).evidence(document, file)


def accept_record(
    folders: Folders,
    /,
    path: Path,
    name: str,
    text: str,
    by: tuple[str, ...],
    at: int | None,
    **about: Any,
) -> int:
    """Do ``seatrial accept record``; return the exit code."""
    entry = PlanEntry(text=text.strip(), at=at or 0, names=names_of(by), **about)
    return Recording(folders, path, name).entry(entry)


# ---- acts of issue -------------------------------------------------------------------------------


def issue_open(folders: Folders, /, path: Path, name: str, **given: Any) -> int:
    """Do ``seatrial issue open``; return the exit code."""
    if not given["text"]:
        raise UsageError("TEXT: say what the issue is")
    return _record_issue(folders, path, name, state="open", **given)


def issue_change(
    folders: Folders,
    /,
    path: Path,
    name: str,
    issue: int,
    reopen: bool,
    by: tuple[str, ...],
    **changes: Any,
) -> int:
    """Do ``seatrial issue change``; return the exit code."""
    if not (reopen or any(changes.values())):
        raise UsageError("say what changes, such as --owner or --comment")
    state = "open" if reopen else ""
    return _record_issue(folders, path, name, by, issue=issue, state=state, **changes)


def issue_close(folders: Folders, /, path: Path, name: str, **given: Any) -> int:
    """Do ``seatrial issue close``; return the exit code."""
    if not given["comment"]:
        raise UsageError("--comment: say how the issue was settled")
    return _record_issue(folders, path, name, state="closed", **given)


def issue_list(folders: Folders, /, path: Path, name: str, closed: bool, form: str) -> int:
    """Do ``seatrial issue list``; return the exit code."""
    records = Recording(folders, path, name).read()
    found = list(records.issues.values()) if closed else records.open_issues
    if form == "json":
        click.echo(to_json([export.record(issue) for issue in found]), nl=False)
    elif found:
        click.echo(table_text(issues_table(found)))
    else:
        click.echo("no issue" if closed else "no issue is open")
    return 0


def _record_issue(
    folders: Folders,
    path: Path,
    name: str,
    by: tuple[str, ...],
    severity: str | None = None,
    runs: tuple[str, ...] = (),
    **fields: Any,
) -> int:
    """Record a new issue, or a change of one; return the exit code."""
    whole, names = _whole(folders, runs), names_of(by)
    event = IssueRecorded(severity=severity or "", runs=whole, names=names, **fields)
    return Recording(folders, path, name).issue(event)


def _whole(folders: Folders, runs: tuple[str, ...]) -> list[str]:
    """Return the whole ids of runs. Raises UsageError for one that does not exist."""
    if not runs:
        return []

    with opened(folders) as store:
        found = [queries.run(store, run) for run in runs]
    return [f"{run.trial}/{run.run_id}" for run in found]
