"""Places that judge trials: judging again, criteria, compare, history --check."""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

from seatrial.errors import JournalError
from seatrial.execute.alerts import alarms
from seatrial.journal.events import MetricRecorded, TrialEnded
from seatrial.journal.journal import read
from seatrial.model.codes import CHECK_ERROR, FAILED, NO_FIGURE, PASS, WRONG_ANSWER, Code
from seatrial.model.plan import Component, Criterion
from seatrial.model.test import Case
from seatrial.results.status import status
from tests.programs import Workplace
from tests.results.figures import TRIAD, Kind, Measuring, bound, steady
from tests.results.store.trials import NOON, TrialMaker, a_case
from tests.results.stories import Story, cases_of

from .grid import Told, bad, command, files, good, kept_folder, no

DAY = 86_400 * 10**9

# ---- judge again --------------------------------------------------------------------------


@cache
def _ran() -> Path:
    """The folder of a trial ``t`` of one run, made once."""
    place = Workplace(kept_folder())
    place.local()
    rate = {"find": r"rate (\S+)", "unit": "MB/s", "better": "higher"}
    place.test("t", "echo rate 5; echo ok", metrics={"rate": rate}, verify=[{"contains": "ok"}])
    done = place.run("--name", "t", "-q")
    assert done.code == 0, done.said
    return place.folder


def again(folder: Path, *words: str, stdout: str | None = None) -> Told:
    """Judge the trial again, where its run wrote something else."""
    if not (folder / "suite").is_dir():
        place_of(folder)
    if stdout is not None:
        output_of(folder).write_text(stdout)
    return command(folder, "judge", "t", "--with", "suite", *words)


