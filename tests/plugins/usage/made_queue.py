"""Made jobs of a machine whose batch system is known, so that what would have been is known, too.

    truth = MadeQueue(seed=1, load=1.02)
    truth.jobs()                          # as they would be imported
    truth.starts(total=1200)              # when they would have started on more nodes

The batch system knows more than is accounted for: shares of users, which no replay can see.
"""

from __future__ import annotations

import numpy as np
from msgspec.structs import replace

from seatrial.lazy import Bools, Ints
from seatrial.plugins.usage.jobs import UserJob
from seatrial.plugins.usage.simulation import Backfill, Closure, Workload, simulate

START = 1_262_304_000  # 2010-01-01 UTC
HOUR = 3600
DAY = 24 * HOUR


class MadeQueue:
    """Jobs of ``days`` on ``nodes``, at a load of their nodes. ``shares``: the deviation of the
    advantages of users, in s."""

    def __init__(
        self,
        *,
        seed: int,
        load: float,
        nodes: int = 1000,
        days: int = 60,
        jobs: int = 6000,
        shares: float = 0.0,
        backfill: Backfill = "easy",
        closures: tuple[Closure, ...] = (),
        name: str = "franklin",
    ) -> None:
        random = np.random.default_rng(seed)
        self.name, self.nodes, self.backfill, self.closures = name, nodes, backfill, closures
        self.size = np.minimum(
            random.choice([1, 4, 16, 64, 256], jobs, p=[0.35, 0.25, 0.2, 0.15, 0.05]), nodes
        )
        run = random.lognormal(np.log(2 * HOUR), 1.0, jobs)
        when = np.sort(random.uniform(0, days * DAY, jobs))
        by_day = 1 + 0.5 * np.sin(2 * np.pi * when / DAY)
        self.submitted = START + when.astype(np.int64)
        run *= by_day * load * nodes * days * DAY / (self.size * run * by_day).sum()
        self.run = np.clip(run, 30, 2 * DAY).astype(np.int64)
        rounds = HOUR * np.array([1, 2, 4, 8, 12, 24, 48])
        wanted = np.minimum(self.run * random.uniform(1.05, 3, jobs), 2 * DAY)
        self.limit = rounds[np.searchsorted(rounds, wanted)].astype(np.int64)
        self.user = random.integers(0, 40, jobs)
        self.advantage = (random.normal(0, 1, 40) * shares)[self.user]
        self.application = random.choice(["vasp", "g09", "gtc"], jobs, p=[0.5, 0.2, 0.3])
        self.premium = random.random(jobs) < 0.1
        self.boost = 0

    def only(self, chosen: Bools) -> MadeQueue:
        """Return a queue with some of the jobs."""
        part = object.__new__(MadeQueue)
        part.__dict__ = {
            key: value[chosen] if isinstance(value, np.ndarray) else value
            for key, value in self.__dict__.items()
        }
        return part

    def workload(self) -> Workload:
        none = np.full(len(self.run), -1)
        return Workload(
            self.submitted, self.size, self.run, self.limit, none, self.nodes, self.closures
        )

    def starts(
        self, total: int = 0, backfill: Backfill | None = None, closures: tuple[Closure, ...] = ()
    ) -> Ints:
        """Return when each job starts in truth, with another size, backfill or closures."""
        key = self.submitted - self.advantage - self.boost * self.premium
        work = replace(
            self.workload(), total=total or self.nodes, closures=closures or self.closures
        )
        return simulate(work, np.argsort(key, kind="stable"), backfill or self.backfill)

    def waits(self, total: int = 0) -> Ints:
        waited: Ints = self.starts(total) - self.submitted
        return waited

    def jobs(self, cores: int = 4) -> list[UserJob]:
        """Return the jobs as they are imported."""
        starts = self.starts()
        return [
            UserJob(
                machine=self.name,
                job=str(number),
                submitted=int(self.submitted[number]),
                started=int(starts[number]),
                ended=int(starts[number] + self.run[number]),
                limit_s=int(self.limit[number]),
                state="completed",
                user=f"u{self.user[number]}",
                queue="premium" if self.premium[number] else "regular",
                name=f"{self.application[number]}-{number}",
                executable=f"/opt/{self.application[number]}/bin/{self.application[number]}",
                nodes=int(self.size[number]),
                cores=cores * int(self.size[number]),
            )
            for number in range(len(self.run))
        ]
