from __future__ import annotations

import os
import tempfile
from pathlib import Path

import pytest

from seatrial.execute.alerts import state_folder


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path / "tmp"))
    (tmp_path / "home").mkdir()
    (tmp_path / "tmp").mkdir(mode=0o1777)
    return tmp_path / "home"


def mode(path: Path) -> int:
    return path.stat().st_mode & 0o7777


def test_the_state_is_where_the_user_says_else_at_home(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert state_folder() == home / ".local/state/seatrial"
    assert mode(state_folder()) == 0o700
    monkeypatch.setenv("XDG_STATE_HOME", str(home / "mine"))
    assert state_folder() == home / "mine/seatrial"
    monkeypatch.setenv("XDG_STATE_HOME", "relative")
    assert state_folder() == home / ".local/state/seatrial"


def no_home(home: Path) -> Path:
    """Return the folder in /tmp that is left where a home cannot be written."""
    (home / ".local").write_text("no folder")
    return home.parent / f"tmp/seatrial-{os.getuid()}"


def test_where_home_cannot_be_written_it_is_a_folder_of_the_own_in_tmp(home: Path) -> None:
    place = no_home(home)
    assert state_folder() == place and mode(place) == 0o700
    assert state_folder() == place


@pytest.mark.parametrize("kind", ["open", "link", "file", "another's"])
def test_a_folder_that_another_user_may_have_made_is_not_used(
    home: Path, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    place = no_home(home)
    if kind == "link":
        (home.parent / "private").mkdir(mode=0o700)
        place.symlink_to(home.parent / "private")
    elif kind == "file":
        place.write_text("")
    else:
        place.mkdir(mode=0o700)
        if kind == "open":
            place.chmod(0o777)
        else:
            stranger = os.getuid() + 1
            place.rename(place.with_name(f"seatrial-{stranger}"))
            monkeypatch.setattr(os, "getuid", lambda: stranger)
    with pytest.raises(OSError, match="XDG_STATE_HOME"):
        state_folder()
