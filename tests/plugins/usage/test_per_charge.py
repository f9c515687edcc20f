"""Figures by charge: which machine, and which setting, is best by what it costs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.model.test import JobOptions
from seatrial.results.tuned import FigureRatio
from seatrial.results.tuned_basis import basis_text, on_basis
from tests.cli.test_query_common import ask
from tests.results.figures import TIME, TRIAD, Measuring, bound
from tests.results.test_tuned import a_setting, a_tuning

MACHINE = """
machine: {name}
scheduler: slurm
slurm: {{partition: regular}}
nodes: {nodes}
toolchains: {{plain: {{}}}}
{usage}
"""


def describe(folder: Path, name: str, nodes: Any, charges: str = "") -> None:
    (folder / "machines").mkdir(exist_ok=True)
    usage = f"usage: {{charges: {name}-charges.yaml}}" if charges else ""
    (folder / f"machines/{name}-charges.yaml").write_text(charges)
    text = MACHINE.format(name=name, nodes=json.dumps(nodes), usage=usage)
    (folder / f"machines/{name}.yaml").write_text(text)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Carver: a node of 8 cores; hopper: two nodes of 24, three times as fast, and a charge of a
    fifth."""
    monkeypatch.chdir(tmp_path)
    describe(tmp_path, "carver", [{"names": "c[1-9]", "cores": 8}], "base: [{rate: 1}]\n")
    describe(
        tmp_path,
        "hopper",
        [{"names": "n[1-9]", "cores": 24}],
        "base: [{rate: 0.4}]\nfactors: [{factor: 1/2, queue: reg*}, {factor: 9, queue: low}]\n",
    )
    for name, nodes, speed in (("carver", 1, 80.0), ("hopper", 2, 240.0)):
        case = replace(bound(1), nodes=nodes, tasks=8 * nodes, tasks_per_node=8, threads=1)
        trial = Measuring(tmp_path, name, [case], machine=name)
        for i in range(6):
            rate = speed * (1 + i / 1000)
            trial.measure(case, {TRIAD: rate, TIME: 8000 / rate}, elapsed=3600.0)
        trial.done()
    return tmp_path


def test_figures_and_the_best_are_by_charge(place: Path) -> None:
    words = ("compare", "carver", "hopper", "--per", "charge", "--format", "json")
    rows = {
        row["metric"]: row for row in json.loads(ask(place, *words).out)["comparisons"][0]["rows"]
    }
    # Of an hour: 8 core-hours x 1 = 8; 48 core-hours x 0.4 x 1/2 = 9.6.
    assert (rows["triad"]["unit"], rows["time"]["unit"]) == ("MB/s/charge", "charge")
    assert rows["triad"]["first"]["median"] == pytest.approx(80.2 / 8, rel=1e-3)
    assert rows["triad"]["ratio"] == pytest.approx(3 * 8 / 9.6)
    assert rows["time"]["second"]["median"] == pytest.approx(8000 / 240.6 * 9.6 / 3600, rel=1e-3)
    for charges, best in (("base: [{rate: 1}]\n", "carver"), ("base: [{rate: 0.4}]\n", "hopper")):
        (place / "machines/hopper-charges.yaml").write_text(charges)
        asked = ("best", "*", "--over", "machine", "--metric", "triad", "--per", "charge")
        (table,) = json.loads(ask(place, *asked, "--format", "json").out)
        assert table["settings"][0]["values"] == {"machine": best}


