"""Plans of a purge are carried out, and taken back; what changed since the plan stays."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import stat
import struct
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.errors import JournalError, SeatrialError, UsageError
from seatrial.files import names_in
from seatrial.journal.journal import Journal
from seatrial.plugins.purge import act, files_program
from seatrial.plugins.purge.act import History, Wish
from seatrial.plugins.purge.files_program import Walk, open_root
from seatrial.plugins.purge.plan_file import open_plan
from seatrial.plugins.purge.policy import Policy
from tests.plugins.purge.scratch import Scratch, age


@pytest.fixture
def scratch(tmp_path: Path) -> Scratch:
    return Scratch(tmp_path)


WAYS = ("beneath", "steps", "python")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """The C program with openat2, without it, and Python in place of it."""
    use(request.param, monkeypatch)
    return str(request.param)


def use(way: str, patch: pytest.MonkeyPatch) -> None:
    patch.setenv(files_program.OPENING, way)
    patch.setenv(files_program.WITHOUT_PROGRAM, "1" if way == "python" else "0")


# ---- the story -----------------------------------------------------------------------------------


def test_a_plan_removes_what_is_old_and_nothing_else(scratch: Scratch) -> None:
    old, young = scratch.file("ann/old"), scratch.file("ann/young", days=3)
    scratch.policy()
    call = scratch.place.seatrial
    planned = call("purge", "plan", "purge.yaml", "-o", "p")
    assert planned.code == 0 and "takes 1 entries" in planned.out
    assert old.exists()
    refused = call("purge", "do", "p")
    assert refused.code == 2 and "--consent NAME" in refused.err and old.exists()
    done = call("purge", "do", "p", "--consent", "ann")
    assert done.code == 0 and "removed" in done.out, done.said
    assert not old.exists() and young.exists()
    audit = call("purge", "audit", "p", "--files")
    assert audit.out.startswith("r 20") and audit.out.rstrip().endswith("scratch/ann/old")
    told = json.loads(call("purge", "audit", "p", "--json").out)
    assert told["state"] == "done" and told["acts"][0]["consents"] == ["ann"]
    assert told["fates"] == {"removed": 1} and told["freed"] == 4096
    again = call("purge", "do", "p", "--consent", "ann")
    assert again.code == 2 and "carried out already" in again.err
    assert call("purge", "plan", "purge.yaml", "-o", "p").code == 2  # plans are kept


def test_without_a_compiler_python_does_it_and_says_so(scratch: Scratch) -> None:
    scratch.file("ann/old")
    scratch.policy()
    cache = {"XDG_CACHE_HOME": str(scratch.folder / "cache"), "CC": "/no/such/compiler"}
    scratch.place.env.update(cache)
    planned = scratch.place.seatrial("purge", "plan", "purge.yaml", "-o", "p")
    assert planned.code == 0 and "takes 1 entries" in planned.out
    assert "/no/such/compiler" in planned.err and "set CC to a C compiler" in planned.err


def test_a_full_disk_stops_the_act_which_then_goes_on(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The audit cannot be written: nothing more is removed than what was announced."""
    for number in range(20):
        scratch.file(f"ann/{number}")
    plan = scratch.plan(batch=2)
    write, left = Journal._write, [6]

    def full(journal: Journal) -> None:
        left[0] -= 1
        if left[0] < 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        write(journal)

    with monkeypatch.context() as patch:
        patch.setattr(Journal, "_write", full)
        with pytest.raises(JournalError, match="No space left"):
            scratch.do(plan)
    history = act.History(plan)
    told = sum(letter != "n" for letter in scratch.fates(plan).values())
    assert 20 - len(scratch.left()) <= told + 2 * len(history.interrupted) < 20
    assert act.resume(plan, Wish()).stopped == ""
    assert set(scratch.fates(plan).values()) <= {"r", "b"} and not scratch.left()


# ---- what stays ----------------------------------------------------------------------------------


def _touch(path: Path) -> None:
    path.touch()


def _read(path: Path) -> None:
    about = path.stat()
    os.utime(path, ns=(about.st_atime_ns + 5, about.st_mtime_ns))


