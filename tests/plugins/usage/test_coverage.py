"""Shares of the hours: above a size, and of what a suite's tests stand for."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from seatrial.plugins.usage.jobs import UserJob
from tests.cli.test_query_common import ask
from tests.plugins.usage.kept import keep
from tests.plugins.usage.made_year import SEVEN, made_year
from tests.programs import Workplace

HOUR = 3600


def ran(job: str, executable: str, cores: int, hours: int, **about: Any) -> UserJob:
    """Return a job that held its cores for some hours."""
    return UserJob(
        **{
            "machine": "frost",
            "job": job,
            "submitted": 1_000,
            "started": 2_000,
            "ended": 2_000 + hours * HOUR,
            "state": "completed",
            "executable": executable,
            "cores": cores,
            "nodes": -(-cores // 8),
            "account": "m1",
            **about,
        }
    )


def test_the_share_above_a_size_is_of_more_than_it(tmp_path: Path) -> None:
    jobs = [
        ran("1", "a", 8192, 3),
        ran("2", "a", 8193, 2),
        ran("3", "a", 100, 5, nodes=0),
    ]
    keep(tmp_path, jobs)
    found = json.loads(
        ask(tmp_path, "usage", "share", "--above", "8192cores", "--format", "json").out
    )
    assert found["total"]["above"] == 2 * 8193 * HOUR
    assert found["total"]["seconds"] == (3 * 8192 + 2 * 8193 + 500) * HOUR
    nodes = json.loads(
        ask(tmp_path, "usage", "share", "--above", "1024nodes", "--format", "json").out
    )
    assert nodes["total"]["unknown"] == 500 * HOUR
    assert nodes["total"]["share"] == pytest.approx(2 * 8193 / (3 * 8192 + 2 * 8193))


def test_the_planted_share_is_found(tmp_path: Path) -> None:
    year = made_year(2_000, seed=4)
    keep(tmp_path, year.jobs)
    words = ("usage", "share", "--above", "8192cores", "-m", "hopper", "--zone", "UTC")
    found = json.loads(ask(tmp_path, *words, "--format", "json").out)
    assert found["total"]["share"] == pytest.approx(year.planted.above_8192, abs=1e-3)
    told = ask(tmp_path, *words)
    assert f"{100 * found['total']['share']:.4g} % of" in told.out
    assert "of jobs of more than 8,192 cores" in told.out


def test_a_suite_stands_for_jobs_of_its_applications_and_sizes(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local(cores=4)
    place.test("small", app="vasp")
    place.test("other", app="nobody")
    place.test("large", app="namd", run={"nodes": 1000})
    jobs = [
        ran("1", "/opt/vasp_std", 1, 40),  # the test's size
        ran("2", "/opt/vasp_std", 2, 10),  # twice
        ran("3", "/opt/vasp_std", 64, 2),  # another size of its application
        ran("4", "/opt/namd2", 16, 10),
        ran("5", "/opt/namd2", 48, 1),
        ran("6", "/opt/secret", 4, 5),
    ]
    keep(place.trials, [replace(job, machine="here") for job in jobs])
    words = ("usage", "coverage", "suite", "-m", str(place.machine))
    done = place.seatrial(*words, "--format", "json")
    assert done.code == 0, done.err
    found = json.loads(done.out)
    whole = 40 + 20 + 128 + 160 + 48 + 20
    total = {name: value / HOUR for name, value in found["total"].items() if name != "word"}
    assert total == {"seconds": whole, "of_application": 188, "of_size": 60}
    assert found["unused"] == ["nobody"]
    first, second = found["add"]
    # A test of 32 cores is within a factor of 2 of both sizes of NAMD.
    assert (first["application"], first["cores"]) == ("NAMD", 32)
    assert first["gain"] == pytest.approx(208 / whole)
    assert (second["application"], second["gain"]) == ("VASP", pytest.approx(128 / whole))
    assert second["share"] == pytest.approx((whole - 20) / whole)
    assert any("large" in note for note in found["notes"])  # it does not fit the machine
    assert any("executable secret" in note for note in found["notes"])
    exactly = json.loads(place.seatrial(*words, "--within", "1", "--format", "json").out)
    assert exactly["total"]["of_size"] == 40 * HOUR


def test_the_seven_codes_are_found_to_be_85_per_cent(tmp_path: Path) -> None:
    place = Workplace(tmp_path)
    place.local(cores=4)
    place.machine.write_text(place.machine.read_text().replace("machine: here", "machine: hopper"))
    for code in SEVEN:
        place.test(code, app=code.upper())
    year = made_year(2_000, seed=6)
    keep(place.trials, year.jobs)
    rules = "".join(
        f"  - {{application: {code}, executable: {code}.x, name: ['{code}_*', {code}-prod]}}\n"
        for code in {*year.applications} - {"vasp"}
    )
    (tmp_path / "apps.yaml").write_text(f"applications:\n{rules}")
    words = ("usage", "coverage", "suite", "-m", str(place.machine), "--applications", "apps.yaml")
    found = json.loads(place.seatrial(*words, "--format", "json").out)
    total = found["total"]
    assert total["of_application"] / total["seconds"] == pytest.approx(year.planted.seven, abs=2e-3)
    shares = [each["gain"] for each in found["add"]]
    assert shares == sorted(shares, reverse=True) and found["add"][0]["application"] in SEVEN
