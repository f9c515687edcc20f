"""Figures of pw.x, which prints its times as `5.61s`, `1m12.40s` or `1h 3m`."""

import re
from pathlib import Path

TIME = r" *(?:(\d+)h)? *(?:(\d+)m)? *(?:([\d.]+)s)?"


def read(run_directory: Path) -> dict[str, tuple[float, str, str]]:
    """Return the wall time of the self-consistent cycle, in seconds."""
    said = (run_directory / "stdout").read_text()
    found = re.search(rf"^ +electrons +:.* CPU{TIME} WALL", said, re.MULTILINE)
    assert found, "there is no line of `electrons` with its wall time"
    hours, minutes, seconds = (float(part or 0) for part in found.groups())
    return {"scf_time": (3600 * hours + 60 * minutes + seconds, "s", "lower")}
