"""Imports: a tree of tests of the OLCF Test Harness, as large as its public examples."""

from __future__ import annotations

from pathlib import Path

from bench.measuring import SEATRIAL, Row, median_of, scratch, timed

CODES = 28
NODES = (1, 2, 8)
BUFFERS = ("cpu", "gpu")
SOURCES = 1000  # files
RUNS = 5

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
