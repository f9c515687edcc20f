"""Places that judge files: import, guard, quota, report verify."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.results.store.trials import TrialMaker, a_case

from .grid import Told, bad, command, dropped, files, good, kept_folder, no

# ---- import -------------------------------------------------------------------------------

TABLE = """\
case,metric,value,unit,time,status
a,fom,5.0,s,2021-02-01,ok
b,fom,6.0,s,2021-02-01,ok
"""


def imported(folder: Path, text: str | bytes = TABLE, *words: str) -> Told:
    files(folder, old_csv=text)
    return command(folder, "import", "csv", "old.csv", "-o", "old", "-m", "frost", *words)


@good("import")
def _(folder: Path) -> Told:
    return imported(folder)


@bad("import", "missing", "old.csv", "does not exist")
def _(folder: Path) -> Told:
    return command(folder, "import", "csv", "old.csv", "-o", "old", "-m", "frost")


@bad("import", "missing", "has no figure", "old.csv:3", "exit code 3")
def _(folder: Path) -> Told:
    wide = "case,triad,time\na,5.0,2021-02-01\nb,,2021-02-01\n"
    return imported(folder, wide, "--figure", "triad=MB/s")


@bad("import", "empty", "has no status", "old.csv:3", "exit code 3")
def _(folder: Path) -> Told:
    return imported(folder, TABLE.replace("6.0,s,2021-02-01,ok", "6.0,s,2021-02-01,"))


@bad("import", "empty", "old.csv: is empty")
def _(folder: Path) -> Told:
    return imported(folder, "")


@bad("import", "cut", "has 3 values, and the head 6", "old.csv:3", "exit code 3")
def _(folder: Path) -> Told:
    return imported(folder, TABLE[: TABLE.rindex("6.0") + 3])


@bad("import", "unreadable", "old.csv: cannot be read")
def _(folder: Path) -> Told:
    (folder / "old.csv").mkdir()
    return command(folder, "import", "csv", "old.csv", "-o", "old", "-m", "frost")


@bad("import", "nan", "'nan' is not a finite number", "old.csv:3", "exit code 3")
def _(folder: Path) -> Told:
    return imported(folder, TABLE.replace("6.0", "nan"))


@bad("import", "parser", "exit code 3", "old.csv:4")
def _(folder: Path) -> Told:
    return imported(folder, TABLE.encode() + b"\0\xff\xfegarbage\n")


@bad("import", "clock", "its time is in the future: left out", "old.csv:3", "exit code 3")
def _(folder: Path) -> Told:
    return imported(folder, TABLE.replace("b,fom,6.0,s,2021", "b,fom,6.0,s,2090"))


@bad("import", "word", "status 'maybe' is none of", "old.csv:3", "exit code 3")
def _(folder: Path) -> Told:
    return imported(folder, TABLE.replace("6.0,s,2021-02-01,ok", "6.0,s,2021-02-01,maybe"))


@bad("import", "line", "old.csv:1: no column has the case")
def _(folder: Path) -> Told:
    return imported(folder, dropped(TABLE, "metric"))


@bad("import", "stale", "its results were all imported before")
def _(folder: Path) -> Told:
    assert imported(folder).green
    return command(folder, "import", "csv", "old.csv", "-o", "again", "-m", "frost")


no(
    "import",
    unit="a table says the units of its figures, and is the first that does: compare, history",
    node="a table has the nodes that it has, and no list of those that it should have",
    version="each tool has a reader of its own, which names lines that it does not know: parser",
)


# ---- guard --------------------------------------------------------------------------------

RULES = """\
rules:
- {name: new-glibc, refuse: 'glibc > "90.1"', message: It was built for a newer system.}
"""


@cache
def _program() -> bytes:
    folder = kept_folder()
    files(folder, a_c="int main(void) { return 0; }\n")
    subprocess.run(["cc", "-o", folder / "a", folder / "a.c"], check=True)
    return (folder / "a").read_bytes()


def guarded(folder: Path, program: bytes | None = None, rules: str = RULES) -> Told:
    files(folder, a=_program() if program is None else program, guard_yaml=rules)
    return command(folder, "guard", "check", "a")


@good("guard")
def _(folder: Path) -> Told:
    return guarded(folder)


@bad("guard", "missing", "a: cannot be read")
def _(folder: Path) -> Told:
    files(folder, guard_yaml=RULES)
    return command(folder, "guard", "check", "a")


@bad("guard", "empty", "a: cannot be judged", "exit code 3")
def _(folder: Path) -> Told:
    return guarded(folder, b"")


@bad("guard", "cut", "a: cannot be judged", "exit code 3")
def _(folder: Path) -> Told:
    return guarded(folder, _program()[:8000])


@bad("guard", "cut", "1 file cannot be read, or not whole: programs/a", "exit code 3")
def _(folder: Path) -> Told:
    (folder / "programs").mkdir()
    files(folder, guard_yaml=RULES)
    files(folder / "programs", a=_program()[:100])
    return command(folder, "guard", "scan", "programs")


@bad("guard", "unreadable", "a: cannot be read")
def _(folder: Path) -> Told:
    files(folder, guard_yaml=RULES)
    (folder / "a").mkdir()
    return command(folder, "guard", "check", "a")


@bad("guard", "parser", "a: cannot be judged", "exit code 3")
def _(folder: Path) -> Told:
    return guarded(folder, b"\x7fELF" + bytes(range(256)) * 4)


@bad("guard", "word", "guard.yaml:2", "glibz")
def _(folder: Path) -> Told:
    return guarded(folder, rules=RULES.replace("glibc", "glibz"))


@bad("guard", "line", "a: cannot be judged", "exit code 3")
def _(folder: Path) -> Told:
    """A page in the middle of the program is lost."""
    return guarded(folder, _program()[:4096] + _program()[8192:])


@bad("guard", "version", "a: cannot be judged", "exit code 3")
def _(folder: Path) -> Told:
    """It is for a machine of another word length or byte order."""
    return guarded(folder, _program()[:4] + b"\x01" + _program()[5:])


no(
    "guard",
    nan="a fact of a program is a text, and a version that is not known compares as false",
    unit="versions and levels have no units",
    node="it judges the program on the host where it is launched",
    stale="what was found in a library is kept with its inode, size and time of change",
    clock="it asks for no time; a date until which an exception holds is one of its rules",
)


# ---- quota --------------------------------------------------------------------------------

SUBMIT = """\
quotas:
- {name: scratch, command: cat answer, format: lfs}
limits:
- {name: full, refuse: scratch.used > scratch.quota, message: Remove files.}
"""
LFS = "/scratch 1048576 2097152 2097152 - 10 0 0 -\n"


def explained(
    folder: Path, text: str | bytes = LFS, rules: str = SUBMIT, user: str = "ann"
) -> Told:
    files(folder, answer=text, submit_yaml=rules)
    return command(folder, "quota", "explain", user)


@good("quota")
def _(folder: Path) -> Told:
    return explained(folder)


@bad("quota", "missing", "ann: scratch: cat answer: ")
def _(folder: Path) -> Told:
    files(folder, submit_yaml=SUBMIT)
    return command(folder, "quota", "explain", "ann")


@bad("quota", "empty", "ann: scratch: '' is not what format lfs has")
def _(folder: Path) -> Told:
    return explained(folder, "")


@bad("quota", "empty", "printed no user")
def _(folder: Path) -> Told:
    files(folder, answer=LFS, submit_yaml=f"{SUBMIT}users: 'true'\n")
    return command(folder, "quota", "refresh", "out")


@bad("quota", "cut", "ann: scratch: ", "is not what format lfs has")
def _(folder: Path) -> Told:
    return explained(folder, LFS[: LFS.index(" -")])


@bad("quota", "unreadable", "ann: scratch: cat answer: ")
def _(folder: Path) -> Told:
    files(folder, submit_yaml=SUBMIT)
    (folder / "answer").mkdir()
    return command(folder, "quota", "explain", "ann")


@bad("quota", "nan", "ann: scratch: ", "is not what format numbers has")
def _(folder: Path) -> Told:
    return explained(folder, "nan 5\n", SUBMIT.replace("lfs", "numbers"))


@bad("quota", "unit", "ann: scratch: ", "is not what format lfs has")
def _(folder: Path) -> Told:
    return explained(folder, LFS.replace("1048576", "1.0G"))


@bad("quota", "node", "some servers of the file system did not answer")
def _(folder: Path) -> Told:
    """A server of the file system is left out of the sum."""
    return explained(folder, LFS.replace("1048576", "[1048576]"))


@bad("quota", "parser", "ann: scratch: ", "is not what format lfs has")
def _(folder: Path) -> Told:
    return explained(folder, bytes(range(1, 256)))


@bad("quota", "word", "submit.yaml:4", "scratch.usd is not known")
def _(folder: Path) -> Told:
    return explained(folder, rules=SUBMIT.replace("scratch.used", "scratch.usd"))


@bad("quota", "word", "nobody-of-this-name", "is no user of this host")
def _(folder: Path) -> Told:
    files(folder, answer=LFS, submit_yaml=SUBMIT)
    return command(folder, "quota", "refresh", "out", "--user", "nobody-of-this-name")


@bad("quota", "line", "ann: scratch: ", "is not what format quota has")
def _(folder: Path) -> Told:
    text = f"Disk quotas\nheading of columns\n{LFS}"
    rules = SUBMIT.replace("lfs", "quota")
    assert explained(folder, text, rules).green
    return explained(folder, dropped(text, "heading"), rules)


@bad("quota", "version", "submit.yaml:2", "is not one of")
def _(folder: Path) -> Told:
    return explained(folder, rules=SUBMIT.replace("lfs", "lfs3"))


no(
    "quota",
    stale="explain asks now; a file of refresh that is too old is told in slurmctld's log, and the "
    "job goes on: docs/how-to/quota.md",
    clock="explain asks now; a file of refresh counts until a time by slurmctld's clock alone",
)


# ---- report verify ------------------------------------------------------------------------


@cache
def _signed() -> Path:
    """A folder with a trial, its signed report and the public key, made once."""
    folder = kept_folder()
    line = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "who", "-f", str(folder / "key")]
    subprocess.run(line, check=True)
    case = a_case(1)
    trial = TrialMaker(folder / "trials", "t", [case])
    trial.start()
    trial.run(case, "r1", figures={"triad": 6.0}, files={"stdout": b"6\n", "stderr": b""})
    trial.end()
    done = command(folder, "report", "t", "-o", "r.html", "--sign", "key")
    assert done.green, done.said
    shutil.copy(folder / "r.html.sig", folder / "old.sig")
    return folder


def signed(folder: Path) -> Path:
    ignored = shutil.ignore_patterns("store.sqlite*")
    shutil.copytree(_signed(), folder, dirs_exist_ok=True, ignore=ignored)
    return folder / "trials" / "t"


def verified(folder: Path, *words: str) -> Told:
    line = ("report", "verify", "r.html", "--key", "key.pub", "--no-outputs", *words)
    return command(folder, *line)


@good("report verify")
def _(folder: Path) -> Told:
    signed(folder)
    return verified(folder)


@bad("report verify", "missing", "t/journal.jsonl", "not here", "exit code 3")
def _(folder: Path) -> Told:
    (signed(folder) / "journal.jsonl").unlink()
    return verified(folder)


@bad("report verify", "missing", "exit code 1", "MISSING: there is no r.html.sig")
def _(folder: Path) -> Told:
    signed(folder)
    (folder / "r.html.sig").unlink()
    return verified(folder)


@bad("report verify", "empty", "t/journal.jsonl", "cut", "exit code 1")
def _(folder: Path) -> Told:
    (signed(folder) / "journal.jsonl").write_bytes(b"")
    return verified(folder)


@bad("report verify", "cut", "t/journal.jsonl", "cut", "exit code 1")
def _(folder: Path) -> Told:
    journal = signed(folder) / "journal.jsonl"
    journal.write_bytes(journal.read_bytes()[:-20])
    return verified(folder)


@bad("report verify", "cut", "r.html", "it names no checksums of journals")
def _(folder: Path) -> Told:
    signed(folder)
    report = folder / "r.html"
    report.write_bytes(report.read_bytes()[:200])
    return verified(folder)


@bad("report verify", "unreadable", "t/journal.jsonl", "exit code 3")
def _(folder: Path) -> Told:
    journal = signed(folder) / "journal.jsonl"
    journal.unlink()
    journal.mkdir()
    return verified(folder)


@bad("report verify", "parser", "r.html.sig is no signature")
def _(folder: Path) -> Told:
    signed(folder)
    (folder / "r.html.sig").write_bytes(bytes(range(256)))
    return verified(folder)


@bad("report verify", "stale", "BAD", "exit code 1")
def _(folder: Path) -> Told:
    """The signature is of an earlier report."""
    signed(folder)
    (folder / "trials" / "store.sqlite").unlink(missing_ok=True)
    assert command(folder, "report", "t", "-o", "r.html", "--by", "Ann").green
    return verified(folder)


@bad("report verify", "word", "exit code 1", "lead")
def _(folder: Path) -> Told:
    """A signer of whom no list knows."""
    signed(folder)
    public = (folder / "key.pub").read_text()
    files(folder, signers=f"vendor@firm {public}")
    line = ("report", "verify", "r.html", "--signers", "signers", "--no-outputs")
    assert command(folder, *line).green
    return command(folder, *line, "--require", "lead@centre")


@bad("report verify", "line", "t/journal.jsonl", "changed", "exit code 1")
def _(folder: Path) -> Told:
    journal = signed(folder) / "journal.jsonl"
    lines = journal.read_bytes().splitlines(keepends=True)
    journal.write_bytes(b"".join(lines[:2] + [lines[2], *lines[2:]][: len(lines) - 2]) + lines[-1])
    return verified(folder)


no(
    "report verify",
    nan="it compares checksums, and reads no figures",
    unit="it compares checksums, and reads no figures",
    node="it compares checksums; what a report says of nodes is the criteria's part",
    clock="a signature has no time, and none is believed",
    version="a report names the files that it rests on in one form since the first version",
)
