"""Compat jobs on an emulated cluster, for tests: a batch job that runs a script in one."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from seatrial.plugins.compat.run import CompatSettings, write
from tests.slurm.cluster import SlurmCluster
from tests.waiting import LONG_S, until

GONE_S = LONG_S / 6
"""Within 5 s of its end nothing of a compat job is left."""

LEFT = 'ssh n002 "setsid sleep 300 > /dev/null 2>&1 < /dev/null &"; setsid sleep 300 &\n'
"""Leaves a process on each of two nodes."""


class BatchCompat:
    """A batch job whose script runs in a compat job, in a folder of its own."""

    def __init__(
        self,
        cluster: SlurmCluster,
        folder: Path,
        script: str,
        *,
        nodes: int = 2,
        options: Iterable[str] = (),
        variables: Iterable[str] = (),
        environment: str = "",
        **settings: Any,
    ) -> None:
        self.cluster = cluster
        self.folder = folder
        self.compat = folder / "compat"
        folder.mkdir(parents=True, exist_ok=True)
        write(self.compat, CompatSettings(**{"wait": 20, **settings}), variables)
        (folder / "script").write_text(script)
        run = f"{environment} bash {self.compat}/compat.sh run bash {folder}/script"
        line = f"{run} > {folder}/out 2> {folder}/err; echo $? > {folder}/code"
        words = ["sbatch", "--parsable", f"-N{nodes}", f"-o{folder}/batch", *options]
        self.id = cluster.run(*words, "--wrap", line).strip()

    def await_file(self, name: str, timeout: float = LONG_S) -> str:
        """Wait until the script has written a file; return what is in it."""
        path = self.folder / name
        until(lambda: path.exists() and path.read_text(), name, timeout, self.said)
        return path.read_text()

    def end(self, timeout: float = LONG_S) -> int:
        """Wait for the end; return the exit code."""
        return int(self.await_file("code", timeout))

    def out(self) -> list[str]:
        return (self.folder / "out").read_text().splitlines()

    def said(self) -> str:
        names = ("out", "err", "batch", "compat/log")
        files = [self.folder / name for name in names]
        return "\n".join(file.read_text(errors="replace") for file in files if file.exists())

    def left(self) -> list[int]:
        return with_mark(f"SEATRIAL_COMPAT={self.compat}\0")


def with_mark(mark: str, file: str = "environ") -> list[int]:
    """The processes on this host, so on all emulated nodes, that have a mark in their environment,
    or in another file of a process."""
    found = []
    for entry in Path("/proc").iterdir():
        try:
            if entry.name.isdigit() and mark.encode() in (entry / file).read_bytes():
                found.append(int(entry.name))
        except OSError:
            continue
    return [pid for pid in found if pid != os.getpid()]


def shown(pids: list[int]) -> str:
    """Processes in words, for a test that fails."""
    line = ["ps", "-o", "pid,ppid,stat,args", "-p", ",".join(map(str, pids))]
    return subprocess.run(line, capture_output=True, text=True, check=False).stdout


@contextmanager
def display(folder: Path) -> Iterator[dict[str, str]]:
    """An X server without a screen; yields the variables by which programs find it."""
    mine = folder / "xauthority"
    mine.touch()
    read, write = os.pipe()
    words = ["Xvfb", "-displayfd", str(write), "-auth", str(mine), "-nolisten", "tcp"]
    server = subprocess.Popen(words, pass_fds=[write], stderr=subprocess.DEVNULL)
    try:
        os.close(write)
        name = f":{os.read(read, 10).decode().strip()}"
        cookie = ["xauth", "-q", "-f", str(mine), "add", name, ".", "0f" * 16]
        subprocess.run(cookie, check=True, timeout=LONG_S)
        server.send_signal(signal.SIGHUP)  # it reads the file again
        yield {"DISPLAY": name, "XAUTHORITY": str(mine)}
    finally:
        os.close(read)
        server.kill()
        server.wait()
