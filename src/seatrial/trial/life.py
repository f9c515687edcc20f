"""The life of a trial, by its journal."""

from seatrial.journal.journal import read
from seatrial.journal.trial_life import TrialLife
from seatrial.trial.paths import TrialPaths


def life_of(folder: TrialPaths, duration: float) -> TrialLife:
    """Return the life of a trial, by its journal; ``duration`` is its policy's. Raises
    JournalError."""
    life = TrialLife(duration)
    for event in read(folder.journal):
        life.apply(event)
    return life
