"""Runs of a side that were on nodes that differ: spread over both kinds, or on one or the other.

kinds_in_words(store, trials, cases)
# ["t: 3 runs were spread over nodes that differ (n[001-004]: 2 cores ...; n[005-006]: ...)"]
"""

from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct

from seatrial.errors import TrialError
from seatrial.execute.trial_paths import TrialPaths
from seatrial.model import machine as model
from seatrial.model import nodes as layouts
from seatrial.model import requirements
from seatrial.model.file_model import typed
from seatrial.model.node_set import unfold, unfold_or_empty
from seatrial.model.nodes import NodeLayout
from seatrial.results.store.by_case import CaseRuns
from seatrial.results.store.schema import Store
from seatrial.results.store.tables import TrialRow
from seatrial.units import count

MAX_TRIALS = 100  # of a side, whose machines are looked at: the newest


_OF_LAYOUT = ("cores", "sockets", "numa_domains", "threads_per_core", "layout")


class _Nodes(Struct):
    nodes: list[dict[str, Any]] = []


class _Described(Struct):
    """The member of a trial's record."""

    machine: _Nodes


class _Kinds(NamedTuple):
    """The layouts of a machine's nodes by their names, and what they are in words."""

    of: "dict[str, NodeLayout]"
    words: str


def kinds_in_words(
    store: Store, trials: Sequence[TrialRow], cases: Sequence[CaseRuns]
) -> list[str]:
    """Return a sentence for each trial with runs that count and were on nodes that differ."""
    sentences = []
    for trial in trials[-MAX_TRIALS:]:
        kinds = _kinds_of(trial)
        if kinds is None:
            continue
        nodes = dict(store.rows("SELECT id, nodes FROM runs WHERE trial = ?", (trial.row,)))
        spread = 0
        by_case: dict[tuple[str, ...], set[frozenset[Any]]] = {}
        for one in cases:
            if one.trial != trial.tag:
                continue
            key = (
                one.test,
                one.toolchain,
                one.stage,
                *(f"{n}={v}" for n, v in one.key_parameters.items()),
            )
            for run in one.runs:
                found = frozenset(
                    kinds.of[name] for name in unfold_or_empty(nodes[run]) if name in kinds.of
                )
                spread += len(found) > 1
                by_case.setdefault(key, set()).add(found)
        mixed = sum(len(each - {frozenset()}) > 1 for each in by_case.values())
        if told := _told(spread, mixed):
            sentences.append(f"{trial.tag}: {told} nodes that differ ({kinds.words})")
    return sentences


def _kinds_of(trial: TrialRow) -> _Kinds | None:
    """Return the kinds of nodes of a trial's machine; None where all are alike, or it cannot be
    read."""
    try:
        written = TrialPaths(Path(trial.path)).record_as(_Described).machine.nodes
    except TrialError:
        return None
    if len({msgspec.json.encode([each.get(key) for key in _OF_LAYOUT]) for each in written}) < 2:
        return None
    kinds = typed(written, list[model.NodeGroup])
    if not (words := requirements.kinds_text(kinds)):
        return None
    return _Kinds({n: layouts.layout_of(kind) for kind in kinds for n in unfold(kind.names)}, words)


def _told(spread: int, mixed: int) -> str:
    sentences = []
    if spread:
        sentences.append(f"{count(spread, 'run')} {'was' if spread == 1 else 'were'} spread over")
    if mixed:
        sentences.append(f"{count(mixed, 'case')} ran on one or the other of")
    return " and ".join(sentences)
