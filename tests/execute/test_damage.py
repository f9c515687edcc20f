"""Damage from outside: torn files, a full disk, a read-only folder, a broken store, a clock that
steps back, a second driver. Each gives a clear message, and nothing is lost."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import shutil
import socket
import sqlite3
import subprocess
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import TrialError
from seatrial.execute.directory import job_events
from seatrial.execute.driver import Driver
from seatrial.journal.clock import boot_id
from seatrial.journal.events import (
    JobQueued,
    RunJudged,
    RunSubmitted,
    ScriptEnded,
    ScriptStarted,
    SubmitEnded,
    TrialResumed,
)
from seatrial.units import SECOND_NS
from tests.gates import wait_for
from tests.journals import without_checksums
from tests.programs import Driving, Workplace, job_shells, until

CASES = 4


def gated(place: Workplace) -> Path:
    """A test of four cases whose runs wait until the gate is there."""
    gate = place.folder / "gate"
    script = f"{wait_for(gate)}; echo ok"
    place.test("wait", script, parameters={"n": f"range(0, {CASES})"}, verify=[{"contains": "ok"}])
    return gate


def at_work(place: Workplace, *words: str) -> Driving:
    driving = place.start_run("--name", "t", *words)
    driving.until(lambda: len(place.ran()) == 2, "two runs at work")
    return driving


def complete(place: Workplace) -> None:
    done = place.resume()
    assert done.code == 0, done.said
    tally = Counter(event.verdict for event in place.events("t", RunJudged))
    assert tally == {"pass": CASES}


# ---- the journal and the jobs' events ----------------------------------------------------------


def test_a_torn_last_line_of_the_journal_is_cut_off(place: Workplace) -> None:
    """Of a driver that is killed again and again, each time with another end."""
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    ends = [b'{"time":17952934', b"\0" * 5000, b"\xff\xfe not json", b'{"time":1}' * 9000]
    for number, torn in enumerate(ends):
        with place.trial().journal.open("ab") as journal:
            journal.write(torn)
        with place.start("resume", "t") as driving:
            driving.until(place.more(number, TrialResumed), "the resumption")
            if torn is ends[-1]:
                gate.touch()
                assert driving.end().code == 0, driving.said
            driving.kill()
    assert Counter(event.verdict for event in place.events("t", RunJudged)) == {"pass": CASES}
    place.audit()


def test_a_running_job_that_is_taken_up_was_submitted_when_it_was(place: Workplace) -> None:
    gate = gated(place)
    with at_work(place) as driving:  # whose scripts may start before it has recorded that
        driving.until(lambda: place.count(SubmitEnded, JobQueued) == 4, "the events")
        driving.kill()
    before = place.events("t", SubmitEnded, JobQueued)
    assert len(before) == 4
    with place.start("resume", "t") as driving:
        driving.until(lambda: place.count(TrialResumed) > 0, "the resumption")
        gate.touch()
        assert driving.end().code == 0
    taken_up = {event.run_id for event in before}
    after = [e for e in place.events("t", SubmitEnded, JobQueued) if e.run_id in taken_up]
    assert after == before
    place.audit()


@pytest.mark.parametrize("line", [b"\0\xff garbage\n", b'{"time":"x"}\n', b"[" * 100_000 + b"\n"])
def test_a_damaged_line_of_the_journal_is_told_and_costs_nothing(
    place: Workplace, line: bytes
) -> None:
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    with place.trial().journal.open("ab") as journal:
        journal.write(line)
    gate.touch()
    complete(place)
    assert "1 damaged line" in place.alerts()
    assert place.seatrial("runs", "--trial", "t").code == 0
    assert place.seatrial("export", "t", "--format", "json").code == 0


def damage(journal: Path, event: str, number: int = 0) -> str:
    """Change one bit of the n-th event of a name; return the run that it is about."""
    lines = journal.read_bytes().splitlines(keepends=True)
    chosen = [place for place, line in enumerate(lines) if f'"{event}"'.encode() in line][number]
    line = lines[chosen]
    lines[chosen] = line.replace(b'"time":1', b'"time":3')
    journal.write_bytes(b"".join(lines))
    return str(json.loads(line).get("run_id", ""))


@pytest.fixture
def ended(place: Workplace) -> Workplace:
    """Four runs, all of which passed."""
    well = [{"contains": "all well"}]
    place.test("t", 'echo "rate $p.5"; echo all well', parameters={"p": [1, 2, 3, 4]}, verify=well)
    assert place.run("--name", "t").code == 0
    return place


def test_verdicts_that_were_lost_are_found_again_from_what_the_runs_left(ended: Workplace) -> None:
    journal = ended.trial().journal
    runs = [damage(journal, "check_end", number) for number in (0, 2)]
    assert len(ended.verdicts()) == 2

    def shown(*words: str) -> list[dict[str, Any]]:
        asked = ended.seatrial("runs", "--trial", "t", "--format", "json", *words)
        return list(json.loads(asked.out))

    lost = shown("--verdict", "no verdict")
    assert sorted(run["run_id"] for run in lost) == sorted(runs)
    assert all("`seatrial resume`" in run["why"] for run in lost)
    assert sorted(run["verdict"] for run in shown()) == ["no verdict", "no verdict", "pass", "pass"]
    assert shown("--verdict", "in progress") == []
    (trial,) = json.loads(ended.seatrial("trials", "--format", "json").out)
    assert (trial["running"], trial["waiting"]) == (0, 2)
    done = ended.resume()
    assert done.code == 0, done.said
    assert "is complete" not in done.out
    assert "4 passed" in done.out
    assert "2 damaged lines" in ended.alerts()
    assert all(run in ended.alerts() for run in runs)
    assert len(ended.verdicts()) == 4
    assert shown("--verdict", "no verdict") == []
    assert len(ended.ran()) == 4, "none was run again"
    assert ended.resume().out.startswith("t is complete")


def test_a_remedy_that_was_carried_out_is_not_told_again(ended: Workplace) -> None:
    commands = [asked.split() for asked in ("trials", "runs --trial t", "sink t --stdout")]
    commands.append(["cancel", "t"])
    damage(ended.trial().journal, "check_end", 2)
    for words in commands:
        assert "`seatrial resume t`" in ended.seatrial(*words).err
    assert ended.resume().code == 0
    for words in commands:
        after = ended.seatrial(*words)
        assert "1 damaged line" in after.err and "no run lacks a verdict" in after.err
        assert "seatrial resume" not in after.err


@pytest.mark.parametrize("also", ["check_start", "trial_end"])
def test_a_trial_whose_runs_all_ended_is_not_cancelled(ended: Workplace, also: str) -> None:
    """`resume` would judge what lost its verdict."""
    journal = ended.trial().journal
    damage(journal, "check_end", 2)
    damage(journal, also)
    before = journal.read_bytes()
    done = ended.seatrial("cancel", "t")
    assert done.code == 3, done.said
    assert "all its runs have ended" in done.err
    assert "2 damaged lines" in done.err
    assert journal.read_bytes() == before
    done = ended.resume()
    assert done.code == 0, done.said
    assert "4 passed" in done.out
    cancelled = ended.seatrial("cancel", "t")
    assert (cancelled.code, "it is complete" in cancelled.out) == (0, True), cancelled.said


@pytest.mark.parametrize("event", ["submit_start", "job_end", "binary_execute_end", "trial_end"])
def test_whatever_line_is_damaged_all_runs_have_their_verdicts(
    ended: Workplace, event: str
) -> None:
    damage(ended.trial().journal, event)
    done = ended.resume()
    assert done.code == 0, done.said
    assert "4 passed" in done.out
    assert "1 damaged line" in done.err
    assert set(ended.verdicts().values()) == {"pass"}
    assert len(ended.verdicts()) == 4


def test_a_run_of_which_nothing_is_left_is_named_and_runs_again(ended: Workplace) -> None:
    run = damage(ended.trial().journal, "check_end")
    damage(ended.trial().journal, "job_end")
    (path,) = ended.trial().path.glob(f"runs/t/{run}")
    (path / "events.jsonl").unlink()
    done = ended.resume()
    assert done.code == 0, done.said
    assert f"judged: {run}" in ended.alerts()
    assert ended.ran().count(run) == 2
    assert path.with_name(f"{run}.before-1").is_dir()
    assert set(ended.verdicts().values()) == {"pass"}


@pytest.mark.parametrize("share", [0.0, 0.5])
def test_a_journal_of_an_ended_trial_that_was_cut_is_told(ended: Workplace, share: float) -> None:
    journal = ended.trial().journal
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[: round(share * len(lines))]))
    told = f"t/journal.jsonl:{round(share * len(lines)) + 1}: 1 damaged line"
    first = "t/journal.jsonl: it is empty, all events are missing" if share == 0 else told
    for words in (["trials"], ["runs"], ["export", "t", "--format", "json"]):
        assert first in ended.seatrial(*words).err
    done = ended.resume()
    assert done.code == 0, done.said
    assert "4 passed" in done.out
    assert told in done.err, "the damage stays in the journal"
    assert told in ended.seatrial("runs").err


def test_a_journal_that_lost_its_last_events_doubles_no_run(place: Workplace) -> None:
    """As after a power failure: the journal ends before the jobs that were started by it."""
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    whole = place.trial().journal.read_bytes().splitlines(keepends=True)
    intents = [number for number, line in enumerate(whole) if b"submit_start" in line]
    place.trial().journal.write_bytes(b"".join(whole[: intents[-1] + 1]))
    gate.touch()
    complete(place)
    place.audit()


def test_a_lost_end_of_the_journal_makes_no_run_wrong(place: Workplace) -> None:
    """As after a crash of the host: the outputs are on the disk, the end of the journal is not."""
    well = [{"contains": "all well"}]
    place.test("t", 'echo "rate $p.5"; echo all well', parameters={"p": [1, 2, 3, 4]}, verify=well)
    assert place.run("--name", "t").code == 0
    journal = place.trial().journal
    outputs = {run: (run / "stdout").read_text() for run in journal.parent.glob("runs/t/*")}
    assert len(outputs) == 4
    journal.write_bytes(journal.read_bytes().partition(b"\n")[0] + b"\n")
    done = place.resume()
    assert done.code == 0, done.said
    assert set(place.verdicts().values()) == {"pass"}
    for run, output in outputs.items():
        assert run.with_name(f"{run.name}.before-1").joinpath("stdout").read_text() == output
    assert place.alerts().count("of which the journal knows nothing") == 1


def test_no_run_is_made_where_an_unknown_job_runs(place: Workplace) -> None:
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    journal = place.trial().journal
    journal.write_bytes(journal.read_bytes().partition(b"\n")[0] + b"\n")
    done = place.resume()
    assert done.code == 3
    assert "of which the journal knows nothing" in done.err
    gate.touch()
    until(lambda: not job_shells(place.trial()), "the end of those jobs")
    complete(place)


def two_ended_undriven(place: Workplace) -> list[Path]:
    """Two runs that ended when no driver was there: their directories."""
    gate = place.folder / "gate"
    script = f"{wait_for(gate)}; echo all well"
    place.test("wait", script, verify=[{"contains": "all well"}], repeat=2)
    with place.start_run("--name", "t", "--jobs", "2") as driving:
        driving.until(lambda: len(place.ran()) == 2, "two runs at work")
        driving.kill()
    gate.touch()
    until(lambda: not job_shells(place.trial()), "the end of the jobs")
    return sorted(place.trial().path.glob("runs/wait/*"))


def test_an_output_from_before_a_reboot_is_lost_not_wrong(place: Workplace) -> None:
    """The host crashed before the driver could judge, and the output was not on the disk."""
    first, second = two_ended_undriven(place)
    (first / "stdout").write_text("")
    journal = place.trial().journal
    earlier = without_checksums(journal).replace(boot_id().encode(), b"another-boot")
    journal.write_bytes(earlier)
    done = place.resume()
    assert done.code == 0, done.said
    ends = {event.run_id: event.verdict for event in place.events("t", RunJudged)}
    assert (ends.pop(first.name), ends.pop(second.name)) == ("lost", "lost")
    assert list(ends.values()) == ["pass", "pass"]


def test_a_clock_that_was_set_forward_since_is_no_reboot(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    two_ended_undriven(place)
    clock, step = time.time_ns, time.clock_gettime_ns(time.CLOCK_BOOTTIME) + 3600 * SECOND_NS
    monkeypatch.setattr(time, "time_ns", lambda: clock() + step)
    outcome = asyncio.run(Driver(place.trial()).drive())
    monkeypatch.undo()
    assert dict(outcome.verdicts) == {"pass": 2}
    assert [event.verdict for event in place.events("t", RunJudged)] == ["pass", "pass"]
    assert len(place.ran()) == 2


@pytest.mark.parametrize("limit", ["nr_inodes=70", "size=600k"])
def test_a_full_disk_makes_no_run_wrong(place: Workplace, limit: str) -> None:
    """The trial ends with a message; where there is space again, all runs pass."""
    if os.geteuid():
        pytest.skip("mount needs root")
    place.trials.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", limit, "tmpfs", str(place.trials)]
    subprocess.run(mount, check=True)
    try:
        script = "head -c 20000 /dev/zero | tr '\\0' x; echo; echo all well"
        verify = [{"contains": "all well"}]
        place.test("t", script, parameters={"p": "range(0, 40)"}, verify=verify)
        done = place.run("--name", "t")
        assert done.code == 3, done.said
        assert "Traceback" not in done.said and "defect" not in done.said
        assert "space" in done.err
        until(lambda: not job_shells(place.trial()), "the end of the jobs")
        more = ["mount", "-o", "remount,nr_inodes=0,size=100m", str(place.trials)]
        subprocess.run(more, check=True)
        done = place.resume()
        assert done.code == 0, done.said
        assert set(place.verdicts().values()) == {"pass"}
        ends = {event.verdict for event in place.events("t", RunJudged)}
        assert ends <= {"pass", "lost"}
    finally:
        subprocess.run(["umount", "--lazy", str(place.trials)], check=True)


def test_a_disk_that_has_room_again_before_the_end_makes_no_run_wrong(place: Workplace) -> None:
    """The output was cut, the end was written, and nobody judged it while the disk was full."""
    if os.geteuid():
        pytest.skip("mount needs root")
    place.trials.mkdir(exist_ok=True)
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(place.trials)]
    subprocess.run(mount, check=True)
    try:
        gate, room, rest = place.folder / "gate", place.trials / "room", place.trials / "rest"
        script = f"{wait_for(gate)}; echo all well || {{ : > {room}; false; }}"
        place.test("t", script, verify=[{"contains": "all well"}])
        with place.start_run("--name", "t") as driving:
            driving.until(lambda: len(place.ran()) == 1, "a run at work")
            driving.kill()
        room.write_bytes(b"x" * 16384)
        with rest.open("wb", buffering=0) as file, contextlib.suppress(OSError):
            while True:
                file.write(b"x" * 4096)
        gate.touch()
        until(lambda: not job_shells(place.trial()), "the end of the job")
        (run,) = place.trial().path.glob("runs/t/*")
        assert room.stat().st_size == 0 and job_events(run).end is not None
        rest.unlink()
        done = place.resume()
        assert done.code == 0, done.said
        assert [event.verdict for event in place.events("t", RunJudged)] == ["lost", "pass"]
    finally:
        subprocess.run(["umount", "--lazy", str(place.trials)], check=True)


def test_a_job_cannot_move_its_start_nor_its_nodes(place: Workplace) -> None:
    forged = """printf '{"time":%s,"event":"binary_execute_start","nodes":"=1+1"}\\n' """
    forged += '"$(date +%s%N)" >> events.jsonl'
    place.test("t", f"sleep 0.3; {forged}; echo ok", verify=[{"contains": "ok"}])
    assert place.run("--name", "t").code == 0
    (start,), (end,) = place.events("t", ScriptStarted), place.events("t", ScriptEnded)
    assert end.time - start.time >= 0.3 * SECOND_NS
    assert start.nodes == socket.gethostname()


def test_the_nodes_of_a_local_run_are_this_host_whatever_its_job_says(place: Workplace) -> None:
    forged = """printf '{"time":%s,"event":"binary_execute_start","nodes":"=1+1"}\\n' """
    place.test("t", forged + '"$(date +%s%N)" > events.jsonl')
    assert place.run("--name", "t").code == 0
    (start,) = place.events("t", ScriptStarted)
    assert start.nodes == socket.gethostname()


@pytest.mark.parametrize("slower", [False, True], ids=["right", "too slow"])
def test_what_a_shell_could_not_write_makes_no_verdict(place: Workplace, slower: bool) -> None:
    """The checks find all that they look for in what was written before."""
    rate = {"rate": {"find": r"rate (\d+)", "unit": "MB/s", "better": "higher"}}
    script = "echo all well; echo rate 5; echo more > /dev/full; true"
    place.test("t", script, metrics=rate, verify=[{"contains": "all well"}])
    about = {"test": "t", "metric": "rate", "value": 9 if slower else 5, "unit": "MB/s"}
    (place.folder / "here").mkdir()
    (place.folder / "here" / "references.yaml").write_text(json.dumps({"references": [about]}))
    place.test("own", "echo all well; echo its own words >&2", verify=[{"contains": "all well"}])
    place.run("--name", "t")
    assert place.verdicts() == {"t": "lost", "own": "pass"}
    assert "write error: No space left on device" in place.why("t")


def test_the_scripts_of_tests_are_written_again(place: Workplace) -> None:
    place.test("t", "echo all well", verify=[{"contains": "all well"}])
    assert place.run("--name", "t", "--dry-run").code == 0
    (script,) = place.trial().path.glob("scripts/*")
    script.write_text("")
    assert place.resume().code == 0


def test_what_a_job_does_to_its_events_costs_no_other_run(place: Workplace) -> None:
    place.test("torn", "printf '{\"time\":12' >> events.jsonl")
    place.test("garbage", r"printf '\0\377\n[[[\n{}\n\n\"\n' >> events.jsonl")
    place.test("forged", """printf '{"time":1,"event":"check_end","run_id":"x","value":0}\\n' \
