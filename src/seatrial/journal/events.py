"""The events of a journal: one immutable Struct a kind.

    event = JobStarted(time=now, trial="demo", machine="vm", run_id="flc6evne6aub", nodes="n001")
    event.name                          # "job_start"

``journal.encoding`` makes lines of JSON of them, and events of lines.

The names on disk (``event``, ``value``, ``alias``, ``text``, ...) are those of version 0.1 and, as
far as it has them, of the OLCF Test Harness. An event of a kind that this version does not know is
an ``UnknownEvent``: it is kept as it was written and changes nothing. The reference is made of the
docstrings.
"""

import math
import re
from collections.abc import Iterator
from enum import StrEnum
from typing import Annotated, Any, ClassVar

from msgspec import Meta, Struct, field
from msgspec.structs import force_setattr

from seatrial.hooks import load, provided
from seatrial.model.codes import code_of
from seatrial.units import count, show_figure, show_seconds

Number = int | float
Whole = Annotated[int, Meta(ge=-(1 << 62), le=1 << 62)]  # what a database can hold

_EXIT_CODE = r"exit code (-?[0-9]{1,10})"  # how version 0.1 wrote that of a job
_RECALLED = "taken back before it started"  # how version 0.1 wrote that a run was recalled


HEAVY_TESTS = "tests whose I/O is not light"


class NodeTurn(StrEnum):
    """What becomes of nodes by an event."""

    DOWN = "down"
    UP = "up"
    EXCLUDED = "excluded"
    ADMITTED = "let back in"

    @property
    def is_good(self) -> bool:
        """Whether the nodes may be used again, as far as this is about."""
        return self in (NodeTurn.UP, NodeTurn.ADMITTED)


class Event(Struct, frozen=True, omit_defaults=True, gc=False, tag_field="event", tag=str.lower):
    """What every event has: ``time`` in nanoseconds since the epoch, UTC (0: not recorded yet), the
    tag of the trial, and the name of the machine.

    What other rooms must know of a kind is a class variable of it. So a new kind is declared here,
    and named again only by what its event changes."""

    time: int = field(default_factory=int)  # always written, so not a default that is omitted
    trial: str = ""
    machine: str = ""

    #: The OLCF Test Harness's number of the kind, or one that it does not use.
    number: ClassVar[int] = 0
    #: The members that its row in the store has as value, detail and text, by their names on disk.
    stored_value: ClassVar[str] = "value"
    stored_detail: ClassVar[str] = "alias"
    stored_text: ClassVar[str] = "text"
    #: In the place of a member that the kind does not have.
    nothing: ClassVar[None] = None
    #: What becomes of its ``nodes``, if it is about nodes.
    about_nodes: ClassVar[NodeTurn | None] = None
    #: Whether people record it, often long after the trial: it is no sign of life of the trial.
    is_late: ClassVar[bool] = False
    #: Whether it is of a run that has its verdict.
    follows_verdict: ClassVar[bool] = False
    #: What a person did, as the word of the command; "" for what people do not do.
    action: ClassVar[str] = ""
    #: Whether the trial does so by itself, too; then it is no action where nobody is named.
    is_also_automatic: ClassVar[bool] = False
    #: The first words of the line that the terminal prints of it; None: it prints none.
    told_as: ClassVar[str | None] = None
    #: The first words of the message to people, where it is a turn of the trial.
    turn: ClassVar[str] = ""

    @property
    def name(self) -> str:
        """The event's name on disk, such as ``job_start``."""
        return str(self.__struct_config__.tag)

    @property
    def run_id(self) -> str:
        """The id of its run; "" for events of the trial or of a build."""
        return ""

    @property
    def case(self) -> str:
        """The case of its run; "" for events of the trial or of a build."""
        return ""

    @property
    def test(self) -> str:
        """The test that it is about; "" for none."""
        return ""

    @property
    def nodes(self) -> str:
        """The nodes that it is about, folded; "" for none."""
        return ""

    @property
    def request(self) -> str:
        """The file of the request that it answers; "" for what nobody asked for."""
        return ""

    @property
    def by(self) -> str:
        """The person who did it; "" for nobody."""
        return ""

    @property
    def reason(self) -> str:
        """The reason that it gives; "" for none."""
        return ""

    @property
    def acted_on(self) -> str:
        """The test, nodes or run that an ``action`` was about, in words; "" for the trial."""
        return ""

    @classmethod
    def row_words(cls, value: Any, detail: str, text: str) -> str:
        """Return what its row in the store says, in a few words of one line. ``value`` may be of
        another type than the kind gives it, as jobs and other versions write events, too."""
        return _joined(cls.row_start(value, detail), _first_line(text), by=": ")

    @classmethod
    def row_start(cls, value: Any, detail: str) -> str:
        """Return what its row says before the first line of its text."""
        return _joined("" if value is None else str(value), detail)


