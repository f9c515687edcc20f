"""Commands of the site's: nothing waits longer than their time, and nothing of them is left."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from pathlib import Path

import pytest

from seatrial.execute.beside_loop import MAX_OUTPUT_BYTES, CommandResult, Shell
from tests.programs import LONG_S
from tests.waiting import until_true

LONG = f"98{os.getpid()}.25"  # seconds; the process id keeps these tests apart from others here


def said(command: str, timeout: float = LONG_S, **variables: str) -> CommandResult:
    return asyncio.run(Shell(command, timeout).run(variables))


def alive(mark: str) -> bool:
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "cmdline").read_bytes():
                return True
    return False


@pytest.mark.parametrize(
    ("command", "out", "why"),
    [
        ("echo 42", "42\n", ""),
        ("echo 42 >&2", "", ""),
        ("echo $GIVEN", "word\n", ""),
        ("exit 3", "", "it ended with exit code 3"),
        ("echo a; echo b >&2; exit 3", "a\n", "it ended with exit code 3: b"),
        ("echo only out; exit 1", "only out\n", "it ended with exit code 1: only out"),
        ("kill -9 $$", "", "it ended with signal 9"),
        ("read line; echo got:$line", "got:\n", ""),
    ],
)
def test_what_a_command_says(command: str, out: str, why: str) -> None:
    assert said(command, GIVEN="word") == CommandResult(out, why)


def test_output_is_bounded_and_need_be_no_text() -> None:
    flood = said("head -c 1000000 /dev/zero | tr '\\0' x; head -c 1000000 /dev/zero >&2; false")
    assert len(flood.output) == MAX_OUTPUT_BYTES
    assert len(flood.failure) < 300
    assert said("printf '\\377\\376'").output == "\N{REPLACEMENT CHARACTER}" * 2
    assert "cannot be started" in said("echo a\0b").failure


@pytest.mark.parametrize(
    "command",
    [f"sleep {LONG} & sleep {LONG}", f"trap '' TERM INT; sleep {LONG}", f"yes {LONG} & wait"],
    ids=["two sleeps", "a trap", "yes"],  # a worker's title may hold the name of its test
)
def test_one_that_hangs_is_killed_with_all_that_it_started(
    command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("seatrial.execute.beside_loop.GRACE_SECONDS", LONG_S)
    began = time.monotonic()
    assert said(command, 0.2).failure == "it did not end in 200 ms"
    assert time.monotonic() - began < LONG_S, "nothing is left to be waited for"
    assert not alive(LONG)


def test_what_it_leaves_in_the_background_is_ended_too() -> None:
    assert said(f"sleep {LONG} & echo done") == CommandResult("done\n", "")
    assert not alive(LONG)


def test_one_that_cannot_be_killed_is_not_started_again(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """As one that hangs in a file system: the signal does nothing, for now."""
    pids, gate = tmp_path / "pids", tmp_path / "gate"
    shell = Shell(f"echo $$ >> {pids}; until [ -e {gate} ]; do sleep 0.05; done", 0.1)

    async def come_out() -> None:
        gate.touch()
        assert shell._stuck is not None
        await asyncio.wait_for(shell._stuck.wait(), LONG_S)

    async def use() -> list[str]:
        monkeypatch.setattr("seatrial.execute.beside_loop.kill_group", lambda group: None)
        monkeypatch.setattr("seatrial.execute.beside_loop.GRACE_SECONDS", 0.1)
        first = (await shell.run()).failure
        second = (await shell.run()).failure
        await come_out()
        gate.unlink()
        third = (await shell.run()).failure
        await come_out()
        return [first, second, third]

    first, second, third = asyncio.run(use())
    assert first == third == "it did not end in 100 ms"
    assert second.startswith("it still hangs")
    assert len(pids.read_text().split()) == 2


def test_a_cancelled_wait_kills_the_command() -> None:
    async def use() -> None:
        task = asyncio.create_task(Shell(f"sleep {LONG}", LONG_S).run())
        await until_true(lambda: alive(f"sleep\x00{LONG}"), "the command")
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(use())
    assert not alive(f"sleep\x00{LONG}")
    assert len(list(Path("/proc/self/fd").iterdir())) == before


@pytest.mark.parametrize("steps", range(12))
def test_cancelled_at_any_step_it_leaves_no_file_open(steps: int) -> None:
    async def use() -> None:
        task = asyncio.create_task(Shell(f"sleep {LONG}", LONG_S).run())
        for _ in range(steps):
            await asyncio.sleep(0)
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task

    before = len(list(Path("/proc/self/fd").iterdir()))
    asyncio.run(use())
    assert len(list(Path("/proc/self/fd").iterdir())) == before
