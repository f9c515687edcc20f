"""A fault of one test stops what needs it, and nothing else: runs, lists, plans, tunings."""

from __future__ import annotations

import contextlib
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.errors import InvalidFiles, UsageError
from seatrial.execute.tuning import prepare_tuning
from seatrial.journal.events import RunJudged
from tests.model.suite.helpers import Place
from tests.programs import Done, Workplace

BROKEN = "app: bad\ntags: [deep]\nrun: [script: true\n"


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Workplace]:
    """Two tests without faults; one with a wrong key, one that is no YAML, one that inherits from
    it, and one of which one case has a fault."""
    place = Workplace(tmp_path)
    place.local(cores=4)
    place.test("sleepq", tags=["quick"], parameters={"n": [1, 2]})
    place.test("osu")
    place.test("kf", tags=["slow"], run={"noodes": 2})
    place.test("mode", parameters={"p": [1, 2]}, run={"tasks": "3 / p"})
    (place.suite / "bad").mkdir()
    (place.suite / "bad/test.yaml").write_text(BROKEN)
    (place.suite / "heir").mkdir()
    (place.suite / "heir/test.yaml").write_text("inherits: bad\napp: heir\n")
    yield place


KF, BAD, MODE = "kf/test.yaml:3: run.noodes", "bad/test.yaml:3: is not valid", "gives 1.5: it must"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("-k", "kf"), [KF]),
        (("-k", "sleepq or kf"), [KF]),
        (("-k", "slow"), [KF]),
        (("-t", "slow"), [KF]),
        (("-k", "bad"), [BAD]),
        (("-t", "deep"), [BAD]),  # a tag that stands in a file that cannot be read
        (("-k", "heir"), [BAD]),  # what it inherits from cannot be read
        (("-k", "mode"), [MODE]),
        (("-k", "not sleepq"), [KF, BAD, MODE]),
        ((), [KF, BAD, MODE]),
    ],
)
def test_a_fault_of_what_is_selected_stops_all(
    place: Workplace, words: tuple[str, ...], told: list[str]
) -> None:
    for command in ("run", "list"):
        done = place.seatrial(command, "suite", "-m", str(place.machine), *words)
        assert (done.code, done.out) == (2, ""), done.said
        assert "nothing was done." in done.err
        for text in (KF, BAD, MODE):
            assert (text in done.err) == (text in told), done.err
    assert not place.trials.exists()


def test_a_fault_of_what_is_not_selected_is_told_and_stops_nothing(place: Workplace) -> None:
    done = place.run("-k", "sleepq and n=2 or osu", "--name", "t", "--quiet")
    assert done.code == 0, done.said
    assert {event.test for event in place.events("t", RunJudged)} == {"sleepq", "osu"}
    told = dict(re.findall(r"^left out: (\S+) \(not selected\): (.*)$", done.err, re.MULTILINE))
    assert told.keys() == {"mode{p=2}@plain", "bad", "kf", "heir"}
    assert told["mode{p=2}@plain"].startswith("suite/mode/test.yaml:10: run.tasks: '3 / p' gives")
    assert told["kf"].startswith("suite/kf/test.yaml:3: run.noodes: is not a key here; did you")
    assert told["bad"] == told["heir"]
    for words in (("-k", "sleepq"), ("-t", "quick"), ("-k", "mode and p=1")):
        listed = place.seatrial("list", "suite", "-m", str(place.machine), *words)
        assert listed.code == 0, listed.said
        assert "left out: kf (not selected): " in listed.out
    placed = place.seatrial("place", "suite", "-m", str(place.machine), "-k", "sleepq")
    assert placed.code == 0 and "left out: kf (not selected): " in placed.out
    for command in ("list", "place"):
        chosen = ("suite", "-m", str(place.machine), "-k", "sleepq", "--format", "json")
        done = place.seatrial(command, *chosen)
        assert len(json.loads(done.out)) == 2 and "left out: kf (not selected): " in done.err


def test_the_way_around_is_told_and_leads_there(place: Workplace) -> None:
    done = place.seatrial("list", "suite/", "-m", str(place.machine), "-k", "not bad and not heir")
    assert "Without kf, mode: -k '(not bad and not heir) and not kf and not mode'" in done.err
    way = "(not bad and not heir) and not kf and not mode"
    assert place.seatrial("list", "suite", "-m", str(place.machine), "-k", way).code == 0
    place.test("kf-2", "true")  # `not kf` would leave it out, too
    done = place.seatrial("list", "suite/", "-m", str(place.machine), "-k", "not bad and not heir")
    assert done.err.endswith("2 faults; nothing was done.\n")
    alone = place.seatrial("list", "suite", "-m", str(place.machine), "-k", "kf and not kf-2")
    assert alone.err.endswith("1 fault; nothing was done.\n")  # nothing is left without it


def planned(place: Workplace, component: dict[str, Any]) -> Done:
    about = {
        "plan": "p",
        "machine": "./machine.yaml",
        "suites": ["suite"],
        "components": [{"component": "c", **component}],
    }
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(about))
    return place.seatrial("accept", "run", "plan.yaml", "--dry-run")


