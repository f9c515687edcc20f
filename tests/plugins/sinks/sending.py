"""What the tests of sinks share: delivering in this process, and what it tells."""

from __future__ import annotations

from seatrial.execute.trial_folder import TrialFolder
from seatrial.plugins.sinks.keys import Sink
from seatrial.plugins.sinks.lifetime import SinkLifetime
from seatrial.plugins.sinks.process import Delivery
from seatrial.plugins.sinks.protocol import about_of


class Told(list[str]):
    """The lines that a delivery told."""

    def __call__(self, line: str) -> None:
        self.append(line)


def deliver(
    folder: TrialFolder, sink: Sink, patience: float = 30, tell: Told | None = None
) -> bool:
    """Deliver what a journal holds; whether all of it was."""
    lifetime = SinkLifetime(folder, patience=patience)
    told = Told() if tell is None else tell
    return Delivery(folder, sink, about_of(folder), lifetime, told).run()
