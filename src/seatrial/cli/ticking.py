"""Give an item of a plan's checklist its result."""

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import click

from seatrial.acceptance.documents import GivenDocument, given
from seatrial.cli import Folders
from seatrial.cli.plan_control import OfPlan, component_of, is_checklist
from seatrial.errors import InvalidFiles, UsageError
from seatrial.journal.events import ItemTicked
from seatrial.journal.journal import read
from seatrial.plan.checklist import ItemState, ItemStatus, Ticks, id_of, items_of, result_of
from seatrial.plan.model import ChecklistItem, Component
from seatrial.plan.prepare import PreparedComponent, PreparedPlan, prepare_plan
from seatrial.trial import plan_trials
from seatrial.trial.folder import TrialFolder
from seatrial.trial.plan_trials import PlanTrial
from seatrial.trial.recording import record
from seatrial.units import count, listed, show_figure
from seatrial.verify.reading import plain_line

MAX_NAMED = 8


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
                f"{name}: {before.state} since {_told(before)}; to replace it, say why with "
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
                f"{name}: {after.state} since {_told(after)}, a moment before; yours is kept and "
                "does not count; to replace it, say why with --again TEXT",
                err=True,
            )
            return 1
        shown = "" if figure is None else f" ({show_figure(figure, item.unit)})"
        click.echo(plain_line(f"{folder.tag}: {name} {result}{shown} by {_names(answer.by)}"))
        self._print_awaited(folder)
        return 0

    def _print_awaited(self, folder: TrialFolder) -> None:
        awaited = [item.id for item in _items(folder) if item.state == "awaited"]
        if awaited:
            click.echo(f"{count(len(awaited), 'item')} awaited: {listed(awaited, MAX_NAMED)}")
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
        raise UsageError(f"{name}: is no item; there are {listed(known, MAX_NAMED)}")

    def _folder(self, place: _Place) -> TrialFolder:
        if place.trial is not None:
            return place.trial.folder
        assert self._prepared is not None
        assert place.part is not None
        trials = self.folders.trials
        return plan_trials.checklist(trials, self._prepared, place.part, self.name).folder

    def _document(self, path: Path | None) -> GivenDocument | None:
        return None if path is None else given(path, self.path.parent)


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


def _told(item: ItemStatus) -> str:
    """Return when an item got its result, and by whom."""
    from seatrial.cli.query_common import show_time

    assert item.tick is not None
    return f"{show_time(item.tick.time)} by {_names(item.tick.by)}"


def _names(by: Sequence[str]) -> str:
    return plain_line(" and ".join(by))
