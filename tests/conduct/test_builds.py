from __future__ import annotations

from seatrial.conduct.builds import Builds


def test_builds_that_ran_with_a_driver_that_died_start_again_in_order() -> None:
    keys = [f"b{n}" for n in range(20)]
    builds = Builds()
    for number, key in enumerate(keys):
        builds.wait(key, number)
    for key in reversed(keys):
        builds.start(key)
    assert list(builds.next(30)) == []
    builds.restart()
    assert list(builds.next(30)) == list(reversed(keys))
