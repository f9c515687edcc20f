from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import msgspec
import pytest

from seatrial.execute.environment import inherited
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
