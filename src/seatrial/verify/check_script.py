"""A script of a test that judges a run: its exit code is the verdict.

    # verify: [{script: check.sh, codes: oth}]      check.sh, in the test's folder:
    grep -q 'Solution Validates' stdout || exit 2   # a wrong answer
    echo "rate = 12.5" > metrics.txt                # metrics: {from: oth} reads it

It is run by bash if it is not executable. Its working directory is the run directory. Parameters of
the test are variables, as in the test's own script; ``SEATRIAL_TEST`` is the test's folder. What it
prints goes to ``check.out`` there; the last line is the reason of a verdict that is no pass.
``check_alias.txt``, a file that it may write there, has the cause in its first line.
"""

import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from seatrial.files import is_of_host
from seatrial.journal import codes
from seatrial.lazy import regex
from seatrial.suite.case_names import show
from seatrial.suite.check_spec import Check
from seatrial.suite.model import Test
from seatrial.units import bytes_of, seconds, show_bytes, show_seconds
from seatrial.verify.figures import Finding
from seatrial.verify.reading import (
    HostFailed,
    Unreadable,
    plain,
    plain_line,
    read_text,
    tail,
)

OUTPUT = "check.out"
ALIAS = "check_alias.txt"
SECONDS = 60.0
MEMORY = 2 << 30  # bytes
LAST_LINES = 4096  # bytes of its output in which the reason is looked for
LONGEST_REASON = 400
LONGEST_ALIAS = 100

OTH = {
    code.number: code
    for code in (
        codes.PASS,
        codes.FAILED,
        codes.WRONG_ANSWER,
        codes.PERFORMANCE,
        codes.NODE_FAILURE,
    )
}
"""The exit codes of check scripts of the OLCF Test Harness, which are the numbers of verdicts."""

_NAMES = {code.name: code for code in codes.CODES.values()}
# The last words of bash, of programs that it starts, and of Python.
_NO_MEMORY = regex(r"\S+: .*\bcannot allocate (memory|[0-9]+ bytes)|MemoryError", re.IGNORECASE)
_VARIABLE = regex(r"[A-Za-z]\w*", re.ASCII)


def find_by_script(
    check: Check, test_folder: Path, folder: Path, names: Mapping[str, Any]
) -> Finding | None:
    """Return the finding of a test's own script on the run in ``folder``; None if it passes.
    ``names`` are those of expressions, with their values. Raises HostFailed if this host cannot
    start it."""
    from seatrial.verify.isolated_process import run_script

    script = test_folder / (check.script or "")
    limit = SECONDS if check.time_limit is None else check.time_limit.seconds
    memory = MEMORY if check.memory_limit is None else check.memory_limit.bytes
    try:
        variables = _environment(test_folder, names)
        exit_code = run_script(script, folder, folder / OUTPUT, variables, limit, memory)
    except TimeoutError:
        text = f"{script.name} took longer than {show_seconds(limit)}; see `time_limit:`"
        return Finding(codes.CHECK_ERROR, text)
    except OSError as error:
        if is_of_host(error):
            raise HostFailed(f"{script} cannot be started: {error.strerror}") from error
        return Finding(codes.CHECK_ERROR, f"{script} cannot be started: {error.strerror}")
    code = verdict_of(check, exit_code)
    if code is codes.PASS:
        return None
    said = _last_line(folder)
    if _NO_MEMORY.fullmatch(said):
        text = f"{script.name} needs more than {show_bytes(memory)}: {said}; see `memory_limit:`"
        return Finding(codes.CHECK_ERROR, text)
    how = f"exit code {exit_code}" if exit_code >= 0 else f"ended by signal {-exit_code}"
    if code is None:
        code, how = codes.CHECK_ERROR, f"{how}, which `codes:` does not name"
    return Finding(code, f"{script.name}: {said} ({how})" if said else f"{script.name}: {how}")


def is_judged_by_script(test: Test) -> bool:
    """Return whether a script of a test has a word on its runs."""
    return any(check.script is not None for check in test.verify)


def alias_of(folder: Path) -> str:
    """Return what a script named as the cause: the first line of ``check_alias.txt``."""
    try:
        text = read_text(folder, ALIAS)
    except Unreadable:
        return ""
    return plain_line(text.strip().partition("\n")[0][:LONGEST_ALIAS])


def verdict_of(check: Check, exit_code: int) -> codes.Code | None:
    """Return the verdict of an exit code of the script of a check; None where there is none. 0 is a
    pass unless a table says otherwise, and without ``codes`` any other is a wrong answer. 126 and
    127 (the shell cannot start a command) and signals are no verdict unless a table names them."""
    if check.codes == "any":
        return codes.PASS
    if isinstance(check.codes, dict):
        named = {int(number): _NAMES[name] for number, name in check.codes.items()}
        return {0: codes.PASS, **named}.get(exit_code)
    if check.codes == "oth":
        return OTH.get(exit_code)
    if exit_code in (126, 127) or not 0 <= exit_code < 128:
        return None
    return codes.WRONG_ANSWER if exit_code else codes.PASS


def faults_of_script(check: Check, test_folder: Path) -> list[tuple[str, str]]:
    """Return the faults of such a check as a person wrote it: the key, and a message."""
    faults: list[tuple[str, str]] = []
    if check.script is None:
        return [
            (key, "belongs to script:, which is not given")
            for key in ("codes", "time_limit", "memory_limit")
            if getattr(check, key) is not None
        ]
    if not (script := test_folder / check.script).is_file():
        faults.append(("script", f"{script} is missing"))
    if isinstance(check.codes, dict):
        bad = [each for each in check.codes if not (each.isdigit() and int(each) < 256)]
        faults += [("codes", f"{each!r} is no exit code from 0 to 255") for each in bad]
    for key, of in (("time_limit", seconds), ("memory_limit", bytes_of)):
        if (given := getattr(check, key)) is None:
            continue
        try:
            if of(given) <= 0:
                faults.append((key, f"{given!r} must be more than 0"))
        except ValueError as error:
            faults.append((key, str(error)))
    return faults


def _environment(test_folder: Path, names: Mapping[str, Any]) -> dict[str, str]:
    own = {name: show(value) for name, value in names.items() if _VARIABLE.fullmatch(name)}
    return {**os.environ, **own, "SEATRIAL_TEST": str(test_folder.absolute())}


def _last_line(folder: Path) -> str:
    """Return the last line of the script's output that is not empty."""
    found = tail(folder / OUTPUT, LAST_LINES)
    lines = [line.strip() for line in found.text.splitlines()] if found else []
    said = next(filter(None, reversed(lines)), "")
    return plain(said[:LONGEST_REASON])
