"""A watchdog: runs that were given to the backend, and that the backend does not follow.

Nobody would report their ends, so the trial would wait for ever. None is expected: whatever becomes
of a submission, the backend reports each of its runs.
"""

import asyncio
from collections.abc import Callable, Collection

from seatrial.trial.alert_command import UNFOLLOWED
from seatrial.trial.tasks import Tasks
from seatrial.units import count

LOOK_SECONDS = 30.0


async def watch_followed(unfollowed: Callable[[], Collection[str]], tasks: Tasks) -> None:
    """Alert people, once for each run, of runs that were not followed at two looks. What the
    backend has just reported, and the driver has not received, is gone at the second look."""
    told: set[str] = set()
    before: set[str] = set()
    while True:
        await asyncio.sleep(LOOK_SECONDS)
        now = set(unfollowed())
        new = sorted((now & before) - told)
        before = now
        if new:
            told.update(new)
            text = (
                f"{count(len(new), 'run')} in flight, {', '.join(new[:3])} first: nothing follows "
                "the job, so its end would not be noticed; this is a fault of Seatrial: stop the "
                "driver (SIGTERM; jobs go on) and `seatrial resume` the trial"
            )
            tasks.alert(UNFOLLOWED, new[0], text)
