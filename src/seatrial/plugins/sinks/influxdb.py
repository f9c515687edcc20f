"""Write points to InfluxDB 1.x (``/write?db=``) or 2.x (``/api/v2/write?org=&bucket=``).

The answer decides what becomes of a request:

- 204: accepted. Any other 2xx comes from a login page, or from a server that is not InfluxDB.
- 400 and 422 for a *partial write*: accepted, except for the points reported as dropped.
- any other 400 or 422, and 413: sent again in halves, until the faulty points are found.
- everything else, such as 401, 404 (no such database), 429, 500, 503: sent again later, because the
  server is at fault, not the points.
"""

import math
import os
import re
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property, lru_cache
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlencode

import msgspec
from msgspec import field

import seatrial
from seatrial.files import open_descriptor
from seatrial.journal import events
from seatrial.journal.encoding import members
from seatrial.journal.events import (
    EVENT_KINDS,
    BuildEnded,
    Event,
    JobsOwnEvent,
    MetricRecorded,
    RunJudged,
    ScriptEnded,
    SubmitEnded,
)
from seatrial.journal.trial import RunLife, RunState
from seatrial.model import codes
from seatrial.model.codes import KNOWN, RECALLED
from seatrial.model.node_set import unfold
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.post import HttpResponse, Server, Unreachable
from seatrial.plugins.sinks.protocol import CaseName, Reply, SinkTarget, TrialInfo
from seatrial.units import SECOND_NS

_DROPPED = re.compile(r"dropped[= ](\d+)")


class InfluxDB(SinkTarget):
    """A database or a bucket that receives the points of one trial."""

    folds = True

    def __init__(self, sink: "Sink", about: TrialInfo, _case_name: CaseName) -> None:
        where = {"org": sink.org, "bucket": sink.bucket, "precision": "ns"}
        if not sink.bucket:
            where = {"db": sink.database, "precision": "ns"}
            where |= {"rp": sink.retention} if sink.retention else {}
        self._path = ("/api/v2/write?" if sink.bucket else "/write?") + urlencode(where)
        self._server = Server(sink, "text/plain; charset=utf-8", "Token")
        self._points = TrialPoints(about, sink.oth_compatible)
        self.shown = self._server.shown

    def pieces(self, event: Event, number: int) -> list[bytes]:
        return self._points.lines(event)

    def send(self, pieces: Sequence[bytes]) -> Reply:
        try:
            answer = self._server.post(self._path, b"\n".join(pieces))
        except Unreachable as error:
            return Reply("again", str(error))
        return reply_to(answer)

    def close(self) -> None:
        self._server.close()


def reply_to(answer: HttpResponse) -> Reply:
    """Return what became of the points, by an answer of InfluxDB."""
    if answer.status == 204:
        return Reply("taken")
    if 200 <= answer.status < 300:
        return Reply("again", f"it answered {answer.status}, as InfluxDB does not")
    text = _message(answer.text)
    if answer.status in (400, 422) and "partial write" in text:
        dropped = sum(map(int, _DROPPED.findall(text)[:1])) + text.count("unable to parse")
        return Reply("taken", answer.reason(text), max(1, dropped))
    if answer.status in (400, 413, 422):
        return Reply("smaller", answer.reason(text))
    return Reply("again", answer.reason(text), wait=answer.wait)


def _message(text: str) -> str:
    """Return the message in an error; 1.x and 2.x name it differently."""
    try:
        answer = msgspec.json.decode(text, type=dict[str, object])
    except (msgspec.DecodeError, UnicodeError, RecursionError):
        return text
    return str(answer.get("error") or answer.get("message") or "")


# ---- points --------------------------------------------------------------------------------------
#
# Events as points of InfluxDB, by the names that the OLCF Test Harness gives them.
#
#     points = TrialPoints(about_of(folder))
#     for event in journal:
#         lines = points.lines(event)      # in line protocol; often one, sometimes none or many
#
# - ``events``: one for each event; ``metrics``: the figures of a run and its elapsed time, as
#   ``APP-TEST-METRIC``; ``node_health``: what the scheduler, a person, or a run of one node says of
#   a node; ``non_harness_metrics``: gauges.
# - ``runs``, which that harness has not: one for each run that is over, at its start.
#
# The fields ``building`` and ``running`` of ``events`` are 1 where a build or a job begins and -1
# where it ends. ``building_now`` and ``running_now`` are the numbers of those of the same test that
# are under way after the event; so their last ones up to a time are true at that time, whenever
# these began. Events of builds and runs have them, but those that jobs write, whose times are no
# order. ``passed`` and ``failed`` of a verdict are written again where it is judged again.
#
# What a run's end needs of its earlier events is kept until then. The points of a journal depend on
# its events alone, so that one sent again replaces itself.


