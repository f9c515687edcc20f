"""Builds: which are to be started, which run, and which cases wait for them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice

from seatrial.suite.model import Case

LONGEST_CAUSE = 500  # characters of a log's last line: a path and two checksums have room


class BuildTracker:
    """A case whose build is not done waits; ``why_failed`` tells of each done build why it failed,
    "" if it is good."""

    def __init__(self) -> None:
        self.to_start: dict[str, None] = {}
        self.running: dict[str, None] = {}  # in order, so that all replays agree
        self.why_failed: dict[str, str] = {}
        self._waiting: dict[str, list[int]] = {}  # key -> cases

    def wait(self, key: str, case: int) -> None:
        """A case can start when this build is done."""
        self.to_start[key] = None
        self._waiting.setdefault(key, []).append(case)

    def start(self, key: str) -> None:
        if key in self.to_start:
            del self.to_start[key]
            self.running[key] = None

    def end(self, key: str, why_failed: str) -> list[int]:
        """A build ended; the cases that waited for it."""
        self.running.pop(key, None)
        self.to_start.pop(key, None)
        self.why_failed[key] = why_failed
        return self._waiting.pop(key, [])

    def restart(self) -> None:
        """Builds that ran are gone with their driver, or were ended by it."""
        self.to_start.update(self.running)
        self.running.clear()

    def next(self, most: int) -> Iterator[str]:
        """The keys to start now, with at most so many at a time."""
        return islice(self.to_start, max(0, most - len(self.running)))

    def failures(self, cases: Sequence[Case]) -> str:
        """The tests of which no case could be built, and why, for people; "" where there is
        none."""
        return "; ".join(
            f"the build of {', '.join(tests)} failed: {cause}"
            for cause, tests in unbuilt(cases, self.why_failed).items()
        )


def unbuilt(cases: Sequence[Case], why_failed: Mapping[str, str]) -> dict[str, list[str]]:
    """The tests of which each case's build failed, by the last line of what the first of them
    said."""
    causes: dict[str, str] = {}
    usable: set[str] = set()
    for case in cases:
        if text := why_failed.get(case.build, ""):
            causes.setdefault(case.test, (text.strip().splitlines() or ["?"])[-1][:LONGEST_CAUSE])
        else:
            usable.add(case.test)
    found: dict[str, list[str]] = {}
    for test, cause in causes.items():
        if test not in usable:
            found.setdefault(cause, []).append(test)
    return found
