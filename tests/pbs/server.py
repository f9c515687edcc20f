"""A real OpenPBS of eight nodes, for tests. Its programs are where the variable PBS_EXEC says, or
in /opt/pbs; ``server.sh`` starts it.

with PbsServer(folder) as server:           # its jobs see what is below the folder, and /work
    server.run("qsub", "--", "/bin/true")

The server has network, mount and process namespaces of its own. ``server.env`` has a PATH with the
commands of PBS, each of which enters these namespaces: the harness itself stays outside.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.waiting import until

ROOT = Path(__file__).resolve().parents[2]
START = Path(__file__).with_name("server.sh")
PROGRAMS = ("qsub", "qstat", "qselect", "qdel", "qrerun", "qmgr", "qterm", "pbsnodes")
NODES = [f"n00{i}" for i in range(1, 9)]
CORES = 4

# PBS keeps its files below /tmp, and refuses to start where any user may write in a folder above
# them; so /tmp is empty in its namespace, but for the folders that are needed there.
_KEEP = "exec {number}< {folder}\n"
_EMPTY = "mount -t tmpfs -o mode=755 none /tmp\n"
_BIND = """\
mkdir -p {folder}
mount --no-canonicalize --bind /proc/self/fd/{number} {folder}
exec {number}<&-
"""
# Becomes the MOM of another host: $1 is its name, $2 its number, $3 the queue that has its jobs
# alone. It has a network, a host name and an address of its own, on a bridge. Without a default
# route questions to name servers fail at once. It has no $usecp, so what PBS copies to another host
# does not arrive.
_HOST = r"""
set -eu
name=$1 number=$2 queue=$3
. /etc/pbs.conf
PATH=$PBS_EXEC/bin:$PATH
home=$PBS_HOME-$name
if ! ip link show br0 > /dev/null 2>&1; then
  ip link add br0 type bridge
  ip addr add 10.99.1.254/24 dev br0
  ip link set br0 up
  qmgr -c "create queue $queue queue_type=execution,enabled=true,started=true"
fi
echo "10.99.1.$number $name" >> /etc/hosts
mkdir -p -m 755 "$home" "$home"/{aux,checkpoint,mom_logs,mom_priv/{jobs,config.d,hooks/tmp}}
mkdir -m 1777 "$home"/{spool,undelivered}
cp "$PBS_HOME/pbs_environment" "$home"
printf '$clienthost pbs\n' > "$home/mom_priv/config"
sed "s#^PBS_HOME=.*#PBS_HOME=$home#; s#START_\(SERVER\|SCHED\|COMM\)=1#START_\1=0#" \
  /etc/pbs.conf > "$home/pbs.conf"
mkfifo "$home/go"
setsid unshare --net --mount --uts bash -c '
  hostname "$1"
  read -r _ < "$2/go"
  mount --bind "$2/pbs.conf" /etc/pbs.conf
  ip link set lo up
  ip addr add "10.99.1.$3/24" dev "e$3"
  ip link set "e$3" up
  ip route add 10.99.0.0/24 via 10.99.1.254
  exec "$4/sbin/pbs_mom" -N
' bash "$name" "$home" "$number" "$PBS_EXEC" > "$home/log" 2>&1 < /dev/null &
mom=$!
ip link add "h$number" type veth peer name "e$number"
ip link set "h$number" master br0 up
until [ -e "/proc/$mom/ns/net" ] && ! [ "/proc/$mom/ns/net" -ef /proc/self/ns/net ]; do :; done
ip link set "e$number" netns "$mom"
qmgr -c "create node $name resources_available.ncpus = 4, queue = $queue"
echo > "$home/go"
"""

_UNSHARE = ("unshare", "--net", "--mount", "--uts", "--pid", "--fork", "--mount-proc")

# Jobs have the shell of a login, and start sooner without Lmod, and without the profile of this
# user, which is not below $HOME where the tests have another.
_PROFILE = """\
home=$(getent passwd "$(id -u)" | cut -d: -f6)
for profile in /etc/profile.d/lmod.sh "$home"/.bash_profile "$home"/.bash_login \\
  "$home"/.profile; do
  [ ! -e "$profile" ] || mount --bind /dev/null "$profile"
