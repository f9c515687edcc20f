"""A test's own flags for a toolchain."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import Workplace

CHAINS = {"gcc": {"cflags": "-O3"}, "intel-oneapi": {"cflags": "-fast", "environment": {"A": "1"}}}
REASON = "ifx -fast fails with an internal error"
SCRIPT = 'printf \'%s|%s|%s\' "$CFLAGS" "${A-}" "${B-}" > said'


def place_with(tmp_path: Path, own: object) -> Workplace:
    place = Workplace(tmp_path)
    place.local(toolchains=CHAINS)
    script = "cat $BUILD/said; echo; echo $CFLAGS"
    place.test("t", script, build={"script": SCRIPT}, toolchains=own)
    return place


def stdout(place: Workplace, tag: str, toolchain: str) -> str:
    cases = {case.id: case.toolchain for case in place.trial(tag).cases()}
    for folder in (place.trial(tag).path / "runs" / "t").iterdir():
        said = (folder / "stdout").read_text()
        if f"export TOOLCHAIN={toolchain}" in (folder / "job.sh").read_text().replace("\n", " "):
            return said
        if f"TOOLCHAIN={toolchain} " in (folder / "job.sh").read_text():
            return said
    raise AssertionError(cases)


def test_flags_reach_build_run_key_and_report(tmp_path: Path) -> None:
    own = {"intel-*": {"cflags": "-O2", "environment": {"B": 2}, "reason": REASON}}
    place = place_with(tmp_path, own)
    assert place.run("--name", "t").code == 0
    assert stdout(place, "t", "intel-oneapi") == "-O2|1|2\n-O2\n"
    assert stdout(place, "t", "gcc") == "-O3||\n-O3\n"
    builds = {case.toolchain: case.build for case in place.trial().cases()}
    assert place.seatrial("report", "t", "-o", "r.md").code == 0
    report = (place.folder / "r.md").read_text()
    assert "Toolchains' own flags" in report
    rows = [line for line in report.splitlines() if REASON in line]
    assert len(rows) == 2
    assert all(word in rows[0] for word in ("intel-oneapi", "cflags", "-fast", "-O2"))

    own["intel-*"]["cflags"] = "-O1"
    place = place_with(tmp_path, own)
    assert place.run("--name", "u").code == 0
    after = {case.toolchain: case.build for case in place.trial("u").cases()}
    assert after["gcc"] == builds["gcc"]
    assert after["intel-oneapi"] != builds["intel-oneapi"]


def test_the_name_takes_precedence_and_skip_leaves_out(tmp_path: Path) -> None:
    own = {
        "*": {"cflags": "-O0", "reason": "all"},
        "intel-oneapi": {"skip": True, "reason": REASON},
    }
    place = place_with(tmp_path, own)
    listed = place.seatrial("list", "suite", "-m", str(place.machine))
    assert f"left out: t@intel-oneapi: {REASON}" in listed.out
    assert place.run("--name", "t").code == 0
    assert place.verdicts() == {"t": "pass"} or place.verdicts() == {"t@gcc": "pass"}
    assert stdout(place, "t", "gcc") == "-O0||\n-O0\n"


@pytest.mark.parametrize(
    ("own", "key"),
    [
        ({"gcc": {"cflags": "-O2"}}, "toolchains.gcc.reason"),
        ({"gcc": {"cflags": "-O2", "reason": " "}}, "toolchains.gcc.reason"),
        ({"gcc": {"reason": "why"}}, "toolchains.gcc"),
        ({"gcc": {"skip": True, "cflags": "", "reason": "why"}}, "toolchains.gcc.skip"),
        ({"gcc": {"cflag": "", "reason": "why"}}, "toolchains.gcc.cflag"),
        ({"gcc": {"environment": {"1": 2}, "reason": "why"}}, "toolchains.gcc.environment.1"),
        ({"gcc": "-O2"}, "toolchains.gcc"),
    ],
)
def test_faults(tmp_path: Path, own: object, key: str) -> None:
    done = place_with(tmp_path, own).run("--name", "t")
    assert done.code == 2
    assert f" {key}: " in done.err


def test_skip_leaves_out_a_test_without_a_build(tmp_path: Path) -> None:
    """It runs on one toolchain: the first that it does not skip; on a machine without any, on
    none."""
    place = Workplace(tmp_path)
    place.local(toolchains=CHAINS)
    skip = {"skip": True, "reason": REASON}
    place.test("none", "echo", toolchains={"*": skip})
    place.test("other", "echo", toolchains={"gcc": skip})
    listed = place.seatrial("list", "suite", "-m", str(place.machine))
    assert f"left out: none@gcc: {REASON}" in listed.out
    assert "other@intel-oneapi" in listed.out and "1 case of 1 test" in listed.out
    place.local(toolchains={})
    listed = place.seatrial("list", "suite", "-m", str(place.machine))
    assert f"left out: none: {REASON}" in listed.out and "1 case of 1 test" in listed.out
