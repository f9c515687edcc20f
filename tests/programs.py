"""Seatrial as people use it: a folder with a suite and a machine file, the command as a process.

    place = Workplace(tmp_path)
    place.local(cores=2)
    place.test("hello", "echo hello")
    done = place.run("--name", "t")             # seatrial run ..., to its end
    place.audit("t")                            # the facts that must hold of every complete trial

What the tests assert comes from the trial's own journal, and from a log to which every run's script
appends one line: its run id.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self, TypeVar, overload

import yaml

from seatrial.decide.conductor import Conductor
from seatrial.execute.trial_folder import TrialFolder
from seatrial.execute.trial_paths import tags
from seatrial.journal.events import AlertRaised, Event, RunJudged
from seatrial.journal.journal import read
from seatrial.model import codes
from tests.command_server import COMMAND as COMMAND
from tests.command_server import Process, Streams, command_line, start, start_fresh
from tests.gridengine import server as gridengine
from tests.pbs.server import CORES, NODES, PbsServer
from tests.pbs.stand_in import StandIn
from tests.slurm.cluster import SlurmCluster
from tests.waiting import LONG_S as LONG_S
from tests.waiting import until as until

E = TypeVar("E", bound=Event)
F = TypeVar("F", bound=Event)

COMPILERS: Mapping[str, Any] = {"plain": {}}
"""The toolchain of a machine whose tests call a compiler."""
NO_COMPILERS: Mapping[str, Any] = {"plain": {"cc": "", "cxx": "", "fc": ""}}
"""The toolchain of other machines. What compilers say of their versions is asked in each trial and
by each build, which takes as long as the rest of a short run, and longer than a short build."""


class Done(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        return self.out + self.err


class Driving:
    """A `seatrial` that runs. Ended with its block at the latest."""

    def __init__(self, process: Process, out: Path, err: Path) -> None:
        self.process = process
        self._out = out
        self._err = err

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    @property
    def said(self) -> str:
        return "".join(file.read_text(errors="replace") for file in (self._out, self._err))

    def peak_kib(self) -> int:
        """The most memory that the command has had so far; 0 once it has ended."""
        try:
            status = Path(f"/proc/{self.pid}/status").read_text()
        except OSError:
            return 0
        found = re.search(r"^VmHWM:\s+(\d+) kB", status, re.MULTILINE)
        return int(found[1]) if found else 0

    def send(self, number: signal.Signals) -> None:
        self.process.send_signal(number)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()

    def end(self, timeout: float = LONG_S) -> Done:
        """Wait for its end."""
        try:
            code = self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise AssertionError(f"no end in {timeout:g} s; it said:\n{self.said}") from None
        return Done(code, self._out.read_text(), self._err.read_text())

    def until(self, condition: Callable[[], bool], what: str, timeout: float = LONG_S) -> None:
        """Wait for a condition while the command runs; it must not end before."""

        def holds() -> bool:
            alive = self.alive
            if condition():
                return True
            assert alive, f"it ended before {what}; it said:\n{self.said}"
            return False

        until(holds, what, timeout, lambda: self.said)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self.alive:
            self.kill()


class Workplace:
    """A folder to work in: ``suite/``, ``machine.yaml``, ``trials/`` and the log of the runs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.suite = folder / "suite"
        self.machine = folder / "machine.yaml"
        self.trials = folder / "trials"
        self.log = folder / "ran"
        self.env: dict[str, str] = {}
        self.constants: dict[str, float] = {}
        self.fresh = False  # whether each command has an interpreter of its own from the start
        self._count = 0
        self._known: dict[Path, tuple[tuple[int, int, int], list[Event]]] = {}  # by journal

    # ---- what people write ----------------------------------------------------------------

    def local(self, cores: int = 2, **more: Any) -> None:
        """The machine is this host."""
        nodes = [{"names": "here", "cores": cores}]
        self._write_machine({"machine": "here", "nodes": nodes, **more})

    def slurm(self, cluster: SlurmCluster, slurm: Mapping[str, Any] = {}, **more: Any) -> None:
        """The machine is an emulated cluster."""
        self.env |= cluster.env
        nodes = [{"names": ",".join(cluster.node_names), "cores": cluster.options.cores}]
        about = {"machine": cluster.options.name, "scheduler": "slurm", "nodes": nodes}
        self._write_machine({**about, "slurm": {"poll": "1s", **slurm}, **more})

    def pbs(self, server: PbsServer | StandIn, pbs: Mapping[str, Any] = {}, **more: Any) -> None:
        """The machine is the nodes of a server of PBS."""
        self.env |= server.env
        nodes = [{"names": ",".join(NODES), "cores": CORES}]
        about = {"machine": "pbs", "scheduler": "pbs", "nodes": nodes}
        self._write_machine({**about, "pbs": {"poll": "1s", **pbs}, **more})

    def gridengine(
        self, cell: gridengine.GridEngineCell, settings: Mapping[str, Any] = {}, **more: Any
    ) -> None:
        """The machine is the hosts of a cell of Grid Engine."""
        self.env |= cell.env
        nodes = [{"names": ",".join(gridengine.NODES), "cores": gridengine.CORES}]
        about = {"machine": "gridengine", "scheduler": "gridengine", "nodes": nodes}
        said = {"poll": "1s", "parallel": gridengine.PARALLEL, **settings}
        self._write_machine({**about, "gridengine": said, **more})

    def _write_machine(self, about: Mapping[str, Any]) -> None:
        self.machine.write_text(yaml.safe_dump({"toolchains": NO_COMPILERS, **about}))

    def test(self, name: str, script: str = "true", *, logs: bool = True, **keys: Any) -> Path:
        """A test whose script appends its run id to the log and then does as it is told. ``run``
        and others are the keys of a test.yaml."""
        folder = self.suite / name
        folder.mkdir(parents=True, exist_ok=True)
        tell = f'echo "$SEATRIAL_RUN" >> {self.log}\n' if logs else ""
        run = {"walltime": "2m", **keys.pop("run", {}), "script": tell + script}
        (folder / "test.yaml").write_text(yaml.safe_dump({"app": "test", "run": run, **keys}))
        return folder

    # ---- the command ----------------------------------------------------------------------

    def start(self, *words: str, under: Iterable[str] = ()) -> Driving:
        """Start `seatrial` with these words."""
        env = {**os.environ, **self.env, "COLUMNS": "200"}
        self._count += 1
        out, err = (self.folder / f"{name}.{self._count}" for name in ("out", "err"))
        with out.open("wb") as stdout, err.open("wb") as stderr:
            streams = Streams(stdout, stderr)
            if self.fresh or under:
                line = [*under, *command_line(words, self.constants)]
                started = start_fresh(line, self.folder, env, streams)
            else:
                started = start(words, self.folder, env, streams, self.constants)
        return Driving(started, out, err)

    def seatrial(self, *words: str, timeout: float = LONG_S) -> Done:
        with self.start(*words) as driving:
            return driving.end(timeout)

    def start_run(self, *words: str) -> Driving:
        return self.start("run", "suite", "-m", str(self.machine), *words)

    def run(self, *words: str, timeout: float = LONG_S) -> Done:
        with self.start_run(*words) as driving:
            return driving.end(timeout)

    def resume(self, tag: str = "t", timeout: float = LONG_S) -> Done:
        return self.seatrial("resume", tag, timeout=timeout)

    # ---- what happened --------------------------------------------------------------------

    def trial(self, tag: str = "t") -> TrialFolder:
        return TrialFolder(self.trials / tag)

    @overload
    def events(self, tag: str = "t") -> list[Event]: ...
    @overload
    def events(self, tag: str, kind: type[E], /) -> list[E]: ...
    @overload
    def events(self, tag: str, kind: type[E], /, *others: type[F]) -> list[E | F]: ...

    def events(self, tag: str = "t", *kinds: type[Event]) -> list[Any]:
        """Return the events of the journal, those of some kinds."""
        events = self._read(self.trial(tag).journal)
        return [event for event in events if not kinds or isinstance(event, kinds)]

    def _read(self, journal: Path) -> list[Event]:
        """Return the events of a journal. It is read again if it has changed: tests look often."""
        try:
            about = journal.stat()
        except FileNotFoundError:
            return []
        version = (about.st_ino, about.st_size, about.st_mtime_ns)
        known = self._known.get(journal)
        if known is None or known[0] != version:
            known = self._known[journal] = version, list(read(journal))
        return known[1]

    def count(self, *kinds: type[Event], tag: str = "t") -> int:
        return sum(isinstance(event, kinds) for event in self.events(tag))

    def ran(self) -> list[str]:
        """The run ids in the order in which the scripts started."""
        try:
            return self.log.read_text().split()
        except FileNotFoundError:
            return []

    def more(self, than: int, *kinds: type[Event], tag: str = "t") -> Callable[[], bool]:
        """Return a condition: the journal has more such events than this number."""
        return lambda: self.count(*kinds, tag=tag) > than

    def ran_more(self, than: int) -> Callable[[], bool]:
        """Whether by then more scripts than these have started."""
        return lambda: len(self.ran()) > than

    def verdicts(self, tag: str = "t") -> dict[str, str]:
        """The latest verdict of every test, or of every case where a test has several."""
        names = {case.id: case.name for case in self.trial(tag).cases()}
        return {
            names[event.case].removesuffix("@plain"): event.verdict
            for event in self.events(tag, RunJudged)
        }

    def why(self, test: str, tag: str = "t") -> str:
        """Why the latest verdict of a test is what it is; without the notice that runs of tests in
        another process were beside it."""
        reason = [e for e in self.events(tag, RunJudged) if e.test == test][-1].reason
        return re.sub(r"(; |^)runs of other trials were beside it: .*", "", reason)

    def run_folder(self, test: str, tag: str = "t") -> Path:
        """The directory of the latest run of a test."""
        run = [e for e in self.events(tag, RunJudged) if e.test == test][-1]
        return self.trial(tag).run(test, run.run_id)

    def alerts(self, tag: str = "t") -> str:
        return "\n".join(event.text for event in self.events(tag, AlertRaised))

    def audit(self, tag: str = "t") -> None:
        """The facts that hold of every complete trial, whatever it went through."""
        reading = read(self.trial(tag).journal)
        events = list(reading)
        assert reading.damaged == 0
        assert reading.end == self.trial(tag).journal.stat().st_size
        cases = self.trial(tag).cases()
        conductor = Conductor(tag, cases, _no_limits())
        for event in events:
            conductor.apply(event)
        assert conductor.state.finished == conductor.state.wanted
        assert not conductor.state.in_flight
        ends = [event for event in events if isinstance(event, RunJudged)]
        assert len({event.run_id for event in ends}) == len(ends), "a run has two verdicts"
        finished = Counter(event.case for event in ends if not event.will_rerun)
        assert finished == Counter({case.id: case.repeat for case in cases})
        self.audit_log(tag)

    def audit_log(self, tag: str = "t") -> None:
        """No script ran twice; every run that passed ran; nothing ran that no journal knows."""
        ran = Counter(self.ran())
        ends = self.events(tag, RunJudged)
        assert not [run for run, times in ran.items() if times > 1], "a job script ran twice"
        passed = {event.run_id for event in ends if event.code == codes.PASS.number}
        only_built = {case.id for case in self.trial(tag).cases() if case.only_builds}
        passed -= {event.run_id for event in ends if event.case in only_built}
        assert passed <= ran.keys(), "passed and never ran"
        known = {e.run_id for tag in tags(self.trials) for e in self.events(tag, RunJudged)}
        assert ran.keys() <= known, "ran and is in no journal"


def _no_limits() -> Any:
    from seatrial.model.policy import Limits

    return Limits()


def job_shells(trial: TrialFolder) -> list[int]:
    """The processes of a trial's local jobs, each the leader of a session of its own."""
    found = []
    mark = os.fsencode(f"{trial.path}/runs/")
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark in (entry / "cmdline").read_bytes():
                pid = int(entry.name)
                found += [pid] if os.getsid(pid) == pid else []
    return found
