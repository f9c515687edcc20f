"""The suite of I/O: parallel HDF5, PnetCDF and fio of Debian, built and run for real with its Open
MPI. IOR, mdtest and elbencho are in no registry: stand-ins print what these programs printed when
they were run by hand (tests/judge/outputs/data), so that here only the recipes are tried."""

from __future__ import annotations

import hashlib
import json
import tarfile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import Done, Workplace
from tests.suites.test_probes import figures_of

SUITE = Path(__file__).parents[2] / "suites" / "io"
DATA = Path(__file__).parents[1] / "judge" / "outputs" / "data"
FIGURES = {"best", "mean", "total", "step_1", "step_2", "step_3", "step_4"}

# fio tells for PnetCDF, too, which has no program: tests/install-packages.sh io installs both.
needs_libraries = pytest.mark.needs("h5pcc.openmpi", "fio", "mpirun.openmpi")
needs_fio = pytest.mark.needs("fio")


@pytest.fixture
def here(place: Workplace) -> Workplace:
    """This host with four cores, as it seems, and the Open MPI of the packages."""
    launcher = {"kind": "mpirun", "flavour": "openmpi", "command": "mpirun.openmpi"}
    options = ["--bind-to", "none", "--oversubscribe"]
    chain = {"cflags": "-O1 -std=c11", "mpicc": "mpicc.openmpi"}
    started = {"launcher": {**launcher, "options": options}}
    place.local(cores=4, toolchains={"debian": {**chain, **started}})
    (place.folder / "data").mkdir()
    # An mpirun that ends removes the folder that others of the same user begin in.
    (place.folder / "tmp").mkdir()
    place.env["TMPDIR"] = str(place.folder / "tmp")
    place.env["OMPI_MCA_mpi_yield_when_idle"] = "1"
    return place


def run(place: Workplace, words: str, *settings: str) -> tuple[Done, dict[str, Any]]:
    more = (f"folder={place.folder / 'data'}", *settings)
    chosen = [word for each in more for word in ("--set", each)]
    machine = str(place.machine)
    done = place.seatrial(
        "run", str(SUITE), "-m", machine, "-k", words, *chosen, "--name", "t", timeout=600
    )
    return done, export_of(place)


def export_of(place: Workplace) -> dict[str, Any]:
    export: dict[str, Any] = json.loads(place.seatrial("export", "t", "--format", "json").out)
    return export


def said_by(place: Workplace, name: str) -> str:
    """What the runs of the trial left in a file."""
    files = (place.folder / "trials" / "t" / "runs").glob(f"*/*/{name}")
    return "".join(file.read_text() for file in files)


def stand_in(place: Workplace, name: str, text: str) -> None:
    programs = place.folder / "bin"
    programs.mkdir(exist_ok=True)
    (programs / name).write_text(text)
    (programs / name).chmod(0o755)
    place.env["PATH"] = f"{programs}:/usr/bin:/bin"


# ---- programs that write in steps ----------------------------------------------------------------


@needs_libraries
def test_programs_of_steps_give_the_rate_of_each(here: Workplace) -> None:
    """Four ranks, 4 MiB each, four steps; one file or one of each, collective or not, in pieces."""
    words = "h5write or ncwrite and (files=each or calls=collective)"
    done, export = run(here, words, "writers=4", "piece=1000K")
    assert done.code == 0, done.said
    assert figures_of(here, "t") == {"h5write": FIGURES, "ncwrite": FIGURES}
    assert len(export["runs"]) == 5  # collective calls are for one file only
    for one in export["runs"]:
        figures = {
            figure["name"]: figure["value"]
            for figure in export["metrics"]
            if figure["run_id"] == one["run_id"]
        }
        steps = [figures[f"step_{step}"] for step in range(1, 5)]
        assert figures["best"] == max(steps)
        assert figures["mean"] == pytest.approx(sum(steps) / 4, abs=0.1)
        # Steps are of the same size: the rate of all is the harmonic mean.
        assert figures["total"] == pytest.approx(4 / sum(1 / rate for rate in steps), rel=1e-2)
    assert not list((here.folder / "data").iterdir())


