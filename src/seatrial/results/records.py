"""What people recorded about a plan: evidence, issues, milestones, replaced parts, incidents.

    records = records_in(folder)
    records.issues[1].state, records.entries

They are events of one trial of the plan, which runs nothing: see ``execute.plan_trials``.
"""

from collections.abc import Iterable

from msgspec import Struct
from msgspec.structs import replace

from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import Event, EvidenceGiven, IssueRecorded, PlanEntry
from seatrial.journal.journal import read
from seatrial.model.codes import code_of
from seatrial.results.trial_history import TrialHistory

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
