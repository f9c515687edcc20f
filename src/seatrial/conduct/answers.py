"""What follows a failed run: whether it is made good, where, and when its test is stopped."""

from __future__ import annotations

from collections import Counter

from seatrial.conduct.policy import Answer, Entry
from seatrial.journal.codes import LOST, WRONG_ANSWER, code_of

MOST_LOSSES = 3


class Answers:
    """Counts what was made good for each case, and wrong answers in a row for each entry."""

    def __init__(self, entries: list[Entry]) -> None:
        self._entries = entries
        self._made_good: Counter[int] = Counter()  # by case
        self._wrong = [0] * len(entries)

    def answer(self, entry: int, code: int) -> Answer:
        """What the policy says of a verdict; what was lost is made good if it says nothing."""
        default: Answer = "again" if code == LOST.number else "never"
        return self._entries[entry].answers.get(code_of(code).name, default)

    def makes_good(self, case: int, entry: int, code: int, repeat: int) -> bool:
        """Whether the run is launched again; ``repeat`` is how many its case has in all."""
        if self.answer(entry, code) == "never":
            return False
        given = self._entries[entry].answers
        most = MOST_LOSSES if not given else (self._entries[entry].attempts - 1) * max(1, repeat)
        return self._made_good[case] < most

    def made_good(self, case: int) -> None:
        self._made_good[case] += 1

    def verdict(self, entry: int, code: int) -> None:
        """A run has its verdict."""
        self._wrong[entry] = self._wrong[entry] + 1 if code == WRONG_ANSWER.number else 0

    def why_stopped(self, entry: int) -> str:
        """Why the test is to be stopped; "" if it is not."""
        most = self._entries[entry].stop_after
        if not most or self._wrong[entry] < most:
            return ""
        return f"{self._wrong[entry]} wrong answers in a row"

    def forgive(self, entry: int) -> None:
        """A person let the test back in."""
        self._wrong[entry] = 0
