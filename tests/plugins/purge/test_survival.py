"""Purges that are killed at any moment, and users who swap folders meanwhile."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from seatrial.errors import UsageError
from seatrial.files import names_in, opened_folder
from seatrial.journal.journal import Journal
from seatrial.plugins.purge import act
from seatrial.plugins.purge.act import History, Wish
from seatrial.plugins.purge.files_program import Deed, Walk, _ProgramHands, hands, open_root
from seatrial.plugins.purge.plan_file import open_plan
from tests.plugins.purge.scratch import Scratch
from tests.plugins.purge.test_acts import WAYS, use

MOMENTS = 50
FILES, BATCH = 48, 6
ACTS = ("remove", "aside", "undo")


# ---- killed --------------------------------------------------------------------------------------


@pytest.mark.parametrize("part", range(2))
def test_audit_and_disk_agree_wherever_it_is_killed(tmp_path: Path, part: int) -> None:
    """Each act is killed before or after one of its steps: records, blocks that are given, answers;
    or at a time by chance. What the audit says then is so; and resumed, it ends as one that was
    not killed."""
    chance = random.Random(part)
    killed = 0
    for moment in range(part, MOMENTS, 2):
        folder = tmp_path / str(moment)
        folder.mkdir()
        killed += _killed_and_resumed(Scratch(folder), ACTS[moment % 3], moment, chance)
    assert killed > MOMENTS / 2 * 0.8  # some end before their moment comes


def _killed_and_resumed(scratch: Scratch, kind: str, moment: int, chance: random.Random) -> bool:
    for number in range(FILES):
        scratch.file(f"u{number % 3}/f{number}", size=10 + number)
    before = {path: _inode(path) for path in scratch.left()}
    plan = scratch.plan(batch=BATCH, aside=None if kind == "remove" else "9d")
    if kind == "undo":
        scratch.do(plan)
    pid = os.fork()
    if not pid:
        _die_at(moment // 3 if moment % 5 else None)
        scratch.undo(plan) if kind == "undo" else scratch.do(plan)
        os._exit(0)
    if moment % 5 == 0:
        time.sleep(chance.uniform(0.0, 0.06))
        os.kill(pid, signal.SIGKILL)
    _, status = os.waitpid(pid, 0)
    history = History(plan)
    if status == 0:
        assert history.ended is not None
    else:
        _require_agreement(scratch, plan, before, history)
        if history.begun is None or history.ended is not None:  # it did not begin
            scratch.do(plan) if kind != "undo" else scratch.undo(plan)
        else:
            act.resume(plan, Wish())
    last = History(plan)
    _require_agreement(scratch, plan, before, last)
    expected = {"remove": set("rb"), "aside": {"a"}, "undo": {"u"}}[kind]
    assert set(scratch.fates(plan).values()) <= expected and not last.interrupted
    if kind == "remove":
        assert last.freed == FILES * 4096
    return status != 0


def _inode(path: bytes) -> int:
    """Return the inode of a file; 0 if it is gone: the program of an act that was killed may still
    be at its last batch."""
    try:
        return Path(os.fsdecode(path)).stat().st_ino
    except FileNotFoundError:
        return 0


def _die_at(step: int | None) -> None:
    """Have this process kill itself at a step of the act; None: it is killed by the test."""
    if step is None:
        return
    left = [step]

    def dying(method: Callable[..., Any]) -> Callable[..., Any]:
        def called(*words: Any, **more: Any) -> Any:
            left[0] -= 1
            if left[0] == -1:
                os.kill(os.getpid(), signal.SIGKILL)
            answer = method(*words, **more)
            left[0] -= 1
            if left[0] == -1:
                os.kill(os.getpid(), signal.SIGKILL)
            return answer

        return called

    for owner, name in ((Journal, "flush"), (_ProgramHands, "give"), (_ProgramHands, "answer")):
        setattr(owner, name, dying(getattr(owner, name)))


def _require_agreement(
    scratch: Scratch, plan: Path, before: dict[bytes, int], history: History
) -> None:
    """Compare the audit with the disk, file by file."""
    left = scratch.left()
    aside = {_inode(path) for path in left if b".seatrial-aside" in path}
    with open_plan(plan) as opened:
        for batch in opened.batches():
            if batch.number in history.interrupted:
                continue  # it may be at any of its files: the audit says that it is under way
            letters = history.fates(batch.number, len(batch)).tolist()
            for path, letter in zip(batch.paths, letters, strict=True):
                whole = os.fsencode(scratch.root) + b"/" + path
                fate = chr(letter) if letter else ""
                assert (whole in left) == (fate in ("", "u")), (fate, whole)
                assert (before[whole] in aside) == (fate == "a"), (fate, whole)


def test_two_at_once_are_one(scratch: Scratch) -> None:
    scratch.files(20)
    plan = scratch.plan()
    with (
        act.open_journal(plan),
        pytest.raises(UsageError, match="another process carries it out"),
    ):
        scratch.do(plan)
    assert scratch.do(plan).counts == {"r": 16}


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


# ---- swapped -------------------------------------------------------------------------------------

SWAPS = 100_000
NAMES = 300

SWAPPER = """
import ctypes, sys
libc = ctypes.CDLL(None, use_errno=True)
one, other = (name.encode() for name in sys.argv[1:3])
for number in range(int(sys.argv[3])):
    if libc.renameat2(-100, one, -100, other, 2):
        sys.exit(f"no exchange: {ctypes.get_errno()}")
"""


@pytest.mark.parametrize("way", WAYS)
def test_nothing_outside_dies_in_a_race_of_swaps(
    scratch: Scratch, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A user exchanges a parent for a link to a victim, a hundred thousand times, while files are
    removed below it. The names in the victim are hard links of the very files of the plan: they
    would pass each comparison, so opening beneath the root alone protects them."""
    use(way, monkeypatch)
    victim, inside = scratch.folder / "victim/sub", scratch.root / "ann/d/sub"
    for folder in (victim, inside):
        folder.mkdir(parents=True)
    for number in range(NAMES):
        (victim / f"f{number}").write_text("x")
    (scratch.root / "ann/evil").symlink_to(victim.parent)
    swapped = [str(scratch.root / "ann" / name) for name in ("d", "evil")]
    counts: Counter[str] = Counter()
    rounds = 0
    with opened_folder(inside) as real, opened_folder(victim) as outside:
        swapper = subprocess.Popen([sys.executable, "-c", SWAPPER, *swapped, str(SWAPS)])
        try:
            while swapper.poll() is None:
                rounds += 1
                counts += _one_round(scratch.root, real, outside)
        finally:
            swapper.kill()
            assert swapper.wait() == 0
        assert len(names_in(outside)) == NAMES
    assert rounds > 2 and counts["r"] and counts["c"], (rounds, counts)


def _one_round(root: Path, real: int, outside: int) -> Counter[str]:
    """Put the files back, and remove them as they are found, while folders are exchanged."""
    for name in set(names_in(outside)) - set(names_in(real)):
        os.link(name, name, src_dir_fd=outside, dst_dir_fd=real)
    counts: Counter[str] = Counter()
    with open_root(str(root)) as opened:
        found = list(Walk(opened.descriptor))
        for _ in range(5):
            with hands(opened.descriptor, Deed("remove")) as removing:
                for batch in found:
                    batch.entries = batch.entries.copy()
                    batch.entries["take"] = [path.startswith(b"ann/d/") for path in batch.paths]
                    removing.give(batch)
                    counts.update(removing.answer().letters.decode())
    return counts
