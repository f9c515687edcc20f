"""The process beside a trial's driver, through the command: it starts, follows, ends, is alone; and
a sink that is dead slows nothing."""

from __future__ import annotations

import json
import os
import signal
import socket
import time
from pathlib import Path
from typing import Any

import click
import pytest

from seatrial.cli import seatrial
from seatrial.errors import TrialError, UsageError
from seatrial.execute.requests import Request, ask
from seatrial.execute.trial_folder import TrialFolder
from seatrial.journal.encoding import encode
from seatrial.journal.events import AlertRaised, GaugeRead, JobStarted, TrialStarted
from seatrial.plugins.sinks.lifetime import held, holder, sink_lags, stop
from tests.execute.plans import TAG, accept, short, start, write_plan
from tests.plugins.sinks.receiver import Receiver
from tests.programs import Workplace, until
from tests.results.store.trials import a_trial

SOON = {"every": 0.05}


def hook(receiver: Receiver, **keys: Any) -> dict[str, Any]:
    return {"name": "hook", "kind": "webhook", "url": receiver.url, **SOON, **keys}


def numbers(receiver: Receiver) -> list[int]:
    return [event["seq"] for event in receiver.events()]


def until_it_left(place: Workplace, tag: str = "t") -> None:
    """The process of a trial came, and has left."""
    until(lambda: sink_lags(place.trial(tag)) != [], "the process")
    until(lambda: not holder(place.trial(tag)), "the end of the process")


def test_a_trial_is_delivered_by_itself(place: Workplace) -> None:
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver)])
        place.test("one")
        assert place.run("--name", "t").code == 0
        whole = len(place.events())
        until(lambda: len(receiver.events()) == whole, "every event")
        until_it_left(place)
    assert numbers(receiver) == list(range(1, whole + 1))
    assert receiver.events()[-1]["event"] == "trial_end"
    assert place.trial().log("sinks").read_text() == ""
    place.audit()


def test_resuming_a_trial_goes_on_where_its_sinks_were(place: Workplace) -> None:
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver)])
        place.test("slow", f"[ -e {place.folder}/go ] || sleep 60")
        with place.start_run("--name", "t") as driving:
            driving.until(place.more(0, JobStarted), "the run")
            driving.kill()
        until_it_left(place)  # nobody drives the trial, and all is delivered
        assert len(receiver.events()) == len(place.events())
        (place.folder / "go").touch()
        assert place.seatrial("cancel", "t").code == 0  # kills what runs
        until(lambda: receiver.events()[-1]["event"] != "job_start", "the news of it")
        until_it_left(place)
        assert place.resume().code == 0
        whole = len(place.events())
        until(lambda: len(receiver.events()) == whole, "every event")
        until_it_left(place)
    assert numbers(receiver) == list(range(1, whole + 1))


def test_sinks_that_cannot_be_started_stop_no_trial(place: Workplace) -> None:
    place.local(sinks=[{"name": "file", "kind": "file", "path": str(place.folder / "out")}])
    place.test("one")
    assert place.run("--name", "t", "--dry-run").code == 0
    (place.trial().path / "sinks").write_text("in the way")
    done = place.resume()
    assert done.code == 0
    assert "the sinks of this trial were not started" in done.err
    place.audit()


def test_a_dead_sink_slows_no_trial(place: Workplace) -> None:
    """With a server that takes requests and never answers, the trial takes as long as without any
    sink: had it waited for a single answer, it would have taken ten minutes."""
    place.test("quick", repeat=20)

    def seconds(tag: str) -> float:
        began = time.monotonic()
        assert place.run("--name", tag).code == 0
        return time.monotonic() - began

    without = seconds("without")
    with Receiver() as receiver:
        receiver.otherwise = "hang"
        place.local(sinks=[hook(receiver, timeout="10m", patience=0.2)])
        with_dead = seconds("t")
        until(lambda: bool(receiver.requests), "the process's first request")
        assert len(receiver.requests) == 1
        assert sink_lags(place.trial())[0].working
        _end(place)
    assert with_dead < without + 120, (without, with_dead)
    place.audit()
    done = place.seatrial("sink", "t", "--status", "--format", "json")
    (told,) = json.loads(done.out)
    assert told["sent"] == 0
    assert told["behind"]["events"] == len(place.events())


