"""The nodes on which runs overlap, or that were down while a run held them.

    claims = claims_of(held, history.bits)             # which nodes each run held, and when
    contested(claims, downs, history.bits)             # the nodes that two of them had at a time

Most trials have few such nodes or none, because their scheduler gives whole nodes.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from seatrial.acceptance.node_bits import NodeBits
from seatrial.acceptance.outages import Span
from seatrial.acceptance.trial_history import RunHistory


class Claim(NamedTuple):
    """A run that held nodes from a time to another (ns): the ``bits`` of those that are known."""

    start: int
    end: int
    bits: int
    run: RunHistory


def claims_of(held: Iterable[tuple[RunHistory, Span | None]], bits: NodeBits) -> list[Claim]:
    """Return what runs held, given when each held nodes (None: never)."""
    of = bits.of
    return [Claim(*span, of(run.nodes), run) for run, span in held if span is not None]


def contested(claims: Sequence[Claim], downs: Sequence[tuple[str, Span]], bits: NodeBits) -> int:
    """Return the bits of the nodes that two runs held at a time, or that were down while a run held
    them."""
    changes: list[tuple[int, int, int]] = []
    for start, end, own, _ in claims:
        if own and end > start:
            changes += ((start, 1, own), (end, 0, own))
    for name, (start, end) in downs:
        if (own := bits.of_names([name])) and end > start:
            changes += ((start, 1, own), (end, 0, own))
    changes.sort()
    busy = found = 0
    for _, begins, own in changes:
        if begins:
            found |= busy & own
            busy |= own
        else:  # a contested node may be thought free from here on: it is known already
            busy &= ~own
    return found
