from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from msgspec.structs import replace

from seatrial.cli.options import parsed_label
from seatrial.errors import UsageError
from seatrial.model import codes
from seatrial.results.selection import Side, gather, parse_side
from seatrial.results.store.ingest import synced
from seatrial.results.store.schema import Store
from seatrial.units import moment_of
from tests.results.store.trials import NOON, a_case

from .figures import TRIAD, Measuring, bound

DAY = 86400 * 10**9


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    folder = tmp_path_factory.mktemp("trials")
    for number, (tag, machine) in enumerate((("day-1", "frost"), ("day-2", "frost"), ("x", "c5"))):
        cases = [
            bound(1, launch="mpi"),
            bound(2, launch="hybrid"),
            a_case(3, test="hpl", parameters={"flags": "-O3,-g"}, toolchain="clang", threads=8),
        ]
        trial = Measuring(folder, tag, cases, created=NOON + number * DAY, machine=machine)
        for case in cases:
            trial.measure(case, {TRIAD: 10.0 * (number + 1)})
        trial.measure(cases[0], {TRIAD: 1.0}, verdict=codes.TIMEOUT)
        trial.done()
    made_up = Measuring(folder, "day-3", [bound(1, launch="mpi")], created=NOON, rehearsed=True)
    made_up.measure(made_up.cases[0], {TRIAD: 99.0})
    made_up.done()
    with synced(folder / "store.sqlite", folder) as opened:
        yield opened


def side(store: Store, text: str) -> Side:
    return gather(store, parse_side(text))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("day-1", "day-1 mpi, day-1 hybrid, day-1 O"),
        ("day-1:toolchain=gc*", "day-1 mpi, day-1 hybrid"),
        ("day-1:launch=hybrid", "day-1 hybrid"),
        ("day-1:param.launch=h*", "day-1 hybrid"),
        ("day-*:launch=mpi", "day-1 mpi, day-2 mpi"),
        ("@machine=c5,test=strea", "x mpi, x hybrid"),
        ("@machine=frost,launch=m*,until=2026-11-22", "day-1 mpi"),
        ("@launch=mpi,since=2026-11-22", "day-2 mpi, x mpi"),
        ('day-1:flags="-O3,-g"', "day-1 O"),
        ("x:threads=8", "x O"),
        ("x:tag=node,test=hpl", "x O"),
        ("day-3", "day-3 mpi"),
        ("@rehearsed=yes", "day-3 mpi"),
        ("x:rehearsed=no,launch=mpi", "x mpi"),
    ],
)
def test_what_a_side_selects(store: Store, text: str, expected: str) -> None:
    cases = side(store, text).cases
    assert ", ".join(f"{c.trial} {c.attribute('launch') or 'O'}" for c in cases) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "names no trial"),
        ("day-1:", "names no trial or no condition"),
        ("day-1:gcc", "'gcc' is no NAME=VALUE"),
        ("@machine=a,machine=b", "machine is there twice"),
        ("day", "could be several trials"),
        ("night", "no trial 'night'"),
        ("night-*", "no trial fits"),
        ("@machine=nowhere", "no trial fits"),
        (
            "day-1:toolchain=intel",
            "no case of it fits; there are test hpl, stream; toolchain clang",
        ),
        ("day-1:toolchian=gcc", r"'toolchian' is no condition \(machine.*parameter.*flags, launch"),
        ("day-1:since=yesterday", "since: 'yesterday' is no time"),
        ("day-1:since=2030-01-01", "no run of it was created in that time"),
        ("@rehearsed=maybe", "rehearsed is yes or no"),
        ("day-3:rehearsed=no", "day-3 is a rehearsal"),
    ],
)
def test_what_selects_nothing_is_told(store: Store, text: str, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        side(store, text)


def test_rehearsed_trials_never_mix_with_measured_ones(store: Store) -> None:
    assert [trial.tag for trial in side(store, "day-*").trials] == ["day-1", "day-2"]
    assert [trial.tag for trial in side(store, "@").trials] == ["day-1", "day-2", "x"]


def test_what_runs_count(store: Store) -> None:
    (mpi,) = side(store, "day-2:launch=mpi").cases
    assert mpi.values == {TRIAD: [20.0], ("elapsed", "s", "lower"): [1.0]}
    assert mpi.excluded == {"timeout": 1} and len(mpi.runs) == 1


def test_a_metric_called_elapsed_is_taken_for_the_scripts_time(tmp_path: Path) -> None:
    trial = Measuring(tmp_path, "own", [bound(1), bound(2), bound(3)])
    trial.measure(trial.cases[0], {("elapsed", "min", "lower"): 3.0}, elapsed=180)
    trial.measure(trial.cases[0], {("elapsed", "min", "lower"): 4.0}, elapsed=240)
    trial.measure(trial.cases[1], elapsed=60)
    trial.measure(trial.cases[2], {("elapsed", "s", "lower"): 58.0}, elapsed=60)
    trial.measure(trial.cases[2], {("elapsed", "s", "lower"): 57.0}, elapsed=60)
    trial.done()
    with synced(tmp_path / "store.sqlite", tmp_path) as store:
        first, second, third = side(store, "own").cases
    assert first.values == {("elapsed", "min", "lower"): [3.0, 4.0]}
    assert third.values == {("elapsed", "s", "lower"): [58.0, 57.0]}
    assert second.values == {("elapsed", "s", "lower"): [60.0]}


def test_moments() -> None:
    assert moment_of("2h", now=7200.5) == 500_000_000
    assert moment_of("1970-01-01T00:00+01:00") == -3600 * 10**9


def test_labels_of_trials(tmp_path: Path) -> None:
    for tag, labels in (
        ("a", {"load": "dedicated", "case": "one"}),
        ("b", {"load": "production"}),
        ("c", {}),
    ):
        trial = Measuring(tmp_path, tag, [bound(1, launch="mpi")])
        trial.measure(trial.cases[0])
        trial.done()
        record = trial.folder.record()
        asked = replace(record.asked, labels=labels)
        file = trial.folder.path / "trial.json"
        file.write_bytes(msgspec.json.encode(replace(record, asked=asked)))
    with synced(tmp_path / "store.sqlite", tmp_path) as opened:
        for text, tags in (
            ("@load=dedicated", ["a"]),
            ("@load=*", ["a", "b"]),
            ("@load=*,launch=mpi,case=one", ["a"]),
            ("a:load=dedicated", ["a"]),
        ):
            assert [trial.tag for trial in side(opened, text).trials] == tags, text
        with pytest.raises(UsageError, match="no case of it fits"):
            side(opened, "@load=odd")
        with pytest.raises(UsageError, match=r"'laod' is no condition .* no label of its trials"):
            side(opened, "@laod=dedicated")


def test_a_label_is_a_name_and_a_value() -> None:
    assert parsed_label("load=dedicated") == ("load", "dedicated")
    assert parsed_label("where=a = b") == ("where", "a = b")
    for text in ("load", "load=", "=x", "9a=b", "load=a,b", 'load="a"', "load=" + "x" * 101):
        with pytest.raises(ValueError, match="write NAME=VALUE"):
            parsed_label(text)