def _first_line(text: str) -> str:
    return text.partition("\n")[0]


def _joined(*words: str, by: str = " ") -> str:
    return by.join(filter(None, words))


def _code_name(value: Any) -> str:
    """Return the name of the code of a verdict; what is no code as it is written."""
    return code_of(value).name if isinstance(value, int) else str(value or "")


# ---- of a run ---------------------------------------------------------------------------------


class RunEvent(Event, frozen=True, tag="run"):
    """Something happened to a run: one attempt of a case of a test of an application."""

    app: str = ""
    test: str = ""
    case: str = ""
    run_id: str = ""


class RunCreated(RunEvent, frozen=True, kw_only=True, tag="logging_start"):
    """A run was created: its directory (``path``) and scripts are being written."""

    number: ClassVar[int] = 110
    path: str = ""


class RunSubmitted(RunEvent, frozen=True, kw_only=True, tag="submit_start"):
    """A run is about to be given to the backend (intent), as a part of a submission. ``target`` is
    its metadata target (``FILESYSTEM/TARGET``), ``stage`` is ``alone`` or ``full`` in a component
    that compares the two. Runs with the same ``bundle`` (the id of its first run) share an
    allocation, in the order of ``position``, from 1 on. ``nodes`` are those that it must get, with
    commas, in the order of its ranks; "" where the scheduler chooses."""

    number: ClassVar[int] = 140
    stored_value: ClassVar[str] = "nodes"
    submission: str = field(default="", name="alias")
    target: str = ""
    stage: str = ""
    bundle: str = ""
    position: Whole = 0
    nodes: str = ""

    @classmethod
    def row_start(cls, value: Any, detail: str) -> str:
        return _joined(detail, f"on {value}" if value is not None else "")


class SubmitEnded(RunEvent, frozen=True, kw_only=True, tag="submit_end"):
    """The backend took the run (``refused`` is 0) or refused it (1, with the reason)."""

    number: ClassVar[int] = 150
    refused: Whole = field(name="value")
    reason: str = field(default="", name="text")


class JobQueued(RunEvent, frozen=True, kw_only=True, tag="job_queued"):
    """The backend named the run's job."""

    number: ClassVar[int] = 160
    stored_detail: ClassVar[str] = "job_id"
    job_id: str = ""


class JobStarted(RunEvent, frozen=True, kw_only=True, tag="job_start"):
    """The backend says that the job runs, and on which nodes if it knows them."""

    number: ClassVar[int] = 165
    nodes: str = ""


class OutputQuiet(RunEvent, frozen=True, kw_only=True, tag="output_quiet"):
    """The run's output has not grown for so many seconds."""

    number: ClassVar[int] = 168
    seconds: Number = field(name="value")


class JobsOwnEvent(RunEvent, frozen=True, kw_only=True, tag="job"):
    """Something that the job of a run wrote itself, with the time of its node."""


class CompatStarted(JobsOwnEvent, frozen=True, kw_only=True, tag="compat_start"):
    """The nodes of a compat job were to become a cluster: so many ``answered`` of those ``asked``,
    in so many seconds; ``missing`` are the others, without which it goes on if they are few enough
    for its quorum. ``mode`` is ``shim`` or ``sshd``."""

    number: ClassVar[int] = 169
    answered: Whole = field(name="value")
    asked: Whole = 0
    seconds: Number = 0
    missing: str = field(default="", name="nodes")
    mode: str = field(default="", name="alias")
    text: str = ""

    @classmethod
    def row_words(cls, value: Any, detail: str, text: str) -> str:
        return f"{detail}: {text}"


