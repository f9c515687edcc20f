"""Counters as rates: what rose on which node, and the rules over it."""

from __future__ import annotations

import pytest

from seatrial.plugins.facts.drift import rises, with_rates
from seatrial.plugins.facts.node_facts import FactTable, of_nodes
from seatrial.plugins.facts.rules import judge, load

HOUR = 3600
SYMBOLS = "now.ib_mlx5_0_1_symbol_error"
OTHER = "now.ib_mlx5_bond_0_2_symbol_error"


def node(clock: float, uptime: float = 1e6, **counters: int) -> dict[str, str]:
    own = {f"now.{name}": str(value) for name, value in counters.items()}
    return {"now.clock_s": f"{clock:.6f}", "now.uptime_s": str(int(uptime)), **own}


def table(**nodes: dict[str, str]) -> FactTable:
    return of_nodes(nodes)


@pytest.mark.parametrize(
    ("seconds", "uptime", "before", "after", "by", "per_hour"),
    [
        (4 * HOUR, 1e6, 100, 912, 812, 203.0),
        (10, 1e6, 3, 4, 1, 1.0),  # as of an hour
        (24 * HOUR, 2 * HOUR, 500, 30, 30, 15.0),  # it was started in between
        (24 * HOUR, 2 * HOUR, 10, 30, 30, 15.0),
        (2 * HOUR, 1e6, 500, 30, 30, 15.0),  # somebody set the counter back
        (2 * HOUR, 1e6, 7, 7, 0, 0.0),
    ],
)
def test_a_counter_rises_by_the_hour(
    seconds: float, uptime: float, before: int, after: int, by: int, per_hour: float
) -> None:
    earlier = table(n1=node(1e9, edac_corrected=before))
    later = table(n1=node(1e9 + seconds, uptime, edac_corrected=after))
    (found,) = rises(earlier, later)
    assert (found.counter, found.node, found.by) == ("edac_corrected", "n1", by)
    assert found.per_hour == pytest.approx(per_hour)


def test_what_has_no_two_readings_has_no_rate() -> None:
    earlier = table(n1=node(1e9, edac_corrected=1), n2={"now.edac_corrected": "1"})
    again = table(n1=node(1e9, edac_corrected=9), n2=node(2e9, edac_corrected=9), n3=node(2e9))
    assert not list(rises(earlier, again))
    odd = table(n1={**node(2e9), "now.edac_corrected": "many"})
    assert not list(rises(earlier, odd))
    assert with_rates(again, earlier).facts_of("n1") == again.facts_of("n1")


def test_a_node_that_does_not_tell_its_uptime_was_not_started_in_between() -> None:
    later = table(n1={**node(1e9 + HOUR, edac_corrected=9), "now.uptime_s": "unknown"})
    (one,) = rises(table(n1=node(1e9, edac_corrected=4)), later)
    assert one.by == 5 and one.per_hour == pytest.approx(5.0)


def test_ports_of_a_node_are_judged_together_and_each_is_told() -> None:
    earlier = {f"n{i}": node(1e9, edac_corrected=5) for i in range(8)}
    later = {f"n{i}": node(1e9 + HOUR, edac_corrected=5) for i in range(8)}
    for i in range(8):
        for key in (SYMBOLS, OTHER):
            earlier[f"n{i}"][key] = "1000"
            later[f"n{i}"][key] = "1100" if i == 3 else "1010"
        for name in ("link_downed", "link_error_recovery"):
            earlier[f"n{i}"][f"now.ib_mlx5_0_1_{name}"] = "2"
            later[f"n{i}"][f"now.ib_mlx5_0_1_{name}"] = "3" if i == 6 else "2"
    later["n5"]["now.edac_corrected"] = "60"
    rated = with_rates(table(**later), table(**earlier))
    assert rated.facts_of("n3")["rate.ib_symbol_error"] == "200"
    assert rated.facts_of("n0")["rate.ib_symbol_error"] == "20"
    found = {each.rule: each.nodes for each in judge(rated, load(), {}).findings}
    assert found == {
        "infiniband-symbol-errors": "n3",
        "corrected-errors-rate": "n5",
        "infiniband-links-stay-up": "n6",
    }
    told = [each.counter for each in rises(table(**earlier), table(**later)) if each.by == 100]
    assert told == [SYMBOLS[4:], OTHER[4:]]
    assert not judge(table(**later), load(), {}).findings
