"""The builds: which to start, which are running, and which cases wait for them."""

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from seatrial.model.test import Case

LONGEST_CAUSE = 500  # characters of the last line of a log: a path and two checksums fit


class BuildTracker:
    """The state of builds. ``why_failed`` has, for each build that is done, the reason for its
    failure, "" if it succeeded. A case waits for its build."""

    def __init__(self) -> None:
        self.to_start: dict[str, None] = {}
        self.running: dict[str, None] = {}  # ordered, so that replays agree
        self.why_failed: dict[str, str] = {}
        self._waiting: dict[str, list[int]] = {}  # key -> cases

    def wait(self, key: str, case: int) -> None:
        """Record that a case waits for a build."""
        self.to_start[key] = None
        self._waiting.setdefault(key, []).append(case)

    def start(self, key: str) -> None:
        if key in self.to_start:
            del self.to_start[key]
            self.running[key] = None

    def end(self, key: str, why_failed: str) -> list[int]:
        """Record the end of a build. Returns the cases that waited for it."""
        self.running.pop(key, None)
        self.to_start.pop(key, None)
        self.why_failed[key] = why_failed
        return self._waiting.pop(key, [])

    def restart(self) -> None:
        """Record that running builds ended with their driver."""
        self.to_start.update(self.running)
        self.running.clear()

    def next(self, max_running: int) -> Iterator[str]:
        """Return the keys of the builds to start now, so that at most this number is running."""
        return islice(self.to_start, max(0, max_running - len(self.running)))

    def failures(self, cases: Sequence[Case]) -> str:
        """Return the tests of which no case could be built, and the reasons, for people; "" where
        there is none."""
        return "; ".join(
            f"the build of {', '.join(tests)} failed: {cause}"
            for cause, tests in unbuilt(cases, self.why_failed).items()
        )


def unbuilt(cases: Sequence[Case], why_failed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the tests all of whose builds failed, by the last line of the log of the first."""
    causes: dict[str, str] = {}
    usable: set[str] = set()
    for case in cases:
        if text := why_failed.get(case.build, ""):
            causes.setdefault(case.test, (text.strip().splitlines() or ["?"])[-1][:LONGEST_CAUSE])
        else:
            usable.add(case.test)
    by_cause: dict[str, list[str]] = {}
    for test, cause in causes.items():
        if test not in usable:
            by_cause.setdefault(cause, []).append(test)
    return by_cause
