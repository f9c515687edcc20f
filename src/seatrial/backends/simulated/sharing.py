"""File systems that runs share: how much longer a run takes when others use its servers.

The model is *processor sharing with a full-speed limit*, in its fluid form. A metadata target
serves up to C open files at full speed. With a load of L > C all its users share it equally, so
that each gets C/L of its demand; the object targets of a file system likewise share their bandwidth
W among a demand of B. A run that spends the share m of its time on its metadata target, the share o
on the objects, and the rest on neither, then has the speed

    1 / ((1 - m - o) + m max(1, L/C) + o max(1, B/W))

and ends when its speed over time adds up to its elapsed time without others.

Reasons for this model: a file server has no queue that is served in order; it works on all requests
at once. The standard model of that is egalitarian processor sharing (M/G/1-PS). Its mean response
time depends on the sizes of requests only by their mean (insensitivity), and only the mean is known
here. Runs issue millions of requests, so that fluctuations average out, and the fluid limit
remains. Waiting below capacity (the 1/(1 - rho) of the queue) is not modelled: measured elapsed
times contain it.

Runs with the same shares on the same target always have the same speed. They form a *group* that
counts its progress once: a run ends when the progress has grown by its elapsed time. A change of
load costs one step for each group, not for each run, and none where speeds stay the same.
"""

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

from seatrial.backends.simulated.jobs import JobRecord
from seatrial.machine.model import FileSystem, Machine
from seatrial.machine.rehearsal_model import FileSystemModel
from seatrial.units import SECOND_NS

_ROUNDING = 1 + 1e-9  # loads are sums of floats

At = Callable[[int, Callable[..., None], object], None]


def stretch(load: float, capacity: float) -> float:
    """Return the factor by which work on a server takes longer; 1 where the capacity is unknown
    (0)."""
    return load / capacity if capacity and load > capacity else 1.0


def speed(metadata: float, objects: float, slow_metadata: float, slow_objects: float) -> float:
    """Return the speed of a run, by its shares and the factors of its servers."""
    return 1 / (1 - metadata - objects + metadata * slow_metadata + objects * slow_objects)


class SpeedGroup:
    """Runs of one speed. ``progress`` is in ns of elapsed time without others."""

    def __init__(
        self, shared: "SharedFileSystem", target: "SimulatedTarget", metadata: float, objects: float
    ) -> None:
        self.shared, self.target = shared, target
        self.metadata, self.objects = metadata, objects
        self.speed = speed(metadata, objects, target.slow, shared.slow)
        self.progress = 0.0
        self.since = 0
        self.ends: list[tuple[float, int, JobRecord]] = []
        self.planned = -1  # time of the next planned end

    def move(self, now: int) -> None:
        """Add the progress since the last call."""
        self.progress += (now - self.since) * self.speed
        self.since = now

    def next_end(self) -> int | None:
        """Return the time (ns) at which the next run of the group ends if nothing changes."""
        while self.ends and self.ends[0][2].over:
            heappop(self.ends)
        if not self.ends:
            self.progress = 0.0  # to keep the precision
            return None
        left = self.ends[0][0] - self.progress
        return self.since + math.ceil(left / self.speed) if left > 0 else self.since


class TargetLoad(NamedTuple):
    """The load of a metadata target: the ``highest``, by Seatrial's runs and others, and the share
    of the time in which it was ``above`` the ``safe`` load (0: unknown)."""

    file_system: str
    target: str
    highest: float
    safe: float
    above: float


class SimulatedTarget:
    """A metadata target: its load by Seatrial's runs (``own``) and by others (``production``), and
    its groups."""

    def __init__(self, safe: float) -> None:
        self.own = self.production = 0.0
        self.slow = 1.0
        self.groups: dict[tuple[float, float], SpeedGroup] = {}
        self.safe = safe
        self._highest = 0.0  # of loads that lasted
        self._latest = 0.0
        self._changed = 0  # when the load changed last
        self._above = 0  # ns above the safe load, until then

    @property
    def load(self) -> float:
        return self.own + self.production

    @property
    def highest(self) -> float:
        """The highest load so far, except loads that lasted no time."""
        return self._highest if self._highest > self._latest else self._latest

    def watch(self, now: int) -> None:
        """Record a change of the load."""
        if now > self._changed:
            self._above = self.above(now)
            if self._latest > self._highest:
                self._highest = self._latest
            self._changed = now
        self._latest = self.own + self.production

    def above(self, now: int) -> int:
        """Return the time in ns for which the load was above the safe load."""
        is_above = self.safe and self._latest > self.safe * _ROUNDING
        return self._above + (now - self._changed if is_above else 0)