>> events.jsonl; exit 3""")  # fmt: skip
    place.test("gone", "rm events.jsonl")
    place.test("fifo", "rm events.jsonl; mkfifo events.jsonl", run={"walltime": "1s"})
    place.test("folder", "rm events.jsonl; mkdir events.jsonl")
    place.test("all_gone", 'cd /; rm -rf "$OLDPWD"', verify=[{"contains": "x"}])
    done = place.run("--name", "t")
    assert "Traceback" not in done.said
    assert done.code == 1, done.said
    verdicts = place.verdicts()
    assert verdicts.pop("forged") == "failed"
    assert verdicts.pop("fifo") == "timeout"  # its own shell waits for a reader
    for not_written in ("torn", "folder", "all_gone"):
        assert verdicts.pop(not_written) == "lost"
    assert set(verdicts.values()) == {"pass"}
    place.audit()


@pytest.mark.parametrize("torn", [b'{"time":17952', b"\0\0\0\0", b"\xff\n\n{"])
def test_a_torn_last_line_of_a_jobs_events_names_the_lost_run(
    place: Workplace, torn: bytes
) -> None:
    """The machine died while a job wrote: the run is lost by name, and the case runs again."""
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    lost = place.ran()
    subprocess.run(["pkill", "-KILL", "-s", _sessions(place)], check=True)
    for run in lost:
        with (place.trial().run("wait", run) / "events.jsonl").open("ab") as file:
            file.write(torn)
    gate.touch()
    done = place.resume()
    assert done.code == 0, done.said
    place.audit()
    ends = place.events("t", RunJudged)
    assert sorted(event.run_id for event in ends if event.verdict == "lost") == sorted(lost)


def _sessions(place: Workplace) -> str:
    return ",".join(map(str, job_shells(place.trial())))


def test_cases_that_were_cut_are_told_by_every_command(place: Workplace) -> None:
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    gate.touch()
    cases = place.trial().path / "cases.jsonl"
    lines = cases.read_bytes().splitlines(keepends=True)
    for left in lines[1:], lines[:-1], []:
        cases.write_bytes(b"".join(left))
        for words in (["resume", "t"], ["report", "t"]):
            done = place.seatrial(*words)
            assert done.code == 3, done.said
            assert "cases.jsonl" in done.err and "defect" not in done.err
    cases.write_bytes(b"".join(lines))
    complete(place)


def test_an_event_of_an_unknown_case_is_told(place: Workplace) -> None:
    """A record of 0.1 has no checksum of the cases."""
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    gate.touch()
    folder = place.trial().path
    record = json.loads((folder / "trial.json").read_text())
    del record["cases_bytes"], record["cases_sha256"]
    (folder / "trial.json").write_text(json.dumps(record))
    cases = folder / "cases.jsonl"
    cases.write_bytes(cases.read_bytes().partition(b"\n")[2])
    done = place.resume()
    assert done.code == 3
    assert place.events("t", RunSubmitted)[0].case in done.err
    assert "cases.jsonl" in done.err and "defect" not in done.err


@pytest.mark.parametrize("name", ["trial.json", "cases.jsonl"])
def test_a_trial_with_bytes_that_are_no_text_is_told(place: Workplace, name: str) -> None:
    place.test("a")
    assert place.run("--name", "t", "--dry-run").code == 0
    file = place.trial().path / name
    file.write_bytes(file.read_bytes().replace(b"plain", b"pl\xffin"))
    done = place.resume()
    assert done.code == 3
    assert name in done.err and "defect" not in done.err


# ---- file systems ------------------------------------------------------------------------------


@pytest.fixture
def small_disk(place: Workplace) -> Iterator[Path]:
    """The trials' folder on a file system of 3 MB of its own."""
    place.trials.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place.trials)],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        pytest.skip(f"no file system can be mounted here: {made.stderr.strip()}")
    yield place.trials
    subprocess.run(["umount", "--lazy", str(place.trials)], check=True)


