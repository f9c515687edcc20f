"""What a driver that takes a trial up knows by its journal."""

from __future__ import annotations

import asyncio
import json

import pytest

from seatrial.execute.driver import Driver
from seatrial.execute.plan.prepare import prepare_plan
from seatrial.execute.plan_trials import begin
from seatrial.journal.clock import boot_id
from seatrial.journal.journal import Journal
from tests.execute.plans import short, write_plan
from tests.programs import LONG_S, Workplace


def test_the_deck_of_a_run_that_was_submitted_twice_is_removed(place: Workplace) -> None:
    """Its driver died before it came to that."""
    (short(place, "a") / "deck").write_text("deck")
    write_plan(place, "10m", tests={"a": {"deck": {"source": "deck", "how": "per_run"}}})
    prepared = prepare_plan(place.folder / "plan.yaml")
    trial = begin(place.trials, prepared, prepared.parts[0])
    (case,) = trial.cases()
    decks = []
    run = {"test": "a", "case": case.id}
    events: list[dict[str, object]] = [{"event": "trial_start"}]
    for run_id, submissions in (("once", 1), ("twice", 2)):
        path = trial.run("a", run_id)
        path.mkdir(parents=True)
        decks.append(path / "deck")
        decks[-1].write_text("deck")
        of: dict[str, object] = {"run_id": run_id, **run}
        events.append({"event": "logging_start", "path": str(path), **of})
        events += [{"event": "submit_start", "alias": "s", **of}] * submissions
        events.append({"event": "check_end", "value": 0, "alias": "pass", **of})
    created = trial.record().created
    with trial.journal.open("w") as file:
        for second, event in enumerate(events):
            file.write(json.dumps({"time": created + second * 10**9, **event}) + "\n")
    outcome = Driver(trial).drive(cancel="enough was seen", host_is_gone=True)
    asyncio.run(asyncio.wait_for(outcome, LONG_S))
    assert not [deck for deck in decks if deck.exists()]


@pytest.mark.parametrize(
    ("boot", "is_before"), [("another", True), (boot_id(), False), ("", False)]
)
def test_what_was_submitted_before_a_boot(place: Workplace, boot: str, is_before: bool) -> None:
    """An early version recorded no boot."""
    short(place, "a")
    write_plan(place, "10m", tests={"a": {}})
    prepared = prepare_plan(place.folder / "plan.yaml")
    trial = begin(place.trials, prepared, prepared.parts[0])
    (case,) = trial.cases()
    run = {"run_id": "r", "test": "a", "case": case.id}
    lines = [{"event": "trial_start", "boot": boot}, {"event": "submit_start", **run}]
    trial.journal.write_text("".join(json.dumps({"time": 1, **line}) + "\n" for line in lines))
    ledger = Driver(trial).ledger
    with Journal.take(trial.journal) as ledger.journal:
        (left,) = ledger.replay()
    assert (left.run_id, ledger.before_boot) == ("r", {"r": is_before})
