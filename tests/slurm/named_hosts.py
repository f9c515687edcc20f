"""Nodes that are hosts: a slurmd with a host name, a hosts file and an address of its own.

Each gets a UTS and a mount namespace, so that in its jobs `hostname` says n001, names of nodes are
found (n001 is 127.0.1.1, n002 is 127.0.1.2, ...), and each node may listen to the same port.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tests.slurm.daemons import find

_PER_BYTE = 254  # addresses 1 to 254 of the last byte


def address(number: int) -> str:
    """Return the address of node 1, 2, ...; all of 127.0.0.0/8 is this host."""
    group, last = divmod(number - 1, _PER_BYTE)
    return f"127.0.{group + 1}.{last + 1}"


def hosts_file(names: Sequence[str]) -> str:
    """Return the text of /etc/hosts of each node: this host's, and the nodes."""
    lines = [f"{address(number)} {name}\n" for number, name in enumerate(names, 1)]
    return Path("/etc/hosts").read_text() + "".join(lines)


def as_host(name: str, hosts: Path, argv: Sequence[str]) -> list[str]:
    """Return the command that becomes ``argv`` on the host ``name``; its process id stays."""
    become = 'mount --bind "$1" /etc/hosts && hostname "$2" && shift 2 && exec "$@"'
    return [*_unshare(), "sh", "-c", become, "sh", str(hosts), name, *argv]


def inside(conf: Path, node: str) -> list[str]:
    """Return the words that run a command in the mount namespace of a node of a cluster, which is
    named by its slurm.conf."""
    user = [] if os.geteuid() == 0 else ["--user", "--preserve-credentials"]
    return ["nsenter", f"--target={slurmd_of(conf, node)}", "--mount", *user]


def slurmd_of(conf: Path, node: str) -> int:
    """Return the process id of the slurmd of a node."""
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().split(b"\0")
        except OSError:  # it has ended
            continue
        own = any(str(conf).encode() == word for word in words)
        if own and words[0].endswith(b"slurmd") and node.encode() in words:
            return int(entry.parent.name)
    raise AssertionError(f"no slurmd of {node}")


@cache
def forbidden() -> str | None:
    """Return None if this host lets nodes be hosts, else a sentence that says why not."""
    if find("unshare") is None:
        return "nodes cannot be hosts here: unshare not found (it is in the package util-linux)"
    argv = as_host("n001", Path("/etc/hosts"), ["true"])
    done = subprocess.run(argv, capture_output=True, text=True, check=False)
    if done.returncode == 0:
        return None
    return (
        "nodes cannot be hosts here: this user may make no UTS and mount namespaces"
        f" ({done.stderr.strip()}); allow user namespaces, or run the tests as root"
    )


def allowed() -> bool:
    """Return True if this host lets nodes be hosts."""
    return forbidden() is None


def _unshare() -> list[str]:
    user = [] if os.geteuid() == 0 else ["--user", "--map-current-user", "--keep-caps"]
    return ["unshare", *user, "--uts", "--mount"]
