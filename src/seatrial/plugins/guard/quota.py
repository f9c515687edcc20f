"""``seatrial quota``, and submit rules: which jobs of a user Slurm refuses, by the user's quotas
(``submit.yaml``).

    rules = load(Path("submit.yaml"))
    refused(rules, {"scratch": Quota(used=900, quota=1000)})     # the limits that hold for a user
"""

import asyncio
import pwd
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Literal, NamedTuple

import click
import msgspec

from seatrial.cli.query_common import tell
from seatrial.cli.tables import TextTable
from seatrial.errors import SeatrialError, UsageError
from seatrial.escaping import lua_text, plain_line
from seatrial.execute.beside_loop import Shell
from seatrial.files import read_start
from seatrial.model.documents import Location, load_checked
from seatrial.model.expressions import ExpressionError, compile_expression
from seatrial.model.file_model import Duration, FileModel, doc
from seatrial.results.store.export import to_json
from seatrial.show.text import folded
from seatrial.units import count, listed, show_number

USERS = "getent passwd | awk -F: '$3 >= 1000 && $3 < 65534 {print $1}'"
NO_QUOTA = 1e12  # GiB: where a user has none
_NAME = re.compile(r"[a-z][a-z0-9_]{0,39}")
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
    ] = USERS
    timeout: Annotated[Duration, doc("the most that a command may take")] = Duration("30s")
    keep: Annotated[Duration, doc("how long answers count")] = Duration("1h")


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


def _check(rules: SubmitRules, at: Location) -> None:
    _check_names("quotas", [each.name for each in rules.quotas], at)
    _check_names("limits", [each.name for each in rules.limits], at)
    known = [f"{each.name}.{field}" for each in rules.quotas for field in _FIELDS]
    for i, limit in enumerate(rules.limits):
        _check_limit(limit, known, at.inside("limits", i))


def _check_names(key: str, names: list[str], at: Location) -> None:
    for i, name in enumerate(names):
        if not _NAME.fullmatch(name):
            at.fault("a name must be small letters, digits and _", key, i, "name")
        if name in names[:i]:
            at.fault(f"{name!r} is there twice; rename one", key, i, "name")


def _check_limit(limit: SubmitLimit, known: list[str], at: Location) -> None:
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


# ---- sources -------------------------------------------------------------------------------------
#
# Quotas of users, by the commands of a site.
#
#     asyncio.run(quotas_of(rules, "ann"))     # {"scratch": Quota(used=900.0, quota=1000.0)}


KIB_PER_GIB, GIB = float(1 << 20), float(1 << 30)
AT_ONCE = 8  # commands
MAX_USERS = 1 << 22  # bytes of their list


class QuotaError(SeatrialError):
    """A quota could not be asked for, or the answer cannot be read."""


async def users_of(rules: SubmitRules) -> list[str]:
    """Return the names of the users of a site, in order. Raises QuotaError."""
    command = rules.users or USERS
    shell = Shell(command, rules.timeout.seconds, MAX_USERS)
    result = await shell.run()
    if result.failure:
        raise QuotaError(f"users: {command}: {result.failure}; see submit.yaml")
    if not result.output.split():
        raise QuotaError(f"users: {command}: printed no user; mend users in submit.yaml")
    return sorted(set(result.output.split()))


