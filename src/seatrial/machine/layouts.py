"""The layout of a kind of nodes, as the machine's file says it: ``nodes: [{layout: ...}]``.

A file of hwloc's is read when the machine is loaded and becomes texts in the description, which
trials keep. Where the file says no layout, one is made of the numbers of cores, sockets and NUMA
domains; the numbers of its CPUs are then not known.
"""

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec.structs import replace

from seatrial.documents import Spot
from seatrial.files import read_regular
from seatrial.layout import hwloc_xml, synthetic
from seatrial.layout.node import NodeLayout, from_sockets, plain, written
from seatrial.lazy import LazyModule

if TYPE_CHECKING:
    from seatrial.machine import model
else:  # few make one
    model = LazyModule("seatrial.machine.model")

MAX_FILE_BYTES = 16 << 20
_COUNTS: dict[str, Callable[[NodeLayout], int]] = {
    "cores": lambda layout: len(layout.cores),
    "sockets": lambda layout: len(layout.sockets),
    "numa_domains": lambda layout: len(layout.domains),
    "threads_per_core": lambda layout: layout.threads_per_core,
}


def layout_of(kind: "model.NodeGroup") -> NodeLayout:
    """Return the layout of nodes of a kind that was loaded."""
    if isinstance(kind.layout, str):
        return _of_notation(kind.layout)
    if kind.layout is not None:
        return _of_texts(tuple(map(tuple, kind.layout.sockets)))
    return plain(kind.cores, kind.sockets, kind.numa_domains, kind.threads_per_core)


_of_notation = functools.lru_cache(maxsize=64)(synthetic.parse)
_of_texts = functools.lru_cache(maxsize=64)(from_sockets)


def check_layout(kind: "model.NodeGroup", at: Spot) -> None:
    """Add the faults of the layout of a kind of nodes, which is at ``at``."""
    layout = _read(kind.layout, at)
    if layout is None:
        return
    for key, number_in in _COUNTS.items():
        said, found = getattr(kind, key), number_in(layout)
        if said != found and at.given(key):
            text = f"is {said}, but `layout` has {found}; correct one of them"
            at.fault(text, key)


def with_layout(kind: "model.NodeGroup", at: Spot) -> "model.NodeGroup":
    """Return a kind of nodes that was checked with the numbers that its layout has, and with the
    texts of a layout that is in a file."""
    layout = _read(kind.layout, at) if kind.layout is not None else None
    if layout is None:
        return kind
    if isinstance(kind.layout, model.WrittenLayout) and kind.layout.file:
        kind = replace(kind, layout=model.WrittenLayout(sockets=written(layout)))
    return replace(kind, **{key: number_in(layout) for key, number_in in _COUNTS.items()})


def _read(said: "str | model.WrittenLayout | None", at: Spot) -> NodeLayout | None:
    """Return what ``layout`` of the nodes at ``at`` says; None, with a fault added, if it cannot be
    read."""
    if isinstance(said, str):
        return at.parsed(_of_notation, said, "layout")
    if said is None or bool(said.file) == bool(said.sockets):
        at.fault("give file or sockets, one of them", "layout")
        return None
    if said.sockets:
        return at.parsed(_of_texts, tuple(map(tuple, said.sockets)), "layout", "sockets")
    path = at.node.place_of(*at.key, "layout", "file").path.parent / said.file
    try:
        layout = hwloc_xml.parse(read_regular(path, MAX_FILE_BYTES).decode(errors="replace"))
        written(layout)
    except OSError as error:
        at.fault(f"{path}: {error.strerror}", "layout", "file")
    except ValueError as error:
        at.fault(f"{path}: {error}", "layout", "file")
    else:
        return layout
    return None