class ScriptStarted(JobsOwnEvent, frozen=True, kw_only=True, tag="binary_execute_start"):
    """The run's script started. ``modules`` were loaded,
    ``environment`` is the hash of its environment. ``facts``: what the first job of a toolchain
    found on its node, such as kernel, CPU and compilers. ``gpus``: the unique ids of the GPUs that
    it was given on its first node. ``node_facts``: the digest of the facts of its nodes, as they
    were last collected."""

    number: ClassVar[int] = 170
    stored_value: ClassVar[str] = "gpus"
    stored_detail: ClassVar[str] = "nodes"
    nodes: str = ""
    job_id: str = ""
    modules: str = field(default="", name="text")
    environment: str = field(default="", name="alias")
    facts: dict[str, str] | None = None
    gpus: str = ""
    node_facts: str = ""

    @classmethod
    def row_start(cls, value: Any, detail: str) -> str:
        return _joined(detail, f"GPUs {value}" if value is not None else "")


class ScriptEnded(JobsOwnEvent, frozen=True, kw_only=True, tag="binary_execute_end"):
    """The run's script ended with an exit code.
    ``sizes``: bytes of stdout and of the files that are judged, as they were on that node.
    ``unwritten``: the job could not write something, or its file system was full at the end."""

    number: ClassVar[int] = 180
    exit_code: Whole | None = field(default=None, name="value")
    job_id: str = ""
    sizes: dict[str, int] | None = None
    unwritten: bool = False

    @classmethod
    def row_start(cls, value: Any, detail: str) -> str:
        return _joined(f"exit code {value}", detail)


class JobEnded(RunEvent, frozen=True, kw_only=True, tag="job_end"):
    """The job is over by the scheduler's word. ``code`` is a verdict code (0 where the job ended by
    itself), ``state`` the scheduler's word for it, ``exit_code`` the job's as the scheduler knows
    it. ``recalled``: Seatrial recalled the run before its job started."""

    number: ClassVar[int] = 185
    code: Whole = field(name="value")
    state: str = field(default="", name="alias")
    text: str = ""
    nodes: str = ""
    exit_code: Whole | None = None
    recalled: bool = False

    def __post_init__(self) -> None:
        # Version 0.1 wrote these two as words, and no other member.
        if self.exit_code is None and (written := re.fullmatch(_EXIT_CODE, self.text)):
            force_setattr(self, "exit_code", int(written[1]))
        if self.state == _RECALLED:
            force_setattr(self, "recalled", True)

    @classmethod
    def row_start(cls, value: Any, detail: str) -> str:
        return _joined(_code_name(value) if value else "", detail)


class CheckStarted(RunEvent, frozen=True, kw_only=True, tag="check_start"):
    """The run is being judged."""

    number: ClassVar[int] = 190


class MetricRecorded(RunEvent, frozen=True, kw_only=True, tag="metric"):
    """A figure of merit of the run; ``better`` is ``higher``, ``lower`` or ``none``."""

    number: ClassVar[int] = 195
    stored_text: ClassVar[str] = "unit"
    metric: str = field(default="", name="alias")
    value: Number | None = None
    unit: str = ""
    better: str = ""

    @classmethod
    def row_words(cls, value: Any, detail: str, text: str) -> str:
        shown = show_figure(value, text) if isinstance(value, int | float) else value
        return f"{detail} = {shown}"


class RunJudged(RunEvent, frozen=True, kw_only=True, tag="check_end"):
    """The run's verdict: its code, its name, and the reason. ``will_rerun``: it does not stand, as
    the case runs again. ``sha256``: the checksums of stdout, stderr and the files that were judged,
    by their names; "" for one that is too large. ``known``: why a failure of the case is known; a
    run that passes is then told. ``cause``: what it failed of, by a failure mode of its test, which
    has a ``cause_code``, or by a log rule; the ``cause_line`` of its output that told it, and the
    ``advice``. Without a ``cause``, ``cause_line`` is the last line of a script that failed."""

    number: ClassVar[int] = 200
    code: Whole = field(name="value")
    verdict: str = field(default="", name="alias")
    reason: str = field(default="", name="text")
    will_rerun: bool = field(default=False, name="again")
    sha256: dict[str, str] | None = None
    known: str = ""
    cause: str = ""
    cause_code: Whole = 0
    cause_line: str = ""
    advice: str = ""

    @classmethod
    def row_start(cls, value: Any, detail: str) -> str:
        return _code_name(value)


