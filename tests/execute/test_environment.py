from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from seatrial.execute.environment import environment_lines, inherited
from seatrial.model.machine import Machine, NodeGroup, Toolchain
from tests.programs import Workplace


@pytest.fixture
def own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The programs of the virtual environment that Seatrial is in, first on PATH."""
    folder = tmp_path / "venv" / "bin"
    folder.mkdir(parents=True)
    for name in ("mpicc", "python3", "gcc"):
        (folder / name).touch(mode=0o755)
    monkeypatch.setattr(sys, "prefix", str(folder.parent))
    monkeypatch.setenv("VIRTUAL_ENV", str(folder.parent))
    monkeypatch.setenv("VIRTUAL_ENV_PROMPT", "(venv) ")
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    return folder


def a_machine(**toolchain: str) -> Machine:
    nodes = [NodeGroup(names="here", cores=1)]
    chain = msgspec.convert(toolchain, Toolchain)
    return Machine(machine="here", nodes=nodes, toolchains={"x": chain})


@pytest.mark.parametrize(
    "toolchain",
    [{}, {"cc": "gcc"}, {"mpicc": "/opt/mpi/bin/mpicc"}, {"mpicc": "mpicc.none"}],
    ids=str,
)
def test_jobs_get_nothing_of_the_environment_of_seatrial(
    own: Path, toolchain: dict[str, str]
) -> None:
    environment = inherited(a_machine(**toolchain))
    assert environment["PATH"] == "/usr/bin:/bin"
    assert "VIRTUAL_ENV" not in environment
    assert environment.keys() == os.environ.keys() - {"VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT"}


def test_an_mpi_that_is_there_alone_stays_behind_the_programs_of_the_host(own: Path) -> None:
    (own / "mpicc.here").touch(mode=0o755)
    (own / "sh").touch(mode=0o755)
    environment = inherited(a_machine(mpicc="mpicc.here"))
    assert shutil.which("mpicc.here", path=environment["PATH"]) == str(own / "mpicc.here")
    assert shutil.which("sh", path=environment["PATH"]) != str(own / "sh")
    assert not {"VIRTUAL_ENV", "VIRTUAL_ENV_PROMPT"} & environment.keys()


def test_another_virtual_environment_of_the_user_stays(
    own: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VIRTUAL_ENV", "/home/ada/venv")
    monkeypatch.setenv("VIRTUAL_ENV_PROMPT", "(ada) ")
    monkeypatch.setenv("PATH", f"/home/ada/venv/bin:{own}:/usr/bin")
    environment = inherited(a_machine())
    assert environment["PATH"] == "/home/ada/venv/bin:/usr/bin"
    assert environment["VIRTUAL_ENV"] == "/home/ada/venv"
    assert environment["VIRTUAL_ENV_PROMPT"] == "(ada) "


def test_builds_and_runs_do_not_see_it(place: Workplace) -> None:
    own = str(Path(sys.prefix) / "bin")
    place.env["PATH"] = f"{own}:{os.environ['PATH']}"
    look = 'case ":$PATH:" in *":' + own + ':"*) exit 7;; esac'
    place.test("t", look, build={"script": look})
    done = place.run("--name", "t")
    assert done.code == 0, done.said


def test_functions_that_a_user_exported_as_builtins_reach_no_job(
    place: Workplace, monkeypatch: pytest.MonkeyPatch
) -> None:
    place.env |= {
        "BASH_FUNC_cd%%": "() {  echo elsewhere; exit 3; }",
        "BASH_FUNC_printf%%": "() {  return 1; }",
        "BASH_FUNC_mine%%": "() {  echo mine; }",
    }
    script = "mine; cd / && pwd"
    place.test("a", script, build={"script": "cd . && mine > built"}, verify=[{"contains": "mine"}])
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert (place.run_folder("a") / "stdout").read_text().split() == ["mine", "/"]


# ---- values that refer to variables -------------------------------------------------------


def test_variables_are_replaced_in_builds_and_runs_alike(place: Workplace) -> None:
    """PATH of machine, toolchain, the test's flags and the test grows in this order."""
    say = 'echo "$PATH|$LIBS|$PRICE|$HERE|$CHAIN"'
    place.env |= {"PATH": "/usr/bin:/bin", "UP": "up"}
    place.env.pop("NONE_SUCH", None)
    chain = {"environment": {"PATH": "/chain:$PATH", "CHAIN": "$MACHINE-$UP"}}
    place.local(
        setup="set -u",
        environment={"PATH": "/site:$PATH", "LIBS": "/lib/a:$NONE_SUCH"},
        toolchains={"c": chain},
    )
    place.test(
        "t",
        f'{say}; cat "$BUILD/said"',
        build={"script": f"{say} > said"},
        toolchains={"c": {"reason": "x", "environment": {"PATH": "/flags:${PATH}"}}},
        environment={"PATH": "$PATH:/own dir", "PRICE": "5$$ and 6$", "HERE": "${UP}stairs"},
    )
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    said = "/flags:/chain:/site:/usr/bin:/bin:/own dir|/lib/a|5$ and 6$|upstairs|here-up\n"
    assert (place.run_folder("t") / "stdout").read_text() == said * 2


VALUES = {"A": "a b", "B": "$A", "C": "", "D": None}  # D is not set
PIECES = ("${A}", "${B}", "${C}", "${D}", "$$", ":", "x", " ", "'", '"', "\\", "`", "\n", "$ ", "é")


