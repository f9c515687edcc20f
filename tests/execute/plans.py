"""Plans of one sustained component, as people write them, and `seatrial accept` on them."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import yaml

from seatrial.journal.events import AlertRaised, RunCreated, RunJudged, RunSubmitted
from tests.programs import Done, Driving, Workplace

TAG = "p-mix"


def write_plan(place: Workplace, duration: str = "1s", **keys: Any) -> Path:
    """A plan ``p`` with the component ``mix``; ``alerts`` and ``rehearsal`` are the plan's, other
    keys are the component's."""
    whole: dict[str, Any] = {key: keys.pop(key) for key in ("alerts", "rehearsal") if key in keys}
    component = {"component": "mix", "kind": "sustained", "duration": duration, **keys}
    about = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], **whole}
    path = place.folder / "plan.yaml"
    path.write_text(yaml.safe_dump({**about, "components": [component]}))
    return path


def short(
    place: Workplace, name: str, script: str = "sleep 0.25", walltime: str = "1s", **keys: Any
) -> Path:
    """A test whose runs take a moment, and may take 1 s, which a plan's duration must hold."""
    return place.test(name, f"{script}\necho ok", run={"walltime": walltime}, **keys)


def accept(place: Workplace, *words: str) -> Done:
    return place.seatrial("accept", "plan.yaml", "-q", *words)


def control(place: Workplace, act: str, *words: str) -> Done:
    """Run `seatrial accept ACT plan.yaml ...`."""
    return place.seatrial("accept", act, "plan.yaml", *words)


def start(place: Workplace, *words: str) -> Driving:
    return place.start("accept", "plan.yaml", *words)


def run_until(place: Workplace, enough: Callable[[], bool], what: str) -> None:
    """Drive a trial that has time for much more, and pause it when enough was seen."""
    with start(place) as driving:
        driving.until(enough, what)
        assert control(place, "pause").code == 0
        done = driving.end()
    assert done.code == 3, done.said


def ends(place: Workplace, test: str = "") -> list[RunJudged]:
    """The verdicts, those of a test."""
    found = place.events(TAG, RunJudged)
    return [event for event in found if not test or event.test == test]


def passed(place: Workplace, test: str = "") -> int:
    return sum(event.verdict == "pass" for event in ends(place, test))


def paths(place: Workplace) -> list[Path]:
    """The directories of the runs, as the journal has them."""
    return [Path(event.path) for event in place.events(TAG, RunCreated)]


def alerts(place: Workplace, kind: str) -> list[AlertRaised]:
    return [event for event in place.events(TAG, AlertRaised) if event.kind == kind]


def processes(mark: str) -> list[int]:
    """The processes that have a word in their command line."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and os.fsencode(mark) in (entry / "cmdline").read_bytes():
                found.append(int(entry.name))
    return found


def audit(place: Workplace) -> None:
    """No run is lost or doubled: each that was announced has one verdict, no script ran twice."""
    events = place.events(TAG)
    announced = {e.run_id for e in events if isinstance(e, RunSubmitted)}
    verdicts = [e.run_id for e in events if isinstance(e, RunJudged)]
    assert len(verdicts) == len(set(verdicts))
    assert announced <= set(verdicts)
    place.audit_log(TAG)
