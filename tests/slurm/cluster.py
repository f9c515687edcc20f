"""A real Slurm cluster on this one machine, for tests.

    with SlurmCluster(tmp_path, ClusterOptions(nodes=4)) as cluster:
        job = cluster.run("sbatch", "--parsable", "--wrap", "hostname").strip()
        cluster.kill_node("n001")
        print(cluster.run("squeue", "-h"))

Debian's own daemons run on loopback, as the user that runs the tests, with no systemd and no file
outside the given folder but sockets and spools, which need short paths. Every node is a `slurmd`
of its own; nodes may claim more cores than the machine has.
"""

from __future__ import annotations

import atexit
import contextlib
import getpass
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.slurm import named_hosts
from tests.slurm.configuration import files_beside, slurm_conf
from tests.slurm.daemons import (
    ClusterError,
    CommandError,
    Daemon,
    await_,
    clean_environment,
    find,
    free_ports,
    program,
    short_folder,
)
from tests.slurm.options import ClusterOptions as ClusterOptions
from tests.slurm.options import Partition as Partition
from tests.slurm.services import Services

POLL_S = 0.02

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo", "srun")
_ACCOUNTING_PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacct", "sacctmgr")
# A process of its own, as libslurm reads one configuration and keeps it; global, for its plugins.
_END_JOB = """
import ctypes, glob, sys
(library,) = glob.glob("/usr/lib/*/slurm-wlm/libslurmfull.so")
slurm = ctypes.CDLL(library, ctypes.RTLD_GLOBAL)
slurm.slurm_init(None)
sys.exit(slurm.slurm_complete_job(int(sys.argv[1]), int(sys.argv[2])) != 0)
"""
_USABLE = {"idle", "mixed", "allocated", "completing"}
# What Slurm's own step daemon reports when the kernel killed a task for want of memory.
_OUT_OF_MEMORY_STATUS = 253


def available(*, accounting: bool = False, hosts: bool = False) -> str | None:
    """None when this machine can run a cluster, else a sentence that says what is missing."""
    wanted = _PROGRAMS + (_ACCOUNTING_PROGRAMS if accounting else ())
    missing = [program for program in wanted if find(program) is None]
    if not missing:
        return named_hosts.forbidden() if hosts else None
    return f"no Slurm here: {', '.join(missing)} not found (run tests/install-packages.sh as root)"