MAX_RUNS = 50_000  # that have begun and are not over
MAX_METRICS = 500  # of a run
MAX_TAGS = 10_000

Fields = dict[str, str | int | float | bool | None]

# What a verdict says of the one node that a run was on; the others say nothing of it.
_HEALTH = {
    codes.PASS.number: "SUCCESS",
    codes.PERFORMANCE.number: "PERF-FAIL",
    codes.WRONG_ANSWER.number: "HW-FAIL",
    codes.NODE_FAILURE.number: "FAILED",
    codes.BOOT_FAILURE.number: "FAILED",
}
_NO_RESULT = (RECALLED.number, KNOWN.number)  # such a run has neither passed nor failed
_KINDS: tuple[type[events.Event], ...] = (*events.EVENT_KINDS.values(), events.UnknownEvent)
_MEMBERS: dict[type[events.Event], Callable[[Any], tuple[Any, ...]]] = {
    kind: members(kind, "value", "alias", "text", "job_id", "path", "nodes", "app", "test")
    for kind in _KINDS
}


class _Written(NamedTuple):
    """The members of an event that points name, as on disk; None for those that it lacks."""

    value: int | float | None
    alias: str | None
    text: str | None
    job_id: str | None
    path: str | None
    nodes: str | None
    app: str | None
    test: str | None


class _Run(RunLife, kw_only=True):
    """A run that is not over, or was not long ago. Times in ns."""

    #: The time of its points.
    moment: int
    #: Its application and its test.
    of_test: tuple[str, str]
    #: The time of the point of its judging, and of its verdict.
    checked: int = 0
    verdict: int = 0
    figures: dict[str, float] = field(default_factory=dict)


