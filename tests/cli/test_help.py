"""What `--help` shows: on a terminal of 80 columns no line is folded, and no sentence cut."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from seatrial.cli import COMMANDS, main, seatrial


def helps(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
    """The help of a command, and of those below it."""
    context = click.Context(command, info_name=name, terminal_width=80, max_content_width=80)
    yield name, command.get_help(context)
    if isinstance(command, click.Group):
        for below in command.list_commands(context):
            inner = command.get_command(context, below)
            assert inner is not None
            yield from helps(inner, f"{name} {below}")


HELPS = dict(helps(seatrial, "seatrial"))


@pytest.mark.parametrize("name", HELPS)
def test_a_help_fits_80_columns_and_cuts_no_sentence(name: str) -> None:
    for line in HELPS[name].splitlines():
        assert len(line) <= 80, line
        assert not line.endswith("...") or line.startswith("Usage: "), line


@pytest.mark.parametrize(
    ("typed", "said"),
    [("rum", "no command 'rum'; did you mean `run`?"), ("zzz", "no command 'zzz'; `seatrial --h")],
)
def test_a_command_that_is_none_is_told_with_the_nearest(
    typed: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("sys.argv", ["seatrial", typed])
    with pytest.raises(SystemExit, match="2"):
        main()
    assert said in capsys.readouterr().err
    assert typed not in COMMANDS
