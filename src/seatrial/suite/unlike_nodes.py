"""Nodes that differ among those that a case may get: a figure of one kind is none of another.

unlike_nodes(machine, features, cases)     # "n[001-004]: 2 cores in 1 NUMA domain; n[005-006]: ..."
"""

from collections.abc import Iterable, Mapping, Sequence

from seatrial.layout.node import NodeLayout
from seatrial.machine.layouts import layout_of
from seatrial.machine.model import Machine, NodeGroup
from seatrial.machine.node_sets import unfold
from seatrial.suite.fitting_nodes import usable_nodes
from seatrial.suite.model import Case, Test
from seatrial.units import count, listed

MAX_NAMED = 3


def unlike_nodes(machine: Machine, features: Sequence[str], cases: Iterable[Case]) -> str:
    """Return the kinds of nodes that the cases of a test, which requires the ``features``, may run
    on, in words, if their cores differ; else an empty text."""
    if len({layout_of(kind) for kind in machine.nodes}) < 2:
        return ""
    asked = {(case.job, case.gpus): case for case in cases}.values()
    usable = {name for case in asked for name in usable_nodes(machine, features, case)}
    kinds = [kind for kind in machine.nodes if usable.intersection(unfold(kind.names))]
    return kinds_text(kinds)


def kinds_text(kinds: Iterable[NodeGroup]) -> str:
    """Return kinds of nodes in words, one of each layout; "" for kinds that are alike."""
    layouts: dict[NodeLayout, str] = {}
    for kind in kinds:
        domains = count(kind.numa_domains, "NUMA domain")
        said = f"{kind.names}: {count(kind.cores, 'core')} in {domains}"
        layouts.setdefault(layout_of(kind), said)
    return "; ".join([*layouts.values()][:MAX_NAMED]) if len(layouts) > 1 else ""


def told_unlike(machine: Machine, tests: Mapping[str, Test], cases: Iterable[Case]) -> str:
    """Return a note on the tests whose runs may get nodes that differ; "" if there are none."""
    if machine.scheduler == "local":
        return ""
    by_test: dict[str, list[Case]] = {}
    for case in cases:
        if not case.only_builds and not case.node:
            by_test.setdefault(case.test, []).append(case)
    kinds: dict[str, list[str]] = {}
    for test, own in by_test.items():
        if told := unlike_nodes(machine, tests[test].requires.features, own):
            kinds.setdefault(told, []).append(test)
    if not kinds:
        return ""
    told, named = next(iter(kinds.items()))
    return (
        f"runs of {listed(named, MAX_NAMED)} may get nodes that differ ({told}): node.cores and "
        "other facts are those of the first kind that fits, and figures are of both; choose one "
        "kind by run.partition or requires.features"
    )
