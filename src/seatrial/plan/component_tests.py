"""The tests that a component runs, and how each takes part."""

from collections.abc import Iterable
from fnmatch import fnmatchcase

from seatrial.plan.model import Component, ComponentTest


def pattern_of(component: Component, test: str) -> str | None:
    """Return the entry of the component's ``tests`` that matches a test: its own name, else the
    first pattern that matches; "" if the component names no tests; None if the test takes no
    part."""
    if component.kind == "checklist":
        return None
    if not component.tests:
        return None if only_evidence(component) else ""
    if test in component.tests:
        return test
    return next((each for each in component.tests if fnmatchcase(test, each)), None)


def part_of(component: Component, test: str) -> ComponentTest | None:
    """Return how a test takes part in a component; None if it does not."""
    pattern = pattern_of(component, test)
    return None if pattern is None else component.parts.get(pattern, ComponentTest())


def chosen_tests(component: Component, names: Iterable[str]) -> list[str]:
    """Return the tests that a component runs, in their order."""
    return [name for name in names if pattern_of(component, name) is not None]


def only_evidence(component: Component) -> bool:
    """Return True if a component has evidence and names nothing to run."""
    return bool(component.evidence) and not (
        component.tests or component.suites or component.select
    )


def fits(patterns: Iterable[str], test: str) -> bool:
    """Return True if a name or pattern matches a test, or there are no patterns."""
    wanted = list(patterns)
    return not wanted or any(test == each or fnmatchcase(test, each) for each in wanted)


def written_shares(component: Component) -> dict[str, float]:
    """Return the share that each entry of the component's ``tests`` asks for, if it asks for
    one."""
    return {name: part.share.fraction for name, part in component.parts.items()}


def written_copies(component: Component) -> int:
    """Return the copies that each entry of the component's ``tests`` asks for, a pattern's for one
    test."""
    return sum(part.copies for part in component.parts.values())
