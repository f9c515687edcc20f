r"""Search text for patterns in bounded time. Python's matching may take time that grows with the
square of the text, or exponentially, and holds the interpreter's lock meanwhile. The main thread
searches a page of text at most, for a fraction of a second. All other searches run in a separate
process, which can be killed: the program ``search_process``.

values, = find_all([r"Triad:\s+(\S+)"], text)        # ["5693.6"]
"""

import json
import os
import re
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from seatrial.judge import search_process
from seatrial.judge.isolated_process import Apart, run_apart
from seatrial.judge.search_process import Match, find

PAGE = 8192
QUICK_SECONDS = 0.25
SEARCH_SECONDS = 30.0
MAX_MATCHES = 1_000_000


# Python can interrupt a search between its steps alone, and takes a repetition as one step, which
# may take long with a high count.
_HIGH_COUNT = re.compile(r"\{\d*,?\d{3,}\}")
_RETURN = r"\\r|\r"  # as an escape, or as YAML makes it of one in double quotes


class SearchFailed(Exception):
    """A search could not be carried out; the text says why."""


class SearchTookLong(Exception):
    """A search in the main thread took longer than QUICK_SECONDS: repeat it in another thread."""


def find_all(patterns: list[str], text: str, most: int = MAX_MATCHES) -> list[list[str]]:
    r"""Return for each pattern the texts of its group, or of the whole match if it has no group: up
    to ``most`` matches, each up to LONGEST_MATCH characters. ``^`` and ``$`` match at the ends of
    lines; a carriage return ends one, too, unless a pattern has ``\r`` itself. Raises SearchFailed
    if it takes too long, SearchTookLong in the main thread, re.error for an invalid pattern."""
    return [[found for found, _ in each] for each in _search(patterns, text, most)]


def find_placed(pattern: str, text: str) -> list[tuple[str, int]]:
    """Return the texts of the group of a pattern, as ``find_all`` does, each with the number of the
    line in which it begins, from 1."""
    (matches,) = _search([pattern], text, MAX_MATCHES)
    placed: list[tuple[str, int]] = []
    line, before = 1, 0
    for word, start in matches:
        if start < before:  # a group that looks ahead may begin behind the next match
            line, before = 1, 0
        line, before = line + text.count("\n", before, start), start
        placed.append((word, line))
    return placed


def _search(patterns: list[str], text: str, most: int) -> list[list[Match]]:
    if "\r" in text and not any(re.search(_RETURN, pattern) for pattern in patterns):
        text = text.replace("\r", "\n")  # as many characters: places stay
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in patterns]
    main_thread = threading.current_thread() is threading.main_thread()
    if main_thread and len(text) <= PAGE and not any(map(_HIGH_COUNT.search, patterns)):
        with _interrupted_after(QUICK_SECONDS):
            return [find(pattern, text, most) for pattern in compiled]

    request = {"patterns": patterns, "most": most, "seconds": SEARCH_SECONDS, "parent": os.getpid()}
    question = json.dumps(request).encode() + b"\n" + text.encode("utf-8", errors="surrogatepass")
    try:
        answer = run_apart(search_process.__file__, ["-I", "-S"], question, SEARCH_SECONDS)
        matches: list[list[Match]] = json.loads(answer)
    except (Apart, ValueError) as error:
        raise SearchFailed(f"{error} for {len(text)} characters; make it more specific") from None
    return matches


@contextmanager
def _interrupted_after(seconds: float) -> Iterator[None]:
    """Raise SearchTookLong in the block after so many seconds. Python's matching calls the handlers
    of signals between its steps."""

    def interrupt(number: int, frame: object) -> None:
        raise SearchTookLong

    before = signal.signal(signal.SIGALRM, interrupt)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
