"""What every command says of a trial in whose journal one bit has changed."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from seatrial.cli import all_commands
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.events import RunJudged
from seatrial.journal.journal import read
from tests.execute.plans import TAG, accept, short, write_plan
from tests.programs import Workplace

SCORE = "score: hpl\nparts:\n  t: {test: t, metric: rate}\n"

# What is typed after the command's name; {run}: a run of another verdict.
ASKED: dict[str, list[str]] = {
    "trials": [""],
    "runs": ["", f"--trial {TAG}", "--failed --format json", "--format csv"],
    "show": ["{run}"],
    "export": [f"{TAG} -o out.xml", f"{TAG} --format json"],
    "compare": [f"{TAG} {TAG}"],
    "history": ["rate", "rate --format json"],
    "records": ["rate"],
    "variability": [TAG, f"{TAG} --json"],
    "suspects": ["", f"--trial {TAG}"],
    "logs": [""],
    "scaling": [f"{TAG} --x p"],
    "score": [f"score.yaml {TAG}"],
    "bands": [TAG],
    "network": [TAG],
    "matrix": [TAG],
    "best": [TAG],
    "ratio": [f"{TAG} --of p=1,2 --x tasks --metric rate"],
    "report": [f"{TAG} -o r.md", "plan.yaml -o r.json"],
    "reference": [f"accept {TAG}", f"accept {TAG} --damaged --dry-run"],
    "accept": ["status plan.yaml", "status plan.yaml --format json", "plan.yaml -q"],
    "judge": [TAG],
    "sink": [f"{TAG} --stdout"],
    "resume": [TAG],
    "cancel": [TAG],
}
JUDGES = ("compare", "matrix", "best", "ratio", "score", "accept")
REMEDIES = [("resume", TAG), ("accept", "plan.yaml -q")]  # they judge what lost its verdict
SILENT = {
    "facts": "reads facts, not runs",
    "lint": "reads facts, not runs",
    "check": "reads facts, not runs",
    "lnet": "reads a routing plan",
    "guard": "reads programs",
    "quota": "asks for quotas",
    "run": "begins a trial",
    "builds": "lists shared builds",
    "issue": "tests/cli/test_plan_records.py",
    "figures": "reads what others give",
    "import": "reads what other harnesses have",
    "config": "reads settings",
    "completion": "reads nothing",
    "man": "reads nothing",
    "probes": "copies a suite",
    "list": "reads a suite",
    "machine": "reads a machine's file",
    "note": "reads the diary",
    "parse": "reads an output",
    "order": "reads a file of an order, if any",
    "pattern": "records a suite, and reads what its ranks wrote",
    "place": "reads a suite",
    "rehearse": "reads a plan",
    "schema": "reads nothing",
    "compat": "enters jobs",
    "filesystems": "reads the records of trials",
    "io": "begins a trial",
    "purge": "reads a file system",
    "serve": "its pages: tests/show/web/test_now.py and test_trial_page.py",
    "store": "lists the gaps: test_store.py",
    "tune": "a tuning: test_tune.py",
    "advise": "a tuning: test_tune.py",
    "syslog": "reads the logs of nodes",
    "usage": "reads what others ran",
}
QUESTIONS = [(name, words) for name, asked in ASKED.items() for words in asked]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A plan's trial that has ended."""
    place = Workplace(tmp_path_factory.mktemp("whole"))
    place.local()
    rate = {"rate": {"find": r"rate (\d+)", "unit": "MB/s", "better": "higher"}}
    short(place, "t", 'echo "rate 4$p"; sleep 0.2', parameters={"p": [1, 2]}, metrics=rate)
    (place.folder / "score.yaml").write_text(SCORE)
    write_plan(place)
    done = accept(place)
    assert done.code == 0, done.said
    return place


@pytest.fixture
def place(whole: Workplace, tmp_path: Path) -> Workplace:
    """The same, and one bit of a verdict is another."""
    ignored = shutil.ignore_patterns("store.sqlite*")  # it knows the other folder
    shutil.copytree(whole.folder, tmp_path / "place", ignore=ignored)
    place = Workplace(tmp_path / "place")
    flip(place.trial(TAG), number_of_verdict(place.trial(TAG)))
    return place


def number_of_verdict(trial: TrialFolder) -> int:
    lines = trial.journal.read_bytes().splitlines()
    return 1 + next(number for number, line in enumerate(lines) if b'"check_end"' in line)


def flip(trial: TrialFolder, number: int) -> None:
    lines = trial.journal.read_bytes().splitlines(keepends=True)
    line = lines[number - 1]
    bit = line.index(b'"value":0') + len(b'"value":')
    lines[number - 1] = line[:bit] + b"1" + line[bit + 1 :]
    trial.journal.write_bytes(b"".join(lines))


@pytest.mark.parametrize("words", ["trials", f"runs --trial {TAG}", f"judge {TAG}"])
def test_an_emptied_journal_is_told_as_such(place: Workplace, words: str) -> None:
    place.seatrial("trials")  # the store knows it whole
    place.trial(TAG).journal.write_bytes(b"")
    done = place.seatrial(*words.split())
    assert f"trials/{TAG}/journal.jsonl: it is empty" in done.err
    assert ("runs everything anew" in done.err, "damaged line" in done.err) == (True, False)


def test_every_command_is_asked() -> None:
    assert sorted(all_commands()) == sorted([*ASKED, *SILENT])


@pytest.mark.parametrize(("name", "words"), QUESTIONS, ids=[f"{n} {w}" for n, w in QUESTIONS])
def test_each_command_tells_where_and_what_to_do(
    whole: Workplace, place: Workplace, name: str, words: str
) -> None:
    trial = place.trial(TAG)
    number = number_of_verdict(trial)
    run = [event.run_id for event in read(trial.journal) if isinstance(event, RunJudged)][-1]
    asked = [name, *words.format(run=run).split()]
    assert "damaged" not in whole.seatrial(*asked).err
    done = place.seatrial(*asked)
    told = [line for line in done.err.splitlines() if "damaged line" in line]
    assert len(told) == 1, done.said
    assert told[0].startswith(f"seatrial: {TAG}: ")
    assert f"trials/{TAG}/journal.jsonl:{number}: 1 damaged line" in told[0]
    remedied = (name, words) in REMEDIES
    assert ("no run lacks a verdict" in told[0]) is remedied
    assert (f"`seatrial resume {TAG}`" in told[0]) is not remedied
    assert "Traceback" not in done.err
    if name in JUDGES:
        assert done.code != 0, "what rests on a damaged journal is no pass"