class SharedFileSystem:
    """A file system: its metadata targets, and the bandwidth that runs ask of its objects."""

    def __init__(self, file_system: FileSystem, model: FileSystemModel) -> None:
        names = [target.name for target in file_system.metadata_targets] or [""]
        self.targets = {name: SimulatedTarget(file_system.safe_load) for name in names}
        self.first = next(iter(self.targets.values()))
        self.model = model
        self.asked = 0.0
        self.slow = 1.0


class FileSystems:
    """The file systems of a machine. ``at`` plans events; ``ended`` is called at the end of the
    script of a run."""

    def __init__(
        self, machine: Machine, start: int, at: At, ended: Callable[[JobRecord], None]
    ) -> None:
        self._at, self._ended, self._start = at, ended, start
        self._shared = {
            name: SharedFileSystem(each, each.rehearsal or FileSystemModel())
            for name, each in machine.file_systems.items()
        }
        self._entered = 0
        for shared in self._shared.values():
            for level in shared.model.production:
                when = start + round(level.since.seconds * SECOND_NS)
                at(when, self._produce, (shared, when, level.target, level.load))

    def load(self, name: str, target: str = "") -> float:
        """Return the open files on a target, of Seatrial's runs and others; without a target, the
        highest number."""
        targets = self._shared[name].targets
        asked = [targets[target]] if target else targets.values()
        return max([each.load for each in asked])

    def loads(self, now: int) -> list[TargetLoad]:
        """Return the load of each target so far."""
        span = max(1, now - self._start)
        return [
            TargetLoad(name, target, each.highest, each.safe, each.above(now) / span)
            for name, shared in self._shared.items()
            for target, each in shared.targets.items()
        ]

    def enter(self, now: int, record: JobRecord) -> bool:
        """Start the script of a run on its file system. Returns False where that is unknown. A run
        without a target is on the first one."""
        job = record.job
        shared = self._shared.get(job.file_system)
        if shared is None:
            return False
        target = shared.targets.get(job.target, shared.first)
        key = (job.metadata, job.objects)
        if (group := target.groups.get(key)) is None:
            group = target.groups[key] = SpeedGroup(shared, target, *key)
        record.group = group
        group.move(now)
        if not job.hangs:
            self._entered += 1
            heappush(group.ends, (group.progress + record.elapsed, self._entered, record))
        self._lay(now, group, job.opens, job.bandwidth)
        self._plan(group)
        return True

    def leave(self, now: int, record: JobRecord) -> None:
        """End the script of a run."""
        group, record.group = record.group, None
        if group is not None:
            self._lay(now, group, -record.job.opens, -record.job.bandwidth)

    def _produce(self, what: tuple[SharedFileSystem, int, str, float]) -> None:
        """Change the load by others."""
        shared, now, name, load = what
        for target in [shared.targets[name]] if name else shared.targets.values():
            target.production = load
            self._weigh(now, shared, target)

    def _lay(self, now: int, group: SpeedGroup, opens: float, bandwidth: float) -> None:
        shared = group.shared
        group.target.own += opens
        if opens:
            self._weigh(now, shared, group.target)
        if bandwidth:
            shared.asked += bandwidth
            slow = stretch(shared.asked, shared.model.objects * shared.model.bandwidth)
            if slow != shared.slow:
                shared.slow = slow
                for target in shared.targets.values():
                    self._change(now, target)

    def _weigh(self, now: int, shared: SharedFileSystem, target: SimulatedTarget) -> None:
        target.watch(now)
        slow = stretch(target.own + target.production, shared.model.metadata)
        if slow != target.slow:
            target.slow = slow
            self._change(now, target)

    def _change(self, now: int, target: SimulatedTarget) -> None:
        """Update the speeds of the groups of a target."""
        for group in target.groups.values():
            new = speed(group.metadata, group.objects, target.slow, group.shared.slow)
            if new != group.speed:
                group.move(now)
                group.speed = new
                self._plan(group)

    def _plan(self, group: SpeedGroup) -> None:
        end = group.next_end()
        if end is not None and end != group.planned:
            self._at(end, self._due, (group, end))
        group.planned = -1 if end is None else end

    def _due(self, what: tuple[SpeedGroup, int]) -> None:
        """End the next run of a group, unless the plan for that has changed."""
        group, now = what
        if now != group.planned:
            return
        group.move(now)
        ends = group.ends
        while ends and (ends[0][2].over or ends[0][0] <= group.progress + 0.5):
            record = heappop(ends)[2]
            if not record.over:
                self._ended(record)
        self._plan(group)
