"""The heartbeat of a driver, by which others see that it is alive."""

from __future__ import annotations

import asyncio

import pytest

from seatrial.journal.events import Event, TrialResumed, TrialStarted
from seatrial.suite.model import Case
from seatrial.trial.driver import Driver
from seatrial.trial.observer import Observer
from tests.programs import Workplace


@pytest.mark.parametrize("again", [False, True], ids=["started", "resumed"])
def test_it_beats_before_the_journal_says_that_the_trial_runs(
    place: Workplace, again: bool
) -> None:
    """A driver that is killed in its first moment has had no time for anything later, and people
    are to be told."""
    place.test("one", parameters={"n": [1, 2, 3]})
    place.run("--dry-run", "--name", "t")
    folder = place.trial("t")
    beats: list[bool] = []

    class Watching(Observer):
        def on_event(self, event: Event, case: Case | None) -> None:
            if isinstance(event, TrialStarted | TrialResumed):
                beats.append(folder.heartbeat.exists())

    if again:
        asyncio.run(_paused(Driver(folder)))
        folder.heartbeat.unlink()
    asyncio.run(Driver(folder, Watching()).drive())
    assert beats == [True]


async def _paused(driver: Driver) -> None:
    driver.interrupt()
    await driver.drive()
