"""The guard: a C program that reads what programs are made for and judges them by launch rules.

    program = compiled(rules_header([], ""))      # once for each set of rules; kept in a cache
    for facts in scan(program, [Path("a.out")]):
        facts.values["mpi"], facts.refused
    write(Path("/opt/site/guard"), rules)         # guard, cli_filter.lua, bin/srun, bin/mpirun, ...
    list(log_entries(Path("/opt/site/guard")))    # what was refused, and what was warned of

``guard.c`` is the one reader of ELF files: what ``seatrial guard check`` says is what a launch will
be told. Python would need a second reader (such as pyelftools), which could say otherwise, and
which is slower. A site installs it together with what asks it at each launch.
"""

import os
import stat
import subprocess
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from concurrent import futures
from itertools import islice
from pathlib import Path

from msgspec import Struct

from seatrial.errors import SeatrialError, UsageError
from seatrial.escaping import lua_text, shell_word
from seatrial.execute import c_programs
from seatrial.files import read_start
from seatrial.plugins.guard.launch_rules import LaunchRule, rules_header

_HERE = Path(__file__).parent
SOURCE = _HERE / "guard.c"
LAUNCH_LINE = SOURCE.with_name("launch_line.h")  # a part of it
BATCH = 500  # files that one process reads


class ProgramFacts(Struct, frozen=True):
    """What one file is made for, and the names of the rules that refuse it or warn of it.
    ``values``: the facts that it has, as text; ``launch_rules.py`` lists them."""

    path: str
    values: dict[str, str]
    refused: list[str] = []
    warned: list[str] = []


def compile_to(target: Path, header: str) -> None:
    """Compile the guard with a header of rules. Raises UsageError without a compiler."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "rules.h").write_text(header)
        c_programs.compile_to(target, SOURCE, "the guard", [Path(folder)])


def compiled(header: str) -> Path:
    """Return the guard with a header of rules. It is compiled once and kept in the user's cache."""
    source = SOURCE.read_bytes() + LAUNCH_LINE.read_bytes()
    return c_programs.kept("guard", source + header.encode(), lambda path: compile_to(path, header))


def scan(program: Path, paths: Iterable[str], jobs: int = 1) -> Iterator[ProgramFacts]:
    """Yield the facts of files, in their order. ``jobs``: processes at a time."""
    with futures.ThreadPoolExecutor(jobs) as threads:
        for programs in threads.map(lambda part: _scan_some(program, part), _parts(paths)):
            yield from programs


def _parts(paths: Iterable[str]) -> Iterator[list[str]]:
    rest = iter(paths)
    while part := list(islice(rest, BATCH)):
        yield part


def _scan_some(program: Path, paths: Sequence[str]) -> list[ProgramFacts]:
    names = b"".join(os.fsencode(path) + b"\0" for path in paths)
    done = subprocess.run([program, "scan"], input=names, capture_output=True, check=False)
    facts = [_parsed(record) for record in done.stdout.split(b"\0\0")[:-1]]
    if done.returncode or len(facts) != len(paths):
        last = paths[min(len(facts), len(paths) - 1)]
        raise SeatrialError(
            f"{last}: the guard ended with {done.returncode} here: please report it"
        )
    return facts


def _parsed(record: bytes) -> ProgramFacts:
    path, *fields = (os.fsdecode(field) for field in record.split(b"\0"))
    values: dict[str, str] = {}
    findings: dict[str, list[str]] = {"refuse": [], "warn": []}
    for field in fields:
        name, _, value = field.partition("=")
        if name in findings:
            findings[name].append(value)
        else:
            values[name] = value
    return ProgramFacts(path, values, findings["refuse"], findings["warn"])


def files_below(folder: Path) -> Iterator[str]:
    """Yield the regular files below a folder; links are not followed. Raises UsageError."""
    if not folder.is_dir():
        raise UsageError(f"{folder}: is no folder; name one")
    for place, folders, names in os.walk(folder):
        folders.sort()
        for name in sorted(names):
            path = os.path.join(place, name)  # noqa: PTH118 (a Path a file takes longer)
            if not os.path.islink(path):  # noqa: PTH114
                yield path


# ---- files of a site -----------------------------------------------------------------------------


LAUNCHERS = ("srun", "mpirun", "mpiexec")
LOG = "log"
MAX_LOG = 4 << 20  # bytes that are read of the log of each user


class LogEntry(Struct, frozen=True):
    """A finding about a launch."""

    #: UTC, ISO 8601.
    time: str
    user: str
    host: str
    job: str
    #: `launch` (by what asks before) or `watch` (a process of the job).
    look: str
    #: `refuse`, `warn`, or `unjudged` where no program was found.
    action: str
    #: Empty where no program was found.
    rule: str
    path: str


def write(folder: Path, rules: Sequence[LaunchRule]) -> list[Path]:
    """Write the files of a site and return them. What is there is replaced, each file at once; the
    log stays. Raises UsageError."""
    folder = folder.resolve()
    guard = folder / "guard"
    try:
        (folder / "bin").mkdir(parents=True, exist_ok=True)
        if not (folder / LOG).exists():
            (folder / LOG).mkdir()
            (folder / LOG).chmod(0o1777)  # as /tmp: each user has a file of its own
        fresh = guard.with_name("guard.new")
        compile_to(fresh, rules_header(rules, str(folder / LOG)))
        fresh.replace(guard)
        texts = {"cli_filter.lua": lua_text(str(guard)), "task_prolog.sh": shell_word(str(guard))}
        launcher = shell_word(str(guard))
        written = [
            guard,
            *(_from_template(folder / name, name, path) for name, path in texts.items()),
            *(_from_template(folder / "bin" / n, "launcher.sh", launcher) for n in LAUNCHERS),
        ]
    except OSError as error:
        raise UsageError(
            f"{folder}: cannot be written: {error.strerror}; name a folder that you can write"
        ) from error
    return written


def _from_template(target: Path, template: str, guard: str) -> Path:
    fresh = target.with_name(f"{target.name}.new")
    fresh.write_text((_HERE / template).read_text().replace("@GUARD@", guard))
    fresh.chmod(0o644 if template.endswith(".lua") else 0o755)
    return fresh.replace(target)


def log_entries(folder: Path) -> Iterator[LogEntry]:
    """Yield what the logs of all users hold, a user after the other. Lines that are damaged are
    left out. Raises UsageError."""
    if not (folder / LOG).is_dir():
        raise UsageError(f"{folder}: has no log; name a folder that `seatrial guard write` wrote")
    for path in sorted((folder / LOG).glob("*.log")):
        try:
            if not _is_of_its_user(path):
                continue
            data = read_start(path, MAX_LOG, follow=False).data
        except OSError:
            continue
        for line in data.decode(errors="replace").splitlines():
            fields = line.split("\t")
            if len(fields) == 8 and fields[5] in ("refuse", "warn", "unjudged"):
                yield LogEntry(*fields)


def strange_logs(folder: Path) -> list[str]:
    """Return the names of logs that are no regular file of the user whose number they have:
    somebody else made them. Nothing in them is shown."""
    logs = sorted((folder / LOG).glob("*.log"))
    return [path.name for path in logs if not _is_of_its_user(path)]


def _is_of_its_user(path: Path) -> bool:
    try:
        about = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(about.st_mode) and path.stem == str(about.st_uid) and about.st_nlink == 1