def _other_mode(path: Path) -> None:
    path.chmod(0o600)


def _replace(path: Path) -> None:
    about = path.stat()
    path.rename(path.with_name("kept"))
    path.write_bytes(b"y" * about.st_size)
    os.utime(path, ns=(about.st_atime_ns, about.st_mtime_ns))


def _folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _link(path: Path) -> None:
    path.rename(path.with_name("kept"))
    path.symlink_to(path.with_name("kept"))


CHANGES: tuple[Callable[[Path], None], ...] = (
    _touch, _read, _other_mode, _replace, _folder, _link,
)  # fmt: skip


def test_a_file_that_changed_since_the_plan_stays(scratch: Scratch, way: str) -> None:
    for change in CHANGES:
        scratch.file(f"ann/{change.__name__}/f")
    gone, other = scratch.file("ann/gone"), scratch.file("ann/other")
    plan = scratch.plan()
    for change in CHANGES:
        change(scratch.root / "ann" / change.__name__ / "f")
    gone.unlink()
    done = scratch.do(plan)
    for change in CHANGES:
        assert (scratch.root / "ann" / change.__name__ / "f").exists(), change
    assert not other.exists()
    assert done.counts == {"c": len(CHANGES), "g": 1, "r": 1}


def test_nothing_outside_dies_where_a_parent_became_a_link(scratch: Scratch, way: str) -> None:
    """The way of RobinHood: the victim has a file of the same name, and even the same inode."""
    scratch.file("ann/d/f")
    scratch.file("ann/e/sub/f")
    scratch.file("ann/h/f")
    plan = scratch.plan()
    victim = scratch.folder / "victim"
    victim.mkdir()
    for name, leads_to in (("d", victim), ("e", victim / "e"), ("h", victim / "h")):
        (scratch.root / "ann" / name).rename(victim / name if name != "d" else victim / "moved")
        (scratch.root / "ann" / name).symlink_to(leads_to)
    (victim / "f").write_bytes(b"x" * 100)
    age(victim / "f", 100)
    before = {path for path in victim.rglob("*") if path.is_file()}
    assert len(before) == 4
    done = scratch.do(plan)
    assert {path for path in victim.rglob("*") if path.is_file()} == before
    assert done.counts == {"c": 3}


def test_hard_links_are_counted_once_and_all_names_go(scratch: Scratch, way: str) -> None:
    first = scratch.file("ann/a", size=5000)
    os.link(first, scratch.root / "ann/b")
    (scratch.root / "bob").mkdir()
    os.link(first, scratch.root / "bob/c")
    inside = scratch.file("ann/inside", size=5000)
    os.link(inside, scratch.folder / "outside")
    made = scratch.made()
    assert made.end.taken == 4 and made.end.bytes == 4 * 8192
    assert made.end.freed == 8192  # of three names; the fourth has another one elsewhere
    done = scratch.do(scratch.folder / "p")
    assert done.counts == {"r": 4} and done.freed == 8192
    assert (scratch.folder / "outside").exists() and not scratch.left()


def test_odd_names_and_sparse_files(scratch: Scratch, way: str) -> None:
    names = [b"a\nb", b"\xff\xfe", b" ", b"-rf", b"%41", b"x" * 255, "ä".encode(), b"'\";$(x)\\"]
    for name in names:
        scratch.file(b"ann/" + name)
    deep = scratch.file("/".join(["ann", *["d" * 250] * 3, "f"]))
    sparse = scratch.file("ann/sparse", size=0)
    os.truncate(sparse, 1 << 30)
    age(sparse, 100)
    made = scratch.made()
    assert made.end.taken == len(names) + 2
    assert made.end.freed == (len(names) + 1) * 4096  # a sparse file frees what it has
    plan = scratch.folder / "p"
    assert scratch.do(plan).counts == {"r": len(names) + 2}
    assert not scratch.left() and not deep.exists()
    listed = scratch.place.seatrial("purge", "audit", "p", "--files").out
    assert len(listed.splitlines()) == len(names) + 2  # a line each, whatever is in a name
    assert "a\\nb" in listed and "\\xff\\xfe" in listed


