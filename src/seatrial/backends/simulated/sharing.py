"""File systems that runs share: how much longer a run takes when others use its servers, too.

The model is *processor sharing with a full-speed limit*, in its fluid form. A metadata target
serves up to C open files at full speed. With a load of L > C it shares itself equally among all
that asks it, so that each gets C/L of what it would use; the object targets of a file system
likewise share their bandwidth W among a demand of B. A run that spends the share m of its time on
its metadata target and o on the objects, and the rest on neither, has then the speed

    1 / ((1 - m - o) + m max(1, L/C) + o max(1, B/W))

and ends when its speed over time adds up to its elapsed time with nobody beside it.

Why this one: a file server has no queue that is served in order, it works on all requests at once,
and egalitarian processor sharing (M/G/1-PS) is the standard model of that. Its mean response time
depends on the distribution of the requests' sizes by their mean alone (insensitivity), and the mean
is all that is known here. Runs issue millions of requests, so that their fluctuations average out:
what remains is the fluid limit. Waiting below capacity (the 1/(1 - rho) of the queue) is not
modelled: it is part of the elapsed times as they were measured.

Runs of the same shares on the same target have the same speed at all times. They form a *group*
that counts its progress once: a run ends when the progress has grown by its elapsed time. A change
of load costs a step for each group, not for each run, and nothing where the speeds stay the same.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from heapq import heappop, heappush
from typing import NamedTuple

from seatrial.backends.simulated.record import JobRecord
from seatrial.machine.model import FileSystem, Machine
from seatrial.machine.rehearsal_model import FileSystemModel
from seatrial.units import SECOND_NS, span_of

_ROUNDING = 1 + 1e-9  # loads are sums of floats

At = Callable[[int, Callable[..., None], object], None]


def stretch(load: float, capacity: float) -> float:
    """How many times as long work takes on a server; 1 where its capacity (0) is not known."""
    return max(1.0, load / capacity) if capacity else 1.0


def speed(metadata: float, objects: float, slow_metadata: float, slow_objects: float) -> float:
    """The speed of a run, from its shares and how much its servers stretch them."""
    return 1 / (1 - metadata - objects + metadata * slow_metadata + objects * slow_objects)


class SpeedGroup:
    """Runs of one speed. ``progress`` is in ns of elapsed time with nobody beside."""

    def __init__(
        self, shared: SharedFileSystem, target: SimulatedTarget, metadata: float, objects: float
    ) -> None:
        self.shared, self.target = shared, target
        self.metadata, self.objects = metadata, objects
        self.speed = speed(metadata, objects, target.slow, shared.slow)
        self.progress = 0.0
        self.since = 0
        self.ends: list[tuple[float, int, JobRecord]] = []
        self.planned = -1  # when the next end is planned

    def move(self, now: int) -> None:
        """Count the progress since the last time."""
        self.progress += (now - self.since) * self.speed
        self.since = now

    def next_end(self) -> int | None:
        """When the next run of the group ends if nothing changes."""
        while self.ends and self.ends[0][2].over:
            heappop(self.ends)
        if not self.ends:
            self.progress = 0.0  # so that its digits last
            return None
        return self.since + max(0, math.ceil((self.ends[0][0] - self.progress) / self.speed))


class TargetLoad(NamedTuple):
    """What a metadata target bore: the ``highest`` load, ours and that of others, and the share of
    the time in which it was ``above`` the ``safe`` one (0: that is not known)."""

    file_system: str
    target: str
    highest: float
    safe: float
    above: float


class SimulatedTarget:
    """A metadata target: what our runs and others lay on it, and the groups on it."""

    def __init__(self, safe: float) -> None:
        self.own = self.production = 0.0
        self.slow = 1.0
        self.groups: dict[tuple[float, float], SpeedGroup] = {}
        self.safe = safe
        self._highest = 0.0  # of the loads that lasted
        self._latest = 0.0
        self._changed = 0  # when the latest load came
        self._above = 0  # ns, up to when it was last above
        self._since: int | None = None  # when it came to be above what is safe

    @property
    def load(self) -> float:
        return self.own + self.production

    @property
    def highest(self) -> float:
        """The highest load so far, but for what comes and goes at one and the same time."""
        return max(self._highest, self._latest)

    def watch(self, now: int) -> None:
        """The load has changed."""
        load = self.own + self.production
        if now > self._changed:
            self._highest, self._changed = self.highest, now
        self._latest = load
        if self.safe and load > self.safe * _ROUNDING:
            if self._since is None:
                self._since = now
        elif self._since is not None:
            self._above += now - self._since
            self._since = None

    def above(self, now: int) -> int:
        """For how long it was above what is safe, in ns."""
        return self._above + (0 if self._since is None else now - self._since)


class SharedFileSystem:
    """A file system: its targets, and the bandwidth that is asked of its objects."""

    def __init__(self, file_system: FileSystem, model: FileSystemModel) -> None:
        names = [target.name for target in file_system.metadata_targets] or [""]
        self.targets = {name: SimulatedTarget(file_system.safe_load) for name in names}
        self.first = next(iter(self.targets.values()))
        self.model = model
        self.asked = 0.0
        self.slow = 1.0


class FileSystems:
    """The file systems of a machine. ``at`` plans events; ``ended`` is called when the script of a
    run ends."""

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
                when = start + round(span_of(level.since) * SECOND_NS)
                at(when, self._produce, (shared, when, level.target, level.load))

    def load(self, name: str, target: str = "") -> float:
        """Open files on a target now, ours and those of others; of none: the highest of all."""
        targets = self._shared[name].targets
        asked = [targets[target]] if target else targets.values()
        return max(each.load for each in asked)

    def loads(self, now: int) -> list[TargetLoad]:
        """What each target has borne so far."""
        span = max(1, now - self._start)
        return [
            TargetLoad(name, target, each.highest, each.safe, each.above(now) / span)
            for name, shared in self._shared.items()
            for target, each in shared.targets.items()
        ]

    def enter(self, now: int, record: JobRecord) -> bool:
        """The script of a run starts on its file system; False: it is on none that is known. A run
        that is placed nowhere is on the first target."""
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
        """The script of a run is over, one way or another."""
        group, record.group = record.group, None
        if group is not None:
            self._lay(now, group, -record.job.opens, -record.job.bandwidth)

    def _produce(self, what: tuple[SharedFileSystem, int, str, float]) -> None:
        """The load of others goes to another level."""
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
        slow = stretch(target.load, shared.model.metadata)
        if slow != target.slow:
            target.slow = slow
            self._change(now, target)

    def _change(self, now: int, target: SimulatedTarget) -> None:
        """The speeds of a target's groups are others from now on."""
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
        """The next run of a group has come to its end, if that plan still holds."""
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
