"""Imports: a tree of tests of the OLCF Test Harness, as large as its public examples, and what its
runs leave."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

from bench.measuring import SEATRIAL, Row, median_of, scratch, timed

CODES = 28
NODES = (1, 2, 8)
BUFFERS = ("cpu", "gpu")
SOURCES = 1000  # files
RUNS = 5
RESULT_TESTS = 100
RESULTS = 100_000

INI = """\
[Replacements]
job_name = osu
nodes = {nodes}
walltime = 120
batch_filename = run.sh
build_cmd = ./build.sh
check_cmd = ./check.sh
report_cmd = ./check.sh
[EnvVars]
"""
TEMPLATE = """\
#!/bin/bash -l
#SBATCH -N __nodes__
#SBATCH -t __walltime__
cd __working_dir__
srun -N __nodes__ -n __nodes__ __build_dir__/osu > out
cp -rf __working_dir__/* __results_dir__
check_executable_driver.py -p __results_dir__ -i __harness_id__
"""


def measure() -> list[Row]:
    return [*_tree(), *_results()]


def _results() -> list[Row]:
    with scratch() as folder:
        write_results(folder / "applications", RESULT_TESTS, RESULTS // RESULT_TESTS)
        out = ["import", "oth-results", "applications", "-o", "history"]
        timing = timed([*SEATRIAL, *out], folder)
        return [
            Row(
                f"import of {RESULTS:,} results of the OLCF Test Harness ({RESULTS * 11:,} files) "
                "under 30 s",
                f"{timing.wall:.1f} s",
                "",
                f"{timing.wall / 30:.2f}",
            )
        ]


def _tree() -> list[Row]:
    with scratch() as folder:
        write_tree(folder / "applications")
        number = [0]

        def run() -> object:
            number[0] += 1
            out = f"suite{number[0]}"
            return timed([*SEATRIAL, "import", "oth", "applications", "-o", out], folder)

        timing = median_of(RUNS, run)  # type: ignore[arg-type]
        what = f"{CODES * len(NODES) * len(BUFFERS)} tests, {SOURCES} files of sources"
        copied = median_of(
            RUNS, lambda: timed(["cp", "-r", "applications", f"copy{number[0]}"], folder)
        )
        return [
            Row(
                f"import of a tree of the OLCF Test Harness ({what}) under 2 s",
                f"{timing.wall:.2f} s",
                f"`cp -r` {copied.wall:.2f} s",
                f"{timing.wall / 2:.2f}",
            )
        ]


def write_tree(folder: Path) -> None:
    application = folder / "osu"
    common = application / "Source" / "Common"
    common.mkdir(parents=True)
    for number in range(SOURCES):
        (application / "Source" / f"file{number}.c").write_text("int main() { return 0; }\n" * 20)
    (application / "Source" / "build.sh").write_text("#!/bin/bash\n")
    (common / "slurm.template.x").write_text(TEMPLATE)
    (common / "check.sh").write_text("#!/bin/bash\necho 'a = 1' > metrics.txt\n")
    for code in range(CODES):
        for nodes in NODES:
            for buffer in BUFFERS:
                scripts = application / f"collective_c{code}_{nodes}n_{buffer}" / "Scripts"
                scripts.mkdir(parents=True)
                (scripts / "rgt_test_input.ini").write_text(INI.format(nodes=nodes))
                for name in ("slurm.template.x", "check.sh"):
                    (scripts / name).symlink_to(f"../../Source/Common/{name}")


EVENTS = (
    ("110_logging_start", 0, "[NO_VALUE]"),
    ("120_build_start", 1, "[NO_VALUE]"),
    ("130_build_end", 31, "0"),
    ("140_submit_start", 32, "1/1"),
    ("150_submit_end", 33, "0"),
    ("160_job_queued", 34, "4711"),
    ("170_binary_execute_start", 60, "[NO_VALUE]"),
    ("180_binary_execute_end", 360, "[NO_VALUE]"),
    ("190_check_start", 361, "[NO_VALUE]"),
    ("200_check_end", 363, "0"),
)
MEMBERS = "rgt_system_log_tag=accept\tuser=me\thostname=n1\tmachine=frontier\tapp=a\ttest=t"


def write_results(folder: Path, tests: int, runs: int) -> None:
    """Write what ``runs`` of each of ``tests`` left, as the harness does."""
    for test in range(tests):
        home = folder / "osu" / f"test{test}"
        for run in range(runs):
            launch = 1_600_000_000 + 3600 * run + test
            status, archive = (home / name / f"{launch}.25" for name in ("Status", "Run_Archive"))
            status.mkdir(parents=True)
            archive.mkdir(parents=True)
            for name, seconds, value in EVENTS:
                moment = datetime.fromtimestamp(launch + seconds, UTC).replace(tzinfo=None)
                line = f"{moment.isoformat()}.250001\t{value}\t{MEMBERS}\tevent_name={name}\n"
                (status / f"Event_{name}.txt").write_text(line)
            (archive / "metrics.txt").write_text(f"latency = {2 + run % 7 / 100}\n")
