"""The fold of one trial's journal, which goes on from where it was.

    fold = TrialFold(TrialFolder(path))
    while fold.go_on():                  # a block at a time
        ...
    fold.history, fold.tests(), fold.held(fold.present())

A journal that was replaced or cut is folded from its start. To be used by one thread at a time.
"""

import os
from collections import Counter, deque
from typing import BinaryIO

from seatrial.errors import JournalError, TrialError
from seatrial.execute.trial_folder import TrialFolder
from seatrial.files import open_regular
from seatrial.journal.clock import present
from seatrial.journal.journal import fingerprint, read_blocks
from seatrial.judge.references import References
from seatrial.model.policy import Policy
from seatrial.results import status
from seatrial.results.holds import Hold, Holds
from seatrial.results.status import verdict_of
from seatrial.results.trial_history import RunHistory

AT_ONCE = 2 << 20  # bytes of a journal that are folded in one go
LATEST = 8


class TrialFold:
    """The fold of one trial. ``end`` is the offset to which its journal was read; ``damaged``
    counts lines that are no events; ``verdicts`` counts those of each test."""

    def __init__(self, folder: TrialFolder) -> None:
        self.folder = folder
        self._begin()

    def _begin(self) -> None:
        self.record = self.folder.record()
        self.cases = self.folder.cases()
        self.history = status.accounts_of(self.record, self.cases)
        self.verdicts: dict[str, Counter[str]] = {case.test: Counter() for case in self.cases}
        self._runs = 0  # how many runs of the history were looked at
        self._open: list[RunHistory] = []  # those of them without a verdict
        self._expected: dict[str, int] = {}  # by the policy below
        self._policy: Policy | None = None
        self.judged: deque[str] = deque(maxlen=LATEST)  # ids of runs, by their verdicts
        self.end = self.size = self.damaged = 0
        self._holds = Holds(self.history)
        self._mark = (0, 0)  # inode and fingerprint of what was read

    # ---- reading --------------------------------------------------------------------------

    def left(self) -> int:
        """Return how many bytes of the journal are still to be read, with a torn last line."""
        try:
            self.size = self.folder.journal.stat().st_size
        except OSError:
            return 0
        return max(0, self.size - self.end)

    def go_on(self, at_once: int = AT_ONCE) -> bool:
        """Fold the next block and return whether there is more. Raises JournalError, or TrialError
        if the trial's folder is gone."""
        try:
            with open_regular(self.folder.journal) as file:
                if not self._goes_on(file):
                    self._begin()
                return self._fold_next(file, at_once)
        except FileNotFoundError:
            if not self.folder.path.is_dir():
                raise TrialError(f"{self.folder.path}: this folder is gone") from None
            return False
        except OSError as error:
            raise JournalError(
                f"{self.folder.journal}: cannot be read: {error.strerror}"
            ) from error

    def _goes_on(self, file: BinaryIO) -> bool:
        """Return whether the journal is the one that was read."""
        self.size = os.fstat(file.fileno()).st_size
        return self.end == 0 or (self.size >= self.end and _mark_of(file, self.end) == self._mark)

    def _fold_next(self, file: BinaryIO, at_once: int) -> bool:
        block = next(read_blocks(file, self.end, at_once), None)
        if block is None:
            return False
        for event in block.events:
            self.history.apply(event)
            self._holds.apply(event)
        self._count_verdicts()
        self.end = block.end
        self.damaged += block.damaged
        self.history.damaged = self.damaged
        self._mark = _mark_of(file, self.end)
        return file.tell() < self.size

    @property
    def references(self) -> References:
        """The references that criteria use by now."""
        return status.references_now(self.record, self.history)

    def _count_verdicts(self) -> None:
        """Count the runs that are over since the last time."""
        self._open += self.history.runs[self._runs :]
        self._runs = len(self.history.runs)
        over = [run for run in self._open if run.over]
        self._open = [run for run in self._open if not run.over]
        for run in sorted(over, key=lambda run: run.judged or 0):
            self.verdicts[self.history.test_of(run)][verdict_of(run)] += 1
            self.judged.append(run.id)

    # ---- what it has ----------------------------------------------------------------------

    def present(self) -> int:
        """Return the time (ns) at which the trial is looked at: now while it runs, else that of its
        last event."""
        runs = self.history.state == "running" and not self.record.rehearsed
        return max(present(self.history.opened) if runs else 0, self.history.last)

    def held(self, now: int) -> list[Hold]:
        """Return what holds launches back, if the trial runs."""
        if self.history.state != "running":
            return []
        return [*self._holds.held(now), *self._holds.unbuilt()]

    def tests(self) -> list[status.TestStatus]:
        """Return the status of each test."""
        if self._policy is not self.history.policy:
            self._policy = self.history.policy
            self._expected = status.expected_of(self.history, self.record.machine)
        return status.tests_of(self.history, self._open, self.verdicts, self._expected)


def _mark_of(file: BinaryIO, end: int) -> tuple[int, int]:
    return os.fstat(file.fileno()).st_ino, fingerprint(file, end)