def test_the_queue_is_that_of_the_test(place: Path) -> None:
    job = JobOptions(partition="low")
    case = replace(bound(1), nodes=2, tasks=16, tasks_per_node=8, threads=1, job=job)
    trial = Measuring(place, "dear", [case], machine="hopper")
    for i in range(6):
        trial.measure(case, {TRIAD: 240.0 + i, TIME: 33.0}, elapsed=3600.0)
    trial.done()
    words = ("compare", "hopper", "dear", "--per", "charge", "--format", "json")
    rows = json.loads(ask(place, *words).out)["comparisons"][0]["rows"]
    triad = next(row for row in rows if row["metric"] == "triad")
    # 48 core-hours x 0.4: x 1/2 in regular, x 9 in low.
    assert triad["first"]["median"] == pytest.approx(240.6 / 9.6, rel=1e-2)
    assert triad["second"]["median"] == pytest.approx(242.5 / 172.8)
    (place / "dear/cases.jsonl").unlink()
    assert "goes by queue, which its record does not tell" in ask(place, *words).err


@pytest.mark.parametrize(
    ("nodes", "charges", "said"),
    [
        ([{"names": "n[1-9]", "cores": 24}], "", "--per charge: hopper: its machine has no"),
        ([{"names": "n[1-9]", "cores": 24}], "base: [{rate: 0}]", "stream of hopper is free now;"),
        ([{"names": "n1", "cores": 24}], "base: [{rate: 1}]", "does not tell nodes that hopper"),
        (
            [{"names": "n[1-9]", "cores": 24}, {"names": "m[1-9]", "cores": 32}],
            "base: [{rate: 1}]",
            "may be charged 48 or 64 an hour, by the kind of its nodes",
        ),
        (
            [{"names": "n[1-9]", "cores": 24}],
            "base: [{rate: 1, account: m1}]",
            "base[0] goes by account, which its record does not tell",
        ),
        ([{"names": "n[1-9]", "cores": 24}], "base: [{rate: x}]", "charges.yaml:1: base[0].rate"),
    ],
)
def test_what_is_not_known_is_refused_by_name(
    place: Path, nodes: Any, charges: str, said: str
) -> None:
    describe(place, "hopper", nodes, charges)
    done = ask(place, "compare", "carver", "hopper", "--per", "charge")
    assert done.code == 2
    assert said in done.err, done.err


def test_the_best_setting_of_a_tuning_by_charge(place: Path) -> None:
    """The fastest setting takes twice the nodes; by charge the default is best."""
    describe(place, "hopper", [{"names": "n[1-9]", "cores": 24}], "base: [{rate: 0.2}]")
    default = a_setting(
        0, is_default=True, n=5, figure=100.0, to_best=FigureRatio(1.25, 1.2, 1.3, 5), nodes=1,
        node_hours=100 / 3600,
    )  # fmt: skip
    fast = a_setting(1, state="best", n=5, figure=80.0, nodes=2, node_hours=160 / 3600)
    found = a_tuning(default, fast, machine="hopper", unit="s")
    cases = [replace(bound(i), nodes=i + 1, tasks=1) for i in range(2)]
    based = on_basis(found, cases, "charge")
    assert [each.number for each in based.settings] == [0, 1]
    # 24 cores x 0.2 x 100 s, and 48 x 0.2 x 80 s.
    assert [each.figure for each in based.settings] == pytest.approx([480 / 3600, 768 / 3600])
    ratio = based.best.to_best
    assert ratio is not None
    assert (ratio.ratio, ratio.low, ratio.high) == pytest.approx((0.625, 0.6, 0.65))
    assert basis_text(found, based) == (
        "per charge, use way=0: 0.1333 charge, 0.625 times that of way=1 (0.600 to 0.650, n = 5)"
    )
    wide = replace(default, to_best=FigureRatio(1.25, None, 2.5, 5))
    unclear = on_basis(a_tuning(wide, fast, machine="hopper", unit="s"), cases, "charge")
    assert basis_text(found, unclear).endswith("; it cannot be told which is better")
    with pytest.raises(UsageError, match="is no rate, and no time in a known unit"):
        on_basis(a_tuning(default, fast, machine="hopper", unit="bogomips"), cases, "charge")
    with pytest.raises(UsageError, match="has no figures of settings"):
        on_basis(a_tuning(a_setting(0), machine="hopper", best=None), cases, "charge")