class OutputRemoved(RunEvent, frozen=True, kw_only=True, tag="output_remove"):
    """Outputs of the judged run are removed, as ``keep`` of its test or component says: so many
    files of ``size`` bytes in all; the first 64 ``names``, with their folders."""

    number: ClassVar[int] = 205
    follows_verdict: ClassVar[bool] = True
    files: Whole = field(name="value")
    size: Whole = 0
    keep: str = field(default="", name="alias")
    names: list[str] | None = None

    @classmethod
    def row_words(cls, value: Any, detail: str, text: str) -> str:
        return f"{count(value or 0, 'file')} removed by keep: {detail}"


class RunCancelAsked(RunEvent, frozen=True, kw_only=True, tag="run_cancel"):
    """A person, ``by`` name, asked to cancel this run alone, and why; ``request`` is the file of
    the request."""

    number: ClassVar[int] = 220
    action: ClassVar[str] = "cancel"
    by: str = ""
    reason: str = field(default="", name="text")
    request: str = field(default="", name="path")

    @property
    def acted_on(self) -> str:
        return self.run_id


class RunJudgedAgain(RunEvent, frozen=True, kw_only=True, tag="check_again"):
    """The run got another verdict in place of ``before`` (its code), as a check, a tolerance or a
    reference was corrected after it was judged: ``by`` whom, ``why``, and by which definitions:
    the SHA-256 of the test's checks and metrics, and of the references."""

    number: ClassVar[int] = 210
    is_late: ClassVar[bool] = True
    follows_verdict: ClassVar[bool] = True
    stored_detail: ClassVar[str] = "by_and_why"
    code: Whole = field(name="value")
    verdict: str = field(default="", name="alias")
    reason: str = field(default="", name="text")
    will_rerun: bool = field(default=False, name="again")
    before: Whole = 0
    by: str = ""
    why: str = ""
    checks: str = ""
    references: str = ""

    @property
    def by_and_why(self) -> str:
        """Who judged it again, and why."""
        return _joined(self.by, self.why, by=": ")

    @classmethod
    def row_words(cls, value: Any, detail: str, text: str) -> str:
        return f"{_joined(_code_name(value), _first_line(text), by=': ')}; by {detail}"


class ReferencesCorrected(Event, frozen=True, kw_only=True, tag="references_change"):
    """A person judged the trial again by other references, ``by`` whom and why: from now on its
    criteria use these. ``entries`` are the references as their file has them, ``references`` is
    their SHA-256."""

    number: ClassVar[int] = 212
    is_late: ClassVar[bool] = True
    action: ClassVar[str] = "correct"
    references: str = ""
    entries: list[dict[str, Any]] = []
    by: str = ""
    reason: str = field(default="", name="text")

    @property
    def acted_on(self) -> str:
        return "the references"


class RunReviewed(RunEvent, frozen=True, kw_only=True, tag="run_review"):
    """People judged a run that has its verdict: a ``cause``, a ``comment``. ``is_excluded`` is 1
    where both sides agreed that criteria leave it out. What a later review does not say stays; one
    that is ``withdrawn`` takes the earlier ones back. ``names`` are those that were given, ``by``
    is the account that wrote it."""

    number: ClassVar[int] = 240
    is_late: ClassVar[bool] = True
    follows_verdict: ClassVar[bool] = True
    stored_detail: ClassVar[str] = "by_and_why"
    is_excluded: Whole = field(default=0, name="value")
    cause: str = field(default="", name="alias")
    comment: str = field(default="", name="text")
    withdrawn: bool = False
    names: list[str] = []
    by: str = ""
    request: str = field(default="", name="path")

    @property
    def by_and_why(self) -> str:
        """Who judged it, and how: ``A, B: F2, excluded``."""
        state = "withdrawn" if self.withdrawn else "excluded" if self.is_excluded else ""
        how = ", ".join(filter(None, (self.cause, state)))
        return ": ".join(filter(None, (", ".join(self.names), how)))


