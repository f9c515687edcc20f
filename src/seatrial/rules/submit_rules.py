"""Submit rules: which jobs of a user Slurm refuses, by the user's quotas (``submit.yaml``).

rules = load(Path("submit.yaml"))
refused(rules, {"scratch": Quota(used=900, quota=1000)})     # the limits that hold for a user
"""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

from seatrial.documents import Spot, load_checked
from seatrial.file_model import Duration, FileModel, doc
from seatrial.lazy import regex
from seatrial.suite.expressions import ExpressionError, compile_expression
from seatrial.units import seconds

NO_QUOTA = 1e12  # GiB: where a user has none
_NAME = regex(r"[a-z][a-z0-9_]{0,39}")
_FIELDS = ("used", "quota", "limit", "files", "files_quota", "files_limit")


class QuotaSource(FileModel, frozen=True):
    """A command that tells what a user has on a file system."""

    name: Annotated[str, doc("name, such as scratch: scratch.used in conditions")]
    command: Annotated[str, doc("bash command; QUOTA_USER is the user")]
    format: Annotated[
        Literal["lfs", "quota", "numbers"],
        doc(
            "`lfs`: as `lfs quota -q -u USER /scratch` prints; `quota`: as `quota -wp -u USER`, "
            "first file system; `numbers`: used and quota in bytes, 0 for no quota"
        ),
    ] = "lfs"


class SubmitLimit(FileModel, frozen=True):
    """A condition under which jobs are refused."""

    name: Annotated[str, doc("name: small letters, digits, _")]
    refuse: Annotated[str, doc("condition over the quotas of a user")]
    message: Annotated[str, doc("a sentence to the user: what is wrong, and what to do")]
    nodes_from: Annotated[int, doc("only jobs of so many nodes or more", ge=1)] = 1
    partitions: Annotated[list[str], doc("only jobs of these partitions; default: all")] = []
    accounts: Annotated[list[str], doc("only jobs of these accounts; default: all")] = []


class SubmitRules(FileModel, frozen=True):
    """A ``submit.yaml``."""

    quotas: Annotated[list[QuotaSource], doc("where quotas are asked for")]
    limits: Annotated[list[SubmitLimit], doc("which jobs are refused")]
    users: Annotated[
        str,
        doc(
            "bash command that prints the names of users, a line each; where there is none, "
            "those of `getent passwd` with a UID from 1000 to 65533"
        ),
    ] = "getent passwd | awk -F: '$3 >= 1000 && $3 < 65534 {print $1}'"
    timeout: Annotated[Duration, doc("the most that a command may take")] = "30s"
    keep: Annotated[Duration, doc("how long answers count")] = "1h"


class Quota(NamedTuple):
    """What a user has on a file system: sizes in GiB, numbers of files. ``quota`` is the soft
    limit, ``limit`` the hard one; where there is none they are ``NO_QUOTA``."""

    used: float
    quota: float = NO_QUOTA
    limit: float = NO_QUOTA
    files: float = 0
    files_quota: float = NO_QUOTA
    files_limit: float = NO_QUOTA


def load(path: Path) -> SubmitRules:
    """Return the rules of a file. Raises InvalidFiles with every fault, and UsageError for a file
    that is not there."""
    return load_checked(path, SubmitRules, _check)


def _check(rules: SubmitRules, at: Spot) -> None:
    for key in ("timeout", "keep"):
        at.parsed(seconds, getattr(rules, key), key)
    _check_names("quotas", [each.name for each in rules.quotas], at)
    _check_names("limits", [each.name for each in rules.limits], at)
    known = [f"{each.name}.{field}" for each in rules.quotas for field in _FIELDS]
    for i, limit in enumerate(rules.limits):
        _check_limit(limit, known, at.inside("limits", i))


def _check_names(key: str, names: list[str], at: Spot) -> None:
    for i, name in enumerate(names):
        if not _NAME.fullmatch(name):
            at.fault("a name must be small letters, digits and _", key, i, "name")
        if name in names[:i]:
            at.fault(f"{name!r} is there twice; rename one", key, i, "name")


def _check_limit(limit: SubmitLimit, known: list[str], at: Spot) -> None:
    if not limit.message.strip():
        at.fault("is empty; tell the user what is wrong and what to do", "message")
    try:
        unknown = sorted(compile_expression(limit.refuse).names - set(known))
    except ExpressionError as error:
        at.fault(str(error), "refuse")
        return
    if unknown:
        at.fault(f"{unknown[0]} is not known; {', '.join(known)} are", "refuse")
    for key in ("partitions", "accounts"):
        for i, name in enumerate(getattr(limit, key)):
            if not re.fullmatch(r"[\w.+-]+", name):
                at.fault(f"{name!r} is no name", key, i)


def refused(rules: SubmitRules, quotas: Mapping[str, Quota]) -> list[SubmitLimit]:
    """Return the limits whose condition holds for a user. Raises ExpressionError."""
    names = {
        f"{name}.{field}": value
        for name, quota in quotas.items()
        for field, value in quota._asdict().items()
    }
    return [each for each in rules.limits if compile_expression(each.refuse).evaluate(names)]