def test_steps_follow_the_memory_of_a_node(place: Workplace) -> None:
    (place.folder / "h5pcc").touch(mode=0o755)
    place.env["PATH"] = f"{place.folder}:/usr/bin:/bin"
    nodes = [{"names": "n[1-4]", "cores": 16, "memory": "64GiB"}]
    place._write_machine({"machine": "large", "scheduler": "slurm", "nodes": nodes})
    words = ("-m", str(place.machine), "--set", "memories=2", "--set", "hosts=1")
    done = place.seatrial("list", str(SUITE / "h5write"), *words, "--format", "json")
    assert done.code == 0, done.said
    # 2 x 64 GiB by 2 writers in 4 steps
    assert {case["parameters"]["bytes"] for case in json.loads(done.out)} == {16 << 30}


@needs_libraries
def test_a_wrong_value_is_a_wrong_answer(here: Workplace) -> None:
    here.env["WRITE_FLIP"] = "3"
    words = "(h5write or ncwrite) and calls=independent"
    done, export = run(here, words, "writers=4", "bytes=64K")
    assert done.code == 1, done.said
    assert [one["verdict"] for one in export["runs"]] == ["wrong answer"] * 4
    assert export["metrics"] == []
    # The middle of what rank 0 wrote: its own file, or the first part of the one.
    assert said_by(here, "stderr").count("step 3, value 4096: ") == 4


@needs_libraries
@pytest.mark.parametrize("name", ["h5write", "ncwrite"])
def test_a_run_killed_in_its_third_step_has_no_figure(here: Workplace, name: str) -> None:
    """The script kills the launcher when it has seen two steps."""
    folder = here.suite / "killed"
    folder.mkdir(parents=True)
    common = SUITE.parent / "probes" / "common" / "probe.h"
    sources = [SUITE / name / f"{name}.c", SUITE / "common" / "steps.h", common]
    for source in (*sources, SUITE / "h5write" / "figures.py"):
        (folder / source.name).write_bytes(source.read_bytes())
    test = yaml.safe_load((SUITE / "h5write" / "test.yaml").read_text())
    test |= yaml.safe_load((SUITE / name / "test.yaml").read_text())
    del test["requires"]
    test.pop("inherits", None)
    test["metrics"] = {"python": "figures.py:read"}
    test["build"]["sources"] = [source.name for source in sources]
    kill = f"($LAUNCH $BUILD/{name} -s 100000 -b 64K -m 64K -d $folder & echo $! > pid; wait $!) | "
    kill += (
        "while read -r line; do echo $line; case $line in 'step 2 '*) kill -9 $(cat pid);; esac;"
    )
    script = kill + " done; exit ${PIPESTATUS[0]}"
    test["run"] = {"tasks_per_node": "writers", "walltime": "10m", "script": script}
    (folder / "test.yaml").write_text(yaml.safe_dump(test))
    words = ("-k", "files=each", "--set", f"folder={here.folder / 'data'}", "--name", "t")
    done = here.run(*words)
    assert done.code == 1, done.said
    (one,) = (export := export_of(here))["runs"]
    assert (one["verdict"], export["metrics"]) == ("failed", []), one
    assert "step 2 of" in said_by(here, "stdout")


# ---- fio -----------------------------------------------------------------------------------------

OF_FIO = {
    f"{direction}{what}"
    for direction in ("write", "read")
    for what in ("", "_iops", "_latency", "_latency_p99")
}
# A disk that errs between writing and the check, and a fio that is killed.
ERRING_FIO = """#!/bin/bash
case "$*" in
*name=check*)
  data=$(ls -d $FOLDER/fio.*/data.0)
  printf X | dd of="$data" bs=1 seek=70000 conv=notrunc status=none ;;
*) [ -z "$KILLED" ] || { /usr/bin/fio "$@" | head -c 3000; kill -9 $$; } ;;
esac
exec /usr/bin/fio "$@"
"""