def _end(place: Workplace, tag: str = "t") -> None:
    """End the process of a trial."""
    who = holder(place.trial(tag))
    assert who
    os.kill(int(who.split()[1]), signal.SIGTERM)
    until_it_left(place, tag)


def test_it_gives_up_when_the_trial_is_over_and_its_patience_too(place: Workplace) -> None:
    with Receiver() as receiver:
        receiver.otherwise = 503
        place.local(sinks=[hook(receiver, patience=0.01), hook(receiver, name="b", patience=0.01)])
        place.test("one")
        assert place.run("--name", "t").code == 0
        until_it_left(place)
        log = place.trial().log("sinks").read_text()
        assert "hook: given up for now: it answered 503" in log
        assert {each.error for each in sink_lags(place.trial())} == {"it answered 503"}
        receiver.otherwise = 204
        done = place.seatrial("sink", "t")
    assert done.code == 0, done.said
    whole = len(place.events())
    assert done.out.splitlines() == [
        f"t: b: {whole} events sent",
        f"t: hook: {whole} events sent",
    ]
    assert sorted(numbers(receiver)) == sorted([*range(1, whole + 1)] * 2)


def test_one_sink_that_fails_holds_up_no_other(place: Workplace, tmp_path: Path) -> None:
    folder = a_trial(place.trials, "t").folder

    def behind() -> dict[str, bool]:
        return {each.name: each.behind.events > 0 for each in sink_lags(folder)}

    with Receiver() as receiver:
        receiver.otherwise = "hang"
        path = tmp_path / "out.jsonl"
        file = {"name": "file", "kind": "file", "path": str(path), **SOON}
        place.local(sinks=[hook(receiver), file])
        with place.start("sink", "t", "-m", str(place.machine)) as sending:
            sending.until(lambda: path.exists() and b"trial_end" in path.read_bytes(), "the file")
            sending.until(lambda: behind() == {"file": False, "hook": True}, "their cursors")
            assert sending.alive


def test_one_process_for_a_trial(place: Workplace) -> None:
    folder = a_trial(place.trials, "t").folder
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver)])
        with held(folder):
            done = place.seatrial("sink", "t", "-m", str(place.machine))
        assert done.code == 3
        assert f"delivered by process {os.getpid()} on" in done.err
        assert receiver.requests == []


def test_a_plan_goes_on_although_its_machines_sinks_are_others_now(place: Workplace) -> None:
    """And its own go on, too."""
    place.constants = {"execute.requests.LOOK_SECONDS": 0.05}
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver)])
        short(place, "a")
        write_plan(place, "2s")
        with start(place) as driving:
            driving.until(lambda: place.count(TrialStarted, tag=TAG) > 0, "its start")
            ask(place.trial(TAG), Request(request="pause"))
            assert driving.end().code == 3
        place.local(sinks=[])
        done = accept(place)
        assert done.code == 0, done.said
        assert "changed" not in done.said
        whole = len(place.events(TAG))
        until(lambda: len(receiver.events()) == whole, "every event")
        until_it_left(place, TAG)
    assert numbers(receiver) == list(range(1, whole + 1))


# ---- by hand ------------------------------------------------------------------------------


def test_trials_of_before_are_caught_up(place: Workplace) -> None:
    for tag in ("a", "b"):
        a_trial(place.trials, tag)
    a_trial(place.trials, "made-up", rehearsed=True)
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver)])
        done = place.seatrial("sink", "--all", "-m", str(place.machine))
        assert done.code == 0, done.said
        assert {event["trial"] for event in receiver.events()} == {"a", "b"}
        again = place.seatrial("sink", "--all", "-m", str(place.machine))
        assert again.code == 0
        assert len(receiver.requests) == 2


