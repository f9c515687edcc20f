"""The builds: which to start, which are running, and which cases wait for them."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import count, islice

from seatrial.decide.admission import Shape
from seatrial.decide.demand import Candidate, Offer
from seatrial.decide.race import Rounds
from seatrial.model.policy import Policy
from seatrial.model.test import Case

LONGEST_CAUSE = 500  # characters of the last line of a log: a path and two checksums fit


class BuildTracker:
    """The state of builds. ``why_failed`` has, for each build that is done, the reason for its
    failure, "" if it succeeded. A case waits for its build."""

    def __init__(self) -> None:
        self.to_start: dict[str, None] = {}
        self.running: dict[str, None] = {}  # ordered, so that replays agree
        self.why_failed: dict[str, str] = {}
        self._waiting: dict[str, list[int]] = {}  # key -> cases

    def wait(self, key: str, case: int) -> None:
        """Record that a case waits for a build."""
        self.to_start[key] = None
        self._waiting.setdefault(key, []).append(case)

    def start(self, key: str) -> None:
        if key in self.to_start:
            del self.to_start[key]
            self.running[key] = None

    def end(self, key: str, why_failed: str) -> list[int]:
        """Record the end of a build. Returns the cases that waited for it."""
        self.running.pop(key, None)
        self.to_start.pop(key, None)
        self.why_failed[key] = why_failed
        return self._waiting.pop(key, [])

    def restart(self) -> None:
        """Record that running builds ended with their driver."""
        self.to_start.update(self.running)
        self.running.clear()

    def next(self, most: int) -> Iterator[str]:
        """Return the keys of the builds to start now, so that at most this number is running."""
        return islice(self.to_start, max(0, most - len(self.running)))

    def failures(self, cases: Sequence[Case]) -> str:
        """Return the tests of which no case could be built, and the reasons, for people; "" where
        there is none."""
        return "; ".join(
            f"the build of {', '.join(tests)} failed: {cause}"
            for cause, tests in unbuilt(cases, self.why_failed).items()
        )


def unbuilt(cases: Sequence[Case], why_failed: Mapping[str, str]) -> dict[str, list[str]]:
    """Return the tests all of whose builds failed, by the last line of the log of the first."""
    causes: dict[str, str] = {}
    usable: set[str] = set()
    for case in cases:
        if text := why_failed.get(case.build, ""):
            causes.setdefault(case.test, (text.strip().splitlines() or ["?"])[-1][:LONGEST_CAUSE])
        else:
            usable.add(case.test)
    found: dict[str, list[str]] = {}
    for test, cause in causes.items():
        if test not in usable:
            found.setdefault(cause, []).append(test)
    return found


# ---- bundles -------------------------------------------------------------------------------------
#
# The demand for runs that share allocations: which of them are launched together, in which order.
#
#     bundles = BundleQueue(cases, policy, shapes, seed)
#     bundles.ready(case)                 # its build is done
#     bundles.choose(offer)               # candidates; those with one number share an allocation
#
# A *bundle* is a list of runs that get one allocation (one job) together: they run there on the
# same nodes, one after the other in the order of the list, or ``at_once`` at a time. Another
# demand that wants runs on the same nodes in its own order (such as a race) does as ``choose``
# does here: it takes the cases from the offer by ``take_together``, and yields candidates with the
# same number ``bundle`` (above 0, another one for each bundle of a decision) in the order in which
# they are to run. The conductor launches them as one job; each is a run like any other, with its
# own directory, events and verdict, and is judged as soon as it has ended. Those that had not
# begun when the job ended (a dead node, its walltime) are submitted again together, which is no
# new launch.


class _Group:
    """Cases that share allocations. ``planned`` are the bundles to launch, each as its cases in
    order; ``again`` are cases of which a run is to be repeated, which wait until no run of the
    group is in flight; ``unready`` are cases whose builds are not done."""

    def __init__(
        self, cases: Sequence[int], repeats: Sequence[int], seed: str, bundles: int
    ) -> None:
        rounds = Rounds(len(cases), seed)
        each = -(-max(repeats) // bundles)  # rounds of each bundle
        runs = [-(-repeat // bundles) for repeat in repeats]
        self.planned = [
            [
                cases[item]
                for number in range(bundle * each, (bundle + 1) * each)
                for item in rounds.order(number)
                if number - bundle * each < runs[item]
            ]
            for bundle in range(bundles)
        ]
        self.again: list[int] = []
        self.unready = set(cases)
        self.in_flight = 0

    def next(self) -> list[list[int]]:
        """Return the bundles that can be launched now."""
        if self.unready:
            return []
        if self.planned:
            return self.planned
        return [self.again] if self.again and not self.in_flight else []

    def remove(self, case: int) -> None:
        """Remove a run that was launched, from the first bundle that has it."""
        for bundle in [*self.planned, self.again]:
            if case in bundle:
                bundle.remove(case)
                break
        self.planned = [bundle for bundle in self.planned if bundle]
        self.in_flight += 1


class BundleQueue:
    """The cases of a trial that share allocations, by the groups of its policy. ``seed`` draws the
    order of the rounds; ``room`` is all that of a shared node, 0 where there is none."""

    def __init__(
        self, cases: Sequence[Case], policy: Policy, shapes: Sequence[Shape], seed: str, room: int
    ) -> None:
        self._cases = cases
        self._shapes = shapes
        self._room = room
        members: dict[int, list[int]] = {}
        for case, number in enumerate(policy.bundle_of):
            if number:
                members.setdefault(number, []).append(case)
        self._groups: dict[int, _Group] = {}  # by case
        self._all: list[_Group] = []
        for together in members.values():
            repeats = [cases[case].repeat for case in together]
            group = _Group(together, repeats, seed, policy.allocations)
            self._all.append(group)
            self._groups |= dict.fromkeys(together, group)

    def __contains__(self, case: int) -> bool:
        return case in self._groups

    def __len__(self) -> int:
        """Return the number of bundles that can be launched now."""
        return sum(len(group.next()) for group in self._all)

    def ready(self, case: int) -> None:
        """Record that the build of a case is done."""
        self._groups[case].unready.discard(case)

    def unbuilt(self, case: int) -> None:
        """Record that the build of a case failed: the others run without it."""
        group = self._groups[case]
        group.unready.discard(case)
        left = ([each for each in bundle if each != case] for bundle in group.planned)
        group.planned = [bundle for bundle in left if bundle]

    def again(self, case: int) -> None:
        self._groups[case].again.append(case)

    def launched(self, case: int) -> None:
        self._groups[case].remove(case)

    def ended(self, case: int) -> None:
        """Record the verdict of a run."""
        self._groups[case].in_flight -= 1

    def left(self) -> Collection[int]:
        """Return the first case of each bundle that can be launched."""
        return [bundle[0] for group in self._all for bundle in group.next()]

    def fits(self, room: int) -> bool:
        return any(self._size(bundle) <= room for group in self._all for bundle in group.next())

    def choose(self, offer: Offer) -> Iterator[Candidate]:
        """Yield the runs of the bundles that can be launched, whole bundles alone."""
        numbers = count(1)
        for group in self._all:
            for bundle in group.next():
                if offer.take_together(bundle, self._size(bundle)):
                    number = next(numbers)
                    yield from (Candidate(case, bundle=number) for case in bundle)

    def _size(self, bundle: Sequence[int]) -> int:
        """Return the room that a bundle takes on a shared node: that of its largest runs, as many
        as run at a time."""
        largest = max(self._shapes[case].size * self._cases[case].at_once for case in bundle)
        return min(largest, self._room)
