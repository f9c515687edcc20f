"""The submit filter: a job judged by a user's file in slurmctld, beside reading the same file.

The functions are called 1,000 times in one submission, in the Lua of a real slurmctld, and timed
there: starting `sbatch` takes much longer than what is measured.
"""

from __future__ import annotations

import os
import re
import subprocess
from pathlib import Path

from tests.slurm.cluster import ClusterOptions, SlurmCluster

from bench.measuring import Row, ratios, scratch
from seatrial.plugins.guard.quota import SubmitLimit, write_filter, write_user

CALLS, ROUNDS, LIMITS = 1000, 5, 20
TIMED = """
local judged = slurm_job_submit
local function milliseconds(call)
   local start = os.clock()
   for _ = 1, %(calls)d do call() end
   return 1000 * (os.clock() - start) / %(calls)d
end
function slurm_job_submit(job, partitions, uid)
   local ours = milliseconds(function() judged(job, partitions, uid) end)
   local read = milliseconds(function()
      local file = io.open(USERS .. "/" .. math.floor(uid), "r")
      file:read(65536)
      file:close()
   end)
   slurm.log_user("timed %%.6f %%.6f", ours, read)
   return judged(job, partitions, uid)
end
"""


def measure() -> list[Row]:
    with scratch() as folder:
        text = write_filter(folder).read_text() + TIMED % {"calls": CALLS}
        limits = [
            SubmitLimit(name=f"limit_{n}", refuse="1 == 1", message="No.", nodes_from=100 + n)
            for n in range(LIMITS)
        ]
        write_user(folder, os.getuid(), limits, 4_000_000_000)
        with SlurmCluster(
            Path(folder) / "cluster", ClusterOptions(nodes=1, job_submit=text)
        ) as slurm:
            pairs = [_pair(slurm) for _ in range(ROUNDS)]
    ours, theirs = zip(*pairs, strict=True)
    return [
        Row(
            f"submit filter: under 1 ms a job, {LIMITS} limits",
            f"{min(ours):.3f} to {max(ours):.3f} ms",
            f"reading the same file {min(theirs):.3f} to {max(theirs):.3f} ms",
            ratios(pairs),
        )
    ]


def _pair(cluster: SlurmCluster) -> tuple[float, float]:
    line = ["sbatch", "--parsable", "--wrap=true"]
    done = subprocess.run(line, env=cluster.env, capture_output=True, text=True, check=True)
    found = re.search(r"timed (\S+) (\S+)", done.stderr)
    assert found is not None, done.stderr
    return float(found[1]), float(found[2])