def place_of(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("store.sqlite*")
    shutil.copytree(_ran(), folder, dirs_exist_ok=True, ignore=ignored)
    return folder


def output_of(folder: Path) -> Path:
    (output,) = (folder / "trials" / "t" / "runs").glob("*/*/stdout")
    return output


def edited(folder: Path, **keys: Any) -> None:
    """Give other keys to the test."""
    path = folder / "suite" / "t" / "test.yaml"
    path.write_text(yaml.safe_dump(yaml.safe_load(path.read_text()) | keys))


@good("judge again")
def _(folder: Path) -> Told:
    return again(folder)


@bad("judge again", "missing", "cannot be judged again: its stdout is gone")
def _(folder: Path) -> Told:
    output_of(place_of(folder)).unlink()
    return again(folder)


@bad("judge again", "missing", "1 of 1 figure has no reference: t@plain rate", "exit code 3")
def _(folder: Path) -> Told:
    """No reference says how good the figure is."""
    return again(folder, "--require-references")


@bad("judge again", "empty", "cannot be judged again: stdout was changed")
def _(folder: Path) -> Told:
    return again(folder, stdout="")


@bad("judge again", "cut", "cannot be judged again: stdout was changed")
def _(folder: Path) -> Told:
    return again(folder, stdout="rate 5\no")


@bad("judge again", "unreadable", "stdout cannot be read")
def _(folder: Path) -> Told:
    a_folder(output_of(place_of(folder)))
    return again(folder)


@bad("judge again", "nan", "'rate' is not a number")
def _(folder: Path) -> Told:
    place_of(folder)
    edited(folder, metrics={"big": {"find": r"(rate)", "unit": "1", "better": "higher"}})
    return again(folder)


@bad("judge again", "unit", "rate is in MB/s, but its reference in GB,")
def _(folder: Path) -> Told:
    place_of(folder)
    files(folder, r_yaml="references:\n- {test: t, metric: rate, unit: GB, min: 0.001}\n")
    return again(folder, "--references", "r.yaml")


@bad("judge again", "parser", "answer.py", "ZeroDivisionError")
def _(folder: Path) -> Told:
    place_of(folder)
    files(folder / "suite" / "t", answer_py="def check(run, case):\n    return 1 / 0\n")
    edited(folder, verify=[{"python": "answer.py:check"}])
    return again(folder)


@bad("judge again", "word", "test.yaml", "contians")
def _(folder: Path) -> Told:
    place_of(folder)
    edited(folder, verify=[{"contians": "ok"}])
    return again(folder)


@bad("judge again", "line", "no such figure", "rate")
def _(folder: Path) -> Told:
    place_of(folder)
    files(folder, r_yaml="references:\n- {test: t, metric: rate, unit: MB/s, min: 1}\n")
    edited(folder, metrics={})
    return again(folder, "--references", "r.yaml")


@bad("judge again", "version", "test.yaml", "is not a key here")
def _(folder: Path) -> Told:
    place_of(folder)
    edited(folder, of_a_later_version=1)
    return again(folder)


no(
    "judge again",
    node="a run is judged by what it wrote; nodes are judged by criteria and nodecheck",
    stale="it reads the directory of each run itself, and nothing of another one",
    clock="it measures no time again: the journal has it",
)


# ---- criteria -----------------------------------------------------------------------------


def met(story: Story, name: str, over: bool = True, **bounds: Any) -> Told:
    """Judge a criterion of a trial that was told event by event."""
    if over:
        story.tell(9, TrialEnded, failed=0)
    found = story.judged(name, **bounds)[0]
    return Told(found.state in ("met", "waived"), f"{found.state}: {found.reason}")


def of_figures(*figures: Any, **more: Any) -> Story:
    """A case with a right run for each figure; None is none."""
    story = Story(cases_of(1))
    for number, value in enumerate(figures):
        own = None if value is None else {"rate": value}
        story.run(0, number, number + 1, figures=own, **more)
    return story


def fom(story: Story, over: bool = True) -> Told:
    return met(story, "figure_of_merit", over, metric="rate", at_least=5)


@good("criteria")
def _(folder: Path) -> Told:
    return fom(of_figures(6.0, 6.0))


@bad("criteria", "missing", "1 of 3 right runs gave no rate")
def _(folder: Path) -> Told:
    return fom(of_figures(6.0, None, 6.0))


@bad("criteria", "missing", "no run with a right answer left facts.txt or nodecheck.txt")
def _(folder: Path) -> Told:
    return met(of_figures(6.0), "findings", at_most=0)


@bad("criteria", "empty", "no run with a right answer has given rate")
def _(folder: Path) -> Told:
    return fom(of_figures())


@bad("criteria", "empty", "no run has given an answer")
def _(folder: Path) -> Told:
    return met(of_figures(), "correct_answers", at_least="100%")


@bad("criteria", "cut", "the trial goes on")
def _(folder: Path) -> Told:
    return fom(of_figures(6.0, 6.0), over=False)


@bad("criteria", "nan", "1 of 2 right runs gave no rate")
def _(folder: Path) -> Told:
    return fom(of_figures(6.0, float("inf")))


@bad("criteria", "nan", "rate: 1 of 2 figures: beyond 1e+150")
def _(folder: Path) -> Told:
    return fom(of_figures(6.0, 1e200))


@bad("criteria", "unit", "rate is in several units", "GB/s")
def _(folder: Path) -> Told:
    story = of_figures(6.0, 6.0)
    one = next(each for each in story.events if isinstance(each, MetricRecorded))
    story.events[story.events.index(one)] = replace(one, unit="GB/s")
    return fom(story)


def on_nodes(*figures: float | None, metric: str = "rate") -> Story:
    """The same case on a node each."""
    cases = [replace(a_case(1, test="a"), id=f"c{n}", node=f"n{n}") for n in range(len(figures))]
    story = Story(cases)
    for number, value in enumerate(figures):
        if value is None:
            story.run(number, 0, 1, FAILED)
        else:
            story.run(number, number, number + 1, figures={metric: value})
    return story


@bad("criteria", "node", "1 of 3 nodes gave no rate: n1")
def _(folder: Path) -> Told:
    return fom(on_nodes(6.0, None, 6.0))


@bad("criteria", "node", "1 of 3 nodes gave no findings: n1")
def _(folder: Path) -> Told:
    return met(on_nodes(0.0, None, 0.0, metric="findings"), "findings", at_most=0)


@bad("criteria", "node", "not met")
def _(folder: Path) -> Told:
    """What was found on the first node counts, though the last one has nothing."""
    return met(on_nodes(2.0, 0.0, metric="findings"), "findings", at_most=0)


@bad("criteria", "parser", "1 answer could not be checked: 1 check error")
def _(folder: Path) -> Told:
    story = of_figures(6.0)
    story.run(0, 2, 3, CHECK_ERROR)
    return met(story, "correct_answers", at_least="100%")


@bad("criteria", "stale", "the latest run, r2, left neither facts.txt nor nodecheck.txt")
def _(folder: Path) -> Told:
    story = Story(cases_of(1))
    story.run(0, 0, 1, figures={"findings": 0.0})
    story.run(0, 2, 3)
    return met(story, "findings", at_most=0)


@bad("criteria", "stale", "the latest run, r2, left no matrix")
def _(folder: Path) -> Told:
    story = Story(cases_of(1))
    story.run(0, 0, 1, figures={"network_findings": 0.0})
    story.run(0, 2, 3, FAILED)
    return met(story, "network", at_most=0)


@bad("criteria", "clock", "the time of 1 run is not known")
def _(folder: Path) -> Told:
    """The clock of the node was set back while the script of one run ran."""
    story = of_figures(6.0, 6.0, 6.0)
    story.run(0, 5, 4)
    return met(story, "variability", at_most="50%")


@bad("criteria", "word", "1 answer could not be checked: 1 code 999")
def _(folder: Path) -> Told:
    story = of_figures(6.0)
    story.run(0, 2, 3, Code(999, "of a later version", ""))
    return met(story, "correct_answers", at_least="100%")


def of_journal(folder: Path, spoil: Callable[[Path], object] | None = None) -> Told:
    """Judge a trial of a plan by its journal, as ``accept status`` does, after it was spoilt."""
    wanted = Criterion(criterion="figure_of_merit", metric="triad", at_least=5)
    component = Component(component="a", tests=["*"], criteria=[wanted])
    case = a_case(1)
    trial = TrialMaker(folder, "p-a", [case], plan="p", component=component)
    trial.start()
    for number in range(3):
        trial.run(case, f"r{number}", figures={"triad": 6.0})
    trial.end()
    if spoil is not None:
        spoil(trial.folder.journal)
    reading = read(trial.folder.journal)
    try:
        found = status(trial.folder.record(), trial.cases, reading, reading=reading)
    except JournalError as error:
        return Told(False, str(error))
    return Told(found.verdict == "met", f"{found.verdict}: {found.criteria[0][0].reason}")


def without_line(journal: Path) -> None:
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:9] + lines[10:]))


