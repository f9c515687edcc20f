from __future__ import annotations

import pytest

from seatrial.cli.suspects import BESIDE, print_suspects
from seatrial.statistics.suspects import Suspect, Suspects
from seatrial.studies.evidence import NodeEvidence


def test_runs_that_are_left_out_are_told_with_the_count(
    capsys: pytest.CaptureFixture[str],
) -> None:
    evidence = NodeEvidence([], [], {"of broken@gcc, which never went well": 3})
    print_suspects(Suspects([], 12, 0, 0, 4, "nothing to compare with"), evidence)
    head, left_out = capsys.readouterr().out.splitlines()
    assert head.startswith("0 of 12 runs failed or were slow (3 runs more left out, as told below)")
    assert left_out == "left out: 3 runs: 3 of broken@gcc, which never went well"


def test_a_weak_p_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    """An accused with p = 0.8 would else look like a mistake."""
    accused = [
        Suspect(["n017"], "node", 9, 9, 0.3, 1e-6),
        Suspect(["n099"], "node", 3, 3, 0.1, 0.8),
    ]
    print_suspects(Suspects(accused, 200, 40, 1, 6000), NodeEvidence([], [], {}))
    sure, weak = capsys.readouterr().out.splitlines()[1:]
    assert sure.endswith("p = 1e-06, corrected")
    assert weak.endswith(f"p = 0.8, corrected: {BESIDE}")
