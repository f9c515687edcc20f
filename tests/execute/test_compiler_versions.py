"""A changed compiler is never taken for the old one, wherever it says its version; through the
command."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from seatrial.execute.toolchains import tools_named
from seatrial.journal.events import BuildEnded
from tests.programs import Done, Workplace

ICC = """\
echo 'icc: remark #10441: The Intel(R) C++ Compiler Classic (ICC) is deprecated.' >&2
[ "$1" = --version ] && { echo "icc (ICC) $V 20231117"; echo 'Copyright (C) 1985-2023'; exit; }
exec gcc "$@"
"""
NVC = """\
[ "$1" = --version ] && {
  printf "\\nnvc $V 64-bit target on x86-64 Linux -tp znver3 \\nNVIDIA Compilers\\n"; exit; }
exec gcc "$@"
"""
XLC = """\
case $1 in
--version) echo '/bin/xlc: 1501-216 (W) command option --version is not recognized' >&2; exit 40 ;;
-qversion) printf "IBM XL C/C++ for Linux, V16.1.1\\nVersion: $V\\n" ;;
*) exit 40 ;;
esac
"""
CRAY = """\
[ "$1" = -V ] || exit 1
echo "Cray C : Version $V  $(date '+%a %b %d, %Y  %T')" >&2
"""
WRAPPER = """\
echo "[$(date +%s.%N)] site wrapper 2.1: using gcc" >&2
[ "$1" = --version ] && { echo "gcc (site) $V"; exit; }
exec gcc "$@"
"""
SILENT = "exit 1\n"


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.local(toolchains={"mine": {"cc": str(tmp_path / "mycc"), "cxx": "", "fc": ""}})
    built(place)
    return place


def built(place: Workplace, script: str = "touch tool", **keys: object) -> None:
    place.test("t", build={"script": f"{script}\necho x >> {place.folder}/compiled", **keys})


def compiler(place: Workplace, text: str, version: str) -> None:
    """A compiler whose file stays as it is when the version changes, as that of a wrapper does."""
    (place.folder / "version").write_text(version)
    file = place.folder / "mycc"
    file.write_text(f"#!/bin/bash\nV=$(cat {place.folder}/version)\n{text}")
    file.chmod(0o755)


def run(place: Workplace, tag: str) -> tuple[Done, BuildEnded, int]:
    done = place.run("--name", tag)
    assert done.code == 0, done.said
    compiled = (place.folder / "compiled").read_text().split()
    return done, place.events(tag, BuildEnded)[-1], len(compiled)


@pytest.mark.parametrize(
    ("text", "old", "new", "said"),
    [
        (ICC, "2021.10.0", "2021.11.1", "icc (ICC) {} 20231117"),
        (NVC, "24.1-0", "25.3-0", "nvc {} 64-bit target on x86-64 Linux -tp znver3"),
        (XLC, "16.01.0001.0007", "16.01.0001.0008", "IBM XL C/C++ for Linux, V16.1.1; Version: {}"),
        (CRAY, "8.7.9", "8.7.10", "Cray C : Version {}"),
        (WRAPPER, "12.2.0", "13.1.0", "gcc (site) {}"),
    ],
)
def test_a_changed_version_is_built_anew_and_told(
    place: Workplace, text: str, old: str, new: str, said: str
) -> None:
    for tag, version, builds in (("a", old, 1), ("b", old, 1), ("c", new, 2), ("d", old, 2)):
        compiler(place, text, version)
        done, ended, compiled = run(place, tag)
        assert (ended.facts or {})["cc"] == said.format(version)
        assert compiled == builds
        if tag == "c":
            told = f"the version of cc changed from {said.format(old)} to {said.format(new)}"
            assert ended.anew == told
            assert f"built anew: {told}" in " ".join(done.said.split())
    assert told in " ".join(place.seatrial("builds").out.split())
    assert told in [
        each["anew"] for each in json.loads(place.seatrial("builds", "--format", "json").out)
    ]
    compared = place.seatrial("compare", "a", "c").said
    assert said.format(old)[:40] in compared
    assert said.format(new)[:40] in compared


def test_a_version_that_cannot_be_had_is_not_known_and_never_shared(place: Workplace) -> None:
    for tag, builds in (("a", 1), ("b", 2)):
        compiler(place, SILENT, "1")
        done, ended, compiled = run(place, tag)
        assert (ended.facts or {})["cc"] == "not known"
        assert ended.made_by == ""
        assert ended.anew == "the version of cc is not known"
        assert "built anew: the version of cc is not known" in done.said
        assert compiled == builds
    assert place.resume("b").code == 0
    compared = place.seatrial("compare", "a", "b").said
    assert "cc as builds found it" in compared
    assert "not known, and may be another" in compared


def test_another_compiler_of_the_same_version_is_told(place: Workplace) -> None:
    compiler(place, WRAPPER, "12.2.0")
    run(place, "a")
    compiler(place, WRAPPER.replace("exec gcc", "exec gcc -march=native"), "12.2.0")
    _, ended, compiled = run(place, "b")
    assert compiled == 2
    assert ended.anew == "cc changed, with the same version"


def test_a_compiler_that_the_script_names_is_asked_too(place: Workplace) -> None:
    compiler(place, WRAPPER, "12.2.0")
    place.env["PATH"] = f"{place.folder}:{os.environ['PATH']}"
    built(place, "command -v nvcc > tool")
    for tag, version in (("a", "11.7"), ("b", "11.8")):
        file = place.folder / "nvcc"
        file.write_text(f"#!/bin/sh\necho 'Built on Wed_Sep_21'\necho 'Cuda, release {version}'\n")
        file.chmod(0o755)
        _, ended, compiled = run(place, tag)
        assert (ended.facts or {})["tool nvcc"] == f"Cuda, release {version}"
    assert compiled == 2
    assert ended.anew == "the version of nvcc changed from Cuda, release 11.7 to Cuda, release 11.8"


def test_what_else_is_built_anew_is_told(place: Workplace) -> None:
    compiler(place, WRAPPER, "12.2.0")
    source = place.folder / "suite" / "t" / "a.c"
    source.parent.mkdir(parents=True, exist_ok=True)
    source.write_text("int a;\n")
    built(place, sources=["a.c"])
    assert run(place, "a")[1].anew == ""
    source.write_text("int b;\n")
    assert run(place, "b")[1].anew == "sources changed: a.c"
    built(place, "touch tool2", sources=["a.c"])
    assert run(place, "c")[1].anew == "changed: the script of the build"
    place.env["FFLAGS"] = "-g"
    assert run(place, "d")[1].anew == "changed: FFLAGS"
    (entry,) = (place.trials / "d" / "builds").iterdir()
    (entry / "tool2").write_text("damaged")
    assert run(place, "e")[1].anew == f"files of {entry.resolve()} changed since it was built"
    assert place.run("--name", "f", "--rebuild").code == 0
    assert place.events("f", BuildEnded)[-1].anew == "as --rebuild asks"


def test_compilers_that_a_script_names() -> None:
    script = 'x86_64-linux-gnu-gcc-12 a.c; /opt/cuda/bin/nvcc -o "$CC" && $MPICC | g++ cc.c make'
    assert tools_named(script) == ["x86_64-linux-gnu-gcc-12", "/opt/cuda/bin/nvcc", "g++"]