@settings(max_examples=60, deadline=None)
@given(st.lists(st.sampled_from(PIECES), max_size=8))
def test_what_a_value_becomes(pieces: list[str]) -> None:
    text = "".join(pieces)
    expected = "".join(
        (VALUES[each.strip("${}")] or "")
        if each.strip("${}") in VALUES
        else each.replace("$$", "$")
        for each in pieces
    )
    env = {name: value for name, value in VALUES.items() if value is not None}
    script = f'set -eu\n{environment_lines({"X": text})}printf %s "$X"'
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, check=True)
    if not any(f":{each}" in text or f"{each}:" in text for each in ("${C}", "${D}")):
        assert done.stdout.decode() == expected
    else:  # a list: what is empty may have lost its colon
        assert done.stdout.decode().replace(":", "") == expected.replace(":", "")


@pytest.mark.parametrize(
    ("value", "becomes"),
    [
        *(("/a:$D", "/a"), ("$D:/a", "/a"), ("/a:$D:/b", "/a:/b"), ("/a:${C}", "/a")),
        *(("/a:$A", "/a:a b"), ("$A:/a", "a b:/a"), ("h:$D.x", "h:.x"), ("$D", ""), ("$$D", "$D")),
        *(("$A:$D", "a b"), ("$D:$A", "a b"), ("$A:${A}", "a b:a b"), ("$D:$C", "")),
        *(("$D:$A:/b", "a b:/b"), ("$A:$D:/b", "a b:/b"), ("$A:$D:$A", "a b:a b")),
    ],
)
def test_a_part_of_a_list_that_is_not_set_goes_with_its_colon(value: str, becomes: str) -> None:
    script = f'{environment_lines({"X": value})}printf %s "$X"'
    env = {"A": "a b", "C": ""}
    done = subprocess.run(["bash", "-c", script], env=env, capture_output=True, check=True)
    assert done.stdout.decode() == becomes


def test_what_is_not_replaced_is_a_fault(place: Workplace) -> None:
    other = (
        "is not replaced, only $NAME and ${NAME} are; export it in `setup` of the machine, or in"
    )
    place.test("t", parameters={"n": [1]}, environment={"A": "$(id)", "B": "/x/$n", "C": "$n"})
    done = place.run()
    assert done.code == 2
    assert f"test.yaml:3: environment.A: $(id) {other} the script; $$ is a dollar sign" in done.err
    assert (
        "environment.B: '/x/$n': n is a parameter, which builds do not have; export it" in done.err
    )
    assert "environment.C: '$n' is only text; for the parameter write {parameter: n}" in done.err
    place.test("t")
    place.local(
        environment={"A": "${A:-b}"},
        toolchains={"c": {"environment": {"B": "${1}"}}},
        pages={"thp": {"environment": {"C": "${"}}},
    )
    done = place.run()
    for fault in (
        "environment.A: ${A:-b}",
        "toolchains.c.environment.B: ${1}",
        "environment.C: ${",
    ):
        assert f"{fault} is not replaced" in done.err


def test_compilers_and_flags_refer_to_variables_of_modules_too(place: Workplace) -> None:
    say = 'echo "$CFLAGS|$LDFLAGS|$CC"'
    place.env |= {"ORIGIN": "of a user", "TOP": "/top"}
    place.local(
        setup="set -u; module() { export HDF5_DIR='/opt/h d f'; }",
        modules=["hdf5"],
        environment={"LIBS": "$TOP/lib"},
        toolchains={
            "c": {
                "cc": "${TOP}/bin/cc",
                "cflags": "-O2 -I$HDF5_DIR/include -I${NO_SUCH}/x",
                "ldflags": "-L$LIBS -Wl,-rpath,'$ORIGIN/lib' $$H",
            }
        },
    )
    place.test("t", f'{say}; cat "$BUILD/said"', build={"script": f"{say} > said"})
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    flags = "-O2 -I/opt/h d f/include -I${NO_SUCH}/x|-L/top/lib -Wl,-rpath,'$ORIGIN/lib' $$H"
    assert (place.run_folder("t") / "stdout").read_text() == f"{flags}|/top/bin/cc\n" * 2
    own = {"CFLAGS": "$CFLAGS -g", "LDFLAGS": "-s"}  # of the test: it replaces the toolchain's
    place.test("t", say, environment=own, toolchains=["c"])
    assert place.run("--name", "u").code == 0
    told = "-O2 -I/opt/h d f/include -I${NO_SUCH}/x -g|-s|/top/bin/cc\n"
    assert (place.run_folder("t", "u") / "stdout").read_text() == told


def test_a_launcher_line_has_no_variables(place: Workplace) -> None:
    place.test("t")
    launcher = {"kind": "mpirun", "command": "$MPI/bin/mpirun"}
    place.local(launcher=launcher, toolchains={"c": {"launcher": {**launcher, "command": "m"}}})
    done = place.run()
    assert "launcher.command: $MPI is not replaced in $LAUNCH; write what it is, or" in done.err
    options = {"kind": "mpirun", "options": ["--prefix", "${MPI}"]}
    place.local(toolchains={"c": {"launcher": options}})
    assert "toolchains.c.launcher.options: $MPI is not replaced in $LAUNCH" in place.run().err
