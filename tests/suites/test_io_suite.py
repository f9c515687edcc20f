"""The suite of I/O: parallel HDF5 of Debian, built and run for real with its Open MPI."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.programs import Workplace
from tests.suites.test_probes import figures_of

SUITE = Path(__file__).parents[2] / "suites" / "io"
FIGURES = {"best", "mean", "total", "step_1", "step_2", "step_3", "step_4"}

needs_hdf5 = pytest.mark.needs("h5pcc.openmpi", "mpirun.openmpi")


@pytest.fixture
def here(place: Workplace) -> Workplace:
    """This host with four cores, as it seems, and the Open MPI that the package is linked with."""
    launcher = {"kind": "mpirun", "flavour": "openmpi", "command": "mpirun.openmpi"}
    options = ["--bind-to", "none", "--oversubscribe"]
    chain = {"cflags": "-O1 -std=c11", "launcher": {**launcher, "options": options}}
    place.local(cores=4, toolchains={"debian": chain})
    (place.folder / "data").mkdir()
    # An mpirun that ends removes the folder that others of the same user begin in.
    (place.folder / "tmp").mkdir()
    place.env["TMPDIR"] = str(place.folder / "tmp")
    return place


def run(place: Workplace, words: str, *settings: str) -> Any:
    more = ("writers=4", f"folder={place.folder / 'data'}", *settings)
    chosen = [word for each in more for word in ("--set", each)]
    machine = str(place.machine)
    done = place.seatrial(
        "run", str(SUITE), "-m", machine, "-k", words, *chosen, "--name", "t", timeout=600
    )
    export = json.loads(place.seatrial("export", "t", "--format", "json").out)
    return done, export


@needs_hdf5
def test_h5write_gives_the_rate_of_each_step(here: Workplace) -> None:
    """Four ranks, 4 MiB each, four steps; one file or one of each, collective or not, in pieces."""
    done, export = run(here, "h5write", "piece=1000K")
    assert done.code == 0, done.said
    assert figures_of(here, "t") == {"h5write": FIGURES}
    assert len(export["runs"]) == 3  # collective calls are for one file only
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


@needs_hdf5
@pytest.mark.parametrize("files", ["one", "each"])
def test_a_wrong_value_is_a_wrong_answer(here: Workplace, files: str) -> None:
    here.env["H5WRITE_FLIP"] = "3"
    done, export = run(here, f"files={files} and calls=independent", "bytes=64K")
    assert done.code == 1, done.said
    (one,) = export["runs"]
    assert (one["verdict"], export["metrics"]) == ("wrong answer", []), one
    (said,) = (here.folder / "trials" / "t" / "runs").glob("*/*/stderr")
    # The middle of what rank 0 wrote: its own file, or the first part of the one.
    assert "step 3, value 4096: " in said.read_text()


@needs_hdf5
def test_a_run_killed_in_its_third_step_has_no_figure(here: Workplace) -> None:
    """The script kills the launcher when it has seen two steps."""
    folder = here.suite / "killed"
    folder.mkdir(parents=True)
    for name in ("h5write.c", "figures.py"):
        (folder / name).write_bytes((SUITE / "h5write" / name).read_bytes())
    common = SUITE.parent / "probes" / "common" / "probe.h"
    (folder / "probe.h").write_bytes(common.read_bytes())
    test = yaml.safe_load((SUITE / "h5write" / "test.yaml").read_text())
    test["build"]["sources"] = ["h5write.c", "probe.h"]
    kill = "($LAUNCH $BUILD/h5write -s 100000 -b 64K -m 64K -d $folder & echo $! > pid; wait $!) | "
    kill += (
        "while read -r line; do echo $line; case $line in 'step 2 '*) kill -9 $(cat pid);; esac;"
    )
    test["run"]["script"] = kill + " done; exit ${PIPESTATUS[0]}"
    (folder / "test.yaml").write_text(yaml.safe_dump(test))
    words = ("-k", "files=each", "--set", f"folder={here.folder / 'data'}", "--name", "t")
    done = here.run(*words)
    assert done.code == 1, done.said
    export = json.loads(here.seatrial("export", "t", "--format", "json").out)
    (one,) = export["runs"]
    assert (one["verdict"], export["metrics"]) == ("failed", []), one
    (said,) = (here.folder / "trials" / "t" / "runs").glob("*/*/stdout")
    assert "step 2 of" in said.read_text()


@needs_hdf5
def test_without_space_nothing_is_started(here: Workplace) -> None:
    done, export = run(here, "files=each", "bytes=4096G", "steps=10")
    assert done.code == 1, done.said
    (one,) = export["runs"]
    assert (one["verdict"], export["metrics"]) == ("refused", []), one
    assert one["why"].startswith(f"no space: {here.folder}/data has ")
    assert " free, 160.0 TiB wanted: " in one["why"]
    assert not list((here.folder / "data").iterdir())


def test_without_hdf5_it_is_left_out(place: Workplace) -> None:
    place.env["PATH"] = str(place.folder)
    done = place.seatrial("list", str(SUITE), "-m", str(place.machine))
    assert done.code == 2
    assert "h5pcc" in done.err