class TrialPoints:
    """The points of one trial. ``oth``: the run's id is a tag, and no field of that harness is
    missing, as dashboards made for it expect. Then the end of a run's output is read from its
    files."""

    def __init__(self, about: TrialInfo, oth: bool = False) -> None:
        self._about = about
        self._oth = oth
        self._moments = Moments()
        self._runs: dict[str, _Run] = {}
        self._judged: dict[str, _Run] = {}  # they may be judged again
        self._builds: dict[str, int] = {}
        self._running: Counter[tuple[str, str]] = Counter()  # jobs by application and test
        self._building: Counter[tuple[str, str]] = Counter()
        self._tags: dict[tuple[str, str], str] = {}
        # A rehearsal is kept apart from what was measured.
        self._mark = {"rehearsed": "true"} if about.rehearsed else {}
        self._trial = {"machine": about.machine.machine, "runtag": about.tag, **self._mark}

    def lines(self, event: events.Event) -> list[bytes]:
        """The lines of the next event of the journal."""
        moment = self._moments.moment(event)
        run, running = self._run_of(event, moment)
        return [self._event(event, moment, run, running), *self._results(event, moment, run)]

    def _run_of(self, event: events.Event, moment: int) -> tuple[_Run | None, int]:
        """Return the run of an event, and by how many jobs more of its test are running."""
        if self._is_late(event):
            return self._judged.get(event.run_id), 0
        if not isinstance(event, events.RunEvent) or not event.run_id:
            return None, 0
        known = self._runs.get(event.run_id)
        was_running = known is not None and known.state == RunState.RUNNING
        run = self._run(event, moment)
        running = (run.state == RunState.RUNNING) - was_running
        self._running[event.app, event.test] += running
        return run, running

    def _results(self, event: events.Event, moment: int, run: _Run | None) -> list[bytes]:
        """Return the lines of the run that an event ends, of its nodes, its gauge or its build."""
        if isinstance(event, events.BuildStarted):
            self._builds[event.key] = event.time
            return []
        if isinstance(event, events.BuildEnded):
            return self._build(event, moment)
        if event.about_nodes is not None:
            return self._of_nodes(event, event.about_nodes, moment)
        if isinstance(event, events.GaugeRead):
            return self._gauge(event, moment)
        if run is None:
            return []
        if isinstance(event, events.RunJudged):
            return self._end_run(event, moment, run)
        if isinstance(event, events.RunJudgedAgain):
            return self._corrected(event, run)
        if isinstance(event, events.MetricRecorded) and self._judged.get(event.run_id) is run:
            return self._late_figure(event, run)
        return []

    # ---- one event ------------------------------------------------------------------------

    def _event(self, event: events.Event, moment: int, run: _Run | None, running: int) -> bytes:
        written = _members_of(event, run)
        run_id = event.run_id if isinstance(event, events.RunEvent) else ""
        building = isinstance(event, events.BuildStarted) - isinstance(event, events.BuildEnded)
        fields = self._harness_fields(event, written, run_id) | {
            "building": building or None,
            "running": running or None,
            **self._under_way(event),
            "value": events.finite(written.value),
            "nodes": written.nodes or None,
            **_fields_of_kind(event, run),
        }
        # A build is of many runs, so its key is in place of a run: that a build began and ended is
        # told of one id.
        own_id = event.key if isinstance(event, events.BuildEvent) else run_id
        tags = self._tags_of(written.app or "", written.test or "", own_id)
        return line("events", tags, field_text(fields), moment)

    def _harness_fields(self, event: events.Event, written: _Written, run_id: str) -> Fields:
        """Return the fields that the OLCF test harness has for an event, too."""
        value = event.job_id if isinstance(event, events.JobQueued) else written.value
        fields: Fields = {
            "test_id": None if self._oth else run_id or None,
            "event_name": event.name,
            **_names_of(event.name),
            "event_time": time_text(event.time),
            "event_value": None if value is None else str(value),
            **_filled(check_alias=written.alias, job_id=written.job_id, run_archive=written.path),
            **_filled(comment=written.text, hostname=self._about.host, user=self._about.user),
        }
        if isinstance(event, events.BuildEvent):
            fields |= {"build_directory": event.path or None, "run_archive": None}
        if isinstance(event, events.BuildEnded):
            fields |= {"output_txt": event.log or None, "comment": None}
        if not self._oth:
            return fields
        is_build = isinstance(event, events.BuildEvent)
        run_path = "" if is_build else written.path or ""
        fields |= oth_fields(self._about, event, written.test or "", run_path)
        return {key: fields.get(key) or NO_VALUE for key in FIELDS}

    def _under_way(self, event: events.Event) -> Fields:
        """Return how many builds or jobs of its test are under way after an event."""
        if isinstance(event, events.BuildEvent):
            key = (event.app, event.test)
            if isinstance(event, events.BuildStarted):
                self._building[key] += event.key not in self._builds
            elif event.key in self._builds:
                self._building[key] -= 1
            return {"building_now": float(self._building[key])}
        if isinstance(event, events.RunEvent) and event.run_id:
            if isinstance(event, events.JobsOwnEvent | events.MetricRecorded):
                return {}
            return {"running_now": float(self._running[event.app, event.test])}
        return {}

    def _is_late(self, event: events.Event) -> bool:
        """Return whether an event comes after the verdict of its run."""
        if event.is_late and isinstance(event, events.RunEvent):
            return True
        known = event.run_id in self._judged and event.run_id not in self._runs
        return known and (event.follows_verdict or isinstance(event, events.MetricRecorded))

    def _run(self, event: events.RunEvent, moment: int) -> _Run:
        run = self._runs.get(event.run_id)
        if run is None:
            if len(self._runs) >= MAX_RUNS:
                self._forget_oldest()
            of_test = (event.app, event.test)
            run = self._runs[event.run_id] = _Run(moment=moment, of_test=of_test)
        run.apply(event)
        if isinstance(event, events.ScriptStarted):
            run.moment = moment
        elif isinstance(event, events.CheckStarted):
            run.checked = moment
        elif isinstance(event, events.MetricRecorded):
            number = events.finite(event.value)
            if number is not None and len(run.figures) < MAX_METRICS:
                run.figures[event.metric] = number
        return run

    def _forget_oldest(self) -> None:
        run_id = next(iter(self._runs))
        run = self._runs.pop(run_id)
        if run.state == RunState.RUNNING:
            self._running[run.of_test] -= 1

    # ---- a run that is over ---------------------------------------------------------------

    def _end_run(self, event: events.RunJudged, moment: int, run: _Run) -> list[bytes]:
        """Return the lines of a run that is over, and keep what a later judgement needs of it."""
        del self._runs[event.run_id]
        lines = self._over(event, moment, run)
        run.figures = {}
        run.checked = run.checked or moment
        run.verdict = moment
        if len(self._judged) >= MAX_RUNS:
            del self._judged[next(iter(self._judged))]
        self._judged[event.run_id] = run
        return lines

    def _over(self, event: events.RunJudged, moment: int, run: _Run) -> list[bytes]:
        lines = [self._summary(event, run)]
        if run.figures or run.elapsed is not None:
            lines.append(self._figures(event, moment, run))
        status = _HEALTH.get(run.code)
        if status and run.nodes and not run.will_rerun and not set(run.nodes) & set(",["):
            message = event.reason
            lines.append(self._health(event.test, event.run_id, moment, run.nodes, status, message))
        return lines

    def _late_figure(self, event: events.MetricRecorded, run: _Run) -> list[bytes]:
        """Return the point of a figure that was found when the run was judged again. It has the key
        of the point of the run's other figures, so InfluxDB adds it to them."""
        number = events.finite(event.value)
        if number is None:
            return []
        fields: Fields = {} if self._oth else {"test_id": event.run_id}
        fields[f"{_stem(event)}-{event.metric}"] = number
        tags = self._tags_of(event.app, event.test, event.run_id)
        return [line("metrics", tags, field_text(fields), run.checked)]

    def _corrected(self, event: events.RunJudgedAgain, run: _Run) -> list[bytes]:
        """Return the point of a run that was judged again, and that of its verdict before, which
        counts no more: a point cannot be removed, and the verdict is a part of its key."""
        former = self._summary(event, run, counts=False)
        was = run.code
        run.apply(event)
        lines = [self._summary(event, run), *([former] if run.code != was else [])]
        if run.verdict:
            tags = self._tags_of(event.app, event.test, event.run_id)
            lines.append(line("events", tags, field_text(_counted(run)), run.verdict))
        return lines

    def _summary(
        self, event: events.RunJudged | events.RunJudgedAgain, run: _Run, counts: bool = True
    ) -> bytes:
        fields: Fields = {
            "test_id": None if self._oth else event.run_id,
            "case": event.case or None,
            "code": events.finite(run.code),
            **(_counted(run) if counts else dict.fromkeys(_counted(run), 0.0)),
            "counted": float(counts and run.code not in _NO_RESULT),
            "again": run.will_rerun or not counts or None,
            "elapsed": run.elapsed,
            "waited": _waited(run),
            "exit_code": events.finite(run.exit_code),
            **_filled(job_id=run.job_id, nodes=run.nodes, run_archive=run.path),
            **_filled(target=run.target, stage=run.stage, comment=event.reason, cause=run.cause),
            "cause_code": events.finite(run.cause_code) if run.cause_code else None,
            "advice": run.advice or None,
            "judged": time_text(event.time),
        }
        tags = self._tags_of(event.app, event.test, event.run_id)
        tags += tag_text({"verdict": codes.code_of(run.code).name})
        return line("runs", tags, field_text(fields), run.moment)

    def _figures(self, event: events.RunJudged, moment: int, run: _Run) -> bytes:
        stem = _stem(event)
        fields: Fields = {} if self._oth else {"test_id": event.run_id}
        fields |= {f"{stem}-{name}": value for name, value in run.figures.items()}
        fields[f"{stem}-execution_time"] = run.elapsed
        tags = self._tags_of(event.app, event.test, event.run_id)
        return line("metrics", tags, field_text(fields), run.checked or moment)

    # ---- builds, nodes, gauges ------------------------------------------------------------

    def _build(self, event: events.BuildEnded, moment: int) -> list[bytes]:
        start = self._builds.pop(event.key, None)
        if start is None or event.time < start:
            return []
        name = f"{_stem(event)}-build_time"
        fields = field_text({name: (event.time - start) / SECOND_NS})
        return [line("metrics", self._tags_of(event.app, event.test, ""), fields, moment)]

    def _of_nodes(self, event: events.Event, turn: events.NodeTurn, moment: int) -> list[bytes]:
        try:
            nodes = unfold(event.nodes)
        except ValueError:
            nodes = (event.nodes,)
        status = "SUCCESS" if turn.is_good else "FAILED"
        return [self._health("", "", moment, node, status, event.reason) for node in nodes if node]

    def _health(
        self, test: str, run_id: str, moment: int, node: str, status: str, message: str
    ) -> bytes:
        tags = {"test": test, "machine": self._about.machine.machine, "node": node}
        tags |= {"group": self._groups.get(node, "")} | self._mark
        fields: Fields = {"test_id": run_id, "status": status, "message": message}
        return line("node_health", tag_text(tags), field_text(fields), moment)

    def _gauge(self, event: events.GaugeRead, moment: int) -> list[bytes]:
        number = events.finite(event.value)
        if number is None:
            return []
        tags = tag_text({**self._trial, "name": event.gauge})
        return [line("non_harness_metrics", tags, field_text({"value": number}), moment)]

    # ---- tags -----------------------------------------------------------------------------

    def _tags_of(self, app: str, test: str, run_id: str) -> str:
        """The tags of an event; the run's id is one only where old dashboards want it."""
        key = (app, test)
        tags = self._tags.get(key)
        if tags is None:
            tags = tag_text({**self._trial, "app": app, "test": test})
            if len(self._tags) < MAX_TAGS:
                self._tags[key] = tags
        return tags + tag_text({"test_id": run_id}) if self._oth else tags

    @cached_property
    def _groups(self) -> dict[str, str]:
        groups = self._about.machine.groups.items()
        return {node: name for name, folded in groups for node in unfold(folded)}


