"""What people recorded about a plan: evidence, issues, milestones, replaced parts, incidents.

    records = records_in(folder)
    records.issues[1].state, records.entries

They are events of one trial of the plan, which runs nothing: see ``execute.plan_trials``.
"""

import hashlib
import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.execute.plan.component import ItemResult, ItemStatus
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import open_regular
from seatrial.journal.events import Event, EvidenceGiven, IssueRecorded, PlanEntry
from seatrial.journal.journal import read
from seatrial.model.codes import code_of
from seatrial.model.plan import Evidence
from seatrial.results.trial_history import TrialHistory
from seatrial.units import count, listed

SEVERITIES = ("critical", "major", "minor")

_GIVEN = ("state", "text", "component", "severity", "owner", "nodes")  # empty: as it was


class Issue(Struct, frozen=True, kw_only=True):
    """An issue as it is after all of its events."""

    issue: int
    state: str = "open"
    text: str = ""
    component: str = ""
    severity: str = ""
    owner: str = ""
    runs: list[str] = []
    nodes: str = ""
    #: all that were given, in their order
    comments: list[str] = []
    #: in ns, as ``changed``
    opened: int
    #: the names that were given, as ``by``
    opened_by: list[str]
    changed: int
    by: list[str]
    #: the account of the latest
    user: str

    @property
    def is_open(self) -> bool:
        return self.state == "open"


class RecordedEntry(Struct, frozen=True, kw_only=True):
    """A milestone, a replaced part or an incident, at a time (ns)."""

    kind: str
    at: int
    text: str
    nodes: str
    by: list[str]
    user: str
    recorded: int


class PlanRecords:
    """The fold of the events of a plan's records."""

    def __init__(self) -> None:
        self.given: dict[str, list[EvidenceGiven]] = {}
        self.issues: dict[int, Issue] = {}
        self._entries: list[RecordedEntry] = []

    @property
    def entries(self) -> list[RecordedEntry]:
        """What happened, in the order of its times."""
        return sorted(self._entries, key=lambda entry: entry.at)

    @property
    def open_issues(self) -> list[Issue]:
        """The issues that are open, the most severe first."""
        order = {name: i for i, name in enumerate(SEVERITIES)}
        found = [issue for issue in self.issues.values() if issue.is_open]
        return sorted(found, key=lambda one: (order.get(one.severity, len(order)), one.issue))

    def fold(self, events: Iterable[Event]) -> None:
        """Fold many events."""
        for event in events:
            self.apply(event)

    def apply(self, event: Event) -> None:
        """Fold one event."""
        if isinstance(event, EvidenceGiven):
            before = self.given.setdefault(event.document, [])
            if not before or event.why:
                before.append(event)
        elif isinstance(event, PlanEntry):
            entry = RecordedEntry(
                kind=event.kind,
                at=event.at or event.time,
                text=event.text,
                nodes=event.nodes,
                by=event.names,
                user=event.by,
                recorded=event.time,
            )
            self._entries.append(entry)
        elif isinstance(event, IssueRecorded):
            self._on_issue(event)

    def _on_issue(self, event: IssueRecorded) -> None:
        before = self.issues.get(event.issue)
        if before is None:
            before = Issue(
                issue=event.issue,
                opened=event.time,
                opened_by=event.names,
                changed=event.time,
                by=event.names,
                user=event.by,
            )
        given = {name: value for name in _GIVEN if (value := getattr(event, name))}
        self.issues[event.issue] = replace(
            before,
            **given,
            runs=list(dict.fromkeys([*before.runs, *event.runs])),
            comments=[*before.comments, *([event.comment] if event.comment else [])],
            changed=event.time,
            by=event.names,
            user=event.by,
        )


def records_in(folder: TrialFolder | None) -> PlanRecords:
    """Return what people recorded, by the trial of a plan's records; nothing if there is none."""
    found = PlanRecords()
    found.fold(read(folder.journal) if folder else ())
    return found


# ---- reviews -------------------------------------------------------------------------------------
#
# List what people said of the runs of a trial: causes, comments, exclusions by agreement.


class RunReview(Struct, frozen=True, kw_only=True):
    """What people said of a run, all reviews together. ``is_excluded``: both sides agreed that
    criteria leave it out. ``time`` (ns) and ``user`` are of the latest review."""

    run: str
    test: str
    case: str
    verdict: str
    cause: str
    comment: str
    is_excluded: bool
    by: list[str]
    user: str
    time: int


def reviews_of(history: TrialHistory) -> list[RunReview]:
    """Return the reviews of the runs of a trial, in the order of the runs."""
    return [
        RunReview(
            run=run.id,
            test=history.test_of(run),
            case=history.cases[run.case].name,
            verdict=code_of(run.code).name,
            cause=run.review.cause,
            comment=run.review.comment,
            is_excluded=run.is_excluded,
            by=run.review.names,
            user=run.review.by,
            time=run.review.time,
        )
        for run in history.runs
        if run.review is not None
    ]


