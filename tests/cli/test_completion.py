"""Completion in real shells: lines are typed, with a tab where people would press it."""

from __future__ import annotations

import contextlib
import os
import pty
import subprocess
import sys
from pathlib import Path

import pytest

from tests.waiting import until

# What is typed, and the line that it becomes.
LINES = {
    "seatrial resu\tni\t": "seatrial resume night-1 ",
    "seatrial show ni\t\t": "seatrial show night-1/xq5 ",
    "seatrial suspects --test=st\t": "seatrial suspects --test=stream ",
    "seatrial compare night-1:machine=x,too\t": "seatrial compare night-1:machine=x,toolchain=",
    "seatrial list plen\t": "seatrial list plenty/",
    "seatrial nosuch x\t": "seatrial nosuch x",
}
DUMP = "\x18"  # control-x: the line goes to a file, and is empty
BASH = r"""
source <(seatrial completion bash)
dump() { printf '%s\n' "$READLINE_LINE" >> lines; READLINE_LINE= READLINE_POINT=0; }
bind -x '"\C-x": dump'
"""
ZSH = r"""
mkdir functions && seatrial completion zsh > functions/_seatrial
fpath+=($PWD/functions)
autoload -Uz compinit && compinit -u -D
dump() { print -r -- "$BUFFER" >> lines; BUFFER= }
zle -N dump
bindkey '^X' dump
"""


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with a trial that has a test and a run; `seatrial` is found by its name."""
    trial = tmp_path / "trials/night-1"
    for file in ("trial.json", "scripts/stream.sh", "runs/stream/xq5/job.sh"):
        (trial / file).parent.mkdir(parents=True, exist_ok=True)
        (trial / file).touch()
    (tmp_path / "plenty").mkdir()
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:{os.environ['PATH']}")
    for name in ("HOME", "ZDOTDIR", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(tmp_path))
    monkeypatch.setenv("TERM", "dumb")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def typed(home: Path, *shell: str) -> list[str]:
    """What the lines become in an interactive shell on a terminal."""
    ours, its = pty.openpty()
    os.set_blocking(ours, False)
    process = subprocess.Popen(["setsid", "--ctty", *shell], stdin=its, stdout=its, stderr=its)
    os.close(its)
    said = b""

    def dumped() -> list[str]:
        nonlocal said
        with contextlib.suppress(BlockingIOError):  # a terminal that nobody reads stops the shell
            said += os.read(ours, 65536)
        assert process.poll() is None, said
        lines = home / "lines"
        return lines.read_text().splitlines() if lines.exists() else []

    try:
        for number, line in enumerate(LINES, 1):
            os.write(ours, (line + DUMP).encode())
            until(lambda n=number: len(dumped()) == n, line, said=lambda: repr(said))  # type: ignore[misc]
        assert b"no command" not in said, "errors are not printed into the line"
        return dumped()
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def test_bash(home: Path) -> None:
    (home / "rc").write_text(BASH)
    assert typed(home, "bash", "--rcfile", "rc", "-i") == list(LINES.values())


@pytest.mark.needs("zsh")
def test_zsh(home: Path) -> None:
    (home / ".zshrc").write_text(ZSH)
    assert typed(home, "zsh", "-i") == list(LINES.values())


@pytest.mark.needs("fish")
def test_fish(home: Path) -> None:
    """Fish tells the words that may follow, and descriptions; it puts no space behind / and =."""
    (home / "fish/completions").mkdir(parents=True)
    (home / "fish/completions/seatrial.fish").write_text("seatrial completion fish | source\n")
    offered = {
        "seatrial nosuch x": "",
        "seatrial resume ni": "night-1",
        "seatrial show ni": "night-1/",
        "seatrial suspects --test=st": "--test=stream",
        "seatrial compare night-1:machine=x,too": "night-1:machine=x,toolchain=",
        "seatrial list plen": "plenty/\tDirectory",
        "seatrial run --name": "--name\tTag of the trial; default: date, time and suite.",
    }
    script = "".join(f"complete -C '{line}'\necho\n" for line in offered)
    done = subprocess.run(["fish", "-c", script], capture_output=True, text=True, check=True)
    found = done.stdout.removesuffix("\n").split("\n")
    assert [each for each in found if each] == [each for each in offered.values() if each]
    assert not done.stderr
