"""Which files are taken, and by which rule: `seatrial.plugins.purge.rules`."""

from __future__ import annotations

import fnmatch
import os
import tempfile
from datetime import datetime
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.plugins.purge.names import (
    as_plain,
    check_pattern,
    name_shown,
    pattern_of,
    plain_of,
    shown_name,
)
from seatrial.plugins.purge.policy import Policy, load_policy
from seatrial.plugins.purge.rules import Limits, Rules, Sums, Volume
from tests.plugins.purge.batches import NOW, File, batch_of, policy_of


def ruled(policy: Policy, *files: File, **more: object) -> list[str]:
    """Return the names of the rules of files."""
    rules = Rules(policy, NOW, **more)  # type: ignore[arg-type]
    return [rules.table[number].name for number in rules.judge(batch_of(files)).tolist()]


SHARED = """
roots: [/scratch]
age: 30d
owners: {exempt: [daemon]}
classes:
  - {name: cores, files: ["core.*", "/scratch/*/log/**"], age: 3d}
  - {name: large, size: {above: 1GiB}, age: 14d}
  - {name: shared, folders: ["/scratch/pub*"], keep: true}
whitelist:
  - {folder: /scratch/alice/keep, who: Alice, why: paper, until: 2030-01-01}
  - {folder: "/scratch/*/gold", owner: 7}
  - {files: "*.sbatch"}
  - {files: "/scratch/bob/[a-c]?"}
  - {folder: /scratch/old, until: 2001-01-01}
"""


def test_each_file_has_the_rule_that_takes_or_keeps_it(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, SHARED)
    cases = {
        File("a/x", 31): "default",
        File("a/x", 29.9): "default young",
        File("a/x", 2): "young",
        File("a/x", 30): "default",  # on the very edge it is 30 days old
        File("a/x", 31, atime=1): "young",  # read yesterday: the latest time counts
        File("a/x", 31, uid=1): "owners",
        File("a/x", 31, uid=123456): "unknown owner",
        File("a/x", -2): "future",
        File("a/x", 31, kind=3): "other kind",
        File("a/link", 31, kind=1): "default",
        File("a/core.1", 4): "cores",
        File("a/core.1", 2.9): "young",
        File("b/log/deep/x", 4): "cores",
        File("b/log", 4): "default young",
        File("a/x", 15, size=(1 << 30) + 1): "large",
        File("a/x", 15, size=1 << 30): "default young",
        File("core.1", 4, size=1 << 40): "cores",  # the first class that fits
        File("pub1/x", 500): "shared kept",
        File("public/d/x", 500): "shared kept",
        File("alice/keep/d/e", 500): "whitelist /scratch/alice/keep",
        File("alice/keeper/e", 500): "default",
        File("alice/keep", 500): "default",  # a file of that name is no folder
        File("x/gold/e", 500): "default",
        File("a/run.sbatch", 500): "whitelist *.sbatch",
        File("a/run.sbatch.old", 500): "default",
        File("a/two\nlines.sbatch", 500): "whitelist *.sbatch",
        File("a/\udcff.sbatch", 500): "whitelist *.sbatch",
        File("bob/b7", 500): "whitelist /scratch/bob/[a-c]?",
        File("bob/d7", 500): "default",
        File("bob/b/", 500): "default",
        File("old/x", 500): "default",  # that line has expired
    }
    assert ruled(policy, *cases) == list(cases.values())
    last_day = f"{datetime.fromtimestamp(NOW / 1e9):%Y-%m-%d}"
    until = policy_of(tmp_path, SHARED.replace("2001-01-01", last_day))
    assert ruled(until, File("old/x", 500)) == ["whitelist /scratch/old"]
    assert ruled(policy) == []


def test_a_line_or_list_of_an_owner_is_of_this_owner_alone(tmp_path: Path) -> None:
    lists = tmp_path / "lists"
    lists.mkdir()
    (lists / "7.yaml").write_text("whitelist: [{folder: /scratch/x}]\n")
    (lists / "8.yaml").write_text("whitelist: [{folder: /scratch/x, until: soon}]\n")
    text = "roots: [/scratch]\nage: 30d\nowner_lists: lists\nowners: {unknown: taken}\n"
    policy = policy_of(tmp_path, text)
    files = [File("x/f", uid=uid) for uid in (6, 7, 8)]
    assert ruled(policy, *files) == ["default", "whitelist /scratch/x", "faulty list"]
    assert "8.yaml:1" in policy.faulty_lists[8]
    assert "soon" in policy.faulty_lists[8]
    again = Policy.of_record(policy.record())
    assert again == policy
    assert again.digest == policy.digest
    (lists / "7.yaml").write_text("whitelist: [{folder: /scratch/y}]\n")
    (lists / "6.yaml").write_text("whitelist: []\n" + "# \n")
    (lists / "5.yaml").write_text("whitelist:\n" + "- {files: a}\n" * 201)
    later = load_policy(tmp_path / "purge.yaml")
    assert later.digest == policy.digest
    assert later.changed_owners(policy) == {5, 7}
    assert "has 201 lines, more than 200" in later.faulty_lists[5]


