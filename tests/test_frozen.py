"""What version 0.2 wrote is read as it was then: trials, a store, settings, a signed report;
and the deciding code does what it did.

``tests/frozen/version-0.2.tar.xz`` was made by ``tests/frozen/make.py`` of that version, in
/tmp/frost, and is never made again. After a change that is meant:

    SEATRIAL_REGENERATE=1 .venv/bin/python -m pytest tests/test_frozen.py
    git diff tests/frozen
"""

from __future__ import annotations

import json
import os
import tarfile
from pathlib import Path

import pytest

from seatrial.journal.events import RunJudged
from tests.frozen import rehearsals
from tests.programs import Workplace

FROZEN = Path(__file__).parent / "frozen"
DIGESTS = FROZEN / "rehearsals.json"
MADE_IN = "/tmp/frost"
REGENERATE = os.environ.get("SEATRIAL_REGENERATE") == "1"
# What is asked of the fixtures.
QUESTIONS = (
    "trials --rehearsed --format json",
    "runs --trial ended --format csv",
    "runs --trial running --format csv",
    "runs --trial lab-functionality --format json",
    "export ended --format junit",
    "matrix ended",
    "history rate --trial ended --format csv",
    "variability lab-stability --json",
    "compare lab-stability lab-functionality",
    "accept status plan.yaml --format json",
    "accept status plan.yaml",
    "note --list",
    "config --show-origin",
    "report verify lab.html --signers allowed_signers --require vendor --require site",
)
# Words that were changed on purpose since.
CHANGED = {
    # Subjects of a criterion are told apart from it on pages, too, where blanks do not count.
    "  wrong          not met": "- wrong          not met",
    "clock   of  passed  accepted": "    clock  passed  accepted",
    "1.02 s            8    82.4 %": "    1.02 s       8",
    "   3 s  3 s      14    94.8 %": "3 s of 3 s      14    94.8 %",
    "no run had 52.0 % of the node-hours; 50.0 % planned for none": (
        "52.0 % of the node-hours were unused; the plan gives 50.0 % to no test"
    ),
    # Of a `once` the accepted share has no meaning.
    "accepted over time  |    ▇███████████████████████▇▇███████   |  to 1.02 s\n": "",
    # How much of the time of shared nodes was shared, and in runs that passed.
    '1.6228955616448748,\n        "shared": 0.0': (
        '1.6228955616448748,\n        "shared": 0.7951513756535772,'
        '\n        "passed": 0.9977866474894894'
    ),
    '0.9477658486666667,\n        "shared": 0.0': (
        '0.9477658486666667,\n        "shared": 0.0,\n        "passed": 1.0'
    ),
    '"items": [],\n      "evidence"': '"items": [],\n      "unlearned": "",\n      "evidence"',
}


@pytest.fixture
def version_0_2(place: Workplace) -> Workplace:
    """The fixtures of 0.2, in another folder than they were made in."""
    with tarfile.open(FROZEN / "version-0.2.tar.xz") as packed:
        packed.extractall(place.folder)
    place.env |= {"HOME": str(place.folder / "home"), "TZ": "UTC"}
    lock = place.folder / "trials/running/journal.jsonl.lock"
    lock.write_text(f"seatrial, process 999999999 on {os.uname().nodename}")  # this host's
    return place


def test_every_question_has_the_answer_of_then(version_0_2: Workplace) -> None:
    place = version_0_2
    (place.folder / "trials/store.sqlite").unlink()  # it knows the folder of then, too
    told = ""
    for words in QUESTIONS:
        done = place.seatrial(*words.split())
        out = done.said.replace(str(place.folder), "FOLDER")
        told += f"$ seatrial {words}\n{out}[exit code {done.code}]\n\n"
    golden = FROZEN / "version-0.2.txt"
    if REGENERATE:
        golden.write_text(told)
    then = golden.read_text()
    for before, now in CHANGED.items():
        then = then.replace(before, now)
    assert told == then


def test_the_store_of_then_answers_as_one_that_is_made_of_the_journals_now(
    version_0_2: Workplace,
) -> None:
    place = version_0_2
    (place.folder / "none").mkdir()
    (place.folder / "trials/store.sqlite").rename(place.folder / "then.sqlite")
    words = ("runs", "--format", "csv", "--limit", "0", "--rehearsed")
    kept = place.seatrial("--trials", "none", "--store", "then.sqlite", *words)
    made = place.seatrial("--store", "now.sqlite", *words)
    assert kept.code == made.code == 0, kept.said + made.said
    assert len(made.out.splitlines()) > 50
    runs = kept.out.replace(MADE_IN, str(place.folder)), made.out
    assert sorted(runs[0].splitlines()) == sorted(runs[1].splitlines())


def test_a_trial_whose_driver_was_killed_then_goes_on_now(version_0_2: Workplace) -> None:
    place = version_0_2
    ended = {each.run_id for each in place.events("running", RunJudged)}
    done = place.resume("running")
    assert done.code == 0, done.said
    assert set(place.verdicts("running").values()) == {"pass"}
    assert ended < {each.run_id for each in place.events("running", RunJudged)}


@pytest.fixture(scope="module")
def plans(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return rehearsals.copied(tmp_path_factory.mktemp("shipped"))


@pytest.mark.parametrize("name", rehearsals.PLANS)
def test_rehearsals_of_shipped_plans_decide_as_they_did(
    name: str, plans: Path, tmp_path: Path
) -> None:
    plan = rehearsals.prepared(plans, name)
    found = {
        f"{name} seed {seed}": rehearsals.digests(plan, seed, tmp_path / str(seed))
        for seed in rehearsals.SEEDS
    }
    kept = json.loads(DIGESTS.read_text()) if DIGESTS.exists() else {}
    if REGENERATE:
        DIGESTS.write_text(json.dumps({**kept, **found}, indent=2, sort_keys=True) + "\n")
        return
    assert found == {key: kept[key] for key in found}
