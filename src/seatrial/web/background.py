"""Work that takes longer than a page may: done beside it, kept, done anew when it is old.

    desk = BackgroundCompute(stir)
    shelf = ResultSlots()                              # what was made for one trial
    desk.have(shelf, "status", version, make)    # what is there; None: it is being made

A page never waits long: it gets what was made last, and when the new one is there, ``stir`` is
called, by which open pages learn of it. What takes long is made so seldom that it costs a thirtieth
of a core at most.
"""

from __future__ import annotations

import heapq
import itertools
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any, NamedTuple

WORKERS = 3
MAX_FIRST_WAIT_S = (
    0.04  # a page waits so long for what was never made: nobody knows how long it takes
)
MAX_QUICK_S = 0.15  # what took no longer is waited for
MIN_IDLE_FACTOR = 29.0  # times its cost that something is left alone before it is made again


class ComputedResult(NamedTuple):
    """What was made of which version, when (monotonic, s), at which cost (s); ``error`` is why it
    could not be made."""

    version: Hashable
    at: float
    cost: float
    value: Any
    error: Exception | None


class ResultSlots(dict[str, ComputedResult]):
    """What was made for one trial, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, _Task] = {}

    def is_behind(self) -> bool:
        """Whether something is made for the first time, and was waited for in vain."""
        old = time.monotonic() - MAX_FIRST_WAIT_S
        return any(task.asked < old and task.name not in self for task in [*self.tasks.values()])


class _Task:
    """Something to be made; ``make`` is the latest order. ``awaited``: somebody went on with none
    or an older one."""

    def __init__(self, shelf: ResultSlots, name: str) -> None:
        self.shelf = shelf
        self.name = name
        self.make: Callable[[], Any] = str
        self.version: Hashable = None
        self.awaited = False
        self.asked = time.monotonic()
        self.leisure = MIN_IDLE_FACTOR
        self.done = threading.Event()


class BackgroundCompute:
    """The threads that make it. ``stir`` is called after a piece that somebody went on without."""

    def __init__(self, stir: Callable[[], None], workers: int = WORKERS) -> None:
        self._stir = stir
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self._queue: list[tuple[float, int, _Task]] = []
        self._number = itertools.count()
        self._turn = threading.Condition()
        self._closed = False

    def have(
        self,
        shelf: ResultSlots,
        name: str,
        version: Hashable,
        make: Callable[[], Any],
        wait_s: float | None = None,
        leisure: float = MIN_IDLE_FACTOR,
    ) -> Any | None:
        """What is on the shelf under this name, None where it is not there yet after ``wait_s``
        (FIRST_S). What is of another version is made anew, and waited for if that is quick; what
        was not is left alone for ``leisure`` times its cost. Raises what ``make`` raised."""
        wait_s = MAX_FIRST_WAIT_S if wait_s is None else wait_s
        made = shelf.get(name)
        if made is None or made.version != version:
            due = 0.0
            if made is not None and made.cost > MAX_QUICK_S / (MIN_IDLE_FACTOR + 1):
                due = made.at + leisure * made.cost
            task = self._ask(shelf, name, version, make, due)
            task.leisure = leisure
            if made is None:
                task.done.wait(wait_s)
            elif wait_s and made.cost <= MAX_QUICK_S and due <= time.monotonic():
                task.done.wait(max(wait_s, 2 * MAX_QUICK_S))
            with self._turn:
                made = shelf.get(name)
                task.awaited |= made is None or made.version != version
        if made is None:
            return None
        if made.error is not None:
            raise made.error
        return made.value

    def _ask(
        self, shelf: ResultSlots, name: str, version: Hashable, make: Callable[[], Any], due: float
    ) -> _Task:
        with self._turn:
            task = shelf.tasks.get(name)
            if task is None:
                task = shelf.tasks[name] = _Task(shelf, name)
                self._put(due, task)
            task.make, task.version = make, version
        return task

    def _put(self, due: float, task: _Task) -> None:
        heapq.heappush(self._queue, (due, next(self._number), task))
        self._turn.notify()
        if len(self._threads) < self._workers and not self._closed:
            thread = threading.Thread(target=self._run, name="desk", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _next(self) -> _Task | None:
        """The next task that is due, waited for; None when the desk is closed."""
        with self._turn:
            while not self._closed:
                left = self._queue[0][0] - time.monotonic() if self._queue else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._queue)[2]
                self._turn.wait(left)
        return None

    def _run(self) -> None:
        while (task := self._next()) is not None:
            with self._turn:
                make, version = task.make, task.version
            began = time.monotonic()
            value, error = None, None
            try:
                value = make()
            except Exception as raised:
                error = raised
            now = time.monotonic()
            cost = now - began
            with self._turn:
                task.shelf[task.name] = ComputedResult(version, now, cost, value, error)
                awaited, task.awaited = task.awaited, False
                if task.version != version:
                    self._put(now + task.leisure * cost, task)
                else:
                    del task.shelf.tasks[task.name]
            task.done.set()
            if awaited and not self._closed:
                self._stir()

    def close(self) -> None:
        """No new work is begun."""
        with self._turn:
            self._closed = True
            self._turn.notify_all()