def test_a_deep_path_beyond_what_a_call_takes(scratch: Scratch, way: str) -> None:
    here = os.open(scratch.root, os.O_RDONLY)
    for _ in range(60):  # 60 * 101 > PATH_MAX
        os.mkdir("d" * 100, dir_fd=here)
        below = os.open("d" * 100, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    for name in ("old", "young"):
        os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=here))
    os.utime("old", (1, 1), dir_fd=here)
    try:
        assert scratch.do(scratch.plan()).counts == {"r": 1}
        assert names_in(here) == ["young"]
    finally:
        os.close(here)


def test_open_files_stay_unless_the_policy_says_so(scratch: Scratch) -> None:
    path = scratch.file("ann/open")
    with path.open("rb"):
        assert scratch.do(scratch.plan("p")).counts == {"k": 1}
        assert path.exists()
        assert scratch.do(scratch.plan("q", open_files="remove")).counts == {"r": 1}
    assert not path.exists()


def test_other_devices_are_not_entered(scratch: Scratch) -> None:
    if os.geteuid():
        pytest.skip("needs root, to mount")
    scratch.file("ann/old")
    (scratch.root / "mnt").mkdir()
    (scratch.root / "bound").mkdir()
    elsewhere = scratch.folder / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "f").write_text("x")
    age(elsewhere / "f", 100)
    scratch.policy()
    line = (
        f"mount -t tmpfs none {scratch.root}/mnt && mount --bind {elsewhere} {scratch.root}/bound"
        f" && touch -d '100 days ago' {scratch.root}/mnt/f"
    )
    for number, opening in enumerate(("beneath", "steps")):
        scratch.place.env[files_program.OPENING] = opening
        under = ["unshare", "-m", "sh", "-c", f'{line} && exec "$@"', "sh"]
        words = ("purge", "plan", "purge.yaml", "-o", f"p{number}", "--json")
        with scratch.place.start(*words, under=under) as driving:
            done = driving.end()
        told = json.loads(done.out)
        assert told["taken"] == 1 and told["seen"][0]["others"] == 2, done.said
    for name in ("mnt/f", "bound/f"):
        asked = ("purge", "why", "p0", f"{scratch.root}/{name}", "--format", "json")
        with scratch.place.start(*asked, under=under) as driving:
            told = json.loads(driving.end().out)
        assert "another mount than the root" in told["told"][-1], told
    (scratch.folder / "twin").mkdir()
    scratch.policy(roots=[str(scratch.root), f"{scratch.folder}/twin"])
    under[4] = f'mount --bind {scratch.root}/ann {scratch.folder}/twin && exec "$@"'
    for what in ("check", "plan"):
        with scratch.place.start("purge", what, "purge.yaml", under=under) as driving:
            done = driving.end()
        assert done.code and "are the same folder, or one in the other" in done.err, done.said


def test_why_follows_no_link(scratch: Scratch) -> None:
    scratch.file("ann/new", days=1)
    (scratch.root / "link").symlink_to("ann")
    plan = scratch.plan()
    told = scratch.place.seatrial("purge", "why", str(plan), f"{scratch.root}/link/new").out
    assert f"ask of {scratch.root}/ann/new" in " ".join(told.split())


def test_a_person_consents_once(scratch: Scratch) -> None:
    scratch.file("ann/f")
    plan = scratch.plan(consents=2)
    with pytest.raises(UsageError, match="2 must consent to it, and 1 did"):
        act.carry_out(plan, "do", Wish(consents=("ann", " Ann", "ann")))
    act.carry_out(plan, "do", Wish(consents=("ann", "ann ", "Bob  B", "bob b")))
    begun = History(plan).begun
    assert begun is not None and begun.consents == ["ann", "Bob B"]


ACL = "system.posix_acl_access"


