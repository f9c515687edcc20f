"""Work that may hang (a file system, a long copy), done in a thread that nobody waits for when the
driver leaves, as the threads of an executor are."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T], name: str) -> T:
    """Do it in a thread of its own; what it raises is raised here."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # from here on it always takes a result

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)
