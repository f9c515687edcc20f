"""Several people sign a report; whom their keys belong to, as ssh-keygen means it; the decision."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.programs import Done, Workplace
from tests.show.report.conftest import Command
from tests.show.report.test_verify import make_key

pytestmark = pytest.mark.needs("ssh-keygen", "ssh-agent", "ssh-add")


@pytest.fixture(scope="module")
def _sides(real: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    place = Workplace(tmp_path_factory.mktemp("sides") / "place")
    shutil.copytree(real / "trials", place.trials, symlinks=True)
    assert place.seatrial("report", "t", "-o", "r.html").code == 0
    lines = []
    for side in ("vendor", "site"):
        make_key(place.folder / side)
        lines.append(f'{side} namespaces="seatrial-report" {_public(place.folder / side)}')
        done = place.seatrial("report", "sign", "r.html", "--key", side, "--as", side)
        assert done.code == 0, done.said
        assert done.out.startswith(f"r.html.sig.{side}: signs r.html\n")
    (place.folder / "signers").write_text("# both sides\n\n" + "".join(lines))
    return place.folder


@pytest.fixture
def sides(_sides: Path, tmp_path: Path) -> Path:
    """A folder with a report that vendor and site have signed, and their keys."""
    return shutil.copytree(_sides, tmp_path, symlinks=True, dirs_exist_ok=True)


def _public(key: Path) -> str:
    return key.with_name(key.name + ".pub").read_text()


def sign(seatrial: Command, folder: Path, key: str, name: str = "") -> Done:
    return seatrial(folder, "report", "sign", "r.html", "--key", key, "--as", name or key)


def verify(seatrial: Command, folder: Path, *words: str) -> Done:
    return seatrial(folder, "report", "verify", "r.html", "--signers", "signers", *words)


BOTH = ("--require", "vendor", "--require", "site")


def test_both_sides_sign(sides: Path, seatrial: Command) -> None:
    done = verify(seatrial, sides, *BOTH)
    assert done.code == 0, done.said
    for side in ("vendor", "site"):
        line = rf"signature   r.html.sig.{side}: good, by the key SHA256:\S+ of {side}\n"
        assert re.search(line, done.out), done.out


def test_one_of_them_is_missing(sides: Path, seatrial: Command) -> None:
    (sides / "r.html.sig.site").unlink()
    assert verify(seatrial, sides, "--require", "vendor").code == 0
    done = verify(seatrial, sides, *BOTH)
    assert done.code == 1
    assert "signature   MISSING: none by site\n" in done.out
    assert "Do not trust this report: a signature that is asked for is missing." in done.out


def test_the_name_of_a_file_proves_nothing(sides: Path, seatrial: Command) -> None:
    (sides / "r.html.sig.site").write_bytes((sides / "r.html.sig.vendor").read_bytes())
    done = verify(seatrial, sides, *BOTH)
    assert done.code == 1
    assert "r.html.sig.site: good" in done.out
    assert "MISSING: none by site" in done.out


def test_a_signature_by_somebody_else_is_unknown_and_one_that_does_not_fit_is_bad(
    sides: Path, seatrial: Command
) -> None:
    make_key(sides / "guest")
    assert sign(seatrial, sides, "guest").code == 0
    done = verify(seatrial, sides, *BOTH)
    assert done.code == 0, done.said
    assert "r.html.sig.guest: UNKNOWN: it is by the key SHA256:" in done.out
    (sides / "r.html.sig.guest").write_text("nonsense")
    done = verify(seatrial, sides, *BOTH)
    assert done.code == 1
    assert "r.html.sig.guest: BAD" in done.out


def test_the_report_is_changed_after_both_signed(sides: Path, seatrial: Command) -> None:
    report = sides / "r.html"
    report.write_bytes(report.read_bytes().replace(b"no criteria", b"no Criteria", 1))
    done = verify(seatrial, sides, *BOTH)
    assert done.code == 1
    assert done.out.count(": BAD") == 2


def test_a_changed_report_is_told_to_whom_signs_it(sides: Path, seatrial: Command) -> None:
    make_key(sides / "third")
    assert "r.html.sig" not in sign(seatrial, sides, "third").err
    report = sides / "r.html"
    report.write_bytes(report.read_bytes().replace(b"no criteria", b"no Criteria", 1))
    done = sign(seatrial, sides, "site")
    assert done.code == 0
    told = {line.split(": ")[1]: line.split(": ", 2)[2] for line in done.err.splitlines()}
    assert {*told} == {f"r.html.sig.{name}" for name in ("site", "third", "vendor")}
    assert "was replaced" in told["r.html.sig.site"]
    assert "does not fit" in told["r.html.sig.vendor"]
    assert "r.html.sig.site" not in sign(seatrial, sides, "vendor").err


def test_a_signature_is_replaced_only_if_it_is_of_an_earlier_report(
    sides: Path, seatrial: Command
) -> None:
    done = sign(seatrial, sides, "site", "vendor")
    assert done.code == 2
    assert "r.html.sig.vendor: signs this report already" in done.err
    done = seatrial(sides, "report", "t", "-o", "r.html")
    assert done.err.count("is of an earlier report; it must be signed anew") == 2
    assert sign(seatrial, sides, "vendor").code == 0
    assert verify(seatrial, sides, "--require", "vendor").code == 1, "that of the site is bad"
    assert sign(seatrial, sides, "site").code == 0
    assert verify(seatrial, sides, *BOTH).code == 0


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["sign", "r.html", "--key", "vendor", "--as", "../x"], "--as '../x': a name is"),
        (["sign", "r.html", "--key", "none"], "none: there is no such key"),
        (["sign", "none.html", "--key", "vendor"], "none.html"),
        (["sign", "vendor", "--key", "vendor"], "no report of Seatrial"),
        (["verify", "r.html", "--require", "site"], "--require: names of which file"),
        (["t", "--decision", "reservations"], "name each of them with --reservation"),
        (["t", "--decision", "accepted", "--reservation", "x"], "--decision reservations"),
        (["t", "--decision", "reservations", "--reservation", " "], "--reservation: is empty"),
        (["t", "--decision", "maybe"], "--decision"),
    ],
)
def test_usage(sides: Path, seatrial: Command, words: list[str], said: str) -> None:
    done = seatrial(sides, "report", *words)
    assert done.code == 2, done.said
    assert said in done.err


# ---- files of allowed signers -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("lines", "who"),
    [
        (['git@x namespaces="git" KEY', "lead@x KEY"], "lead@x"),
        (["lead@x KEY", 'lead@x namespaces="git" KEY'], "lead@x"),
        (["!evil@x,*@x KEY"], "any of *@x"),
        (["other@x,vendor KEY"], "vendor or other@x"),
        (['lead@x namespaces="file,seatrial-report" KEY'], "lead@x"),
        (['"lead@x" KEY'], "lead@x"),
        (['old@x valid-before="20200101" KEY', "new@x KEY"], "new@x"),
    ],
)
def test_a_key_with_several_lines(
    sides: Path, seatrial: Command, lines: list[str], who: str
) -> None:
    (sides / "r.html.sig.site").unlink()
    _write_signers(sides, lines)
    done = verify(seatrial, sides)
    assert done.code == 0, done.said
    assert re.search(rf"good, by the key SHA256:\S+ of {re.escape(who)}\n", done.out), done.out


@pytest.mark.parametrize(
    "lines",
    [
        ['git@x namespaces="git" KEY'],
        ['old@x valid-before="20200101" KEY'],
        ["# lead@x KEY"],
        ["!lead@x KEY"],
        ["-x KEY"],
        [""],
    ],
)
def test_a_key_without_a_line_that_counts(sides: Path, seatrial: Command, lines: list[str]) -> None:
    (sides / "r.html.sig.site").unlink()
    _write_signers(sides, lines)
    done = verify(seatrial, sides)
    assert done.code == 1
    assert "r.html.sig.vendor: UNKNOWN" in done.out
    assert "Do not trust this report: a signature that is asked for is missing." in done.out


def test_whom_a_pattern_allows_is_asked_of_ssh_keygen(sides: Path, seatrial: Command) -> None:
    (sides / "r.html.sig.site").unlink()
    _write_signers(sides, ["!evil@x,*@x KEY"])
    assert verify(seatrial, sides, "--require", "lead@x").code == 0
    assert verify(seatrial, sides, "--require", "evil@x").code == 1
    assert verify(seatrial, sides, "--require", "lead@y").code == 1


def test_each_name_that_is_required_has_a_key_of_its_own(sides: Path, seatrial: Command) -> None:
    """One key may sign as both by the file; whoever asks for two names asks for two signers."""
    _write_signers(sides, ["vendor,site KEY"])
    done = verify(seatrial, sides, *BOTH)
    assert done.code == 1, done.said
    assert "MISSING: none by site with a key of its own\n" in done.out
    for side in ("vendor", "site"):
        assert verify(seatrial, sides, "--require", side).code == 0
    (sides / "signers").open("a").write(f"site {_public(sides / 'site')}")
    assert verify(seatrial, sides, *BOTH).code == 0, "that of the site signs for the site"


def _write_signers(folder: Path, lines: list[str]) -> None:
    key = " ".join(_public(folder / "vendor").split()[:2])
    (folder / "signers").write_text("".join(f"{line.replace('KEY', key)}\n" for line in lines))


# ---- the decision -------------------------------------------------------------------------------


@pytest.mark.parametrize("form", ["html", "md", "json"])
def test_the_decision_is_signed(copied: Path, seatrial: Command, form: str) -> None:
    make_key(copied / "key")
    name = f"r.{form}"
    decided = ("--decision", "reservations", "--reservation", "no spare nodes yet",
               "--reservation", "firmware `7.1`")  # fmt: skip
    assert seatrial(copied, "report", "t", "-o", name, *decided).code == 0
    done = seatrial(copied, "report", "sign", name, "--key", "key", "--as", "x")
    assert "decision    accepted with reservations (2 reservations)" in done.out
    done = seatrial(copied, "report", "verify", name, "--key", "key.pub")
    assert done.code == 0, done.said
    assert "decision    accepted with reservations (2 reservations)\n" in done.out
    text = (copied / name).read_text()
    assert "no spare nodes yet" in text
    (copied / name).write_text(text.replace("accepted with reservations (2", "accepted (2"))
    done = seatrial(copied, "report", "verify", name, "--key", "key.pub")
    assert done.code == 1


def test_a_report_by_a_person(
    copied: Path, seatrial: Command, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    settings = tmp_path / "home" / ".config" / "seatrial" / "config.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("name: A. Tester\norganisation: The Centre\n")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    assert seatrial(copied, "report", "t", "-o", "r.json").code == 0
    record = json.loads((copied / "r.json").read_text())
    assert (record["made_by"], record["organisation"]) == ("A. Tester", "The Centre")
    assert seatrial(copied, "report", "t", "-o", "r.json", "--by", "B. Other").code == 0
    assert json.loads((copied / "r.json").read_text())["made_by"] == "B. Other"
    settings.unlink()
    assert seatrial(copied, "report", "t", "-o", "r.json").code == 0
    assert "@" in json.loads((copied / "r.json").read_text())["made_by"]


def test_ssh_keygen_says_the_same(sides: Path) -> None:
    """The signatures can be checked by hand."""
    words = ["ssh-keygen", "-Y", "verify", "-n", "seatrial-report", "-f", "signers", "-I", "site",
             "-s", "r.html.sig.site"]  # fmt: skip
    with (sides / "r.html").open("rb") as report:
        done = subprocess.run(words, stdin=report, cwd=sides, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