def test_an_acl_goes_aside_and_comes_back(scratch: Scratch, way: str) -> None:
    """The list of the file, and a default one of its folder, in the form of the kernel
    (linux/posix_acl_xattr.h): one more user may read."""
    entries = ((0x01, 6, -1), (0x02, 4, 1234), (0x04, 4, -1), (0x10, 4, -1), (0x20, 0, -1))
    acl = struct.pack("<I", 2) + b"".join(struct.pack("<HHi", *entry) for entry in entries)
    path = scratch.file("ann/f")
    os.setxattr(path, ACL, acl)
    os.setxattr(path.parent, "system.posix_acl_default", acl)
    plan = scratch.plan(aside="7d")
    assert scratch.do(plan).counts["a"] == 1 and not path.exists()
    assert scratch.undo(plan).counts["u"] == 1
    assert os.getxattr(path, ACL) == acl
    assert scratch.do(scratch.plan("again")).counts["r"] == 1 and not path.exists()


def test_what_cannot_be_removed_is_an_error_and_capped(scratch: Scratch, way: str) -> None:
    """A folder that the purger may not change, as by an ACL: here it is immutable."""
    for number in range(20):
        scratch.file(f"ann/{number:02}/f")
    plan = scratch.plan(batch=5, caps={"errors": 7})
    folder = scratch.root / "ann"
    if subprocess.run(["chattr", "+i", *folder.glob("*")], capture_output=True).returncode:
        pytest.skip("this file system has no immutable folders")
    try:
        done = scratch.do(plan)
        assert "errors, more than" in done.stopped
        assert 8 <= done.counts["e"] < 20 and len(scratch.left()) == 20
    finally:
        subprocess.run(["chattr", "-i", *folder.glob("*")], check=True)
    assert act.resume(plan, Wish()).stopped == ""
    assert set(scratch.fates(plan).values()) == {"r"} and not scratch.left()


