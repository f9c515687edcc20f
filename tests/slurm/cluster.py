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
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import LONG_S, until

_DEVICES = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random")
LOOPBACK = "127.0.0.1"
POLL_S = 0.02

_PROGRAMS = ("munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "sinfo", "srun")
_ACCOUNTING_PROGRAMS = ("slurmdbd", "mariadbd", "mariadb-install-db", "sacct", "sacctmgr")
# Below the kernel's ephemeral range, so that no client's own connection takes a daemon's port.
_PORTS = range(10_000, 32_000)
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


class ClusterError(RuntimeError):
    """A daemon did not come up, or a client command failed."""


class CommandError(ClusterError):
    """A client command that exited non-zero."""

    def __init__(self, argv: Sequence[str], returncode: int, stdout: str, stderr: str) -> None:
        super().__init__(f"{' '.join(argv)}: exit {returncode}: {stderr.strip()}")
        self.returncode = returncode
        self.stdout = stdout
        self.stderr = stderr


@dataclass(frozen=True)
class Partition:
    """One `PartitionName=` line; `nodes` is a Slurm host list, "ALL" by default."""

    name: str
    nodes: str = "ALL"
    max_minutes: int | None = None
    priority_tier: int = 1
    extra: str = ""

    def line(self, *, default: bool) -> str:
        limit = "INFINITE" if self.max_minutes is None else str(self.max_minutes)
        return (
            f"PartitionName={self.name} Nodes={self.nodes} State=UP MaxTime={limit}"
            f" Default={'YES' if default else 'NO'} PriorityTier={self.priority_tier} {self.extra}"
        ).rstrip()


# A job in "urgent" cancels jobs of the others when it finds no room.
DEFAULT_PARTITIONS = (
    Partition("all"),
    Partition("short", max_minutes=1),
    Partition("urgent", priority_tier=10),
)


@dataclass(frozen=True)
class ClusterOptions:
    """What a cluster looks like.

    `features` maps a node's name to its comma-separated features, `gpus` to the number of its
    GPUs, at most four. `extra_conf` goes to the end of
    slurm.conf; a key that is there already counts, but makes every client complain on stderr.
    """

    nodes: int = 8
    cores: int = 4
    name: str = "emu"
    accounting: bool = False
    max_array_size: int = 1001
    min_job_age_s: int = 300
    message_timeout_s: int = 10
    node_timeout_s: int = 30
    features: Mapping[str, str] = field(default_factory=dict)
    gpus: Mapping[str, int] = field(default_factory=dict)
    partitions: tuple[Partition, ...] = DEFAULT_PARTITIONS
    scheduling: str = ""  # further SchedulerParameters
    extra_conf: str = ""

    @property
    def node_names(self) -> list[str]:
        return [f"n{number:03d}" for number in range(1, self.nodes + 1)]


def available(*, accounting: bool = False) -> str | None:
    """None when this machine can run a cluster, else a sentence that says what is missing."""
    wanted = _PROGRAMS + (_ACCOUNTING_PROGRAMS if accounting else ())
    missing = [program for program in wanted if _find(program) is None]
    if not missing:
        return None
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
        self._controller: _Daemon | None = None
        self._nodes: dict[str, _Daemon] = {}

    @property
    def env(self) -> dict[str, str]:
        """What a client's environment needs to speak with this cluster, and nothing else."""
        return {"SLURM_CONF": str(self.conf)}

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
            env=_clean_environment() | self.env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=timeout,
            check=False,
        )
        if done.returncode != 0:
            raise CommandError(argv, done.returncode, done.stdout, done.stderr)
        return done.stdout

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
            argv = [_program("slurmctld"), "-D", "-f", str(self.conf)]
            self._controller = _Daemon("slurmctld", argv, log, self.env)
        self._controller.start()
        _await("the controller", self._controller_answers)

    def freeze_controller(self) -> None:
        """From now on the controller accepts connections and answers nothing."""
        self._require_controller().send(signal.SIGSTOP)

    def thaw_controller(self) -> None:
        self._require_controller().send(signal.SIGCONT)
        _await("the controller", self._controller_answers)

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
        _await(f"node {name} to register", lambda: self._registered_since(name, started))
        _await(f"node {name} to take jobs", lambda: self._resumed(name))

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
        _await(f"job {job} in {states}", lambda: self.job_state(job) in states, timeout)
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
        problem = available(accounting=self.options.accounting)
        if problem is not None:
            raise ClusterError(problem)
        self._logs.mkdir(parents=True, exist_ok=True)
        (self.folder / "state").mkdir(exist_ok=True)
        if self._owns_services:
            self._services.start()
        self._spool = _short_folder("spool")
        self._write_conf()
        if self._services.accounting:
            self.run("sacctmgr", "-i", "-Q", "add", "cluster", self.options.name)
        self.start_controller()
        for name in self.node_names:
            self._nodes[name] = self._node(name)
            self._nodes[name].start()
        _await("all nodes idle", self._all_idle)

    def _write_conf(self) -> None:
        ports = free_ports(1 + self.options.nodes)
        lines = [
            *self._controller_lines(ports[0]),
            *self._scheduling_lines(),
            *self._services.conf_lines(),
            *self._node_lines(ports[1:]),
            *(
                partition.line(default=index == 0)
                for index, partition in enumerate(self.options.partitions)
            ),
            self.options.extra_conf,
        ]
        self.conf.write_text("\n".join(lines) + "\n")
        if self.options.gpus:
            self._write_gres_conf()

    def _write_gres_conf(self) -> None:
        """GPUs of nodes: harmless devices in place of /dev/nvidia0 and so on. Of files that are no
        devices Slurm tells jobs nothing (CUDA_VISIBLE_DEVICES)."""
        lines = ["AutoDetect=off"]
        for name, number in self.options.gpus.items():
            lines += [f"NodeName={name} Name=gpu File={file}" for file in _DEVICES[:number]]
        (self.folder / "gres.conf").write_text("\n".join(lines) + "\n")

    def _controller_lines(self, port: int) -> list[str]:
        user = getpass.getuser()
        return [
            f"ClusterName={self.options.name}",
            f"SlurmctldHost={_hostname()}({LOOPBACK})",
            f"SlurmctldPort={port}",
            f"SlurmUser={user}",
            f"SlurmdUser={user}",
            f"StateSaveLocation={self.folder}/state",
            f"SlurmdSpoolDir={self._spool}/%n",
            f"SlurmctldPidFile={self.folder}/slurmctld.pid",
            f"SlurmdPidFile={self._spool}/%n.pid",
            f"MessageTimeout={self.options.message_timeout_s}",
            f"SlurmdTimeout={self.options.node_timeout_s}",
            "CommunicationParameters=NoInAddrAny,NoCtldInAddrAny",
            "ReturnToService=2",
            "MailProg=/bin/true",
        ]

    def _scheduling_lines(self) -> list[str]:
        options = self.options
        return [
            "ProctrackType=proctrack/pgid",
            "TaskPlugin=task/none",
            "SwitchType=switch/none",
            "MpiDefault=none",
            "JobAcctGatherType=jobacct_gather/none",
            "JobCompType=jobcomp/none",
            "SelectType=select/cons_tres",
            "SelectTypeParameters=CR_Core",
            "PreemptType=preempt/partition_prio",
            "PreemptMode=CANCEL",
            "SchedulerType=sched/backfill",
            "SchedulerParameters=batch_sched_delay=0,sched_min_interval=20000,sched_interval=1"
            + (f",{options.scheduling}" if options.scheduling else ""),
            # With an epilog, the end of a job starts the next one at once; without, a timer
            # starts jobs once a second. It also lets jobs be seen COMPLETING, as in real life.
            f"Epilog={_program('true')}",
            "PriorityType=priority/basic",
            f"MaxArraySize={options.max_array_size}",
            f"MaxJobCount={max(10_000, 2 * options.max_array_size)}",
            f"MinJobAge={options.min_job_age_s}",
            "KillWait=2",
            "OverTimeLimit=0",
            "CompleteWait=0",
            "InactiveLimit=0",
        ]

    def _node_lines(self, ports: Sequence[int]) -> list[str]:
        options = self.options
        lines = ["SlurmdParameters=config_overrides"]
        if options.gpus:
            lines.append("GresTypes=gpu")
        for name, port in zip(options.node_names, ports, strict=True):
            feature = f" Feature={options.features[name]}" if name in options.features else ""
            feature += f" Gres=gpu:{options.gpus[name]}" if name in options.gpus else ""
            lines.append(
                f"NodeName={name} NodeHostname={_hostname()} NodeAddr={LOOPBACK} Port={port}"
                f" CPUs={options.cores} Boards=1 SocketsPerBoard=1 CoresPerSocket={options.cores}"
                f" ThreadsPerCore=1 RealMemory=16000 State=UNKNOWN{feature}"
            )
        return lines

    def _node(self, name: str) -> _Daemon:
        argv = [_program("slurmd"), "-D", "-N", name, "-f", str(self.conf)]
        # Its step daemons inherit this mark; their tasks have it from Slurm.
        mark = {"SLURMD_NODENAME": name}
        return _Daemon(name, argv, self._logs / f"slurmd-{name}.log", self.env | mark)

    def _daemons(self) -> list[_Daemon]:
        controller = [] if self._controller is None else [self._controller]
        return [*self._nodes.values(), *controller]

    def _require_controller(self) -> _Daemon:
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


