"""The page `docs/first-report.md`: its files and its commands, as a reader would type them."""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

import pytest

from tests.programs import COMMAND, LONG_S

PAGE = Path(__file__).parents[1] / "docs" / "first-report.md"

pytestmark = pytest.mark.needs("ssh-keygen")


def test_the_whole_way(tmp_path: Path) -> None:
    text = PAGE.read_text()
    fences = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)
    for name, content in fences:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(content)
    prose = re.sub(r"^```.*?^```$", "", text, flags=re.MULTILINE | re.DOTALL)
    commands = re.findall(r"^    (\S.*)$", prose, re.MULTILINE)
    assert len(commands) > 12
    path = f"{COMMAND.parent}:{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "HOME": str(tmp_path)}
    last = ""
    for command in commands:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=LONG_S,
            check=False,
        )
        assert done.returncode == 0, f"{command}\n{done.stdout}{done.stderr}"
        last = done.stdout
    assert "decision    accepted with reservations (1 reservation)" in last
    for side in ("vendor", "site"):
        assert re.search(rf"lab.html.sig.{side}: good, by the key \S+ of {side}\n", last), last
    report = (tmp_path / "lab.html").read_text()
    for words in (
        "A. Tester, The Centre",
        "4711-0815",
        "Sums a series whose limit is known",
        "equals 1.644929, tolerance 2e-05",
        "Spare node by March, vendor",
        "at least 1000 terms/s",
        "All 6 criteria are met.",
        "plan: lab",
    ):
        assert words in report, words