def _members_of(event: events.Event, run: _Run | None) -> _Written:
    """Return the members of an event, and those of its run that the event does not have."""
    written = _Written(*_MEMBERS[type(event)](event))
    if run is None:
        return written
    if isinstance(event, events.RunJudged) and run.code == RECALLED.number:
        # Version 0.1 wrote that it was cancelled.
        written = written._replace(value=RECALLED.number, alias=RECALLED.name)
    return written._replace(
        job_id=written.job_id or run.job_id,
        path=written.path or run.path,
        nodes=written.nodes or run.nodes,
    )


def _filled(**texts: str | None) -> Fields:
    """Return fields of texts, without a value for those that are empty."""
    return {key: text or None for key, text in texts.items()}


def _counted(run: RunLife) -> Fields:
    """Return whether a run that is over has passed, and whether it has failed."""
    passed = run.code == codes.PASS.number
    failed = not passed and not run.will_rerun and run.code not in _NO_RESULT
    return {"passed": float(passed), "failed": float(failed)}


def _waited(run: RunLife) -> float | None:
    """Return the seconds from the submission of a run to the start of its script, if known."""
    if run.submitted and run.script_started and run.submitted <= run.script_started:
        return (run.script_started - run.submitted) / SECOND_NS
    return None


def _fields_of_kind(event: events.Event, run: _Run | None) -> Fields:
    """Return the fields that events of a kind have alone."""
    if isinstance(event, events.MetricRecorded):
        return {"unit": event.unit or None}
    if isinstance(event, events.RunJudged):
        counted = _counted(run) if run is not None else {}
        return _filled(cause=event.cause, advice=event.advice) | counted
    return {}


