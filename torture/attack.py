"""What all attacks share: a trial whose right outcome is known, and the count of what came out.

Each run prints a line for each of many numbers and its last word, and is checked for that word. A
verdict other than pass, lost or node failure is therefore false.
"""

from __future__ import annotations

import shutil
import subprocess
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import NamedTuple

from tests.programs import Done, Workplace, job_shells
from tests.waiting import until

from seatrial.journal.events import RunJudged

CASES = 40
LINES = 200
LAST = "all well"
SCRIPT = f"for n in $(seq {LINES}); do echo line $n; done; sleep 0.$((RANDOM % 4)); echo {LAST}"
OUTPUT = "".join(f"line {n}\n" for n in range(1, LINES + 1)) + f"{LAST}\n"
TIMES = 5
RIGHT = {"pass", "lost", "node failure"}


class Outcome(NamedTuple):
    """What an attack on one trial came to: each a number that must be 0, but for ``attacked``."""

    attacked: int = 0
    stuck: int = 0  # trials that cannot go on, or not to their end
    false_verdicts: int = 0
    cut_outputs: int = 0  # outputs of runs that passed

    def plus(self, other: Outcome) -> Outcome:
        return Outcome(*(a + b for a, b in zip(self, other, strict=True)))


def write_suite(place: Workplace) -> None:
    verify = [{"contains": LAST}, {"contains": "line 1\n"}]
    place.test("well", SCRIPT, logs=False, parameters={"n": f"range(0, {CASES})"}, verify=verify)


def resume_to_end(place: Workplace, under: Sequence[str] = ()) -> Done:
    """Resume the trial, again where runs were lost as often as they may be. ``under``: what runs
    the command."""
    for _ in range(TIMES):
        with place.start("resume", "t", under=under) as driving:
            done = driving.end(300)
        if done.code == 0:
            break
    return done


def outcome(place: Workplace, done: Done, passed: int = CASES) -> Outcome:
    """Compare a trial that was attacked and resumed with the outcome that is right."""
    verdicts = Counter(event.verdict for event in place.events("t", RunJudged))
    false = sum(count for name, count in verdicts.items() if name not in RIGHT)
    stuck = int(done.code != 0 or verdicts["pass"] < passed)
    cut = 0
    for event in place.events("t", RunJudged):
        if event.verdict == "pass":
            output = place.trial().run(event.test, event.run_id) / "stdout"
            cut += output.read_text(errors="replace") != OUTPUT
    if stuck or false or cut:
        print(
            f"  {place.folder}: exit {done.code}, {cut} cut, {dict(verdicts)}: {done.said[-400:]}",
            flush=True,
        )
    return Outcome(1, stuck, false, cut)


@contextmanager
def workplace(folder: Path, number: int) -> Iterator[Workplace]:
    """A place for one trial. It is kept where something went wrong in it."""
    place = Workplace(folder / str(number))
    place.folder.mkdir(parents=True)
    write_suite(place)
    yield place
    shutil.rmtree(place.folder, ignore_errors=True)


def end_jobs(place: Workplace) -> None:
    for shell in job_shells(place.trial()):
        subprocess.run(["pkill", "-KILL", "-s", str(shell)], check=False)
    until(lambda: not job_shells(place.trial()), "the end of the jobs")


def moment(chance: Random, longest: float) -> float:
    """Wait for a random time up to so many seconds, shorter ones more often; return it."""
    seconds = longest * chance.random() ** 2
    time.sleep(seconds)
    return seconds
