from __future__ import annotations

import os
import shutil
import time
import tracemalloc
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from seatrial.execute.directory import EVENTS_LIMIT, JobEvents, job_events, prepare, put
from seatrial.model.test import Input

from .helpers import a_test

NOW = time.time_ns()
DAY = 86_400 * 10**9
START = b'{"time":%d,"event":"binary_execute_start","nodes":"n1"}\n' % (NOW + 100)
END = b'{"time":%d,"event":"binary_execute_end","value":3}\n' % (NOW + 200)
UNKNOWN = JobEvents(True, None, None)


def write(folder: Path, data: bytes) -> JobEvents:
    (folder / "events.jsonl").write_bytes(data)
    return job_events(folder)


def times(events: JobEvents) -> tuple[int, int]:
    """Those of the start and the end, by how much they are behind NOW; 0: none."""
    start, end = (event.time - NOW if event else 0 for event in (events.start, events.end))
    return start, end


# ---- what a job wrote ---------------------------------------------------------------------


def test_no_file_means_that_the_run_was_not_claimed(tmp_path: Path) -> None:
    assert job_events(tmp_path) == JobEvents(False, None, None)
    assert job_events(tmp_path / "nowhere") == JobEvents(False, None, None)


def test_the_first_start_and_the_last_end_count(tmp_path: Path) -> None:
    """The script itself writes both; what is between them is the test's."""
    assert write(tmp_path, b"") == UNKNOWN
    assert times(write(tmp_path, START)) == (100, 0)
    assert times(write(tmp_path, START + END)) == (100, 200)
    again = START.replace(b"%d" % (NOW + 100), b"%d" % (NOW + 150))
    assert times(write(tmp_path, START + again)) == (100, 0)
    events = write(tmp_path, START + again + END.replace(b"3}", b"7}") + END)
    assert (times(events), events.exit_code) == ((100, 200), 3)


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(before=st.binary(max_size=50), between=st.binary(max_size=50), after=st.binary(max_size=50))
def test_garbage_around_the_events_hides_them_not(
    tmp_path: Path, before: bytes, between: bytes, after: bytes
) -> None:
    data = b"\n".join([before, START + between, END + after])
    events = write(tmp_path, data)
    assert times(events) == (100, 200)
    assert events.exit_code == 3


@pytest.mark.parametrize(
    "line",
    [
        b'{"time":100,"event":"binary_execute_st',
        b'{"time":"100","event":"binary_execute_start"}',
        b'{"time":000,"event":"binary_execute_start"}',
        b'{"time":-5,"event":"binary_execute_start"}',
        b'{"time":99999999999999999999999,"event":"binary_execute_start"}',
        b'{"time":100,"event":"binary_execute_end","value":0.0}',
        b'{"time":100,"event":"binary_execute_end","value":"0"}',
        b'{"time":100,"event":"binary_execute_end","value":-1}',
        b'{"time":100,"event":"binary_execute_end","value":256}',
        b'{"time":100,"event":"binary_execute_end","value":1' + b"0" * 9000 + b"}",
        b'{"time":100,"event":"binary_execute_end"}',
        b"[" * 100_000,
        b"\0" * 5000,
    ],
)
def test_what_is_no_event_of_a_job_is_none(tmp_path: Path, line: bytes) -> None:
    assert write(tmp_path, line + b"\n") == UNKNOWN


def test_events_that_only_a_driver_may_write_are_named_and_nothing_else(tmp_path: Path) -> None:
    forged = b"".join(
        b'{"time":%d,"event":"%s","value":0}\n' % (NOW + 150, name)
        for name in (b"check_end", b"output_remove", b"check_end", b"no_such_event")
    )
    found = write(tmp_path, START + forged + END)
    assert found.refused == ("check_end", "output_remove", "no_such_event")
    assert (times(found), found.exit_code) == ((100, 200), 3)
    many = b"".join(b'{"time":1,"event":"e%d"}\n' % n + b"x" for n in range(1000))
    assert len(write(tmp_path, many).refused) <= 8


@pytest.mark.parametrize(
    "odd",
    [1, NOW - 400 * DAY, NOW + 2 * DAY, 2**62 - 1, 2**62, 2**63 - 1],
    ids=["1970", "long ago", "the day after tomorrow", "2116", "no journal's", "the last"],
)
def test_a_time_that_cannot_be_is_no_start_and_an_end_of_now(tmp_path: Path, odd: int) -> None:
    start = START.replace(b"%d" % (NOW + 100), b"%d" % odd)
    end = END.replace(b"%d" % (NOW + 200), b"%d" % odd)
    assert write(tmp_path, start) == UNKNOWN
    assert times(write(tmp_path, start + END)) == (0, 200)
    assert times(write(tmp_path, start + START + END)) == (0, 200), "the second is not its script's"
    events = write(tmp_path, START + end)
    assert events.start is not None and events.end is not None
    assert NOW < events.end.time <= time.time_ns()
    assert events.exit_code == 3


def test_a_job_cannot_name_other_cases_or_write_without_measure(tmp_path: Path) -> None:
    long = "x" * 50_000
    line = {"time": NOW, "event": "binary_execute_start", "case": "other", "run_id": "other"}
    line |= {"trial": "other", "alias": long, "text": long, "nodes": long, "job_id": long}
    start = write(tmp_path, msgspec.json.encode(line)).start
    assert start is not None
    assert (start.case, start.run_id, start.trial) == ("", "", "")
    assert len(msgspec.json.encode(start)) < 10_000


