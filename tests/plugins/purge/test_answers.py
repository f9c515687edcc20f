"""What the commands say of a plan, and how owners are told: on a real folder, by the commands."""

from __future__ import annotations

import json
import os
import re
import subprocess
import time
from datetime import datetime
from pathlib import Path

import pytest

from seatrial.journal.journal import Journal, read
from seatrial.plugins.purge.events import PurgeWarned, PurgeWarning
from seatrial.plugins.purge.names import name_shown
from tests.plugins.purge.owners import ANN, BOB, FILES, NAMES, NOBODY, Scratch
from tests.show.web.served import Served

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="files of other owners need root")

WARN = """
warn: {{before: 1ms, command: [{sender}], address: "{{user}}@example.org", contact: help@hpc,
       text: Dear user, lists: {folder}/lists}}
whitelist: [{{folder: {folder}/scratch/ann/keep, who: Ann, why: thesis, until: 2999-01-01}}]
classes: [{{name: cores, files: ["core.*"], age: 1ms}}]
owners: {{unknown: taken}}
"""


def warn(place: Scratch, more: str = "") -> str:
    return WARN.format(sender=place.sender, folder=place.folder) + more


def test_an_administrator_answers_for_each_file(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    place.plan("first", warn(place))

    overview = place.purge("show", "first").out
    assert "0 files, 0 B, are taken; 6, " in overview
    owners = {row["name"]: row for row in place.json("show", "first", "--by", "owner")}
    assert {name: row["to_warn_entries"] for name, row in owners.items()} == {
        NAMES[ANN]: 2, NAMES[BOB]: 3, f"uid {NOBODY}": 1,
    }  # fmt: skip
    assert owners[NAMES[ANN]]["kept_entries"] == 1
    for by, names in (
        ("folder", {f"{place.root}/ann", f"{place.root}/bob", f"{place.root}/gone"}),
        ("class", {"default", "cores", "(no class)"}),
        ("age", {"0-1 d"}),
        ("root", {str(place.root)}),
    ):
        rows = place.json("show", "first", "--by", by)
        assert {row["name"] for row in rows} == names
        assert sum(row["to_warn_entries"] + row["kept_entries"] for row in rows) == len(FILES)
    deep = place.json("show", "first", "--by", "folder", "--depth", "2", "--owner", NAMES[ANN])
    assert [row["name"] for row in deep] == [f"{place.root}/ann/run"]
    largest = place.json("show", "first", "--by", "file", "--top", "2")
    assert [row["path"] for row in largest] == [
        f"{place.root}/ann/run/a.dat", f"{place.root}/bob/core.77",
    ]  # fmt: skip
    csv = place.purge("show", "first", "--by", "owner", "--format", "csv").out.splitlines()
    assert csv[0].startswith("name,taken_entries,taken_bytes,to_warn_entries")
    assert len(csv) == 4

    why = place.json("why", "first", place.root / "ann/keep/thesis.tex")
    assert (why["taken"], why["in_plan"]) == (False, False)
    assert "purge.yaml:8: " in why["words"]
    assert "asked by Ann, until 2999-01-01, thesis" in why["words"]
    why = place.json("why", "first", place.root / "bob/two\nlines")
    assert (why["rule"], why["in_plan"]) == ("default unwarned", True)
    assert why["path"] == f"{place.root}/bob/two\\nlines"
    assert place.json("why", "first", f"{place.root}/bob/two\\nlines") == why  # as it is shown
    for path, fault in (
        ("/etc/passwd", "is below no root of the plan"),
        (place.root / "ann", "is a folder"),
        (place.root / "none", "is not in the plan, and not there"),
    ):
        done = place.purge("why", "first", path)
        assert done.code == 2, done.said
        assert fault in done.err
    assert "no user of this host" in place.purge("show", "first", "--owner", "no.one").err
    assert "is no unit of bytes" in place.purge("show", "first", "--unit", "furlong").err
    assert place.purge("show", "nothing").code == 2


def test_owners_are_told_once_and_each_of_every_file(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    place.plan("first", warn(place))
    journal = place.folder / "trials/.purges/first.act/journal.jsonl"

    dry = place.purge("mail", "first").out
    assert "3 owners: 2 to be told, 1 no address. Nothing was sent" in dry
    assert not place.sent.exists()
    text = place.purge("mail", "first", "--text", "--owner", NAMES[BOB]).out
    assert f"To: {NAMES[BOB]}@example.org" in text
    assert "For an exception, ask help@hpc before" in text
    assert "They are removed after" in text
    place.plan("capped", warn(place, "caps: {files: 1}\n"))
    mails = place.purge("mail", "capped", "--text").out
    assert "They may be removed, the oldest first, after" in mails
    assert str(place.root / "ann") not in text
    assert not journal.exists()

    (tmp_path / "down").touch()  # the program that sends fails
    failed = place.purge("mail", "first", "--send")
    assert failed.code == 1
    assert "bin was not told" in failed.err
    place.plan("meanwhile")
    assert place.taken("meanwhile") == {}
    (tmp_path / "down").unlink()
    done = place.purge("mail", "first", "--send")
    assert (done.code, done.err) == (0, "")
    for _ in range(2):
        assert place.purge("mail", "first", "--send").code == 0
    mails = place.sent.read_text()
    assert re.findall(r"^To: (.*)$", mails, re.MULTILINE) == [
        f"{NAMES[ANN]}@example.org", f"{NAMES[BOB]}@example.org",
    ]  # fmt: skip

    for uid in (ANN, BOB):
        path = place.folder / "lists/first" / f"{NAMES[uid]}.txt"
        assert (path.stat().st_uid, path.stat().st_mode & 0o777) == (uid, 0o400)
        lines = [line for line in path.read_text().splitlines() if not line.startswith("#")]
        paths = {name_shown(line.split(maxsplit=2)[2]) for line in lines}
        expected = [name for name, (owner, _) in FILES.items() if owner == uid]
        assert paths == {os.fsencode(place.root / n) for n in expected if "keep" not in n}
        told = [line.split(maxsplit=2)[2] for line in lines]
        by_bash = subprocess.run(
            ["bash", "-c", 'for p; do printf "%b\\0" "$p"; done', "-", *told],
            capture_output=True, check=True,
        )  # fmt: skip
        assert set(by_bash.stdout.split(b"\0")[:-1]) == paths

    place.purge("mail", "first", "--told", "by letter", "--owner", str(NOBODY))
    events = [e for e in read(journal) if isinstance(e, PurgeWarned) and not e.failed]
    assert {(e.uid, e.entries, e.how) for e in events} == {
        (ANN, 2, str(place.sender)), (BOB, 3, str(place.sender)), (NOBODY, 1, "by letter"),
    }  # fmt: skip


def test_only_what_its_owner_was_told_of_is_taken(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    place.plan("first", warn(place))
    place.purge("mail", "first", "--send", "--owner", NAMES[ANN])
    place.make("ann/run/b.dat", ANN, 6000)  # used again
    place.make("ann/new.dat", ANN)  # not there as Ann was told
    (place.root / "bob/core.77").rename(place.root / "ann/run/core.77")
    place.plan("second")
    assert place.taken("second") == {"default": 1}
    assert place.json("why", "second", place.root / "ann/run/a.dat")["taken"]

    late = warn(place).replace("before: 1ms", "before: 1h")
    place.plan("third", late)
    assert place.taken("third") == {}

    (place.folder / "trials/.purges/first.act/journal.jsonl").chmod(0o666)
    done = place.purge("plan", place.policy(warn(place)), "-o", "fourth")
    assert done.code == 2
    assert "others may write" in done.err

    place = Scratch(tmp_path / "own")  # without a folder for lists they stay beside the audit
    place.plan("first", f"warn: {{before: 1ms, command: [{place.sender}]}}\n")
    assert place.purge("mail", "first", "--send").code == 0
    place.plan("second")
    assert place.taken("second") == {"default": 6}


def test_a_mail_that_was_begun_when_the_host_went_down_counts_as_none(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    place.plan("first", warn(place))
    folder = place.folder / "trials/.purges/first.act"
    folder.mkdir(0o700)
    with Journal.take(folder / "journal.jsonl") as journal:
        journal.append(PurgeWarning(time=journal.now(), uid=ANN, owner=NAMES[ANN]))
    assert "1 to be told, 1 unclear" in place.purge("mail", "first").out
    place.purge("mail", "first", "--send")
    assert NAMES[ANN] not in place.sent.read_text()
    place.plan("second")
    assert place.taken("second") == {"default": 2, "cores": 1}  # those of Bob
    place.purge("mail", "first", "--send", "--again")
    assert f"To: {NAMES[ANN]}@" in place.sent.read_text()


def test_before_a_reformat_every_owner_is_told_of_every_file(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    rows = json.loads(place.purge("owners", place.root, "--format", "json").out)
    assert {row["uid"]: row["entries"] for row in rows} == {ANN: 3, BOB: 3, NOBODY: 1}
    assert {row["uid"]: row["size"] for row in rows} == {
        uid: sum(size for owner, size in FILES.values() if owner == uid)
        for uid in (ANN, BOB, NOBODY)
    }
    place.plan("anew", f"reformat: 2027-01-15\nwarn: {{command: [{place.sender}]}}\n")
    assert place.taken("anew") == {}
    folder = place.folder / "lists"
    assert place.purge("mail", "anew", "--write", folder).code == 0
    names = sorted(path.name for path in folder.iterdir())
    assert names == sorted(f"{n}.{e}" for n in ("54321", *NAMES.values()) for e in ("eml", "txt"))
    mail = (folder / f"{NAMES[ANN]}.eml").read_text()
    assert "is made anew on 2027-01-15. 3 files of daemon" in mail
    assert "thesis.tex" in mail


def test_the_latest_of_three_times_counts_on_a_real_tree(tmp_path: Path) -> None:
    """ctime cannot be set, so what is to be old is seen from a later time: a rehearsal."""
    place = Scratch(tmp_path, {})
    now = time.time()
    for name, read_ago, written_ago in (
        ("old", 100, 100), ("read", 5, 100), ("written", 100, 5), ("core.1", 100, 100),
        ("keep/old", 100, 100), ("ahead", 100, -400),
    ):  # fmt: skip
        path = place.make(name)
        os.utime(path, (now - read_ago * 86400, now - written_ago * 86400))
    text = "classes: [{name: cores, files: ['core.*'], age: 20d}]\n"
    text += f"whitelist: [{{folder: {place.root}/keep}}]\n"
    path = place.policy(text)
    path.write_text(path.read_text().replace("age: 1ms", "age: 30d"))

    def taken(days: float) -> set[str]:
        plan = f"plan{len(list(place.folder.glob('trials/.purges/plan*')))}"
        later = datetime.fromtimestamp(now + days * 86400).isoformat()
        done = place.purge("plan", path, "-o", plan, "--now", later)
        assert done.code == 0, done.said
        return {Path(row["path"]).name for row in place.json("show", plan, "--by", "file")}

    assert taken(0.1) == set()  # ctime is of today
    assert taken(19.9) == set()
    assert taken(20.1) == {"core.1"}
    assert taken(30.1) == {"core.1", "old", "read", "written"}
    assert place.purge("do", "plan3", "--consent", "ann").code == 2
    assert "rehears" in place.purge("mail", "plan3", "--told", "x").err
    path.write_text(path.read_text() + "times: [atime, mtime]\n")
    assert taken(0.1) == {"core.1", "old"}
    assert taken(25.1) == {"core.1", "old", "read", "written"}
    path.write_text(path.read_text() + "future: ignored\n")
    assert taken(0.1) == {"core.1", "old"}  # by ctime the one ahead is of today
    assert taken(31) == {"core.1", "old", "read", "written", "ahead"}


def test_a_purge_does_not_remove_its_own_audits(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    below = place.root / "admin" / "plan"
    below.parent.mkdir()
    done = place.purge("plan", place.policy(), "-o", below)
    assert done.code == 2
    assert "plans and audits would lie below" in done.err
    keep = place.policy(f"whitelist: [{{folder: {below.parent}}}]\n")
    assert place.purge("plan", keep, "-o", below).code == 0


def test_check_tells_what_holds_a_purge_back(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    path = place.policy("calendar: {days: [mon], hours: ['01:00-02:00']}\ntime_zone: UTC\n")
    ready = place.purge("check", path, "--at", "2026-11-30T01:30+00:00")
    assert (ready.code, ready.err) == (0, "")
    assert "ready" in ready.out
    held = place.purge("check", path, "--at", "2026-11-30T02:30+00:00")
    assert held.code == 1
    assert "allowed from Mon 2026-12-07 01:00 on" in held.err
    gone = tmp_path / "gone.yaml"
    gone.write_text(f"roots: [{tmp_path}/gone]\nage: 9d\n")
    assert "gone: cannot be opened as a folder" in place.purge("check", gone).err
    assert "owner_lists" in place.purge("check", place.policy("owner_lists: none\n")).err


def test_the_server_shows_plans_without_names_of_owners(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    assert "No plan in" in place.purge("list").out
    place.plan("first", warn(place))
    (place.folder / "trials/.purges/torn").write_text("seatrial purge plan 1\n{}")
    rows = place.json("list")
    assert [(row["name"], row["taken"], row["acts"]) for row in rows] == [
        ("first", 0, []), ("torn", 0, []),
    ]  # fmt: skip
    assert "damaged" in rows[1]["fault"]
    assert "torn" in place.purge("list").out
    with Served(place.trials) as server:
        _, plans = server.get("/purge")
        _, plan = server.get("/purge?plan=first&by=kind")
        status, _ = server.get("/purge?plan=..%2F..%2Fpurge.yaml")
        _, torn = server.get("/purge?plan=torn")
        record = json.loads(server.get("/purge.json?plan=first&by=class")[1])
    assert "?plan=first" in plans
    assert "owner not warned yet" in plan
    assert not any(name in plans + plan for name in (*NAMES.values(), "thesis", "Ann"))
    assert status == 400
    assert "damaged" in torn
    assert {row["name"] for row in record["records"]} == {"default", "cores", "(no class)"}


def test_an_owner_cannot_hold_back_the_purge_of_others(tmp_path: Path) -> None:
    place = Scratch(tmp_path)
    (tmp_path / "lists").mkdir()
    own = tmp_path / "lists" / f"{NAMES[BOB]}.yaml"
    own.write_text("whitelist: []\n")
    place.plan("first", "owner_lists: lists\nowners: {unknown: taken}\n")
    own.write_text("whitelist: [{files: a}]\n")
    done = place.purge("do", "first", "--consent", "ann")
    assert f"the list of {NAMES[BOB]} has changed since the plan" in done.err
    left = {path.relative_to(place.root).as_posix() for path in place.root.rglob("*")}
    assert {name for name in FILES if name in left} == {n for n in FILES if n.startswith("bob/")}
    why = place.purge("why", "first", place.root / "ann/run/a.dat").out
    assert "What became of it" in why
    assert ": removed." in why
    row = place.json("list")[0]
    assert [(act["act"], act["state"], act["consents"]) for act in row["acts"]] == [
        ("remove", "done", ["ann"])
    ]
    own.write_text("whitelist: [{")
    assert place.purge("plan", "purge.yaml", "-o", "faulty").code == 0
    done = place.purge("do", "faulty", "--consent", "ann")
    assert done.code == 0 and "has changed" not in done.err, done.said
