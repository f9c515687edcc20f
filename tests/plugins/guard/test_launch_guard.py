"""Runs whose program the launch guard of a site refuses: no job, a verdict, a line in the log."""

from __future__ import annotations

from pathlib import Path

import pytest

from seatrial.journal.events import AlertRaised, SubmitEnded
from seatrial.model.file_model import Scalar
from seatrial.plugins.guard.launch_rules import LaunchRule
from seatrial.plugins.guard.program import log_entries, write
from seatrial.plugins.guard.watch import GuardFailed, named_programs, refusal
from tests.plugins.guard import programs_to_judge as programs
from tests.programs import Workplace

RULES = [
    LaunchRule(
        name="old-mpich",
        refuse='mpi == "mpich" and mpi_version < "4.0" and tasks > 1',
        message="MPICH before 4.0 hangs here. Load mpich/4.2.",
    ),
]
BUILD = {"script": 'cp -r "$SOURCE_DIR"/. .'}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The site's folder, with its guard."""
    folder: Path = tmp_path_factory.mktemp("site")
    write(folder, RULES)
    return folder


@pytest.fixture
def place(tmp_path: Path, site: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    made = Workplace(tmp_path)
    made.local(cores=2, guard=str(site))
    return made


def old_program(place: Workplace) -> Path:
    return programs.of_mpich(place.folder / "bin", "3.4.2")


def test_a_run_with_a_refused_program_is_not_submitted(place: Workplace, site: Path) -> None:
    program = old_program(place)
    place.test("old", f"$LAUNCH {program} -x", run={"tasks": 2})
    place.test("alone", f"{program} || true", run={"tasks": 1})
    place.test("other", "/bin/true", run={"tasks": 2})
    done = place.run("--name", "t")
    assert done.code == 1
    assert "MPICH before 4.0 hangs here. Load mpich/4.2. (rule old-mpich)" in done.said
    assert place.verdicts() == {"old": "refused", "alone": "pass", "other": "pass"}
    assert not list(place.trial("t").path.glob("runs/old/*"))
    (ended,) = (each for each in place.events("t", SubmitEnded) if each.refused)
    assert ended.reason == place.why("old")
    entries = [each for each in log_entries(site) if place.folder in Path(each.path).parents]
    assert [(each.rule, each.action, each.path) for each in entries] == [
        ("old-mpich", "refuse", str(program))
    ]
    assert place.resume("t").code == done.code


def test_the_program_of_a_build_is_judged_when_it_is_built(place: Workplace) -> None:
    program = old_program(place)
    build = {"script": f"mkdir bin; cp -r {program.parent}/lib bin; cp {program} bin/solver-3"}
    place.test(
        "built",
        '$LAUNCH "$BUILD/bin/solver-$kind" in.txt',
        build=build,
        run={"tasks": 2},
        parameters={"kind": [3]},
    )
    place.run("--name", "t")
    assert place.verdicts() == {"built{kind=3}": "refused"}


def test_without_its_guard_runs_start_and_people_are_told(place: Workplace) -> None:
    (place.folder / "site").mkdir()
    place.local(cores=2, guard=str(place.folder / "site"))
    place.test("old", f"{old_program(place)} || true", run={"tasks": 2})
    place.test("more", "true", run={"tasks": 2})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    (alert,) = place.events("t", AlertRaised)
    assert alert.kind == "guard" and "runs start without it" in alert.text


def test_a_relative_folder_is_a_fault(place: Workplace) -> None:
    place.local(guard="site")
    place.test("a")
    done = place.run("--name", "t")
    assert done.code == 2 and "guard: 'site' is no absolute path" in done.err


# ---- the programs that a script names, and what the guard says of them ----------------------

WIDE = LaunchRule(
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
        ("cd $BUILD && $LAUNCH ./one -n 3", ["one"]),
        ('cd -- "$BUILD"; cd bin\n$LAUNCH ./two-$kind; ../one', ["bin/two-3", "one"]),
        ("cd $other; ./one; cd x && ./one", []),
        ("$LAUNCH ./one; cd $BUILD; $LAUNCH one bin", []),
        ("", []),
    ],
)
def test_programs_that_a_script_names(build: Path, script: str, names: list[str]) -> None:
    variables: dict[str, Scalar] = {"BUILD": str(build), "kind": 3}
    assert named_programs(script, variables) == [f"{build}/{name}" for name in names]


def test_the_guard_is_told_the_size_of_a_launch(build: Path, tmp_path: Path) -> None:
    guard = write(tmp_path / "site", [WIDE])[0]
    program = f"{build}/a b"
    told = refusal(guard, [f"{build}/one", program], 4, 2, 3)
    assert told == f"{program}: No. (rule wide)"
    assert not refusal(guard, [program], 4, 2, 1)
    assert not refusal(guard, [], 4, 2, 3)


def test_a_guard_that_fails_is_told(build: Path, tmp_path: Path) -> None:
    with pytest.raises(GuardFailed, match="none"):
        refusal(tmp_path / "none", [f"{build}/one"], 1, 1, 1)
    with pytest.raises(GuardFailed, match="exit code 7"):
        (tmp_path / "bad").write_text("#!/bin/sh\nexit 7\n")
        (tmp_path / "bad").chmod(0o755)
        refusal(tmp_path / "bad", [f"{build}/one"], 1, 1, 1)
