"""Work that takes longer than a page may: done beside it, kept, done anew when it is old.

    desk = Desk(stir)
    shelf = Shelf()                              # what was made for one trial
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
FIRST_S = 0.04  # a page waits so long for what was never made: nobody knows how long it takes
QUICK_S = 0.15  # what took no longer is waited for
LEISURE = 29.0  # times its cost that something is left alone before it is made again


class Made(NamedTuple):
    """What was made of which version, when (monotonic, s), at which cost (s); ``error`` is why it
    could not be made."""

    version: Hashable
    at: float
    cost: float
    value: Any
    error: Exception | None


class Shelf(dict[str, Made]):
    """What was made for one trial, by name."""

    def __init__(self) -> None:
        super().__init__()
        self.tasks: dict[str, _Task] = {}

    def is_behind(self) -> bool:
        """Whether something is made for the first time, and was waited for in vain."""
        old = time.monotonic() - FIRST_S
        return any(task.asked < old and task.name not in self for task in [*self.tasks.values()])


class _Task:
    """Something to be made; ``make`` is the latest order. ``awaited``: somebody went on with none
    or an older one."""

    def __init__(self, shelf: Shelf, name: str) -> None:
        self.shelf = shelf
        self.name = name
        self.make: Callable[[], Any] = str
        self.version: Hashable = None
        self.awaited = False
        self.asked = time.monotonic()
        self.leisure = LEISURE
        self.done = threading.Event()


class Desk:
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
        shelf: Shelf,
        name: str,
        version: Hashable,
        make: Callable[[], Any],
        wait_s: float | None = None,
        leisure: float = LEISURE,
    ) -> Any | None:
        """What is on the shelf under this name, None where it is not there yet after ``wait_s``
        (FIRST_S). What is of another version is made anew, and waited for if that is quick; what
        was not is left alone for ``leisure`` times its cost. Raises what ``make`` raised."""
        wait_s = FIRST_S if wait_s is None else wait_s
        made = shelf.get(name)
        if made is None or made.version != version:
            due = 0.0
            if made is not None and made.cost > QUICK_S / (LEISURE + 1):
                due = made.at + leisure * made.cost
            task = self._ask(shelf, name, version, make, due)
            task.leisure = leisure
            if made is None:
                task.done.wait(wait_s)
            elif wait_s and made.cost <= QUICK_S and due <= time.monotonic():
                task.done.wait(max(wait_s, 2 * QUICK_S))
            with self._turn:
                made = shelf.get(name)
                task.awaited |= made is None or made.version != version
        if made is None:
            return None
        if made.error is not None:
            raise made.error
        return made.value

    def _ask(
        self, shelf: Shelf, name: str, version: Hashable, make: Callable[[], Any], due: float
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
                task.shelf[task.name] = Made(version, now, cost, value, error)
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
