from __future__ import annotations

import time

import pytest

from seatrial.journal import clock
from seatrial.journal.clock import SMALLEST_STEP_NS, TrialClock, boot_id
from seatrial.journal.events import TrialOpened, TrialResumed, TrialStarted
from seatrial.units import SECOND_NS

DAY_NS = 86_400 * SECOND_NS


class Host:
    """A host whose clocks a test sets: the wall clock and the time since boot, in ns."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.wall, self.up = 1000 * DAY_NS, 50 * SECOND_NS
        monkeypatch.setattr(time, "time_ns", lambda: self.wall)
        monkeypatch.setattr(clock, "uptime_ns", lambda: self.up)
        monkeypatch.setattr(clock, "boot_id", lambda: "this boot")

    def pass_s(self, seconds: float) -> None:
        self.wall += round(seconds * SECOND_NS)
        self.up += round(seconds * SECOND_NS)


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    return Host(monkeypatch)


def test_it_begins_with_the_wall_clock_and_goes_as_fast(host: Host) -> None:
    trial = TrialClock()
    assert trial.now() == host.wall
    host.pass_s(7)
    assert trial.now() == host.wall
    assert trial.step() == 0


def test_it_is_never_before_an_event_that_is_there(host: Host) -> None:
    trial = TrialClock(last=host.wall + DAY_NS)
    assert trial.now() == host.wall + DAY_NS
    host.pass_s(1)
    assert trial.now() == host.wall + DAY_NS


@pytest.mark.parametrize("step", [DAY_NS, -DAY_NS, SMALLEST_STEP_NS, -SMALLEST_STEP_NS])
def test_it_does_not_follow_a_step_and_tells_it_once(host: Host, step: int) -> None:
    trial = TrialClock()
    began = trial.now()
    host.wall += step
    host.pass_s(3)
    assert trial.now() == began + 3 * SECOND_NS
    assert trial.step() == step
    assert trial.step() == 0
    host.wall -= step
    assert trial.step() == -step


def test_a_clock_that_is_adjusted_is_no_step(host: Host) -> None:
    trial = TrialClock()
    host.wall += SMALLEST_STEP_NS - 1
    assert trial.step() == 0
    host.wall += 1  # since the last step, not since the last question
    assert trial.step() == SMALLEST_STEP_NS


def test_the_next_driver_of_this_boot_keeps_its_tie(host: Host) -> None:
    first = TrialClock()
    began, up = first.now(), host.up
    host.pass_s(10)
    last = first.now()
    host.wall += 3 * DAY_NS
    host.pass_s(5)
    second = TrialClock(last)
    second.go_on("this boot", began, up)
    assert second.now() == began + 15 * SECOND_NS


@pytest.mark.parametrize("boot", ["", "another boot"])
def test_after_another_boot_it_is_tied_anew(host: Host, boot: str) -> None:
    trial = TrialClock(last=5)
    trial.go_on(boot, 7, 0)
    assert trial.now() == host.wall


def test_a_tie_that_would_lead_before_the_last_event_counts_from_there(host: Host) -> None:
    trial = TrialClock(last=host.wall)
    trial.go_on("this boot", host.wall - DAY_NS, host.up)
    assert trial.now() == host.wall


def test_this_host_has_a_boot() -> None:
    assert len(boot_id()) == 36
    assert boot_id() == boot_id()
    assert 0 < clock.uptime_ns() <= clock.uptime_ns()


def test_a_step_between_two_drivers_is_told_once(host: Host) -> None:
    began, up = host.wall, host.up
    host.wall += DAY_NS
    second = TrialClock()
    second.go_on("this boot", began, up)
    assert second.step() == DAY_NS
    third = TrialClock()
    third.go_on("this boot", began, up)
    third.note_step(DAY_NS)  # by the second, in the journal
    assert third.step() == 0


@pytest.mark.parametrize("kind", [TrialStarted, TrialResumed])
def test_the_present_of_a_trial_follows_its_own_clock(host: Host, kind: type[TrialOpened]) -> None:
    opened = kind(time=host.wall, boot="this boot", uptime=host.up)
    host.wall += 3 * DAY_NS
    host.pass_s(5)
    assert clock.present(opened) == opened.time + 5 * SECOND_NS
    assert clock.present(None) == host.wall
    assert clock.present(kind(time=1, boot="another boot", uptime=host.up)) == host.wall
    assert clock.present(kind(time=1)) == host.wall, "as version 0.1 wrote it"
