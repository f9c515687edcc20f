"""Keep `seatrial accept run` alive: start it again when it died.

    code = supervise(folders, Path("plan.yaml"), name="")

The driver is a process of its own, with this command line. Its end decides. After an exit code of
its own (complete, paused, cancelled, refused) the supervisor ends with the same code. If a signal
killed the driver, or a defect ended it, it is started again, after a pause that grows while it
keeps dying.
"""

import ctypes
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import FrameType

import click

from seatrial.cli import DEFECT, Folders
from seatrial.execute.alerts import RESTART, note, run_command
from seatrial.execute.ledger import life_of
from seatrial.execute.plan_trials import PlanTrial, made
from seatrial.journal.events import AlertRaised
from seatrial.results.store.queries import owned
from seatrial.units import show_seconds

OPTION = "--supervise"
FIRST_PAUSE_SECONDS = 5.0
LONGEST_PAUSE_SECONDS = 600.0
_OWN_CODES = frozenset({0, 1, 2, 3, 130, 141})
_FORWARDED = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_PR_SET_PDEATHSIG = 1


def supervise(folders: Folders, path: Path, name: str) -> int:
    """Run this command without --supervise until it is over; return its exit code."""
    return _Supervisor(folders, path, name).run()


class _Supervisor:
    def __init__(self, folders: Folders, path: Path, name: str) -> None:
        self._folders, self._path, self._name = folders, path, name
        self._child: subprocess.Popen[bytes] | None = None
        self._told = False  # to end, by a signal
        self._libc = ctypes.CDLL(None)

    def run(self) -> int:
        for number in _FORWARDED:
            if signal.getsignal(number) is not signal.SIG_IGN:  # as nohup has it
                signal.signal(number, self._forward)
        pauses = _pauses()
        while True:
            began = time.monotonic()
            code = self._run_once()
            if self._told or code in _OWN_CODES:
                if not self._told:
                    self._tell_stopped(code)
                return code if code >= 0 else 128 - code
            if time.monotonic() - began > LONGEST_PAUSE_SECONDS:
                pauses = _pauses()
            pause = next(pauses)
            again = f"it is started again in {show_seconds(pause)}"
            self._tell(f"the driver {_how(code)}; {again}")
            self._wait(pause)
            if self._told:
                return 3

    def _run_once(self) -> int:
        words = [word for word in sys.orig_argv[1:] if word != OPTION]
        # In a process group of its own, Ctrl-C reaches it once, by us.
        self._child = subprocess.Popen(
            [sys.executable, *words], process_group=0, preexec_fn=self._end_with(os.getpid())
        )
        if self._told:
            self._child.terminate()
        return self._child.wait()

    def _end_with(self, parent: int) -> Callable[[], None]:
        """Return what makes a child leave, its jobs going on, when this process dies: whoever
        starts this one again would find the trial driven."""

        def work() -> None:
            self._libc.prctl(_PR_SET_PDEATHSIG, signal.SIGTERM)
            if os.getppid() != parent:
                os._exit(3)

        return work

    def _forward(self, number: int, _: FrameType | None) -> None:
        self._told = True
        if self._child is not None and self._child.poll() is None:
            self._child.send_signal(number)

    def _wait(self, pause: float) -> None:
        until = time.monotonic() + pause
        while not self._told and (left := until - time.monotonic()) > 0:
            time.sleep(min(left, 0.2))

    def _tell_stopped(self, code: int) -> None:
        """Tell people if the driver refused to go on with a trial that should run."""
        if any(True for _ in self._stopped()):
            self._tell(f"the driver ended with exit code {code}, and is not started again")

    def _tell(self, text: str) -> None:
        """Say it, and raise it as an alert of the trial that the driver drove."""
        click.echo(f"seatrial: {text}", err=True)
        for trial in self._stopped():
            alert = AlertRaised(kind=RESTART, text=text)
            note(trial.folder, trial.record, alert)
            if failure := run_command(trial.folder, alert):
                click.echo(f"seatrial: the command of alerts fails: {failure}", err=True)

    def _stopped(self) -> Iterator[PlanTrial]:
        """Yield the trials of the plan that should run, and which nobody drives."""
        for trial in made(self._folders.trials, self._path, self._name):
            life = life_of(trial.folder, trial.record.policy.duration)
            if life.clock_runs and not owned(str(trial.folder.path)):
                yield trial


def _pauses() -> Iterator[float]:
    """Yield the seconds until the next start: each twice the one before, up to a limit."""
    pause = FIRST_PAUSE_SECONDS
    while True:
        yield pause
        pause = min(2 * pause, LONGEST_PAUSE_SECONDS)


def _how(code: int) -> str:
    if code == DEFECT:
        return f"was ended by a defect of Seatrial (exit code {code})"
    if code > 0:
        return f"ended with exit code {code}"
    try:
        return f"was killed by {signal.Signals(-code).name}"
    except ValueError:
        return f"was killed by signal {-code}"
