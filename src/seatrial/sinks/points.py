"""Events as points of InfluxDB, by the names that the OLCF Test Harness gives them.

    points = TrialPoints(about_of(folder))
    for event in journal:
        lines = points.of(event)      # in line protocol; often one, sometimes none or many

- ``events``: one for each event; ``metrics``: the figures of a run and its elapsed time, as
  ``APP-TEST-METRIC``; ``node_health``: what the scheduler, a person, or a run of one node says of
  a node; ``non_harness_metrics``: gauges.
- ``runs``, which that harness has not: one for each run that is over, at its start.

What a run's end needs of its earlier events is kept until then. The points of a journal depend on
its events alone, so that one sent again replaces itself.
"""

from __future__ import annotations

from functools import cached_property

from msgspec import Struct

from seatrial.journal import codes
from seatrial.journal.codes import Name
from seatrial.journal.events import Event, finite
from seatrial.sinks.event_names import FIELDS, NO_VALUE, event_name, time_text
from seatrial.sinks.line_protocol import field_text, line, tag_text
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
_OF_NODES: dict[str, str] = {
    Name.NODE_DOWN: "FAILED",
    Name.NODE_EXCLUDE: "FAILED",
    Name.NODE_UP: "SUCCESS",
    Name.NODE_ADMIT: "SUCCESS",
}


class _Run(Struct):
    """A run that is not over. Times in ns: ``moment`` is its points', the others are as written."""

    moment: int
    checked: int = 0
    queued: int = 0
    started: int = 0
    ended: int = 0
    exit_code: float | None = None
    job_id: str = ""
    nodes: str = ""
    path: str = ""
    target: str = ""
    stage: str = ""
    figures: dict[str, float] = {}


