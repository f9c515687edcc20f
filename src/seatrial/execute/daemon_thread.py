"""Run work that may hang, such as access to a file system, in daemon threads. Unlike the threads of
an executor, these do not delay the exit of the interpreter.
"""

import asyncio
import threading
from collections.abc import Callable
from concurrent.futures import Future
from typing import TypeVar

T = TypeVar("T")


async def run_in_thread(work: Callable[[], T], name: str) -> T:
    """Return what ``work`` returns, run in a thread of its own. Raises what ``work`` raises."""
    done: Future[T] = Future()
    done.set_running_or_notify_cancel()  # so that it can no longer be cancelled

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)

    threading.Thread(target=run, name=name, daemon=True).start()
    return await asyncio.wrap_future(done)
