from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

import pytest

from seatrial.account import name_of
from seatrial.errors import TrialError
from seatrial.execute.requests import Request, ask, left, open_to_group, waiting
from seatrial.execute.trial_folder import TrialFolder

ME = name_of(os.getuid())


@pytest.mark.parametrize("what", ["a FIFO", "a link to /dev/zero", "a text", "a second name"])
def test_what_is_no_request_is_removed_and_holds_up_no_other(tmp_path: Path, what: str) -> None:
    folder = TrialFolder(tmp_path)
    ask(folder, Request(request="pause"))
    other = tmp_path / "requests" / "0.json"
    if what == "a FIFO":
        os.mkfifo(other)
    elif what == "a link to /dev/zero":
        other.symlink_to("/dev/zero")
    elif what == "a second name":  # of a file that another person wrote
        of_another = tmp_path / "of another"
        of_another.write_text('{"request":"abandon"}')
        other.hardlink_to(of_another)
    else:
        other.write_text("pause")
    asked = [each.request.request for each in waiting(folder)]
    assert asked == ["pause"]
    assert not os.path.lexists(other)


def test_the_name_of_who_asks_is_that_of_the_files_owner(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    file = tmp_path / ask(folder, Request(request="pause"))
    file.write_text('{"request":"pause","by":"the director"}')
    (one,) = waiting(folder)
    assert one.by == ME
    if os.getuid() == 0:
        os.chown(file, 61234, -1)
        (one,) = waiting(folder)
        assert one.by == "61234"


def test_requests_that_were_answered_and_to_pause_are_dropped_later(tmp_path: Path) -> None:
    folder = TrialFolder(tmp_path)
    ask(folder, Request(request="pause"))
    answered = ask(folder, Request(request="stop", text="a"))
    ask(folder, Request(request="stop", text="b"))
    assert [each.request.text for each in left(folder, {answered})] == ["b"]
    assert len(waiting(folder)) == 1


@pytest.mark.parametrize(("mode", "shared"), [(0o2775, True), (0o755, False), (0o2755, False)])
def test_members_of_a_group_that_shares_the_trials_may_ask(
    tmp_path: Path, mode: int, shared: bool
) -> None:
    if os.getuid() != 0:
        pytest.skip("needs a group that is not root's")
    trials = tmp_path / "trials"
    (trials / "t").mkdir(parents=True)
    os.chown(trials, -1, 61234)
    trials.chmod(mode)
    folder = TrialFolder(trials / "t")
    open_to_group(folder)
    assert folder.requests.exists() is shared
    ask(folder, Request(request="pause"))
    about = folder.requests.stat()
    sticky = bool(about.st_mode & stat.S_ISVTX)
    assert (bool(about.st_mode & stat.S_IWGRP), sticky) == (shared, shared)
    assert (about.st_gid == 61234) is shared


def test_on_a_full_disk_the_remedy_is_space(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = TrialFolder(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "rename", full)
    with pytest.raises(TrialError, match="free some space"):
        ask(folder, Request(request="pause"))
    assert not list(folder.requests.iterdir())
