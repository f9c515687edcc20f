"""The consequences of a failed run: whether and where it is retried, and when its test is
stopped."""

from collections import Counter

from seatrial.conduct.policy import Answer, Entry
from seatrial.journal import codes
from seatrial.units import count

MAX_LOSSES = 3
MAX_REFUSED = 10  # failed launches in a row, where launches never end

_NOT_STARTED = (codes.LAUNCH_FAILED.number, codes.REFUSED.number)
_RIGHT = (codes.PASS.number, codes.PERFORMANCE.number)  # the answer was right


_NOT_ITS_FAULT = codes.CUT_OFF | codes.UNCOUNTED


class RetryPolicy:
    """Counts the retries of each case. Counts, for each entry, wrong answers and failures in a row
    and, if its runs are ``endless``, refused launches in a row."""

    def __init__(self, entries: list[Entry], endless: bool = False) -> None:
        self._entries = entries
        self._endless = endless
        self._retried: Counter[int] = Counter()  # by case
        self._wrong = [0] * len(entries)
        self._failed = [0] * len(entries)
        self._refused = [0] * len(entries)
        self.to_stop: dict[int, str] = {}  # entries to stop, with reasons

    def change(self, entries: list[Entry]) -> None:
        """Follow other rules for the same tests; what was counted stays."""
        self._entries = entries

    def answer(self, entry: int, code: int) -> Answer:
        """Return the policy's answer to a verdict; by default lost runs are retried."""
        default: Answer = "again" if code == codes.LOST.number else "never"
        return self._entries[entry].answers.get(codes.code_of(code).name, default)

    def will_rerun(self, case: int, entry: int, code: int, repeat: int) -> bool:
        """Return whether the run is launched again; ``repeat`` is how many runs its case has in
        all."""
        if self.answer(entry, code) == "never":
            return False
        given = self._entries[entry].answers
        most = MAX_LOSSES if not given else (self._entries[entry].attempts - 1) * max(1, repeat)
        return self._retried[case] < most

    def retried(self, case: int) -> None:
        self._retried[case] += 1

    def verdict(self, entry: int, code: int, why: str = "") -> None:
        """Record a verdict. A run without a result (such as launch failed) does not reset the count
        of consecutive wrong answers. A run that was cut off from outside, or whose failure is
        known, neither counts as a failure nor ends a row of them."""
        if code in _RIGHT:
            self._failed[entry] = 0
        elif code not in _NOT_ITS_FAULT:
            self._failed[entry] += 1
            most = self._entries[entry].stop_failures
            if most and self._failed[entry] >= most:
                last = f", the last: {codes.code_of(code).name}{why and f': {why}'}"
                self.to_stop[entry] = f"{count(self._failed[entry], 'failure')} in a row{last}"
        if code in _NOT_STARTED:
            self._refused[entry] += 1
            if self._endless and self._refused[entry] >= MAX_REFUSED:
                said = f": {why}" if why else ""
                self.to_stop[entry] = f"{self._refused[entry]} launches in a row failed{said}"
            return
        self._refused[entry] = 0
        if code == codes.WRONG_ANSWER.number:
            self._wrong[entry] += 1
            most = self._entries[entry].stop_after
            if most and self._wrong[entry] >= most:
                self.to_stop[entry] = f"{self._wrong[entry]} wrong answers in a row"
        elif code in _RIGHT:
            self._wrong[entry] = 0

    def forgive(self, entry: int) -> None:
        """Reset the counts of an entry, as a person admitted its test again."""
        self._wrong[entry] = self._refused[entry] = self._failed[entry] = 0
        self.to_stop.pop(entry, None)
