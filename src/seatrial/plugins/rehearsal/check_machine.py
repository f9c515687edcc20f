"""Check what a machine file says of rehearsals."""

import os
from pathlib import Path

from msgspec.structs import replace

from seatrial.hooks import value_of
from seatrial.model.documents import Location, key_text
from seatrial.model.machine import FileSystem, Machine
from seatrial.model.machine_file import named_nodes
from seatrial.model.node_set import unfold_or_empty
from seatrial.plugins.rehearsal.keys import Background, MachineModel, capacity_of, reading_of


def check_machine(machine: Machine, at: Location) -> None:
    """Add the faults of the keys ``rehearsal`` of a machine, its file systems and its gauges."""
    if at.faulty.shapes:  # they may only follow from these
        return
    model = value_of(machine, "rehearsal", MachineModel)
    names = {name for kind in machine.nodes for name in unfold_or_empty(kind.names)}
    for name, folded in model.partitions.items():
        named_nodes(folded, names, at.inside("partitions", name))
    if model.background is not None:
        _background(model.background, len(names), at.inside("background"))
    whole = at.whole
    for name, system in machine.file_systems.items():
        _file_system(system, whole.inside("file_systems", name, "rehearsal"))
    _gauges(machine, whole)


def _background(background: Background, nodes: int, at: Location) -> None:
    load = background.load.fraction or at.faulty.has(key_text((*at.key, "load")))
    if bool(background.swf) == bool(load):
        at.fault("give swf, a file of jobs, or load, the share of made ones; not both")
    for i, size in enumerate(background.nodes):
        if not 1 <= size <= nodes:
            at.fault(f"{size} is not between 1 and the machine's {nodes} nodes", "nodes", i)
    file = _workload(background, at)
    if background.swf and not os.path.isfile(file):  # noqa: PTH113 - Path's may raise
        at.fault(f"{file} is no file", "swf")


def _workload(background: Background, at: Location) -> Path:
    """Return the path of a workload; a relative one starts at the folder of the file that has
    it."""
    return (at.node.place_of(*at.key, "swf").path.parent / background.swf).absolute()


def with_paths(model: MachineModel, at: Location) -> MachineModel:
    """Return the model with an absolute path of its workload."""
    background = model.background
    if background is None or not background.swf:
        return model
    file = _workload(background, at.inside("background"))
    return replace(model, background=replace(background, swf=str(file)))


def _file_system(system: FileSystem, at: Location) -> None:
    names = {target.name for target in system.metadata_targets}
    for i, level in enumerate(capacity_of(system).production):
        if level.target and level.target not in names:
            known = ", ".join(sorted(names)) or "none"
            at.fault(f"no target {level.target!r}; there are {known}", "production", i, "target")


def _gauges(machine: Machine, whole: Location) -> None:
    known = list(machine.file_systems)
    for folder, system in machine.file_systems.items():
        known += [f"{folder}/{target.name}" for target in system.metadata_targets]
    for name, gauge in machine.gauges.items():
        reading = reading_of(gauge)
        if reading and reading not in known:
            text = f"no file system or target {reading!r}; there are {', '.join(known) or 'none'}"
            whole.fault(text, "gauges", name, "rehearsal")
