"""What a site installs, so that each launch is judged: the guard, and what asks it.

write(Path("/opt/site/guard"), rules)           # guard, cli_filter.lua, bin/srun, bin/mpirun, ...
list(log_entries(Path("/opt/site/guard")))      # what was refused, and what was warned of
"""

import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.errors import UsageError
from seatrial.escaping import lua_text, shell_word
from seatrial.files import read_start
from seatrial.plugins.guard.launch_rules import LaunchRule, rules_header
from seatrial.plugins.guard.program import compile_to

LAUNCHERS = ("srun", "mpirun", "mpiexec")
LOG = "log"
MAX_LOG = 4 << 20  # bytes that are read of the log of each user
_HERE = Path(__file__).parent


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
