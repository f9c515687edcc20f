"""Attacks by the host itself: files that are seen late, as over NFS, and a clock that is set."""

from __future__ import annotations

from pathlib import Path
from random import Random

from tests.programs import LONG_S, Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster

from seatrial.journal.events import ClockStepped, RunJudged, ScriptEnded, ScriptStarted
from seatrial.units import SECOND_NS
from torture.attack import Outcome, moment, outcome, resume_to_end, workplace

NODES = 4
LONGEST_LATE_S = 20
LONGEST_RUN_NS = 60 * SECOND_NS
YEAR_S = 365 * 86_400
FAKETIME = "/usr/$LIB/faketime/libfaketimeMT.so.1"  # $LIB is for the dynamic linker, see ld.so(8)

# A view of the trials in which the kernel remembers for some seconds that a file was not there, and
# how large it was: what the caches of NFS do. Jobs write beside it. Someone looks at all files of
# all runs again and again, so that there is something to remember.
_LATE_VIEW = """
bindfs -f -o "attr_timeout=$2,entry_timeout=$2,negative_timeout=$2" "$1" "$1" & view=$!
until mountpoint -q "$1"; do sleep 0.1; done
while sleep 0.3; do
  for run in "$1"/*/runs/*/*/; do stat "$run"stdout "$run"events.jsonl; done > /dev/null 2>&1
done & looks=$!
"${@:3}"; code=$?
kill $looks
umount -l "$1"
kill $view
exit $code
"""


def late(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """The driver sees the files of jobs up to 20 s late, on an emulated cluster. No file is lost,
    so a run that is called lost counts as false."""
    with workplace(folder, number) as place:
        place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
        place.trials.mkdir()
        seconds = str(chance.randint(1, LONGEST_LATE_S))
        under = ["unshare", "-m", "bash", "-c", _LATE_VIEW, "view", str(place.trials), seconds]
        with SlurmCluster(place.folder / "cluster", ClusterOptions(nodes=NODES)) as cluster:
            place.slurm(cluster)
            words = ("run", "suite", "-m", str(place.machine), "--name", "t")
            with place.start(*words, under=under) as driving:
                done = driving.end(600)
        found = outcome(place, done)
        lost = sum(event.verdict == "lost" for event in place.events("t", RunJudged))
        return found._replace(false_verdicts=found.false_verdicts + lost)


class Clock:
    """A wall clock that can be set, of the processes that are started with its environment."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self.set(0)

    @property
    def env(self) -> dict[str, str]:
        return {
            "LD_PRELOAD": FAKETIME,
            "FAKETIME_TIMESTAMP_FILE": str(self._file),
            "FAKETIME_NO_CACHE": "1",
            "DONT_FAKE_MONOTONIC": "1",
            "NO_FAKE_STAT": "1",
        }

    def set(self, seconds: int) -> None:
        """Set the clock to so many seconds from the right time."""
        part = self._file.with_suffix(".part")
        part.write_text(f"{seconds:+d}s\n")
        part.rename(self._file)


def clock(folder: Path, number: int, chance: Random, _kind: str) -> Outcome:
    """Set the clock by seconds to years, back and forth, while a trial runs; kill its driver and
    resume it, too. A run that seems to take less than nothing, or a minute, counts as false."""
    with workplace(folder, number) as place:
        place.local(cores=4)
        place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
        clock = Clock(place.folder / "clock")
        place.env |= clock.env
        with place.start_run("--name", "t", "--jobs", "4") as driving:
            driving.until(lambda: "runs on" in driving.said, "the trial", timeout=2 * LONG_S)
            for _ in range(4):
                moment(chance, 1.0)
                clock.set(_step(chance))
            driving.kill()
        found = outcome(place, resume_to_end(place))
        assert place.count(ClockStepped) > 0, "the clock was not set"
        return found._replace(false_verdicts=found.false_verdicts + _impossible(place))


def _step(chance: Random) -> int:
    size = chance.choice((2, 60, 3_600, 86_400, 30 * 86_400, 5 * YEAR_S))
    return chance.choice((-1, 1)) * chance.randint(1, size)


def _impossible(place: Workplace) -> int:
    """Return the number of runs whose script took less than nothing, or a minute."""
    started = {event.run_id: event.time for event in place.events("t", ScriptStarted)}
    took = [
        event.time - started[event.run_id]
        for event in place.events("t", ScriptEnded)
        if event.run_id in started
    ]
    return sum(not 0 <= nanoseconds < LONGEST_RUN_NS for nanoseconds in took)