class FigureGiven(RunEvent, frozen=True, kw_only=True, tag="figure_given"):
    """A figure of merit that somebody else gave, such as a vendor; Seatrial did not measure it.
    ``figure`` is the mean or median of ``n`` measurements, with their standard deviation, least and
    greatest where these were given; ``line`` is that of the file of figures. ``system`` is what it
    was measured on, ``source`` where it stands, such as a paper, ``date`` when it was measured or
    published: a year, a month or a day."""

    number: ClassVar[int] = 271
    stored_detail: ClassVar[str] = "metric_and_origin"
    stored_text: ClassVar[str] = "unit"
    metric: str = field(default="", name="alias")
    figure: Number | None = field(default=None, name="value")
    unit: str = ""
    better: str = ""
    n: Whole = 1
    sd: Number | None = None
    least: Number | None = None
    greatest: Number | None = None
    stage: str = ""
    line: Whole = 0
    system: str = ""
    source: str = ""
    date: str = ""

    @property
    def metric_and_origin(self) -> str:
        """The metric, the system, the source and the date, a line each; the metric alone of one
        that does not tell where it comes from."""
        return "\n".join((self.metric, self.system, self.source, self.date)).rstrip("\n")

    @classmethod
    def row_words(cls, value: Any, detail: str, text: str) -> str:
        metric, *origin = detail.split("\n")
        where = f" of {', '.join(filter(None, origin))}" if any(origin) else ""
        return f"{MetricRecorded.row_words(value, metric, text)}, given{where}"


# ---- of a build -------------------------------------------------------------------------------


class BuildEvent(Event, frozen=True, kw_only=True, tag="build"):
    """Something happened to the build of a key; ``test`` is one of those that need it."""

    app: str = ""
    test: str = ""
    key: str = field(default="", name="alias")
    path: str = ""


class BuildStarted(BuildEvent, frozen=True, kw_only=True, tag="build_start"):
    """A build is about to start (intent), in the directory ``path``."""

    number: ClassVar[int] = 120


class BuildEnded(BuildEvent, frozen=True, kw_only=True, tag="build_end"):
    """A build ended: ``code`` is 0 (good), 1 (failed) or 23 (timeout), ``log`` its tail. ``facts``:
    what it found, such as host, toolchain and versions of compilers; ``made_by``: the trial that
    made the build, which this one shares; ``anew``: why this one made it anew, where trials share
    builds."""

    number: ClassVar[int] = 130
    code: Whole = field(name="value")
    log: str = field(default="", name="text")
    facts: dict[str, str] | None = None
    made_by: str = ""
    anew: str = ""


# ---- of the trial -----------------------------------------------------------------------------


class TrialOpened(Event, frozen=True, kw_only=True, tag="opened"):
    """``host`` drives the trial from now on. ``boot`` is the id of the host's boot, and ``uptime``
    the ns since then, by which later drivers in that boot go on with the trial's clock."""

    host: str = field(default="", name="nodes")
    boot: str = ""
    uptime: int = 0


class TrialStarted(TrialOpened, frozen=True, kw_only=True, tag="trial_start"):
    """The trial started."""

    number: ClassVar[int] = 300


class TrialResumed(TrialOpened, frozen=True, kw_only=True, tag="trial_resume"):
    """The trial was resumed."""

    number: ClassVar[int] = 310


class RequestedEvent(Event, frozen=True, kw_only=True, tag="requested"):
    """What a person asked for, ``by`` name; ``request`` is the file of the request if the trial was
    running."""

    request: str = field(default="", name="path")
    by: str = ""


class ReasonedEvent(RequestedEvent, frozen=True, kw_only=True, tag="reasoned"):
    """What a person asked for, or what followed by itself, and why."""

    reason: str = field(default="", name="text")


