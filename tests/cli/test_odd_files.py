"""What is in the place of a file, and is none: each command says so, and waits for nobody."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.programs import COMMAND, LONG_S, Workplace

SECONDS = 20.0

COMMANDS = [
    "runs",
    "trials",
    "report t -o x.html",
    "sink t --stdout",
    "resume t",
    "store rebuild",
]


@pytest.fixture(scope="module")
def ran(tmp_path_factory: pytest.TempPathFactory) -> Workplace:
    """A place with a trial, and with a copy of it in ``kept``."""
    place = Workplace(tmp_path_factory.mktemp("odd"))
    place.local(cores=2)
    place.test("hello", "echo hello")
    assert place.run("--name", "t").code == 0
    shutil.copytree(place.trials, place.folder / "kept")
    return place


@pytest.fixture
def one_trial(ran: Workplace) -> Workplace:
    """The trial as it was after its run, whatever the test before has put into its place."""
    shutil.rmtree(ran.trials)
    shutil.copytree(ran.folder / "kept", ran.trials)
    return ran


def put(kind: str, path: Path) -> None:
    """Put a FIFO, or a link to a device that gives bytes for ever, in the place of a file."""
    path.unlink(missing_ok=True)
    if kind == "fifo":
        os.mkfifo(path)
    else:
        path.symlink_to("/dev/zero")


@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize(
    "name", ["trial.json", "cases.jsonl", "journal.jsonl", "journal.jsonl.lock", "sinks/lock"]
)
def test_no_command_waits_for_a_file_of_a_trial(one_trial: Workplace, kind: str, name: str) -> None:
    (one_trial.trials / "t" / "sinks").mkdir(exist_ok=True)
    put(kind, one_trial.trials / "t" / name)
    ended = {command: one_trial.seatrial(*command.split(), timeout=SECONDS) for command in COMMANDS}
    for command, done in ended.items():
        assert done.code in (0, 1, 2, 3), command
        assert "Traceback" not in done.said, (command, done.said)
    told = ended["resume t"]
    if name != "sinks/lock":
        assert told.code == 3
        assert f"{name}: cannot be" in told.err


@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize("command", ["runs", "store rebuild", "store update", "store info"])
def test_no_command_waits_for_a_store(one_trial: Workplace, kind: str, command: str) -> None:
    put(kind, one_trial.trials / "store.sqlite")
    done = one_trial.seatrial(*command.split(), timeout=SECONDS)
    assert done.code == 2
    assert "store.sqlite: is no regular file" in done.err


@pytest.mark.parametrize("kind", ["fifo", "device"])
@pytest.mark.parametrize(
    "command",
    [
        *("report odd", "accept odd --status", "accept odd", "rehearse odd", "run odd -m here"),
        *("run suite -m odd", "network odd", "parse hpl odd", "report verify odd"),
        *("score -f odd", "history hello", "note hello", "serve --token-file odd"),
    ],
)
def test_no_command_waits_for_a_file_that_people_name(
    one_trial: Workplace, kind: str, command: str
) -> None:
    put(kind, one_trial.folder / "odd.yaml")
    put(kind, one_trial.trials / "notes.jsonl")
    words = [word.replace("odd", "odd.yaml") for word in command.split()]
    done = one_trial.seatrial(*words, timeout=SECONDS)
    assert done.code in (2, 3)
    assert "Traceback" not in done.said


def test_a_workload_is_a_regular_file(place: Workplace) -> None:
    from seatrial.errors import UsageError
    from seatrial.plugins.rehearsal.cluster import read

    put("fifo", place.folder / "log.swf")
    with pytest.raises(UsageError, match="FIFO"):
        read(place.folder / "log.swf")


@pytest.mark.parametrize(
    ("member", "value"),
    [("groups", {"rack": "n["}), ("nodes", [{"names": "n[", "cores": 2}])],
)
def test_a_record_that_names_no_nodes_is_told(
    one_trial: Workplace, member: str, value: object
) -> None:
    path = one_trial.trials / "t" / "trial.json"
    record = json.loads(path.read_text())
    record["machine"][member] = value
    path.write_text(json.dumps(record))
    done = one_trial.seatrial("resume", "t")
    assert done.code == 3
    assert "trial.json: is not a trial's record: 'n[' is not a node set" in done.err


ALL_CLOSED = ">&- 2>&- <&-"


@pytest.mark.parametrize(
    ("words", "stream"),
    [
        ("run suite -m machine.yaml", ">&-"),
        ("run suite -m machine.yaml", ALL_CLOSED),
        ("list suite -m machine.yaml", "<&-"),
        ("runs", "2>&-"),
    ],
)
def test_closed_standard_streams_take_nobody_s_place(
    one_trial: Workplace, words: str, stream: str
) -> None:
    """Otherwise the store has the number of stdout, and the next output goes into it."""
    (one_trial.trials / "store.sqlite").unlink()
    done = subprocess.run(
        ["bash", "-c", f"{COMMAND} {words} {stream}"],
        cwd=one_trial.folder,
        capture_output=True,
        timeout=LONG_S,
        check=False,
    )
    assert (done.returncode, b"Traceback" in done.stderr) == (0, False), done.stderr
    assert one_trial.seatrial("runs").code == 0


def test_a_report_needs_a_name(one_trial: Workplace) -> None:
    done = one_trial.seatrial("report", "t", "-o", "")
    assert done.code == 2
    assert "--output: names no file" in done.err


@pytest.fixture
def full(one_trial: Workplace) -> Iterator[Workplace]:
    """The trial on a file system without room."""
    shutil.rmtree(one_trial.trials)
    one_trial.trials.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(one_trial.trials)]
    if sys.platform != "linux" or subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("needs the right to mount")
    try:
        shutil.copytree(one_trial.folder / "kept" / "t", one_trial.trials / "t")
        yield one_trial
    finally:
        subprocess.run(["umount", str(one_trial.trials)], check=True)


@pytest.mark.parametrize("before", ["no store", "an old store"])
def test_on_a_full_disk_what_asks_gets_an_answer(full: Workplace, before: str) -> None:
    if before == "an old store":
        shutil.move(full.trials / "t", full.folder / "t")
        assert full.seatrial("store", "update").code == 0
        shutil.move(full.folder / "t", full.trials / "t")
    with (full.trials / "filling").open("wb", buffering=0) as file:
        while True:
            try:
                file.write(bytes(4096))
            except OSError:
                break
    for command in ("runs", "trials", "show t", "export t", "suspects"):
        done = full.seatrial(*command.split())
        assert done.code in (0, 2), (command, done.said)
        assert "journals are read anew" in done.err, command
        assert "disk is full" in done.err
    assert "hello" in full.seatrial("runs").out
    assert full.seatrial("store", "rebuild").code == 3


# ---- names that are not UTF-8 -----------------------------------------------------------------

ODD = "\udcff\udcfe"  # the bytes ff fe
PLACES = [
    *("", "t", "t/runs", "t/runs/hello", "t/builds", "t/requests", "t/sinks", "t/log"),
    *("t/environments", "t/submissions", "t/scripts"),
]
ASKING = [
    *("runs", "trials", "show RUN", "export t", "compare t t", "variability t", "suspects"),
    *("history elapsed", "report t -o x.html", "sink t --stdout", "resume t", "cancel t"),
    *("store rebuild", "store info", "note hello", "note --list"),
    *("run suite -m machine.yaml --name u", "run suite -m machine.yaml"),
]


def test_a_name_that_is_not_utf8_costs_itself_alone(one_trial: Workplace) -> None:
    """As a folder with a copy of the trial's record, and as a file."""
    record = (one_trial.trials / "t" / "trial.json").read_bytes()
    for place in PLACES:
        folder = one_trial.trials / place
        (folder / ODD).mkdir(parents=True)
        (folder / ODD / "trial.json").write_bytes(record)
        (folder / f"{ODD}.json").write_bytes(b"{}")
    (one_trial.trials / f".making-{ODD}").mkdir()
    (one_trial.run_folder("hello") / ODD).write_bytes(b"x")
    run = one_trial.run_folder("hello").name
    for command in ASKING:
        done = one_trial.seatrial(*command.replace("RUN", run).split())
        assert done.code in (0, 1) or command == "compare t t", (command, done.said)
        assert "defect" not in done.said, command
    told = one_trial.seatrial("runs")
    assert "hello" in told.out
    assert r"\udcff\udcfe" in told.err and "not UTF-8" in told.err
