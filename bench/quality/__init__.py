"""How far judgements can be trusted: the tables of docs/explanations/quality.md by ``python -m
bench.quality``; by ``python -m bench quality`` the claims alone, each beside its bound."""

from __future__ import annotations

from bench.measuring import Row

COUNT = 50
NOISY = "6 of 200 at -8 %, noise 4 %"
HOPPING = "two modes 10 % apart, half and half"
CHANGED = "10 of 100, gauss 1 %"
SEED = 2027


def measure() -> list[Row]:
    """The claims, on series and fleets of seed 2027. Ratios above 1 miss the bound."""
    from bench.quality import changes, nodes, sides
    from bench.quality.detectors import confirmed

    scores = changes.scores(COUNT, SEED, only="**Seatrial: confirmed**")
    (threshold, best), (_, ours) = scores
    alarms = max(ours.alarms.values())
    wait = changes.delay(confirmed, COUNT // 4, SEED)
    found, named = nodes.links(COUNT, SEED)
    fleet = next(iter(nodes.FLEETS))
    told = nodes.accused(fleet, COUNT, SEED)
    bad = nodes.defective(NOISY, 20 * COUNT, SEED)
    hops = sides.false_alarms(HOPPING, 4, COUNT, SEED)
    changed, _ = sides.found_worse(CHANGED, 5, COUNT, SEED)
    return [
        _row("confirmed alarms per 100 null series, in the worst noise, at most", alarms, 10),
        _row("recall of steps of 5 %, at least", ours.recall[0.05], 0.9),
        _row("recall of steps of 3 %, at least", ours.recall[0.03], 0.75),
        _row("points until a step of 10 % is confirmed, median, at most", wait, 5),
        _row(f"F1, at least 0.3 above the {threshold}", ours.f1, best.f1 + 0.3),
        _row("nodes 5 % slow at 6 % noise of links: recall, at least", found.found / 4, 0.95),
        _row("the same: false nodes a run, at most", found.false, 0.1),
        _row("a group that is cut off is named, at least", named, 1),
        _row(f"suspects, {fleet}: all and no other, at least", told.exact, 0.95),
        _row(f"100 rows, 4 runs a side, {HOPPING}: one named falsely, at most", hops, 0.15),
        _row(f"rows 5 % worse, 5 runs a side, {CHANGED}: found, at least", changed, 0.9),
        _row(f"defective, {NOISY}: F1, at least the usual rule's", bad["ours"].f1, bad["usual"].f1),
    ]


def _row(claim: str, got: float, bound: float) -> Row:
    """Its ratio is below 1 where the claim holds, whichever way it is meant."""
    pair = (got, bound) if claim.endswith("at most") else (bound, got)
    ratio = pair[0] / pair[1] if pair[1] else float("inf")
    return Row(f"{claim} {bound:.2f}", f"{got:.2f}", "", f"{ratio:.2f}")
