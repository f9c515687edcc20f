"""Gates at which scripts of jobs wait until a test opens them, without a process for each look.

gate = place.folder / "gate"
place.test("wait", f"{wait_for(gate)}; echo ok")
...
gate.touch()
"""

from __future__ import annotations

import contextlib
import os
from pathlib import Path


def wait_for(gate: Path) -> str:
    """Return bash that waits until the file is there, or its folder is not: that of a test that has
    passed is removed."""
    ended = f"[ -e {gate} -o ! -d {gate.parent} ]"
    return f"until {ended}; do {pause(gate.parent, 0.05)}; done"


def pause(folder: Path, seconds: float) -> str:
    """Return bash that waits for some seconds. `sleep` would be a process, whose start takes
    longer than all else in such a loop; so bash reads from a pipe in the folder, where nobody
    writes."""
    pipe = folder / "nothing-comes"
    with contextlib.suppress(FileExistsError):
        os.mkfifo(pipe)
    return f"read -rt {seconds:g} <> {pipe} || :"  # it fails, as nothing comes
