"""Lines are grouped by what they have in common, as well as people who annotate logs do it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seatrial.plugins.systemlogs.shapes import grouped, masked, shapes_of
from tests.plugins.systemlogs.made_logs import SETS, made


def shape_of(text: bytes) -> str:
    """Return the shape of a line."""
    (shape,) = shapes_of([text.replace(b"\n", b" ")])
    return shape


def grouping_f1(truth: Sequence[Hashable], found: Sequence[Hashable]) -> float:
    """F1 of the pairs of lines that are in one group, as benchmarks of log parsers have it."""

    def pairs(groups: Sequence[Hashable]) -> int:
        return sum(number * (number - 1) // 2 for number in Counter(groups).values())

    both = pairs(list(zip(truth, found, strict=True)))
    return 2 * both / (pairs(truth) + pairs(found))


@pytest.mark.parametrize("name", SETS)
def test_made_lines_are_grouped_by_their_templates(name: str) -> None:
    for seed in range(3):
        lines = made(name, 1000, seed)
        shapes = shapes_of([text.encode() for _, text in lines])
        groups = grouped(shapes)
        f1 = grouping_f1([template for template, _ in lines], [groups[each] for each in shapes])
        assert f1 >= 0.99, (name, seed, f1)


def test_opposites_are_apart_and_values_together() -> None:
    assert shape_of(b"mlx5_core 0000:41:00.0 ib0: Link up") != shape_of(
        b"mlx5_core 0000:41:00.0 ib0: Link down"
    )
    assert shape_of(b"read /home/ann/a.out of user ann at ann@site.org") == (
        "read <*> of user <*> at <*>"
    )
    assert shape_of(b"EDAC MC0: 3 CE on 0x1f") == "EDAC <*> <*> CE on <*>"
    for text in (
        b"sshd[1]: Accepted publickey for ann from 10.0.0.1 port 22 ssh2: RSA SHA256:x",
        b"sshd[1]: Failed password for invalid user ann from 10.0.0.1 port 22 ssh2",
        b"systemd-logind[1]: New session 4 of user ann.",
        b"su: pam_unix(su:session): session opened for user ann by ann(uid=0)",
        b"sudo: ann : TTY=pts/0 ; PWD=/home/ann ; USER=ann ; COMMAND=/bin/ls",
        b"CRON[1]: (ann) CMD (run-parts /etc/cron.hourly)",
        b'audit: USER_LOGIN acct="ann" exe="/usr/sbin/sshd"',
        b"slurmd: JobId=1 user=ann(1001) started; home /home/ann, mail ann@site.org",
    ):
        assert "ann" not in shape_of(text), shape_of(text)

    # Two causes are two shapes, many names are one.
    few = [f"load of file failed: {cause}" for cause in ("timeout", "denied")]
    many = [f"job of {name} did end" for name in ("ann", "bob", "carol", "dave")]
    groups = grouped([*few, *many])
    assert len({groups[each] for each in few}) == 2
    assert {groups[each] for each in many} == {"job of <*> did end"}
    assert groups == grouped([*reversed(many), *few])


@given(st.binary(max_size=300))
def test_masked_lines_stay_as_many(data: bytes) -> None:
    assert masked(data).count(b"\n") == data.count(b"\n")
    assert shape_of(data) == shape_of(masked(data))  # it depends on the masked text alone


@given(
    st.lists(
        st.sampled_from(["up", "n1", "7", "0x1f", "a.b", "...", "x...3", "3...x", "-"]), max_size=9
    )
)
def test_words_with_digits_are_masked_whole(words: list[str]) -> None:
    text = " ".join(words)
    expected = {"n1": "0", "7": "0", "0x1f": "0", "x...3": "x...0", "3...x": "0...x"}
    assert masked(text.encode()).decode() == " ".join(expected.get(word, word) for word in words)
    more = text.replace("7", "123456").encode()
    assert masked(more) == masked(text.encode())
