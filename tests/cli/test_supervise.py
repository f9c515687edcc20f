"""`seatrial accept run --supervise`, `seatrial accept check` and `seatrial serve --alarm`."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import signal
import time
from pathlib import Path
from typing import Any

import pytest
import yaml

from seatrial.execute import alerts as alarm
from seatrial.execute.requests import INTERRUPTED
from seatrial.journal.events import (
    PolicyChanged,
    RunSubmitted,
    TrialCancelled,
    TrialPaused,
    TrialResumed,
)
from seatrial.show.web.watches import look_at_drivers
from seatrial.units import show_seconds
from tests.execute.plans import (
    TAG,
    accept,
    alerts,
    audit,
    control,
    passed,
    short,
    start,
    write_plan,
)
from tests.programs import Driving, Workplace
from tests.waiting import until

CONSTANTS: dict[str, Any] = {
    "execute.requests.LOOK_SECONDS": 0.05,
    "execute.alerts.BEAT_SECONDS": 0.1,
    "execute.alerts.LEAST_LIMIT_SECONDS": 0.1,
    "cli.supervise.FIRST_PAUSE_SECONDS": 0.2,
}


@pytest.fixture
def place(place: Workplace) -> Workplace:
    place.constants = dict(CONSTANTS)
    short(place, "a")
    return place


def told(place: Workplace) -> list[str]:
    """What the command of alerts was given: kind and text."""
    path = place.folder / "told"
    return path.read_text().splitlines() if path.exists() else []


def plan(place: Workplace, duration: str = "1s", **keys: Any) -> Path:
    command = f'echo "$ALERT_KIND|$TRIAL|$ALERT" >> {place.folder}/told'
    return write_plan(place, duration, alerts={"command": command}, **keys)


def driver(supervisor: Driving) -> int:
    """The driver's process; 0 while there is none."""
    children = Path(f"/proc/{supervisor.pid}/task/{supervisor.pid}/children").read_text().split()
    return int(children[0]) if children else 0


def kill_driver(place: Workplace, supervisor: Driving, number: int = signal.SIGKILL) -> None:
    """Kill the driver once it drives: the next one is another process."""
    before = len(place.ran())
    supervisor.until(place.ran_more(before), "a run of this driver")
    os.kill(driver(supervisor), number)


def supervised(place: Workplace) -> Driving:
    return place.start("accept", "run", "plan.yaml", "-q", "--supervise")


def test_a_driver_that_is_killed_is_started_again(place: Workplace) -> None:
    plan(place, "1h")
    with supervised(place) as supervisor:
        for times in (1, 2):
            kill_driver(place, supervisor)
            supervisor.until(lambda n=times: place.count(TrialResumed, tag=TAG) == n, "a restart")  # type: ignore[misc]
        supervisor.until(place.ran_more(len(place.ran())), "a run of the third")
        assert control(place, "pause").code == 0
        done = supervisor.end()
    assert done.code == 3, done.said
    assert passed(place) > 1
    audit(place)
    found = alerts(place, "restart")
    assert [re.findall(r"SIG[A-Z]+|\bin .*", each.text) for each in found] == [
        ["SIGKILL", f"in {show_seconds(pause)}"] for pause in (0.2, 0.4)
    ]
    assert [each.machine for each in found] == ["here", "here"]
    assert told(place) == [f"restart|{TAG}|{each.text}" for each in found]


def test_a_plan_that_is_being_edited_keeps_no_driver_from_coming_back(place: Workplace) -> None:
    plan(place, "1h")
    with supervised(place) as supervisor:
        supervisor.until(place.ran_more(0), "a run")
        plan(place, "2h")  # for `accept change`, which nobody has typed yet
        os.kill(driver(supervisor), signal.SIGKILL)
        supervisor.until(lambda: place.count(TrialResumed, tag=TAG) == 1, "a restart")
        assert control(place, "change", "--reason", "longer", "--yes").code == 0
        assert control(place, "pause").code == 0
        assert supervisor.end().code == 3
    assert place.count(PolicyChanged, tag=TAG) == 1
    plan(place, "3h")
    assert accept(place, "--dry-run").code == 2, "people paused it, and must choose"


def test_a_defect_ends_a_driver_that_is_started_again(place: Workplace) -> None:
    plan(place, "1h")
    place.constants["execute.alerts.BEAT_SECONDS"] = "no number"  # type: ignore[assignment]
    with supervised(place) as supervisor:
        supervisor.until(lambda: len(told(place)) == 2, "two restarts")
        supervisor.send(signal.SIGTERM)
        assert supervisor.end().code in (3, 143)
    assert all("defect" in line for line in told(place))