def test_a_full_disk_stops_the_trial_and_resume_completes_it(
    place: Workplace, small_disk: Path
) -> None:
    freed = place.folder / "freed"
    fill = f"[ -e {freed} ] || cat /dev/zero > {small_disk}/fill 2> /dev/null\necho ok"
    place.test("fills", fill, parameters={"n": f"range(0, {CASES})"}, verify=[{"contains": "ok"}])
    place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
    done = place.run("--name", "t", "--jobs", "1")
    assert done.code == 3, done.said
    assert "Traceback" not in done.said
    assert "No space left on device" in done.err
    assert "resume" in done.err
    freed.touch()
    (small_disk / "fill").unlink()
    done = place.resume()
    assert done.code in (0, 1), done.said  # what was judged on a full disk may have failed
    place.audit()
    assert len({event.case for event in place.events("t", RunJudged)}) == CASES


def test_no_space_for_a_trial_at_all(place: Workplace, small_disk: Path) -> None:
    place.test("a")
    with (small_disk / "fill").open("wb") as fill, pytest.raises(OSError):
        while True:
            fill.write(b"\0" * 65536)
            fill.flush()
    done = place.run("--name", "t")
    assert done.code == 3, done.said
    assert "No space left on device" in done.err
    assert not place.trial().path.exists()
    assert list(small_disk.iterdir()) == [small_disk / "fill"]


