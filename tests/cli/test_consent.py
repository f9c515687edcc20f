"""Harmful tests run with the consent of a person, on a machine in production of two."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

import seatrial
from tests.programs import Workplace


@pytest.mark.parametrize(
    ("production", "given", "refused"),
    [
        (False, [], "here only with the consent of a person, and nobody consented"),
        (False, ["  "], "consent of a person"),
        (False, ["Ada"], ""),
        (
            True,
            ["Ada"],
            "here, which is in production, only with the consent of two people, and Ada",
        ),
        (True, ["Ada", " ada "], "consent of two people"),
        (True, ["Ada", "Bob"], ""),
    ],
)
def test_a_harmful_test_needs_consent(
    place: Workplace, production: bool, given: list[str], refused: str
) -> None:
    place.local(production=production)
    place.test("stop", harmful=True)
    place.test("look")
    done = place.run("--name", "t", *(word for name in given for word in ("--consent", name)))
    if refused:
        assert done.code == 2 and refused in done.err and "stop: harmful" in done.err, done.said
        assert not place.trials.exists() or not list(place.trials.iterdir())
        assert place.run("--name", "t", "-k", "look").code == 0, "others run"
        return
    assert done.code == 0, done.said
    runs = {event.test: event.run_id for event in place.events("t") if hasattr(event, "run_id")}
    shown = place.seatrial("show", runs["stop"])
    assert f"with the consent of {', '.join(given)}" in shown.out, shown.said
    assert "consent of" not in place.seatrial("show", runs["look"]).out


def test_a_plan_is_refused_before_its_first_component(place: Workplace) -> None:
    place.local()
    place.test("stop", harmful=True)
    place.test("look")
    components = [{"component": name, "tests": [name]} for name in ("look", "stop")]
    plan = {"plan": "p", "machine": str(place.machine), "suites": ["suite"]}
    text = yaml.safe_dump({**plan, "components": components})
    (place.folder / "plan.yaml").write_text(text)
    done = place.seatrial("accept", "plan.yaml")
    assert done.code == 2 and "stop: harmful tests" in done.err, done.said
    assert not place.ran(), "nothing ran before"
    done = place.seatrial("accept", "plan.yaml", "--consent", "Ada")
    assert len(place.ran()) == 2, done.said
    assert "Ada" in (place.trials / "p-stop" / "trial.json").read_text()


def test_python_needs_consent_too(place: Workplace, monkeypatch: pytest.MonkeyPatch) -> None:
    place.local()
    place.test("stop", harmful=True)
    monkeypatch.chdir(place.folder)
    with pytest.raises(seatrial.UsageError, match="stop: harmful"):
        seatrial.Trial.create(["suite"], "machine.yaml", name="t")
    assert not Path("trials/t").exists()
    seatrial.Trial.create(["suite"], "machine.yaml", name="t", consent=["Ada"])
