"""Places that judge one run: verify, references, parse, judge again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from seatrial.errors import UsageError
from seatrial.judge import references as refs
from seatrial.judge.references import Reference, References
from seatrial.judge.verdict import UNKNOWN, RunConditions, judge
from seatrial.model.codes import PASS
from seatrial.model.test import Check, PlacementCheck, Test
from tests.judge.helpers import DATA, TRIAD, a_case, a_check, a_test
from tests.judge.test_placement_check import APART, END, NAMES

from .grid import Told, bad, command, dropped, files, good, no

STREAM = (DATA / "stream.out").read_text()
VALID = a_check(contains="Solution Validates")
NONE = References()
TEST = a_test(verify=[VALID], metrics={"triad": TRIAD})


def verdict(
    folder: Path,
    stdout: str | None = STREAM,
    test: Test = TEST,
    exit_code: int | None = 0,
    references: References = NONE,
    names: dict[str, Any] = NAMES,
    ran: RunConditions = UNKNOWN,
) -> Told:
    """Judge a run that wrote this."""
    if stdout is not None:
        files(folder, stdout=stdout)
    found = judge(test, a_case(), folder, exit_code, references, names, ran)
    return Told(found.code is PASS, f"{found.code.name}: {found.why}")


# ---- verify -------------------------------------------------------------------------------


@good("verify")
def _(folder: Path) -> Told:
    return verdict(folder)


@bad("verify", "missing", "stdout is missing")
def _(folder: Path) -> Told:
    return verdict(folder, None)


@bad("verify", "empty", "stdout does not contain 'Solution Validates'")
def _(folder: Path) -> Told:
    return verdict(folder, "")


@bad("verify", "cut", "the script left no exit code")
def _(folder: Path) -> Told:
    return verdict(folder, exit_code=None)


@bad("verify", "cut", "stdout does not contain 'Solution Validates'")
def _(folder: Path) -> Told:
    return verdict(folder, STREAM[: STREAM.index("Solution")])


@bad("verify", "unreadable", "stdout cannot be read")
def _(folder: Path) -> Told:
    (folder / "stdout").mkdir()
    return verdict(folder, None)


@bad("verify", "nan", "'nan' is not a finite number")
def _(folder: Path) -> Told:
    test = a_test(verify=[a_check(value=r"residual (\S+)", at_most=1e-6)])
    return verdict(folder, "residual nan\n", test)


@bad("verify", "node", "rank")
def _(folder: Path) -> Told:
    test = a_test(verify=[Check(placement=PlacementCheck(), in_file="stdout")])
    files(folder, placement_txt="")
    assert verdict(folder, APART + END, test).green
    return verdict(folder, APART.splitlines(keepends=True)[0] + END, test)


@bad("verify", "parser", "answer.py", "ZeroDivisionError")
def _(folder: Path) -> Told:
    files(folder, answer_py="def check(run, case):\n    return 1 / 0\n")
    return verdict(folder, test=a_test(folder, verify=[a_check(python="answer.py:check")]))


@bad("verify", "word", "exit code 7, which `codes:` does not name")
def _(folder: Path) -> Told:
    files(folder, judge_sh="exit 7\n")
    check = a_check(script="judge.sh", codes={"0": "pass", "2": "wrong answer"})
    return verdict(folder, test=a_test(folder, verify=[check]))


@bad("verify", "line", "stdout does not contain 'Solution Validates'")
def _(folder: Path) -> Told:
    return verdict(folder, dropped(STREAM, "Solution Validates"))


no(
    "verify",
    unit="a check compares numbers as its test writes them; units are of metrics: references",
    stale="a run has a directory of its own, made for it; another attempt has another one",
    clock="checks read no times; how long a script took is a metric: references",
    version="an output of another program is met by `parse`, which metrics use",
)


# ---- references ---------------------------------------------------------------------------


def expect(**keys: Any) -> References:
    given = {"test": "stream", "metric": "triad", "unit": "MB/s", "min": 5000.0, **keys}
    return References.of([Reference(**given)])


def loaded(folder: Path, text: str) -> Told:
    """Judge a run by the references in a file; a fault of the file is the answer."""
    path = files(folder, references_yaml=text) / "references.yaml"
    try:
        found = refs.load(path)
    except UsageError as error:
        return Told(False, str(error))
    return verdict(folder, references=found)


FILE = "references:\n- {test: stream, metric: triad, unit: MB/s, min: 5000}\n"


@good("references")
def _(folder: Path) -> Told:
    return loaded(folder, FILE)


@bad("references", "missing", "reference for add and no such figure")
def _(folder: Path) -> Told:
    return verdict(folder, references=expect(metric="add"))


@bad("references", "empty", "references.yaml:1: is empty")
def _(folder: Path) -> Told:
    return loaded(folder, "")


@bad("references", "cut", "references.yaml:2", "not valid YAML")
def _(folder: Path) -> Told:
    return loaded(folder, FILE[:-12])


@bad("references", "unreadable", "references.yaml:1: is not a regular file")
def _(folder: Path) -> Told:
    (folder / "references.yaml").mkdir()
    try:
        refs.load(folder / "references.yaml")
    except UsageError as error:
        return Told(False, str(error))
    return Told(True, "")


@bad("references", "nan", "references[0].min: '.nan' is not a number")
def _(folder: Path) -> Told:
    return loaded(folder, FILE.replace("5000", ".nan"))


@bad("references", "nan", "'inf' is not a finite number")
def _(folder: Path) -> Told:
    return verdict(folder, f"{STREAM}\n".replace("5693.6", "inf"), references=expect())


@bad("references", "unit", "triad is in MB/s, but its reference in GB,")
def _(folder: Path) -> Told:
    return verdict(folder, references=expect(unit="GB", min=5.0))


@bad("references", "unit", "triad has no direction (better: none)")
def _(folder: Path) -> Told:
    metric = {"triad": type(TRIAD)(find=TRIAD.find, unit="MB/s", better="none")}
    return verdict(folder, test=a_test(verify=[VALID], metrics=metric), references=expect())


@bad("references", "parser", "figures.py", "KeyError")
def _(folder: Path) -> Told:
    files(folder, figures_py="def read(run):\n    return {}['triad']\n")
    test = a_test(folder, metrics={"python": "figures.py:read"})
    return verdict(folder, test=test, references=expect())


@bad("references", "clock", "reference for elapsed and no such figure")
def _(folder: Path) -> Told:
    wanted = expect(metric="elapsed", unit="s", min=None, max=60.0)
    assert verdict(folder, references=wanted, ran=RunConditions(elapsed=5.0)).green
    return verdict(folder, references=wanted, ran=RunConditions(elapsed=None))


@bad("references", "word", "references[0].stage: 'half' is not one of alone, full")
def _(folder: Path) -> Told:
    return loaded(folder, FILE.replace("min", "stage: half, min"))


@bad("references", "line", "metric: is missing")
def _(folder: Path) -> Told:
    lines = "references:\n- test: stream\n  metric: triad\n  unit: MB/s\n  min: 5000\n"
    return loaded(folder, dropped(lines, "metric"))


@bad("references", "version", "references[0].lowest: is not a key here")
def _(folder: Path) -> Told:
    return loaded(folder, FILE.replace("min", "lowest"))


no(
    "references",
    node="a reference is of a case on a machine, whatever its nodes: criteria",
    stale="a reference is of an earlier time by its meaning, and says of which trial and day",
)


# ---- parse --------------------------------------------------------------------------------


def parsed(folder: Path, text: str | bytes, form: str = "stream") -> Told:
    return command(files(folder, out=text), "parse", form, "out")


@good("parse")
def _(folder: Path) -> Told:
    return parsed(folder, STREAM)


@bad("parse", "missing", "out is missing")
def _(folder: Path) -> Told:
    return command(folder, "parse", "stream", "out")


@bad("parse", "empty", "out: is not a whole stream output")
def _(folder: Path) -> Told:
    return parsed(folder, "")


@bad("parse", "cut", "out: is not a whole hpl output")
def _(folder: Path) -> Told:
    text = (DATA / "hpl.out").read_text()
    return parsed(folder, text[: text.index("End of Tests")], "hpl")


@bad("parse", "unreadable", "out cannot be read")
def _(folder: Path) -> Told:
    (folder / "out").mkdir()
    return command(folder, "parse", "stream", "out")


@bad("parse", "nan", "out: is not a whole stream output", "nan")
def _(folder: Path) -> Told:
    return parsed(folder, STREAM.replace("5693.6", "nan"))


@bad("parse", "unit", "out: is not a whole osu output")
def _(folder: Path) -> Told:
    text = (DATA / "osu-7-barrier.out").read_text()
    assert parsed(folder, text, "osu").green
    return parsed(folder, text.replace("(us)", "(fortnights)"), "osu")


@bad("parse", "parser", "out: is not a whole stream output")
def _(folder: Path) -> Told:
    return parsed(folder, bytes(range(256)) * 20)


@bad("parse", "word", "'steam' is not a known output format")
def _(folder: Path) -> Told:
    return parsed(folder, STREAM, "steam")


@bad("parse", "line", "out: is not a whole stream output")
def _(folder: Path) -> Told:
    return parsed(folder, dropped(STREAM, "Triad:"))


@bad("parse", "version", "out: is not a whole hpl output")
def _(folder: Path) -> Told:
    return parsed(folder, STREAM, "hpl")


no(
    "parse",
    node="an output is of a run, and formats know no nodes; mpigraph's hosts: nodecheck, criteria",
    stale="it reads the file that a person names",
    clock="it gives no times",
)
