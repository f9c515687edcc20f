"""What a sustained component of a plan gives to each test, in words for people.

sentence(part)      # climate 50 %, waves 33.3 %, filler 16.7 % (what is left)
warnings(part)      # what the mix may come to that its author may not expect
"""

from collections.abc import Iterator

from seatrial.conduct.shares import planned_for
from seatrial.plan.policy import shared_node, shares_cores
from seatrial.plan.prepare import PreparedComponent
from seatrial.units import listed


def sentence(part: PreparedComponent) -> str:
    """Return the planned share of each test, and what is left; "" if there is no mix."""
    if part.policy.kind != "sustained":
        return ""
    room, _ = shared_node(part.machine)
    shares, left, fills = planned_for(part.cases, part.policy, room)
    words = []
    for number, (entry, share) in enumerate(zip(part.policy.entries, shares, strict=True)):
        how = ""
        if number in fills:
            how = " (what is left)" if share else " (gaps only: all is claimed)"
        elif entry.copies:
            how = f" ({entry.copies} {'copy' if entry.copies == 1 else 'copies'})"
        words.append(f"{entry.name} {_percent(share)}{how}")
    if left:
        words.append(f"{_percent(left)} is left to no test and stays idle")
    return ", ".join(words)


def warnings(part: PreparedComponent) -> Iterator[str]:
    """Yield the tests of a mix whose runs may share nodes with others, where a scheduler gives
    parts of nodes: utilisation and times then mean less than they seem to."""
    if part.policy.kind != "sustained" or shares_cores(part.machine):
        return
    cores = max(kind.cores for kind in part.machine.nodes)
    found = {
        case.test: case.tasks_per_node * case.threads
        for case in part.cases
        if not case.exclusive and case.tasks_per_node * case.threads < cores
    }
    if found:
        named = listed([f"{test} ({n} of {cores} cores)" for test, n in found.items()], 5)
        yield (
            f"{named}: runs may share nodes, as they neither fill them nor are exclusive; "
            "`exclusive: true` in a test's `run` keeps a node for each"
        )


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
