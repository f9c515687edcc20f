"""C programs of ours, compiled on this host by its C compiler.

program = kept("guard", source + header, lambda path: compile_to(path, SOURCE, "the guard"))
"""

import os
import shutil
import subprocess
from collections.abc import Callable, Sequence
from hashlib import sha256
from pathlib import Path

from seatrial.account import home
from seatrial.errors import SeatrialError, UsageError

FLAGS = ("-std=c11", "-O2", "-Wall", "-Wextra", "-pthread")
COMPILER_S = 60.0


def compile_to(target: Path, source: Path, title: str, include: Sequence[Path] = ()) -> None:
    """Compile a program of one file, with headers of these folders. It is static where there is a
    static libc. ``title`` is what messages call it. Raises UsageError without a compiler."""
    compiler = os.environ.get("CC") or shutil.which("cc") or shutil.which("gcc")
    if not compiler:
        raise UsageError(f"no C compiler (cc, gcc) is in PATH; {title} is a C program: load one")
    folders = [f"-I{folder}" for folder in include]
    line = [*compiler.split(), *FLAGS, *folders, "-o", str(target), str(source)]
    done = _run([*line, "-static"])
    if done.returncode:
        done = _run(line)
    if done.returncode:
        text = done.stderr.decode(errors="replace")[-2000:]
        raise SeatrialError(f"{compiler} cannot compile {title}:\n{text}")


def _run(line: Sequence[str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return subprocess.run(line, capture_output=True, timeout=COMPILER_S, check=False)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise UsageError(f"{line[0]} cannot be run: {error}; set CC to a C compiler") from error


def kept(name: str, made_from: bytes, compile_it: Callable[[Path], None]) -> Path:
    """Return a program in the user's cache. It is compiled there once for all that it is made
    from."""
    base = os.environ.get("XDG_CACHE_HOME") or home() / ".cache"
    key = sha256(made_from + os.uname().machine.encode()).hexdigest()
    program = Path(base) / "seatrial" / f"{name}-{key[:16]}"
    if not program.exists():
        program.parent.mkdir(parents=True, exist_ok=True)  # plain: the user's own cache
        fresh = program.with_name(f"{program.name}.{os.getpid()}")
        compile_it(fresh)
        fresh.replace(program)
    return program


def kept_or_reason(name: str, source: Path, title: str) -> tuple[Path | None, str]:
    """Return a program of one file as ``kept`` does; None, and why, where it cannot be had."""
    try:
        made_from = source.read_bytes()  # plain: a file of Seatrial's
        return kept(name, made_from, lambda path: compile_to(path, source, title)), ""
    except (SeatrialError, OSError) as error:
        return None, str(error)
