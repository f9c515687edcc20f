"""Which processes of this host are taken for those of a job."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator

import pytest

from seatrial.execute.local import of_run


@pytest.fixture
def sleeper() -> Iterator[int]:
    """A process in a session of its own, with a run in its environment."""
    environment = {**os.environ, "SEATRIAL_RUN": "r1"}
    line = ["sh", "-c", "echo; read -r _"]
    pipe = subprocess.PIPE
    with subprocess.Popen(
        line, stdin=pipe, stdout=pipe, env=environment, start_new_session=True
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()  # its environment is there
        yield process.pid
        process.kill()


def test_a_process_that_left_the_session_is_known_by_its_environment(sleeper: int) -> None:
    assert of_run(1, "r1", [sleeper]) == [sleeper]
    assert of_run(1, "r2", [sleeper]) == []
    assert of_run(sleeper, "r2", [sleeper]) == [sleeper]


def test_the_session_of_another_job_is_not_looked_at(sleeper: int) -> None:
    assert of_run(1, "r1", [sleeper], others={sleeper}) == []
    assert of_run(sleeper, "r1", [sleeper], others={sleeper}) == [sleeper]