class Services:
    """What clusters share: authentication (munged), and accounting (mariadbd and slurmdbd)."""

    def __init__(self, folder: Path, *, accounting: bool) -> None:
        self.folder = folder
        self.accounting = accounting
        self._sockets: Path | None = None
        self._port = 0
        self._daemons: list[_Daemon] = []

    def start(self) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        self._sockets = _short_folder("run")
        self._start_munge()
        if self.accounting:
            self._start_database()
            self._start_slurmdbd()

    def stop(self) -> None:
        for daemon in reversed(self._daemons):
            daemon.kill()
        self._daemons.clear()
        if self._sockets is not None:
            shutil.rmtree(self._sockets, ignore_errors=True)
            self._sockets = None

    def conf_lines(self) -> list[str]:
        lines = ["AuthType=auth/munge", "CredType=cred/munge", f"AuthInfo=socket={self._munge}"]
        if not self.accounting:
            return [*lines, "AccountingStorageType=accounting_storage/none"]
        return [
            *lines,
            "AccountingStorageType=accounting_storage/slurmdbd",
            f"AccountingStorageHost={LOOPBACK}",
            f"AccountingStoragePort={self._port}",
            # Not a password: the socket of the munged for slurmdbd.
            f"AccountingStoragePass={self._munge}",
        ]

    @property
    def _munge(self) -> str:
        return f"{self._sockets}/munge.sock"

    @property
    def _mysql(self) -> str:
        return f"{self._sockets}/mysql.sock"

    def _start_munge(self) -> None:
        key = self.folder / "munge.key"
        key.touch(mode=0o600)
        key.write_bytes(os.urandom(128))
        argv = [
            # The folders' modes are pytest's choice, not munge's.
            *(_program("munged"), "--foreground", "--force", f"--socket={self._munge}"),
            *(f"--key-file={key}", f"--log-file={self.folder}/munged.log"),
            *(f"--pid-file={self._sockets}/munge.pid", f"--seed-file={self.folder}/munge.seed"),
        ]
        daemon = self._launch("munged", argv, {})
        _await("munged", lambda: _listens(daemon, self._munge))

    def _start_database(self) -> None:
        data = self.folder / "mysql"
        innodb = [
            *("--innodb-log-file-size=4M", "--innodb-buffer-pool-size=64M"),
            *("--innodb-flush-method=nosync", "--innodb-flush-log-at-trx-commit=0"),
            *("--innodb-lock-wait-timeout=900", "--skip-name-resolve"),
        ]
        common = ["--no-defaults", f"--datadir={data}", f"--user={getpass.getuser()}", *innodb]
        install = [_program("mariadb-install-db"), *common]
        install += ["--auth-root-authentication-method=normal", "--skip-test-db"]
        if not data.exists():
            subprocess.run([*install, "--cross-bootstrap"], check=True, capture_output=True)
        argv = [_program("mariadbd"), *common, f"--socket={self._mysql}"]
        argv += ["--skip-networking", "--skip-grant-tables", f"--pid-file={self._mysql}.pid"]
        daemon = self._launch("mariadbd", argv, {})
        _await("mariadbd", lambda: _listens(daemon, self._mysql))

    def _start_slurmdbd(self) -> None:
        (self._port,) = free_ports(1)
        conf = self.folder / "slurmdbd.conf"
        conf.touch(mode=0o600)
        conf.write_text("\n".join(self._slurmdbd_lines()) + "\n")
        # slurmdbd looks for its own configuration beside a slurm.conf that need not exist.
        env = {"SLURM_CONF": f"{self.folder}/slurm.conf", "MYSQL_UNIX_PORT": self._mysql}
        daemon = self._launch("slurmdbd", [_program("slurmdbd"), "-D"], env)
        _await("slurmdbd", lambda: _listens(daemon, (LOOPBACK, self._port)))

    def _slurmdbd_lines(self) -> list[str]:
        return [
            "AuthType=auth/munge",
            f"AuthInfo=socket={self._munge}",
            f"DbdHost={_hostname()}",
            f"DbdAddr={LOOPBACK}",
            f"DbdPort={self._port}",
            f"SlurmUser={getpass.getuser()}",
            f"PidFile={self._sockets}/slurmdbd.pid",
            "StorageType=accounting_storage/mysql",
            "StorageHost=localhost",
            "StorageUser=root",
            "StorageLoc=slurm_acct_db",
        ]

    def _launch(self, name: str, argv: Sequence[str], env: Mapping[str, str]) -> _Daemon:
        daemon = _Daemon(name, argv, self.folder / f"{name}.out", env)
        self._daemons.append(daemon)
        daemon.start()
        return daemon


