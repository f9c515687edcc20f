"""README.md: its commands print what it shows, figures and names of this host aside."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

from tests.programs import LONG_S, Workplace

README = (Path(__file__).parents[1] / "README.md").read_text()
TEST = re.compile(r"^```yaml\n# (mine/\S+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
# A command behind `$`, and all lines that are indented as it is: what it prints.
SHOWN = re.compile(r"^    \$ seatrial (.*)\n((?:    .*\n|\n(?=    ))+)", re.MULTILINE)


def masked(text: str) -> list[str]:
    """The lines of an output without what differs from host to host and from run to run."""
    text = re.sub(r"@[\w+-]+", "@TOOLCHAIN", text)
    text = re.sub(r"(?<=runs on )\S+", "HOST", text)
    text = re.sub(r"\d[\d.]*", "#", text)
    text = re.sub(r"# (?:us|ms|s)\b", "# TIME", text)
    return [" ".join(line.split()) for line in text.strip().splitlines()]


def test_figures_and_names_of_the_host_are_masked() -> None:
    one = "first: 10 runs on vm\npass copy{block=4096}@gcc-openmpi  21.9 ms  time 0.0153 s\n"
    other = "first: 10 runs on n1\npass copy{block=4096}@default  1.02 s  time 1.1 s\n"
    assert masked(one) == masked(other)


def as_shown(folder: Path) -> None:
    folder.mkdir()
    (name, content), *others = TEST.findall(README)
    assert not others
    (folder / name).parent.mkdir(parents=True)
    (folder / name).write_text(content)
    place = Workplace(folder)
    commands = SHOWN.findall(README)
    assert len(commands) == 2
    for command, text in commands:
        with place.start(*shlex.split(command)) as driving:
            done = driving.end(2 * LONG_S)
        printed, shown = masked(done.out), masked(text)
        if "..." in shown:
            cut = shown.index("...")
            rest = shown[cut + 1 :]
            left_out = printed[cut : len(printed) - len(rest)]
            assert set(left_out) <= {shown[cut - 1]}, f"{command}\n{done.said}"
            printed, shown = printed[:cut] + printed[-len(rest) :], shown[:cut] + rest
        assert printed == shown, f"{command}\n{done.said}"


def test_it_shows_what_its_commands_print(tmp_path: Path) -> None:
    # Its verdict on two block sizes holds on a host that is not too busy.
    for number in range(2):
        with contextlib.suppress(AssertionError):
            return as_shown(tmp_path / str(number))
    return as_shown(tmp_path / "last")
