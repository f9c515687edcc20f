"""The recipes of benchmarks that no registry has: stand-ins print what these programs printed when
they were run (tests/judge/outputs/data), so that here only the recipes are tried."""

from __future__ import annotations

import hashlib
import os
import tarfile
from pathlib import Path

import pytest

from seatrial.journal.events import RunJudged
from tests.programs import Done, Workplace
from tests.suites.test_probes import figures_of

RECIPES = Path(__file__).parents[2] / "suites" / "recipes"
DATA = Path(__file__).parents[1] / "judge" / "outputs" / "data"
# what is on PATH, what it prints, and a word of a right answer with that of a wrong one
PROGRAMS = {
    "xhpl": ("hpl.out", "PASSED", "FAILED"),
    "xhpcg": ("hpcg.out", "is VALID", "is INVALID"),
    "stream_c": ("stream.out", "Solution Validates", "Failed Validation"),
    "cg.A.x": ("npb-mpi.out", " SUCCESSFUL", "UNSUCCESSFUL"),
    "osu_latency": ("osu-5-latency.out", "", ""),
    "osu_bw": ("osu-5-bw.out", "", ""),
    "osu_allreduce": ("osu-7-allreduce-checked.out", "", ""),
}
CHOSEN = "hpl or hpcg or stream5 or (npb and kernel=cg) or (osu and not alltoall)"


@pytest.fixture
def place(tmp_path: Path) -> Workplace:
    workplace = Workplace(tmp_path)
    chain = {"cc": "gcc", "mpicc": "gcc", "mpifc": "gcc", "mpicxx": "g++"}
    workplace.local(cores=4, toolchains={"plain": chain}, launcher={"kind": "none"})
    return workplace


def _stand_ins(place: Workplace, wrong: bool = False) -> None:
    folder = place.folder / "bin"
    folder.mkdir(exist_ok=True)
    for name, (output, right, other) in PROGRAMS.items():
        text = (DATA / output).read_text()
        (folder / f"{name}.out").write_text(text.replace(right, other) if wrong else text)
        to = "> HPCG-Benchmark_3.1.txt" if name == "xhpcg" else ""
        (folder / name).write_text(f"#!/bin/sh\ncat {folder / name}.out {to}\n")
        (folder / name).chmod(0o755)
    place.env["PATH"] = f"{folder}:{os.environ['PATH']}"


def _run(place: Workplace, tag: str, words: str, *settings: str) -> Done:
    chosen = [word for each in settings for word in ("--set", each)]
    machine = ("-m", str(place.machine))
    return place.seatrial("run", str(RECIPES), *machine, "-k", words, *chosen, "--name", tag)


def test_right_answers_have_figures_and_wrong_ones_are_seen(place: Workplace) -> None:
    _stand_ins(place)
    done = _run(place, "t", CHOSEN)
    assert done.code == 0, done.said
    found = figures_of(place, "t")
    assert found.keys() == {"hpl", "hpcg", "stream5", "npb", "osu"}
    assert found["stream5"] == {"copy", "scale", "add", "triad"}
    assert all(found.values())
    (inputs,) = (place.trials / "t" / "runs" / "hpl").iterdir()
    asked = [line.split() for line in (inputs / "HPL.dat").read_text().splitlines()]
    assert ["2000", "Ns"] in asked and ["2", "Ps"] in asked and ["2", "Qs"] in asked
    _stand_ins(place, wrong=True)
    assert _run(place, "u", f"({CHOSEN}) and not osu").code == 1
    judged = {event.test: event.verdict for event in place.events("u", RunJudged)}
    assert judged == dict.fromkeys(("hpl", "hpcg", "stream5", "npb"), "wrong answer")


def test_sizes_follow_the_memory_of_a_node(place: Workplace) -> None:
    _stand_ins(place)
    nodes = [{"names": "n[1-4]", "cores": 16, "memory": "64GiB"}]
    place._write_machine({"machine": "large", "scheduler": "slurm", "nodes": nodes})
    words = ("-m", str(place.machine), "--set", "memories=0.8", "--format", "json")
    done = place.seatrial("list", str(RECIPES), "-k", "hpl or hpcg or stream5", *words)
    assert done.code == 0, done.said
    assert '"n":82752' in done.out, done.out  # 192 * floor(sqrt(0.8 * 64 GiB / 8) / 192)
    assert '"points":144' in done.out and '"elements":2290649224' in done.out, done.out


def test_a_tarball_is_built_if_it_is_what_the_site_says(place: Workplace) -> None:
    place.env["PATH"] = "/usr/bin:/bin"
    text = (DATA / "stream.out").read_text().splitlines()
    lines = "\n".join(f'puts("{line}");' for line in text)
    source = place.folder / "stream-5.10" / "stream.c"
    source.parent.mkdir()
    source.write_text(
        f"#include <stdio.h>\n#if STREAM_ARRAY_SIZE != 10000000\n#error size\n#endif\n"
        f"int main(void) {{ {lines} return 0; }}\n"
    )
    tarball = place.folder / "stream.tar"
    with tarfile.open(tarball, "w") as archive:
        archive.add(source.parent, "stream-5.10")
    done = _run(place, "none", "stream5")
    assert done.code == 2 and "stream_c" in done.err, done.said
    done = _run(place, "wrong", "stream5", f"tarball={tarball}", "sha256=abcd")
    assert done.code == 1 and "its SHA-256 is not 'abcd'" in done.said, done.said
    sha256 = hashlib.sha256(tarball.read_bytes()).hexdigest()
    done = _run(place, "t", "stream5", f"tarball={tarball}", f"sha256={sha256}")
    assert done.code == 0, done.said
    assert figures_of(place, "t")["stream5"] == {"copy", "scale", "add", "triad"}
