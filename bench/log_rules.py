"""Log rules: the causes of failures looked for in 10 MB of output, beside `grep`.

Lines of a solver without a cause, random bytes, one line of 10 MB, and lines that resemble causes;
each also with a cause at its end. `grep -F` for one word is the limit of reading it; `grep -E` has
the same patterns.
"""

from __future__ import annotations

import os
import random
import re
import time
from collections.abc import Callable
from pathlib import Path

from bench.measuring import Row, ratios, scratch, timed
from seatrial.judge.log_rules import shipped_log_rules
from seatrial.judge.script_check import CauseSearch

SIZE, ROUNDS = 10_000_000, 5
CAUSE = b"\nTraceback (most recent call last):\n"
OUTPUTS = {
    "lines of a solver": b"step 123 residual 1.234e-05 time 3.4 s\n",
    "one line": b"error: ",
    "lines that resemble causes": b"CUDA err Cannot alloc LNetError: tim slurmstepd EDAC MC0: 1\n",
}


def measure() -> list[Row]:
    rules = shipped_log_rules()
    texts = {name: line * (SIZE // len(line)) for name, line in OUTPUTS.items()}
    texts["random bytes"] = random.Random(1).randbytes(SIZE)
    with scratch() as folder:
        patterns = folder / "patterns"
        patterns.write_text("\n".join(_for_grep(rule.pattern) for rule in rules))
        search = CauseSearch(rules)
        return [_row(folder, patterns, name, text, search) for name, text in texts.items()]


def _row(folder: Path, patterns: Path, name: str, text: bytes, search: CauseSearch) -> Row:
    rules = len(patterns.read_text().splitlines())
    output = folder / "stdout"
    ours, with_cause, words, greps = [], [], [], []
    for _ in range(ROUNDS):
        output.write_bytes(text + CAUSE)
        with_cause.append(_seconds(lambda: search.of_run(folder, {}, 1)))
        output.write_bytes(text)
        ours.append(_seconds(lambda: search.of_run(folder, {}, 1)))
        words.append(_grep(folder, "-F", "-e", "Traceback (most"))
        greps.append(_grep(folder, "-E", "-f", os.fspath(patterns)))
    slower = [max(pair) for pair in zip(ours, with_cause, strict=True)]
    return Row(
        f"log rules: {rules} over 10 MB ({name}) in under 1 s",
        f"{1e3 * min(ours):.0f} ms without a cause, {1e3 * min(with_cause):.0f} ms with one",
        f"`grep -F` for one word {1e3 * min(words):.0f} ms, `grep -E` for all "
        f"{1e3 * min(greps):.0f} ms",
        ratios(list(zip(slower, greps, strict=True))),
    )


def _seconds(work: Callable[[], object]) -> float:
    began = time.perf_counter()
    work()
    return time.perf_counter() - began


def _grep(folder: Path, *options: str) -> float:
    command = ["grep", "-a", "-c", *options, "stdout"]
    return timed(command, folder, {"LC_ALL": "C"}, check=False).wall


def _for_grep(pattern: str) -> str:
    """Return a pattern of RE2 as `grep -E` reads it."""
    return re.sub(r"\(\?:", "(", pattern).replace(r"\d", "[0-9]").replace(r"\S", "[^ ]")