async def quotas_of_all(
    rules: SubmitRules, users: Sequence[str]
) -> dict[str, dict[str, Quota] | QuotaError]:
    """Return the quotas of users by user and source, or what went wrong."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(user: str) -> dict[str, Quota] | QuotaError:
        async with gate:
            try:
                return await quotas_of(rules, user)
            except QuotaError as error:
                return error

    return dict(zip(users, await asyncio.gather(*map(one, users)), strict=True))


async def quotas_of(rules: SubmitRules, user: str) -> dict[str, Quota]:
    """Return the quotas of one user by source. Raises QuotaError."""
    quotas = {}
    for source in rules.quotas:
        result = await Shell(source.command, rules.timeout.seconds).run({"QUOTA_USER": user})
        if result.failure:
            raise QuotaError(f"{user}: {source.name}: {source.command}: {result.failure}")
        quotas[source.name] = parsed(source, user, result.output)
    return quotas


def parsed(source: QuotaSource, user: str, output: str) -> Quota:
    """Return the quota that a command printed. Raises QuotaError."""
    try:
        return _PARSERS[source.format](output)
    except (ValueError, IndexError) as error:
        shown = " ".join(output.split())[:80]
        if "[" in shown:
            raise QuotaError(f"{user}: {source.name}: {shown!r}: {error}") from error
        raise QuotaError(
            f"{user}: {source.name}: {shown!r} is not what format {source.format} has; mend the "
            "command or the format in submit.yaml"
        ) from error


def _lfs(output: str) -> Quota:
    """``lfs quota -q``: file system, KiB used, soft, hard, grace, files, soft, hard, grace. A star
    marks what is over; a long name has a line of its own."""
    words = output.split()
    kib, (files, soft, hard) = words[1:4], words[5:8]
    return _quota(kib, [files, soft, hard])


def _quota_wp(output: str) -> Quota:
    """``quota -wp``: two lines of headings, then the first file system as ``lfs`` has it."""
    return _lfs(output.splitlines()[2])


def _numbers(output: str) -> Quota:
    used, quota = (_at_least_zero(float(word) / GIB) for word in output.split())
    return Quota(used, quota or NO_QUOTA, quota or NO_QUOTA)


def _quota(kib: Sequence[str], files: Sequence[str]) -> Quota:
    used, quota, limit = (_whole(word) / KIB_PER_GIB for word in kib)
    number, files_quota, files_limit = map(_whole, files)
    return Quota(
        _at_least_zero(used),
        quota or limit or NO_QUOTA,
        limit or NO_QUOTA,
        number,
        files_quota or files_limit or NO_QUOTA,
        files_limit or NO_QUOTA,
    )


def _whole(word: str) -> int:
    """Return a number. One in brackets is not whole, as some servers did not answer. Raises
    ValueError."""
    if "[" in word or "]" in word:
        raise ValueError(f"{word} is in brackets: some servers of the file system did not answer")
    if (number := int(word.strip("*"))) < 0:
        raise ValueError(f"{number} cannot be")
    return number


def _at_least_zero(value: float) -> float:
    if not 0 <= value <= NO_QUOTA:
        raise ValueError(f"{value} GiB cannot be")
    return value


_PARSERS: Mapping[str, Callable[[str], Quota]] = {
    "lfs": _lfs,
    "quota": _quota_wp,
    "numbers": _numbers,
}


# ---- user files ----------------------------------------------------------------------------------
#
# Files that ``job_submit.lua`` reads: one for each user who has jobs to be refused, or none.
#
#     write_filter(folder)                           # job_submit.lua
#     write_user(folder, 1000, limits, now, 3600)    # folder/users/1000
#
# A file begins with its version and the second (since the epoch) until which it counts. A line for
# each limit follows (name, least nodes, partitions, accounts, sentence), then ``end``.


USER_FILES_USERS = "users"
MAX_FILE = 1 << 20  # bytes
_TEMPLATE = Path(__file__).parent / "job_submit.lua"


def write_filter(folder: Path) -> Path:
    """Write ``job_submit.lua`` for a folder of users' files, and return it. Raises UsageError."""
    literal = lua_text(str(folder.resolve() / USER_FILES_USERS))
    target = folder / "job_submit.lua"
    try:
        (folder / USER_FILES_USERS).mkdir(parents=True, exist_ok=True)
        target.write_text(_TEMPLATE.read_text().replace("@USERS@", literal))
    except OSError as error:
        raise _unwritable(folder, error) from error
    return target


def user_text(limits: Sequence[SubmitLimit], until_s: int) -> str:
    """Return the text of a user's file."""
    lines = [f"seatrial-quota\t1\t{until_s}"]
    for limit in limits:
        message = " ".join(limit.message.split())
        lists = ",".join(limit.partitions) or "*", ",".join(limit.accounts) or "*"
        lines.append("\t".join(["refuse", limit.name, str(limit.nodes_from), *lists, message]))
    return "\n".join([*lines, "end", ""])


def write_user(folder: Path, uid: int, limits: Sequence[SubmitLimit], until_s: int) -> None:
    """Write a user's file at once: slurmctld reads the old or the new one. Raises UsageError."""
    target = folder / USER_FILES_USERS / str(uid)
    fresh = target.with_name(f".{uid}.new")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        fresh.write_text(user_text(limits, until_s))
        fresh.replace(target)
    except OSError as error:
        raise _unwritable(folder, error) from error


def was_limited(folder: Path, uid: int) -> bool:
    """Return whether the file of a user has limits, stale or not."""
    try:
        data = read_start(folder / USER_FILES_USERS / str(uid), MAX_FILE, follow=False).data
    except OSError:
        return False
    return any(line.startswith(b"refuse\t") for line in data.splitlines())