def _stem(event: events.RunEvent | events.BuildEvent) -> str:
    """What the names of figures begin with."""
    return "-".join(filter(None, (event.app, event.test)))


# ---- point times ---------------------------------------------------------------------------------
#
# Give each event's point a time of its own, close to that of the event.
#
#     times = Moments()
#     times.moment(event)         # ns since the epoch
#
# InfluxDB identifies a point by its tags and its time: a later point with the same ones replaces
# the earlier. The run's id is not a tag, because that would make a series of every run, so times
# must differ. The same journal must always give the same times, so that sending twice changes
# nothing.
#
# - The driver's times never decrease in a journal. Their points have even nanoseconds; events of
# the same instant follow each other by 2 ns in the order of the journal. - The two events that a
# job writes have the time of a compute node's clock, and are recorded after the job has ended.
# Their points keep the millisecond, which is more precise than such clocks agree; below it is an
# odd number that counts them. So two events of the same millisecond differ unless half a million
# others lie between them. So have the figures that a second judgement adds, which have the time of
# the run's verdict.


_MILLISECOND = 1_000_000
_FAR = SECOND_NS  # a time further back than this is kept: the journal is out of order


class Moments:
    """The times of points. Pass it every event of a journal, in order, from the beginning."""

    def __init__(self) -> None:
        self._last = 0
        self._of_jobs = 0

    def moment(self, event: Event) -> int:
        """Return the time of an event's point in ns since the epoch."""
        late = isinstance(event, MetricRecorded) and event.time <= self._last - _FAR
        if late or isinstance(event, JobsOwnEvent):
            place = 2 * self._of_jobs % _MILLISECOND + 1
            self._of_jobs += 1
            return event.time // _MILLISECOND * _MILLISECOND + place
        moment = event.time & ~1
        if self._last - _FAR < moment <= self._last:
            moment = self._last + 2
        self._last = moment
        return moment