class _Daemon:
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
                env={**_clean_environment(), **self._env},
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


def _listens(daemon: _Daemon, address: str | tuple[str, int]) -> bool:
    daemon.require_alive()
    family = socket.AF_UNIX if isinstance(address, str) else socket.AF_INET
    with socket.socket(family) as probe, contextlib.suppress(OSError):
        probe.connect(address)
        return True
    return False


def _await(what: str, condition: Callable[[], bool], timeout: float = LONG_S) -> None:
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


def _short_folder(purpose: str) -> Path:
    """A folder of our own whose paths leave room in a socket's 107 characters."""
    folder = Path(tempfile.mkdtemp(prefix=f"seatrial-{purpose}-", dir="/tmp"))
    folder.chmod(0o755)
    return folder


def _hostname() -> str:
    return socket.gethostname().partition(".")[0]


def _find(program: str) -> str | None:
    return shutil.which(program) or shutil.which(program, path="/usr/sbin:/sbin:/usr/local/sbin")


def _program(name: str) -> str:
    path = _find(name)
    if path is None:
        raise ClusterError(f"{name} not found")
    return path


def _clean_environment() -> dict[str, str]:
    """Ours, without what another Slurm or an outer job left in it."""
    prefixes = ("SLURM", "SBATCH", "SRUN", "SALLOC", "SQUEUE", "SINFO", "SCANCEL", "SACCT")
    return {name: value for name, value in os.environ.items() if not name.startswith(prefixes)}
