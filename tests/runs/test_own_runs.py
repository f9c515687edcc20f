"""What a script names as programs, and what the guard says of them."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.file_model import Scalar
from seatrial.rules.launch_rules import LaunchRule
from seatrial.runs.guard.own_runs import GuardFailed, LaunchSize, named_programs, refusal
from seatrial.runs.guard.site_files import write

RULE = LaunchRule(
    name="wide",
    refuse='name == "a b" and tasks == 4 and nodes == 2 and threads == 3',
    message="No.",
)


@pytest.fixture
def build(tmp_path: Path) -> Path:
    folder = tmp_path / "build"
    (folder / "bin").mkdir(parents=True)
    for name in ("one", "bin/two-3", "a b"):
        (folder / name).write_bytes(Path("/bin/true").read_bytes())
        (folder / name).chmod(0o755)
    (folder / "data").write_text("no program")
    return folder


@pytest.mark.parametrize(
    ("script", "names"),
    [
        ("$LAUNCH $BUILD/one", ["one"]),
        ('cd x && "$BUILD"/one -n 3 > out; ${BUILD}/one', ["one"]),
        ('$LAUNCH --gpus \\\n  "$BUILD/bin/two-$kind" < in', ["bin/two-3"]),
        ('$LAUNCH "$BUILD/a b"', ["a b"]),
        ("# $BUILD/one\n$LAUNCH one $BUILD/data $BUILD/none $BUILD/$other $BUILD", []),
        ("for x in $(ls $BUILD/one); do", ["one"]),
        ("", []),
    ],
)
def test_programs_that_a_script_names(build: Path, script: str, names: list[str]) -> None:
    variables: dict[str, Scalar] = {"BUILD": str(build), "kind": 3}
    assert named_programs(script, variables) == [f"{build}/{name}" for name in names]


def test_the_guard_is_told_the_size_of_a_launch(build: Path, tmp_path: Path) -> None:
    guard = write(tmp_path / "site", [RULE])[0]
    program = f"{build}/a b"
    told = refusal(guard, [f"{build}/one", program], LaunchSize(4, 2, 3))
    assert told == f"{program}: No. (rule wide)"
    assert not refusal(guard, [program], LaunchSize(4, 2, 1))
    assert not refusal(guard, [], LaunchSize(4, 2, 3))


def test_a_guard_that_fails_is_told(build: Path, tmp_path: Path) -> None:
    with pytest.raises(GuardFailed, match="none"):
        refusal(tmp_path / "none", [f"{build}/one"], LaunchSize(1, 1, 1))
    with pytest.raises(GuardFailed, match="exit code 7"):
        (tmp_path / "bad").write_text("#!/bin/sh\nexit 7\n")
        (tmp_path / "bad").chmod(0o755)
        refusal(tmp_path / "bad", [f"{build}/one"], LaunchSize(1, 1, 1))
