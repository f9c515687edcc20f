"""What a purge.yaml may say, and when it lets files be removed."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from datetime import datetime
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest

from seatrial.errors import InvalidFiles, UsageError
from seatrial.plugins.purge.policy import load_policy, mount_options
from tests.plugins.purge.batches import policy_of
from tests.programs import Workplace

FAULTS = {
    "roots: [scratch]\nage: 9d": "roots[0]: 'scratch' is no plain absolute path",
    "roots: [/]\nage: 9d": "roots[0]: / is the whole host",
    "roots: [/usr/lib]\nage: 9d": "/usr/lib is of the system, or has the homes",
    "roots: [/home]\nage: 9d": "/home is of the system, or has the homes",
    "roots: []\nage: 9d": "roots: is empty",
    "roots: [/s, /s/a]\nage: 9d": "roots[1]: /s/a and /s are one inside the other",
    "roots: [/s]\nage: 0": "purge.yaml:2: age: 0 would take every file; write e.g. 30d",
    "roots: [/s]\nage: 1d": "age: 1d is below 2 d",
    "roots: [/s]": "age: is missing: nothing would ever be taken",
    "age: {name: a, keep: true}": "age:",
    "classes: [{name: a, files: ['*']}]": "classes[0]: needs one of `age` (such as 14d) and",
    "classes: [{name: a, age: 9d}]": "classes[0]: fits every file",
    "classes: [{name: a, keep: true, files: [a/b]}]": "'a/b' is neither a name nor a whole path",
    "classes: [{name: a, keep: true, folders: [/else]}]": "/else is below none of the roots (/s)",
    "classes: [{name: a, keep: true, users: [rooot]}]": "no user of this host; did you mean",
    "classes: [{name: a, keep: true, size: {above: 2, below: 2}}]": "no size between its bounds",
    "whitelist: [{folder: /sx/y}]": "whitelist[0].folder: /sx/y is below none of the roots (/s)",
    "whitelist: [{folder: /s//a}]": "whitelist[0].folder: '/s//a' has an empty part",
    "whitelist: [{folder: /s/./a}]": "whitelist[0].folder: '/s/./a' has an empty part",
    "whitelist: [{files: /s/a/}]": "whitelist[0].files: '/s/a/' has an empty part",
    "whitelist: [{files: 'a\\q'}]": "has \\q, which is no escape",
    "whitelist: [{folder: '/s/\\x2e./a'}]": "has an empty part, `.` or `..`",
    "whitelist: [{folder: 's/a'}]": "'s/a' is no absolute path",
    "whitelist: [{files: '/s/a\\x2fb'}]": "has \\x2f or \\x00, which no name has",
    "whitelist: [{files: '[[:digit:]]*'}]": "in brackets there are ASCII characters",
    "whitelist: [{files: '[ü]*'}]": "in brackets there are ASCII characters",
    "whitelist: [{files: '*.{c,h}'}]": "has braces, which are plain here",
    "whitelist: [{files: 'a\\'}]": "which is no escape",
    "classes: [{name: a, keep: true, files: [/x/y]}]": "/x/y is below none of the roots (/s)",
    "whitelist: [{who: me}]": "needs one of `folder` (/scratch/x) and `files`",
    "whitelist: [{files: a, until: soon}]": "until: 'soon' is not a date; write e.g. 2026-05-01",
    "whitelist_files: [none.yaml]": "none.yaml",
    "owner_lists: none": "none: owner_lists: no such folder",
    "owners: {only_groups: [nogruop]}": "is no group of this host; did you mean 'nogroup'?",
    "caps: {bytes: 0}": "caps.bytes: is 0: nothing would ever be taken",
    "goal: {free: 120%}": "goal.free: 120% is not a part of the capacity",
    "goal: {free: 20%, used: 70%}": "goal: needs one of `free` (20%) and `used` (70%)",
    "warn: {before: 0}": "warn.before: 0 is not a duration",
    "warn: {address: '{name}'}": "warn.address: '{name}' may have {user} and {uid} alone",
    'warn: {sender: "a\\nBcc: b"}': "warn.sender: has a line break",
    "warn: {command: [mail]}": "warn.command: 'mail' is no absolute path",
    "calendar: {hours: ['22-6']}": "calendar.hours[0]: '22-6' is no hours",
    "calendar: {freezes: [{from: 2026-12-02, to: 2026-12-01}]}": "2026-12-01 is before `from`",
    "time_zone: Mars": "time_zone: 'Mars' is no time zone",
    "agee: 3d": "agee",
}


def test_each_fault_has_its_place_and_a_remedy(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="seatrial schema purge"):
        load_policy(tmp_path / "none.yaml")
    for text, fault in FAULTS.items():
        whole = text if "roots" in text else f"roots: [/s]\nage: 9d\n{text}"
        with pytest.raises(InvalidFiles) as caught:
            policy_of(tmp_path, whole)
        assert fault in str(caught.value), text
        assert not text.startswith("whitelist") or len(caught.value.faults) == 1, text


def test_a_line_that_protects_nothing_is_told(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    root = tmp_path / "scratch"
    (root / "real" / "b\nk").mkdir(parents=True)
    (root / "link").symlink_to(root / "real")
    (root / "b\\k").mkdir()
    (root / "b\\k" / "link").symlink_to(root / "real")
    (root / "f").touch()

    odd = {
        "folder: ROOT/none": "ROOT/none is no folder; the line protects nothing now",
        "folder: ROOT/f": "ROOT/f is no folder; the line protects nothing now",
        "folder: 'ROOT/n*'": "fits no folder; the line protects nothing now",
        "folder: 'ROOT/*'": "fits 1 symbolic link (ROOT/link): what is behind it is not protected",
        "folder: 'ROOT/rea[l]/*'": "protects no files in ROOT/rea[l] itself",
        "files: ROOT/g": "ROOT/g fits nothing; the line protects nothing now",
        "files: ROOT/real": "fits 1 folder (ROOT/real): as `files` it protects nothing below",
    }
    fine = ["folder: ROOT/real", "folder: 'ROOT/real/b\\nk/'", "files: ROOT/link",
            "files: 'ROOT/?'", "folder: 'ROOT/**/b'", "folder: ROOT/f, until: 2001-01-01",
            ]  # fmt: skip
    faults = {
        "folder: ROOT/link": "passes a symbolic link, so that it fits nothing; name the folder",
        "folder: ROOT/link/below": "name the folder itself: ROOT/real",
        "folder: 'ROOT/link/*'": "passes a symbolic link",
        "files: 'ROOT/b\\\\k/link/x'": "passes a symbolic link",
    }

    def told(lines: Iterable[str], *words: str) -> str:
        text = "".join(f"  - {{{line}}}\n" for line in lines).replace("ROOT", str(root))
        (tmp_path / "more.yaml").write_text(f"whitelist:\n{text}")
        return " ".join(place.seatrial("purge", *words).err.split())

    top = f"roots: [{root}]\nage: 9d\nwhitelist_files: [more.yaml]\n"
    (tmp_path / "purge.yaml").write_text(top)
    for words in (("check", "purge.yaml"), ("plan", "purge.yaml", "-o", "./p")):
        said = told([*odd, *fine], *words)
        for number, words_of in enumerate(odd.values(), 2):
            part = said.partition(f"more.yaml:{number}: ")[2].partition("more.yaml:")[0]
            assert words_of.replace("ROOT", str(root)) in part, said
        over = 2 + len(odd) + len(fine) - 1
        assert f"expired: more.yaml:{over}" in said
        known = said.partition("seatrial: kept no file")[0]
        assert len(re.findall("more.yaml:", known)) == len(odd) + 2  # 'ROOT/*' has two notes
    (root / "a.x").touch()
    (tmp_path / "purge.yaml").write_text(top.replace("9d", "1ms\nshort_ages: allowed"))
    names = ["files: '*.x'", "files: '*.y'", "folder: 'ROOT/**/b'"]
    said = told(names, "plan", "purge.yaml", "-o", "./q")
    assert "kept no file that would be taken: more.yaml:3, more.yaml:4 (whitelist)" in said
    said = told(faults, "check", "purge.yaml")
    for number, fault in enumerate(faults.values(), 2):
        assert f"more.yaml:{number}: whitelist[{number - 2}]" in said
        assert fault.replace("ROOT", str(root)) in said, said


def test_a_user_holds_no_purge_back_by_a_link(tmp_path: Path) -> None:
    if os.geteuid():
        pytest.skip("needs root, to make the link of a user")
    (tmp_path / "link").symlink_to("/etc")
    lines = f"roots: [{tmp_path}]\nage: 9d\nwhitelist: [{{folder: {tmp_path}/link}}, "
    lines += f"{{folder: {tmp_path}/link/x}}, {{files: {tmp_path}/link/x}}]\n"
    with pytest.raises(InvalidFiles):
        policy_of(tmp_path, lines)
    os.chown(tmp_path / "link", 1, 1, follow_symlinks=False)
    found = policy_of(tmp_path, lines).notes
    assert len([note for note in found if "behind it is not protected" in note]) == 3, found


def test_a_faulty_list_is_the_same_by_any_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists" / "7.yaml").write_text("whitelist: [{until: soon}]\n")
    whole = policy_of(tmp_path, "roots: [/s]\nage: 9d\nowner_lists: lists\n")
    monkeypatch.chdir(tmp_path)
    assert whole.changed_owners(load_policy(Path("purge.yaml"))) == set()


def test_faults_of_a_list_are_counted_once(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("whitelist: [{files: /x}, {files: /y}]\n")
    with pytest.raises(InvalidFiles) as caught:
        policy_of(tmp_path, "roots: [/s]\nage: 9d\nwhitelist_files: [more.yaml]\n")
    assert str(caught.value).count("nothing was done") == 1
    assert str(caught.value).endswith("2 faults; nothing was done.")


def test_lists_of_no_user_are_faults(tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists").chmod(0o777)
    with pytest.raises(UsageError, match=r"others may write .*lists"):
        policy_of(tmp_path, "roots: [/s]\nage: 9d\nowner_lists: lists\n")
    (tmp_path / "lists").chmod(0o755)
    (tmp_path / "lists" / "no.such.user.yaml").write_text("whitelist: []\n")
    with pytest.raises(InvalidFiles, match="is the list of no user of this host"):
        policy_of(tmp_path, "roots: [/s]\nage: 9d\nowner_lists: lists\n")


def test_a_policy_that_others_may_write_is_refused(tmp_path: Path) -> None:
    (tmp_path / "more.yaml").write_text("whitelist: []\n")
    text = "roots: [/s]\nage: 9d\nwhitelist_files: [more.yaml]\n"
    policy_of(tmp_path, text)
    for name in ("more.yaml", "purge.yaml"):
        (tmp_path / name).chmod(0o666)
        with pytest.raises(UsageError, match=f"others may write .*{name}"):
            load_policy(tmp_path / "purge.yaml")


CALENDAR = """
roots: [/s]
age: 9d
time_zone: Europe/Zurich
calendar:
  days: [sat, tue]
  hours: ["22:00-04:00"]
  freezes: [{from: 2026-10-20, to: 2026-10-26, why: conference}]