def test_a_read_only_folder_is_told_and_nothing_is_lost(place: Workplace, small_disk: Path) -> None:
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    gate.touch()
    ends = list(place.trial().path.glob("runs/*/*/events.jsonl"))
    until(lambda: all("execute_end" in file.read_text() for file in ends), "the ends of the jobs")
    until(lambda: _remount(small_disk, "ro"), "the jobs to leave their files")
    for words in (["resume", "t"], ["run", "suite", "-m", str(place.machine), "--name", "u"]):
        done = place.seatrial(*words)
        assert done.code == 3, done.said
        assert "Read-only file system" in done.err
        assert "Traceback" not in done.err
    assert _remount(small_disk, "rw")
    complete(place)
    place.audit()


def _remount(folder: Path, how: str) -> bool:
    line = ["mount", "-o", f"remount,{how}", str(folder)]
    return subprocess.run(line, capture_output=True, check=False).returncode == 0


def test_a_trial_can_be_resumed_by_another_path(place: Workplace) -> None:
    gate = gated(place)
    link = place.folder / "link"
    place.trials.mkdir()
    link.symlink_to(place.trials)
    with place.start("--trials", str(link), "run", "suite", "-m", str(place.machine),
                     "--name", "t") as driving:  # fmt: skip
        driving.until(lambda: len(place.ran()) == 2, "two runs at work")
        driving.kill()
    with place.start("resume", "t") as driving:
        driving.until(lambda: place.count(TrialResumed) == 1, "the resume")
        gate.touch()
        assert driving.end().code == 0
    tally = Counter(event.verdict for event in place.events("t", RunJudged))
    assert tally == {"pass": CASES}
    place.audit()