def _unwritable(folder: Path, error: OSError) -> UsageError:
    return UsageError(f"{folder}: cannot be written: {error.strerror}; name another folder")


# ---- seatrial quota ------------------------------------------------------------------------------


NEW_AT_ONCE, NEW_SHARE = 10, 0.2  # users who get limits at once without a question; of all users


def quota_write(folder: Path) -> int:
    """Do ``seatrial quota write``; return the exit code."""
    click.echo(write_filter(folder))
    return 0


def refresh(folder: Path, file: Path, names: tuple[str, ...], yes: bool) -> int:
    """Do ``seatrial quota refresh``; return the exit code."""
    rules = load(file)
    users = list(names) or asyncio.run(users_of(rules))
    uids = _uids(users, bool(names))
    limits = _limits(rules, list(uids))
    new = [
        user
        for user, limits_of_user in limits.items()
        if limits_of_user and not was_limited(folder, uids[user])
    ]
    many = len(new) > max(NEW_AT_ONCE, NEW_SHARE * len(users))
    held = new if many and not names and not yes else []
    until_s = int(time.time() + rules.keep.seconds)
    for user in limits.keys() - set(held):
        write_user(folder, uids[user], limits[user], until_s)
    limited, failures = sum(map(bool, limits.values())), len(users) - len(limits)
    click.echo(f"{count(len(users), 'user')}: {limited} with limits, {failures} not asked")
    if held:
        tell(
            f"{len(held)} of them had no limit before: {listed(held, 4)}. So many at once are "
            "mostly a wrong limit or a wrong answer; their files were not written. Look with "
            "`seatrial quota explain`; if it is meant, say --yes"
        )
    return 1 if failures or held else 0


def _uids(users: Iterable[str], named: bool) -> dict[str, int]:
    """Return the numbers of users. Tell which are none of this host; raises UsageError instead if
    they were ``named``."""
    uids = {}
    for user in users:
        try:
            uids[user] = pwd.getpwnam(user).pw_uid
        except KeyError:
            text = f"{user}: is no user of this host; see `getent passwd`"
            if named:
                raise UsageError(text) from None
            click.echo(plain_line(text), err=True)
    return uids


def _limits(rules: SubmitRules, users: list[str]) -> dict[str, list[SubmitLimit]]:
    """Ask for the quotas of users. Return the limits of those that could be asked for."""
    limits = {}
    for user, answer in asyncio.run(quotas_of_all(rules, users)).items():
        try:
            if isinstance(answer, QuotaError):
                raise answer
            limits[user] = refused(rules, answer)
        except (QuotaError, ExpressionError) as error:
            click.echo(plain_line(str(error)), err=True)
    return limits


def explain(user: str, file: Path, as_json: bool) -> int:
    """Do ``seatrial quota explain``; return the exit code."""
    rules = load(file)
    quotas = asyncio.run(quotas_of(rules, user))
    limits = refused(rules, quotas)
    if as_json:
        record = {"quotas": {n: q._asdict() for n, q in quotas.items()}, "refused": limits}
        click.echo(to_json(msgspec.to_builtins(record)), nl=False)
    else:
        _print(rules, user, quotas, [limit.name for limit in limits])
    return 1 if limits else 0


def _print(rules: SubmitRules, user: str, quotas: dict[str, Quota], names: list[str]) -> None:
    table = TextTable("quota | used GiB> | quota GiB> | limit GiB> | files> | quota> | limit>")
    for name, figures in quotas.items():
        table.add(name, *("none" if v == NO_QUOTA else show_number(v) for v in figures))
    click.echo(table)
    for limit in rules.limits:
        word = "refused" if limit.name in names else "not refused"
        which = ", ".join(_which(limit))
        jobs = f"jobs {which}" if which else "all jobs"
        click.echo(folded(f"{limit.name}: {jobs} {word} ({plain_line(limit.refuse)})"))
        if limit.name in names:
            click.echo(folded(f"  {plain_line(limit.message)}"))
    if not rules.limits:
        click.echo(f"no limits for {plain_line(user)}")


def _which(limit: SubmitLimit) -> Iterator[str]:
    """Yield what jobs a limit is about."""
    if limit.nodes_from > 1:
        yield f"of {limit.nodes_from} nodes or more"
    if limit.partitions:
        yield f"in {', '.join(limit.partitions)}"
    if limit.accounts:
        yield f"of {', '.join(limit.accounts)}"