# ---- event names ---------------------------------------------------------------------------------
#
# The names that the OLCF Test Harness gives an event: its file, type and subtype.


NO_VALUE = "[NO_VALUE]"

# Every field of an event in that harness, in its order.
FIELDS = (
    "build_directory",
    "event_filename",
    "event_name",
    "event_subtype",
    "event_time",
    "event_type",
    "event_value",
    "check_alias",
    "hostname",
    "job_account_id",
    "job_id",
    "path_to_rgt_package",
    "rgt_path_to_sspace",
    "rgt_system_log_tag",
    "run_archive",
    "user",
    "workdir",
    "comment",
    "output_txt",
)


@lru_cache(maxsize=256)
def _names_of(event: str) -> Mapping[str, str]:
    """Return the names of an event as fields, whether it is in the registry or not: of
    binary_execute_start ``Event_170_binary_execute_start.txt``, ``binary_execute``, ``start``."""
    kind, _, subtype = event.rpartition("_")
    known = EVENT_KINDS.get(event)
    number = "" if known is None else f"{known.number}_"
    return {
        "event_type": kind or event,
        "event_subtype": subtype if kind else "",
        "event_filename": f"Event_{number}{event}.txt",
    }


def time_text(time: int) -> str:
    """Return a time (ns since the epoch) in ISO 8601, in UTC, to the nanosecond."""
    seconds, rest = divmod(time, SECOND_NS)
    try:
        return f"{_second_text(seconds)}.{rest:09d}Z"
    except (ValueError, OverflowError, OSError):  # beyond the year 9999
        return f"{time} ns"


@lru_cache(maxsize=64)
def _second_text(seconds: int) -> str:
    return f"{datetime.fromtimestamp(seconds, UTC):%Y-%m-%dT%H:%M:%S}"


# ---- oth fields ----------------------------------------------------------------------------------
#
# What the OLCF Test Harness tells of an event besides what the event itself says: the directories,
# the account, and the end of the output, where the files of the run are still there.
#
# Its own fields are described by `machine_types/base_machine.py` and `subtest_factory.py` of that
# harness (https://github.com/olcf/olcf-test-harness).


LONGEST_OUTPUT = 60_000  # bytes; InfluxDB accepts 64 KiB
LONGEST_ERRORS = 20_000

_PACKAGE = str(Path(seatrial.__file__).parent)


def oth_fields(about: TrialInfo, event: Event, test: str, run_path: str) -> dict[str, str]:
    """Return fields by name, "" where they are not known; ``run_path``: the run's directory."""
    return {
        "job_account_id": _account(about, test),
        "path_to_rgt_package": _PACKAGE,
        "rgt_path_to_sspace": about.path,
        "rgt_system_log_tag": about.tag,
        "workdir": run_path,
        "output_txt": _output(event, run_path),
    }


def _account(about: TrialInfo, test: str) -> str:
    """Return the account of a test's jobs; "" where it follows from a parameter."""
    known = about.tests.get(test)
    account = known.run.account if known is not None else None
    if account is None:
        account = about.machine.account
    return "" if "{" in account else account


def _output(event: Event, run_path: str) -> str:
    """Return the end of what the step of an event said: the log of a build, the scheduler's words,
    the output of a job, or why a check failed with the output that it judged."""
    if isinstance(event, BuildEnded):
        return event.log
    if isinstance(event, SubmitEnded):
        return event.reason
    if not isinstance(event, ScriptEnded | RunJudged) or not run_path:
        return ""
    output = end_of_output(Path(run_path))
    return f"{event.reason}\n{output}".strip() if isinstance(event, RunJudged) else output