def a_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


@bad("criteria", "line", "of the journal cannot be read")
def _(folder: Path) -> Told:
    assert of_journal(folder / "whole").green
    return of_journal(folder / "spoilt", without_line)


@bad("criteria", "unreadable", "journal.jsonl", "cannot be read")
def _(folder: Path) -> Told:
    return of_journal(folder, a_folder)


no(
    "criteria",
    version="events that this version does not know are later ones, and are skipped by design; "
    "a verdict that it does not know is a word",
)


# ---- accept check: the dead man's alarm ---------------------------------------------------


def watched(folder: Path, beat_ago: float | None, spoil: Callable[[Path], object] = str) -> Told:
    """Look whether the driver of a trial that should run is alive, whose heartbeat is so many
    seconds old."""
    component = Component(component="a", tests=["*"])
    made = TrialMaker(folder, "p-a", [a_case(1)], plan="p", component=component)
    made.start()
    made.write()
    heartbeat = made.folder.heartbeat
    if beat_ago is not None:
        heartbeat.touch()
        os.utime(heartbeat, (time.time() - beat_ago,) * 2)
    path = made.folder.path / "trial.json"
    began = time.time_ns() - DAY
    path.write_text(re.sub(r'("created": ?)\d+', rf"\g<1>{began}", path.read_text()))
    spoil(made.folder.journal)
    found = list(alarms([made.folder], 600))
    return Told(not any(alarm.silent for alarm in found), "; ".join(one.text for one in found))


@good("accept check")
def _(folder: Path) -> Told:
    return watched(folder, 10)


@bad("accept check", "missing", "its heartbeat is missing")
def _(folder: Path) -> Told:
    return watched(folder, None)


@bad("accept check", "stale", "its driver has been silent for 1 h")
def _(folder: Path) -> Told:
    return watched(folder, 3600)


@bad("accept check", "clock", "its heartbeat is", "in the future")
def _(folder: Path) -> Told:
    return watched(folder, -7200)