def test_rehearsals_are_sent_where_it_is_asked_for(place: Workplace) -> None:
    a_trial(place.trials, "t", rehearsed=True)
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver), hook(receiver, name="too", rehearsals=True)])
        line = ("sink", "t", "-m", str(place.machine))
        assert place.seatrial(*line).code == 0
        assert [each.name for each in sink_lags(place.trial())] == ["too"]
        assert place.seatrial(*line, "--sink", "hook").code == 0
        assert len(sink_lags(place.trial())) == 2
        place.local(sinks=[hook(receiver)])
        done = place.seatrial(*line)
        assert done.code == 2
        assert "is a rehearsal" in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["t"], "names no sinks"),
        ([], "name a trial, or give --all"),
        (["t", "--all"], "name a trial, or give --all"),
        (["--all"], "no trial here was made on a machine that names sinks"),
        (["--all", "-m", "MACHINE", "--sink", "b"], "there is no sink 'b'; there are a"),
        (["--all", "--follow"], "--follow goes with one trial"),
        (["no-such"], "no trial 'no-such'"),
        (["t", "--again", "--stop"], "give one of --again"),
        (["t", "--patience", "soon"], "--patience"),
        (["t", "-m", "MACHINE", "--sink", "b"], "no sink 'b'; it has a"),
    ],
)
def test_what_cannot_be_asked_for(place: Workplace, words: list[str], said: str) -> None:
    a_trial(place.trials, "t")
    place.local(sinks=[{"name": "a", "kind": "file", "path": "/tmp/x"}])
    line = [str(place.machine) if word == "MACHINE" else word for word in words]
    with pytest.raises((click.UsageError, UsageError)) as raised:
        seatrial.main(["--trials", str(place.trials), "sink", *line], standalone_mode=False)
    error = raised.value
    assert said in (error.format_message() if isinstance(error, click.UsageError) else str(error))


def test_events_on_stdout(place: Workplace) -> None:
    folder = a_trial(place.trials, "t").folder
    done = place.seatrial("sink", "t", "--stdout")
    assert done.code == 0
    lines = [json.loads(line) for line in done.out.splitlines()]
    assert [line["seq"] for line in lines] == list(range(1, len(lines) + 1))
    assert len(lines) == len(folder.journal.read_bytes().splitlines())
    assert not (folder.path / "sinks").exists()


def test_the_status_says_how_far_behind_and_why(place: Workplace) -> None:
    a_trial(place.trials, "t")
    assert place.seatrial("sink", "t", "--status").out == "Nothing was sent anywhere yet.\n"
    with Receiver() as receiver:
        receiver.otherwise = (400, "\x1b[31mno thanks")
        place.local(sinks=[hook(receiver)])
        sent = place.seatrial("sink", "t", "-m", str(place.machine), "--patience", "0.1s")
        assert sent.code == 3
        assert f"sink t -m {place.machine}` goes on" in sent.err
    shown = place.seatrial("sink", "t", "--status").out
    assert "no thanks" in shown
    assert "\x1b" not in shown
    (row,) = json.loads(place.seatrial("sink", "--all", "--status", "--format", "json").out)
    assert (row["trial"], row["refused"], row["sent"], row["to"]) == ("t", 0, 0, receiver.url)
    assert row["behind"]["events"] == 27


def test_what_was_sent_now_and_in_all_and_all_of_it_again(place: Workplace) -> None:
    trial = a_trial(place.trials, "t")
    with Receiver() as receiver:
        receiver.decide = lambda request: 400 if b'"seq":15,' in request.body else 204
        place.local(sinks=[hook(receiver)])
        line = ("sink", "t", "-m", str(place.machine))
        first = place.seatrial(*line)
        assert (first.code, first.out) == (3, "t: hook: 27 events sent, 1 not taken\n")
        assert "--again sends all of it again" in first.err
        nothing = place.seatrial(*line)
        assert nothing.code == 0
        assert nothing.out == "t: hook: nothing new; 27 events in all, 1 not taken\n"
        trial.event(AlertRaised, text="hot")
        trial.write()
        more = place.seatrial(*line)
        assert more.out == "t: hook: 1 event sent; 28 events in all, 1 not taken\n"
        receiver.decide = None
        again = place.seatrial(*line, "--again", "--sink", "hook")
        assert (again.code, again.out) == (0, "t: hook: 28 events sent\n")
    assert numbers(receiver)[27:] == list(range(1, 29))