# ---- evidence ------------------------------------------------------------------------------------
#
# The documents of evidence: which are there, and are they as they were signed for?
#
#     evidence_of(component.evidence, records.given, folder)[0].state     # "awaited"
#     given_document(Path("burn-in.pdf"), plan_folder)     # name, size and SHA-256 of a document


MAX_NAMED = 5
_NOW = {"changed": "changed since it was signed for", "not here": "is not here"}

DocumentState = Literal["as it was", "changed", "not here"]
EvidenceState = DocumentState | Literal["awaited"]


class EvidenceStatus(Struct, frozen=True, kw_only=True):
    """A document of evidence: as the plan has it, or as a person gave it later."""

    document: str
    #: its path, relative to the plan
    file: str
    sha256: str
    signed_by: str
    signed_on: str
    about: str
    clause: str
    id: str
    #: whether it is there and has the checksum that was signed for
    state: EvidenceState
    #: who gave it later
    user: str = ""
    #: when that was (ns)
    given: int | None = None
    #: how many it replaced
    earlier: int = 0


def state_of_document(path: Path, sha256: str) -> DocumentState:
    """Return whether a document still has its checksum."""
    try:
        with open_regular(path) as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
    except (OSError, ValueError):
        return "not here"
    return "as it was" if found == sha256.lower() else "changed"


Look = Callable[[Path, str], DocumentState]
"""How a document is looked at: ``state_of_document``, or what remembers its answers."""


def evidence_of(
    written: Sequence[Evidence],
    given: Mapping[str, list[EvidenceGiven]],
    folder: Path,
    look: Look = state_of_document,
) -> list[EvidenceStatus]:
    """Return the documents of a component, each looked at: as the plan has them, or as they were
    given later; ``folder`` is the plan's."""
    return [_evidence(each, given.get(each.document, []), folder, look) for each in written]


def _evidence(
    written: Evidence, given: list[EvidenceGiven], folder: Path, look: Look
) -> EvidenceStatus:
    found = EvidenceStatus(
        document=written.document,
        file=written.document,
        sha256=written.sha256,
        signed_by=written.signed_by,
        signed_on=written.signed_on,
        about=written.about,
        clause=written.clause,
        id=written.id,
        state="awaited",
    )
    if not written.comes_later:
        return replace(found, state=look(folder / written.document, written.sha256))
    if not given:
        return found
    last = given[-1]
    return replace(
        found,
        file=last.file,
        sha256=last.sha256,
        signed_by=", ".join(last.names),
        signed_on=last.on,
        state=look(folder / last.file, last.sha256),
        user=last.by,
        given=last.time,
        earlier=len(given) - 1,
    )


def items_of_now(
    items: Sequence[ItemStatus], folder: Path, look: Look = state_of_document
) -> list[ItemStatus]:
    """Return items that say of each document whether it is as it was; ``folder`` is the plan's."""

    def looked_at(tick: ItemResult | None) -> ItemResult | None:
        if tick is None or not tick.sha256:
            return tick
        return replace(tick, now=look(folder / tick.document, tick.sha256))

    return [replace(item, tick=looked_at(item.tick)) for item in items]


def awaited_of(items: Sequence[ItemStatus], evidence: Sequence[EvidenceStatus]) -> list[str]:
    """Return what people still have to give: items and documents."""
    names = [item.id for item in items if item.state == "awaited"]
    named = [f"{count(len(names), 'item')} ({listed(names, MAX_NAMED)})"] if names else []
    return named + [each.document for each in evidence if each.state == "awaited"]


def unsound_of(items: Sequence[ItemStatus], evidence: Sequence[EvidenceStatus]) -> list[str]:
    """Return the documents that are not as they were signed for, with their states."""
    found: list[tuple[str, str]] = [(each.document, each.state) for each in evidence]
    found += [(item.tick.document, item.tick.now) for item in items if item.tick]
    return [f"{name} {_NOW[state]}" for name, state in found if state in _NOW]


def state_of_evidence(found: Sequence[EvidenceStatus]) -> str:
    """Return the state of a component that rests on documents alone."""
    states = {each.state for each in found}
    if states & {"changed", "not here"}:
        return "evidence changed"
    return "awaited" if "awaited" in states else "shown by evidence"


def words_of(one: EvidenceStatus) -> str:
    """Return the state of a document, as the plan's people read it."""
    words = {"as it was": "shown by evidence", "changed": "changed since it was signed for"}
    return words.get(one.state, one.state)


class GivenDocument(Struct, frozen=True):
    """A document: its path, relative to the plan's folder where it is below, its bytes and sum."""

    name: str
    size: int
    sha256: str


def given_document(path: Path, folder: Path) -> GivenDocument:
    """Return a document that a person gives. Raises UsageError where it cannot be read."""
    try:
        with open_regular(path) as file:
            sha256 = hashlib.file_digest(file, "sha256").hexdigest()
            size = os.fstat(file.fileno()).st_size
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise UsageError(f"{path}: cannot be read: {reason}; name the document's file") from error
    whole = path.absolute()
    home = folder.absolute()
    name = whole.relative_to(home) if whole.is_relative_to(home) else whole
    return GivenDocument(str(name), size, sha256)