def test_nobody_is_purged_unwarned(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "roots: [/scratch]\nage: 30d\nwarn: {before: 7d}\n")
    files = [File("a/x"), File("a/y"), File("a/z", 1)]
    assert ruled(policy, *files) == ["default unwarned", "default unwarned", "young"]
    rules = Rules(policy, NOW, lambda batch, left, used: np.array([i == 1 for i in left.tolist()]))
    numbers = rules.judge(batch_of(files))
    assert rules.takes(numbers).tolist() == [False, True, False]
    assert rules.planned(numbers).tolist() == [True, True, False]


def test_times_that_were_forged_do_not_keep_a_file(tmp_path: Path) -> None:
    ahead = batch_of([File("x")])
    ahead.entries["mtime"] = NOW + 10**18
    for word, rule in (("kept", "future"), ("ignored", "default")):
        policy = policy_of(tmp_path, f"roots: [/scratch]\nage: 30d\nfuture: {word}\n")
        rules = Rules(policy, NOW)
        assert rules.table[int(rules.judge(ahead)[0])].name == rule


# ---- the goal and the caps -----------------------------------------------------------------------


def limited(policy: Policy, files: list[File], volume: Volume) -> tuple[list[str], list[str]]:
    """Return the paths that are taken, and what is told."""
    rules = Rules(policy, NOW)
    limits = Limits(rules, [volume])
    batches = [batch_of(files[:3]), batch_of(files[3:])]
    judged = [rules.judge(each) for each in batches]
    for batch, numbers in zip(batches, judged, strict=True):
        limits.add(batch, numbers)
    told = limits.close()
    final = [limits.apply(b, n) for b, n in zip(batches, judged, strict=True)]
    taken = [
        os.fsdecode(batch.paths[i])
        for batch, numbers in zip(batches, final, strict=True)
        for i in np.flatnonzero(rules.takes(numbers)).tolist()
    ]
    return taken, told


FILES = [File(f"f{days}", days, size=100) for days in (50, 90, 40, 70, 60, 80, 20)]


@pytest.mark.parametrize(
    ("limit", "taken", "told"),
    [
        ("goal: {free: 20%}", "f90 f80", "needs 200 B"),
        ("goal: {free: 20.1%}", "f90 f80 f70", "needs 201 B"),
        ("goal: {free: 250}", "f90 f80 f70", "files not used since"),
        ("goal: {used: 70%, by: 2026-12-01}", "f90", "by 2026-12-01) needs 100 B"),
        ("goal: {used: 80%}", "", "is met already"),
        ("goal: {free: 100%}", "f90 f80 f70 f60 f50 f40", "NOT reached: it needs 1000 B"),
        ("goal: {free: 500}\nwarn: {}", "", "frees 0 B; 600 B wait until their owners are told"),
        ("caps: {files: 3}", "f90 f80 f70", "the caps (3 files) are reached"),
        ("caps: {bytes: 250}", "f90 f80", "the caps (250) are reached"),
        ("caps: {bytes: 600, files: 6}", "f90 f80 f70 f60 f50 f40", ""),
        ("caps: {files: 1}\ngoal: {free: 20%}", "f90", "the caps (1 files) are reached"),
    ],
)
def test_the_oldest_files_are_taken_until_it_is_enough(
    tmp_path: Path, limit: str, taken: str, told: str
) -> None:
    policy = policy_of(tmp_path, f"roots: [/scratch]\nage: 30d\n{limit}\n")
    found, sentences = limited(policy, FILES, Volume(1, 800, 1000))
    assert sorted(found) == sorted(taken.split())
    assert told in " ".join(sentences)
    assert bool(told) == bool(sentences)


def test_a_file_with_two_names_frees_nothing_for_the_goal(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "roots: [/scratch]\nage: 30d\ngoal: {free: 100}\n")
    files = [File("a", 90, size=100, nlink=2), File("b", 80, size=100), File("c", 70, size=100)]
    assert limited(policy, files, Volume(1, 800, 1000))[0] == ["a", "b"]


