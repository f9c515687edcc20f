"""How Slurm tells drained nodes, and how many are drained without a question."""

from __future__ import annotations

import pytest

from seatrial.execute import detect

NODE = "NodeName=n1 Arch=x86_64 State={state} Partitions=all AveWatts=0 Reason={reason}"


@pytest.mark.parametrize(
    ("state", "reason", "reasons"),
    [
        (
            "IDLE+DRAIN",
            "seatrial: a, did not answer [root@2026-11-28T18:00:00]",
            "a|did not answer",
        ),
        ("IDLE+DRAIN", "seatrial: a   Comment=two words", "a"),
        (
            "DOWN+DRAIN",
            "seatrial: a; disk is ordered [ann@2026-11-28T18:00:00]",
            "a; disk is ordered",
        ),
        ("IDLE+DRAIN", "by hand [root@2026-11-28T18:00:00]", None),
        ("IDLE+DRAIN", "not seatrial: a [root@2026-11-28T18:00:00]", None),
        ("IDLE", "seatrial: a [root@2026-11-28T18:00:00]", None),
    ],
)
def test_the_reasons_of_our_note(
    state: str, reason: str, reasons: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = NODE.format(state=state, reason=reason)
    monkeypatch.setattr(detect, "ask_slurm", lambda *command: f"{line}\n")
    told = detect.states()["n1"]
    assert bool(told.note) is (reasons is not None)
    assert told.reasons == (reasons.split("|") if reasons else [""])


@pytest.mark.parametrize(
    ("nodes", "share", "limit"), [(1, 0.05, 1), (8, 0.05, 1), (60, 0.05, 3), (100, 0.29, 29)]
)
def test_the_limit_is_a_share_and_at_least_one_node(nodes: int, share: float, limit: int) -> None:
    assert detect.limit_of(nodes, share) == limit
