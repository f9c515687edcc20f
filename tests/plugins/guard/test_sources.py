"""What commands say of quotas. The outputs are those of Lustre 2.15 and of quota 4.06."""

from __future__ import annotations

import asyncio
from typing import Literal

import pytest

from seatrial.plugins.guard.quota import (
    NO_QUOTA,
    Quota,
    QuotaError,
    QuotaSource,
    SubmitRules,
    parsed,
    quotas_of_all,
    users_of,
)

LFS = "       /scratch 1048576* 2097152 3145728 6d23h59m 12 0 100 -\n"
LFS_LONG = "/lustre/a-long-name/scratch\n   1048576 0 0 - 12 10 20 -\n"
QUOTA = """\
Disk quotas for user ann (uid 1000):
     Filesystem  blocks  quota  limit  grace  files  quota  limit  grace
      /dev/sda1 1048576  2097152 3145728  0      12      0      0      0
"""
ANSWERS: dict[str, tuple[Literal["lfs", "quota", "numbers"], str, Quota]] = {
    "lfs": ("lfs", LFS, Quota(1, 2, 3, 12, 100, 100)),
    "a long name, no quota": ("lfs", LFS_LONG, Quota(1, NO_QUOTA, NO_QUOTA, 12, 10, 20)),
    "quota -wp": ("quota", QUOTA, Quota(1, 2, 3, 12, NO_QUOTA, NO_QUOTA)),
    "numbers": ("numbers", f"{1 << 30} {1 << 31}", Quota(1, 2, 2)),
    "numbers without a quota": ("numbers", f"{1 << 30} 0", Quota(1)),
}


@pytest.mark.parametrize("name", ANSWERS)
def test_answers(name: str) -> None:
    kind, output, quota = ANSWERS[name]
    assert parsed(QuotaSource(name="s", command="c", format=kind), "ann", output) == quota


@pytest.mark.parametrize("kind", ["lfs", "quota", "numbers"])
@pytest.mark.parametrize("output", ["", "x", "a b c d e f g h", "nan nan", "-5 7", "1e400 1", "\0"])
def test_what_is_no_answer_is_told(kind: Literal["lfs", "quota", "numbers"], output: str) -> None:
    with pytest.raises(QuotaError, match=f"ann: s: .* is not what format {kind} has; mend"):
        parsed(QuotaSource(name="s", command="c", format=kind), "ann", output)


def test_one_user_who_cannot_be_asked_for_keeps_none_from_the_others() -> None:
    command = '[ "$QUOTA_USER" != bob ] || { echo down >&2; exit 3; }; echo 1073741824 0'
    rules = SubmitRules(
        quotas=[QuotaSource(name="s", command=command, format="numbers")],
        limits=[],
        users="printf 'cyd\\nann\\nbob\\nann\\n'",
    )
    users = asyncio.run(users_of(rules))
    assert users == ["ann", "bob", "cyd"]
    answers = asyncio.run(quotas_of_all(rules, users))
    assert answers["ann"] == answers["cyd"] == {"s": Quota(1)}
    assert "bob: s: " in str(answers["bob"])
    assert "exit code 3: down" in str(answers["bob"])


def test_a_list_of_users_that_cannot_be_made() -> None:
    assert "root" not in asyncio.run(users_of(SubmitRules(quotas=[], limits=[])))
    rules = SubmitRules(quotas=[], limits=[], users="exit 4")
    with pytest.raises(QuotaError, match="exit code 4"):
        asyncio.run(users_of(rules))
