"""Files that must be the same bit for bit, with learned sums, through the commands."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from seatrial.journal.events import RunJudged
from tests.programs import Workplace

REFERENCES = "machines/here/references.yaml"


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    place = Workplace(tmp_path)
    place.machine = tmp_path / "machines" / "here.yaml"
    place.machine.parent.mkdir()
    place.local(toolchains={"gcc": {}, "intel": {}})
    write(place)
    return place


def write(place: Workplace, script: str = 'echo "$n $TOOLCHAIN ${WHAT-}" > restart.nc') -> None:
    place.test(
        "climate",
        script,
        parameters={"n": [1, 2]},
        toolchains=["*"],
        verify=[{"identical": "restart.nc"}],
    )


def run(place: Workplace, tag: str, *words: str) -> int:
    return place.run("--name", tag, "--toolchain", "*", *words).code


def entries(place: Workplace) -> list[dict[str, object]]:
    found = yaml.safe_load((place.folder / REFERENCES).read_text())["references"]
    assert isinstance(found, list)
    return found


def test_learned_by_case_and_toolchain_and_then_asked_for(place: Workplace) -> None:
    first = place.run("--name", "a", "--toolchain", "*", "--repeat", "2")
    assert first.code == 0
    assert "no sum of restart.nc of climate has been learned" in first.err
    judged = place.events("a", RunJudged)
    assert {event.reason for event in judged} == {"no sum of restart.nc has been learned"}
    accepted = place.seatrial("reference", "accept", "a")
    assert accepted.code == 0
    assert "4 references written" in accepted.out
    found = entries(place)
    assert len({entry["sha256"] for entry in found}) == 4
    assert {(str(entry["where"]), entry["toolchain"]) for entry in found} == {
        (str({"n": n}), name) for n in (1, 2) for name in ("gcc", "intel")
    }
    assert all(entry["learned"]["runs"] == 2 for entry in found)  # type: ignore[index]
    again = place.run("--name", "b", "--toolchain", "*")
    assert again.code == 0
    assert "no sum" not in again.err
    assert {event.reason for event in place.events("b", RunJudged)} == {""}
    listed = place.seatrial("reference", "list", "-m", "here")
    assert listed.out.count("restart.nc") == 4

    place.env["WHAT"] = "new"
    assert run(place, "c") == 1
    assert set(place.verdicts("c").values()) == {"wrong answer"}
    sums = {str(entry["sha256"])[:12] for entry in found}
    said = place.why("climate", "c")
    assert "restart.nc has sha256 " in said
    assert any(f"not {one}..." in said for one in sums)
    compared = place.seatrial("compare", "a", "c")
    assert compared.out.count("restart.nc differs, SHA-256") == 4
    assert all(one in compared.out for one in sums)
    assert "restart.nc differs" not in place.seatrial("compare", "a", "b").out
    # The change is agreed: its entries go, the trial is judged again, the new sums are learned.
    (place.folder / REFERENCES).unlink()
    (place.folder / REFERENCES).write_text("references: []\n")
    assert place.seatrial("judge", "c", "--again", "--reason", "new compiler").code == 0
    assert place.seatrial("reference", "accept", "c").code == 0
    assert run(place, "d") == 0


def test_figures_and_comments_stay(place: Workplace) -> None:
    text = "# by hand\nreferences:\n  - {test: x, metric: m, unit: s, max: 2}  # keep\n"
    (place.folder / "machines" / "here").mkdir()
    (place.folder / REFERENCES).write_text(text)
    assert run(place, "a") == 0
    for _ in range(2):  # the second time they are replaced
        assert place.seatrial("reference", "accept", "a").code == 0
        assert len(entries(place)) == 5
    written = (place.folder / REFERENCES).read_text()
    assert written.startswith("# by hand\n")
    assert "{test: x, metric: m, unit: s, max: 2}  # keep" in written


def test_an_acceptance_says_that_no_sum_was_learned(place: Workplace) -> None:
    component = {"component": "c", "toolchains": ["*"]}
    about = {"plan": "p", "machine": str(place.machine), "suites": [str(place.suite)]}
    (place.folder / "plan.yaml").write_text(yaml.safe_dump({**about, "components": [component]}))
    note = "no sum of restart.nc of climate has been learned, so every file passes"

    def said(name: str) -> tuple[str, str]:
        done = place.seatrial("accept", "plan.yaml", "-q", "--name", name, "--format", "json")
        assert done.code == 0, done.said
        made = place.seatrial("report", f"{name}-c", "-o", f"{name}.md")
        assert made.code == 0, made.said
        status = place.seatrial("accept", "status", "plan.yaml", "--name", name, "--format", "json")
        (trial,) = json.loads(status.out)["trials"]
        assert trial["criteria"][0][0]["why"] == "4 runs with a right answer"
        words = place.seatrial("accept", "status", "plan.yaml", "--name", name).out
        assert (f"unchecked  {note}" in words) is bool(trial["unlearned"]), words
        return trial["unlearned"], (place.folder / f"{name}.md").read_text()

    why, report = said("before")
    assert why == note
    assert f"> N{note[1:]}." in report
    assert place.seatrial("reference", "accept", "before-c").code == 0
    why, report = said("after")
    assert why == ""
    assert note[1:] not in report


def test_what_is_not_reproducible_is_not_learned(place: Workplace) -> None:
    write(place, "echo $SEATRIAL_RUN > restart.nc")
    assert run(place, "a", "--repeat", "2") == 0
    done = place.seatrial("reference", "accept", "a")
    assert done.code == 2
    assert "its runs wrote 2 different files" in done.err
    assert not (place.folder / REFERENCES).exists()


def test_a_file_that_is_missing_is_a_wrong_answer_all_the_same(place: Workplace) -> None:
    write(place, "true")
    assert run(place, "a") == 1
    assert set(place.verdicts("a").values()) == {"wrong answer"}


def test_the_more_specific_sum_counts_and_two_equal_ones_are_an_error(place: Workplace) -> None:
    (place.folder / "machines" / "here").mkdir()
    good = {"test": "climate", "file": "restart.nc", "sha256": "0" * 64}
    write(place, "printf '' > restart.nc")
    empty = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    specific = {**good, "where": {"n": 1}, "sha256": empty}
    both = {**good, "toolchain": "g*", "sha256": empty}
    (place.folder / REFERENCES).write_text(yaml.safe_dump({"references": [good, specific, both]}))
    assert run(place, "a") == 1
    assert place.verdicts("a") == {
        "climate{n=1}@gcc": "pass",
        "climate{n=1}@intel": "pass",
        "climate{n=2}@gcc": "pass",
        "climate{n=2}@intel": "wrong answer",
    }
    other = {**good, "where": {"n": 1}, "toolchain": "*c"}
    twin = {**good, "where": {"n": 1}, "toolchain": "g*"}
    (place.folder / REFERENCES).write_text(yaml.safe_dump({"references": [other, twin]}))
    assert run(place, "b") == 1
    assert place.verdicts("b")["climate{n=1}@gcc"] == "check error"
    assert "neither is more specific" in json.dumps(
        [event.reason for event in place.events("b", RunJudged)]
    )


@pytest.mark.parametrize(
    ("entry", "key"),
    [
        ({"test": "climate", "file": "f"}, "sha256"),
        ({"test": "climate", "file": "f", "sha256": "12"}, "sha256"),
        ({"test": "climate", "sha256": "0" * 64}, "sha256"),
        ({"test": "climate", "file": "f", "sha256": "0" * 64, "metric": "m"}, "metric"),
        ({"test": "climate", "file": "f", "sha256": "0" * 64, "value": 1.0}, "value"),
        ({"test": "climate", "value": 1.0, "unit": "s"}, "metric"),
        ({"test": "climate", "metric": "m", "value": 1.0}, "unit"),
    ],
)
def test_faults(place: Workplace, entry: dict[str, object], key: str) -> None:
    (place.folder / "machines" / "here").mkdir()
    (place.folder / REFERENCES).write_text(yaml.safe_dump({"references": [entry]}))
    done = place.run("--name", "a")
    assert done.code == 2
    assert f"references[0].{key}: " in done.err


def test_a_sum_that_is_no_sum(place: Workplace) -> None:
    place.test("climate", verify=[{"identical": "x", "sha256": "12"}])
    done = place.run("--name", "a")
    assert done.code == 2
    assert "verify[0].sha256: " in done.err