# ---- the store ---------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["not a database", "a folder", "locked", "deleted meanwhile"])
def test_a_store_that_cannot_be_used_costs_no_verdict(place: Workplace, how: str) -> None:
    place.test("good", "echo rate 5")
    place.test("bad", "exit 1")
    store = place.trials / "store.sqlite"
    place.trials.mkdir()
    holder: sqlite3.Connection | None = None
    if how == "not a database":
        store.write_bytes(os.urandom(5000))
    elif how == "a folder":
        store.mkdir()
    else:
        assert place.run("--name", "before").code == 1
        if how == "locked":
            holder = sqlite3.connect(store, isolation_level=None)
            holder.execute("PRAGMA locking_mode = EXCLUSIVE")
            holder.execute("BEGIN EXCLUSIVE")
        else:
            for file in place.trials.glob("store.sqlite*"):
                file.unlink()
    done = place.run("--name", "t")
    assert done.code == 1, done.said
    assert "Traceback" not in done.said
    assert "1 passed, 1 failed" in done.out
    assert place.verdicts() == {"good": "pass", "bad": "failed"}
    if how != "deleted meanwhile":
        assert "store.sqlite" in done.err
    if holder is not None:
        holder.close()
    if how == "a folder":
        store.rmdir()
    if how == "not a database":
        assert "seatrial store rebuild" in done.err
        assert place.seatrial("store", "rebuild").code == 0
    listed = place.seatrial("runs", "--trial", "t")
    assert listed.code == 0, listed.said
    assert "good" in listed.out
    assert "bad" in listed.out


