"""The space that a test requires: asked by the job, before its script."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.rehearsal.stage import Stage
from tests.plugins.rehearsal.test_features import most_in_flight
from tests.programs import Workplace

GIB = 1 << 30

# A Lustre of three targets with 1, 2 and 4 GiB free, whose user has 3 GiB left of a quota below
# `quota`; below `broken` lfs has no answer.
LFS = """#!/bin/bash
case "$1 ${@: -1}" in
"df "*broken*) echo 'lfs df: cannot reach the MGS' >&2; exit 1 ;;
"df "*)
  echo 'UUID                   1K-blocks        Used   Available Use% Mounted on'
  echo 's-MDT0000_UUID           1048576      524288          10  99% /s[MDT:0]'
  echo "s-OST0000_UUID          9000000000      100     4194304   1% /s[OST:0]"
  echo "s-OST0001_UUID          9000000000      100     1048576   1% /s[OST:1]"
  echo 'OST0002             : inactive device'
  echo "s-OST0003_UUID          9000000000      100     2097152   1% /s[OST:3]"
  echo
  echo "filesystem_summary:    36000000000      400     7340032   1% /s" ;;
"getstripe "*wide*) echo -1 ;;
"getstripe "*) echo 1 ;;
"quota "*unread*) echo 'cannot get quota: No route to host' >&2; exit 1 ;;
"quota "*none*) echo 'Unexpected quotactl error: Operation not supported' >&2; exit 1 ;;
"quota "*quota*) printf '%s\n                ' "${@: -1}"; echo "1048576* 0 4194304 - 5 0 0 -" ;;
"quota "*) echo "     ${@: -1} [1048576] 0 0 - 5 0 0 -" ;;
*) exit 2 ;;
esac
"""
STAT = """#!/bin/bash
case "$*" in
*%T*lustre*) echo '9000000000 1835008 4096 lustre' ;;
*%T*endless*) echo '18446744073709551615 18446744073709551615 1048576 fuseblk' ;;
*%T*silent*) echo '0 0 4096 proc' ;;
*) exec /usr/bin/stat "$@" ;;
esac
"""


@pytest.fixture
def here(place: Workplace) -> Workplace:
    place.local(file_systems={"scratch": {"path": str(place.folder)}})
    programs = place.folder / "bin"
    programs.mkdir()
    for name, text in (("lfs", LFS), ("stat", STAT)):
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    place.env["PATH"] = f"{programs}:/usr/bin:/bin"
    return place


# where, size, largest file, count of stripes: what the verdict says; "" where the run passes.
ASKED: dict[tuple[str, str, str, str | int], str] = {
    (".", "1M", "1M", "default"): "",
    ("scratch", "1M", "1M", "default"): "",
    ("scratch", "400T", "400T", "default"): "no space: {folder} has ",
    ("missing", "1M", "1M", "default"): "no space known: 1.0 MiB wanted on missing, and it cannot ",
    ("silent", "1M", "1M", "default"): "it cannot be asked: proc does not say how large it is",
    ("endless", "400T", "400T", "default"): "",
    ("lustre", "1G", "1G", "default"): "",
    ("lustre", "2G", "2G", "default"): "; the fullest of 3 targets has 1.0 GiB, the largest file "
    "puts 2.0 GiB on it",
    ("lustre", "7G", "1G", "default"): "",
    ("lustre", "8G", "1G", "default"): "has 7.0 GiB free, 8.0 GiB wanted",
    ("lustre", "3G", "3G", 3): "",
    ("lustre", "3G", "3G", -1): "",
    ("lustre", "3G", "3G", 2): "puts 1.5 GiB on it",
    ("lustre-wide", "3G", "3G", "default"): "",
    ("lustre-quota", "3G", "1G", "default"): "",
    ("lustre-quota", "4G", "1G", "default"): "4.0 GiB wanted; the quota leaves 3.0 GiB",
    ("lustre-unread", "1M", "1M", "default"): "cannot be asked: lfs quota: cannot get quota: No ",
    ("lustre-none", "1G", "1G", "default"): "",
    ("lustre-broken", "1M", "1M", "default"): "cannot be asked: lfs df: lfs df: cannot reach",
}


def test_a_run_without_its_space_is_refused_before_its_script(here: Workplace) -> None:
    where, sizes, files, counts = (list(column) for column in zip(*ASKED, strict=True))
    for name in where:
        if name not in (".", "scratch", "missing"):
            (here.folder / name).mkdir(exist_ok=True)
    top, rows = f"{here.folder}/", list(range(len(ASKED)))
    paths = [each if each in (".", "scratch") else top + each for each in where]
    here.test(
        "t",
        parameters={"row": rows, "at": paths, "take": sizes, "file": files, "wide": counts},
        zip=[["row", "at", "take", "file", "wide"]],
        requires={
            "space": {
                "size": "size(take) * 2 / 2 B",
                "largest_file": "size(file) B",
                "path": "{at}",
            }
        },
        run={"stripe": {"count": "wide"}},
    )
    done = here.run("--name", "t")
    assert done.code == 1, done.said
    runs = json.loads(here.seatrial("export", "t", "--format", "json").out)["runs"]
    numbers = {case.id: int(case.parameters["row"]) for case in here.trial().cases()}
    assert len(runs) == len(ASKED)
    for run in runs:
        asked, said = list(ASKED.items())[numbers[run["case"]]]
        ran = run["run_id"] in here.ran()
        assert ran is (said == ""), (asked, run)
        if said:
            assert run["verdict"] == "refused", (asked, run)
            said = said.format(folder=here.folder).replace("on missing", f"on {top}missing")
            assert said in run["why"], (asked, run)


def test_space_is_asked_where_the_script_works(here: Workplace) -> None:
    """Of the directory that the run asked for, with the sizes that bash itself sees."""
    here.test(
        "t",
        "cat $OLDPWD/space.txt $RUN/space.txt 2> /dev/null; pwd",
        requires={"space": "2 * hosts MiB"},
        parameters={"hosts": 3},
        run={"directory": "scratch"},
    )
    done = here.run("--name", "t")
    assert done.code == 0, done.said
    (told,) = (here.folder / "trials" / "t" / "runs").glob("*/*/space.txt")
    answer, path, wanted, free = told.read_text().splitlines()
    assert (answer, wanted) == ("enough", f"wanted {6 << 20}")
    assert path.startswith(f"path {here.folder}/seatrial-")
    assert int(free.removeprefix("free ")) > 6 << 20


@pytest.mark.parametrize(
    ("space", "said"),
    [
        ("32", "requires.space: '32' has no unit; write e.g. 16GiB, or 2 * size GiB"),
        ("0 MiB", "requires.space: '0' gives 0: it must be a number above 0"),
        ("5000000 TiB", "requires.space: '5000000' gives 5000000: it must be at most 4 EiB"),
        ("-1 MiB", "it must be a number above 0"),
        ("4 * block MiB", "requires.space: '4 * block': block is not defined"),
        ("size('4Q') B", "'4Q' is not a size; write e.g. 64MiB, 2GB or 4096"),
        ("size(1, 2) B", "size takes one size"),
        ({"size": "1 MiB", "path": "{at"}, "requires.space.path: '{at' has half a pair of braces"),
        ({"size": "1 MiB", "largest_file": "x"}, "requires.space.largest_file: 'x' has no unit"),
        ({"path": "."}, "requires.space.size: is missing"),
    ],
)
def test_a_fault_is_told_at_its_place(here: Workplace, space: object, said: str) -> None:
    here.test("t", requires={"space": space})
    done = here.seatrial("list", "suite", "-m", str(here.machine))
    assert done.code == 2
    assert said in done.err, done.err
    assert "test.yaml:" in done.err


def test_what_takes_the_place_of_commands_must_be_a_parameter(here: Workplace) -> None:
    for name, told in (("ball", "did you mean 'tarball'?"), ("x", "write `defaults: {x: ''}`")):
        here.test("t", defaults={"tarball": ""}, requires={"commands": ["no"], "or_given": name})
        done = here.seatrial("list", "suite", "-m", str(here.machine))
        assert f"requires.or_given: '{name}' is no parameter with a default; {told}" in done.err


def test_runs_in_flight_together_require_no_more_than_the_space_for_them(tmp_path: Path) -> None:
    """Of a file system with room for 10 TiB, in a rehearsal: the conductor is the same. Runs that
    require it elsewhere are not held back, one that requires more starts alone."""
    stage = Stage(tmp_path)
    stage.machine["file_systems"] = {"scratch": {"path": "/scratch", "space": "10TiB"}}
    asked = {"on": "4 TiB", "elsewhere": {"size": "4 TiB", "path": "/tmp"}, "more": "11 TiB"}
    for name, space in asked.items():
        stage.test(name, requires={"space": space}, repeat=6)
        stage.behave(name, elapsed="1m")
        tests = {name: {"file_system": "scratch"}}
        stage.component(name, kind="once", tests=tests)
    most = {
        name: most_in_flight(played, name)
        for name, played in zip(asked, stage.play_all(), strict=True)
    }
    assert most == {"on": 2, "elsewhere": 6, "more": 1}


def test_a_rehearsal_asks_nothing_of_this_host(tmp_path: Path) -> None:
    stage = Stage(tmp_path)
    stage.test("wide", requires={"space": {"size": "400 TiB", "path": "/missing"}})
    stage.behave("wide", elapsed="1m")
    stage.component("stability", kind="once", tests={"wide": {}})
    assert stage.play().verdicts("wide") == {"pass": 1}