@needs_fio
def test_a_node_gives_its_figures_and_every_block_is_compared(here: Workplace) -> None:
    small = ("block=256K", "transfer=64K", "direct=0")
    done, _ = run(here, "fio", *small)
    assert done.code == 0, done.said
    assert figures_of(here, "t") == {"fio": OF_FIO}
    assert not list((here.folder / "data").iterdir())


@needs_fio
@pytest.mark.parametrize(("killed", "verdict"), [("", "wrong answer"), ("1", "failed")])
def test_a_node_that_errs_or_is_killed(here: Workplace, killed: str, verdict: str) -> None:
    stand_in(here, "fio", ERRING_FIO)
    here.env |= {"FOLDER": str(here.folder / "data"), "KILLED": killed}
    done, export = run(here, "fio and order=random", "block=256K", "transfer=64K", "direct=0")
    assert done.code == 1, done.said
    (one,) = export["runs"]
    assert one["verdict"] == verdict, one
    assert not killed or not export["metrics"]


@needs_fio
def test_without_space_nothing_is_started(here: Workplace) -> None:
    done, export = run(here, "fio and order=random", "writers=4", "block=40T")
    assert done.code == 1, done.said
    (one,) = export["runs"]
    assert (one["verdict"], export["metrics"]) == ("refused", []), one
    assert one["why"].startswith(f"no space: {here.folder}/data has ")
    assert " free, 160.0 TiB wanted: " in one["why"]
    assert not list((here.folder / "data").iterdir())


# ---- what no registry has ------------------------------------------------------------------------

WARNING = "WARNING: Incorrect data on read (2 errors found)."
OF_IOR = {f"{what}_{how}" for what in ("write", "read") for how in ("max", "min", "mean")}
MDTEST_WARNING = "ERROR: verifying the data on read (2 errors)! Take the performance"


def printing(output: str, filtered: str = "cat", code: int = 0) -> str:
    """A program whose rank 0 prints an output as it was captured."""
    rank = '[ "${OMPI_COMM_WORLD_RANK:-0}" = 0 ] || exit 0'
    told = 'printf "%s " "$@" > arguments'
    return f"#!/bin/bash\n{rank}\n{told}\n{filtered} {DATA / output}\nexit {code}\n"


# It writes its figures into a file; of wrong data it says so and has no row of READ.
ELBENCHO = f"""#!/bin/bash
printf "%s " "$@" > arguments
if [ -z "$ERRS" ]; then exec cp {DATA / "elbencho.out"} elbencho.csv; fi
grep -v ,READ, {DATA / "elbencho.out"} > elbencho.csv
echo "ERROR: Data verification failed. Offset: 300000; Expected value: 225" >&2
exit 1
"""
SMALL = ("hosts=1", "writers=2", "block=1M", "api=posix")


@pytest.fixture
def alone(here: Workplace) -> Workplace:
    """Programs start without a launcher: the stand-ins know no MPI."""
    here.local(cores=4, toolchains={"plain": {}}, launcher={"kind": "none"})
    stand_in(here, "ior", printing("ior-json.out"))
    stand_in(here, "mdtest", printing("mdtest-4-verified.out"))
    stand_in(here, "elbencho", ELBENCHO)
    return here


def test_recipes_check_the_data_and_give_the_figures(alone: Workplace) -> None:
    done, export = run(alone, "ior or mdtest or elbencho", *SMALL)
    assert done.code == 0, done.said
    found = figures_of(alone, "t")
    assert found["ior"] == OF_IOR
    assert {"file_creation_max", "file_removal_mean"} <= found["mdtest"]
    assert {"write", "read_iops", "rmfiles_entries"} <= found["elbencho"]
    assert len(export["runs"]) == 6  # of IOR: a file each, one; of mdtest: shared, private
    asked = said_by(alone, "arguments").split(f"{alone.folder}")
    assert sum("-b 1M -t 1M -s 1 -i 3 -F -w -r -C -e -W -R -o " in each for each in asked) == 1
    assert sum("-t 2 -b 1M --csvfile elbencho.csv --direct -s 2097152 " in each for each in asked)
    assert sum("-n 100 -i 3 -w 3901 -e 3901 -X -N 2 -u -d " in each for each in asked) == 1