@pytest.mark.parametrize(
    ("number", "says"),
    [(errno.EMFILE, "ulimit -n"), (errno.EDQUOT, "space"), (errno.EACCES, "permission")],
)
def test_a_run_that_cannot_be_made_is_told_with_what_helps(
    place: Workplace, monkeypatch: pytest.MonkeyPatch, number: int, says: str
) -> None:
    place.test("a")
    assert place.run("--name", "t", "--dry-run").code == 0

    def fail(*_: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("seatrial.execute.creation.prepare", fail)
    with pytest.raises(TrialError, match=says):
        asyncio.run(Driver(place.trial()).drive())


def test_a_file_server_that_does_not_answer_ends_no_trial(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.test("a", "sleep 0.2")
    assert place.run("--name", "t", "--dry-run").code == 0
    exists, asked = os.path.lexists, []

    def stale(path: Path) -> bool:
        if Path(path).name == "cancel":
            asked.append(path)
            raise OSError(errno.ESTALE, os.strerror(errno.ESTALE))
        return exists(path)

    monkeypatch.setattr(os.path, "lexists", stale)
    outcome = asyncio.run(Driver(place.trial()).drive())
    assert asked and dict(outcome.verdicts) == {"pass": 1}


# ---- the clock, and a second driver ------------------------------------------------------------


def test_a_clock_that_steps_back_reorders_nothing(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.test("short", "sleep 0.02", parameters={"n": "range(0, 20)"}, run={"walltime": "30s"})
    assert place.run("--name", "t", "--dry-run").code == 0
    clock = time.time_ns
    calls = 0

    def stepping() -> int:
        nonlocal calls
        calls += 1
        return clock() - (3600 * 10**9 if calls > 40 else 0)

    monkeypatch.setattr(time, "time_ns", stepping)
    outcome = asyncio.run(Driver(place.trial()).drive())
    monkeypatch.undo()
    assert calls > 40, "the clock never stepped"
    assert outcome.complete
    assert dict(outcome.verdicts) == {"pass": 20}
    own = (ScriptStarted, ScriptEnded)  # by the jobs' clock
    times = [event.time for event in place.events("t") if not isinstance(event, own)]
    assert times == sorted(times)
    assert place.seatrial("runs", "--trial", "t").code == 0
    place.audit()


def test_a_resume_after_the_clock_stepped_back_ends_no_run_early(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = gated(place)
    with at_work(place) as driving:
        driving.kill()
    clock = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: clock() - 3600 * 10**9)
    driver = Driver(place.trial())

    async def drive() -> Counter[str]:
        task = asyncio.create_task(driver.drive())
        await asyncio.sleep(0.1)
        gate.touch()
        return (await task).verdicts

    verdicts = asyncio.run(drive())
    monkeypatch.undo()
    assert dict(verdicts) == {"pass": CASES}
    place.audit()


def test_a_second_driver_is_refused_by_the_name_of_the_first(place: Workplace) -> None:
    gate = gated(place)
    with at_work(place) as driving:
        refused = place.resume()
        assert refused.code == 3, refused.said
        assert str(driving.pid) in refused.err
        assert socket.gethostname() in refused.err
        gate.touch()
        assert driving.end().code == 0
    place.audit()


def test_a_trial_that_is_damaged_beyond_driving_is_told(place: Workplace) -> None:
    place.test("a")
    assert place.run("--name", "t").code == 0
    record = place.trial().path / "trial.json"
    record.write_bytes(record.read_bytes()[:100])
    done = place.resume()
    assert done.code == 3, done.said
    assert "trial.json" in done.err
    assert "Traceback" not in done.err
    shutil.rmtree(place.trial().path)
    assert place.resume().code in (2, 3)


def test_a_trial_with_a_strange_name_costs_that_one_alone(place: Workplace) -> None:
    place.test("t")
    assert place.run("--name", "t").code == 0
    shutil.copytree(place.trial().path, place.trials / os.fsdecode(b"\xff\xfe"))
    for command in ("trials", "runs", "store info", "store rebuild", "suspects"):
        done = place.seatrial(*command.split())
        assert done.code in (0, 1), done.said
        assert "defect" not in done.said
        assert "not UTF-8" in done.said
    assert place.seatrial("resume", "t").code == 0
