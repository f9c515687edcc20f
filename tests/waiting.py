"""Wait for a condition; a wait in vain fails after 30 s and names what it waited for.

    until(path.exists, "the first run")
    await until_true(path.exists, "the first run")            # in a coroutine
    until(ended, "the whole trial", timeout=4 * LONG_S)       # a test that needs longer says so

``SEATRIAL_TEST_SLOWER=4`` makes every limit four times as long, for a machine that is slow.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable, Iterator

LONG_S = 30.0 * float(os.environ.get("SEATRIAL_TEST_SLOWER", "1"))
# A pause between two looks takes nine times as long as the look did, and a twentieth of the time
# waited so far, within these bounds.
SHORTEST_PAUSE_S, LONGEST_PAUSE_S = 0.01, 0.25


def until(
    condition: Callable[[], object],
    what: str,
    timeout: float = LONG_S,
    said: Callable[[], str] = lambda: "",
) -> None:
    """Wait until a condition holds. ``said`` is asked for a process's output when it never does."""
    for pause in _pauses(condition, what, timeout, said):
        time.sleep(pause)


async def until_true(condition: Callable[[], object], what: str, timeout: float = LONG_S) -> None:
    """Wait until a condition holds, while other tasks go on."""
    for pause in _pauses(condition, what, timeout, lambda: ""):
        await asyncio.sleep(pause)


def _pauses(
    condition: Callable[[], object], what: str, timeout: float, said: Callable[[], str]
) -> Iterator[float]:
    """Yield a pause (s) as often as the condition does not hold; raise AssertionError when the time
    is up. A look may read a whole journal or ask Slurm: then the process that is waited for gets
    most of the time."""
    start = time.monotonic()
    while True:
        began = time.monotonic()
        if condition():
            return
        now = time.monotonic()
        if now > start + timeout:
            output = f"; it said:\n{text}" if (text := said()) else ""
            raise AssertionError(f"waited {timeout:g} s in vain for {what}{output}")
        pause = max(9 * (now - began), (now - start) / 20)
        yield min(max(SHORTEST_PAUSE_S, pause), LONGEST_PAUSE_S)
