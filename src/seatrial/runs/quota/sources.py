"""Quotas of users, by the commands of a site.

quotas = asyncio.run(asked(rules, "ann"))      # {"scratch": Quota(used=900.0, quota=1000.0)}
"""

import asyncio
from collections.abc import Callable, Mapping, Sequence

from seatrial.errors import SeatrialError
from seatrial.rules.submit_rules import NO_QUOTA, Quota, QuotaSource, SubmitRules
from seatrial.runs.shell import Shell
from seatrial.units import seconds

KIB_PER_GIB, GIB = float(1 << 20), float(1 << 30)
AT_ONCE = 8  # commands
USERS = "getent passwd | awk -F: '$3 >= 1000 && $3 < 65534 {print $1}'"
MAX_USERS = 1 << 22  # bytes of their list


class QuotaError(SeatrialError):
    """A quota could not be asked for, or the answer cannot be read."""


async def users_of(rules: SubmitRules) -> list[str]:
    """Return the names of the users of a site, in order. Raises QuotaError."""
    command = rules.users or USERS
    shell = Shell(command, seconds(rules.timeout), MAX_USERS)
    result = await shell.run()
    if result.failure:
        raise QuotaError(f"users: {command}: {result.failure}; see submit.yaml")
    if not result.output.split():
        raise QuotaError(f"users: {command}: printed no user; mend users in submit.yaml")
    return sorted(set(result.output.split()))


async def asked_of_all(
    rules: SubmitRules, users: Sequence[str]
) -> dict[str, dict[str, Quota] | QuotaError]:
    """Return the quotas of users by user and source, or what went wrong."""
    gate = asyncio.Semaphore(AT_ONCE)

    async def one(user: str) -> dict[str, Quota] | QuotaError:
        async with gate:
            try:
                return await asked(rules, user)
            except QuotaError as error:
                return error

    return dict(zip(users, await asyncio.gather(*map(one, users)), strict=True))


async def asked(rules: SubmitRules, user: str) -> dict[str, Quota]:
    """Return the quotas of one user by source. Raises QuotaError."""
    found = {}
    for source in rules.quotas:
        result = await Shell(source.command, seconds(rules.timeout)).run({"QUOTA_USER": user})
        if result.failure:
            raise QuotaError(f"{user}: {source.name}: {source.command}: {result.failure}")
        found[source.name] = parsed(source, user, result.output)
    return found


def parsed(source: QuotaSource, user: str, output: str) -> Quota:
    """Return the quota that a command printed. Raises QuotaError."""
    try:
        return _PARSERS[source.format](output)
    except (ValueError, IndexError) as error:
        said = " ".join(output.split())[:80]
        if "[" in said:
            raise QuotaError(f"{user}: {source.name}: {said!r}: {error}") from error
        raise QuotaError(
            f"{user}: {source.name}: {said!r} is not what format {source.format} has; mend the "
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
