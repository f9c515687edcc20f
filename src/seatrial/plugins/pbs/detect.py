"""Detect the cluster of this login node as a machine, by asking PBS (``pbsnodes -a -F json``).

PBS knows CPUs, memory, GPUs and what its administrators call resources; no sockets and no NUMA
domains. A host with several vnodes, ``n1[0]`` and ``n1[1]``, is one node.
"""

import json
import re
from collections.abc import Iterable
from typing import Any

from seatrial.errors import UsageError
from seatrial.execute.detect import ask_scheduler, by_kind
from seatrial.execute.toolchains import detect_toolchains
from seatrial.model.machine import Launcher, Machine, Memory, NodeGroup

_COMMAND = ("pbsnodes", "-a", "-F", "json")
_SIZE = re.compile(r"([0-9]{1,15})(b|kb|mb|gb|tb)", re.IGNORECASE)
_UNITS = {"b": 1, "kb": 2**10, "mb": 2**20, "gb": 2**30, "tb": 2**40}


def detect_pbs(name: str | None) -> tuple[Machine, str]:
    """Describe the nodes that pbsnodes shows, under that name or the server's. Nodes that belong to
    a queue are left out, and named in ``about``: jobs get them by this queue alone. Raises
    UsageError if PBS does not answer."""
    vnodes, server = _asked()
    free = {vnode: about for vnode, about in vnodes.items() if "queue" not in about}
    kinds = _groups(free) or _groups(vnodes)
    if not kinds:
        raise UsageError("pbsnodes: PBS has no node with CPUs here; describe the machine by hand")
    toolchains, _ = found = detect_toolchains()
    has_launcher = any(toolchain.launcher for toolchain in toolchains.values())
    machine = Machine(
        machine=name or server,
        about=f"As PBS describes it; cores are CPUs of PBS{_of_queues(vnodes)}",
        nodes=kinds,
        scheduler="pbs",
        launcher=Launcher(kind="none" if has_launcher else "mpiexec"),
        toolchains=toolchains,
    )
    return machine, found.comments


def _of_queues(vnodes: dict[str, dict[str, Any]]) -> str:
    """Return to which queues nodes belong, in words; "" where none does."""
    queues = sorted({str(about["queue"]) for about in vnodes.values() if "queue" in about})
    return f"; other nodes belong to queues: {', '.join(queues)}" if queues else ""


def _asked() -> tuple[dict[str, dict[str, Any]], str]:
    """Return the vnodes that pbsnodes shows, and the name of the server. Raises UsageError."""
    text = ask_scheduler("PBS", "pbs_server", *_COMMAND)
    try:
        answer = json.loads(text, strict=False)
        vnodes = {str(vnode): dict(about) for vnode, about in answer.get("nodes", {}).items()}
        return vnodes, str(answer.get("pbs_server", "")) or "cluster"
    except (ValueError, TypeError, AttributeError):
        raise UsageError(f"{' '.join(_COMMAND)}: answered {text[:80]!r}, no JSON of it") from None


def _groups(vnodes: dict[str, dict[str, Any]]) -> list[NodeGroup]:
    """Return the nodes with CPUs by kind."""
    by_node: dict[str, list[dict[str, Any]]] = {}
    for vnode, about in vnodes.items():
        resources = about.get("resources_available")
        by_node.setdefault(vnode.partition("[")[0], []).append(
            resources if isinstance(resources, dict) else {}
        )
    kinds = ((node, _kind(resources)) for node, resources in by_node.items())
    return by_kind((node, kind) for node, kind in kinds if kind is not None)


def _kind(vnodes: list[dict[str, Any]]) -> NodeGroup | None:
    """Return a node without its name; None if it has no CPUs. Its features are the resources that
    are true."""
    cores = _sum(vnodes, "ncpus")
    if not cores:
        return None
    features = {key for vnode in vnodes for key, value in vnode.items() if str(value) == "True"}
    memory = sum(_bytes(vnode.get("mem")) for vnode in vnodes)
    return NodeGroup(
        names="",
        cores=cores,
        memory=Memory(f"{memory // 2**20}MiB"),
        gpus=_sum(vnodes, "ngpus"),
        features=sorted(features),
    )


def _sum(vnodes: Iterable[dict[str, Any]], key: str) -> int:
    texts = (str(vnode.get(key, 0)) for vnode in vnodes)
    return sum(int(text) for text in texts if re.fullmatch("[0-9]{1,9}", text))


def _bytes(text: object) -> int:
    """Return a size of PBS, such as 264039676kb, in bytes; 0 where it is none."""
    parts = _SIZE.fullmatch(str(text))
    return int(parts[1]) * _UNITS[parts[2].lower()] if parts else 0
