"""The heartbeat of a driver, by which others see that it is alive."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time

import pytest

from seatrial.execute import alerts
from seatrial.execute.driver import Driver
from seatrial.execute.ledger import Observer
from seatrial.execute.requests import Stop
from seatrial.journal.events import Event, TrialResumed, TrialStarted
from seatrial.model.test import Case
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


@pytest.mark.parametrize("ahead", [7200.0, -7200.0])
def test_the_clock_of_the_file_server_tells_how_long_a_driver_is_silent(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    """This host's clock is two hours off."""
    place.test("one", "sleep 2")
    place.run("--dry-run", "--name", "t")
    folder = place.trial("t")
    asyncio.run(_started(Driver(folder)))
    real = time.time
    monkeypatch.setattr("seatrial.execute.alerts.time.time", lambda: real() + ahead)
    folder.heartbeat.touch()
    record = folder.record()
    assert alerts.silence(folder, record, 60) is None
    os.utime(folder.heartbeat, (real() - 100,) * 2)
    silent = alerts.silence(folder, record, 60)
    assert silent is not None and 99 < silent.seconds < 160
    assert not list(folder.path.glob(".clock*"))


async def _started(driver: Driver) -> None:
    """Drive a trial and leave it, as if the driver was killed."""
    asyncio.get_running_loop().call_later(0.3, driver.stop)
    with contextlib.suppress(Stop):
        await driver.drive()
