"""Completion as bash asks for it, through the command itself."""

from __future__ import annotations

from tests.programs import Workplace


def completed(place: Workplace, *words: str) -> list[str]:
    """What is offered for the last word."""
    line = " ".join(["seatrial", *words])
    place.env |= {"_SEATRIAL_COMPLETE": "bash_complete", "COMP_WORDS": line}
    place.env["COMP_CWORD"] = str(len(words))
    try:
        done = place.seatrial()
    finally:
        for name in ("_SEATRIAL_COMPLETE", "COMP_WORDS", "COMP_CWORD"):
            del place.env[name]
    assert not done.err
    return [line.partition(",")[2] for line in done.out.split()]


def test_trials_runs_machines_and_folders_are_completed(place: Workplace) -> None:
    place.test("one")
    place.test("deep/two")
    for tag in ("night-1", "night-2", "day"):
        assert place.run("--name", tag).code == 0
    assert completed(place, "resume", "nig") == ["night-1", "night-2"]
    assert completed(place, "compare", "day", "") == ["day", "night-1", "night-2"]
    assert completed(place, "--trials", "nowhere", "resume", "") == []
    assert completed(place, "history", "--test", "") == ["deep/two", "one"]
    assert completed(place, "show", "d") == ["day/"]
    runs = {path.parent.name for path in (place.trials / "day/runs").glob("**/job.sh")}
    assert len(runs) == 2 and {*completed(place, "show", "day/")} == {f"day/{r}" for r in runs}
    (place.folder / "machines").mkdir()
    (place.folder / "machines/frost.yaml").write_text("machine: frost\n")
    assert completed(place, "run", "-m", "fr") == ["frost"]
    assert "local" in completed(place, "machine", "l")
    assert completed(place, "run", "sui") == ["sui"]
    assert "show" in completed(place, "sh")


def test_verdicts_are_completed_as_one_word(place: Workplace) -> None:
    assert completed(place, "runs", "--verdict", "wr") == ["wrong-answer"]
    assert {"pass", "node-failure"} <= {*completed(place, "runs", "--verdict", "")}


def test_conditions_of_sides_are_completed(place: Workplace) -> None:
    assert completed(place, "compare", "b5", "w5:to") == ["w5:toolchain="]
    assert completed(place, "compare", "b5", "w5:machine=x,te") == ["w5:machine=x,test="]
    assert completed(place, "compare", "@mach") == ["@machine="]
    assert completed(place, "compare", "to") == []
