"""Launch rules: which programs a site refuses to launch, and of which it warns (``guard.yaml``).

rules = load(Path("guard.yaml"))
rules_header(rules, "/var/log/guard")         # C, which runs/guard/guard.c includes
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Annotated

from seatrial.documents import Spot, load_checked
from seatrial.escaping import c_text
from seatrial.file_model import FileModel, doc
from seatrial.lazy import regex
from seatrial.machine.failures import end_of
from seatrial.rules.launch_expressions import as_c
from seatrial.suite.expressions import ExpressionError
from seatrial.units import SECOND_NS

MAX_LAUNCH_RULES = 300
_NAME = regex(r"[a-z0-9][a-z0-9-]{0,59}")


class LaunchException(FileModel, frozen=True):
    """Programs or users to which a launch rule does not apply."""

    reason: Annotated[str, doc("why the rule does not apply")]
    paths: Annotated[list[str], doc("patterns of files, such as /opt/legacy/*; default: all")] = []
    users: Annotated[list[str], doc("names of users; default: all")] = []
    until: Annotated[str, doc("the last day of the exception: 2026-05-01 (UTC)")] = ""


class LaunchRule(FileModel, frozen=True):
    """A rule over the facts of a program and of its launch: give ``refuse`` or ``warn``."""

    name: Annotated[str, doc("name: small letters, digits and -")]
    message: Annotated[str, doc("a sentence to the user: what is wrong, and what to do")]
    refuse: Annotated[str, doc("condition under which a launch is refused")] = ""
    warn: Annotated[str, doc("condition under which the user is warned")] = ""
    source: Annotated[str, doc("who says so")] = ""
    until: Annotated[str, doc("the last day of the rule: 2026-05-01 (UTC); default: for ever")] = ""
    exceptions: Annotated[list[LaunchException], doc("where it does not apply")] = []


class LaunchRuleFile(FileModel, frozen=True):
    """A ``guard.yaml``."""

    rules: Annotated[list[LaunchRule], doc("the rules, each with its message")] = []


def load(path: Path) -> list[LaunchRule]:
    """Return the rules of a file. Raises InvalidFiles with every fault, and UsageError for a file
    that is not there."""
    return load_checked(path, LaunchRuleFile, _check).rules


def _check(file: LaunchRuleFile, at: Spot) -> None:
    names = [rule.name for rule in file.rules]
    for i, rule in enumerate(file.rules):
        _check_rule(rule, at.inside("rules", i))
        if rule.name in names[:i]:
            at.fault(f"{rule.name!r} is there twice; rename one", "rules", i, "name")
    if len(names) > MAX_LAUNCH_RULES:
        at.fault(f"has {len(names)} rules; the most is {MAX_LAUNCH_RULES}", "rules")


def _check_rule(rule: LaunchRule, at: Spot) -> None:
    if not _NAME.fullmatch(rule.name):
        at.fault("a name must be small letters, digits and -, up to 60", "name")
    if not rule.message.strip():
        at.fault("is empty; tell the user what is wrong and what to do", "message")
    if bool(rule.refuse) == bool(rule.warn):
        at.fault("give one of refuse and warn")
    for key in ("refuse", "warn"):
        try:
            _ = (text := getattr(rule, key)) and as_c(text)
        except ExpressionError as error:
            at.fault(str(error), key)
    _check_day(rule.until, at)
    for i, each in enumerate(rule.exceptions):
        spot = at.inside("exceptions", i)
        if not each.reason.strip():
            spot.fault("is empty; say why the rule does not apply", "reason")
        if not (each.paths or each.users):
            spot.fault("names no paths and no users, so that the rule would never apply", "paths")
        _check_day(each.until, spot)


def _check_day(day: str, at: Spot) -> None:
    if day:
        at.parsed(end_of, day, "until")


def rules_header(rules: Sequence[LaunchRule], log_folder: str) -> str:
    """Return rules as the header that ``guard.c`` includes. ``log_folder``: where findings are
    logged."""
    lines = [f"#define LOG_FOLDER {c_text(log_folder)}"]
    table = []
    for i, rule in enumerate(rules):
        holds = _function(f"rule_{i}", "", [as_c(rule.refuse or rule.warn)])
        excepted = _function(f"excepted_{i}", ", long long now", map(_excepted, rule.exceptions))
        lines += [*holds, *excepted]
        message = " ".join(rule.message.split())
        table.append(
            f"    {{{c_text(rule.name)}, {c_text(message)}, {'true' if rule.refuse else 'false'},"
            f" {_seconds(rule.until)}, rule_{i}, excepted_{i}}},"
        )
    return "\n".join([*lines, "static const struct rule RULES[] = {", *table, "    {0}", "};", ""])


def _function(name: str, parameters: str, conditions: Iterable[str]) -> list[str]:
    found = list(conditions)
    return [
        f"static bool {name}(const struct facts *facts{parameters})",
        "{",
        "    (void)facts;",
        *(["    (void)now;"] if parameters else []),
        f"    return {' || '.join(found) or 'false'};",
        "}",
    ]


def _excepted(exception: LaunchException) -> str:
    parts = []
    if exception.until:
        parts.append(f"now < {_seconds(exception.until)}")
    if exception.paths:
        matched = (f"!fnmatch({c_text(each)}, facts->path, 0)" for each in exception.paths)
        parts.append(f"({' || '.join(matched)})")
    if exception.users:
        named = (f"!strcmp({c_text(each)}, facts->user)" for each in exception.users)
        parts.append(f"({' || '.join(named)})")
    return f"({' && '.join(parts)})"


def _seconds(day: str) -> str:
    return f"{end_of(day) // SECOND_NS}LL" if day else "0"
