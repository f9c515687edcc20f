"""The time of a script as a metric like any other: criteria, references, verdicts, histories."""

from __future__ import annotations

import json
from typing import Any

import pytest
import yaml

from seatrial.journal.events import RunJudged
from tests.execute.test_stages import judged, reference, references_file
from tests.programs import Workplace

TAG = "p-c"
USUAL, SLOW = 0.2, 1.2  # seconds


def component(place: Workplace, criteria: list[dict[str, Any]], repeat: int = 6) -> None:
    """A plan of one component whose first run is slow."""
    place.local(cores=1)
    place.test(
        "a",
        f'[ "$(wc -l < {place.log})" -gt 1 ] && sleep {USUAL} || sleep {SLOW}',
        run={"walltime": "5s"},
    )
    about = {"component": "c", "tests": ["a"], "repeat": repeat, "criteria": criteria}
    plan = {"plan": "p", "machine": "machine.yaml", "suites": ["suite"], "components": [about]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump(plan))


def accept(place: Workplace) -> int:
    return place.seatrial("accept", "plan.yaml", "-q").code


def results(place: Workplace) -> list[dict[str, Any]]:
    return judged(place)


def test_a_right_run_that_is_slower_than_its_reference_has_the_verdict_performance(
    place: Workplace,
) -> None:
    component(place, [{"criterion": "pass_rate", "at_least": "100%"}])
    reference(place, metric="elapsed", unit="s", value=0.5, upper=1)
    assert accept(place) == 1
    ends = place.events(TAG, RunJudged)
    assert [end.verdict for end in ends] == ["performance", *["pass"] * 5]
    assert ends[0].reason.startswith("elapsed 1.")
    assert "above its reference 0.5 s (at most 100 % above)" in ends[0].reason
    shown = place.seatrial("show", f"{TAG}/{ends[0].run_id}")
    assert "elapsed" in shown.out
    assert "better by" in shown.out


def test_seatrial_run_tells_which_figure_was_slow(place: Workplace) -> None:
    component(place, [])
    reference(place, metric="elapsed", unit="s", value=0.5, upper=1)
    done = place.run("--name", "t", "--repeat", "2")
    assert done.code == 1, done.said
    (row,) = [line for line in done.out.splitlines() if line.startswith("a@plain")]
    assert "elapsed" in row
    assert row.endswith("1 of 2 performance")


def test_the_same_judged_again(place: Workplace) -> None:
    component(place, [])
    assert accept(place) == 0
    reference(place, metric="elapsed", unit="s", value=0.5, upper=1)
    done = place.seatrial("judge", TAG, "--again", "--reason", "contract")
    assert done.code == 1, done.said
    shown = place.seatrial("runs", "--trial", TAG, "--verdict", "performance", "--format", "json")
    assert len(json.loads(shown.out)) == 1


@pytest.mark.parametrize(
    ("bounds", "state"),
    [
        ({"at_most": "10s"}, "met"),
        ({"at_most": 10}, "met"),
        ({"at_most": "1ms"}, "not met"),
        ({"at_most": "1000%"}, "met"),
        ({"at_most": "1%"}, "not met"),
        ({}, "met"),
    ],
)
def test_a_figure_of_merit_may_be_the_elapsed_time(
    place: Workplace, bounds: dict[str, Any], state: str
) -> None:
    component(place, [{"criterion": "figure_of_merit", "metric": "elapsed", **bounds}])
    reference(place, metric="elapsed", unit="s", value=0.2, upper=1)
    accept(place)
    (one,) = results(place)
    assert (one["state"], one["n"], one["unit"]) == (state, 6, "s")


def test_a_lower_bound_alone_of_what_should_be_low_is_a_fault(place: Workplace) -> None:
    component(place, [{"criterion": "figure_of_merit", "metric": "elapsed", "at_least": "95%"}])
    done = place.seatrial("accept", "plan.yaml", "--dry-run")
    assert done.code == 2
    assert "criteria[0].at_least" in done.err
    assert "at_most" in done.err


def test_references_of_the_elapsed_time_are_learned(place: Workplace) -> None:
    component(place, [])
    accept(place)
    plain = place.seatrial("reference", "accept", TAG)
    assert plain.code == 2, "elapsed must be asked for"
    done = place.seatrial("reference", "accept", TAG, "--metric", "elapsed", "--force")
    assert done.code == 0, done.said
    (one,) = yaml.safe_load(references_file(place).read_text())["references"]
    assert (one["metric"], one["unit"], one["learned"]["runs"]) == ("elapsed", "s", 6)
    assert one["upper"] > 0
    assert "lower" not in one, "a run may be faster"


def test_a_share_of_the_runs_within_what_is_expected(place: Workplace) -> None:
    of_median = {"criterion": "within_expected", "within": "200%", "at_least": "80%"}
    component(place, [of_median, {**of_median, "within": "199%", "at_least": "99%"}])
    accept(place)
    first, second = results(place)
    assert (first["value"], first["n"]) == (pytest.approx(5 / 6), 6)
    assert (first["state"], second["state"]) == ("met", "not met")
    assert first["numbers"]["worse"] == 1
    assert "5 of 6 runs right" in first["why"]
    shown = place.seatrial("accept", "status", "plan.yaml").out
    assert "within expected" in shown