class TestEvent(ReasonedEvent, frozen=True, kw_only=True, tag="of_test"):
    """Something happened to a test of the trial, and to none of its runs."""

    __test__: ClassVar[bool] = False
    app: str = ""
    test: str = ""

    @property
    def acted_on(self) -> str:
        return self.test


class TrialPaused(ReasonedEvent, frozen=True, kw_only=True, tag="trial_pause"):
    """The trial stopped and can be resumed."""

    number: ClassVar[int] = 320
    action: ClassVar[str] = "pause"
    is_also_automatic: ClassVar[bool] = True
    told_as: ClassVar[str | None] = ""
    turn: ClassVar[str] = "paused"


class TrialCancelled(Event, frozen=True, kw_only=True, tag="trial_cancel"):
    """A person cancelled the trial."""

    number: ClassVar[int] = 330
    told_as: ClassVar[str | None] = ""
    turn: ClassVar[str] = "cancelled"
    reason: str = field(default="", name="text")


class TrialEnded(Event, frozen=True, kw_only=True, tag="trial_end"):
    """Every case has its runs, or the time is up. ``failed`` is 0 if all passed, else 1; ``reason``
    says why a sustained component ended before its time."""

    number: ClassVar[int] = 340
    failed: Whole = field(name="value")
    reason: str = field(default="", name="text")


class FiguresImported(Event, frozen=True, kw_only=True, tag="figures_import"):
    """Figures that somebody else gave were brought in from a file, ``by`` whom. Nothing of the
    trial is measured."""

    number: ClassVar[int] = 270
    figures: Whole = field(name="value")
    file: str = field(default="", name="path")
    sha256: str = ""
    by: str = ""


class ResultsImported(Event, frozen=True, kw_only=True, tag="results_import"):
    """The runs of the trial were made with another tool, such as the OLCF Test Harness: so many
    ``results`` were brought in from a file or folder, ``by`` whom."""

    number: ClassVar[int] = 272
    results: Whole = field(name="value")
    tool: str = field(default="", name="alias")
    file: str = field(default="", name="path")
    by: str = ""


class TrialExtended(RequestedEvent, frozen=True, kw_only=True, tag="trial_extend"):
    """A person gave the trial more time."""

    number: ClassVar[int] = 342
    action: ClassVar[str] = "extend"
    told_as: ClassVar[str | None] = "time is added"
    seconds: Number = field(name="value")

    @property
    def acted_on(self) -> str:
        return f"by {show_seconds(self.seconds)}"


class PolicyChanged(ReasonedEvent, frozen=True, kw_only=True, tag="policy_change"):
    """A person changed the policy of the trial from now on, and why: ``parts`` are the members of
    the new policy that differ from the one before (``decide.policy_change``)."""

    number: ClassVar[int] = 222
    action: ClassVar[str] = "change"
    told_as: ClassVar[str | None] = "the policy is changed"
    parts: dict[str, Any] = {}


class TestHeld(TestEvent, frozen=True, kw_only=True, tag="test_hold"):
    """A person holds a test, and why: no run of it starts until it is released. In the place of a
    test, ``io`` may be ``heavy``: all tests whose I/O is not light."""

    number: ClassVar[int] = 224
    action: ClassVar[str] = "hold"
    told_as: ClassVar[str | None] = "held"
    io: str = field(default="", name="alias")

    @property
    def acted_on(self) -> str:
        return HEAVY_TESTS if self.io else self.test


class TestReleased(TestEvent, frozen=True, kw_only=True, tag="test_release"):
    """A person released a held test; with ``io`` those that were held for their I/O."""

    number: ClassVar[int] = 226
    action: ClassVar[str] = "release"
    told_as: ClassVar[str | None] = "released"
    io: str = field(default="", name="alias")

    @property
    def acted_on(self) -> str:
        return HEAVY_TESTS if self.io else self.test


class RequestRefused(ReasonedEvent, frozen=True, kw_only=True, tag="request_refuse"):
    """A request (``asked``: what for) was not carried out, and why. It changes nothing."""

    number: ClassVar[int] = 228
    action: ClassVar[str] = "refused:"
    told_as: ClassVar[str | None] = "refused"
    asked: str = field(default="", name="alias")

    @property
    def acted_on(self) -> str:
        return self.asked


