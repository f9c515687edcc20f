"""What several criteria say together, with the runs that none of them counts."""

from __future__ import annotations

from msgspec.structs import replace

from seatrial.results.criteria.mix import overall
from seatrial.results.criteria.view import Result, State, WithExcluded

ONE = Result(
    criterion="pass_rate",
    label="pass rate",
    state="met",
    value=1.0,
    bound="at least 95 %",
    reason="",
)


def with_excluded(state: State, value: float = 0.6) -> Result:
    return replace(ONE, with_excluded=WithExcluded(state=state, value=value, n=10))


def test_what_is_met_by_excluded_runs_alone_is_said() -> None:
    found = overall([[with_excluded("not met")]])
    assert (found.state, found.short) == ("met", "met, 1 by excluded runs")
    assert found.words == "met, 1 by excluded runs: pass rate 60 % with them (at least 95 %)"
    waived = overall([[replace(with_excluded("not met"), state="waived")]])
    assert waived.short == "waived, 1 by excluded runs"
    assert not overall([[replace(with_excluded("met"), state="not met")]]).by_exclusion


def test_exclusions_that_change_no_state_are_not_said() -> None:
    assert overall([[with_excluded("met", 0.97)], [ONE]]).words == "met"


def test_known_failures_are_counted_once() -> None:
    known = replace(ONE, numbers={"known": 2})
    found = overall([[ONE], [known], [replace(known, criterion="every_test")]])
    assert (found.state, found.words) == ("met", "met, 2 known failures")