def end_of_output(run: Path) -> str:
    """Return the end of a run's stdout, then that of its stderr; "" where they are not there."""
    errors = _end_of(run / "stderr", LONGEST_ERRORS)
    return _end_of(run / "stdout", LONGEST_OUTPUT - len(errors.encode())) + errors


def _end_of(path: Path, limit: int) -> str:
    """Return at most ``limit`` bytes from the end of a regular file."""
    try:
        descriptor = open_descriptor(path, os.O_RDONLY | os.O_NOFOLLOW)
    except OSError:
        return ""
    with os.fdopen(descriptor, "rb") as file:
        try:
            size = os.fstat(descriptor).st_size
            file.seek(max(0, size - limit))
            return file.read(limit).decode(errors="replace")
        except OSError:
            return ""


# ---- line protocol -------------------------------------------------------------------------------
#
# Write InfluxDB's line protocol: one point a line, escaped as InfluxData specifies it.
#
#     line("events", tag_text({"app": "x y"}), field_text({"value": 1.5, "why": 'a "b"'}), 10)
#     # events,app=x\ y value=1.5,why="a \"b\"" 10
#
# A backslash escapes comma, blank and equals sign in measurements, keys and tags, and quotes and
# backslashes in strings. What the protocol cannot hold is replaced: control characters in keys and
# tags become blanks, and a backslash that would escape the next character becomes a slash. Empty
# tags and numbers that are not finite are omitted.


LONGEST_STRING = 65_000  # bytes; InfluxDB accepts 64 KiB
LONGEST_TAG = 512

_PLAIN = re.compile(r"[A-Za-z0-9_.:/+@%-]*")
_CONTROL = re.compile(r" *[\x00-\x1f\x7f\x85\u2028\u2029][\x00-\x20\x7f\x85\u2028\u2029]*")
_ESCAPING = re.compile(r"\\(?=[,= \"\\]|$)")
_SPECIAL = re.compile(r"([,= ])")
_INTEGER_LIMIT = 1 << 63


def tag_text(tags: Mapping[str, str]) -> str:
    """Return ``,key=value`` for each tag that is not empty, sorted, as InfluxDB recommends."""
    return "".join(
        f",{key_text(key)}={text}"
        for key, value in sorted(tags.items())
        if (text := key_text(value))
    )


def field_text(fields: Mapping[str, str | int | float | bool | None]) -> str:
    """Return ``key=value`` for every field that has a value, joined by commas; "" for none. Numbers
    are written as floats, so that a field never changes its type."""
    texts = []
    for key, value in fields.items():
        if isinstance(value, str):
            texts.append(f"{key_text(key)}={string_text(value)}")
        elif isinstance(value, bool):
            texts.append(f"{key_text(key)}={'true' if value else 'false'}")
        elif value is not None and (number := _number_text(value)):
            texts.append(f"{key_text(key)}={number}")
    return ",".join(texts)


def line(measurement: str, tags: str, fields: str, time: int) -> bytes:
    """Return the line of a point, without a line end; ``time`` in ns since the epoch."""
    return f"{measurement}{tags} {fields} {time}".encode("utf-8", "replace")


@lru_cache(maxsize=4096)  # the same keys and tags are in every line
def key_text(text: str) -> str:
    """Return the key or value of a tag, or the key of a field, escaped."""
    if _PLAIN.fullmatch(text) and len(text) <= LONGEST_TAG:
        return text
    text = _CONTROL.sub(" ", text[:LONGEST_TAG]).strip()
    return _SPECIAL.sub(r"\\\1", _ESCAPING.sub("/", text))


def string_text(text: str) -> str:
    text = text[:LONGEST_STRING].replace("\0", "")
    if 4 * len(text) > LONGEST_STRING:
        text = text.encode(errors="replace")[:LONGEST_STRING].decode(errors="ignore")
    if "\\" in text or '"' in text:
        text = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{text}"'


def _number_text(value: float) -> str:
    if isinstance(value, int):
        return str(value) if -_INTEGER_LIMIT < value < _INTEGER_LIMIT else ""
    return repr(value) if math.isfinite(value) else ""