@settings(max_examples=60, deadline=None)
@given(
    ages=st.lists(st.integers(720, 740), min_size=1, max_size=12),  # hours
    sizes=st.lists(st.integers(0, 5), min_size=12, max_size=12),
    need=st.integers(1, 40),
    most=st.integers(1, 12),
    by_goal=st.booleans(),
)
def test_no_older_file_stays_while_a_younger_one_goes(
    ages: list[int], sizes: list[int], need: int, most: int, by_goal: bool
) -> None:
    limit = f"goal: {{free: {need}}}" if by_goal else f"caps: {{files: {most}, bytes: {need}}}"
    files = [File(f"f{i}", a / 24, size=sizes[i]) for i, a in enumerate(ages)]
    with tempfile.TemporaryDirectory() as folder:
        policy = policy_of(Path(folder), f"roots: [/scratch]\nage: 30d\n{limit}\n")
    taken = {int(n[1:]) for n in limited(policy, files, Volume(1, 99, 100))[0]}
    left = set(range(len(files))) - taken
    size = sum(sizes[i] for i in taken)
    if taken and left:
        assert min(ages[i] for i in taken) >= max(ages[i] for i in left)
    if by_goal:
        assert size >= need or not left
        if taken:  # without its youngest file it would not be enough
            youngest = min(ages[i] for i in taken)
            assert size - sum(sizes[i] for i in taken if ages[i] == youngest) < need
    else:
        assert size <= need
        assert len(taken) <= most


# ---- the same by another way ---------------------------------------------------------------------

WORDS = st.sampled_from(["a", "b", "keep", "x.core", "y.dat", "keep.core"])
PATHS = st.lists(WORDS, min_size=1, max_size=4).map("/".join)
GLOBS = st.sampled_from(["*.core", "keep*", "?", "[ab]", "[!ab]*", "y.dat"])
TOPS = st.sampled_from(["/s/a", "/s/*/keep", "/s/keep", "/s/[ab]/b", "/s/**/b"])


@settings(max_examples=120, deadline=None)
@given(
    files=st.lists(
        st.tuples(PATHS, st.integers(0, 12), st.integers(0, 2), st.integers(0, 3)).map(
            lambda values: File(values[0], values[1], uid=values[2], size=values[3])
        ),
        min_size=1,
        max_size=8,
    ),
    names=st.lists(GLOBS, max_size=2),
    folders=st.lists(TOPS, max_size=2),
    classes=st.lists(
        st.tuples(
            GLOBS | st.none(),
            TOPS | st.none(),
            st.sampled_from([None, 1]),
            st.integers(0, 2),
            st.sampled_from([3, 6, None]),
        ),
        max_size=3,
    ),
    age=st.sampled_from([4, 8]),
)
def test_rules_are_those_of_one_file_at_a_time(
    files: list[File],
    names: list[str],
    folders: list[str],
    classes: list[tuple[str | None, str | None, int | None, int, int | None]],
    age: int,
) -> None:
    lines = [f"roots: [/s]\nage: {age}d\nclasses:"]
    for i, (glob, top, user, size, days) in enumerate(classes):
        lines.append(
            f"  - {{name: c{i}, size: {{from: {size + 1}}}, "
            + (f"files: ['{glob}'], " if glob else "")
            + (f"folders: ['{top}'], " if top else "")
            + (f"users: [{user}], " if user else "")
            + (f"age: {days}d}}" if days else "keep: true}")
        )
    lines += ["whitelist:", *(f"  - files: '{n}'" for n in names)]
    lines += [f"  - folder: '{f}'" for f in folders]
    text = "\n".join(lines).replace("classes:\nwhitelist", "whitelist")
    with tempfile.TemporaryDirectory() as folder:
        policy = policy_of(Path(folder), text.removesuffix("\nwhitelist:"))
    rules = Rules(policy, NOW)
    taken = rules.takes(rules.judge(batch_of(files))).tolist()
    for file, was in zip(files, taken, strict=True):
        assert was == _by_hand(file, names, folders, classes, age), file


def _by_hand(
    file: File,
    names: list[str],
    folders: list[str],
    classes: list[tuple[str | None, str | None, int | None, int, int | None]],
    age: int,
) -> bool:
    name = file.path.rpartition("/")[2]
    if any(fnmatch.fnmatchcase(name, n) for n in names) or any(_below(file, f) for f in folders):
        return False
    for glob, top, user, size, days in classes:
        fits = (
            (glob is None or fnmatch.fnmatchcase(name, glob))
            and (top is None or _below(file, top))
            and (user is None or file.uid == user)
            and file.size >= size + 1
        )
        if fits:
            return days is not None and file.days >= days
    return file.days >= age


