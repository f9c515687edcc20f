"""The process that delivers a trial's events: one for each trial, beside its driver.

    start(folder)                                   # from the driver's process; does not wait
    deliver(folder, sinks, SinkLifetime(folder, follow=True), tell)

Each sink has its own thread, so that one that hangs does not delay the others.
"""

import os
import subprocess
import sys
import traceback
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from threading import Thread

from seatrial.errors import SeatrialError
from seatrial.execute.ledger import Observer
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import make_folder, open_to_write
from seatrial.journal.events import Event
from seatrial.log import DEFAULT_LEVEL, log_to, logger
from seatrial.model.test import Case
from seatrial.plugins.sinks.cursor import folder_of, forget
from seatrial.plugins.sinks.delivery import Delivery, Tell
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import WAIT_S, DeliveryLocked, SinkLifetime, held, missing
from seatrial.plugins.sinks.protocol import TrialInfo, about_of

_log = logger(__name__)

BESIDE_A_DRIVER = 10  # how nice the process is
LEAVING_S = 5.0  # how long an earlier process may take to end

_COMMAND = (
    "from seatrial.entry import put_own_first; put_own_first(); "
    "import sys; from seatrial.plugins.sinks.process import run; sys.exit(run(*sys.argv[1:]))"
)
_started: list[subprocess.Popen[bytes]] = []  # kept, as they outlive us and nobody waits for them


def start(folder: TrialFolder, log_level: str = DEFAULT_LEVEL) -> str:
    """Start the process for a trial whose machine names sinks. It ends when the trial is over and
    everything is delivered. Returns why it could not be started, or ""."""
    place, log = folder_of(folder), folder.log("sinks")
    try:
        make_folder(place)
        make_folder(log.parent)
        with open_to_write(log, append=True) as output:  # of a defect that ends it, too
            process = subprocess.Popen(
                [sys.executable, "-P", "-c", _COMMAND, str(folder.path), log_level],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,
            )
    except OSError as error:
        return f"{error.filename or place}: {error.strerror}"
    _started.append(process)
    return ""


def run(path: str, log_level: str) -> int:
    """Deliver a trial's events for as long as it is driven; return the exit code of the process. If
    another process does that already, this one ends."""
    folder = TrialFolder(Path(path))
    os.nice(BESIDE_A_DRIVER)
    with log_to(folder.log("sinks"), log_level):
        try:
            sinks = wanted(about_of(folder))
            lifetime = SinkLifetime(folder, follow=True)
            return 0 if deliver(folder, sinks, lifetime, _log.warning, LEAVING_S) else 1
        except DeliveryLocked:
            return 0
        except SeatrialError as error:
            _log.warning("%s", error)
            return 1


@dataclass
class Starting(Observer):
    """An observer that starts the process when a drive begins, and passes everything on."""

    _folder: TrialFolder
    _observer: Observer
    _log_level: str

    def on_open(self, finished: int, wanted: int) -> None:
        if reason := start(self._folder, self._log_level):
            print(f"seatrial: the sinks of this trial were not started: {reason}", file=sys.stderr)
        _warn(self._folder)
        self._observer.on_open(finished, wanted)

    def on_event(self, event: Event, case: "Case | None") -> None:
        self._observer.on_event(event, case)


def _warn(folder: TrialFolder) -> None:
    """Warn of the sinks of a trial whose secrets our environment lacks."""
    for sink in wanted(about_of(folder)):
        if reason := missing(sink):
            print(
                f"seatrial: the sink {sink.name} gets nothing: {reason}; set it, then "
                f"`seatrial sink {folder.tag} --sink {sink.name}` sends what is missing",
                file=sys.stderr,
            )


def deliver(
    folder: TrialFolder,
    sinks: "Sequence[Sink]",
    lifetime: SinkLifetime,
    tell: Tell,
    wait_s: float = WAIT_S,
    *,
    again: str = "",
    from_start: bool = False,
) -> bool:
    """Deliver a trial's events to some sinks; return whether everything was delivered. ``wait_s``:
    how long another process that does this may take to end. ``again``: the command with which a
    person continues. ``from_start``: send the whole journal again. Raises DeliveryLocked if that
    process does not end, and TrialError."""
    about = about_of(folder)
    with held(folder, wait_s):
        if from_start:
            for sink in sinks:
                forget(folder, sink.name)
        done: list[str] = []

        def work(delivery: Delivery) -> None:
            name = delivery.sink.name
            try:
                done.extend([name] if delivery.run() else [])
            except Exception as error:  # in one sink; the others go on
                traceback.print_exc()
                tell(f"{name}: this is a defect of Seatrial: {error}")

        deliveries = [Delivery(folder, sink, about, lifetime, tell, again) for sink in sinks]
        threads = [Thread(target=work, args=(each,), daemon=True) for each in deliveries]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return len(done) == len(threads)


def wanted(about: TrialInfo, names: Sequence[str] = ()) -> "list[Sink]":
    """Return the sinks of a trial's machine with these names. Without names they are all sinks, but
    for a rehearsal only those that want rehearsals."""
    sinks = about.machine.sinks
    if names:
        return [sink for sink in sinks if sink.name in names]
    return [sink for sink in sinks if sink.rehearsals or not about.rehearsed]
