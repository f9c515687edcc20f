"""Jobs of others: a million come in, a day more, and are read; `sqlite3 .import` of the same rows
beside.

    python -m bench usage_import
    python -m bench.usage_import --postgres      # in a private server's store, too
"""

from __future__ import annotations

import argparse
import random
import subprocess
import sys
from pathlib import Path

from bench.measuring import SEATRIAL, Row, Timing, machine_line, scratch, timed

JOBS, DAY = 1_000_000, 50_000
START = 1_700_000_000
READ = """
import resource, sqlite3, sys, time
from pathlib import Path
from seatrial.plugins.usage.jobs import Chosen, read_jobs
from seatrial.results.store.opening import open_store

place, wanted = sys.argv[1], sys.argv[2].split(",")
store = open_store(place if "://" in place else Path(place))
began = time.process_time()
jobs = read_jobs(store, Chosen(machine="bench"), wanted)
took, memory = time.process_time() - began, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
columns = ", ".join(f"c{i % 18}" for i in range(len(wanted)))
began = time.process_time()
rows = sqlite3.connect("plain.sqlite").execute(f"SELECT {columns} FROM jobs")
while rows.fetchmany(500):
    pass
print(took, memory / 1024, len(jobs), time.process_time() - began)
"""
FEW = "submitted,started,ended,suspended_s,asked,cores,user,state"
MANY = (
    "submitted,eligible,started,ended,suspended_s,limit_s,exit_code,nodes,cores,gpus,cpu_s,"
    "energy_j,asked,attempt,state,user,account,queue,name,executable"
)


def write_log(path: Path, jobs: int, first: int = 1, start: int = 0) -> int:
    """Write a log in the Standard Workload Format; return its last submission."""
    chance, time = random.Random(first), start
    with path.open("w") as file:
        file.write(f"; Version: 2.2\n; UnixStartTime: {START}\n")
        for number in range(first, first + jobs):
            time += chance.randrange(60)
            wait, run = int(chance.expovariate(1 / 4000)), int(chance.expovariate(1 / 9000))
            cores = 24 * 2 ** chance.randrange(12)
            status = chance.choice([1, 1, 1, 1, 0, 5])
            who = f"{chance.randrange(600)} {chance.randrange(90)} {chance.randrange(300)}"
            file.write(
                f"{number} {time} {wait} {run} {cores} {run * 0.9:.0f} -1 {cores} "
                f"{3600 * chance.randrange(1, 25)} -1 {status} {who} {chance.randrange(6)} "
                "-1 -1 -1\n"
            )
    return time


def measure() -> list[Row]:
    with scratch() as folder:
        last = write_log(folder / "log.swf", JOBS)
        write_log(folder / "day.swf", DAY, JOBS + 1, last)
        whole = _import(folder, "log.swf")
        plain = _plain(folder, "log.swf")
        day = _import(folder, "day.swf")
        plain_day = _plain(folder, "day.swf")
        return [
            _row(f"import of {JOBS:,} jobs (SWF) under 20 s", whole, 20, plain),
            Row(
                f"import of {JOBS:,} jobs in at most 500 MB",
                f"{whole.memory:.0f} MiB",
                "",
                f"{whole.memory / 477:.2f}",
            ),
            _row(f"import of a day of {DAY:,} jobs into these under 3 s", day, 3, plain_day),
            *_reads(folder, "trials/store.sqlite"),
        ]


def _import(folder: Path, log: str, store: str = "trials/store.sqlite") -> Timing:
    command = [*SEATRIAL, "--store", store, "usage", "import", "swf", log, "-m", "bench"]
    return timed(command, folder)


def _plain(folder: Path, log: str) -> Timing:
    """Put the same rows into a table of SQLite, which knows nothing of them: the limit."""
    columns = ", ".join(f"c{i} INTEGER" for i in range(18))
    orders = [f"CREATE TABLE IF NOT EXISTS jobs ({columns}, PRIMARY KEY (c1, c0))"]
    orders += ['.separator " "', f".import --skip 2 {log} jobs"]
    return timed(["sqlite3", "plain.sqlite", *orders], folder)


def _reads(folder: Path, store: str) -> list[Row]:
    rows = []
    for columns, limit in ((MANY, 3.0), (FEW, 1.5)):
        number = len(columns.split(","))
        told = subprocess.run(
            [sys.executable, "-c", READ, store, columns],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout.split()
        seconds, memory = float(told[0]), float(told[1])
        rows.append(
            Row(
                f"reading {int(told[2]):,} jobs with {number} columns under {limit:g} s, 400 MB",
                f"{seconds:.1f} s CPU, {memory:.0f} MiB",
                f"Python's `sqlite3` fetches as many numbers: {float(told[3]):.1f} s CPU",
                f"{seconds / limit:.2f}",
            )
        )
    return rows


def _row(claim: str, timing: Timing, limit: float, plain: Timing) -> Row:
    return Row(
        claim,
        f"{timing.cpu:.1f} s CPU",
        f"`sqlite3 .import` {plain.cpu:.1f} s CPU",
        f"{timing.cpu / limit:.2f}",
    )


def _postgres() -> list[Row]:
    from tests.results.store.postgres import shared_server

    with scratch() as folder:
        last = write_log(folder / "log.swf", JOBS)
        write_log(folder / "day.swf", DAY, JOBS + 1, last)
        url = shared_server().database()
        found = []
        for log, number in (("log.swf", JOBS), ("day.swf", DAY)):
            timing = _import(folder, log, url)
            told = f"{timing.wall:.1f} s ({timing.cpu:.1f} s CPU), {timing.memory:.0f} MiB"
            found.append(Row(f"import of {number:,} jobs, PostgreSQL", told, "", ""))
        _plain(folder, "log.swf")
        return [*found, *_reads(folder, url)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--postgres", action="store_true")
    chosen = parser.parse_args()
    print(machine_line())
    for row in [*measure(), *(_postgres() if chosen.postgres else [])]:
        print(f"| {' | '.join(row)} |")


if __name__ == "__main__":
    main()
