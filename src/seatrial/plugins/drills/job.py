"""The part of a job that is a drill: its faults, and the script that watches and acts beside the
load.

The script ``job.drill`` is bash on the first node, as nothing else is certain to be there. What it
sees goes to ``drill.log``, which ``drill_log`` reads.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.execute.environment import exports, write_script
from seatrial.execute.script import JobLines
from seatrial.files import make_folder
from seatrial.hooks import value_of
from seatrial.model.documents import Location
from seatrial.model.machine import Machine
from seatrial.model.test import Case, Test, TestFile
from seatrial.plugins.drills.keys import LOAD, Drill
from seatrial.units import seconds, show_seconds

_SCRIPT = "job.drill"

# The load learns by DRILL_STOP that it is to end. Where the drill itself is killed, its way back is
# still done; signals are for the drill, which ends by them.
_BEFORE = """\
export DRILL_LOG="$_run/drill.log" DRILL_STOP="$_run/drill.stop"
(
  trap : TERM INT HUP
  bash "$_run/job.drill/run.sh"
  [ -e "$DRILL_STOP" ] || bash "$_run/job.drill/run.sh" back
) < /dev/null > "$_run/drill.out" 2>&1 &
_drill=$!
"""
_AFTER = """\
: > "$_run/drill.load_ended"
wait "$_drill"
"""


def drill_of(test: TestFile) -> Drill | None:
    """Return the drill that a test is; None for any other test."""
    drill = getattr(test, "drill")  # noqa: B009 - a key of this plug-in
    return drill if isinstance(drill, Drill) else None


def _faults_of_bounds(test: TestFile, drill: Drill) -> Iterator[str]:
    """Yield what is wrong with the checks that bound how long something may stop."""
    bounds = [each for one in test.verify if (each := getattr(one, "drill", None)) is not None]
    if not bounds:
        known = ", ".join(f"{name}: 30s" for name in drill.watch)
        yield f"nothing judges it: say `verify: [{{drill: {{{known}}}}}]`"
    for name in dict.fromkeys(name for each in bounds for name in each):
        if name not in (LOAD, *drill.watch):
            known = ", ".join((*drill.watch, LOAD))
            yield f"verify bounds the stops of {name}, which it does not watch; it has {known}"


def check(test: TestFile, at: Location) -> None:
    """Add the faults of a drill: it needs consent, a check that judges it, and time."""
    drill = drill_of(test)
    if drill is None or at.faulty.shapes:
        return
    if not test.harmful:
        at.fault("it stops something: say `harmful: true`, so that it needs the consent of people")
    if not drill.watch:
        at.fault("has no probe; say e.g. `watch: {there: stat /scratch/file}`", "watch")
    for fault in _faults_of_bounds(test, drill):
        at.fault(fault)
    if drill.quiet.seconds >= drill.give_up.seconds:
        at.fault(
            f"quiet {drill.quiet} is not less than give_up {drill.give_up}: it would never end"
        )
    try:
        walltime = seconds(test.run.walltime)
    except ValueError:
        return  # an expression: job.drill itself asks before it acts
    if walltime <= drill.longest:
        at.fault(
            f"run.walltime {test.run.walltime} may end it before everything is back: it can take "
            f"{show_seconds(drill.longest)}; say more, or less of give_up and act_limit"
        )


def lines(machine: Machine, test: Test, case: Case) -> JobLines:
    """Return what a drill adds to the job script of a case; nothing for other tests."""
    if drill_of(test) is None:
        return JobLines()
    drills = value_of(machine, "drills", dict)
    return JobLines(before=exports(drills.get(test.name, {})) + _BEFORE, after=_AFTER)


def prepare(machine: Machine, test: Test, case: Case, run: Path) -> None:
    """Write the scripts of a drill into the directory of its run; nothing for other tests. Raises
    OSError."""
    drill = drill_of(test)
    if drill is None:
        return
    folder = run / _SCRIPT
    make_folder(folder / "watch")
    for name, text in {"act": drill.act, "undo": drill.undo}.items():
        write_script(folder / name, text.rstrip("\n") + "\n")
    for name, text in drill.watch.items():
        write_script(folder / "watch" / name, text.rstrip("\n") + "\n")
    script = Path(__file__).with_name("drill.sh").read_text()
    write_script(folder / "run.sh", f"#!/bin/bash\n{_numbers(drill)}\n{script}")


def _numbers(drill: Drill) -> str:
    """Return bash that sets the times of a drill, in us, and in s where timeout(1) has them."""
    us = ("every", "slow", "before", "quiet", "give_up")
    words = [f"{name}={round(getattr(drill, name).seconds * 1e6)}" for name in us]
    words.append(f"longest={round(drill.longest * 1e6)}")
    return " ".join([*words, f"act_limit={shell_word(str(drill.act_limit.seconds))}"])
