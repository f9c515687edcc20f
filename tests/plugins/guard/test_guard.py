"""``seatrial guard`` on real programs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.plugins.guard import programs_to_judge as programs
from tests.programs import Workplace

GUARD = """\
rules:
- name: old-mpich
  refuse: mpi == "mpich" and mpi_version < "4.0"
  message: MPICH before 4.0 hangs here. Load mpich/4.2.
- name: ga
  refuse: '"libga.so.3" in needed'
  message: GA 4.1 is needed.
- name: level
  warn: isa_level > 2
  message: The login nodes are older.
"""


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where the first command keeps the guard that it compiles."""
    return tmp_path_factory.mktemp("cache")


@pytest.fixture
def place(tmp_path: Path, cache: Path, monkeypatch: pytest.MonkeyPatch) -> Workplace:
    monkeypatch.setenv("XDG_CACHE_HOME", str(cache))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    return Workplace(tmp_path)


def test_check_tells_what_a_program_is_made_for_and_judges(place: Workplace) -> None:
    path = programs.of_mpich(place.folder / "bin")
    done = place.seatrial("guard", "check", str(path))
    assert done.code == 0
    for line in (
        "kind: elf",
        "needed: libmpi.so.12 libc.so.6",
        "mpi: mpich",
        "mpi_version: 3.4.2",
        "rpath: $ORIGIN/lib",
    ):
        assert f"  {line}\n" in done.out
    (place.folder / "guard.yaml").write_text(GUARD)
    done = place.seatrial("guard", "check", str(path), "/bin/true")
    assert done.code == 1
    assert "refused: MPICH before 4.0 hangs here. Load mpich/4.2. (rule old-mpich)" in done.out
    found = json.loads(place.seatrial("guard", "check", str(path), "/bin/true", "--json").out)
    assert [each["refused"] for each in found] == [["old-mpich"], []]


def test_scan_lists_programs_of_mpi_and_those_that_break_rules(place: Workplace) -> None:
    folder = place.folder / "bin"
    programs.of_mpich(folder)
    programs.compiled(folder, "v3", programs.PLAIN, "-Wl,-z,x86-64-v3")
    programs.compiled(folder, "plain", programs.PLAIN)
    (folder / "notes").write_text("text")
    (place.folder / "site.yaml").write_text(GUARD)
    done = place.seatrial("guard", "scan", str(folder), "--rules", "site.yaml", "--jobs", "1")
    assert done.code == 1
    rows = {line.split()[0]: line for line in done.out.splitlines() if line.startswith("/")}
    assert {Path(name).name for name in rows} == {"hello.mpich", "libmpi.so.12", "v3"}
    assert rows[f"{folder}/hello.mpich"].endswith("refused: old-mpich")
    assert rows[f"{folder}/v3"].endswith("level")
    assert "5 files, 4 of them ELF; 3 use MPI or break a rule" in done.out


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["check", "none"], "none: cannot be read; name a regular file"),
        (["scan", "none"], "none: is no folder; name one"),
        (["check", "/bin/true", "--rules", "none.yaml"], "none.yaml"),
    ],
)
def test_what_is_not_there_is_told(place: Workplace, words: list[str], said: str) -> None:
    done = place.seatrial("guard", *words)
    assert done.code == 2
    assert said in done.err
    assert "Traceback" not in done.err