def test_a_plan_needs_its_own_tests_alone(place: Workplace) -> None:
    sound: list[dict[str, Any]] = [{"tests": ["sleepq", "osu"]}, {"select": "sleepq"}]
    for component in sound:
        done = planned(place, component)
        assert done.code == 0, done.said
        assert "left out: kf (not selected): " in done.err
    faulty: list[tuple[dict[str, Any], list[str]]] = [
        ({"tests": ["sleepq", "kf"]}, [KF]),
        ({"tests": ["sleepq", "b*"]}, [BAD]),
        ({"select": "sleepq or slow"}, [KF]),
        ({}, [KF, BAD, MODE]),
        ({"tests": ["sleepq"], "settings": {"m": 1}}, ["has this parameter; there are"]),
        ({"select": "sleepq", "settings": {"m": 1}}, ["has this parameter; there are"]),
        ({"tests": ["gone"]}, ["'gone' is not a test here; there are"]),
    ]
    for component, told in faulty:
        done = planned(place, component)
        assert done.code == 2, (component, done.said)
        assert all(text in done.err for text in told), done.err


def test_tuning_and_judging_need_one_test_alone(place: Workplace) -> None:
    about = {
        "tune": "a",
        "suite": "suite",
        "test": "sleepq",
        "metric": "elapsed",
        "axes": {"n": [1, 2]},
        "cost": "100%",
    }
    file = place.folder / "tune.yaml"
    for test, told in (("sleepq", ""), ("kf", KF), ("bad", BAD), ("gone", "no test 'gone'")):
        file.write_text(yaml.safe_dump({**about, "test": test}))
        with pytest.raises(InvalidFiles, match=told) if told else contextlib.nullcontext():
            prepare_tuning(file, str(place.machine))
    assert place.run("-k", "osu", "--name", "t").code == 0
    assert place.seatrial("judge", "t").code == 0
    place.test("osu", run={"noodes": 2})
    done = place.seatrial("judge", "t")
    assert done.code == 2 and "osu/test.yaml:" in done.err


def test_a_reference_with_a_fault_stops_its_own_test_alone(place: Workplace) -> None:
    good = "  - {test: osu, metric: t, value: 1, unit: s}\n"
    bad = "  - {test: sleepq, metric: t, vlue: 1, unit: s}\n"
    file = place.folder / "here/references.yaml"
    file.parent.mkdir()
    told = "references.yaml:3: references[1].vlue: is not a key here"
    about = f"left out: references of sleepq (not selected): {file.relative_to(place.folder)}"

    def listed(word: str) -> Done:
        return place.seatrial("list", "suite", "-m", "machine.yaml", "-k", word)

    for text in (good + bad, good + bad + good.replace("osu", "other")):
        file.write_text(f"references:\n{text}")
        done = listed("sleepq")
        assert done.code == 2 and told in done.err, done.said
        done = listed("osu")
        assert done.code == 0 and f"{about}:3: references[1].vlue: is" in done.out, done.said
    plan = planned(place, {"tests": ["osu"]})
    assert plan.code == 0 and "left out: references of sleepq (not selected)" in plan.err
    plan = planned(place, {"tests": ["sleepq"]})
    assert plan.code == 2 and told in plan.err
    of_no_test = ["  - {metric: t, value: 1, unit: s}\n", "  - 5\n", "x: 1\n"]
    for text in (good + good, *(good + bad + each for each in of_no_test)):
        file.write_text(f"references:\n{text}")  # of the selected test, or of no test
        assert listed("osu").code == 2, text


WORDS = ["one", "two", "three", "a", "x"]
keywords = st.recursive(
    st.sampled_from([*WORDS, "p=1", "p=2", "plain", "gcc", "o"]),
    lambda inner: st.one_of(
        inner.map(lambda one: f"not ({one})"),
        st.tuples(inner, st.sampled_from(["and", "or"]), inner).map(
            lambda parts: f"({parts[0]}) {parts[1]} ({parts[2]})"
        ),
    ),
    max_leaves=4,
)
FAULTS = ("noodes: 1\n", "noodes: [\n", "tags: 5\n", "parameters: 5\n", "verify: 7\n")


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(
    st.sampled_from(WORDS),
    st.lists(st.sampled_from(WORDS), max_size=2, unique=True),
    st.sampled_from([{}, {"p": [1, 2]}, {"p": ["x"]}]),
    keywords,
    st.lists(st.sampled_from(WORDS), max_size=1),
    st.sampled_from(FAULTS),
)
def test_a_test_that_would_be_selected_is_never_passed_over(
    tmp_path_factory: pytest.TempPathFactory,
    name: str,
    tags: list[str],
    parameters: dict[str, Any],
    keyword: str,
    asked_tags: list[str],
    fault: str,
) -> None:
    """Whatever the fault: if the mended test has cases in a selection, its fault is one of it."""
    place = Place(tmp_path_factory.mktemp("suite"))
    whole = place.test(name, app="a", tags=tags, parameters=parameters)
    place.test("z", app="z", tags=WORDS)
    try:
        is_selected = any(
            case.test == name for case in place.cases(keyword=keyword, tags=asked_tags)
        )
    except UsageError:
        is_selected = False
    whole.write_text(whole.read_text() + fault)
    try:
        prepared = place.plan(keyword=keyword, tags=asked_tags)
    except InvalidFiles:
        return
    except UsageError:
        prepared = None
    assert not is_selected
    assert prepared is None or [what for what, _ in prepared.broken] == [name]
