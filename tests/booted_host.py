"""A host that boots: an init of Debian as the first process of namespaces of its own.

    with BootedHost(tmp_path / "host", systemd_host(), writable=[place.folder]) as host:
        host.run("loginctl", "enable-linger", "root")
        host.as_user("systemctl", "--user", "daemon-reload")
        host.reboot()

Of this host it has /usr and /etc, read-only, this project with its interpreter, read-only, and the
folders that are given: it cannot harm what runs beside it. ``booted_host.sh`` refuses to start
anything otherwise. Of systemd it has the manager, dbus and logind, and no other unit of Debian's:
those would set up a machine. Needs root.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import NamedTuple, Self

from tests.waiting import until

ROOT = Path(__file__).parents[1]
SYSTEMD = Path("/lib/systemd/systemd")
UNITS = Path("/lib/systemd/system")
HOME, RUNTIME = "/root", "/run/user/0"
_SHIPPED = (
    "dbus.socket",
    "dbus.service",
    "systemd-logind.service",
    "user@.service",
    "user-runtime-dir@.service",
    "user.slice",
)
_EMPTY = ("sysinit", "basic", "shutdown", "umount", "multi-user")


class Init(NamedTuple):
    """The first process of a host, and the files (by their paths there) that it reads."""

    line: Sequence[str]
    files: Mapping[str, str]


def systemd_host() -> Init:
    """Return systemd as Debian has it, with dbus and logind alone."""
    units = {f"{name}.target": "[Unit]\nDefaultDependencies=no\n" for name in _EMPTY}
    units |= {name: (UNITS / name).read_text() for name in _SHIPPED}
    wanted = "dbus.socket systemd-logind.service"
    units["default.target"] = f"[Unit]\nWants={wanted}\nAfter={wanted}\n"
    line = ["container=seatrial", "SYSTEMD_UNIT_PATH=/etc/systemd/system", str(SYSTEMD), "--system"]
    return Init(
        [*line, "--log-target=console", "--show-status=no"],
        {f"/etc/systemd/system/{name}": text for name, text in units.items()},
    )


@cache
def unavailable(*programs: str) -> str:
    """Return why no host can boot here, "" if one can."""
    if os.geteuid() != 0:
        return "a host that boots needs root"
    if absent := [name for name in programs if shutil.which(name) is None]:
        return f"{', '.join(absent)} not found (run tests/install-packages.sh as root)"
    if _control_groups() is None:
        return "no cgroup2 is mounted"
    done = subprocess.run([*_UNSHARE, "true"], capture_output=True, text=True)
    return "" if done.returncode == 0 else f"no namespaces: {done.stderr.strip()}"


_UNSHARE = ("unshare", "--pid", "--fork", "--kill-child", "--mount", "--uts", "--ipc", "--net")


def _control_groups() -> Path | None:
    """Return where this host's control groups are."""
    mounts = (line.split() for line in Path("/proc/self/mounts").read_text().splitlines())
    return next((Path(place) for _, place, kind, *_ in mounts if kind == "cgroup2"), None)


class BootedHost:
    """A host, from its boot to the end of its block. Files below /var/lib and in ``folder`` stay
    over a reboot; ``writable`` folders are at the same path there, ``also`` at another one."""

    def __init__(
        self,
        folder: Path,
        init: Init,
        writable: Sequence[Path] = (),
        also: Mapping[str, Path] = {},
    ) -> None:
        self._folder = folder
        self._init = init
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self._log = folder / "console"
        self._group: Path | None = None
        self._process: subprocess.Popen[bytes] | None = None
        self._binds = [("rw", str(self.home), HOME)]
        for place in (ROOT, Path(sys.prefix), Path(sys.base_prefix)):
            self._binds.append(("ro", str(place), str(place)))
        self._binds += [("rw", str(each), str(each)) for each in writable]
        self._binds += [("rw", str(source), target) for target, source in also.items()]

    def __enter__(self) -> Self:
        files = self._folder / "files"
        kept = self._folder / "kept"  # /var/lib
        for place in (files, kept):
            place.mkdir(parents=True)
        self._binds.append(("rw", str(kept), "/var/lib"))
        folders = dict.fromkeys(str(Path(name).parent) for name in self._init.files)
        for number, folder in enumerate(folders):
            source = files / str(number)
            source.mkdir()
            for name, text in self._init.files.items():
                if str(Path(name).parent) == folder:
                    (source / Path(name).name).write_text(text)
                    (source / Path(name).name).chmod(0o600)
            self._binds.append(("rw", str(source), folder))
        lines = (" ".join(bind) + "\n" for bind in self._binds)
        (self._folder / "binds").write_text("".join(lines))
        self._boot()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def reboot(self) -> None:
        """End each of its processes, as a power cut does, and boot it anew."""
        self._stop()
        self._boot()

    def _boot(self) -> None:
        above = _control_groups()
        assert above is not None
        self._group = above / f"seatrial-{os.getpid()}-{self._folder.parent.name}"
        self._group.mkdir(exist_ok=True)
        enter = 'echo 0 >"$1/cgroup.procs" && shift && exec "$@"'
        line = ["setpriv", "--pdeathsig", "KILL", *_UNSHARE, "--cgroup"]
        line += ["sh", str(ROOT / "tests/booted_host.sh"), str(self._folder), *self._init.line]
        with self._log.open("ab") as log:
            self._process = subprocess.Popen(
                ["sh", "-c", enter, "sh", str(self._group), *line],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _stop(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
        group = self._group
        if group is not None:
            until(lambda: _removed(group), "the end of all its processes")

    @property
    def said(self) -> str:
        """What was written to its console."""
        return self._log.read_text(errors="replace")

    def pid(self) -> int:
        """Return its first process, as this host counts."""
        assert self._process is not None
        pid = self._process.pid
        assert self._process.poll() is None, self.said
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
        return int(children[0]) if children else 0

    def run(self, *words: str, **environment: str) -> subprocess.CompletedProcess[str]:
        """Run a command there, as root, once the host is there."""
        until(lambda: self.pid() > 0, "its first process", said=lambda: self.said)
        variables = [f"{name}={value}" for name, value in environment.items()]
        path = "PATH=/usr/sbin:/usr/bin:/sbin:/bin"
        enter = ["nsenter", f"--target={self.pid()}", "--all"]
        line = [*enter, "env", "-i", path, f"HOME={HOME}", *variables, *words]
        return subprocess.run(line, capture_output=True, text=True, timeout=60)

    def as_user(self, *words: str) -> subprocess.CompletedProcess[str]:
        """Run a command there as a login of its user has it."""
        return self.run(*words, XDG_RUNTIME_DIR=RUNTIME)


def _removed(group: Path) -> bool:
    """Remove a control group and those below it; return False while one has processes."""
    with contextlib.suppress(OSError):
        for place in sorted(group.rglob("*/"), reverse=True):
            place.rmdir()
        group.rmdir()
    return not group.exists()
