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
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from seatrial.escaping import plain, plain_line
from seatrial.files import is_of_host, open_regular
from seatrial.judge.isolated import run_script
from seatrial.judge.reading import OWN_WORDS, HostFailed, Unreadable, read_text, tail
from seatrial.model import codes
from seatrial.model.failures import LogRule, any_and_set, log_pattern
from seatrial.model.figures import Finding
from seatrial.model.identifiers import show
from seatrial.model.test import Check, FailureMode, Test
from seatrial.units import show_bytes, show_seconds

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
_NO_MEMORY = re.compile(
    r"\S+: .*\bcannot allocate (memory|[0-9]+ bytes)|MemoryError", re.IGNORECASE
)
SCRIPT_KEYS = ("codes", "time_limit", "memory_limit")
_VARIABLE = r"[A-Za-z]\w*"


def find_by_script(
    check: Check, test_folder: Path, folder: Path, names: Mapping[str, Any]
) -> Finding | None:
    """Return the finding of a test's own script on the run in ``folder``; None if it passes.
    ``names`` are those of expressions, with their values. Raises HostFailed if this host cannot
    start it."""
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
    last_words = _last_line(folder)
    if _NO_MEMORY.fullmatch(last_words):
        needs = f"{script.name} needs more than {show_bytes(memory)}: {last_words}"
        return Finding(codes.CHECK_ERROR, f"{needs}; see `memory_limit:`")
    text = _words(exit_code, last_words, is_named=code is not None)
    return Finding(code or codes.CHECK_ERROR, f"{script.name}: {text}")


def _words(exit_code: int, last_words: str, *, is_named: bool) -> str:
    """Return the last words of a script with how it ended; ``is_named``: whether the check says
    what its exit code means."""
    end = f"exit code {exit_code}" if exit_code >= 0 else f"ended by signal {-exit_code}"
    if not is_named:
        end += ", which `codes:` does not name"
    return f"{last_words} ({end})" if last_words else end


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
    if check.script is None:
        given = [key for key in SCRIPT_KEYS if getattr(check, key) is not None]
        return [(key, "belongs to script:, which is not given") for key in given]
    faults: list[tuple[str, str]] = []
    if not (script := test_folder / check.script).is_file():
        faults.append(("script", f"{script} is missing"))
    if isinstance(check.codes, dict):
        wrong = [code for code in check.codes if not _is_exit_code(code)]
        faults += [("codes", f"{code!r} is no exit code from 0 to 255") for code in wrong]
    if (limit := check.memory_limit) is not None and limit.bytes <= 0:
        faults.append(("memory_limit", f"{limit.written!r} must be more than 0"))
    return faults


def _is_exit_code(text: str) -> bool:
    return text.isdigit() and int(text) < 256


def _environment(test_folder: Path, names: Mapping[str, Any]) -> dict[str, str]:
    own = {
        name: show(value)
        for name, value in names.items()
        if re.fullmatch(_VARIABLE, name, re.ASCII)
    }
    return {**os.environ, **own, "SEATRIAL_TEST": str(test_folder.absolute())}


def _last_line(folder: Path) -> str:
    """Return the last line of the script's output that is not empty."""
    end = tail(folder / OUTPUT, LAST_LINES)
    lines = [line.strip() for line in end.text.splitlines()] if end else []
    words = next(filter(None, reversed(lines)), "")
    return plain(words[:LONGEST_REASON])


# ---- causes --------------------------------------------------------------------------------------
#
# Why a run failed, as its output tells: by its test's failure modes and by log rules.
#
# causes = CauseSearch(log_rules_for(machine.log_rules)) found = causes.of_run(folder,
# test.failures, exit_code) found.text, found.line # "out of huge pages", "stderr: libhugetlbfs
# [nid00031:17034]: ..."
#
# Searching takes time linear in what is read, which is bounded: RE2 never tries twice, whatever a
# job wrote.


OUTPUTS = ("stderr", "stdout")
SCHEDULER = "scheduler"
PIECE = 8 << 20  # bytes from the beginning of a file, and as many from its end
LONGEST_LINE = 500  # characters of what is shown
BEFORE = 200  # of these at most before what was found

_BAR = r"^[-=*]{20,}\s*$"  # around messages of Open MPI and MPICH
_WORDS = r"\w{2}"
# What launchers say of every run that failed, whatever it failed of.
_OF_LAUNCHERS = (
    r"^srun: error: .*: (Exited with exit code|Terminated|Killed)"
    r"|^(srun|slurmstepd): .*(Terminating|terminating|CANCELLED AT)"
    r"|exited with non-zero (status|exit code)|has exited due to process rank"
    r"|^Primary job +terminated normally|^Process name: |^ +Exit code: "
    r"|BAD TERMINATION OF|APPLICATION TERMINATED WITH"
    r"|more process(es)? (has|have) sent help message|help_aggregate|^make: \*\*\*"
)


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
                    line = _line(name, text, _told_at(match))
                    return FoundCause(rule.cause, 0, line, _advice(rule))
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


def last_words(folder: Path) -> FoundCause:
    """Return what a run said last on stderr, or else on stdout, as the line of a cause without a
    name. Left out is what Seatrial and launchers say of every run that failed; of a message between
    two bars its first paragraph counts."""
    for name in OUTPUTS:
        end = tail(folder / name, LAST_LINES)
        for words in reversed(_statements(end.text if end else "")):
            is_own = words.startswith(OWN_WORDS)
            if re.search(_WORDS, words) and not is_own and not re.search(_OF_LAUNCHERS, words):
                return FoundCause("", line=f"{name}: {plain_line(words.strip())[:LONGEST_LINE]}")
    return NO_CAUSE


def _statements(text: str) -> list[str]:
    """Return the lines of a text; of what is between two bars the first paragraph, as one line."""
    statements: list[str] = []
    for place, part in enumerate(re.split(_BAR, text, flags=re.MULTILINE)):
        if place % 2:
            paragraph = part.strip().partition("\n\n")[0]
            statements.append(" ".join(line.strip() for line in paragraph.splitlines()))
        else:
            statements += part.splitlines()
    return statements


def read_ends(path: Path) -> bytes:
    """Return the first and the last PIECE bytes of a regular file, with a line end between them if
    it has more; nothing of what cannot be read. A carriage return, as progress bars write it, is a
    line end."""
    try:
        with open_regular(path, follow=False) as file:
            size = os.fstat(file.fileno()).st_size
            if size <= 2 * PIECE:
                data = file.read(2 * PIECE)
            else:
                first = os.pread(file.fileno(), PIECE, 0)
                data = first + b"\n" + os.pread(file.fileno(), PIECE, size - PIECE)
    except (OSError, ValueError):
        return b""
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


def _told_at(match: Any) -> int:
    """Return the place of the line to show: that of the group ``line``, or of the whole match."""
    group = match.re.groupindex.get(b"line", 0)
    return int(match.start(group) if match.start(group) >= 0 else match.start())


def _advice(rule: LogRule) -> str:
    return f"{rule.advice.rstrip('.')} (source: {rule.source})"


def _line(name: str, text: bytes, at: int) -> str:
    """Return the line around a place, on one line of printable characters, with its file's name."""
    end = text.find(b"\n", at, at + LONGEST_LINE)
    before = text[max(text.rfind(b"\n", 0, at) + 1, at - BEFORE) : at].lstrip()
    rest = text[at : end if end >= 0 else at + LONGEST_LINE].rstrip()
    first, last = (plain_line(part.decode(errors="replace")) for part in (before, rest))
    return f"{name}: {first[-BEFORE:]}{last[: LONGEST_LINE - BEFORE]}"
