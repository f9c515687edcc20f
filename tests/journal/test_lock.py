"""Locks that other hosts do not see: the name in the lock file, and signs of life, count, too."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from seatrial.errors import Owned
from seatrial.journal import clock
from seatrial.journal import journal as journals
from seatrial.journal import lock as owner
from seatrial.journal.events import TrialPaused
from seatrial.journal.journal import Journal

OTHER = "seatrial, process 1 on elsewhere\nboot 00000000-0000 7\n"


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Journal.take(tmp_path / "journal.jsonl") as journal:
        journal.append(TrialPaused(reason="1"))
    return tmp_path / "journal.jsonl"


@pytest.fixture
def looks_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journals, "LOOK_NS", -1)


def lock_of(path: Path, name: str, age: float) -> Path:
    lock = path.with_name("journal.jsonl.lock")
    lock.write_text(name)
    os.utime(lock, (time.time() - age,) * 2)
    return lock


def test_an_owner_elsewhere_that_gave_a_sign_of_life_is_believed(path: Path) -> None:
    lock_of(path, OTHER, 5)
    with pytest.raises(Owned, match=r"process 1 on elsewhere, whose lock is .*--host-is-gone"):
        Journal.take(path)
    assert owner.name_in(path.with_name("journal.jsonl.lock")) == OTHER
    Journal.take(path, host_is_gone=True).close()


def test_a_heartbeat_is_a_sign_of_life(path: Path) -> None:
    lock_of(path, OTHER, 1000)
    path.with_name("heartbeat").touch()
    with pytest.raises(Owned):
        Journal.take(path)
    os.utime(path.with_name("heartbeat"), (time.time() - 100,) * 2)
    Journal.take(path).close()
    assert not list(path.parent.glob(".clock*"))


@pytest.mark.parametrize("ahead", [-7200.0, 7200.0])
def test_the_clock_of_the_file_server_counts(
    path: Path, monkeypatch: pytest.MonkeyPatch, ahead: float
) -> None:
    lock_of(path, OTHER, 5)
    monkeypatch.setattr(time, "time", lambda: 1e9 + ahead)
    with pytest.raises(Owned):
        Journal.take(path)


def test_whoever_leaves_keeps_nobody_waiting(path: Path) -> None:
    assert path.with_name("journal.jsonl.lock").read_bytes() == b""


def test_an_owner_of_this_boot_that_has_ended_is_not_waited_for(path: Path) -> None:
    child = subprocess.Popen([sys.executable, "-c", ""])
    child.wait()
    name = owner.own_name().replace(str(os.getpid()), str(child.pid), 1)
    lock_of(path, name, 0)
    Journal.take(path).close()


def test_an_owner_of_an_earlier_boot_of_this_host_is_not_waited_for(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = path.with_name("machine-id")
    installation.write_text("0123\n")
    monkeypatch.setattr(owner, "MACHINE_ID", installation)
    before = owner.own_name().replace("boot ", "boot f")
    lock_of(path, before, 0)
    Journal.take(path).close()
    # Of another host with the same name, or of the same image, nothing is known.
    installation.write_text("4567\n")
    lock_of(path, before, 0)
    with pytest.raises(Owned):
        Journal.take(path)
    installation.write_text("0123\n")
    lock_of(path, before.replace(f" on {os.uname().nodename}\n", " on another\n"), 0)
    with pytest.raises(Owned):
        Journal.take(path)


def test_where_nobody_knows_the_installation_an_owner_of_another_boot_is_believed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(owner, "MACHINE_ID", path.with_name("none"))
    lock_of(path, owner.own_name().replace("boot ", "boot f"), 0)
    with pytest.raises(Owned):
        Journal.take(path)


def test_where_the_kernel_tells_no_boot_an_owner_of_another_one_is_believed(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    installation = path.with_name("machine-id")
    installation.write_text("0123\n")
    monkeypatch.setattr(owner, "MACHINE_ID", installation)
    before = owner.own_name()
    monkeypatch.setattr(clock, "BOOT_ID", path.with_name("none"))
    lock_of(path, before, 0)
    with pytest.raises(Owned):
        Journal.take(path)


@pytest.mark.usefixtures("looks_at_once")
def test_who_finds_another_s_name_writes_nothing_more(path: Path) -> None:
    journal = Journal.take(path)
    journal.append(TrialPaused(reason="2"))
    journal.flush()
    before = path.read_bytes()
    mark = {file.name: file.read_bytes() for file in path.parent.glob("*.mark")}
    lock_of(path, OTHER, 0)
    journal.append(TrialPaused(reason="3"))
    for act in (journal.flush, journal.require_own, journal.sync, journal.flush):
        with pytest.raises(Owned, match=r"process 1 on elsewhere as well; this process leaves it"):
            act()
    journal.close()
    assert path.read_bytes() == before
    assert mark == {file.name: file.read_bytes() for file in path.parent.glob("*.mark")}
    assert owner.name_in(path.with_name("journal.jsonl.lock")) == OTHER


def test_who_finds_what_another_wrote_writes_nothing_over_it(path: Path) -> None:
    journal = Journal.take(path)
    with path.open("ab") as file:
        file.write(b"of another\n")
    before = path.read_bytes()
    journal.append(TrialPaused(reason="2"))
    with pytest.raises(Owned, match="another process"):
        journal.flush()
    journal.close()
    assert path.read_bytes() == before