def test_the_end_is_found_behind_a_gigabyte_in_little_memory(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    with path.open("wb") as file:
        file.write(START)
        file.truncate(1 << 30)
        file.seek(0, os.SEEK_END)
        file.write(b"\n" + END)
    tracemalloc.start()
    assert times(job_events(tmp_path)) == (100, 200)
    assert tracemalloc.get_traced_memory()[1] < 8 * EVENTS_LIMIT
    tracemalloc.stop()


def test_what_is_no_file_says_nothing_and_holds_nobody_up(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.mkdir()
    assert job_events(tmp_path) == UNKNOWN
    path.rmdir()
    os.mkfifo(path)
    assert job_events(tmp_path) == UNKNOWN
    path.unlink()
    path.symlink_to("/dev/zero")
    assert job_events(tmp_path) == UNKNOWN


# ---- making it ----------------------------------------------------------------------------


def suite_files(folder: Path) -> Path:
    source = folder / "suite"
    (source / "mesh" / "deep").mkdir(parents=True)
    (source / "mesh" / "deep" / "a.dat").write_text("mesh")
    (source / "mesh" / "link").symlink_to("deep/a.dat")
    (source / "run.sh").write_text("echo")
    (source / "run.sh").chmod(0o755)
    return source


def test_copies_that_others_might_write_are_closed_to_them(tmp_path: Path) -> None:
    source = suite_files(tmp_path)
    for path in (source / "run.sh", source / "mesh", source / "mesh/deep/a.dat"):
        path.chmod(0o777)
    for name in ("run.sh", "mesh"):
        put(source / name, tmp_path / "run" / name, "copy")
    for path in (tmp_path / "run").rglob("*"):
        assert path.is_symlink() or not path.stat().st_mode & 0o022, path
    assert (tmp_path / "run/run.sh").stat().st_mode & 0o777 == 0o755
    assert (source / "run.sh").stat().st_mode & 0o777 == 0o777


def test_inputs_are_linked_or_copied_under_their_names(tmp_path: Path) -> None:
    source = suite_files(tmp_path)
    inputs = [
        Input(source=str(source / "run.sh")),
        Input(source=str(source / "run.sh"), how="copy", name="bin/copy.sh"),
        Input(source=str(source / "mesh"), how="copy"),
        Input(source=str(source / "mesh"), name="in/linked"),
    ]
    run = tmp_path / "runs" / "a" / "b"
    prepare(run, "#!/bin/bash\n# größe\n", a_test(inputs=inputs))
    assert (run / "job.sh").read_bytes() == "#!/bin/bash\n# größe\n".encode()
    assert (run / "run.sh").readlink() == source / "run.sh"
    assert not (run / "bin" / "copy.sh").is_symlink()
    assert os.access(run / "bin" / "copy.sh", os.X_OK)
    assert (run / "mesh" / "link").readlink() == Path("deep/a.dat")
    assert (run / "in" / "linked" / "deep" / "a.dat").read_text() == "mesh"
    (run / "mesh" / "deep" / "a.dat").write_text("changed by the run")
    assert (source / "mesh" / "deep" / "a.dat").read_text() == "mesh"


def test_a_run_that_was_made_is_completed_not_made_again(tmp_path: Path) -> None:
    source = suite_files(tmp_path)
    inputs = [Input(source=str(source / "mesh"), how="copy"), Input(source=str(source / "run.sh"))]
    run = tmp_path / "run"
    prepare(run, "old\n", a_test(inputs=inputs[:1]))
    (run / "mesh" / "deep" / "a.dat").write_text("kept")
    prepare(run, "new\n", a_test(inputs=inputs))
    assert (run / "job.sh").read_text() == "new\n"
    assert (run / "mesh" / "deep" / "a.dat").read_text() == "kept"
    assert (run / "run.sh").exists()


@pytest.mark.parametrize("name", ["mesh", "run.sh"])
def test_a_copy_that_broke_off_is_made_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    source = suite_files(tmp_path)
    test = a_test(inputs=[Input(source=str(source / name), how="copy")])
    run = tmp_path / "run"

    def break_off(source: Path, target: Path, **_: object) -> None:
        target.mkdir() if Path(source).is_dir() else Path(target).write_text("ha")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as full:
        full.setattr(shutil, "copy2", break_off)
        full.setattr(shutil, "copytree", break_off)
        with pytest.raises(OSError, match="No space left"):
            prepare(run, "", test)
    assert not (run / name).exists()
    prepare(run, "", test)
    if name == "mesh":
        assert (run / "mesh" / "deep" / "a.dat").read_text() == "mesh"
    else:
        assert (run / "run.sh").read_text() == "echo"
    assert sorted(p.name for p in run.iterdir()) == sorted(["job.sh", "job.environment", name])


def test_a_run_directory_on_a_full_or_closed_disk_is_an_os_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(NotADirectoryError):
        prepare(tmp_path / "file" / "run", "", a_test())


def test_the_environment_is_for_the_owner_alone(tmp_path: Path) -> None:
    prepare(tmp_path / "run", "", a_test())
    assert (tmp_path / "run" / "job.environment").stat().st_mode & 0o777 == 0o600
    shutil.rmtree(tmp_path / "run")