def test_a_quota_error_is_an_error_of_that_file(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Copy-on-write file systems need room to remove; those with quotas of folders refuse to move
    from one to another. This kernel has no quotas: the calls answer as it would."""
    use("python", monkeypatch)
    for name in ("a", "b", "c"):
        scratch.file(f"ann/{name}")
    unlink = os.unlink

    def full(name: Any, **more: Any) -> None:
        if name == b"b":
            raise OSError(errno.EDQUOT, os.strerror(errno.EDQUOT))
        unlink(name, **more)

    plan = scratch.plan("p")
    with monkeypatch.context() as patch:
        patch.setattr(os, "unlink", full)
        done = scratch.do(plan)
    assert done.counts == {"r": 2, "e": 1} and done.freed == 2 * 4096
    journal = act.journal_of(plan).read_text()
    assert os.strerror(errno.EDQUOT) in journal

    def refused(*words: Any) -> None:
        raise OSError(errno.EXDEV, os.strerror(errno.EXDEV))

    plan = scratch.plan("q", aside="14d")
    with monkeypatch.context() as patch:
        patch.setattr(files_program, "rename_without_replacing", refused)
        assert scratch.do(plan).counts == {"e": 1}
    assert scratch.left() == {os.fsencode(scratch.root / "ann/b")}


def test_what_may_not_be_read_is_named_and_not_in_the_plan(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    if os.geteuid():
        pytest.skip("needs root, to become somebody else")
    use("python", monkeypatch)  # the compiled program lies where that user may not read
    scratch.file("ann/f")
    scratch.file("bob/f")
    (scratch.root / "ann").chmod(0o700)
    scratch.root.chmod(0o755)
    with open_root(str(scratch.root)) as root:
        walk = Walk(root.descriptor)
        os.seteuid(65534)
        try:
            paths = [path for batch in walk for path in batch.paths]
        finally:
            os.seteuid(0)
    assert paths == [b"bob/f"]
    assert walk.seen.failed == 1 and walk.seen.failures == ["ann: Permission denied"]


def test_names_of_what_cannot_be_read_have_any_characters() -> None:
    text = "folders 1\nother_devices 0\nvanished 0\nerrors 1\nerror 13 a\u2028b\x85\n"
    seen = files_program._seen_of(text.encode() + b"\0\0")
    assert seen.failures == ["a\\xe2\\x80\\xa8b\\xc2\\x85: Permission denied"]


def test_the_calendar_ends_a_purge_between_two_batches(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        scratch.file(f"ann/{number}")
    plan = scratch.plan(batch=2)
    looks: list[float] = []

    def faults(policy: Policy, now: float, trials: Path) -> list[str]:
        looks.append(now)
        return ["the night is over"] if len(looks) > 4 else []

    with monkeypatch.context() as patch:
        patch.setattr(act, "_LOOK_S", -1.0)
        patch.setattr(Policy, "faults_now", faults)
        done = scratch.do(plan)
    assert done.stopped == "the night is over" and done.counts["r"] == 20 - len(scratch.left()) > 0
    assert scratch.left() and act.History(plan).ended is None
    act.resume(plan, Wish())
    assert not scratch.left() and act.History(plan).ended is not None


# ---- folders -------------------------------------------------------------------------------------


def test_folders_left_empty_go_only_if_the_policy_says_so(scratch: Scratch, way: str) -> None:
    scratch.file("ann/run/deep/deeper/f")
    scratch.file("ann/mixed/old")
    scratch.file("ann/mixed/young", days=1)
    (scratch.root / "ann/always_empty").mkdir()
    assert scratch.do(scratch.plan("p")).counts == {"r": 2}
    assert (scratch.root / "ann/run/deep/deeper").is_dir()
    scratch.file("ann/run/deep/deeper/f")
    scratch.file("bob/f")
    scratch.do(scratch.plan("q", empty_folders=True))
    assert not (scratch.root / "ann/run").exists()
    assert (scratch.root / "bob").is_dir()  # at the first level, where users begin
    assert (scratch.root / "ann/mixed/young").exists()
    assert (scratch.root / "ann/always_empty").is_dir()
    assert '"folders":["ann/run/deep/deeper","ann/run/deep","ann/run"]' in (
        act.journal_of(scratch.folder / "q").read_text()
    )


# ---- aside ---------------------------------------------------------------------------------------


def test_what_was_moved_aside_comes_back(scratch: Scratch, way: str) -> None:
    paths = [scratch.file(f"ann/run{i}/f", size=100 + i) for i in range(5)]
    paths[0].parent.chmod(0o751)
    os.link(paths[4], scratch.root / "ann/second")
    plan = scratch.plan(aside="14d", empty_folders=True)
    done = scratch.do(plan)
    assert done.counts == {"a": 6} and done.freed == 0 and done.until_ns
    assert not any(path.exists() for path in paths)
    hidden = scratch.root / ".seatrial-aside"
    assert stat.S_IMODE(hidden.stat().st_mode) == 0o700
    assert scratch.made("later").end.taken == 0  # what lies aside is not walked
    with pytest.raises(UsageError, match="is kept until"):
        act.carry_out(plan, "expire", Wish())
    paths[1].parent.mkdir()
    paths[1].write_text("new")
    one = scratch.undo(plan, paths[0])
    assert one.counts["u"] == 1 and paths[0].read_bytes() == b"x" * 100
    assert stat.S_IMODE(paths[0].parent.stat().st_mode) == 0o751
    rest = scratch.undo(plan)
    assert rest.counts == {"-": 1, "u": 4, "o": 1} and paths[1].read_text() == "new"
    paths[1].unlink()
    assert scratch.undo(plan).counts["u"] == 1
    assert [path.stat().st_size for path in paths] == [100, 101, 102, 103, 104]
    assert set(scratch.fates(plan).values()) == {"u"} and not hidden.exists()


def test_what_lies_aside_expires(
    scratch: Scratch, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = [scratch.file(f"ann/f{i}") for i in range(5)]
    plan = scratch.plan(aside="1s", batch=2)
    assert scratch.do(plan).counts == {"a": 5}
    assert scratch.undo(plan, paths[0]).counts["u"] == 1
    slot = next(iter(sorted((scratch.root / ".seatrial-aside").glob("*/*/*"))))
    slot.write_text("another file")  # what is not the plan's is not removed
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 10**10)
    done = act.carry_out(plan, "expire", Wish())
    assert done.counts["r"] == 3 and done.counts["c"] == 1 and done.freed == 3 * 4096
    assert scratch.left() == {os.fsencode(paths[0]), os.fsencode(slot)}


def test_each_file_has_the_time_at_which_it_was_told(scratch: Scratch) -> None:
    back, away = scratch.file("ann/back"), scratch.file("ann/away")
    plan = scratch.plan(aside="1d", times=["mtime"])
    call = scratch.place.seatrial
    scratch.do(plan)
    scratch.undo(plan, back)
    history = History(plan)
    with open_plan(plan) as opened:
        batch = next(opened.batches())
    fates, times = history.fates_and_times(0, 2)
    letters = fates.tobytes().decode()
    told = dict(zip(batch.names, zip(letters, times.tolist(), strict=True), strict=True))
    begun = [first.time for first, _ in history.acts]
    assert told[b"away"][0] == "a" and begun[0] < told[b"away"][1] < begun[1]
    assert told[b"back"][0] == "u" and told[b"back"][1] > begun[1]
    assert "put back" in call("purge", "why", "p", str(back)).out.splitlines()[-1]
    assert not away.exists()


def test_a_plan_from_the_future_is_refused(
    scratch: Scratch, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = scratch.file("ann/f", days=1)
    now = time.time_ns
    monkeypatch.setattr(time, "time_ns", lambda: now() + 365 * 86400 * 10**9)
    plan = scratch.plan()
    monkeypatch.undo()
    with pytest.raises(UsageError, match="ages cannot be trusted"):
        scratch.do(plan)
    monkeypatch.setattr(time, "time_ns", lambda: now() + 365 * 86400 * 10**9)
    monkeypatch.setattr(act._Doing, "run", lambda _: None)
    scratch.do(plan)  # it is killed, and the clock is set right
    monkeypatch.undo()
    with pytest.raises(UsageError, match="ages cannot be trusted"):
        act.resume(plan, Wish())
    assert path.exists()


def test_a_folder_for_what_is_aside_that_is_another_users_is_not_used(scratch: Scratch) -> None:
    path = scratch.file("ann/f")
    (scratch.root / ".seatrial-aside").mkdir(0o777)
    (scratch.root / ".seatrial-aside").chmod(0o777)
    with pytest.raises(UsageError, match="others may enter it"):
        scratch.do(scratch.plan(aside="14d"))
    assert path.exists()


# ---- what is refused -----------------------------------------------------------------------------


def test_bad_plans_and_changed_policies_are_refused(scratch: Scratch) -> None:
    path = scratch.file("ann/f")
    plan = scratch.plan()
    data = plan.read_bytes()
    torn = scratch.folder / "torn"
    for bad in (b"", b"hello\n", data[:-1], data[: len(data) // 2], data[:200] + data[201:]):
        torn.write_bytes(bad)
        with pytest.raises(UsageError, match=r"no plan|damaged"):
            scratch.do(torn)
    place = data.index(b"ann")
    torn.write_bytes(data[:place] + b"bob" + data[place + 3 :])
    with pytest.raises(UsageError, match="damaged"):
        scratch.do(torn)
    plan.chmod(0o666)
    with pytest.raises(UsageError, match="others may write"):
        scratch.do(plan)
    plan.chmod(0o600)
    act.journal_of(plan).parent.chmod(0o777)
    with pytest.raises(UsageError, match="others may write"):
        scratch.do(plan)
    act.journal_of(plan).parent.chmod(0o700)
    scratch.policy(whitelist=[{"folder": str(scratch.root / "ann")}])
    with pytest.raises(UsageError, match="has changed since"):
        scratch.do(plan)
    scratch.policy(consents=2)
    two = scratch.plan("two", consents=2)
    with pytest.raises(UsageError, match="2 must consent"):
        act.carry_out(two, "do", Wish(consents=("ann", "ann")))
    with pytest.raises(UsageError, match="nothing was moved aside"):
        scratch.undo(two)
    with pytest.raises(UsageError, match="no act of it is under way"):
        act.resume(two, Wish())
    scratch.do(scratch.plan("third"))
    (scratch.folder / "third").unlink()
    scratch.file("ann/f")
    with pytest.raises(UsageError, match="audit of another plan"):
        scratch.do(scratch.plan("third"))
    scratch.policy(consents=2)
    two.unlink()
    two = scratch.plan("two", consents=2)
    scratch.root.rename(scratch.folder / "moved")
    scratch.root.mkdir()
    with pytest.raises(UsageError, match="another folder"):
        act.carry_out(two, "do", Wish(consents=("ann", "bob")))
    assert (scratch.folder / "moved/ann/f").exists() and not path.exists()


def test_an_audit_that_is_damaged_is_no_answer(scratch: Scratch) -> None:
    for number in range(6):
        scratch.file(f"ann/{number}")
    plan = scratch.plan(batch=2)
    scratch.do(plan)
    journal = act.journal_of(plan)
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2] + lines[4:]))
    with pytest.raises(SeatrialError, match="line 3 damaged"):
        scratch.fates(plan)


def _without_lines(lines: list[bytes], number: int) -> bytes:
    return b"".join(lines[:number] + lines[number + 2 :])


def _flipped(lines: list[bytes], number: int) -> bytes:
    line = lines[number]
    return b"".join(
        [*lines[:number], line[:30] + bytes([line[30] ^ 1]) + line[31:], *lines[number + 1 :]]
    )


def _cut_off(lines: list[bytes], number: int) -> bytes:
    return b"".join(lines[:number]) + lines[number][:20]


def _emptied(lines: list[bytes], number: int) -> bytes:
    return b""


DAMAGES: tuple[Callable[[list[bytes], int], bytes], ...] = (
    _without_lines, _flipped, _cut_off, _emptied,
)  # fmt: skip


def _moved_aside(scratch: Scratch, name: str) -> Path:
    scratch.policy(aside="14d")
    call = scratch.place.seatrial
    assert call("purge", "plan", "purge.yaml", "-o", f"./{name}", "--batch", "2").code == 0
    assert call("purge", "do", f"./{name}", "--consent", "ann").code == 0
    return scratch.folder / name


def test_undo_needs_no_audit(scratch: Scratch) -> None:
    """The story by the real command: a damaged line, or an end that was cut off."""
    paths = [scratch.file(f"ann/{number}") for number in range(6)]
    before = scratch.left()
    call = scratch.place.seatrial
    for damage in (_flipped, _cut_off):
        plan = _moved_aside(scratch, damage.__name__)
        name = f"./{plan.name}"
        journal = act.journal_of(plan)
        damaged = damage(journal.read_bytes().splitlines(keepends=True), 2)
        journal.write_bytes(damaged)
        which = "line 3 damaged" if damage is _flipped else "its end is lost"
        for words in (("do", name, "--consent", "ann"), ("resume", name), ("expire", name)):
            refused = call("purge", *words)
            said = " ".join(refused.err.split())
            assert refused.code == 3 and which in said and f"undo {plan.name}" in said, refused.said
        asked = call("purge", "audit", name)
        assert asked.code == 3 and which in asked.err and "not known" in asked.out, asked.said
        assert not paths[0].exists()
        paths[1].write_text("new")
        done = call("purge", "undo", name)
        assert done.code == 1 and which in done.err and "journal-2.jsonl" in done.err, done.said
        assert paths[1].read_text() == "new"
        paths[1].unlink()
        assert call("purge", "undo", name, "--path", str(paths[1])).code == 0
        assert scratch.left() == before and paths[1].read_bytes() == b"x" * 100
        assert journal.read_bytes() == damaged
        told = call("purge", "audit", name, "--json")
        assert told.code == 3 and json.loads(told.out)["fates"] == {"put back": 6}, told.said
        for path in paths:
            age(path, 100)


def test_undo_of_a_damaged_audit_says_what_it_does_not_know(scratch: Scratch) -> None:
    for number in range(6):
        scratch.file(f"ann/{number}")
    scratch.policy()
    plan = scratch.plan(batch=2)
    scratch.do(plan)
    journal = act.journal_of(plan)
    lines = journal.read_bytes().splitlines(keepends=True)
    with act.open_journal(plan):
        journal.write_bytes(_emptied(lines, 0))
        with pytest.raises(UsageError, match="another process carries it out"):
            scratch.undo(plan)
    with open_plan(plan) as opened:
        slots = scratch.root / ".seatrial-aside" / opened.end.sha256[:16] / "0"
    slots.mkdir(0o700, parents=True)
    for folder in (slots.parent.parent, slots.parent):
        folder.chmod(0o700)
    for name in ("junk", "9" * 30, "2", "01"):  # what another put there stays
        (slots / name).touch()
    done = scratch.place.seatrial("purge", "undo", "./p")
    assert done.code == 3 and "6 entries do not lie aside" in done.err, done.said
    assert set(fates_in_part(plan)) == {"?"} and len(scratch.left()) == 4


def fates_in_part(plan: Path) -> str:
    history = History(plan, in_part=True)
    with open_plan(plan) as opened:
        batches = list(opened.batches())
    return "".join(history.fates(b.number, len(b)).tobytes().decode() for b in batches)


@settings(max_examples=20)
@given(st.sampled_from(DAMAGES), st.integers(0, 12), st.integers(0, 4), st.sampled_from(WAYS))
def test_whatever_the_damage_all_that_was_aside_is_back(
    tmp_path_factory: pytest.TempPathFactory,
    damage: Callable[[list[bytes], int], bytes],
    number: int,
    undone: int,
    way: str,
) -> None:
    scratch = Scratch(tmp_path_factory.mktemp("damaged"))
    paths = [scratch.file(f"ann/d{number // 3}/{number}", size=number) for number in range(8)]
    with pytest.MonkeyPatch.context() as patch:
        use(way, patch)
        plan = scratch.plan(batch=3, aside="14d", empty_folders=True)
        scratch.do(plan)
        if undone:
            scratch.undo(plan, *paths[:undone])
        journal = act.journal_of(plan)
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(damage(lines, number % len(lines)))
        scratch.undo(plan)
    assert [path.stat().st_size for path in paths] == list(range(8))
    assert not (scratch.root / ".seatrial-aside").exists()
    assert set(fates_in_part(plan)) <= {"u", "?"}


def test_sums_of_a_changed_plan_are_not_shown(scratch: Scratch) -> None:
    path = scratch.file("ann/f")
    plan = scratch.plan()
    data = plan.read_bytes()
    place = data.rindex(b"ann", 0, data.rindex(b'"taken"'))
    plan.write_bytes(data[:place] + b"bob" + data[place + 3 :])
    for words in (("show", "./p"), ("why", "./p", str(path)), ("mail", "./p"), ("audit", "./p")):
        refused = scratch.place.seatrial("purge", *words)
        assert refused.code == 2 and "the plan is damaged" in refused.err, refused.said
        assert not refused.out


# ---- the same by C and Python --------------------------------------------------------------------

NAMES = st.binary(min_size=1, max_size=12).filter(
    lambda name: not {0, 47} & set(name) and name not in (b".", b"..")
)
TREES = st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=12)


@settings(max_examples=20)
@given(TREES)
def test_c_and_python_see_the_same(tmp_path_factory: pytest.TempPathFactory, tree: Any) -> None:
    top = tmp_path_factory.mktemp("tree")
    for steps in tree:
        with contextlib.suppress(OSError):  # a name may be a file where a path needs a folder
            path = top.joinpath(*map(os.fsdecode, steps))
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()
    seen = []
    for way in WAYS:
        with pytest.MonkeyPatch.context() as patch:
            use(way, patch)
            with open_root(str(top)) as root:
                walk = Walk(root.descriptor)
                rows = [
                    (path, *(entry[name] for name in ("ino", "size", "mtime", "ctime", "kind")))
                    for batch in walk
                    for path, entry in zip(batch.paths, batch.entries, strict=True)
                ]
                seen.append((sorted(rows), walk.seen.folders))
    assert seen[0] == seen[1] == seen[2]


def test_a_plan_reads_as_it_was_written(scratch: Scratch) -> None:
    paths = {os.fsencode(path) for path in scratch.files(300, per_folder=7)}
    plan = scratch.plan(batch=37)
    with open_plan(plan) as opened:
        batches = list(opened.batches())
        assert [batch.number for batch in batches] == list(range(opened.end.batches))
        root = os.fsencode(scratch.root)
        found = [root + b"/" + path for batch in batches for path in batch.paths]
    assert max(map(len, batches)) == 37
    assert len(set(found)) == len(found) == opened.end.taken == 240 and set(found) < paths