class TrialPoints:
    """The points of one trial. ``oth``: the run's id is a tag, and no field of that harness is
    missing, as dashboards made for it expect."""

    def __init__(self, about: TrialInfo, oth: bool = False) -> None:
        self._about = about
        self._oth = oth
        self._moments = Moments()
        self._runs: dict[str, _Run] = {}
        self._builds: dict[str, int] = {}
        self._tags: dict[tuple[str, str], str] = {}

    def of(self, event: Event) -> list[bytes]:
        """The lines of the next event of the journal."""
        moment = self._moments.of(event)
        run = self._run(event, moment) if event.run_id else None
        lines = [self._event(event, moment, run)]
        if run is not None:
            if event.event == Name.CHECK_END:
                del self._runs[event.run_id]
                lines += self._over(event, moment, run)
        elif event.event in _OF_NODES:
            lines += self._of_nodes(event, moment)
        elif event.event == Name.GAUGE:
            lines += self._gauge(event, moment)
        elif event.event == Name.BUILD_START:
            self._builds[event.alias] = event.time
        elif event.event == Name.BUILD_END:
            lines += self._build(event, moment)
        return lines

    # ---- one event ------------------------------------------------------------------------

    def _event(self, event: Event, moment: int, run: _Run | None) -> bytes:
        name = event_name(event.event)
        fields: Fields = {
            "test_id": None if self._oth else event.run_id or None,
            "event_name": event.event,
            "event_type": name.type,
            "event_subtype": name.subtype,
            "event_filename": name.file,
            "event_time": time_text(event.time),
            "event_value": _text(event),
            "check_alias": event.alias or None,
            "job_id": event.job_id or (run.job_id if run else "") or None,
            "run_archive": event.path or (run.path if run else "") or None,
            "comment": event.text or None,
            "hostname": self._about.host or None,
            "user": self._about.user or None,
        }
        if event.event in (Name.BUILD_START, Name.BUILD_END):
            fields |= {"build_directory": event.path or None, "run_archive": None}
        if event.event == Name.BUILD_END:
            fields |= {"output_txt": event.text or None, "comment": None}
        if self._oth:
            fields = {key: fields.get(key) or NO_VALUE for key in FIELDS}
        fields |= {
            "value": finite(event.value),
            "nodes": event.nodes or (run.nodes if run else "") or None,
        }
        if event.event == Name.METRIC:
            fields["unit"] = event.unit or None
        return line("events", self._tags_of(event), field_text(fields), moment)

    def _run(self, event: Event, moment: int) -> _Run:
        run = self._runs.get(event.run_id)
        if run is None:
            if len(self._runs) >= MAX_RUNS:
                del self._runs[next(iter(self._runs))]
            run = self._runs[event.run_id] = _Run(moment)
        run.job_id = event.job_id or run.job_id
        run.nodes = event.nodes or run.nodes
        run.target = event.target or run.target
        run.stage = event.stage or run.stage
        if event.event == Name.LOGGING_START:
            run.path = event.path
        elif event.event == Name.SUBMIT_START:
            run.queued = event.time
        elif event.event == Name.BINARY_EXECUTE_START:
            run.started, run.ended, run.moment = event.time, 0, moment
        elif event.event == Name.BINARY_EXECUTE_END:
            run.ended, run.exit_code = event.time, finite(event.value)
        elif event.event == Name.CHECK_START:
            run.checked = moment
        elif event.event == Name.METRIC:
            number = finite(event.value)
            if number is not None and len(run.figures) < MAX_METRICS:
                run.figures[event.alias] = number
        return run

    # ---- a run that is over ---------------------------------------------------------------

    def _over(self, event: Event, moment: int, run: _Run) -> list[bytes]:
        elapsed = None
        if run.started and run.ended >= run.started:
            elapsed = (run.ended - run.started) / SECOND_NS
        lines = [self._summary(event, run, elapsed)]
        if run.figures or elapsed is not None:
            lines.append(self._figures(event, moment, run, elapsed))
        code = finite(event.value)
        status = _HEALTH.get(int(code)) if code is not None else None
        if status and run.nodes and not event.again and not set(run.nodes) & set(",["):
            lines.append(self._health(event, moment, run.nodes, status))
        return lines

    def _summary(self, event: Event, run: _Run, elapsed: float | None) -> bytes:
        code = finite(event.value)
        passed = code == codes.PASS.number
        waited = None
        if 0 < run.queued <= run.started:
            waited = (run.started - run.queued) / SECOND_NS
        fields: Fields = {
            "test_id": None if self._oth else event.run_id,
            "case": event.case or None,
            "code": code,
            "passed": float(passed),
            "failed": float(not passed and not event.again),
            "again": event.again or None,
            "elapsed": elapsed,
            "waited": waited,
            "exit_code": run.exit_code,
            "job_id": run.job_id or None,
            "nodes": run.nodes or None,
            "run_archive": run.path or None,
            "target": run.target or None,
            "stage": run.stage or None,
            "comment": event.text or None,
            "finished": time_text(event.time),
        }
        tags = self._tags_of(event) + tag_text({"verdict": event.alias})
        return line("runs", tags, field_text(fields), run.moment)

    def _figures(self, event: Event, moment: int, run: _Run, elapsed: float | None) -> bytes:
        stem = _stem(event)
        fields: Fields = {} if self._oth else {"test_id": event.run_id}
        fields |= {f"{stem}-{name}": value for name, value in run.figures.items()}
        fields[f"{stem}-execution_time"] = elapsed
        return line("metrics", self._tags_of(event), field_text(fields), run.checked or moment)

    # ---- builds, nodes, gauges ------------------------------------------------------------

    def _build(self, event: Event, moment: int) -> list[bytes]:
        began = self._builds.pop(event.alias, None)
        if began is None or event.time < began:
            return []
        name = f"{_stem(event)}-build_time"
        fields = field_text({name: (event.time - began) / SECOND_NS})
        return [line("metrics", self._tags_of(event), fields, moment)]

    def _of_nodes(self, event: Event, moment: int) -> list[bytes]:
        from seatrial.machine.facts import unfold

        try:
            nodes = unfold(event.nodes)
        except ValueError:
            nodes = (event.nodes,)
        status = _OF_NODES[event.event]
        return [self._health(event, moment, node, status) for node in nodes if node]

    def _health(self, event: Event, moment: int, node: str, status: str) -> bytes:
        tags = {"test": event.test, "machine": self._about.machine.machine, "node": node}
        tags |= {"group": self._groups.get(node, "")} | self._mark
        fields: Fields = {"test_id": event.run_id, "status": status, "message": event.text}
        return line("node_health", tag_text(tags), field_text(fields), moment)

    def _gauge(self, event: Event, moment: int) -> list[bytes]:
        number = finite(event.value)
        if number is None:
            return []
        about = {"machine": self._about.machine.machine, "runtag": self._about.tag}
        tags = tag_text({**about, "name": event.alias, **self._mark})
        return [line("non_harness_metrics", tags, field_text({"value": number}), moment)]

    # ---- tags -----------------------------------------------------------------------------

    def _tags_of(self, event: Event) -> str:
        """The tags of an event; the run's id is one only where old dashboards want it."""
        key = (event.app, event.test)
        tags = self._tags.get(key)
        if tags is None:
            about = {"machine": self._about.machine.machine, "runtag": self._about.tag}
            tags = tag_text({**about, "app": event.app, "test": event.test, **self._mark})
            if len(self._tags) < MAX_TAGS:
                self._tags[key] = tags
        return tags + tag_text({"test_id": event.run_id}) if self._oth else tags

    @cached_property
    def _mark(self) -> dict[str, str]:
        """What keeps rehearsals apart from what was measured."""
        return {"rehearsed": "true"} if self._about.rehearsed else {}

    @cached_property
    def _groups(self) -> dict[str, str]:
        from seatrial.machine.facts import unfold

        groups = self._about.machine.groups.items()
        return {node: name for name, folded in groups for node in unfold(folded)}


def _stem(event: Event) -> str:
    """What the names of figures begin with."""
    return "-".join(filter(None, (event.app, event.test)))


def _text(event: Event) -> str | None:
    """The value as that harness has it: a text, whatever it is."""
    if event.value is not None:
        return str(event.value)
    return event.job_id if event.event == Name.JOB_QUEUED else None
