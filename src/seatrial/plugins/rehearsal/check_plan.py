"""Check the behaviours that a rehearsal of a plan assumes."""

from collections.abc import Mapping, Sequence

from seatrial.execute.plan.check import Loaded, check_span
from seatrial.execute.plan.component import fits
from seatrial.hooks import value_of
from seatrial.judge.metrics import figure_names
from seatrial.model.documents import Location, unread
from seatrial.model.moments import TimeSpan
from seatrial.model.test import Test
from seatrial.plugins.rehearsal.keys import Behaviour, ElapsedModel, Rehearsal, RehearsedEvent

_SPAN = TimeSpan.__struct_fields__
_EFFECTS = [each for each in RehearsedEvent.__struct_fields__ if each not in _SPAN]


def check_plan(loaded: Loaded, at: Location) -> None:
    """Add the faults of the behaviours that a rehearsal of a plan assumes."""
    rehearsal = value_of(loaded.plan, "rehearsal", Rehearsal)
    machine = loaded.site.machine if loaded.site else None
    tests = [item for suite in loaded.known_suites for item in suite.tests.items()]
    for pattern, behaviour in rehearsal.tests.items():
        _behaviour(behaviour, pattern, dict(tests), at.inside("tests", pattern))
    for i, event in enumerate(rehearsal.events):
        location = at.inside("events", i)
        check_span(event, machine, [name for name, _ in tests], location)
        _event(event, location)


def _event(event: RehearsedEvent, location: Location) -> None:
    if event == RehearsedEvent(**{key: getattr(event, key) for key in _SPAN}) and not unread(
        location
    ):
        location.fault(f"changes nothing; give {', '.join(_EFFECTS[:-1])} or {_EFFECTS[-1]}")
    _shares(event, ("fails", "hangs"), "of its runs", location)
    _shares(event, ("refused",), "of its submissions", location)


def _behaviour(
    behaviour: Behaviour, pattern: str, tests: Mapping[str, Test], location: Location
) -> None:
    fitting = [test for name, test in tests.items() if fits([pattern], name)]
    if tests and not fitting:
        location.fault(f"{pattern!r} is not a test of the plan; it has {', '.join(tests)}")
    _figures(behaviour, fitting, location)
    if isinstance(behaviour.elapsed, ElapsedModel):
        _elapsed(behaviour.elapsed, location.inside("elapsed"))
    _shares(behaviour, ("wrong", "fails", "hangs"), "of its runs", location)
    _shares(behaviour, ("metadata", "objects"), "of its time", location)


def _shares(
    behaviour: Behaviour | RehearsedEvent, keys: Sequence[str], what: str, location: Location
) -> None:
    total = sum(getattr(behaviour, key).fraction for key in keys)
    if total > 1 + 1e-9:
        location.fault(f"{' and '.join(keys)} add up to {total:.4g} {what}; the maximum is 1")


def _elapsed(elapsed: ElapsedModel, location: Location) -> None:
    given = [key for key in ("mean", "values", "trial") if getattr(elapsed, key)]
    if len(given) != 1:
        words = " and ".join(given) or "none of them"
        location.fault(f"needs exactly one of mean, values and trial; it has {words}")


def _figures(behaviour: Behaviour, tests: Sequence[Test], location: Location) -> None:
    known = figure_names(tests)
    for name in behaviour.figures:
        if tests and known is not None and name not in known:
            listed = ", ".join(sorted(known)) or "none"
            location.fault(f"no such metric; its tests have {listed}", "figures", name)