@bad("accept check", "empty", "all events of its journal are missing")
def _(folder: Path) -> Told:
    return watched(folder, 3600, lambda journal: journal.write_bytes(b""))


@bad("accept check", "unreadable", "it cannot be told whether its driver is alive", "journal.jsonl")
def _(folder: Path) -> Told:
    return watched(folder, 3600, a_folder)


no(
    "accept check",
    cut="a heartbeat is an empty file: its time is what it says",
    nan="it reads no figures",
    unit="it reads no figures",
    node="it is about the driver, not about nodes",
    parser="a heartbeat is an empty file, and of the journal whole lines alone are believed",
    word="it reads no words but those of the journal, and skips others",
    line="a line that is dropped is told by all that judge by the journal: criteria",
    version="a driver without a heartbeat, of version 0.1, is one whose heartbeat is missing",
)


# ---- compare ------------------------------------------------------------------------------

CASES = [bound(1, threads=1), bound(2, threads=2)]
Series = Mapping[int, Sequence[float]]
USUAL: Series = {0: steady(1000, 8), 1: steady(2000, 8)}


def trial(
    folder: Path,
    tag: str,
    series: Series = USUAL,
    kind: Kind = TRIAD,
    cases: list[Case] = CASES,
    code: Code = PASS,
    **more: Any,
) -> Measuring:
    """A trial that has ended, with the figures of its cases by their positions."""
    made = Measuring(folder / "trials", tag, cases, **more)
    for number, values in series.items():
        for value in values:
            made.measure(cases[number], {kind: value}, verdict=code)
    made.done()
    return made


def compared(folder: Path, *words: str, before: Series = USUAL, **after: Any) -> Told:
    trial(folder, "before", before)
    trial(folder, "after", **{"created": NOON + DAY, **after})
    return command(folder, "compare", "before", "after", *words)


@good("compare")
def _(folder: Path) -> Told:
    return compared(folder)


@bad("compare", "missing", "1 row without a figure on B", "exit code 3")
def _(folder: Path) -> Told:
    return compared(folder, series={0: USUAL[0]})


@bad("compare", "empty", "after: no run of it is over yet")
def _(folder: Path) -> Told:
    return compared(folder, series={})


@bad("compare", "cut", "undecided: 1 row", "exit code 3")
def _(folder: Path) -> Told:
    return compared(folder, series={0: USUAL[0], 1: USUAL[1][:1]})


@bad("compare", "unreadable", "after")
def _(folder: Path) -> Told:
    trial(folder, "before")
    a_folder(trial(folder, "after").folder.journal)
    return command(folder, "compare", "before", "after")


@bad("compare", "nan", "1 row that could not be compared", "as no measurement is")
def _(folder: Path) -> Told:
    return compared(folder, series={0: USUAL[0], 1: [*USUAL[1][:7], 1e200]})


@bad("compare", "unit", "units differ: MB/s and GB/s", "2 rows that could not be compared")
def _(folder: Path) -> Told:
    return compared(folder, kind=("triad", "GB/s", "higher"))


NODES = [replace(a_case(n, test="s"), parameters={}, node=f"n{n}", threads=1) for n in (1, 2)]


@bad("compare", "node", "1 row without a figure on B", "s%n2")
def _(folder: Path) -> Told:
    trial(folder, "before", cases=NODES)
    trial(folder, "after", {0: USUAL[0]}, cases=NODES, created=NOON + DAY)
    return command(folder, "compare", "before", "after", "--each-node")


@bad("compare", "parser", "no right answer on one side", "check error")
def _(folder: Path) -> Told:
    return compared(folder, code=CHECK_ERROR)


@bad("compare", "stale", "16 runs on both sides", "exit code 3")
def _(folder: Path) -> Told:
    trial(folder, "before")
    return command(folder, "compare", "before", "before")


@bad("compare", "word", "no such metric", "triad")
def _(folder: Path) -> Told:
    return compared(folder, "--metric", "triade")


@bad("compare", "line", "after", "damaged line", "exit code 3")
def _(folder: Path) -> Told:
    trial(folder, "before")
    without_line(trial(folder, "after", created=NOON + DAY).folder.journal)
    return command(folder, "compare", "before", "after")


