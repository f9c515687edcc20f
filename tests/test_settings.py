from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.errors import InvalidFiles
from seatrial.model import settings
from seatrial.model.settings import origin, setting


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The settings of a user; those of the site are beside them."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(settings, "SITE_CONFIG", tmp_path / "site.yaml")
    folder = tmp_path / ".config" / "seatrial"
    folder.mkdir(parents=True)
    return folder


def test_the_user_comes_before_the_site(home: Path) -> None:
    assert setting("machine") == ""
    (home.parents[1] / "site.yaml").write_text("machine: frost\n")
    assert setting("machine") == "frost"
    (home / "config.yaml").write_text("{}\n")
    assert setting("machine") == "frost"
    (home / "config.yaml").write_text("machine: /m/lab.yaml\n")
    assert setting("machine") == "/m/lab.yaml"


@pytest.mark.parametrize("text", ["machines: frost\n", "machine: [1]\n", "{"])
def test_a_fault_in_the_settings_is_told_at_its_line(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(text)
    with pytest.raises(InvalidFiles, match=r"config.yaml:\d"):
        setting("machine")


def test_a_setting_has_its_place(home: Path) -> None:
    assert origin("store") == ("", "")
    (home / "config.yaml").write_text("# mine\nlog_level: info\nstore: postgresql://me@db/site\n")
    assert origin("store") == ("postgresql://me@db/site", f"{home / 'config.yaml'}:3")
    assert origin("log_level")[0] == "info"


@pytest.mark.parametrize("text", ["log_level: loud\n", "trials: [1]\n"])
def test_a_setting_of_no_use_is_refused(home: Path, text: str) -> None:
    (home / "config.yaml").write_text(text)
    with pytest.raises(InvalidFiles, match=r"config.yaml:1"):
        setting("name")
