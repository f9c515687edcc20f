"""The nodes on which all or most of the runs were that did not pass, in words.

on_nodes(view, counted, bad)      # "all on n008", "12 of 15 on n[008-009]", "" for none
"""

from collections import Counter
from collections.abc import Sequence

from seatrial.acceptance.criteria.view import TrialView
from seatrial.acceptance.trial_history import RunHistory
from seatrial.machine.node_sets import fold

MIN_BAD = 3  # runs; fewer are on the same node by chance
MOST = 0.75  # of the runs that did not pass are on the node
OTHERS = 0.5  # of the runs that passed are there, at most: else nothing speaks against it


def on_nodes(view: TrialView, counted: Sequence[RunHistory], bad: Sequence[RunHistory]) -> str:
    """Return on which nodes all or most of the ``bad`` ones of the counted runs were, where those
    that passed mostly were on others; "" if there are no such nodes."""
    bits = view.history.bits
    if len(bad) < MIN_BAD or len(bits.names) < 2 or len(bad) == len(counted):
        return ""
    times = Counter(name for run in bad for name in bits.names_in(bits.of(run.nodes)))
    most = max(times.values(), default=0)
    if most < max(MIN_BAD, MOST * len(bad)):
        return ""
    names = [name for name, number in times.items() if number == most]
    chosen, passed = bits.of_names(names), [run for run in counted if run.passed]
    there = sum(bits.of(run.nodes) & chosen != 0 for run in passed)
    if there > OTHERS * len(passed):
        return ""
    number = "all" if most == len(bad) else f"{most} of {len(bad)}"
    return f"{number} on {fold(sorted(names))}"