# ---- secrets that the environment lacks, and stopping ---------------------------------------


def test_a_secret_that_is_not_set_is_told_at_the_start_and_holds_no_process(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("HOOKTOKEN", raising=False)
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver, token="env:HOOKTOKEN"), hook(receiver, name="b")])
        place.test("one")
        done = place.run("--name", "t")
        assert done.code == 0
        assert "the sink hook gets nothing: the token of the sink hook: the environment" in done.err
        assert "variable HOOKTOKEN is not set" in done.err
        until_it_left(place)
        whole = len(place.events())
        assert {each.name: each.sent for each in sink_lags(place.trial())} == {
            "b": whole,
            "hook": 0,
        }
        assert "given up: put that right" in place.trial().log("sinks").read_text()
        monkeypatch.setenv("HOOKTOKEN", "tok")
        sent = place.seatrial("sink", "t")
        assert sent.code == 0, sent.said
    assert sent.out == f"t: b: nothing new; {whole} events in all\nt: hook: {whole} events sent\n"


def test_the_process_of_a_trial_can_be_ended(place: Workplace) -> None:
    folder = a_trial(place.trials, "t").folder
    assert place.seatrial("sink", "t", "--stop").out == "t: no process delivers its events\n"
    with Receiver() as receiver:
        receiver.otherwise = 503
        place.local(sinks=[hook(receiver)])
        line = ("sink", "t", "-m", str(place.machine))
        place.fresh = True  # it is recognised by its command line
        with place.start(*line, "--patience", "1h") as sending:
            place.fresh = False
            sending.until(lambda: bool(receiver.requests), "its first request")
            refused = place.seatrial(*line)
            assert refused.code == 3
            assert "`seatrial sink t --stop` ends it" in refused.err
            stopped = place.seatrial("sink", "t", "--stop")
            assert (stopped.code, stopped.out[:17]) == (0, "t: ended process ")
            assert not holder(folder)
        receiver.otherwise = 204
        assert place.seatrial(*line).code == 0


def test_a_process_elsewhere_or_of_others_is_not_ended(folder: TrialFolder) -> None:
    with held(folder):
        lock = folder.path / "sinks" / "lock"
        lock.write_text(f"process {os.getpid()} on another-host")
        with pytest.raises(TrialError, match="end it there"):
            stop(folder)
        lock.write_text(f"process 1 on {socket.gethostname()}")
        with pytest.raises(TrialError, match="left alone"):
            stop(folder)


def a_gauge(text: str) -> bytes:
    return encode(GaugeRead(time=1, trial="t", reason=text, value=1)) + b"\n"


# ---- memory -------------------------------------------------------------------------------


@pytest.mark.parametrize("alive", [True, False])
def test_memory_does_not_grow_with_the_journal(place: Workplace, alive: bool) -> None:
    """30 MB that wait cost as much memory as a few."""
    folder = a_trial(place.trials, "t").folder
    with Receiver() as receiver:
        place.local(sinks=[hook(receiver, size="256KiB", timeout="10m")])
        line = ("sink", "t", "-m", str(place.machine))

        def peak(more: int) -> int:
            """The most that it takes until it waits: for the answer to the last event, or to try
            the first ones again."""
            receiver.requests.clear()
            last = b"the last of %d" % more
            receiver.decide = lambda asked: "hang" if last in asked.body else 204 if alive else 500
            with folder.journal.open("ab") as journal:
                journal.write(a_gauge("x" * 900) * more + a_gauge(last.decode()))
            (folder.path / "sinks" / "hook.json").unlink(missing_ok=True)
            with place.start(*line) as sending:
                sending.until(lambda: waits(last), "it to wait")
                return sending.peak_kib()

        def waits(last: bytes) -> bool:
            if alive:
                return any(last in request.body for request in receiver.requests[-1:])
            return any(each.tries > 1 for each in sink_lags(folder))

        small = peak(1000)
        large = peak(30_000)
    assert small > 0
    assert large < small + 16 * 1024, (small, large)
