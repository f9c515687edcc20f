"""Events as points of InfluxDB, by the names that the OLCF Test Harness gives them.

    points = TrialPoints(about_of(folder))
    for event in journal:
        lines = points.of(event)      # in line protocol; often one, sometimes none or many

- ``events``: one for each event; ``metrics``: the figures of a run and its elapsed time, as
  ``APP-TEST-METRIC``; ``node_health``: what the scheduler, a person, or a run of one node says of
  a node; ``non_harness_metrics``: gauges.
- ``runs``, which that harness has not: one for each run that is over, at its start.

The fields ``building`` and ``running`` of ``events`` are 1 where a build or a job begins and -1
where it ends. ``building_now`` and ``running_now`` are the numbers of those of the same test that
are under way after the event; so their last ones up to a time are true at that time, whenever these
began. Events of builds and runs have them, but those that jobs write, whose times are no order.
``passed`` and ``failed`` of a verdict are written again where it is judged again.

What a run's end needs of its earlier events is kept until then. The points of a journal depend on
its events alone, so that one sent again replaces itself.
"""

from collections import Counter
from collections.abc import Callable
from functools import cached_property
from typing import Any, NamedTuple

from msgspec import field

from seatrial.journal import codes, events
from seatrial.journal.codes import KNOWN, RECALLED
from seatrial.journal.encoding import members
from seatrial.journal.run_life import RunLife, RunState
from seatrial.machine.node_sets import unfold
from seatrial.sinks.event_names import FIELDS, NO_VALUE, event_name, time_text
from seatrial.sinks.line_protocol import field_text, line, tag_text
from seatrial.sinks.oth_fields import OthFields
from seatrial.sinks.point_times import Moments
from seatrial.sinks.trial_info import TrialInfo
from seatrial.units import SECOND_NS

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
_NodeEvent = events.NodeDown | events.NodeExcluded | events.NodeUp | events.NodeAdmitted
_OF_NODES: dict[type[events.Event], str] = {
    events.NodeDown: "FAILED",
    events.NodeExcluded: "FAILED",
    events.NodeUp: "SUCCESS",
    events.NodeAdmitted: "SUCCESS",
}
_AFTER_VERDICT = (
    events.MetricRecorded,
    events.OutputRemoved,
    events.RunJudgedAgain,
    events.RunReviewed,
)
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
    """A run that is not over. ``moment``: time of its points; ``checked``: of its judging;
    ``verdict``: of its verdict (ns); ``of_test``: its application and test."""

    moment: int
    of_test: tuple[str, str]
    checked: int = 0
    verdict: int = 0
    figures: dict[str, float] = field(default_factory=dict)