class SlurmCluster:
    """One controller and its nodes. Use as a context manager, or call `start` and `stop`."""

    def __init__(
        self, folder: Path, options: ClusterOptions | None = None, services: Services | None = None
    ) -> None:
        self.options = options or ClusterOptions()
        self.folder = folder.resolve()
        self.conf = self.folder / "slurm.conf"
        self._owns_services = services is None
        self._services = services or Services(
            self.folder / "services", accounting=self.options.accounting
        )
        self._spool: Path | None = None
        self._controller: Daemon | None = None
        self._nodes: dict[str, Daemon] = {}

    @property
    def env(self) -> dict[str, str]:
        """What a client's environment needs to speak with this cluster; for nodes that are hosts,
        that Open MPI may use the loopback, where all of them are."""
        hosts = {"OMPI_MCA_btl_tcp_if_include": "lo"} if self.options.hosts else {}
        return {"SLURM_CONF": str(self.conf), **hosts}

    @property
    def node_names(self) -> list[str]:
        return self.options.node_names

    # Life of the cluster

    def start(self) -> None:
        """Starts everything and returns once every node is idle."""
        atexit.register(self.stop)
        try:
            self._start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        """Ends all that was started here, jobs included. May be called at any time, and twice."""
        atexit.unregister(self.stop)
        for daemon in self._daemons():
            daemon.send(signal.SIGKILL)
        self._kill_jobs()
        for daemon in self._daemons():
            daemon.kill()
        self._nodes.clear()
        self._controller = None
        if self._owns_services:
            self._services.stop()
        if self._spool is not None:
            shutil.rmtree(self._spool, ignore_errors=True)
            self._spool = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def run(self, *argv: str, timeout: float = 30) -> str:
        """Runs a client command in the cluster's folder; its output, or CommandError."""
        done = subprocess.run(
            argv,
            cwd=self.folder,
            env=clean_environment() | self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise CommandError(argv, done.returncode, done.stdout, done.stderr)
        return done.stdout

    def sql(self, statements: str) -> str:
        """Run statements in the accounting database; return what they select."""
        return self._services.sql(statements)

    def kill_slurmdbd(self) -> None:
        """End the accounting's daemon; the controller goes on."""
        self._services.kill_slurmdbd()

    # The controller

    def kill_controller(self, *, abruptly: bool = False) -> None:
        """Ends the controller, which saves its state first, unless abruptly.

        An abrupt end forgets the jobs of the last five seconds, and later gives their ids again.
        """
        controller = self._require_controller()
        if abruptly:
            controller.kill()
        else:
            controller.terminate()

    def start_controller(self) -> None:
        """Starts the controller (again: with the state that the last one saved)."""
        if self._controller is None:
            log = self._logs / "slurmctld.log"
            argv = [program("slurmctld"), "-D", "-f", str(self.conf)]
            self._controller = Daemon("slurmctld", argv, log, self.env)
        self._controller.start()
        await_("the controller", self._controller_answers)

    def freeze_controller(self) -> None:
        """From now on the controller accepts connections and answers nothing."""
        self._require_controller().send(signal.SIGSTOP)

    def thaw_controller(self) -> None:
        self._require_controller().send(signal.SIGCONT)
        await_("the controller", self._controller_answers)

    # The nodes

    def kill_node(self, name: str, *, jobs: bool = True, declare_down: bool = False) -> None:
        """Ends a node's slurmd, and what ran there with `jobs`, as when the node lost its power.

        The controller notices some time after `node_timeout_s`, or at once with `declare_down`, or
        when the node is started again, for jobs older than about 20 s.
        """
        self._nodes[name].kill()
        if jobs:
            self._kill_jobs(name)
        if declare_down:
            self.run("scontrol", "update", f"nodename={name}", "state=down", "reason=killed")

    def start_node(self, name: str, *, booted: bool = False) -> None:
        """Starts a node's slurmd again and returns once the node takes jobs. ``booted``: it tells
        the controller that the node has booted, as after a power cut."""
        # Slurm tells a node's start in whole seconds.
        started = int(time.time())
        self._nodes[name].start("-b" if booted else None)
        await_(f"node {name} to register", lambda: self._registered_since(name, started))
        await_(f"node {name} to take jobs", lambda: self._resumed(name))

    def node_state(self, name: str) -> str:
        """A node's state as sinfo spells it in full, such as "idle" or "down*"."""
        return self.run("sinfo", "-h", "-N", "-n", name, "-o", "%T").split()[0]

    # The jobs

    def job_state(self, job: str) -> str:
        """A job's full state; "" once the controller has forgotten the job (MinJobAge)."""
        try:
            return self.run("squeue", "-h", "-t", "all", "-j", job, "-o", "%T").strip()
        except CommandError as error:
            if "Invalid job id" in error.stderr:
                return ""
            raise

    def await_state(self, job: str, *states: str, timeout: float = 30) -> str:
        """Waits until a job, not an array, is in one of these states, and tells which."""
        await_(f"job {job} in {states}", lambda: self.job_state(job) in states, timeout)
        return self.job_state(job)

    def time_out(self, job: str) -> None:
        """Ends a running job's time now: TIMEOUT follows within 30 s, the controller's own period.

        A limit of one minute, the shortest that Slurm knows, takes up to 90 s.
        """
        self.run("scontrol", "update", f"jobid={job}", "endtime=now")

    def out_of_memory(self, job: str) -> None:
        """Ends a running job as OUT_OF_MEMORY, which takes a kernel's cgroups otherwise.

        Tells the controller what a step daemon would, so what follows is Slurm's own.
        """
        self.run(sys.executable, "-c", _END_JOB, job, str(_OUT_OF_MEMORY_STATUS))

    # Inside

    @property
    def _logs(self) -> Path:
        return self.folder / "log"

    def _start(self) -> None:
        problem = available(accounting=self.options.accounting, hosts=self.options.hosts)
        if problem is not None:
            raise ClusterError(problem)
        self._logs.mkdir(parents=True, exist_ok=True)
        state = self.folder / "state"
        again = state.exists()
        state.mkdir(exist_ok=True)
        if self._owns_services:
            self._services.start()
        self._spool = short_folder("spool")
        self._write_configuration(self._spool)
        if self._services.accounting:
            self._register()
        self.start_controller()
        for name in self.node_names:
            self._nodes[name] = self._node(name)
            self._nodes[name].start()
        if again:
            # Jobs ended with the last life of the cluster, but the controller recovers them.
            self.run("scancel", f"--user={getpass.getuser()}")
        await_("all nodes idle", self._all_idle)

    def _write_configuration(self, spool: Path) -> None:
        ports = free_ports(1 + self.options.nodes)
        services = self._services.conf_lines()
        self.conf.write_text(slurm_conf(self.options, self.folder, spool, ports, services))
        for name, text in files_beside(self.options).items():
            (self.folder / name).write_text(text)

    def _register(self) -> None:
        """Adds the cluster to the accounting database, unless an earlier start did."""
        known = self.run("sacctmgr", "-nP", "show", "cluster", "format=cluster")
        if self.options.name not in known.split():
            self.run("sacctmgr", "-i", "-Q", "add", "cluster", self.options.name)

    def _node(self, name: str) -> Daemon:
        argv = [program("slurmd"), "-D", "-N", name, "-f", str(self.conf)]
        if self.options.hosts:
            argv = named_hosts.as_host(name, self.folder / "hosts", argv)
        # Its step daemons inherit this mark; their tasks have it from Slurm.
        mark = {"SLURMD_NODENAME": name}
        return Daemon(name, argv, self._logs / f"slurmd-{name}.log", self.env | mark)

    def _daemons(self) -> list[Daemon]:
        controller = [] if self._controller is None else [self._controller]
        return [*self._nodes.values(), *controller]

    def _require_controller(self) -> Daemon:
        if self._controller is None:
            raise ClusterError("the cluster was not started")
        return self._controller

    def _controller_answers(self) -> bool:
        self._require_controller().require_alive()
        with contextlib.suppress(CommandError):
            return " UP" in self.run("scontrol", "ping")
        return False

    def _all_idle(self) -> bool:
        for daemon in self._daemons():
            daemon.require_alive()
        states = self.run("sinfo", "-h", "-N", "-p", self.options.partitions[0].name, "-o", "%T")
        return set(states.split()) == {"idle"}

    def _registered_since(self, name: str, started: int) -> bool:
        self._nodes[name].require_alive()
        shown = self.run("scontrol", "-o", "show", "node", name)
        match = re.search(r"SlurmdStartTime=([0-9T:-]+)", shown)
        return match is not None and datetime.fromisoformat(match[1]).timestamp() >= started

    def _resumed(self, name: str) -> bool:
        if self.node_state(name) in _USABLE:
            return True
        # Refused while the controller has yet to take in that the node is back.
        with contextlib.suppress(CommandError):
            self.run("scontrol", "update", f"nodename={name}", "state=resume")
        return False

    def _kill_jobs(self, node: str | None = None) -> None:
        """Kills step daemons and job processes, until none is left that could start another."""
        deadline = time.monotonic() + 10
        while time.monotonic() < deadline:
            pids = list(_job_processes(str(self.conf), node))
            if not pids:
                return
            for pid in pids:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
            time.sleep(POLL_S)


class ClusterPair:
    """Two clusters in one accounting database, so that `squeue -M first,second` works."""

    def __init__(self, folder: Path, first: ClusterOptions, second: ClusterOptions) -> None:
        self._services = Services(folder.resolve() / "services", accounting=True)
        self.first, self.second = (
            SlurmCluster(folder / options.name, replace(options, accounting=True), self._services)
            for options in (first, second)
        )

    def start(self) -> None:
        atexit.register(self.stop)
        try:
            self._services.start()
            self.first.start()
            self.second.start()
        except BaseException:
            self.stop()
            raise

    def stop(self) -> None:
        atexit.unregister(self.stop)
        self.second.stop()
        self.first.stop()
        self._services.stop()

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()


def _job_processes(conf: str, node: str | None) -> Iterator[int]:
    """The step daemons and the job processes of a cluster, or of one node of it.

    They leave their slurmd's process group and session, but their environment names both.
    """
    marks = [f"SLURM_CONF={conf}".encode()]
    marks.append(b"SLURMD_NODENAME=" + (node.encode() + b"\0" if node else b""))
    for entry in os.scandir("/proc"):
        if not entry.name.isdigit() or int(entry.name) == os.getpid():
            continue
        with contextlib.suppress(OSError):
            environ = b"\0" + Path(entry.path, "environ").read_bytes() + b"\0"
            if b"\0" + marks[0] + b"\0" in environ and b"\0" + marks[1] in environ:
                yield int(entry.name)
