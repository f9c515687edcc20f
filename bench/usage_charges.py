"""Charges and losses of a million jobs, beside reading the same rows from the store.

Jobs of 6,384 nodes with rates by date, kind of node, size and queue; each job has nodes of its own.
The limit is the time to read the columns that charges need.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import TypeVar

from tests.plugins.usage.kept import keep

from bench.measuring import Row, ratios, scratch
from seatrial.plugins.usage.charges import NEEDED, charge, load_charges
from seatrial.plugins.usage.jobs import Chosen, UserJob, read_jobs
from seatrial.plugins.usage.losses import Incident, lost_in
from seatrial.results.store.ingest import synced

T = TypeVar("T")
JOBS, NODES, YEAR, ROUNDS = 1_000_000, 6384, 365 * 86400, 3
START = 1_293_840_000
CHARGES = """
time_zone: America/Los_Angeles
node_kinds:
  dual: {nodes: "nid[00001-03000]", cores: 12}
  quad: {nodes: "nid[03001-06384]", cores: 24}
base:
  - {rate: 0, node_kind: quad, to: 2011-04-01}
  - {rate: 1/2, node_kind: quad, from: 2011-04-01, to: 2011-08-01}
  - {rate: 1}
factors:
  - {factor: 0.6, nodes: {above: 682}}
  - {factor: 2, queue: premium}
  - {factor: 0.5, queue: low}
"""


def measure() -> list[Row]:
    with scratch() as folder:
        (folder / "charges.yaml").write_text(CHARGES)
        keep(folder, list(_jobs(random.Random(1))), (START - 86400, START + YEAR + 86400))
        return [*_rows(folder)]


def _rows(folder: Path) -> Iterator[Row]:
    charges = load_charges(folder / "charges.yaml")
    incident = Incident("i", "hopper", START, START + 30 * 86400, "nid[00001-00100]", "c", "t")
    whole = Chosen(machine="hopper")
    with synced(folder / "store.sqlite", folder) as store:
        of_charges, of_losses = [], []
        for _ in range(ROUNDS):
            read, jobs = _timed(partial(read_jobs, store, whole, NEEDED))
            took, _ = _timed(partial(charge, charges, jobs))
            of_charges.append((took, read))
            chosen = Chosen(machine="hopper", since=incident.start, until=incident.end)
            read, jobs = _timed(partial(read_jobs, store, chosen))
            took, _ = _timed(partial(lost_in, incident, jobs, charges=charges))
            of_losses.append((took, read))
    for claim, pairs in (
        (f"charges of {JOBS:,} jobs by date, kind, size, queue", of_charges),
        ("losses of a month on 100 nodes, of the same machine", of_losses),
    ):
        ours, theirs = (min(each) for each in zip(*pairs, strict=True))
        beside = f"reading their rows {theirs:.2f} s"
        yield Row(claim, f"{ours:.2f} s", beside, ratios(pairs))


def _timed(work: Callable[[], T]) -> tuple[float, T]:
    began = time.process_time()
    done = work()
    return time.process_time() - began, done


def _jobs(chance: random.Random) -> Iterator[UserJob]:
    for number in range(JOBS):
        kind = chance.random() < 0.5
        nodes = min(int(chance.expovariate(1 / 20)) + 1, 2500)
        first = chance.randrange(1, 3001 - nodes) if kind else chance.randrange(3001, 6385 - nodes)
        start = START + chance.randrange(YEAR)
        yield UserJob(
            machine="hopper",
            job=str(number),
            submitted=start - chance.randrange(86400),
            started=start,
            ended=start + chance.randrange(1, 86400),
            state=chance.choices(["completed", "failed", "timeout"], [90, 7, 3])[0],
            user=f"u{chance.randrange(2000)}",
            account=f"m{chance.randrange(300)}",
            queue=chance.choice(["regular", "low", "premium"]),
            nodes=nodes,
            cores=nodes * (12 if kind else 24),
            node_list=f"nid[{first:05d}-{first + nodes - 1:05d}]"
            if nodes > 1
            else f"nid{first:05d}",
        )