class TrialAbandoned(ReasonedEvent, frozen=True, kw_only=True, tag="trial_abandon"):
    """A person abandoned the trial: it cannot be resumed."""

    number: ClassVar[int] = 344
    action: ClassVar[str] = "abandon"
    told_as: ClassVar[str | None] = "abandoned"
    turn: ClassVar[str] = "abandoned"


class AlertRaised(Event, frozen=True, kw_only=True, tag="alert"):
    """Something a person should know. ``kind`` and ``subject`` (a test, a run's id, nodes, a gauge,
    a command of the scheduler's, or nothing: the trial) say what it is about; ``active`` is 0 where
    the condition of an earlier alert is over."""

    number: ClassVar[int] = 350
    told_as: ClassVar[str | None] = ""
    app: str = ""
    kind: str = field(default="", name="alias")
    subject: str = field(default="", name="test")
    text: str = ""
    active: Whole = field(default=1, name="value")

    @property
    def over(self) -> bool:
        """Whether the condition of an earlier alert is over."""
        return self.active == 0


class ClockStepped(Event, frozen=True, kw_only=True, tag="clock_step"):
    """Somebody set the clock of ``host`` forward by so many seconds, or back (less than 0). The
    trial's clock did not follow."""

    number: ClassVar[int] = 352
    host: str = field(default="", name="nodes")
    seconds: Number = field(default=0, name="value")


class NodeDown(Event, frozen=True, kw_only=True, tag="node_down"):
    """The scheduler says that nodes are down, and why."""

    number: ClassVar[int] = 360
    stored_detail: ClassVar[str] = "nodes"
    about_nodes: ClassVar[NodeTurn | None] = NodeTurn.DOWN
    told_as: ClassVar[str | None] = "down"
    nodes: str = ""
    reason: str = field(default="", name="text")


class NodeUp(Event, frozen=True, kw_only=True, tag="node_up"):
    """The scheduler says that nodes are back."""

    number: ClassVar[int] = 362
    stored_detail: ClassVar[str] = "nodes"
    about_nodes: ClassVar[NodeTurn | None] = NodeTurn.UP
    told_as: ClassVar[str | None] = "up again"
    nodes: str = ""
    reason: str = field(default="", name="text")


class NodeExcluded(ReasonedEvent, frozen=True, kw_only=True, tag="node_exclude"):
    """Nodes get no more runs of this trial, and why; ``by`` is "" where they failed too often."""

    number: ClassVar[int] = 364
    stored_detail: ClassVar[str] = "nodes"
    about_nodes: ClassVar[NodeTurn | None] = NodeTurn.EXCLUDED
    action: ClassVar[str] = "exclude"
    is_also_automatic: ClassVar[bool] = True
    turn: ClassVar[str] = "nodes are excluded"
    nodes: str = ""

    @property
    def acted_on(self) -> str:
        return self.nodes


class NodeAdmitted(ReasonedEvent, frozen=True, kw_only=True, tag="node_admit"):
    """A person admitted excluded nodes again."""

    number: ClassVar[int] = 366
    stored_detail: ClassVar[str] = "nodes"
    about_nodes: ClassVar[NodeTurn | None] = NodeTurn.ADMITTED
    action: ClassVar[str] = "admit"
    told_as: ClassVar[str | None] = "admitted"
    nodes: str = ""

    @property
    def acted_on(self) -> str:
        return self.nodes


class TestStopped(TestEvent, frozen=True, kw_only=True, tag="test_stop"):
    """A test is launched no more, and why; ``by`` is "" where it failed too often."""

    number: ClassVar[int] = 370
    action: ClassVar[str] = "stop"
    is_also_automatic: ClassVar[bool] = True
    turn: ClassVar[str] = "a test is stopped"


class TestAdmitted(TestEvent, frozen=True, kw_only=True, tag="test_admit"):
    """A person admitted a stopped test again."""

    number: ClassVar[int] = 372
    action: ClassVar[str] = "admit"
    told_as: ClassVar[str | None] = "admitted"