def test_wrong_data_and_a_cut_output_are_seen(alone: Workplace) -> None:
    stand_in(alone, "ior", printing("ior-json.out", f"sed '60i {WARNING}'", 4))
    stand_in(alone, "mdtest", printing("mdtest-4-verified.out", f"sed '20i {MDTEST_WARNING}'"))
    alone.env["ERRS"] = "1"
    words = "((ior or elbencho) and files=each) or (mdtest and tree=shared)"
    done, export = run(alone, words, *SMALL)
    assert done.code == 1, done.said
    assert [one["verdict"] for one in export["runs"]] == ["wrong answer"] * 3
    for name, output in (("ior", "ior-json.out"), ("mdtest", "mdtest-4-verified.out")):
        stand_in(alone, name, printing(output, "head -n 15"))
    words = "(ior and files=each) or (mdtest and tree=shared)"
    chosen = [word for each in SMALL for word in ("--set", each)]
    done = alone.seatrial(
        "run", str(SUITE), "-m", str(alone.machine), "-k", words, *chosen, "--name", "cut"
    )
    assert done.code == 1, done.said
    export = json.loads(alone.seatrial("export", "cut", "--format", "json").out)
    assert [one["verdict"] for one in export["runs"]] == ["no figure"] * 2
    assert export["metrics"] == []


MAKEFILE = "all:\n\tchmod +x src/ior src/mdtest\n"


def test_a_tarball_is_built_if_its_sum_is_right(alone: Workplace) -> None:
    """The tarball of a site, whose `make` makes the stand-ins."""
    source = alone.folder / "ior-4.0.0"
    (source / "src").mkdir(parents=True)
    (source / "configure").write_text("#!/bin/sh\n")
    (source / "configure").chmod(0o755)
    (source / "Makefile").write_text(MAKEFILE)
    for name in ("ior", "mdtest"):
        (alone.folder / "bin" / name).rename(source / "src" / name)
    tarball = alone.folder / "source 4.tar.gz"
    with tarfile.open(tarball, "w:gz") as archive:
        archive.add(source, source.name)
    digest = hashlib.sha256(tarball.read_bytes()).hexdigest()
    words = "(ior and files=each) or (mdtest and tree=shared)"
    done, _ = run(alone, words, *SMALL, f"tarball={tarball}", f"sha256={digest}")
    assert done.code == 0, done.said
    assert figures_of(alone, "t").keys() == {"ior", "mdtest"}
    for wrong in ("", "0" * 64):
        chosen = ("--set", f"tarball={tarball}", *(("--set", f"sha256={wrong}") if wrong else ()))
        tag = f"wrong{len(wrong)}"
        done = alone.seatrial(
            *("run", str(SUITE), "-m", str(alone.machine), "-k", "ior and files=each"),
            *chosen,
            *("--name", tag),
        )
        assert done.code == 1, done.said
        assert f"its SHA-256 is not '{wrong}'" in done.said
        assert "build failed" in done.said


def test_what_is_not_installed_is_left_out(place: Workplace) -> None:
    place.env["PATH"] = str(place.folder)
    place.local(toolchains={})
    done = place.seatrial("list", str(SUITE), "-m", str(place.machine))
    assert done.code == 2
    for name in ("h5pcc", "fio", "ior", "mdtest", "elbencho"):
        assert f"needs the command {name}, which is not on PATH" in done.err
    assert "which is not on PATH, or --set tarball=..." in done.err
