"""What a bundle tells of its runs."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from seatrial.execute.backends import (
    PROGRESS,
    BundleLine,
    Job,
    bundle_list,
    bundle_script,
    read_progress,
)


@pytest.mark.parametrize(
    "odd", ["start r1 nan", "start r1 inf", "start r1 1e999", "end r1 x y", ""]
)
def test_odd_lines_are_left_out(tmp_path: Path, odd: str) -> None:
    """Times that are no numbers, too: a job may write what it likes."""
    (tmp_path / PROGRESS).write_text(f"{odd}\nstart r2 17.5\nend r2 0 done\nstart r3 18")
    found = read_progress(tmp_path, 0)
    assert found is not None
    lines, end = found
    assert lines == [BundleLine("r2", time=17.5), BundleLine("r2", exit_code=0, reason="done")]
    assert end == len(f"{odd}\nstart r2 17.5\nend r2 0 done\n")


@pytest.mark.parametrize(("again", "code", "times"), [("7_0", 0, 2), ("8_0", 93, 1)])
def test_a_bundle_goes_on_only_in_the_job_that_claimed_it(
    tmp_path: Path, again: str, code: int, times: int
) -> None:
    """Both have a restart count: that of a job which inherits it of its driver is not its own."""
    run = tmp_path / "r1"
    run.mkdir()
    (run / "job.sh").write_text("echo ran >> ../ran; kill -9 $(cat ../bundle)\n")
    (tmp_path / "runs").write_text(bundle_list([Job("r1", run, 1, 1, 1, 1, 60.0, "", False)]))
    job = "${SLURM_ARRAY_JOB_ID-}_${SLURM_ARRAY_TASK_ID-}"
    (tmp_path / "job.sh").write_text(bundle_script(tmp_path, 1, 1, job))
    line = ["bash", "-c", "echo $$ > bundle; exec bash job.sh"]
    ends = []
    for array in ("7", again.partition("_")[0]):
        slurm = {"SLURM_ARRAY_JOB_ID": array, "SLURM_ARRAY_TASK_ID": "0"}
        env = {"PATH": os.environ["PATH"], "SLURM_RESTART_COUNT": "1", **slurm}
        ends.append(subprocess.run(line, cwd=tmp_path, env=env, check=False).returncode)
        (run / "job.sh").write_text("echo ran >> ../ran\n")
    assert ends == [-9, code]
    assert (tmp_path / "ran").read_text().split() == ["ran"] * times
    assert (tmp_path / PROGRESS).read_text().startswith("job 7_0\n")
