"""A real Grid Engine of four hosts, those of Debian's packages, for tests.

with GridEngineCell(folder) as cell:
    cell.run("qsub", "-b", "y", "true")

Its daemons have network, mount and process namespaces of their own, and each host a network, a name
and an address (``server.sh``). ``cell.env`` has a PATH with the commands of Grid Engine, each of
which enters these namespaces: the harness itself stays outside.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import until

SCRIPT = Path(__file__).with_name("server.sh")
INSTALLED = Path("/usr/lib/gridengine")
PROGRAMS = ("qrls", "qalter", "qsub", "qstat", "qdel", "qmod", "qacct", "qhost", "qconf")
NODES = [f"n00{i}" for i in range(1, 5)]
CORES = 2
PARALLEL = {"smp": "$pe_slots", "one": 1, "two": 2, "mpi": "$fill_up"}


def available() -> str:
    """Why there is no Grid Engine here; "" where there is one."""
    for program in ("sge_qmaster", "sge_execd", "qsub"):
        if not (INSTALLED / program).exists():
            return f"{INSTALLED / program} not found (run tests/install-packages.sh as root)"
    if os.geteuid() != 0:
        return "Grid Engine needs root"
    programs = ("unshare", "nsenter", "setpriv", "ip")
    missing = [name for name in programs if shutil.which(name) is None]
    return f"{', '.join(missing)} not found" if missing else ""


class GridEngineCell:
    """A master and its hosts, of two slots each. The jobs run on this host."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._said = folder / "said"
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self.env: dict[str, str] = {}

    def __enter__(self) -> Self:
        spaces = ["--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc", "--kill-child"]
        line = ["unshare", *spaces, *self._script("serve", str(len(NODES)), str(CORES))]
        line = ["setpriv", "--pdeathsig", "KILL", *line]  # it ends with tests that are killed, too
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                line, stdin=subprocess.DEVNULL, stdout=said, stderr=said, start_new_session=True
            )
        try:
            until(self._is_up, "Grid Engine starts", 60.0, self._said.read_text)
            self._find_inside()
            self._write_programs()
            until(self._all_report, "the hosts report", 60.0, lambda: self.run("qhost", "-q"))
        except BaseException:
            self._kill()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)  # its namespaces end with it
            self._process.wait()

    def _script(self, *words: str) -> list[str]:
        return ["env", "-i", "bash", str(SCRIPT), str(self.folder), *words]

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._said.read_text()
        return "GRIDENGINE_IS_UP" in self._said.read_text()

    def _find_inside(self) -> None:
        """Find the first process in the namespaces, as this host numbers it."""
        assert self._process is not None
        pid = self._process.pid
        self._pid = int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])

    def _enter(self) -> list[str]:
        """The words that run a command beside the master."""
        return ["nsenter", "--target", str(self._pid), "--mount", "--net", "--uts", "--pid"]

    def _write_programs(self) -> None:
        programs = self.folder / "bin"
        programs.mkdir()
        about = f"SGE_ROOT={shlex.quote(str(self.folder / 'root'))} SGE_CELL=default"
        about += " SGE_QMASTER_PORT=6444 SGE_EXECD_PORT=6445"
        enter = " ".join(self._enter())
        for name in PROGRAMS:
            program = f'exec {enter} --wdns="$PWD" -- env {about} {INSTALLED}/{name} "$@"\n'
            (programs / name).write_text(f"#!/bin/sh\n{program}")
            (programs / name).chmod(0o755)
        self.env = {"PATH": f"{programs}:{os.environ['PATH']}"}

    def run(self, *line: str) -> str:
        """Run a command of Grid Engine, to its end. Return what it says."""
        done = subprocess.run(
            line, env={**os.environ, **self.env}, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def _all_report(self) -> bool:
        lines = self.run("qhost").splitlines()[3:]
        return len(lines) == len(NODES) and not any(line.split()[6] == "-" for line in lines)

    def delete_all(self) -> None:
        """Delete all jobs, those that run included, and wait until their slots are free."""
        if self.run("qstat", "-u", "*"):
            self.run("qdel", "-f", "-u", "*")
        until(lambda: self.run("qstat", "-u", "*") == "", "no job is left")

    def kill_master(self) -> None:
        """End the master at once; jobs go on."""
        self._end(self.folder / "spool" / "qmaster" / "qmaster.pid")

    def start_master(self) -> None:
        """Start the master again, and the daemons of its hosts: those that lost a master ask for it
        half a minute later."""
        for name in NODES:
            self._end(self._pid_file(name))
        self._inside(*self._script("master"))
        for name in NODES:
            self.start_node(name)

    def kill_node(self, name: str) -> None:
        """End the daemon of a host, with its jobs, as when it lost its power."""
        self._inside(*self._script("kill-node", str(NODES.index(name) + 1)))

    def start_node(self, name: str) -> None:
        """Start the daemon of a host again."""
        self._inside(*self._script("node", str(NODES.index(name) + 1)))

    def _pid_file(self, node: str) -> Path:
        return self.folder / "spool" / node / "execd.pid"

    def _end(self, pid_file: Path) -> None:
        pid = pid_file.read_text().strip()
        self._inside("kill", "-KILL", pid)

    def _inside(self, *line: str) -> None:
        subprocess.run([*self._enter(), *line], check=True, capture_output=True, timeout=60)
