"""A user's own files, for a user without a home, too: a number without a line in passwd, as in a
container."""

import pwd
from pathlib import Path

import pytest

from seatrial.account import at_home, home
from seatrial.api import open_results
from seatrial.cli.about import as_home
from seatrial.errors import UsageError
from seatrial.model.machine_file import described
from seatrial.model.settings import setting


@pytest.fixture
def homeless(monkeypatch: pytest.MonkeyPatch) -> None:
    def unknown(number: int) -> pwd.struct_passwd:
        raise KeyError(number)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", unknown)


def test_the_home_is_that_of_the_variable(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert home() == tmp_path
    assert at_home("~/a") == tmp_path / "a"
    assert at_home("/b") == Path("/b")


@pytest.mark.usefixtures("homeless")
def test_a_user_without_a_home_has_no_settings_and_no_machines_of_their_own() -> None:
    assert home() == Path("/nonexistent")
    assert at_home("~/a") == Path("~/a")
    assert setting("trials") == ""
    assert described()
    assert as_home("/nonexistent2/x") == "/nonexistent2/x"
    with pytest.raises(UsageError, match="no folder of trials"):
        open_results("~/trials")