def _below(file: File, pattern: str) -> bool:
    """Return whether a folder of that pattern is above a file."""
    parts = ["/s", *file.path.split("/")[:-1]]
    for i in range(1, len(parts) + 1):
        path, slashes = "/".join(parts[:i]), pattern.count("/")
        if "**" in pattern:  # some folders, or none
            texts = pattern.replace("**", "*"), pattern.replace("**/", "")
            if any(fnmatch.fnmatchcase(path, text) for text in texts):
                return True
        elif fnmatch.fnmatchcase(path, pattern) and path.count("/") == slashes:
            return True
    return False


# ---- sums and names ------------------------------------------------------------------------------


def test_sums_have_every_entry_once(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "roots: [/scratch, /data]\nage: 30d\n")
    rules = Rules(policy, NOW)
    sums = Sums(rules)
    files = [File("a/b/x", 31), File("a/y", 31, size=100), File("z", 40, uid=1), File("a/n", 1)]
    for root in (0, 1):
        batch = batch_of(files, root)
        sums.add(batch, rules.judge(batch))
    sums.add(batch_of([]), rules.judge(batch_of([])))
    found = {
        (s.root, s.folder, s.uid, rules.table[s.rule].name, s.age): s.entries
        for s in sums.records()
    }
    assert found == {
        (root, *rest): number
        for root in (0, 1)
        for rest, number in {
            ("a", 0, "default", 5): 2,
            ("", 1, "default", 5): 1,
            ("a", 0, "young", 1): 1,
        }.items()
    }
    assert sum(s.size for s in sums.records()) == 2 * sum(file.size for file in files)


@given(st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name))
def test_a_name_on_one_line_is_exact(name: bytes) -> None:
    shown = shown_name(name)
    assert shown.isprintable()
    assert name_shown(shown) == name


@given(st.binary(min_size=1, max_size=20).filter(lambda name: b"\0" not in name))
def test_a_name_that_is_shown_is_a_pattern_of_it(name: bytes) -> None:
    for each in (name, b"[" + name + b"]", b"*" + name + b"\\[a-z]\xff\n"):
        path = b"/" + each.replace(b"/", b"|")
        shown = shown_name(path)
        try:
            check_pattern(shown)
        except ValueError:
            continue  # told, with its remedy
        assert plain_of(as_plain(shown)) == path
        if plain_of(shown) is not None:
            assert pattern_of(shown).fullmatch(path)
        assert pattern_of(as_plain(shown)).fullmatch(path)


def test_a_name_is_kept_as_it_is_shown(tmp_path: Path) -> None:
    names = [b"a\nb", b"a\xff", b"a\\b", b"\x1b[2J", "ü\t".encode(), b"core[1]", b"a*[b]?\x01"]
    lines = [f"  - {{files: '/s/{shown_name(name)}'}}\n" for name in names]
    lines += [f"  - {{folder: '/s/{shown_name(name)}.d'}}\n" for name in names]
    policy = policy_of(tmp_path, "roots: [/s]\nage: 30d\nwhitelist:\n" + "".join(lines))
    texts = [os.fsdecode(name) for name in names]
    files = [*(File(text) for text in texts), *(File(f"{text}.d/deep/f") for text in texts)]
    assert [name.split()[0] for name in ruled(policy, *files)] == ["whitelist"] * 14


def test_patterns_fit_what_those_of_a_shell_do(tmp_path: Path) -> None:
    for pattern, fits, fits_not in (
        ("/s/**/keep/f", "keep/f a/keep/f a/b/keep/f", "xkeep/f a/keep/g"),
        ("/s/a?", "ab aü", "a abc a/"),
        ("/s/[!a]x", "bx üx", "ax"),
        ("/s/\\*\\[1\\?", "*[1?", "a[1b"),
    ):
        policy = policy_of(
            tmp_path, f"roots: [/s]\nage: 30d\nwhitelist: [{{files: '{pattern}'}}]\n"
        )
        for files, rule in ((fits, "whitelist"), (fits_not, "default")):
            for name in files.split():
                assert ruled(policy, File(name))[0].split()[0] == rule, (pattern, name)
    for folder in ("/s/a/", "/s/a/**"):
        policy = policy_of(
            tmp_path, f"roots: [/s]\nage: 30d\nwhitelist: [{{folder: '{folder}'}}]\n"
        )
        found = ruled(policy, File("a/f"), File("a/b/f"), File("ab/f"))
        assert [name.split()[0] for name in found] == ["whitelist", "whitelist", "default"]