def test_what_ends_a_plan_ends_its_supervisor(place: Workplace) -> None:
    plan(place, "1h")
    with supervised(place) as supervisor:
        supervisor.until(place.ran_more(0), "a run")
        assert control(place, "pause").code == 0
        assert supervisor.end().code == 3
    assert place.count(RunSubmitted, tag=TAG) and not told(place)
    with supervised(place) as supervisor:
        supervisor.until(lambda: place.count(TrialResumed, tag=TAG) == 1, "its resumption")
        assert place.seatrial("cancel", TAG).code == 0
        assert supervisor.end().code == 3
    assert not told(place)
    (place.folder / "plan.yaml").write_text("plan: p\n")
    done = place.seatrial("accept", "run", "plan.yaml", "--supervise")
    assert done.code == 2 and "components" in done.err


def test_a_driver_that_could_not_go_on_is_told_and_not_started_again(place: Workplace) -> None:
    plan(place, "1h")
    with supervised(place) as supervisor:
        kill_driver(place, supervisor, signal.SIGTERM)
        assert supervisor.end().code == 3
    (text,) = told(place)
    assert "exit code 3" in text and "not started again" in text


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_a_driver_leaves_with_its_supervisor(place: Workplace, number: signal.Signals) -> None:
    plan(place, "1h")
    with supervised(place) as supervisor:
        supervisor.until(place.ran_more(0), "a run")
        process = Path(f"/proc/{driver(supervisor)}")
        supervisor.send(number)
        supervisor.end()
        until(lambda: not process.exists(), "the end of the driver")
    assert not told(place)


def test_ctrl_c_reaches_the_driver_once(place: Workplace) -> None:
    plan(place, "1h")
    with supervised(place) as supervisor:
        supervisor.until(place.ran_more(0), "a run")
        supervisor.send(signal.SIGINT)
        assert supervisor.end().code == 3
    assert [each.reason for each in place.events(TAG, TrialPaused)] == [INTERRUPTED]
    assert not place.count(TrialCancelled, tag=TAG)


def check(place: Workplace, limit: str = "1s") -> tuple[int, str]:
    done = control(place, "check", "--limit", limit)
    assert not done.err
    return done.code, done.out


def silent(place: Workplace) -> None:
    """Wait until the driver, which is dead, has been silent for longer than the limit."""
    until(lambda: control(place, "check", "--limit", "1s").code == 1, "the alarm")


def test_the_alarm_is_raised_once_for_each_silence(place: Workplace) -> None:
    plan(place, "1h")
    assert check(place) == (0, ""), "nothing has begun"
    with start(place, "-q") as driving:
        driving.until(place.ran_more(1), "runs")
        assert check(place) == (0, ""), "it is alive"
        driving.kill()
    silent(place)
    (text,) = told(place)
    assert text.startswith(f"silent driver|{TAG}|{TAG}: its driver has been silent for ")
    code, out = check(place)
    assert (code, len(told(place))) == (1, 1) and out.endswith("people were told\n")
    with start(place, "-q") as driving:
        driving.until(lambda: place.count(TrialResumed, tag=TAG) == 1, "its resumption")
        until(lambda: "alive again" in check(place)[1], "the end of the alarm")
        assert check(place) == (0, "")
        assert len(told(place)) == 2 and told(place)[1].endswith("alive again")
        driving.kill()
    silent(place)
    assert len(told(place)) == 3
    with start(place, "-q") as driving:
        driving.until(lambda: place.count(TrialResumed, tag=TAG) == 2, "its resumption")
        assert control(place, "pause").code == 0
        driving.end()
    assert "alive again" in check(place, "1h")[1]
    (place.trial(TAG).heartbeat).touch()
    assert check(place, "100ms")[0] == 0, "a paused trial should not run"
    assert len(told(place)) == 4


def test_a_heartbeat_that_tells_nothing_is_no_sign_of_life(place: Workplace) -> None:
    plan(place, "1h")
    with start(place, "-q") as driving:
        driving.until(place.ran_more(0), "a run")
        driving.kill()
    heartbeat = place.trial(TAG).heartbeat
    heartbeat.unlink()
    silent(place)
    code, out = check(place)
    assert code == 1 and "its heartbeat is missing" in out and "people were told" in out, out
    heartbeat.touch()
    os.utime(heartbeat, (time.time() + 7200,) * 2)
    code, out = check(place)
    assert code == 1 and "its heartbeat is 2 h 0 m in the future: a clock was set" in out, out
    assert len(told(place)) == 1, "of a heartbeat that tells nothing people are told once"
    with start(place, "-q") as driving:
        driving.until(lambda: place.count(TrialResumed, tag=TAG) == 1, "its resumption")
        until(lambda: "alive again" in check(place)[1], "the end of the alarm")
        assert control(place, "pause").code == 0
        driving.end()


