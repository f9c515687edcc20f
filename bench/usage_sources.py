"""Jobs of others by the logs of batch systems: a saved output of sacct, an accounting log of PBS,
and the accounting of Grid Engine; awk, which sums the core-seconds of each user in the same file,
beside.

    python -m bench usage_sources
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from bench.measuring import SEATRIAL, Row, Timing, machine_line, scratch, timed

SACCT_JOBS, LOG_JOBS, DAY = 1_000_000, 200_000, 50_000
START = 1_760_000_000
TITLES = (
    "JobID|JobIDRaw|JobName|User|UID|Account|Partition|Cluster|State|ExitCode|Submit|Eligible|"
    "Start|End|ElapsedRaw|Suspended|TimelimitRaw|AllocNodes|ReqNodes|AllocCPUS|ReqCPUS|AllocTRES|"
    "ReqTRES|NodeList|TotalCPU|ConsumedEnergyRaw|Reservation|Reason|Comment|AdminComment"
)


class Job(NamedTuple):
    """What the logs tell of a job."""

    number: int
    submitted: int
    started: int
    ended: int

    @property
    def user(self) -> str:
        return f"u{self.number % 500}"


def jobs(count: int) -> Iterator[Job]:
    for number in range(1, count + 1):
        submitted = START + number * 30
        started = submitted + number % 977
        yield Job(number, submitted, started, started + number % 3600)


def write_sacct(path: Path, count: int, *, steps: bool) -> None:
    """As sacct -P prints them; with ``steps``, each job has two."""
    tres = "billing=48,cpu=48,node=2"
    with path.open("w") as file:
        file.write(f"{TITLES}\n")
        for job in jobs(count):
            n, times = job.number, f"{job.submitted}|{job.submitted}|{job.started}|{job.ended}"
            node = f"n[{n % 999:04}-{n % 999 + 1:04}]"
            held = f"{job.ended - job.started}|00:00:00"
            file.write(
                f"{n}|{n}|job{n % 13}|{job.user}|{n % 500}|a{n % 40}|all|emu|COMPLETED|0:0|{times}|"
                f"{held}|600|2|2|48|48|{tres}|{tres}|{node}|01:22:13|||None||\n"
            )
            for step, name in (("batch", "batch"), ("0", "vasp_std")) if steps else ():
                file.write(
                    f"{n}.{step}|{n}.{step}|{name}|||a{n % 40}||emu|COMPLETED|0:0|{times}|{held}||"
                    f"2|2|48|48|cpu=48,node=2||{node}|01:22:13|0||||\n"
                )


def write_pbs(path: Path, count: int) -> None:
    with path.open("w") as file:
        for job in jobs(count):
            n = job.number
            nodes = (f"n{n % 999:04}", f"n{n % 999 + 1:04}")
            hosts = "+".join(f"{node}/0*24" for node in nodes)
            vnodes = "+".join(f"({node}:ncpus=24)" for node in nodes)
            file.write(
                f"10/09/2025 08:00:00;E;{n}.pbs;user={job.user} group=g account=a{n % 40} "
                f"project=p jobname=job{n % 13} queue=all ctime={job.submitted} "
                f"qtime={job.submitted} etime={job.submitted} start={job.started} "
                f"exec_host={hosts} exec_vnode={vnodes} Resource_List.ncpus=48 "
                "Resource_List.nodect=2 Resource_List.place=scatter "
                "Resource_List.select=2:ncpus=24:mpiprocs=24 Resource_List.walltime=10:00:00 "
                f"session=7405 end={job.ended} Exit_status=0 resources_used.cput=01:22:13 "
                "resources_used.mem=10gb resources_used.walltime=00:30:00 run_count=1\n"
            )


def write_gridengine(path: Path, count: int) -> None:
    with path.open("w") as file:
        for job in jobs(count):
            n = job.number
            file.write(
                f"all.q:n{n % 999:04}:g:{job.user}:job{n % 13}:{n}:sge:0:{job.submitted}:"
                f"{job.started}:{job.ended}:0:0:{job.ended - job.started}:0.02:0.01:4728.0:0:0:0:0:"
                f"2373:3:0:72.0:32:0:0:0:51:22:NONE:default:smp:48:0:4933.0:0.0:0.0:-l h_rt=36000 "
                "-pe smp 48:0.0:NONE:0.0:0:0\n"
            )


SUMS = {
    "sacct": ("-F|", 'NR > 1 && $4 != "" {s[$4] += $20 * ($14 - $13)}'),
    "pbs": (
        "-F[ ;]",
        '{for (i = 4; i <= NF; i++) {split($i, f, "="); v[f[1]] = f[2]}'
        ' s[v["user"]] += v["Resource_List.ncpus"] * (v["end"] - v["start"])}',
    ),
    "gridengine": ("-F:", "{s[$4] += $35 * ($11 - $10)}"),
}
"""How awk sums the core-seconds of each user, by source."""


def measure() -> list[Row]:
    with scratch() as folder:
        write_sacct(folder / "year.txt", SACCT_JOBS, steps=False)
        write_sacct(folder / "day.txt", DAY, steps=True)
        write_pbs(folder / "20251009", LOG_JOBS)
        write_gridengine(folder / "accounting", LOG_JOBS)
        return [
            _row(folder, "sacct", "year.txt", SACCT_JOBS, 20),
            _row(folder, "sacct", "day.txt", DAY, 3, ", each with two steps,"),
            _row(folder, "pbs", "20251009", LOG_JOBS, 20 * LOG_JOBS / SACCT_JOBS * 2),
            _row(folder, "gridengine", "accounting", LOG_JOBS, 20 * LOG_JOBS / SACCT_JOBS * 2),
        ]


def _row(folder: Path, source: str, file: str, count: int, limit: float, more: str = "") -> Row:
    given = ["--file", file] if source == "sacct" else [file]
    line = [*SEATRIAL, "usage", "import", source, *given, "-m", f"of-{file}"]
    ours, sums = timed(line, folder), _awk(folder, source, file)
    return Row(
        f"import of {count:,} jobs{more} by {source} under {limit:g} s, 500 MB",
        f"{ours.cpu:.1f} s CPU, {ours.memory:.0f} MiB",
        f"awk sums the same file: {sums.cpu:.1f} s CPU",
        f"{ours.cpu / limit:.2f}",
    )


def _awk(folder: Path, source: str, file: str) -> Timing:
    separator, sums = SUMS[source]
    program = f"{sums} END {{for (user in s) print user, s[user]}}"
    return timed(["awk", separator, program, file], folder)


if __name__ == "__main__":
    print(machine_line())
    for row in measure():
        print("|", " | ".join(row), "|")
