"""A tuning on Slurm: one allocation a block, which may end early; settings that cannot count."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
import yaml

from seatrial.journal.events import JobQueued, JobStarted, RunJudged, RunSubmitted
from seatrial.results.tuned import Tuned, TunedSetting, tuned
from tests.programs import Driving, Workplace
from tests.slurm.cluster import SlurmCluster

# Setting 3 crashes. Setting 4 asks for two ranks of a core each, and says that both had core 0.
SCRIPT = """
until [ -e "{go_on}" ] || [ "$way" != 1 ]; do sleep 0.1; done
[ $way != 3 ] || exit 7
cpu=$(( way == 4 ? 0 : 1 ))
for rank in 0 1; do
  echo "Hello from rank $rank, thread 0, on $(uname -n). (core affinity = $((rank * cpu)))"
done
echo "time: $(( way == 2 ? 500 : 1000 ))"
"""


@pytest.fixture
def begun(slurm_place: Workplace) -> Callable[..., Driving]:
    """Begins a tuning of four settings in two rounds; the default waits in its first run until a
    file says that it may go on."""

    def begin(allocations: int) -> Driving:
        place = slurm_place
        metric = {"find": r"time: (\d+)", "better": "lower", "unit": "ms"}
        place.test(
            "app",
            SCRIPT.format(go_on=place.folder / "go on"),
            parameters={"way": [1]},
            metrics={"time": metric},
            run={"tasks": 2, "launcher": "none"},
            verify=[{"placement": {}}],
        )
        about: dict[str, Any] = {
            "tune": "ways",
            "suite": "suite",
            "test": "app",
            "metric": "time",
            "axes": {"way": [1, 2, 3, 4]},
            "blocks": {"rounds": 2, "allocations": allocations},
            "cost": "100%",
        }
        (place.folder / "tune.yaml").write_text(yaml.safe_dump(about))
        return place.start("tune", "tune.yaml", "-m", str(place.machine), "--name", "t")

    return begin


def settings(place: Workplace) -> tuple[Tuned, dict[Any, TunedSetting]]:
    found = tuned(place.trial())
    return found, {each.values["way"]: each for each in found.settings}


@pytest.mark.slurm
def test_settings_that_never_count_stay_with_their_cause(
    slurm_place: Workplace, begun: Callable[..., Driving]
) -> None:
    place = slurm_place
    (place.folder / "go on").touch()
    with begun(allocations=1) as driving:
        done = driving.end()
    assert done.code == 0, done.said
    assert len({event.job_id for event in place.events("t", JobQueued)}) == 1
    found, by_way = settings(place)
    assert found.complete
    assert [by_way[way].state for way in (3, 4)] == ["failed", "failed"]
    assert by_way[3].cause.startswith("failed: exit code 7")
    assert by_way[4].cause.startswith("misplaced: ranks 0-1 on CPU 0")
    for way in (3, 4):
        gone = by_way[way]
        assert (gone.figure, gone.to_best, gone.to_default, gone.n) == (None, None, None, 0)
        assert gone.runs == 2
    assert by_way[2].figure == pytest.approx(500)
    assert "way=4: misplaced: ranks 0-1 on CPU 0" in done.out
    assert "note: an allocation may take up to " in done.err
    place.audit_log()


@pytest.mark.slurm
def test_an_allocation_that_ends_early_is_held_against_no_setting(
    slurm_place: Workplace, cluster: SlurmCluster, begun: Callable[..., Driving]
) -> None:
    """The run that is cut off has no figure; what did not begin runs in another allocation."""
    place = slurm_place
    with begun(allocations=1) as driving:

        def waits() -> bool:
            started = {event.run_id for event in place.events("t", JobStarted)}
            if not started:
                return False
            way_of = {case.id: case.parameters["way"] for case in place.trial().cases()}
            runs = place.events("t", RunSubmitted)
            return any(e.run_id in started and way_of[e.case] == 1 for e in runs)

        driving.until(waits, "the default runs")
        job = place.events("t", JobQueued)[0].job_id
        first = cluster.run("squeue", "-ho%N", f"-j{job}").strip()
        update = ("scontrol", "update", f"NodeName={first}")
        cluster.run(*update, "State=DRAIN", "Reason=test")
        cluster.run("scancel", job)

        def cut_off() -> bool:
            return any(e.verdict == "cancelled" for e in place.events("t", RunJudged))

        driving.until(cut_off, "its run is cut off")
        (place.folder / "go on").touch()
        try:
            done = driving.end()
        finally:
            cluster.run(*update, "State=RESUME")
    assert done.code == 0, done.said
    place.audit_log()
    found, by_way = settings(place)
    (block,) = found.blocks
    assert (len(block.nodes), block.nodes[0]) == (2, first)
    assert f"block 1 ran on different nodes ({', '.join(block.nodes)}), as an" in done.out
    verdicts = Counter(event.verdict for event in place.events("t", RunJudged))
    assert verdicts["cancelled"] == 1
    assert (by_way[1].state, by_way[1].n, by_way[1].runs) == ("in the race", 1, 2)
    assert by_way[1].cause.startswith("1 of 2 runs ended early: cancelled")
    assert by_way[2].n == 2
    row = found.figures[by_way[1].number]
    assert [each for each in row if each is not None] == pytest.approx([1000])
    assert len(row) == 2