def test_a_driver_that_hangs_is_silent(place: Workplace) -> None:
    plan(place, "1h")
    with start(place, "-q") as driving:
        driving.until(place.ran_more(0), "a run")
        driving.send(signal.SIGSTOP)
        silent(place)
        driving.send(signal.SIGCONT)
    assert len(told(place)) == 1


def test_the_server_raises_the_alarm_and_no_second_one(place: Workplace) -> None:
    plan(place, "1h")
    with start(place, "-q") as driving:
        driving.until(place.ran_more(0), "a run")
        driving.kill()
    with place.start("serve", "--port", "0", "--alarm", "1s") as server:
        server.until(lambda: len(told(place)) == 1, "the alarm")
        assert check(place)[0] == 1
        with start(place, "-q") as driving:
            server.until(lambda: len(told(place)) == 2, "the end of the alarm")
            driving.kill()
        server.until(lambda: len(told(place)) == 3, "the second alarm")
        server.send(signal.SIGTERM)
        assert server.end().code == 0
    assert len(told(place)) == 3


def test_a_silence_by_our_clock_alone_is_looked_at_again(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The clock of the file server may be behind ours, by ticks of the kernel or by minutes."""
    plan(place, "1h")
    with start(place, "-q") as driving:
        driving.until(place.ran_more(0), "a run")
        driving.kill()
    behind = 3500.0
    monkeypatch.setattr(alarm, "file_clock", lambda folder: time.time() - behind)
    os.utime(place.trial(TAG).heartbeat, (time.time() - 3600,) * 2)
    looked_at: dict[str, Any] = {}
    look_at_drivers(place.folder / "trials", 600.0, looked_at)
    assert told(place) == [], "by the file server it beat 100 s ago"
    behind = 0.0
    look_at_drivers(place.folder / "trials", 600.0, looked_at)
    assert len(told(place)) == 1
    place.trial(TAG).alarm.unlink()
    look_at_drivers(place.folder / "trials", 600.0, looked_at)
    assert len(told(place)) == 1, "what was told is not looked at again"


def test_an_alarm_that_fails_is_raised_again(place: Workplace) -> None:
    (path := place.folder / "no-mail").touch()
    command = f"[ ! -e {path} ] && echo said >> {place.folder}/told"
    write_plan(place, "1h", alerts={"command": command})
    with start(place, "-q") as driving:
        driving.until(place.ran_more(0), "a run")
        driving.kill()
    silent(place)
    assert "the command of alerts fails" in control(place, "check", "--limit", "1s").err
    path.unlink()
    assert check(place)[0] == 1 and check(place)[1].endswith("people were told\n")
    assert told(place) == ["said"]


def two_components(place: Workplace) -> None:
    """A plan of two components, complete."""
    path = plan(place, "1s")
    whole = yaml.safe_load(path.read_text())
    whole["components"].append({"component": "last", "repeat": 1})
    path.write_text(yaml.safe_dump(whole))
    assert place.seatrial("accept", "plan.yaml", "-q").code == 0


def died_between(place: Workplace) -> None:
    """As if the command had died when the first component ended, 1 h ago."""
    shutil.rmtree(place.trial("p-last").path)
    os.utime(place.trial(TAG).heartbeat, (time.time() - 3600,) * 2)


def test_a_component_that_never_begins_is_told(place: Workplace) -> None:
    two_components(place)
    assert check(place) == (0, ""), "the plan is complete"
    died_between(place)
    code, out = check(place)
    assert code == 1 and "has not begun: p-last" in out
    assert [line.split("|")[:2] for line in told(place)] == [["silent driver", TAG]]
    code, out = check(place)
    assert (code, len(told(place))) == (1, 1) and out.endswith("people were told\n")
    assert accept(place).code == 0, "it goes on"
    code, out = check(place)
    assert (code, len(told(place))) == (0, 2) and "has begun: p-last" in out
    assert check(place) == (0, "")
    died_between(place)
    with place.start("serve", "--port", "0", "--alarm", "1s") as server:
        server.until(lambda: len(told(place)) == 3, "the alarm")
        server.send(signal.SIGTERM)
        server.end()
    assert control(place, "pause").out.startswith("p-last: not begun")
    assert check(place) == (0, ""), "people paused the plan"
    assert len(told(place)) == 3
    assert control(place, "pause").code == 2, "nothing is awaited any more"


def test_a_heartbeat_that_is_gone_hides_no_component_that_never_begins(place: Workplace) -> None:
    two_components(place)
    died_between(place)
    place.trial(TAG).heartbeat.unlink()
    until(lambda: check(place)[0] == 1, "the alarm")
    assert [line.split("|")[:2] for line in told(place)] == [["silent driver", TAG]]


# ---- trials of others ---------------------------------------------------------------------

STRANGER = 61234


def died(place: Workplace) -> Path:
    """A trial whose driver was killed; people would be told by its command."""
    plan(place, "1h")
    with start(place, "-q") as driving:
        driving.until(place.ran_more(0), "a run")
        driving.kill()
    return place.trial(TAG).path


def give_away(folder: Path) -> None:
    for path in (folder, *folder.rglob("*")):
        os.chown(path, STRANGER, STRANGER, follow_symlinks=False)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("what", ["all", "record", "folder"])
def test_the_command_of_anothers_trial_is_not_run_and_that_is_told(
    place: Workplace, what: str
) -> None:
    trial = died(place)
    if what == "all":
        give_away(trial)
    else:
        os.chown(trial / "trial.json" if what == "record" else trial, STRANGER, -1)
    silent(place)
    done = control(place, "check", "--limit", "1s")
    assert done.code == 1 and not told(place), "it is silent, and nobody was told"
    assert "is not run under your name" in done.err and f"belongs to {STRANGER}" in done.err
    os.chown(trial, 0, -1)
    give_away(trial)
    for path in (trial, trial / "trial.json"):
        os.chown(path, os.getuid(), -1)
    assert control(place, "check", "--limit", "1s").err == "" and len(told(place)) == 1


def test_a_record_that_others_may_write_runs_no_command(place: Workplace) -> None:
    (died(place) / "trial.json").chmod(0o666)
    silent(place)
    done = control(place, "check", "--limit", "1s")
    assert "others may write" in done.err and not told(place)


@pytest.mark.skipif(os.getuid() != 0, reason="only root gives files away")
@pytest.mark.parametrize("kind", ["link", "hard link"])
def test_the_server_runs_no_command_of_anothers_trial(place: Workplace, kind: str) -> None:
    """An old file of the user's own stands for the heartbeat."""
    trial = died(place)
    forged = place.trials / "a-forged"
    shutil.copytree(trial, forged)
    record = (forged / "trial.json").read_text().replace("/told", "/forged")
    (forged / "trial.json").write_text(record)
    give_away(forged)
    (place.folder / "old").touch()
    os.utime(place.folder / "old", (1e9, 1e9))
    (forged / "heartbeat").unlink()
    if kind == "link":
        (forged / "heartbeat").symlink_to(place.folder / "old")
    else:
        (forged / "heartbeat").hardlink_to(place.folder / "old")
    with place.start("serve", "--port", "0", "--alarm", "1s") as server:
        server.until(lambda: len(told(place)) == 1, "the alarm of the own trial")
        server.send(signal.SIGTERM)
        said = server.end().said
    assert not (place.folder / "forged").exists() and "a-forged" not in said


def test_what_was_told_is_kept_where_others_cannot_reach_it(place: Workplace) -> None:
    """The folder of the trial takes no file; in /tmp somebody has made the name that was used."""
    trial = died(place)
    (trial / "alarm").mkdir()
    temporary, private = place.folder / "tmp", place.folder / "private"
    trap = temporary / f"seatrial-{os.getuid()}"
    trap.mkdir(parents=True)
    trap.chmod(0o777)
    private.write_text("mine")
    digest = hashlib.sha256(os.fsencode(trial)).hexdigest()[:32]
    (trap / f"alarm-{digest}").symlink_to(private)
    place.env |= {"TMPDIR": str(temporary), "XDG_STATE_HOME": "/dev/null", "HOME": "/dev/null"}
    silent(place)
    assert len(told(place)) == 1 and private.read_text() == "mine"
    place.env["XDG_STATE_HOME"] = str(place.folder / "state")
    assert control(place, "check", "--limit", "1s").code == 1 and len(told(place)) == 2
    assert check(place)[1].endswith("people were told\n"), "it is remembered now"
    assert len(told(place)) == 2
    assert (place.folder / f"state/seatrial/alarm-{digest}").is_file()
    assert private.read_text() == "mine"


@pytest.mark.parametrize("words", [["accept", "check", "plan.yaml", "--limit"],
                                   ["serve", "--port", "0", "--alarm"]])  # fmt: skip
@pytest.mark.parametrize("limit", ["59s", "soon"])
def test_limits_that_are_refused(place: Workplace, words: list[str], limit: str) -> None:
    place.constants = {}
    plan(place)
    done = place.seatrial(*words, limit)
    assert (done.code, limit in done.err) == (2, True), done.said


def test_options_that_contradict(place: Workplace) -> None:
    plan(place)
    assert accept(place, "--supervise", "--dry-run").code == 2
    assert not place.trials.exists()
