"""Programs for the tests of the guard, compiled here, each once: each is a few lines of C."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

MAIN = "int MPI_Init(void *, void *); int main(void) { return MPI_Init(0, 0); }"
PLAIN = "int main(void) { return 0; }"
# As a library of MPICH has them: the text with %s, and the version by itself.
LIBRARY = """\
const char *const text = "MPICH Version:      %s";
const char version[] = "{version}";
int MPI_Init(void *count, void *words) {{ return !count == !words ? 0 : text[0] + version[0]; }}
"""
STATIC = """\
int MPI_Init(void *count, void *words) { return count == words; }
const char *volatile text = "MPI VERSION    : CRAY MPICH version 8.1.25.17 (ANL base 3.4a2)";
int main(void) { return text == 0 || !MPI_Init(0, 0); }
"""


def compiled(folder: Path, name: str, source: str, *options: str) -> Path:
    """Compile C to ``folder/name`` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    program = folder / name
    program.unlink(missing_ok=True)
    program.write_bytes(_built(source, options))
    program.chmod(0o755)
    return program


@cache
def _built(source: str, options: tuple[str, ...]) -> bytes:
    with TemporaryDirectory() as folder:
        (Path(folder) / "program.c").write_text(source)
        line = ["gcc", "-o", "program", "program.c", *options]
        subprocess.run(line, cwd=folder, check=True, capture_output=True)
        return (Path(folder) / "program").read_bytes()


def mpich_library(folder: Path, version: str) -> Path:
    """Compile a library with the name and the texts of MPICH's."""
    source = LIBRARY.format(version=version)
    options = ("-shared", "-fPIC", "-Wl,-soname,libmpi.so.12")
    return compiled(folder, "libmpi.so.12", source, *options)


def of_mpich(folder: Path, version: str = "3.4.2") -> Path:
    """Compile a program that loads such a library, from ``folder/lib``."""
    mpich_library(folder / "lib", version)
    program = folder / "hello.mpich"
    program.write_bytes(_hello())
    program.chmod(0o755)
    return program


@cache
def _hello() -> bytes:
    with TemporaryDirectory() as folder:
        library = mpich_library(Path(folder), "3.4.2")
        rpath = "-Wl,-rpath,$ORIGIN/lib"
        return compiled(Path(folder), "hello", MAIN, str(library), rpath).read_bytes()


def of_cray_static(folder: Path) -> Path:
    """Compile a static program that holds the version text of Cray's MPICH."""
    return compiled(folder, "hello.static", STATIC, "-static")