"""


@pytest.mark.parametrize(
    ("local", "reason"),
    [
        ("2026-10-13T22:00", ""),  # a Tuesday
        ("2026-10-14T03:59", ""),  # still that of Tuesday
        ("2026-10-14T04:00", "allowed from Sat 2026-10-17 22:00 on"),
        ("2026-10-13T21:59", "allowed from Tue 2026-10-13 22:00 on"),
        ("2026-10-13T03:00", "files are removed on sat tue at 22:00-04:00 only"),
        ("2026-10-20T22:30", "nothing is removed from 2026-10-20 to 2026-10-26 (conference)"),
        ("2026-10-26T23:00", "nothing is removed from 2026-10-20 to 2026-10-26 (conference)"),
        ("2026-10-25T02:30", "allowed from Tue 2026-10-27 22:00 on"),  # clocks are set back
        ("2026-03-29T03:30", ""),  # clocks were set forward an hour ago
    ],
)
def test_files_are_removed_when_the_calendar_allows_it(
    tmp_path: Path, local: str, reason: str
) -> None:
    moment = datetime.fromisoformat(local).replace(tzinfo=ZoneInfo("Europe/Zurich")).timestamp()
    told = policy_of(tmp_path, CALENDAR).faults_now(moment, tmp_path)
    assert reason in " ".join(told)
    assert bool(told) == bool(reason)


def test_an_incident_of_the_machine_holds_a_purge_back(tmp_path: Path) -> None:
    policy = policy_of(tmp_path, "roots: [/s]\nage: 9d\ncalendar: {machine: frost}\n")
    now = 1_000_000_000.0
    line = '{"id": "i1", "time": %d, "text": "OSS down", "machine": "%s", "cause": "hardware"}\n'
    file = tmp_path / "notes.jsonl"
    for text, reason in (
        (line % (10**18 + 1, "frost"), ""),  # to come
        (line % (10**18 - 1, "other"), ""),
        (line % (10**18 - 1, "frost"), "frost has an incident: OSS down (i1)"),
        ("torn", "has damaged lines"),
    ):
        file.write_text(text)
        assert reason in " ".join(policy.faults_now(now, tmp_path))
        assert bool(policy.faults_now(now, tmp_path)) == bool(reason)


def test_a_mount_without_atime_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    policy = policy_of(tmp_path, "roots: [/s]\nage: 9d\n")
    assert mount_options("/proc")
    assert policy.mount_faults("/proc") == [] or "noatime" in mount_options("/proc")
    monkeypatch.setattr("seatrial.plugins.purge.policy.mount_options", lambda _: ["rw", "noatime"])
    assert "`times: [mtime, ctime]` if that is meant" in policy.mount_faults("/s")[0]
    without = policy_of(tmp_path, "roots: [/s]\nage: 9d\ntimes: [mtime, ctime]\n")
    assert without.mount_faults("/s") == []
