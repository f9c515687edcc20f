"""What `make dist` and `make zipapp` make, built once from this tree and installed on a host that
has a Python and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
from tools.zipapp_main import closed_to_others

from seatrial import __version__
from tests.waiting import LONG_S

ROOT = Path(__file__).parents[1]
BARE = {"PATH": "/usr/bin:/bin", "LC_ALL": "C.UTF-8"}


def call(*words: object, at: Path, env: dict[str, str] | None = None) -> str:
    """The output of a command, which must succeed."""
    done = subprocess.run(
        [str(word) for word in words],
        cwd=at,
        env=env,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=8 * LONG_S,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    hatchling = [sys.executable, "-m", "hatchling", "build", "-d", folder]
    call(*hatchling, "-t", "sdist", at=ROOT)
    (sdist,) = folder.glob("seatrial-*.tar.gz")
    call("tar", "xf", sdist, at=folder)
    call(*hatchling, "-t", "wheel", at=folder / f"seatrial-{__version__}")
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def zipapp(wheel: Path) -> Path:
    call(sys.executable, ROOT / "tools/zipapp.py", wheel, at=wheel.parent)
    (made,) = wheel.parent.glob("*.pyz")
    return made


def test_the_wheel_has_every_file_of_the_source_and_the_suites(wheel: Path) -> None:
    places = {"src/seatrial": "seatrial", "suites": "seatrial/model/shipped"}
    wanted = {
        f"{place}/{path.relative_to(ROOT / folder)}"
        for folder, place in places.items()
        for path in (ROOT / folder).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    with zipfile.ZipFile(wheel) as packed:
        names = set(packed.namelist())
    assert not wanted - names
    assert wheel.name == f"seatrial-{__version__}-py3-none-any.whl"


def test_the_zipapp_installs_what_runs_the_probes(zipapp: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(zipapp) as packed:
        assert not [name for name in packed.namelist() if "/tests/" in name]
    python = Path(sys.base_prefix) / "bin" / f"python3.{sys.version_info.minor}"
    env = BARE | {"HOME": str(tmp_path)}
    told = call(python, "-I", zipapp, "installed", at=tmp_path, env=env)
    command = tmp_path / "installed/bin/seatrial"
    assert f"{command} is installed" in told
    link = tmp_path / "seatrial"
    link.symlink_to(command)
    of_others = {"PYTHONHOME": "/nowhere", "PYTHONPATH": str(ROOT / "tests")}
    told = call(link, "run", "--help", at=tmp_path, env=env | of_others)
    assert told.startswith("Usage: seatrial run ")
    call(link, "probes", at=tmp_path, env=env)
    chosen = ["-k", "stream and threads=1 and touch=all", "--set", "elements=100000", "--name", "t"]
    ran = call(link, "run", "probes", *chosen, at=tmp_path, env=env)
    assert "1 passed" in ran
    assert (tmp_path / "installed/share/man/man1/seatrial-accept-status.1").exists()
    packages = "sys, numpy, re2, scipy.stats, seatrial"
    loaded = f"import {packages}; print(*sys.path, seatrial.__file__, sep='\\n')"
    paths = call(command.with_name("python"), "-c", loaded, at=tmp_path, env=env)
    assert str(ROOT) not in paths
    assert os.path.dirname(sys.executable) not in paths  # noqa: PTH120 - of the link itself


def test_the_zipapp_finds_what_is_private_on_the_way_to_a_program(tmp_path: Path) -> None:
    assert closed_to_others(Path("/usr/bin/env")) is None
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    program = home / "python"
    program.touch(mode=0o755)
    tmp_path.chmod(0o755)
    above = closed_to_others(tmp_path)  # pytest's own folders may be private
    assert closed_to_others(program) == (above or home)


def test_the_zipapp_says_what_it_cannot_do(zipapp: Path, tmp_path: Path) -> None:
    def refused(archive: Path, *words: str) -> str:
        done = subprocess.run(
            [sys.executable, archive, *words], cwd=tmp_path, text=True, capture_output=True
        )
        assert done.returncode == 2
        assert "Traceback" not in done.stderr
        return done.stderr

    other = tmp_path / "seatrial-1.0-cp39-sparc.pyz"
    other.symlink_to(zipapp)
    assert "on this machine (cp3" in refused(other, "new")
    (tmp_path / "there").mkdir()
    (tmp_path / "there/file").write_text("mine")
    assert "there: is there already" in refused(zipapp, "there")
    assert "FOLDER" in refused(zipapp)
    assert not (tmp_path / "new").exists()