class TrialPoints:
    """The points of one trial. ``oth``: the run's id is a tag, and no field of that harness is
    missing, as dashboards made for it expect. Then the end of a run's output is read from its
    files."""

    def __init__(self, about: TrialInfo, oth: bool = False) -> None:
        self._about = about
        self._oth = OthFields(about) if oth else None
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

    def of(self, event: events.Event) -> list[bytes]:
        """The lines of the next event of the journal."""
        moment = self._moments.of(event)
        run, running = None, 0
        late = self._is_late(event)
        if late:
            run = self._judged.get(event.run_id)
        elif isinstance(event, events.RunEvent) and event.run_id:
            known = self._runs.get(event.run_id)
            was_running = known is not None and known.state == RunState.RUNNING
            run = self._run(event, moment)
            running = (run.state == RunState.RUNNING) - was_running
            self._running[event.app, event.test] += running
        lines = [self._event(event, moment, run, running)]
        if isinstance(event, events.RunJudged) and run is not None:
            del self._runs[event.run_id]
            lines += self._over(event, moment, run)
            run.figures = {}
            run.checked = run.checked or moment
            run.verdict = moment
            if len(self._judged) >= MAX_RUNS:
                del self._judged[next(iter(self._judged))]
            self._judged[event.run_id] = run
        elif isinstance(event, events.RunJudgedAgain) and run is not None:
            lines += self._corrected(event, run)
        elif isinstance(event, events.MetricRecorded) and late and run is not None:
            lines += self._late_figure(event, run)
        elif isinstance(event, _NodeEvent):
            lines += self._of_nodes(event, moment)
        elif isinstance(event, events.GaugeRead):
            lines += self._gauge(event, moment)
        elif isinstance(event, events.BuildStarted):
            self._builds[event.key] = event.time
        elif isinstance(event, events.BuildEnded):
            lines += self._build(event, moment)
        return lines

    # ---- one event ------------------------------------------------------------------------

    def _event(self, event: events.Event, moment: int, run: _Run | None, running: int) -> bytes:
        name = event_name(event.name)
        written = _Written(*_MEMBERS[type(event)](event))
        run_id = event.run_id if isinstance(event, events.RunEvent) else ""
        if run is not None and isinstance(event, events.RunJudged) and run.code == RECALLED.number:
            # Version 0.1 wrote that it was cancelled.
            written = written._replace(value=RECALLED.number, alias=RECALLED.name)
        value = None if written.value is None else str(written.value)
        if isinstance(event, events.JobQueued):
            value = event.job_id
        fields: Fields = {
            "test_id": None if self._oth else run_id or None,
            "event_name": event.name,
            "event_type": name.type,
            "event_subtype": name.subtype,
            "event_filename": name.file,
            "event_time": time_text(event.time),
            "event_value": value,
            "check_alias": written.alias or None,
            "job_id": written.job_id or (run.job_id if run else "") or None,
            "run_archive": written.path or (run.path if run else "") or None,
            "comment": written.text or None,
            "hostname": self._about.host or None,
            "user": self._about.user or None,
        }
        if isinstance(event, events.BuildEvent):
            fields |= {"build_directory": event.path or None, "run_archive": None}
        if isinstance(event, events.BuildEnded):
            fields |= {"output_txt": event.log or None, "comment": None}
        if self._oth:
            run_path = written.path or (run.path if run else "")
            where = "" if isinstance(event, events.BuildEvent) else run_path
            fields |= self._oth.of(event, written.test or "", where)
            fields = {key: fields.get(key) or NO_VALUE for key in FIELDS}
        building = isinstance(event, events.BuildStarted) - isinstance(event, events.BuildEnded)
        fields |= {
            "building": building or None,
            "running": running or None,
            **self._under_way(event),
            "value": events.finite(written.value),
            "nodes": written.nodes or (run.nodes if run else "") or None,
        }
        if isinstance(event, events.MetricRecorded):
            fields["unit"] = event.unit or None
        elif isinstance(event, events.RunJudged):
            fields |= {"cause": event.cause or None, "advice": event.advice or None}
            fields |= _counted(run) if run is not None else {}
        # A build is of many runs, so its key is in place of a run: that a build began and ended is
        # told of one id.
        own_id = event.key if isinstance(event, events.BuildEvent) else run_id
        tags = self._tags_of(written.app or "", written.test or "", own_id)
        return line("events", tags, field_text(fields), moment)

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
        if isinstance(event, events.RunJudgedAgain | events.RunReviewed):
            return True
        known = event.run_id in self._judged and event.run_id not in self._runs
        return known and isinstance(event, _AFTER_VERDICT)

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
        said = _counted(run) if counts else dict.fromkeys(_counted(run), 0.0)
        waited = None
        if run.submitted and run.script_started and run.submitted <= run.script_started:
            waited = (run.script_started - run.submitted) / SECOND_NS
        fields: Fields = {
            "test_id": None if self._oth else event.run_id,
            "case": event.case or None,
            "code": events.finite(run.code),
            **said,
            "counted": float(counts and run.code not in _NO_RESULT),
            "again": run.will_rerun or not counts or None,
            "elapsed": run.elapsed,
            "waited": waited,
            "exit_code": events.finite(run.exit_code),
            "job_id": run.job_id or None,
            "nodes": run.nodes or None,
            "run_archive": run.path or None,
            "target": run.target or None,
            "stage": run.stage or None,
            "comment": event.reason or None,
            "cause": run.cause or None,
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

    def _of_nodes(self, event: _NodeEvent, moment: int) -> list[bytes]:
        try:
            nodes = unfold(event.nodes)
        except ValueError:
            nodes = (event.nodes,)
        status = _OF_NODES[type(event)]
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


def _counted(run: RunLife) -> Fields:
    """Return whether a run that is over has passed, and whether it has failed."""
    passed = run.code == codes.PASS.number
    failed = not passed and not run.will_rerun and run.code not in _NO_RESULT
    return {"passed": float(passed), "failed": float(failed)}


def _stem(event: events.RunEvent | events.BuildEvent) -> str:
    """What the names of figures begin with."""
    return "-".join(filter(None, (event.app, event.test)))