class GaugeRead(Event, frozen=True, kw_only=True, tag="gauge"):
    """A gauge was read; ``reason`` says why there is no value. ``seconds`` is how long its command
    took: what started in that time, the reading may not have."""

    number: ClassVar[int] = 380
    gauge: str = field(default="", name="alias")
    value: Number | None = None
    reason: str = field(default="", name="text")
    seconds: Number = 0.0


# ---- of people --------------------------------------------------------------------------------


class PersonsEvent(RequestedEvent, frozen=True, kw_only=True, tag="person"):
    """What people record about an acceptance. ``names`` are those that were given, ``by`` is the
    account that wrote it."""

    is_late: ClassVar[bool] = True
    names: list[str] = []


class ItemTicked(PersonsEvent, frozen=True, kw_only=True, tag="item_tick"):
    """An item of a checklist got its ``result``: ``pass``, ``fail`` or ``waived``; ``figure`` is
    what was read, if it is a number. ``document`` with its SHA-256 shows it. ``why`` is the
    reason for a result in place of an earlier one."""

    number: ClassVar[int] = 242
    item: str = field(default="", name="alias")
    result: str = ""
    figure: Number | None = field(default=None, name="value")
    unit: str = ""
    comment: str = field(default="", name="text")
    document: str = ""
    sha256: str = ""
    why: str = ""


class EvidenceGiven(PersonsEvent, frozen=True, kw_only=True, tag="evidence"):
    """A document that the plan awaited is there: its name in the plan, the file and its checksum.
    ``on`` is the day on which it was signed; ``why``: the reason for it in place of an earlier
    one."""

    number: ClassVar[int] = 244
    document: str = field(default="", name="alias")
    file: str = ""
    size: Whole = field(default=0, name="value")
    sha256: str = ""
    on: str = ""
    comment: str = field(default="", name="text")
    why: str = ""


class PlanEntry(PersonsEvent, frozen=True, kw_only=True, tag="plan_entry"):
    """Something happened in the acceptance: a ``milestone``, a replaced ``part``, an ``incident``
    (``kind``), at the time ``at`` (ns), on ``nodes``."""

    number: ClassVar[int] = 246
    kind: str = field(default="", name="alias")
    text: str = ""
    at: Whole = 0
    nodes: str = ""


class IssueRecorded(PersonsEvent, frozen=True, kw_only=True, tag="issue"):
    """An issue of a plan was opened or changed. Members that are empty stay as they were. ``issue``
    is its number, from 1; ``state`` is ``open`` or ``closed``."""

    number: ClassVar[int] = 250
    issue: Whole = field(default=0, name="value")
    state: str = field(default="", name="alias")
    text: str = ""
    comment: str = ""
    component: str = ""
    severity: str = ""
    owner: str = ""
    runs: list[str] = []
    nodes: str = ""


class UnknownEvent(RunEvent, frozen=True, kw_only=True, tag="unknown"):
    """An event of a kind that this version does not know: its ``kind``, its ``text``, and the whole
    line (``raw``) as it was written."""

    stored_detail: ClassVar[str] = "kind"
    kind: str = ""
    text: str = ""
    raw: bytes = b""

    @property
    def name(self) -> str:
        return self.kind


def _kinds(base: type[Event]) -> Iterator[type[Event]]:
    """Yield the kinds that are written: those with a number."""
    for kind in base.__subclasses__():
        if kind.number:
            yield kind
        yield from _kinds(kind)


# Plug-ins' kinds are subclasses, too, once they are imported.
for _kind in provided("seatrial_events"):
    load(_kind)

EVENT_KINDS: dict[str, type[Event]] = {
    str(kind.__struct_config__.tag): kind for kind in _kinds(Event)
}
"""The kinds of event by their names on disk."""

PERSONAL = (PersonsEvent, RunReviewed)
"""What people record beside a trial, also after its end: it changes no state and no figure."""

EVENT_NAMES: dict[type[Event], str] = {kind: name for name, kind in EVENT_KINDS.items()}


def finite(value: object) -> float | None:
    """Return a number as a float; None for anything else, and for what is not finite."""
    if not isinstance(value, int | float):
        return None
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
