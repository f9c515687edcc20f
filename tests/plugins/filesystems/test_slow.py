"""A file system that is really slow: FUSE with a limit of what can be written, swept as it is."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from seatrial.journal.events import MetricRecorded
from tests.programs import Workplace, until

LIMIT = 8  # MiB/s that can be written, however many write
# After it was idle, bindfs lets through what the limit allows in 0.2 s: so much above it a figure
# of half a second may be, and a median of two such figures.
BURST, MEDIAN_BURST = 2, 1.5
METRICS = ("write", "read")
TRIES = 6  # the noise of a full host may hide a plateau


@pytest.fixture
def slow(tmp_path: Path) -> Iterator[Path]:
    """The mount of a file server with one thread, as that of bindfs counts for each thread."""
    if not os.access("/dev/fuse", os.W_OK):
        pytest.fail("/dev/fuse is missing: bindfs can serve nothing")
    disks, mount = tmp_path / "disks", tmp_path / "slow"
    for folder in (disks, mount):
        folder.mkdir()
    server = subprocess.Popen(["bindfs", "-f", "-s", f"--write-rate={LIMIT}M", disks, mount])
    try:
        # it sleeps nearly all the time; on a full host it would wake too late to serve at its limit
        with contextlib.suppress(PermissionError):
            os.sched_setscheduler(server.pid, os.SCHED_RR, os.sched_param(1))
        until(lambda: os.path.ismount(mount), "the file server to serve")
        yield mount
    finally:
        subprocess.run(["umount", "-l", mount], check=False)
        server.kill()
        server.wait()


@pytest.mark.needs("bindfs", "mpicc")
def test_a_sweep_finds_the_limit_of_a_slow_file_system(tmp_path: Path, slow: Path) -> None:
    """Two tasks write no more than one; reading has no limit, and is told to be quicker."""
    place = Workplace(tmp_path)
    place.local(
        cores=2,
        toolchains={"mpi": {"cc": "gcc", "mpicc": "mpicc"}},
        file_systems={"slow": {"path": str(slow), "advertised": {"write": f"{LIMIT} MiB/s"}}},
    )
    axes = ["tasks=1,2", "api=posix", "files=each", "transfer=256K", "block=2M"]
    line = ["io", "sweep", "slow", "-m", str(place.machine), "--max-runs", "4"]
    line += [word for axis in axes for word in ("--axis", axis)]
    for number in range(TRIES):
        done = place.seatrial(*line, "--name", f"t{number}")
        assert done.code == 0, done.said
        writing = done.out.partition("\nread\n")[0]
        if "plateau: 1 other point within 5 % of it" in writing:
            break
    else:
        pytest.fail(f"no plateau in {TRIES} sweeps: {done.said}")
    events = place.events(f"t{number}", MetricRecorded)
    wrote, read = ([float(one.value or 0) for one in events if one.metric == m] for m in METRICS)
    assert len(wrote) == 4 and max(wrote) <= BURST * LIMIT, wrote
    assert max(read) > 2 * BURST * LIMIT, read
    found = json.loads(place.seatrial("filesystems", "--format", "json").out)
    (best,) = found["figures"]
    assert best["advertised"] == f"{LIMIT} MiB/s"
    assert best["share"] == pytest.approx(best["value"] / LIMIT)
    assert 0.3 < best["share"] <= MEDIAN_BURST
    assert not list(slow.iterdir())