done
"""
_INSIDE = """\
grep NSpid: /proc/self/status
echo PBS_IS_UP
exec sleep infinity
"""


def programs() -> Path:
    """The folder that PBS is installed in, if it is."""
    return Path(os.environ.get("PBS_EXEC") or "/opt/pbs").absolute()


def available() -> str:
    """Why there is no server here; "" where there is one."""
    if not (programs() / "sbin/pbs_server").exists():
        return f"no OpenPBS in {programs()}; PBS_EXEC names the folder of another"
    if os.geteuid() != 0:
        return "OpenPBS needs root"
    missing = [name for name in ("unshare", "nsenter") if shutil.which(name) is None]
    return f"{', '.join(missing)} not found" if missing else ""


def _script(folders: list[Path]) -> str:
    """Bash that starts the server, and sees of /tmp these folders alone, in the order of depth."""
    below = sorted(folder for folder in set(folders) if folder.is_relative_to("/tmp"))
    kept = [
        {"number": str(number), "folder": shlex.quote(str(folder))}
        for number, folder in enumerate(below, 10)
    ]
    keep, bind = ("".join(text.format(**each) for each in kept) for text in (_KEEP, _BIND))
    words = [
        *_UNSHARE,
        "--kill-child",
        "bash",
        START,
        programs(),
        len(NODES),
        CORES,
        "bash",
        "-c",
        _INSIDE,
    ]
    start = f"exec {shlex.join(map(str, words))}\n"
    return f"{keep}{_EMPTY}{bind}{_PROFILE}{start}"


class PbsServer:
    """A server of PBS with eight nodes of four cores. The jobs run on this host."""

    def __init__(self, folder: Path, shared: Path) -> None:
        self.folder = folder
        self._shared = shared  # the folder that jobs and tests see, and that lies below /tmp
        self._said = folder / "said"
        self._process: subprocess.Popen[bytes] | None = None
        self._pid = 0
        self.env: dict[str, str] = {}

    def __enter__(self) -> Self:
        script = _script([self._shared, ROOT, programs()])
        with self._said.open("wb") as said:
            self._process = subprocess.Popen(
                ["unshare", "--mount", "bash", "-c", script],
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            until(self._is_up, "OpenPBS starts", 120.0, lambda: self._said.read_text())
            until(self._find_inside, "the process beside the server")
        except BaseException:
            self._kill()
            raise
        shims = self.folder / "bin"
        shims.mkdir()
        for name in PROGRAMS:
            enter = " ".join(self._enter())
            shim = f'#!/bin/sh\nexec {enter} --wdns="$PWD" -- {programs()}/bin/{name} "$@"\n'
            (shims / name).write_text(shim)
            (shims / name).chmod(0o755)
        self.env = {"PATH": f"{shims}:{os.environ['PATH']}"}
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._kill()

    def _kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)  # its namespaces end with it
            self._process.wait()

    def _is_up(self) -> bool:
        assert self._process is not None
        assert self._process.poll() is None, self._said.read_text()
        return "PBS_IS_UP" in self._said.read_text()

    def _find_inside(self) -> bool:
        """Find the process that the server was started for, as this host numbers it."""
        assert self._process is not None
        children = list(Path(f"/proc/{self._process.pid}/task").glob("*/children"))
        while children:
            for pid in _read(children.pop()).split():
                if _read(Path(f"/proc/{pid}/cmdline")) == "sleep\0infinity\0":
                    self._pid = int(pid)
                children += Path(f"/proc/{pid}/task").glob("*/children")
        return self._pid != 0

    def _enter(self) -> list[str]:
        """The words that run a command beside the server."""
        return ["nsenter", "--target", str(self._pid), "--mount", "--net", "--uts", "--pid"]

    def run(self, *line: str) -> str:
        """Run a command of PBS, to its end."""
        done = subprocess.run(
            line, env={**os.environ, **self.env}, capture_output=True, text=True, check=False
        )
        return done.stdout + done.stderr

    def add_hosts(self, names: Sequence[str], queue: str) -> None:
        """Add hosts, each with a MOM and an address of its own, for the jobs of a new queue."""
        for number, name in enumerate(names, 1):
            line = [*self._enter(), "bash", "-c", _HOST, "host", name, str(number), queue]
            subprocess.run(line, check=True, capture_output=True, timeout=60)
        for name in names:
            until(
                lambda name=name: "state = free" in self.run("pbsnodes", name),  # type: ignore[misc]
                f"{name} is free",
                60.0,
            )

    def delete_all(self) -> None:
        """Delete all jobs, those that run included."""
        if jobs := self.run("qselect").split():
            self.run("qdel", "-W", "force", *jobs)

    def stop(self) -> None:
        """Stop the server itself; jobs go on."""
        self.run("qterm", "-t", "quick")

    def start(self) -> None:
        """Start the server again."""
        line = [*self._enter(), str(programs() / "sbin/pbs_server")]
        subprocess.run(line, check=True, capture_output=True)


def _read(path: Path) -> str:
    try:
        return path.read_text()
    except OSError:
        return ""
