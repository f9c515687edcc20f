"""Daemons in the foreground, their programs, ports and folders, for `tests/slurm/cluster.py`."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import socket
import subprocess
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from tests.waiting import LONG_S, until

LOOPBACK = "127.0.0.1"

# Below the kernel's ephemeral range, so that no client's own connection takes a daemon's port.
_PORTS = range(10_000, 32_000)


class ClusterError(RuntimeError):
    """A daemon did not come up, or a client command failed."""


class CommandError(ClusterError):
    """A client command that exited non-zero."""

    def __init__(self, argv: Sequence[str], returncode: int, stdout: str, stderr: str) -> None:
        super().__init__(f"{' '.join(argv)}: exit {returncode}: {stderr.strip()}")
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr


class Daemon:
    """A foreground daemon that we start, end and may start again."""

    def __init__(self, name: str, argv: Sequence[str], log: Path, env: Mapping[str, str]) -> None:
        self._name = name
        self._argv = argv
        self._log = log
        self._env = env
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, option: str | None = None) -> None:
        if self._process is not None:
            raise ClusterError(f"{self._name} is running already")
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                [*self._argv, *([option] if option else [])],
                cwd=self._log.parent,
                env={**clean_environment(), **self._env},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def require_alive(self) -> None:
        if self._process is None or self._process.poll() is not None:
            tail = "\n".join(self._log.read_text(errors="replace").splitlines()[-12:])
            raise ClusterError(f"{self._name} is not running; its last words:\n{tail}")

    def send(self, number: signal.Signals) -> None:
        if self._process is not None:
            self._process.send_signal(number)

    def kill(self) -> None:
        self._end(signal.SIGKILL)

    def terminate(self) -> None:
        self._end(signal.SIGTERM)

    def _end(self, number: signal.Signals) -> None:
        self.send(number)
        if self._process is not None:
            self._process.wait(LONG_S)
            self._process = None


def listens(daemon: Daemon, address: str | tuple[str, int]) -> bool:
    daemon.require_alive()
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as probe, contextlib.suppress(OSError):
        probe.connect(address)
        return True
    return False


def await_(what: str, condition: Callable[[], bool], timeout: float = LONG_S) -> None:
    try:
        until(condition, what, timeout)
    except AssertionError as error:
        raise ClusterError(str(error)) from None


def free_ports(count: int) -> list[int]:
    """Ports next to each other on which nothing listens."""
    for _ in range(200):
        first = random.randrange(_PORTS.start, _PORTS.stop - count)
        ports = list(range(first, first + count))
        if all(_port_is_free(port) for port in ports):
            return ports
    raise ClusterError(f"found no {count} free ports")


def _port_is_free(port: int) -> bool:
    with socket.socket() as probe, contextlib.suppress(OSError):
        probe.bind(("", port))
        return True
    return False


def short_folder(purpose: str) -> Path:
    """A folder of our own whose paths leave room in a socket's 107 characters."""
    folder = Path(tempfile.mkdtemp(prefix=f"seatrial-{purpose}-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


def hostname() -> str:
    return socket.gethostname().partition(".")[0]


def find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/local/sbin")


def program(name: str) -> str:
    path = find(name)
    if path is None:
        raise ClusterError(f"{name} not found")
    return path


def clean_environment() -> dict[str, str]:
    """Ours, without what another Slurm or an outer job left in it."""
    prefixes = ("SLURM", "SBATCH", "SRUN", "SALLOC", "SQUEUE", "SINFO", "SCANCEL", "SACCT")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
