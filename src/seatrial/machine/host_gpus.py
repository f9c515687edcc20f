"""Count the GPUs of this host that a process may use."""

from collections.abc import Mapping
from pathlib import Path

VISIBLE = ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES")
DEVICES = Path("/dev")
AMD_NODES = Path("/sys/class/kfd/kfd/topology/nodes")


def shown_gpus(environment: Mapping[str, str]) -> list[str]:
    """Return the GPUs that an environment names, in its order; none where it names none."""
    shown = next(filter(None, map(environment.get, VISIBLE)), "")
    return [gpu for gpu in shown.split(",") if gpu]


def count_gpus(environment: Mapping[str, str]) -> int:
    """Return the number of GPUs of NVIDIA and AMD, at most as many as the environment names.

    NVIDIA's driver has a device file for each GPU, of which a container has its own alone
    (``/dev/nvidia0``). AMD's lists CPUs as well, whose ``gpu_id`` is 0 (Linux, ``kfd_topology.c``).
    """
    nvidia = sum(device.name[6:].isdecimal() for device in DEVICES.glob("nvidia[0-9]*"))
    amd = sum(_is_amd_gpu(node) for node in AMD_NODES.glob("[0-9]*/gpu_id"))
    named = len(shown_gpus(environment))
    return min(nvidia + amd, named) if named else nvidia + amd


def _is_amd_gpu(gpu_id: Path) -> bool:
    """Return whether a node of the topology is a GPU. One of another container cannot be read."""
    try:
        # plain: a file of the kernel
        return gpu_id.read_text().strip() not in ("", "0")
    except OSError:
        return False
