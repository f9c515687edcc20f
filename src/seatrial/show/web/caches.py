"""The cache of everything that the server keeps: bounded by number, by size and by age.

    cache: LruCache[str, bytes] = LruCache(max_items=64, max_size=32 << 20, size_of=len)
    cache.put("/runs", body)
    cache.get("/runs")                          # None if it was dropped

What was used longest ago is dropped first. The item that was put last is kept whatever its size.
"""

import heapq
import itertools
import math
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from concurrent.futures import Future
from time import monotonic
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct, field

K = TypeVar("K")
V = TypeVar("V")

ITEM_BYTES = 1000  # of a tuple, besides its arrays


class LruCache(Generic[K, V]):
    """Items by key, to be used by several threads. ``size_of`` gives the size of an item,
    ``max_age_s`` is the time in seconds after which an item is not returned any more. Items for
    whose key ``is_pinned`` is true are not dropped."""

    def __init__(
        self,
        max_items: float = math.inf,
        max_size: float = math.inf,
        max_age_s: float = math.inf,
        size_of: Callable[[V], int] = lambda _: 0,
        is_pinned: Callable[[K], bool] = lambda _: False,
    ) -> None:
        self.max_items = max_items
        self.max_size = max_size
        self.max_age_s = max_age_s
        self._size_of = size_of
        self._is_pinned = is_pinned
        self._items: OrderedDict[K, tuple[V, int, float]] = OrderedDict()  # value, size, time
        self._size = 0
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._items)

    def __contains__(self, key: K) -> bool:
        return key in self._items

    def get(self, key: K) -> V | None:
        """Return the item of this key, None if there is none or it is too old."""
        with self._lock:
            item = self._items.get(key)
            if item is None:
                return None
            if monotonic() - item[2] > self.max_age_s:
                self._remove(key)
                return None
            self._items.move_to_end(key)
            return item[0]

    def put(self, key: K, value: V) -> None:
        """Keep an item in place of an older one of the same key."""
        size = self._size_of(value)
        with self._lock:
            if key in self._items:
                self._remove(key)
            self._items[key] = (value, size, monotonic())
            self._size += size
            self._drop()

    def get_or_make(self, key: K, make: Callable[[], V]) -> V:
        """Return the item of this key; make and keep it if there is none."""
        value = self.get(key)
        if value is None:
            value = make()
            self.put(key, value)
        return value

    def measure(self) -> None:
        """Measure all items again, because they have grown, and drop what is too much."""
        with self._lock:
            for key, (value, _, put) in self._items.items():
                self._items[key] = (value, self._size_of(value), put)
            self._size = sum(size for _, size, _ in self._items.values())
            self._drop()

    def _remove(self, key: K) -> None:
        self._size -= self._items.pop(key)[1]

    def _drop(self) -> None:
        for key in list(self._items)[:-1]:
            if len(self._items) <= self.max_items and self._size <= self.max_size:
                return
            if not self._is_pinned(key):
                self._remove(key)


def array_bytes(value: Any) -> int:
    """Return about how many bytes the arrays in a tuple, or in tuples within it, take."""
    if isinstance(value, tuple):
        return sum(map(array_bytes, value)) + ITEM_BYTES
    return int(getattr(value, "nbytes", 0))


# ---- background ----------------------------------------------------------------------------------
#
# Work that takes longer than a page may wait for: done in other threads, and its results kept.
#
#     background = BackgroundCompute(on_update)
#     slots = ResultSlots(max_results=48)
#     background.latest(slots, "status", version, make)     # None: it is being made
#
# A page gets the latest result at once. When a newer one is there, ``on_update`` is called, and
# open pages ask again. A result that takes long is made so seldom that it costs a thirtieth of a
# core at most.


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
