"""Files that runs hold open, as their nodes see them, and what Lustre's servers count for jobs."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from seatrial.journal.events import MetricRecorded, RunJudged
from tests.programs import Workplace
from tests.slurm.cluster import SlurmCluster

COUNTERS = Path(__file__).parents[1] / "judge/data/job_stats.mdt-2.12"

# It has two files below a folder open, and one elsewhere, until so many were seen at one look.
HOLD = """
import collections, pathlib, sys, time
folder, seen, end = pathlib.Path(sys.argv[1]), pathlib.Path("open_files.txt"), time.time() + 30
held = [open(folder / f"{number}", "a") for number in range(2)] + [open("/etc/passwd")]
while time.time() < end:
    looks = collections.Counter()
    for line in seen.read_text().splitlines() if seen.exists() else []:
        looks[line.split()[0]] += int(line.split()[2])
    if max(looks.values(), default=0) >= int(sys.argv[2]):
        break
    time.sleep(0.05)
"""


def figures(place: Workplace, tag: str = "t") -> dict[str, float]:
    return {each.metric: float(each.value or 0) for each in place.events(tag, MetricRecorded)}


def test_the_files_that_a_run_holds_open_are_a_figure(place: Workplace) -> None:
    lustre, scratch = place.folder / "root", place.folder / "scratch"
    scratch.mkdir()
    for number in (40, 2):
        file = lustre / f"sys/fs/lustre/ldlm/namespaces/scratch-MDT{number}-mdc/lock_count"
        file.parent.mkdir(parents=True)
        file.write_text(f"{number}\n")
    (place.folder / "hold.py").write_text(HOLD)
    use = {"every": "1s", "paths": [str(scratch)]}
    place.local(cores=2, file_use=use, environment={"SEATRIAL_ROOT": str(lustre)})
    hold = f"python3 {place.folder}/hold.py {scratch} 6 &\n"
    place.test("t", hold * 3 + "wait")
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    assert figures(place) == {"open_files": 6, "locks": 42}
    (run,) = place.events("t", RunJudged)
    said = place.seatrial("show", run.run_id).out
    assert "open_files" in said and "6 files" in said and "42 locks" in said, said
    left = subprocess.run(["pgrep", "-f", f"file_use.sh {run.run_id}"], capture_output=True)
    assert left.returncode == 1, "the looks end with the run"


@pytest.mark.slurm(hosts=True)
def test_all_nodes_are_looked_at_and_the_servers_are_asked_for_the_job(
    slurm_place: Workplace, cluster: SlurmCluster
) -> None:
    """The two runs are tasks of an array: their numbers are not those of the array."""
    place = slurm_place
    shared = place.folder
    (shared / "hold.py").write_text(HOLD)
    (shared / "scratch").mkdir()
    lctl = (
        f"cd {shared}; cat job.* | while read -r job opens; do "
        f'sed -e "s/ 4711$/ $job/; s/ 27,/ $opens,/" {COUNTERS}; done'
    )
    use = {"every": "1s", "paths": [str(shared / "scratch")], "job_stats": lctl}
    place.slurm(cluster, file_use=use)
    place.test(
        "t",
        'echo "$SLURM_JOB_ID $size" > ../../../../../job.$size\n'
        f"srun python3 {shared}/hold.py {shared}/scratch $((size * 2))\n",
        run={"nodes": "size", "tasks_per_node": 1, "launcher": "none"},
        parameters={"size": [1, 2]},
    )
    done = place.run("--name", "t")
    assert done.code == 0, done.said
    found: dict[str, dict[str, float]] = {}
    for each in place.events("t", MetricRecorded):
        found.setdefault(each.run_id, {})[each.metric] = float(each.value or 0)
    one, two = sorted(found.values(), key=lambda each: each["open_files"])
    assert (one["open_files"], two["open_files"]) == (2, 4)
    assert (one["lustre_opens"], two["lustre_opens"]) == (1 + 10, 2 + 10)
    assert two["lustre_metadata_ops"] - one["lustre_metadata_ops"] == 1


@pytest.mark.slurm
def test_servers_that_do_not_answer_cost_a_run_nothing_but_these_figures(
    slurm_place: Workplace, cluster: SlurmCluster
) -> None:
    place = slurm_place
    place.slurm(cluster, file_use={"job_stats": "echo no route to mds1 >&2; exit 3"})
    place.test("t", "true", repeat=2)
    assert place.run("--name", "t").code == 0
    assert figures(place) == {}
    assert place.alerts() == (
        "file_use.job_stats: it ended with exit code 3: no route to mds1; "
        "runs have no figures of Lustre's servers"
    )


def test_faults_of_the_machine_are_told(place: Workplace) -> None:
    place.test("t", "true")
    use = {"every": "0.1s", "paths": ["lus"], "job_stats": "true", "job_id": "%u", "timeout": "x"}
    place.local(file_use=use)
    said = place.seatrial("list", str(place.suite), "-m", str(place.machine)).err
    for fault in (
        "file_use.every: 0.1s is less than a second",
        "file_use.paths[0]: 'lus' is no absolute path",
        "file_use.job_stats: its jobs have no numbers by which Lustre counts; leave it out",
        "file_use.job_id: '%u' has no %j, the number of the job",
        "file_use.timeout: ",
    ):
        assert fault in said, said
