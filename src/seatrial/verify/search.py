r"""Search text for patterns in bounded time. Python's matching may take time that grows with the
square of the text, or worse, and cannot be interrupted. A text of more than a page is therefore
searched in a separate process. This file is its main program too, and imports nothing of Seatrial.

values, = find_all([r"Triad:\s+(\S+)"], text)        # ["5693.6"]
"""

from __future__ import annotations

import re
import signal
import sys
from itertools import islice

PAGE = 8192
SEARCH_SECONDS = 30.0
MAX_MATCHES = 1_000_000
LONGEST_MATCH = 120


class SearchFailed(Exception):
    """A search could not be carried out; the text says why."""


def find_all(patterns: list[str], text: str, most: int = MAX_MATCHES) -> list[list[str]]:
    """Return for each pattern the texts of its group, or of the whole match if it has no group: up
    to ``most`` matches, each up to LONGEST_MATCH characters. ``^`` and ``$`` match at the ends of
    lines. Raises SearchFailed if it takes too long, re.error for an invalid pattern."""
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in patterns]
    if len(text) <= PAGE:
        return [_find(pattern, text, most) for pattern in compiled]
    import json

    from seatrial.verify.isolated_process import Apart, run_apart

    header = json.dumps({"patterns": patterns, "most": most, "seconds": SEARCH_SECONDS})
    question = header.encode() + b"\n" + text.encode("utf-8", errors="surrogatepass")
    try:
        answer = run_apart(__file__, ["-I", "-S"], question, SEARCH_SECONDS)
        found: list[list[str]] = json.loads(answer)
    except (Apart, ValueError) as error:
        raise SearchFailed(f"{error} for {len(text)} characters; make it more specific") from None
    return found


def _find(pattern: re.Pattern[str], text: str, most: int) -> list[str]:
    group = 1 if pattern.groups else 0
    return [(found[group] or "")[:LONGEST_MATCH] for found in islice(pattern.finditer(text), most)]


def _answer() -> None:
    """Answer in the separate process: patterns on the first line of stdin, the text after it."""
    import json

    header = json.loads(sys.stdin.buffer.readline())
    signal.alarm(int(header["seconds"]) + 5)  # ends it even if the trial was killed
    text = sys.stdin.buffer.read().decode("utf-8", errors="surrogatepass")
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in header["patterns"]]
    json.dump([_find(pattern, text, header["most"]) for pattern in compiled], sys.stdout)


if __name__ == "__main__":
    _answer()
