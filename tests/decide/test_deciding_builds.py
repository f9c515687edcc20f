from __future__ import annotations

from seatrial.decide.in_flight import BuildTracker
from tests.decide.model import a_case


def test_builds_that_ran_with_a_driver_that_died_start_again_in_order() -> None:
    keys = [f"b{n}" for n in range(20)]
    builds = BuildTracker()
    for number, key in enumerate(keys):
        builds.wait(key, number)
    for key in reversed(keys):
        builds.start(key)
    assert list(builds.next(30)) == []
    builds.restart()
    assert list(builds.next(30)) == list(reversed(keys))


def test_of_a_prebuilt_binary_that_is_another_both_checksums_are_told() -> None:
    path = "/projects/benchmarks" + "/version-2" * 10 + "/bin/hpcc"
    why = f"{path} has the checksum {'a' * 64}, but the test names {'b' * 64}"
    builds = BuildTracker()
    builds.end("k", f"{why}\n")
    assert builds.failures([a_case(0, build="k")]) == f"the build of t failed: {why}"
