"""docs/how-to/unattended.md, systemd and cron: the documented unit and crontab drive a plan on a
host that boots, and go on when a driver is killed, and after a reboot."""

from __future__ import annotations

import shlex
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import RunJudged, RunSubmitted, TrialResumed
from tests.booted_host import BootedHost, Init, systemd_host
from tests.command_server import command_line
from tests.programs import Workplace
from tests.test_unattended import example
from tests.waiting import until

UNIT = "seatrial-acceptance"
TAG = "frost-mix"
QUICK = {
    "cli.supervise.FIRST_PAUSE_SECONDS": 0.2,
    "execute.requests.LOOK_SECONDS": 0.05,
}


@pytest.fixture
def place() -> Iterator[Workplace]:
    """Return a place below /tmp: a host that boots has a /dev of its own."""
    with tempfile.TemporaryDirectory(dir="/tmp") as folder:
        workplace = Workplace(Path(folder))
        workplace.local(cores=2)
        yield workplace


def acceptance(place: Workplace) -> None:
    """The folder of the acceptance: a plan that lasts, of runs that take a moment."""
    place.test("moment", "sleep 0.2", run={"walltime": "1s"})
    component = {"component": "mix", "kind": "sustained", "duration": "1h"}
    plan = {"plan": "frost", "machine": str(place.machine), "suites": [str(place.suite)]}
    (place.folder / "plans").mkdir()
    text = yaml.safe_dump({**plan, "components": [component]})
    (place.folder / "plans/frost.yaml").write_text(text)


def booted(place: Workplace, init: Init, also: Mapping[str, Path] = {}) -> BootedHost:
    """A host whose user has ~/bin/seatrial."""
    host = BootedHost(
        place.folder / "host",
        init,
        writable=[place.folder],
        also={"/scratch/acceptance": place.folder, **also},
    )
    command = host.home / "bin/seatrial"
    command.parent.mkdir(parents=True)
    command.write_text(f'#!/bin/sh\nexec {shlex.join(command_line((), QUICK))} "$@"\n')
    command.chmod(0o755)
    return host


def comes_back(place: Workplace, host: BootedHost, after: Callable[[], object]) -> None:
    """Do something that ends the driver, and wait until another one has resumed the trial and
    started a run."""
    resumed = place.more(place.count(TrialResumed, tag=TAG), TrialResumed, tag=TAG)
    after()
    until(resumed, "a resumption", said=lambda: host.said)
    until(place.ran_more(len(place.ran())), "a run", said=lambda: host.said)


@pytest.mark.boots("systemctl", "loginctl", "dbus-daemon")
def test_the_unit_of_systemd_brings_back_a_killed_driver_and_starts_at_boot(
    place: Workplace,
) -> None:
    acceptance(place)
    host = booted(place, systemd_host())
    unit = host.home / f".config/systemd/user/{UNIT}.service"
    unit.parent.mkdir(parents=True)
    unit.write_text(example("ini").replace("RestartSec=30s", "RestartSec=100ms"))

    def user(*words: str) -> str:
        done = host.as_user("systemctl", "--user", *words)
        assert done.returncode == 0, done.stderr + host.said
        return done.stdout.strip()

    with host:
        linger = ("loginctl", "enable-linger", "root")
        until(lambda: host.run(*linger).returncode == 0, "logind", said=lambda: host.said)
        reload = ("systemctl", "--user", "daemon-reload")
        until(lambda: host.as_user(*reload).returncode == 0, "its user's", said=lambda: host.said)
        user("enable", "--now", UNIT)
        until(place.ran_more(0), "a run", said=lambda: host.said)
        supervisor = user("show", "--property=MainPID", "--value", UNIT)
        comes_back(place, host, lambda: host.run("pkill", "-KILL", "-P", supervisor))
        assert user("show", "--property=MainPID", "--value", UNIT) == supervisor
        comes_back(place, host, lambda: host.run("kill", "-KILL", supervisor))
        assert user("show", "--property=NRestarts", "--value", UNIT) == "1"
        comes_back(place, host, host.reboot)
        until(place.more(3, RunJudged, tag=TAG), "verdicts", said=lambda: host.said)
        user("disable", "--now", UNIT)
        assert not (unit.parent / f"default.target.wants/{UNIT}.service").exists()
    none_twice(place)


@pytest.mark.boots("cron", "faketime", "flock")
def test_the_crontab_starts_at_boot_and_brings_back_a_killed_driver(place: Workplace) -> None:
    acceptance(place)
    nothing = place.folder / "crontab"
    nothing.touch()
    host = booted(place, cron_host(), {"/etc/crontab": nothing})
    with host:
        until(place.ran_more(0), "a run", said=lambda: host.said)
        driver = "python.* accept plans/frost.yaml"
        comes_back(place, host, lambda: host.run("pkill", "-KILL", "-f", driver))
        comes_back(place, host, host.reboot)
        until(place.more(3, RunJudged, tag=TAG), "verdicts", said=lambda: host.said)
    log = (place.folder / "acceptance.log").read_text()
    assert "Traceback" not in log
    none_twice(place)


def cron_host() -> Init:
    """cron with the documented crontab alone, in a time of which ten minutes take five seconds."""
    line = ["faketime", "-f", "+0 x120", "cron", "-f", "-L", "15"]
    nothing = {"/etc/cron.d/.none": ""}
    return Init(line, {"/var/spool/cron/crontabs/root": example("crontab"), **nothing})


def none_twice(place: Workplace) -> None:
    """No script ran twice, no run has two verdicts, and all that ran was announced."""
    ran, ends = place.ran(), [event.run_id for event in place.events(TAG, RunJudged)]
    assert len(set(ran)) == len(ran) > 3 and len(set(ends)) == len(ends) > 3
    assert {*ran} <= {event.run_id for event in place.events(TAG, RunSubmitted)}
