"""Work that takes longer than a page may wait for: done in other threads, and its results kept.

    background = BackgroundCompute(on_update)
    slots = ResultSlots(max_results=48)
    background.latest(slots, "status", version, make)     # None: it is being made

A page gets the latest result at once. When a newer one is there, ``on_update`` is called, and open
pages ask again. A result that takes long is made so seldom that it costs a thirtieth of a core at
most.
"""

import heapq
import itertools
import math
import threading
import time
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from typing import Any, NamedTuple, TypeVar

from msgspec import Struct, field

from seatrial.web.state.cache import LruCache

WORKERS = 3
MAX_FIRST_WAIT_S = 0.04  # how long a page waits for a result that was never made
MAX_QUICK_S = 0.15  # a page waits for a result that took no longer than this
MIN_IDLE_FACTOR = 29.0  # pause between two computations, as a multiple of the time of one
IN_TIME_S = 3.0
MAX_STUCK = 8

_STUCK = threading.BoundedSemaphore(MAX_STUCK)

T = TypeVar("T")


class ComputedResult(NamedTuple):
    """A result: its version, when it was there (monotonic clock, s), how long it took (s), and the
    value, or the error that was raised in place of one."""

    version: Hashable
    time: float
    cost: float
    value: Any
    error: Exception | None


class ResultSlots:
    """The latest results by name, at most so many of them, and the computations that are under
    way. The result of a name that is being made anew is not dropped."""

    def __init__(self, max_results: float = math.inf) -> None:
        self.tasks: dict[Hashable, _Task] = {}
        self.results: LruCache[Hashable, ComputedResult] = LruCache(
            max_results, is_pinned=self.tasks.__contains__
        )

    def is_behind(self) -> bool:
        """Whether a first result takes longer than a page waits for it."""
        old = time.monotonic() - MAX_FIRST_WAIT_S
        tasks = [*self.tasks.values()]
        return any(task.requested < old and task.name not in self.results for task in tasks)


class _Task(Struct, eq=False):
    """A computation; ``make`` is the latest request. ``awaited``: a page went on without it."""

    slots: ResultSlots
    name: Hashable
    make: Callable[[], Any] = str
    version: Hashable = None
    idle_factor: float = MIN_IDLE_FACTOR
    awaited: bool = False
    requested: float = field(default_factory=time.monotonic)
    done: threading.Event = field(default_factory=threading.Event)


class BackgroundCompute:
    """The threads that compute. ``on_update`` is called after a result that a page did not wait
    for."""

    def __init__(self, on_update: Callable[[], None], workers: int = WORKERS) -> None:
        self._on_update = on_update
        self._workers = workers
        self._threads: list[threading.Thread] = []
        self._queue: list[tuple[float, int, _Task]] = []
        self._number = itertools.count()
        self._changed = threading.Condition()
        self._closed = False

    def latest(
        self,
        slots: ResultSlots,
        name: Hashable,
        version: Hashable,
        make: Callable[[], T],
        wait_s: float | None = None,
        idle_factor: float = MIN_IDLE_FACTOR,
    ) -> T | None:
        """Return the latest result of this name, None if there is none after ``wait_s`` (default:
        MAX_FIRST_WAIT_S). A result of another version is made anew: a quick one is waited for, a
        slow one is made at most every ``idle_factor`` times its cost. Raises what ``make``
        raised."""
        wait_s = MAX_FIRST_WAIT_S if wait_s is None else wait_s
        result = slots.results.get(name)
        if result is None or result.version != version:
            due = 0.0
            if result is not None and result.cost > MAX_QUICK_S / (MIN_IDLE_FACTOR + 1):
                due = result.time + idle_factor * result.cost
            with self._changed:
                task = slots.tasks.get(name)
                if task is None:
                    task = slots.tasks[name] = _Task(slots, name)
                    self._put(due, task)
                task.make, task.version, task.idle_factor = make, version, idle_factor
            if result is None:
                task.done.wait(wait_s)
            elif wait_s and result.cost <= MAX_QUICK_S and due <= time.monotonic():
                task.done.wait(max(wait_s, 2 * MAX_QUICK_S))
            with self._changed:
                result = slots.results.get(name)
                task.awaited |= result is None or result.version != version
        if result is None:
            return None
        if result.error is not None:
            raise result.error
        value: T = result.value
        return value

    def _put(self, due: float, task: _Task) -> None:
        heapq.heappush(self._queue, (due, next(self._number), task))
        self._changed.notify()
        if len(self._threads) < self._workers and not self._closed:
            thread = threading.Thread(target=self._run, name="background", daemon=True)
            self._threads.append(thread)
            thread.start()

    def _next(self) -> _Task | None:
        """Wait for the next task that is due; None once there is to be no more."""
        with self._changed:
            while not self._closed:
                left = self._queue[0][0] - time.monotonic() if self._queue else None
                if left is not None and left <= 0:
                    return heapq.heappop(self._queue)[2]
                self._changed.wait(left)
        return None

    def _run(self) -> None:
        while (task := self._next()) is not None:
            with self._changed:
                make, version = task.make, task.version
            start = time.monotonic()
            value, error = None, None
            try:
                value = make()
            except Exception as raised:
                error = raised
            now = time.monotonic()
            result = ComputedResult(version, now, now - start, value, error)
            with self._changed:
                awaited, task.awaited = task.awaited, False
                if task.version != version:
                    self._put(now + task.idle_factor * result.cost, task)
                else:
                    del task.slots.tasks[task.name]
                task.slots.results.put(task.name, result)
            task.done.set()
            if awaited and not self._closed:
                self._on_update()

    def close(self) -> None:
        """Begin no new work."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()


def in_time(work: Callable[[], T], instead: T, wait_s: float = IN_TIME_S) -> T:
    """Return what ``work`` returns, or ``instead`` if a file system that hangs keeps it longer than
    ``wait_s``. Its thread is then left behind; while too many are, nothing more is begun."""
    if not _STUCK.acquire(blocking=False):
        return instead
    done: Future[T] = Future()

    def run() -> None:
        try:
            done.set_result(work())
        except BaseException as error:
            done.set_exception(error)
        finally:
            _STUCK.release()

    threading.Thread(target=run, name="files", daemon=True).start()
    try:
        return done.result(wait_s)
    except TimeoutError:
        return instead
