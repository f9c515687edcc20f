"""Why a run failed, as its output tells: by its test's failure modes and by log rules.

causes = CauseSearch(log_rules_for(machine.log_rules))
found = causes.of_run(folder, test.failures, exit_code)
found.text, found.line          # "out of huge pages", "stderr: libhugetlbfs [nid00031:17034]: ..."

Searching takes time linear in what is read, which is bounded: RE2 never tries twice, whatever a job
wrote.
"""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.files import open_regular
from seatrial.machine.failures import LogRule, any_and_set, log_pattern
from seatrial.suite.model import FailureMode
from seatrial.verify.reading import plain_line

OUTPUTS = ("stderr", "stdout")
SCHEDULER = "scheduler"
PIECE = 8 << 20  # bytes from the beginning of a file, and as many from its end
LONGEST_LINE = 500  # characters of what is shown
BEFORE = 200  # of these at most before what was found


class FoundCause(NamedTuple):
    """What a run failed of. ``code`` is the number of a failure mode of its test, 0 for a log rule;
    ``line`` is what told it, after the name of its file; ``advice`` is what to do, and who says
    so."""

    text: str
    code: int = 0
    line: str = ""
    advice: str = ""


NO_CAUSE = FoundCause("")


class CauseSearch:
    """Finds causes by log rules, of which the first that matches counts."""

    def __init__(self, rules: Sequence[LogRule]) -> None:
        self._rules = [(log_pattern(rule.pattern), rule) for rule in rules]
        self._any, self._set = any_and_set(rule.pattern for rule in rules)
        self._modes: dict[str, Any] = {}  # patterns of failure modes

    def of_run(
        self,
        folder: Path,
        modes: Mapping[str, FailureMode],
        exit_code: int | None,
        of_scheduler: Path | None = None,
    ) -> FoundCause:
        """Return why the run in ``folder`` failed, NO_CAUSE where nothing tells; ``of_scheduler``
        is the file in which the scheduler says what it did to its job. A failure mode of its test
        comes before every rule."""
        texts = {name: read_ends(folder / name) for name in OUTPUTS}
        if of_scheduler is not None:
            texts[SCHEDULER] = read_ends(of_scheduler)
        for name, mode in modes.items():
            line = self._told_mode(mode, texts, exit_code)
            if line is not None:
                return FoundCause(name, mode.code, line, mode.advice)
        for number in sorted({n for text in texts.values() for n in self._matching(text)}):
            pattern, rule = self._rules[number]
            for name, text in texts.items():
                if match := pattern.search(text):
                    return FoundCause(
                        rule.cause, 0, _line(name, text, match.start()), _advice(rule)
                    )
        return NO_CAUSE

    def _matching(self, text: bytes) -> Sequence[int]:
        """Return the numbers of the rules that match, or of all of them where the automaton that
        looks for all at once would take too much memory."""
        if self._any.search(text) is None:
            return ()
        return self._set.Match(text) or range(len(self._rules))

    def _told_mode(
        self, mode: FailureMode, texts: Mapping[str, bytes], exit_code: int | None
    ) -> str | None:
        """Return the line that tells a failure mode, "" for its exit code alone; None where it is
        not this one."""
        if mode.exit_code is not None and mode.exit_code != exit_code:
            return None
        if not mode.pattern:
            return ""
        pattern = self._modes.get(mode.pattern)
        if pattern is None:
            pattern = self._modes[mode.pattern] = log_pattern(mode.pattern)
        for name, text in texts.items():
            if match := pattern.search(text):
                return _line(name, text, match.start())
        return None


def read_ends(path: Path) -> bytes:
    """Return the first and the last PIECE bytes of a regular file, with a line end between them if
    it has more; nothing of what cannot be read."""
    try:
        with open_regular(path, follow=False) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= 2 * PIECE:
                return file.read(2 * PIECE)
            first = os.pread(file.fileno(), PIECE, 0)
            return first + b"\n" + os.pread(file.fileno(), PIECE, size - PIECE)
    except (OSError, ValueError):
        return b""


def _advice(rule: LogRule) -> str:
    return f"{rule.advice.rstrip('.')} (source: {rule.source})"


def _line(name: str, text: bytes, at: int) -> str:
    """Return the line around a place, on one line of printable characters, with its file's name."""
    end = text.find(b"\n", at, at + LONGEST_LINE)
    before = text[max(text.rfind(b"\n", 0, at) + 1, at - BEFORE) : at].lstrip()
    rest = text[at : end if end >= 0 else at + LONGEST_LINE].rstrip()
    first, last = (plain_line(part.decode(errors="replace")) for part in (before, rest))
    return f"{name}: {first[-BEFORE:]}{last[: LONGEST_LINE - BEFORE]}"
