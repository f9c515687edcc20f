"""Power cuts: at a random moment the trials lose what was not on the disk itself.

The trials are on a file system of their own in an image file. EXT4_IOC_SHUTDOWN without a flush of
the log (xfs has the same call, XFS_IOC_GOINGDOWN) stops it as a power cut does; then it is mounted
again. Driver and jobs are killed at the same moment. Needs root and loop devices.
"""

from __future__ import annotations

import fcntl
import os
import struct
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from uuid import uuid4

from tests.programs import LONG_S, Driving, Workplace
from tests.slurm.cluster import ClusterOptions, SlurmCluster
from tests.waiting import until

from torture.attack import Outcome, end_jobs, moment, outcome, resume_to_end, workplace

GOING_DOWN = (
    0x8004587D  # _IOR('X', 125, uint32): linux/fs/xfs/libxfs/xfs_fs.h, linux/fs/ext4/ext4.h
)
NO_LOG_FLUSH = 2
IMAGE_BYTES = 512 << 20
LONGEST_S = 12.0
NODES = 4
# What this runs sees that the host has booted since.
_BOOTED = 'mount --bind "$0" /proc/sys/kernel/random/boot_id && exec "$@"'


class Disk:
    """A file system that can lose its power."""

    def __init__(self, image: Path, target: Path, kind: str) -> None:
        self.image = image
        self.target = target
        with image.open("wb") as file:
            file.truncate(IMAGE_BYTES)
        subprocess.run([f"mkfs.{kind}", "-q", str(image)], check=True)
        target.mkdir(parents=True)
        self.mount()

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self.image), str(self.target)], check=True)

    def unmount(self) -> None:
        """Unmount it when the last process has let go of it: what is mounted again before is the
        file system that lost its power."""
        until(
            lambda: (
                subprocess.run(["umount", str(self.target)], check=False).returncode == 0
                or not self._mounted()
            ),
            "the end of the processes on it",
        )

    def _mounted(self) -> bool:
        """Return whether it is mounted, by the kernel's list: a file system that lost its power
        answers no question about its folders."""
        targets = (line.split()[1] for line in Path("/proc/self/mounts").read_text().splitlines())
        return str(self.target) in targets

    def cut(self) -> None:
        descriptor = os.open(self.target, os.O_RDONLY)
        try:
            fcntl.ioctl(descriptor, GOING_DOWN, struct.pack("I", NO_LOG_FLUSH))
        finally:
            os.close(descriptor)


@contextmanager
def disk_for(place: Workplace, kind: str) -> Iterator[Disk]:
    disk = Disk(place.folder / "image", place.trials, kind)
    try:
        yield disk
    finally:
        disk.unmount()


def local(folder: Path, number: int, chance: Random, kind: str) -> Outcome:
    """Cut the power of one trial on this host."""
    with workplace(folder, number) as place, disk_for(place, kind) as disk:
        place.local(cores=4)
        place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
        with place.start_run("--name", "t", "--jobs", "4") as driving:
            _cut(driving, disk, chance)
        end_jobs(place)
        disk.unmount()
        disk.mount()
        boot = place.folder / "boot"
        boot.write_text(f"{uuid4()}\n")
        return outcome(
            place, resume_to_end(place, ["unshare", "-m", "bash", "-c", _BOOTED, str(boot)])
        )


def slurm(folder: Path, number: int, chance: Random, kind: str) -> Outcome:
    """Cut the power of one trial on an emulated cluster: its nodes die, too."""
    with workplace(folder, number) as place, disk_for(place, kind) as disk:
        place.env["SEATRIAL_STORE"] = str(place.folder / "store.sqlite")
        with SlurmCluster(place.folder / "cluster", ClusterOptions(nodes=NODES)) as cluster:
            place.slurm(cluster, {"lost_after": "2s", "visible_after": "1s"})
            with place.start_run("--name", "t") as driving:
                _cut(driving, disk, chance)
            for node in cluster.node_names:
                cluster.kill_node(node)
            disk.unmount()
            disk.mount()
            for node in cluster.node_names:
                cluster.start_node(node, booted=True)
            return outcome(place, resume_to_end(place))


def _cut(driving: Driving, disk: Disk, chance: Random) -> None:
    """Cut the power at a random moment after the trial was announced."""
    driving.until(lambda: "runs on" in driving.said, "the trial", timeout=2 * LONG_S)
    moment(chance, LONGEST_S)
    disk.cut()
    driving.kill()
