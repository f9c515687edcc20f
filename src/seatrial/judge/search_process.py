"""The separate process of ``isolated``: a program that imports nothing of Seatrial, so that Python
starts it fast and in isolation."""

import json
import os
import re
import signal
import sys
from itertools import islice

LONGEST_MATCH = 120

Match = tuple[str, int]  # its text, and where it begins


def find(pattern: re.Pattern[str], text: str, most: int) -> list[Match]:
    """Return the texts of the group of a pattern, or of the whole match if it has no group."""
    group = 1 if pattern.groups else 0
    return [
        ((found[group] or "")[:LONGEST_MATCH], max(found.start(), found.start(group)))
        for found in islice(pattern.finditer(text), most)
    ]


def answer() -> None:
    """Answer on stdout: patterns on the first line of stdin, the text after it."""
    header = json.loads(sys.stdin.buffer.readline())
    signal.alarm(int(header["seconds"]) + 5)  # ends it whatever happens

    def end_without_parent(number: int, frame: object) -> None:
        if os.getppid() != header["parent"]:
            os._exit(1)

    signal.signal(signal.SIGVTALRM, end_without_parent)
    signal.setitimer(signal.ITIMER_VIRTUAL, 1, 1)  # after each second of a core
    text = sys.stdin.buffer.read().decode("utf-8", errors="surrogatepass")
    compiled = [re.compile(pattern, re.MULTILINE) for pattern in header["patterns"]]
    json.dump([find(pattern, text, header["most"]) for pattern in compiled], sys.stdout)
    sys.stdout.write("\0")  # the end of the answer


if __name__ == "__main__":
    answer()