no(
    "compare",
    clock="sides are named by people, and no time of a run decides between them",
    version="in what versions the sides differ is told beside the rows, as that is what many ask",
)


# ---- history --check ----------------------------------------------------------------------


def nights(
    folder: Path,
    values: Iterable[Any],
    last: Mapping[str, Any] | None = None,
    case: Case = CASES[0],
    first: int = 0,
) -> None:
    """A trial of one run a day; ``last`` is how the newest one differs."""
    figures = list(values)
    for day, value in enumerate(figures, first):
        own = dict(last or {}) if day - first == len(figures) - 1 else {}
        kind: Kind = own.pop("kind", TRIAD)
        made = Measuring(
            folder / "trials", f"n{day:02}{case.node}", [case], created=NOON + day * DAY
        )
        made.measure(case, {} if value is None else {kind: value}, **own)
        made.done()


STEADY = steady(1000, 15)


def checked(folder: Path, *words: str) -> Told:
    return command(folder, "history", "triad", "--check", *words)


@good("history --check")
def _(folder: Path) -> Told:
    nights(folder, STEADY)
    return checked(folder)


@bad("history --check", "missing", "its latest run gave no triad")
def _(folder: Path) -> Told:
    nights(folder, [*STEADY, None], {"verdict": NO_FIGURE})
    return checked(folder)


@bad("history --check", "empty", "no run has a metric")
def _(folder: Path) -> Told:
    nights(folder, [None])
    return checked(folder)


@bad("history --check", "cut", "5 figures of 5 trials cannot show a change")
def _(folder: Path) -> Told:
    nights(folder, STEADY[:5])
    return checked(folder)


@bad("history --check", "unreadable", "n14")
def _(folder: Path) -> Told:
    nights(folder, STEADY)
    a_folder(folder / "trials" / "n14" / "journal.jsonl")
    return checked(folder)


@bad("history --check", "nan", "1 figure left out: beyond 1e+150")
def _(folder: Path) -> Told:
    nights(folder, [*STEADY, 1e200])
    return checked(folder)


@bad("history --check", "unit", "left out: in MB/s, the latest is in GB/s")
def _(folder: Path) -> Told:
    nights(folder, [*STEADY, 1.0], {"kind": ("triad", "GB/s", "higher")})
    return checked(folder)


@bad("history --check", "node", "1 of 2 nodes gave nothing in", "n2")
def _(folder: Path) -> Told:
    nights(folder, STEADY, case=NODES[0])
    nights(folder, STEADY[:12], case=NODES[1])
    return checked(folder)


@bad("history --check", "parser", "its latest run gave no triad")
def _(folder: Path) -> Told:
    nights(folder, [*STEADY, None], {"verdict": CHECK_ERROR})
    return checked(folder)


@bad("history --check", "stale", "its latest run gave no triad")
def _(folder: Path) -> Told:
    nights(folder, [*STEADY, 1.0], {"verdict": WRONG_ANSWER})
    return checked(folder)


@bad("history --check", "stale", "n14 alone cannot show a change", "leave out --trial")
def _(folder: Path) -> Told:
    nights(folder, STEADY)
    return checked(folder, "--trial", "n14")


@bad("history --check", "word", "no run has a metric 'traid'; did you mean 'triad'?")
def _(folder: Path) -> Told:
    nights(folder, STEADY)
    return command(folder, "history", "traid", "--check")


@bad("history --check", "word", "it has no direction (better: none)")
def _(folder: Path) -> Told:
    for day, value in enumerate(STEADY):
        kind: Kind = ("triad", "MB/s", "none")
        made = Measuring(folder / "trials", f"n{day}", CASES[:1], created=NOON + day * DAY)
        made.measure(CASES[0], {kind: value})
        made.done()
    return checked(folder)


@bad("history --check", "line", "n07", "its journal is damaged")
def _(folder: Path) -> Told:
    nights(folder, STEADY)
    journal = folder / "trials" / "n07" / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2] + lines[3:]))
    return checked(folder)


no(
    "history --check",
    clock="a trial's times come from the time since boot, which nobody can set; times of other "
    "tools are looked at when they are imported",
    version="the figures of all versions of Seatrial are one series; a unit that changed is told",
)
