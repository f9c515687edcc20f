"""Signatures of reports and what they rest on: good ones, and everything that is not."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from seatrial.execute.kept_files import MAX_BYTES
from seatrial.journal.encoding import ENDING, seal, seed_of
from seatrial.journal.events import OutputRemoved, RunJudged
from seatrial.show.report import sign as signing
from seatrial.show.report.sign import NAMES, files_in
from tests.execute.plans import accept, short, write_plan
from tests.journals import without_checksums
from tests.programs import Workplace, until
from tests.show.report.conftest import Command

pytestmark = pytest.mark.needs("ssh-keygen", "ssh-agent", "ssh-add")


def make_key(path: Path, passphrase: str = "") -> Path:
    words = ["ssh-keygen", "-q", "-t", "ed25519", "-N", passphrase, "-C", "who", "-f", str(path)]
    subprocess.run(words, check=True)
    return path


@pytest.fixture(scope="module")
def _signed(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("signed") / "place"
    shutil.copytree(real / "trials", folder / "trials", symlinks=True)
    make_key(folder / "key")
    make_key(folder / "other")
    public = (folder / "key.pub").read_text()
    (folder / "signers").write_text(f"lead@centre,vendor@firm {public}")
    done = Workplace(folder).seatrial("report", "t", "-o", "r.html", "--sign", "key")
    assert done.code == 0, done.said
    assert "r.html.sig: its signature" in done.out
    return folder


@pytest.fixture
def signed(_signed: Path, tmp_path: Path) -> Path:
    """A folder with a trial, its signed report, two keys and a file of allowed signers."""
    return shutil.copytree(_signed, tmp_path, symlinks=True, dirs_exist_ok=True)


def test_a_good_one(signed: Path, seatrial: Command) -> None:
    done = seatrial(signed, "report", "verify", "r.html", "--signers", "signers")
    assert done.code == 0, done.said
    assert "signature   r.html.sig: good, by the key SHA256:" in done.out
    assert done.out.count("as it was  ") == 4
    assert "32 outputs of the runs of t" in done.out
    assert " of lead@centre or vendor@firm" in done.out
    assert "The report is as it was signed" in done.out
    for key in ("key.pub", "key"):
        done = seatrial(signed, "report", "verify", "r.html", "--key", key)
        assert done.code == 0, done.said
    assert "lead" not in done.out


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_every_form_can_be_signed(signed: Path, seatrial: Command, form: str) -> None:
    name = f"other.{form}"
    assert seatrial(signed, "report", "t", "-o", name, "--sign", "key").code == 0
    assert seatrial(signed, "report", "verify", name, "--key", "key.pub").code == 0
    assert [each.name for each in files_in((signed / name).read_bytes())] == list(NAMES)


def test_whose_key_it_is_must_be_asked(signed: Path, seatrial: Command) -> None:
    done = seatrial(signed, "report", "verify", "r.html")
    assert done.code == 3
    assert "the owner of the key was not verified: name accepted keys" in done.out
    assert "not everything could be checked" in done.out


@pytest.mark.parametrize("words", [(), ("--signers", "signers"), ("--key", "key.pub")])
def test_a_report_changed_by_one_byte(
    signed: Path, seatrial: Command, words: tuple[str, ...]
) -> None:
    report = signed / "r.html"
    data = bytearray(report.read_bytes())
    data[data.index(b"no criteria")] ^= 1
    report.write_bytes(data)
    done = seatrial(signed, "report", "verify", "r.html", *words)
    assert done.code == 1
    assert "signature   r.html.sig: BAD" in done.out
    assert "Do not trust this report: a signature is bad." in done.out


@pytest.mark.parametrize("words", [("--signers", "signers"), ("--key", "key.pub")])
def test_a_signature_by_another_key(
    signed: Path, seatrial: Command, words: tuple[str, ...]
) -> None:
    assert seatrial(signed, "report", "t", "-o", "r.html", "--sign", "other").code == 0
    done = seatrial(signed, "report", "verify", "r.html", *words)
    assert done.code == 1
    assert re.search(r"UNKNOWN: it is by the key SHA256:\S+, which is not among those", done.out)


def test_a_signature_for_another_purpose(signed: Path, seatrial: Command) -> None:
    (signed / "r.html.sig").unlink()
    words = ["ssh-keygen", "-Y", "sign", "-n", "file", "-f", "key", "r.html"]
    subprocess.run(words, cwd=signed, check=True, capture_output=True)
    for more in ((), ("--signers", "signers"), ("--key", "key.pub")):
        done = seatrial(signed, "report", "verify", "r.html", *more)
        assert done.code == 1, done.said
        assert "signature   r.html.sig: BAD" in done.out


def test_a_signature_that_is_none_or_missing(signed: Path, seatrial: Command) -> None:
    (signed / "r.html.sig").write_text("nonsense")
    for words in ((), ("--signers", "signers"), ("--key", "key.pub")):
        done = seatrial(signed, "report", "verify", "r.html", *words)
        assert done.code == 1
        assert "BAD: r.html.sig is no signature of OpenSSH's" in done.out
    (signed / "r.html.sig").write_text("-----BEGIN SSH SIGNATURE-----\n" + "A" * 100_000)
    done = seatrial(signed, "report", "verify", "r.html")
    assert done.code == 2
    assert "larger than any signature" in done.err
    (signed / "r.html.sig").unlink()
    done = seatrial(signed, "report", "verify", "r.html")
    assert done.code == 3
    assert "not checked: there is no r.html.sig beside it" in done.out
    done = seatrial(signed, "report", "verify", "r.html", "--key", "key.pub")
    assert done.code == 1
    assert (
        "signature   MISSING: there is no r.html.sig beside it, and no r.html.sig.NAME" in done.out
    )
    assert "Do not trust this report: it is not signed." in done.out


# ---- what it rests on ---------------------------------------------------------------------


def verified(seatrial: Command, folder: Path, *words: str) -> tuple[int, str]:
    done = seatrial(folder, "report", "verify", "r.html", "--key", "key.pub", *words)
    assert "signature   r.html.sig: good" in done.out, done.said
    return done.code, done.out


def _appended(folder: Path, data: bytes) -> int:
    """Append bytes to the journal; return its size before."""
    journal = folder / "trials" / "t" / "journal.jsonl"
    size = journal.stat().st_size
    with journal.open("ab") as file:
        file.write(data)
    return size


def test_a_journal_that_went_on_since(signed: Path, seatrial: Command) -> None:
    size = _appended(signed, b'{"time":1795262400000000000,"event":"trial_resume"}\n')
    code, out = verified(seatrial, signed)
    assert code == 0
    assert f"went on since   t/journal.jsonl: its first {size:,} bytes are as they were, 52" in out


def test_a_journal_whose_last_line_is_being_written(signed: Path, seatrial: Command) -> None:
    """As a driver that a person resumed may leave it when it dies."""
    _appended(signed, b'{"time":1795262400000000000,"event":"trial_resume"}\n{"time":17952')
    code, out = verified(seatrial, signed)
    assert (code, "\nwent on since   t/journal.jsonl" in out) == (0, True)


def test_a_resume_that_finds_a_damaged_journal(place: Workplace, seatrial: Command) -> None:
    """Its alert does not look like an event that nobody's resume explains."""
    place.test("good", repeat=3)
    assert place.run("--name", "t").code == 0
    journal = place.trial().journal
    lines = journal.read_bytes().splitlines(keepends=True)
    verdict, *_ = (i for i, line in enumerate(lines) if b'"check_end"' in line)
    lines[verdict] = b"x" * (len(lines[verdict]) - 1) + b"\n"
    journal.write_bytes(b"".join(lines))
    make_key(place.folder / "key")
    assert seatrial(place.folder, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    assert place.resume().code == 0
    code, out = verified(seatrial, place.folder)
    assert (code, "\nwent on since   t/journal.jsonl" in out) == (0, True), out


def test_a_large_journal_and_what_follows_have_right_checksums(
    signed: Path, seatrial: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    journal = signed / "trials" / "t" / "journal.jsonl"
    before = journal.read_bytes()
    line = b'{"time":1795262400000000000,"event":"trial_resume"}\n'
    _appended(signed, seal(line, seed_of(before[-ENDING:]))[0])
    monkeypatch.setattr("seatrial.journal.journal.READ_AT_ONCE", 1000)
    code, out = verified(seatrial, signed)
    assert code == 0, out
    assert "32 outputs of the runs of t" in out


@pytest.mark.parametrize(
    ("data", "why"),
    [
        (b"garbage\n", "1 line of them no event"),
        (b"garbage", "1 line of them no event"),
        (b'{"time":1795262400000000000,"event":"trial_resume"}\nx\n', "1 line of them no event"),
        (b'{"time":1795262400000000000,"event":"trial_resume"}\nx\ny', "2 lines of them no event"),
        (b'x\n{"time":1795262400000000000,"event":"trial_resume"}\ny', "2 lines of them no event"),
        (b'{"time":1795262400000000000,"event":"alert"}\n{"ti', "1 line of them no event"),
        (b'{"time":1795262400000000000,"event":"alert"}\n', "nobody went on with it: alert"),
    ],
)
def test_what_was_appended_after_the_end_of_a_trial(
    signed: Path, seatrial: Command, data: bytes, why: str
) -> None:
    _appended(signed, data)
    code, out = verified(seatrial, signed)
    assert code == 1
    assert "\nadded to        t/journal.jsonl" in out
    assert f"after the end of the trial, {'and ' * why.startswith('nobody')}{why}" in out
    assert "Do not trust this report: something behind it was changed." in out


# ---- what runs wrote, documents, notes ------------------------------------------------------


def _outputs(folder: Path, test: str, name: str) -> list[Path]:
    return sorted((folder / "trials" / "t" / "runs" / test).glob(f"*/{name}"))


@pytest.mark.parametrize(("test", "name"), [("good", "stdout"), ("bad", "stderr")])
def test_an_output_of_a_run_that_was_changed(
    signed: Path, seatrial: Command, test: str, name: str
) -> None:
    path = _outputs(signed, test, name)[0]
    path.write_bytes(path.read_bytes() + b"x")
    code, out = verified(seatrial, signed)
    assert code == 1
    assert re.search(rf"\nchanged  +{re.escape(str(path))}, run {path.parent.name}\n", out), out
    assert "31 outputs of the runs of t" in out
    code, out = verified(seatrial, signed, "--no-outputs")
    assert code == 0
    assert "not checked     outputs of runs: --no-outputs" in out


def test_outputs_that_are_gone_or_no_files(signed: Path, seatrial: Command) -> None:
    first, second, *_ = _outputs(signed, "good", "stdout")
    first.unlink()
    second.unlink()
    os.mkfifo(second)
    code, out = verified(seatrial, signed)
    assert code == 3
    assert f"not here        {first}, run" in out
    assert f"cannot be read  {second}, run" in out


def test_an_event_excuses_no_file_that_keep_would_not_remove(
    copied: Path, seatrial: Command
) -> None:
    """A job can write into the journal of its own user, before anybody signs it."""
    first, *_ = _outputs(copied, "good", "stdout")
    _told_removed(copied, first.parent, names=["stdout"])
    make_key(copied / "key")
    assert seatrial(copied, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    first.unlink()
    code, out = verified(seatrial, copied)
    assert (code, f"not here        {first}, run" in out) == (3, True)


def test_a_second_verdict_excuses_no_file_that_was_kept_for_the_first(
    place: Workplace, seatrial: Command
) -> None:
    """What is kept of a run that failed is not removed where it passes later."""
    place.test("a", "echo 1", verify=[{"contains": "2"}], keep="failed")
    place.run("--name", "t")
    place.test("a", "echo 1", verify=[{"contains": "1"}], keep="failed")
    assert place.seatrial("judge", "t", "--again", "--reason", "a wrong check").code == 0
    path = place.run_folder("a") / "stdout"
    _told_removed(place.folder, path.parent, names=["stdout"])
    make_key(place.folder / "key")
    assert seatrial(place.folder, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    path.unlink()
    code, out = verified(seatrial, place.folder)
    assert (code, f"not here        {path}, run" in out) == (3, True), out


def _told_removed(folder: Path, run: Path, **more: object) -> None:
    """Append the event that outputs of a run were removed, as anybody can."""
    event = {"time": 1795262400000000000, "event": "output_remove", "run_id": run.name, "value": 1}
    _appended(folder, json.dumps(event | more).encode() + b"\n")


@pytest.mark.parametrize("more", [{}, {"names": ["stdout"]}])
def test_an_event_that_was_appended_hides_no_output_that_is_gone(
    signed: Path, seatrial: Command, more: dict[str, object]
) -> None:
    path = _outputs(signed, "good", "stdout")[0]
    path.unlink()
    _told_removed(signed, path.parent, **more)
    code, out = verified(seatrial, signed)
    assert (code, f"not here        {path}, run" in out) == (3, True)


def test_an_event_that_was_signed_hides_only_the_files_that_it_names(
    place: Workplace, seatrial: Command
) -> None:
    place.test("good", "echo 1 > a; echo 2 > b", verify=[{"file": "a"}, {"file": "b"}], keep="none")
    assert place.run("--name", "t").code == 0
    journal = place.trial().journal
    (event,) = place.events("t", OutputRemoved)
    left = len(event.names or []) - 1
    told = without_checksums(journal).replace(b'"names":["a",', b'"names":[')
    journal.write_bytes(
        told.replace(b'"value":%d,"size"' % event.files, b'"value":%d,"size"' % left)
    )
    make_key(place.folder / "key")
    assert seatrial(place.folder, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    code, out = verified(seatrial, place.folder)
    path = place.run_folder("good") / "a"
    assert (code, f"not here        {path}, run" in out) == (3, True), out
    assert "1 output of the runs of t: removed, as `keep` says" in out, "b is told"


WRITES = "echo 1 > sum.csv; echo 1 > big.dat; seq 20000; echo the end >&2"
KEEP = {"runs": "none", "files": ["*.csv"]}


def test_a_removed_file_may_be_named_in_another_way(place: Workplace, seatrial: Command) -> None:
    place.test("good", "echo 1 > out", verify=[{"file": "./out"}], keep="none")
    assert place.run("--name", "t").code == 0
    make_key(place.folder / "key")
    assert seatrial(place.folder, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    code, out = verified(seatrial, place.folder)
    assert (code, "1 output of the runs of t: removed, as `keep` says" in out) == (0, True), out


@pytest.fixture
def removed_since(place: Workplace, seatrial: Command) -> Path:
    """The directory of a run whose outputs were removed after the report was signed."""
    judged = [{"file": "sum.csv"}, {"file": "big.dat"}]
    place.test("large", WRITES, verify=judged, keep=KEEP, logs=False)
    place.test("small", "echo 1", keep="none", logs=False)
    assert place.run("--name", "t").code == 0
    journal = place.trial().journal
    lines = without_checksums(journal).splitlines(keepends=True)
    removed = [line for line in lines if b'"output_remove"' in line]
    large = [line for line in removed if b'"test":"large"' in line]
    assert len(large) == 1
    kept = b"".join(line for line in lines if line not in removed)
    end = re.compile(rb'("binary_execute_end",.*"test":"small",.*"value":0)\}')
    kept, ends = end.subn(rb'\1,"sizes":{"stdout":2}}', kept)  # as other hosts tell
    assert ends == 1
    journal.write_bytes(kept)
    make_key(place.folder / "key")
    assert seatrial(place.folder, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    _appended(place.folder, b"".join(large))
    return place.run_folder("large")


def test_what_keep_removed_since_the_report_is_not_missed(
    place: Workplace, removed_since: Path, seatrial: Command
) -> None:
    left = {path.name for path in removed_since.iterdir()}
    assert left == {"job.sh", "events.jsonl", "stdout.tail", "stderr", "sum.csv"}
    code, out = verified(seatrial, place.folder)
    assert (code, "2 outputs of the runs of t: removed, as `keep` says" in out) == (0, True), out


@pytest.mark.parametrize(
    ("test", "name", "is_told"),
    [("large", "sum.csv", True), ("small", "stdout", True), ("small", "stderr", False)],
)
def test_what_keep_would_not_have_removed_is_missed(
    place: Workplace, removed_since: Path, seatrial: Command, test: str, name: str, is_told: bool
) -> None:
    """A file that `keep` names; stdout where it is shorter than what stays of it; one of which no
    event tells."""
    path = place.run_folder(test) / name
    if is_told:
        _told_removed(place.folder, path.parent)
    path.unlink()
    code, out = verified(seatrial, place.folder)
    assert (code, f"not here        {path}, run" in out) == (3, True), out


def test_a_file_too_large_for_a_checksum_is_not_checked(
    place: Workplace, seatrial: Command
) -> None:
    place.test("large", f"truncate -s {MAX_BYTES + 1} big.dat", verify=[{"file": "big.dat"}])
    assert place.run("--name", "t").code == 0
    make_key(place.folder / "key")
    assert seatrial(place.folder, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    code, out = verified(seatrial, place.folder)
    assert (code, "\nas it was       2 outputs of the runs of t\n" in out) == (0, True), out
    assert (
        "not checked     1 output of the runs of t: too large to be judged, or larger than 16.0 GiB"
        in out
    )
    path = place.run_folder("large") / "big.dat"
    os.truncate(path, 1)
    code, out = verified(seatrial, place.folder)
    assert (code, f"changed         {path}, run" in out) == (1, True)
    path.unlink()
    code, out = verified(seatrial, place.folder)
    assert (code, f"not here        {path}, run" in out) == (3, True)


def test_what_was_too_large_for_its_checks_has_no_checksum(
    place: Workplace, seatrial: Command
) -> None:
    """It would be read for minutes, and nothing was judged by it."""
    limited = {"contains": "ok", "size_limit": "1K"}
    place.test("large", "echo ok; truncate -s 4G /dev/stdout", verify=[limited])
    place.test("small", "echo ok", verify=[limited])
    assert place.run("--name", "t").code == 1
    assert place.verdicts() == {"large": "output too large", "small": "pass"}
    (run,) = [each for each in place.events("t", RunJudged) if each.test == "large"]
    assert run.sha256 is not None and run.sha256["stdout"] == ""
    make_key(place.folder / "key")
    assert seatrial(place.folder, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    code, out = verified(seatrial, place.folder)
    assert code == 0 and "not checked     1 output of the runs of t: too large to be judged" in out
    os.truncate(place.run_folder("large") / "stdout", 10)
    assert verified(seatrial, place.folder)[0] == 1


def test_a_trial_of_version_0_1_has_no_checksums_of_outputs(
    copied: Path, seatrial: Command
) -> None:
    journal = copied / "trials" / "t" / "journal.jsonl"
    written = re.sub(r',"(sha256":\{[^}]*\}|crc":"\w*")', "", journal.read_text())
    recalled = re.sub(
        r'("check_end".*),"value":0,"alias":"pass"', r'\1,"value":45', written, count=1
    )
    assert recalled != written
    journal.write_text(recalled)
    make_key(copied / "key")
    assert seatrial(copied, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    code, out = verified(seatrial, copied)
    assert code == 0
    assert "not checked     outputs of 15 runs of t: there are no checksums of them" in out
    # and nothing of the run that was recalled: it never started


def test_notes_that_were_rewritten(copied: Path, seatrial: Command) -> None:
    make_key(copied / "key")
    notes = copied / "trials" / "notes.jsonl"
    assert seatrial(copied, "note", "new switches").code == 0
    assert seatrial(copied, "report", "t", "-o", "r.html", "--sign", "key").code == 0
    assert seatrial(copied, "note", "more of them").code == 0
    code, out = verified(seatrial, copied)
    assert code == 0
    assert "went on since   notes.jsonl" in out
    notes.write_text(notes.read_text().replace("new switches", "old switches"))
    code, out = verified(seatrial, copied)
    assert code == 1
    assert "\nchanged         trials/notes.jsonl\n" in out


def test_a_document_of_evidence_that_was_changed(
    place: Workplace, seatrial: Command, tmp_path: Path
) -> None:
    short(place, "a")
    document = place.folder / "docs" / "burn in.pdf"
    document.parent.mkdir()
    document.write_bytes(b"all is well")
    evidence = {
        "document": "docs/burn in.pdf",
        "sha256": hashlib.sha256(b"all is well").hexdigest().upper(),
        "signed_by": "A. Vendor",
        "signed_on": "2026-05-01",
    }
    plan = write_plan(place)
    written = yaml.safe_load(plan.read_text())
    written["components"].append({"component": "vendor", "evidence": [evidence]})
    plan.write_text(yaml.safe_dump(written))
    assert accept(place).code == 0
    make_key(place.folder / "key")
    for form in ("html", "md", "json"):
        words = ("-o", f"r.{form}", "--sign", "key")
        assert seatrial(place.folder, "report", "plan.yaml", *words).code == 0

    def check(form: str, *words: str) -> tuple[int, str]:
        done = seatrial(place.folder, "report", "verify", f"r.{form}", "--key", "key.pub", *words)
        return done.code, done.out

    for form in ("html", "md", "json"):
        code, out = check(form)
        assert code == 0, out
        assert "as it was       document docs/burn in.pdf, 11 B" in out
    document.write_bytes(b"all was well")
    code, out = check("html")
    assert code == 1
    assert f"\nchanged         document docs/burn in.pdf: {document}\n" in out
    document.unlink()
    code, out = check("html")
    assert code == 3
    assert "--documents names another folder" in out
    (tmp_path / "elsewhere" / "docs").mkdir(parents=True)
    (tmp_path / "elsewhere" / "docs" / "burn in.pdf").write_bytes(b"all is well")
    code, _ = check("html", "--documents", str(tmp_path / "elsewhere"))
    assert code == 0


def _change(path: Path) -> None:
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size - 1)


def _grow(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b" ")


@pytest.mark.parametrize(
    ("harm", "name", "state"),
    [
        (_change, "journal.jsonl", "changed"),
        (_cut, "journal.jsonl", "cut"),
        (_change, "trial.json", "changed"),
        (_grow, "trial.json", "changed"),
        (_grow, "cases.jsonl", "changed"),
    ],
)
def test_what_was_changed_since(
    signed: Path, seatrial: Command, harm: Callable[[Path], None], name: str, state: str
) -> None:
    harm(signed / "trials" / "t" / name)
    code, out = verified(seatrial, signed)
    assert code == 1
    assert f"\n{state} " in out
    assert "Do not trust this report: something behind it was changed." in out
    (line,) = [line for line in out.splitlines() if line.startswith(f"{state} ")]
    assert line.count(name) == line.count(f"trials/t/{name}") == 1
    unread = [line for line in out.splitlines() if line.startswith("not checked ")]
    if name == "journal.jsonl":
        assert [one.endswith(f"runs of t: its journal was {state}") for one in unread] == [True]
    elif harm is _grow:
        assert unread == []


def test_journals_that_are_not_here_or_elsewhere(signed: Path, seatrial: Command) -> None:
    shutil.move(signed / "trials", signed / "moved")
    code, out = verified(seatrial, signed)
    assert code == 3
    assert out.count("not here  ") == 3
    assert "--trials names another folder" in out
    code, _ = verified(seatrial, signed, "--trials", "moved")
    assert code == 0
    journal = signed / "moved" / "t" / "journal.jsonl"
    journal.unlink()
    os.mkfifo(journal)
    code, out = verified(seatrial, signed, "--trials", "moved")
    assert code == 3
    assert "not here        moved/t/journal.jsonl" in out


# ---- what people and attackers give it ----------------------------------------------------


@pytest.mark.parametrize(
    "document",
    [
        b"",
        b"<p>no report</p>",
        b"{}",
        b"{",
        b"\xff\xfe" * 50,
        b'{"files": [{"trial": "..", "name": "journal.jsonl", "sha256": "", "bytes": 1}]}',
        b'<pre id="checksums">' + b"a" * 64 + b"  1  ../t/journal.jsonl</pre>",
        b'<pre id="checksums">' + b"a" * 64 + b"  1  t/../../etc/passwd</pre>",
        b'<pre id="checksums">' + b"a" * 64 + b"  1  -t/journal.jsonl</pre>",
        b'<pre id="checksums">' + b"a" * 64 + b"  1  t/trial.json\nnonsense</pre>",
        b"```checksums\n```\n",
        b"[" * 100_000,
        b'{"files": ' + b"[" * 100_000,
    ],
)
def test_what_is_no_report_is_refused(tmp_path: Path, seatrial: Command, document: bytes) -> None:
    (tmp_path / "r.html").write_bytes(document)
    done = seatrial(tmp_path, "report", "verify", "r.html")
    assert done.code == 2, done.said
    assert "r.html: it " in done.err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["none.html"], "none.html: there is no such report"),
        (["."], ".: there is no such report"),
        (["r.html", "--signers", "none"], "none: there is no such file of allowed signers"),
        (["r.html", "--key", "none"], "none: there is no such file; name the public key"),
        (["r.html", "--key", "r.html"], "r.html: is "),
        (["r.html", "--key", "key.pub", "--signers", "signers"], "one of them"),
    ],
)
def test_files_that_are_not_there(
    signed: Path, seatrial: Command, words: list[str], said: str
) -> None:
    done = seatrial(signed, "report", "verify", *words)
    assert done.code == 2, done.said
    assert said in done.err


def test_names_that_look_like_options(signed: Path, seatrial: Command) -> None:
    """ssh-keygen is given no path that it could take for an option."""
    for name, to in (("key", "-f"), ("key.pub", "-f.pub"), ("signers", "-Oprint")):
        shutil.copy(signed / name, signed / to)
    done = seatrial(signed, "report", "write", "t", "-o", "-r.html", "--sign", "./-f")
    assert done.code == 0, done.said
    done = seatrial(signed, "report", "verify", "--signers=-Oprint", "--", "-r.html")
    assert done.code == 0, done.said
    (signed / "named").write_text(f"-x {(signed / 'key.pub').read_text()}")
    done = seatrial(signed, "report", "verify", "--signers", "named", "--", "-r.html")
    assert done.code == 1, "a name that looks like an option is no name"


def test_a_key_with_a_passphrase_that_nobody_can_type(
    signed: Path, seatrial: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_key(signed / "locked", "secret")
    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.setenv("SSH_ASKPASS", "/bin/false")
    monkeypatch.setenv("SSH_ASKPASS_REQUIRE", "force")
    done = seatrial(signed, "report", "t", "-o", "r.html", "--sign", "locked")
    assert done.code == 2, done.said
    assert "locked: ssh-keygen did not sign r.html: " in done.err
    assert not (signed / "r.html.sig").exists(), "no signature of an earlier report stays"


def test_an_agent_holds_the_key(
    signed: Path, seatrial: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    socket = tmp_path / "agent"
    agent = subprocess.Popen(["ssh-agent", "-D", "-a", str(socket)], stdout=subprocess.DEVNULL)
    try:
        until(socket.exists, "the agent's socket")
        monkeypatch.setenv("SSH_AUTH_SOCK", str(socket))
        subprocess.run(["ssh-add", "-q", str(signed / "key")], check=True)
        (signed / "key").unlink()
        done = seatrial(signed, "report", "t", "-o", "r.html", "--sign", "key.pub")
        assert done.code == 0, done.said
    finally:
        agent.terminate()
        agent.wait()
    assert seatrial(signed, "report", "verify", "r.html", "--key", "key.pub").code == 0


def test_without_ssh_keygen(
    signed: Path, seatrial: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(signed))
    done = seatrial(signed, "report", "verify", "r.html")
    assert done.code == 3
    assert "ssh-keygen is not on PATH: install OpenSSH's client, 8.2 or newer" in done.err
    done = seatrial(signed, "report", "t", "-o", "new.html", "--sign", "key")
    assert done.code == 3
    assert (signed / "new.html").exists(), "the report itself is there"


def test_one_that_hangs_is_ended(
    signed: Path, seatrial: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake = signed / "bin" / "ssh-keygen"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", f"{fake.parent}:{os.environ['PATH']}")
    monkeypatch.setattr(signing, "CHECK_SECONDS", 0.2)
    done = seatrial(signed, "report", "verify", "r.html")
    assert done.code == 3
    assert "ssh-keygen did not end in 0.2 s" in done.err


def test_a_report_without_signature_says_that_an_old_one_is_there(
    signed: Path, seatrial: Command
) -> None:
    done = seatrial(signed, "report", "t", "-o", "r.html")
    assert "r.html.sig: is of an earlier report; it must be signed anew" in done.err
    assert seatrial(signed, "report", "verify", "r.html").code == 1


def test_a_block_that_somebody_wrote_into_a_page_counts_for_nothing(signed: Path) -> None:
    page = (signed / "r.html").read_bytes()
    named = files_in(page)
    fence = f"```checksums\n{'0' * 64}  1  other/trial.json\n```\n"
    forged = page.replace(b"<body", f"<!--\n{fence}--><body".encode(), 1)
    assert forged != page
    assert files_in(forged) == named
