"""What a site knows of failures: rules over what runs print, and failures that people know of.

pattern = log_pattern("OOM|oom_kill")     # of re2: searching takes time linear in the text
"""

from collections.abc import Iterable, Sequence
from datetime import UTC, date, datetime, timedelta
from functools import lru_cache
from typing import Annotated, Any

import re2

from seatrial.model import codes
from seatrial.model.codes import Code
from seatrial.model.documents import Location
from seatrial.model.file_model import FileModel, checked, doc, filled
from seatrial.units import SECOND_NS

MAX_STEPS = 2000
MAX_RULES = 300
_OF_LINES = b"(?m)"
MAX_MEMORY = 64 << 20  # bytes of a search: the automaton of all shipped rules takes 2 MB

# What a test, a library or a compiler can do wrong. What nodes and schedulers do is never known.
KNOWABLE: dict[str, Code] = {
    code.name: code
    for code in (
        codes.FAILED,
        codes.WRONG_ANSWER,
        codes.PERFORMANCE,
        codes.TIMEOUT,
        codes.BUILD_FAILED,
        codes.OUT_OF_MEMORY,
        codes.NO_FIGURE,
        codes.TOO_LARGE,
        codes.CHECK_ERROR,
        codes.HUNG,
    )
}


def log_pattern(text: str) -> Any:
    """Return a compiled pattern, for bytes; ``^`` and ``$`` match at the ends of lines. Raises
    ValueError."""
    try:
        pattern = re2.compile(_OF_LINES + text.encode(), _options())
    except re2.error as error:
        reason = error.args[0] if error.args else "it cannot be read"
        fault = reason.decode(errors="replace") if isinstance(reason, bytes) else str(reason)
        raise ValueError(f"{text!r} is no regular expression of RE2: {fault}") from None
    if pattern.programsize > MAX_STEPS:
        raise ValueError(f"{text[:60]!r} would take too long; use smaller repetitions")
    if pattern.search(b""):
        raise ValueError(f"{text!r} matches an empty line, so each run would have this cause")
    return pattern


def _options() -> Any:
    options = re2.Options()
    options.log_errors, options.max_mem = False, MAX_MEMORY
    options.encoding = re2.Options.Encoding.LATIN1  # any bytes, each a character
    return options


@lru_cache(maxsize=64)
def end_of(day: str) -> int:
    """Return the end of a day (UTC) in ns since the epoch. Raises ValueError for what is no
    date."""
    try:
        last = date.fromisoformat(day)
    except ValueError as error:
        raise ValueError(f"{day!r} is not a date; write e.g. 2026-05-01") from error
    after = datetime(last.year, last.month, last.day, tzinfo=UTC) + timedelta(days=1)
    return round(after.timestamp()) * SECOND_NS


def _is_knowable(verdict: str) -> None:
    if verdict not in KNOWABLE:
        raise ValueError(f"{verdict!r} cannot be known; choose of {', '.join(KNOWABLE)}")


LogPattern = Annotated[str, checked(log_pattern)]
LastDay = Annotated[str, checked(end_of)]


class LogRule(FileModel, frozen=True):
    """What a line in the output of a run that failed says of the cause."""

    name: Annotated[
        Annotated[str, filled()], doc("name; one of a machine's file replaces the shipped one")
    ]
    pattern: Annotated[
        LogPattern,
        doc(
            "regular expression of RE2 that a line holds; the line in which its group `line` "
            "begins is shown, if it has one"
        ),
    ]
    cause: Annotated[Annotated[str, filled()], doc("what it shows, in a few words")]
    advice: Annotated[Annotated[str, filled()], doc("what to do")]
    source: Annotated[
        Annotated[str, filled()], doc("who says so: a manual, an issue, an experience")
    ]
    example: Annotated[str, doc("a line that the pattern must match, or the file is refused")] = ""


class KnownFailure(FileModel, frozen=True):
    """A failure that people know of, and that no one is to be told of until a day."""

    reason: Annotated[
        Annotated[str, filled("say why the failure is known")],
        doc("why it fails, such as the number of a bug"),
    ]
    until: Annotated[
        LastDay,
        doc(
            "the last day (UTC) on which it is known; after it the failure is one again, and its "
            "reason says that it was known until then"
        ),
    ]
    url: Annotated[str, doc("where more is said of it")] = ""
    tests: Annotated[
        list[str],
        doc("of a plan or a machine: names or patterns of tests; default: all that fit otherwise"),
    ] = []
    toolchains: Annotated[list[str], doc("names or patterns of toolchains; default: all")] = []
    verdicts: Annotated[
        list[Annotated[str, checked(_is_knowable)]],
        doc(
            "the verdicts that are known, at least one, so that a new kind of failure is not: "
            "`failed`, `wrong answer`, `performance`, `timeout`, `build failed`, `out of "
            "memory`, `no figure`, `output too large`, `check error`, `hung`"
        ),
    ] = []
    causes: Annotated[
        list[str], doc("only these causes, or patterns of them, as log rules tell them")
    ] = []


def any_and_set(patterns: Iterable[str]) -> tuple[Any, Any]:
    """Return a compiled pattern that matches where any of these does, and a set of re2 that tells
    the numbers of those that match. The set tells none where its automaton takes too much
    memory."""
    coded = [pattern.encode() for pattern in patterns]
    numbered = re2.Set.SearchSet(_options())
    for pattern in coded:
        numbered.Add(_OF_LINES + pattern)
    numbered.Compile()
    return re2.compile(
        _OF_LINES + b"|".join(b"(?:%s)" % each for each in coded), _options()
    ), numbered


def _matched(rule: LogRule) -> bool:
    """Return whether the example of a rule, if it has one, is matched by its pattern."""
    if not rule.example or not rule.pattern:
        return True
    return log_pattern(rule.pattern).search(rule.example.encode()) is not None


def check_log_rules(rules: Sequence[LogRule], at: Location) -> None:
    """Add every fault of log rules."""
    for i, rule in enumerate(rules):
        location = at.inside("log_rules", i)
        if not _matched(rule):
            location.fault("is not matched by the pattern; mend one of them", "example")
    if len(rules) > MAX_RULES:
        at.fault(f"has {len(rules)} rules; the most is {MAX_RULES}", "log_rules")
    names = [rule.name for rule in rules]
    for i, name in enumerate(names):
        if name in names[:i]:
            at.fault(f"{name!r} is there twice; rename one", "log_rules", i, "name")


def check_known_failures(
    entries: Sequence[KnownFailure], at: Location, of_one_test: bool = False
) -> None:
    """Add every fault of known failures that does not depend on other files. One of a plan or a
    machine names tests, toolchains or causes, as it would hide each failure otherwise."""
    for i, each in enumerate(entries):
        location = at.inside("known_failures", i)
        if not each.verdicts:
            which = f"say which failures are known, of {', '.join(KNOWABLE)}"
            location.fault(
                f"names none, so that each new failure would be known; {which}", "verdicts"
            )
        if not (of_one_test or each.tests or each.toolchains or each.causes):
            location.fault("names no tests, no toolchains and no causes; say which fail", "tests")
        if of_one_test and each.tests:
            location.fault("is for plans and machines; here it is this test's; remove it", "tests")
