"""Detection: this host's processors, compilers and MPIs, with programs that only answer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from seatrial.execute import detect as detection
from seatrial.execute import toolchains
from seatrial.execute.detect import detect
from seatrial.model.machine import Launcher, Toolchain, WrittenLayout
from seatrial.model.machine_file import load_machine
from tests.model.fakes import program
from tests.model.hwloc import xml_of
from tests.programs import Workplace

OPENMPI = {
    "--showme:version": "mpicc: Open MPI 5.0.5 (Language: C)",
    "-show": "gcc -I/opt/x/include -L/opt/x/lib -lmpi",
    "-E*": "",
}
MPICH = {
    "-v": "mpicc for MPICH version 4.2.0",
    "-show": "gcc -I/opt/y/include -L/opt/y/lib -lmpi",
    "-E*": "",
}
INTEL = {"-v": "mpigcc for the Intel(R) MPI Library 2021.9 for Linux*", "-E*": ""}


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder without compilers as the whole PATH, and no MPI beside this Python."""
    folder = tmp_path / "bin"
    folder.mkdir()
    for name in ("bash", "timeout"):  # by which versions are asked for
        (folder / name).symlink_to(Path(f"/usr/bin/{name}"))
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setattr(sys, "prefix", str(tmp_path / "prefix"))
    return folder


def gcc(folder: Path) -> None:
    for name in ("gcc", "g++"):
        program(folder, name, {"--version": f"{name} 13.2\nCopyright"})


def mpi(folder: Path, answers: dict[str, str], ending: str = "") -> None:
    program(folder, f"mpicc{ending}", answers)
    for name in ("mpicxx", "mpif90", "mpirun"):
        program(folder, f"{name}{ending}", {})


# ---- toolchains ---------------------------------------------------------------------------


def test_no_compiler_no_toolchain(path: Path) -> None:
    assert detect("h").toolchains == {}


def test_a_compiler_without_an_mpi(path: Path) -> None:
    gcc(path)
    assert detect("h").toolchains == {
        "gcc": Toolchain(cc="gcc", cxx="g++", fc="", openmp="-fopenmp", version="gcc 13.2")
    }


@pytest.mark.parametrize(
    ("answers", "flavour", "prefix"),
    [(OPENMPI, "openmpi", "OMPI"), (MPICH, "mpich", "MPICH"), (INTEL, "mpich", "MPICH")],
)
def test_a_compiler_with_an_mpi(
    path: Path, answers: dict[str, str], flavour: str, prefix: str
) -> None:
    gcc(path)
    mpi(path, answers)
    ((name, chain),) = detect("h").toolchains.items()
    assert name == f"gcc-{flavour}"
    assert (chain.mpicc, chain.mpicxx) == (f"{path}/mpicc", f"{path}/mpicxx")
    assert chain.mpifc == f"{path}/mpif90"
    assert chain.launcher is not None
    assert (chain.launcher.flavour, chain.launcher.command) == (flavour, f"{path}/mpirun")
    assert chain.environment == {f"{prefix}_CC": "gcc", f"{prefix}_CXX": "g++"}


def test_both_mpis_by_debians_names_and_the_plain_one_is_preferred(path: Path) -> None:
    gcc(path)
    mpi(path, OPENMPI, ".openmpi")
    mpi(path, MPICH, ".mpich")
    mpi(path, MPICH)
    found = detect("h").toolchains
    assert {name: chain.mpicc for name, chain in found.items()} == {
        "gcc-mpich": f"{path}/mpicc",
        "gcc-openmpi": f"{path}/mpicc.openmpi",
    }


@pytest.mark.parametrize("answers", [{}, {"-show": "gcc -lsomething", "--version": "gcc 13"}])
def test_an_mpicc_that_is_no_mpi_is_left_out(path: Path, answers: dict[str, str]) -> None:
    gcc(path)
    mpi(path, answers)
    assert list(detect("h").toolchains) == ["gcc"]


def test_an_mpi_without_its_header_gives_way_to_the_one_beside_this_python(
    path: Path, tmp_path: Path
) -> None:
    """Debian installs mpicc with every program that uses MPI, and mpi.h apart."""
    gcc(path)
    mpi(path, {question: answer for question, answer in OPENMPI.items() if question != "-E*"})
    assert list(detect("h").toolchains) == ["gcc"]
    (tmp_path / "prefix").mkdir()
    mpi(tmp_path / "prefix/bin", OPENMPI)
    assert detect("h").toolchains["gcc-openmpi"].mpicc == f"{tmp_path}/prefix/bin/mpicc"


def test_an_mpicc_without_a_launcher_is_left_out(path: Path) -> None:
    gcc(path)
    mpi(path, OPENMPI)
    (path / "mpirun").unlink()
    assert list(detect("h").toolchains) == ["gcc"]
    program(path, "mpiexec", {})
    chain = detect("h").toolchains["gcc-openmpi"]
    assert chain.launcher == Launcher(kind="mpirun", flavour="openmpi", command=f"{path}/mpiexec")


def test_the_mpi_beside_this_python_where_path_has_none(path: Path, tmp_path: Path) -> None:
    gcc(path)
    (tmp_path / "prefix").mkdir()
    mpi(tmp_path / "prefix/bin", OPENMPI)
    assert detect("h").toolchains["gcc-openmpi"].mpicc == f"{tmp_path}/prefix/bin/mpicc"
    mpi(path, MPICH)
    assert list(detect("h").toolchains) == ["gcc-mpich"]


def test_clang_without_its_openmp_runtime(path: Path) -> None:
    program(path, "clang", {"--version": "clang 16"}, otherwise="exit 1")
    assert detect("h").toolchains["clang"].openmp == ""
    program(path, "clang", {"--version": "clang 16"}, otherwise="exit 0")
    assert detect("h").toolchains["clang"].openmp == "-fopenmp"


def test_several_compilers_with_their_own_openmp_flags(path: Path) -> None:
    gcc(path)
    for name in ("icx", "nvc"):
        program(path, name, {"--version": name})
    found = detect("h").toolchains
    assert {name: chain.openmp for name, chain in found.items()} == {
        "gcc": "-fopenmp", "oneapi": "-qopenmp", "nvhpc": "-mp",
    }  # fmt: skip


def test_a_compiler_that_hangs_or_cannot_be_started(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (path / "gcc").write_bytes(b"\x7fELFnonsense")
    (path / "gcc").chmod(0o755)
    program(path, "clang", {}, otherwise=f"exec {shutil.which('sleep', path='/usr/bin:/bin')} 60")
    monkeypatch.setattr(toolchains, "PATIENCE_SECONDS", 0.2)
    found = detect("h").toolchains
    assert {name: (chain.version, chain.openmp) for name, chain in found.items()} == {
        "gcc": ("", "-fopenmp"), "clang": ("", ""),
    }  # fmt: skip


def test_what_was_left_out_is_told_with_its_reason(path: Path) -> None:
    gcc(path)
    mpi(path, {line: text for line, text in OPENMPI.items() if line != "-E*"}, ".openmpi")
    fault = "echo 'x.c:1:10: fatal error: mpi.h: No such file' >&2; exit 1"
    program(path, "mpicc.openmpi", {"--showme:version": "Open MPI 5"}, otherwise=fault)
    program(path, "mpicc.mpich", MPICH)
    program(path, "mpicc", {"-v": "gcc 13"}, otherwise="exit 0")
    program(path, "clang", {"--version": "clang version 14.0"}, otherwise="exit 3")
    machine, comments = detection.detect_host("h")
    assert list(machine.toolchains) == ["gcc", "clang"]
    told = " ".join(comments.replace("# ", "").split())
    for text in (
        f"{path}/mpicc.openmpi left out: it does not compile (mpi.h: No such file).",
        f"{path}/mpicc.mpich left out: no mpirun.mpich and no mpiexec is beside it.",
        f"{path}/mpicc left out: it says it is neither Open MPI nor MPICH.",
        "gcc: fc is empty, as gfortran and gfortran-13 are not on PATH.",
        "clang: openmp is empty, as -fopenmp does not work (exit code 3).",
        "clang: cxx is empty, as clang++ and clang++-14 are not on PATH.",
    ):
        assert text in told
    long_lines = [line for line in comments.splitlines() if len(line) > 80]
    assert all(str(path) in line and line.count(" ") == 1 for line in long_lines)
    for name in ("gcc", "clang", "mpicc", "mpicc.openmpi", "mpicc.mpich"):
        (path / name).unlink()
    _, comments = detection.detect_host("h")
    assert "No MPI: none of mpicc, mpicc.openmpi, mpicc.mpich is on PATH." in comments
    assert "No toolchain: none of gcc, clang, icx, nvc is on PATH." in comments


def test_compilers_whose_names_have_their_version(path: Path) -> None:
    for number in (9, 12, 13):
        program(path, f"gcc-{number}", {"--version": f"gcc-{number} (Debian) {number}.2.0"})
    program(path, "gfortran-13", {})
    program(path, "gfortran-9", {})
    program(path, "g++-12", {})
    machine, comments = detection.detect_host("h")
    chain = machine.toolchains["gcc"]
    assert (chain.cc, chain.cxx, chain.fc) == ("gcc-13", "", "gfortran-13")
    assert "gcc-13: cxx is empty, as g++ and g++-13 are not on PATH; g++-12 is of\n" in comments


def test_the_file_says_what_commands_take(place: Workplace, path: Path) -> None:
    gcc(path)
    machine, _ = detection.detect_host("h")
    chain = detection.written(machine)["toolchains"]["gcc"]
    assert list(chain) == ["cc", "cxx", "fc", "cflags", "openmp", "version"]
    assert (chain["cflags"], chain["fc"]) == ("-O3", "")
    shown = place.seatrial("machine", "h", "--detect").out
    assert re.search(r"^  memory: [0-9.]+[GM]iB$", shown, re.MULTILINE)
    assert "layout: {sockets: [[" in shown or "layout" not in shown
    size = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES")
    assert 0 <= size - machine.nodes[0].memory.bytes < 2**30 / 10


# ---- processors ---------------------------------------------------------------------------


def topology(folder: Path, processors: list[tuple[str, int]]) -> None:
    for number, (siblings, package) in enumerate(processors):
        files = folder / f"cpu{number}" / "topology"
        files.mkdir(parents=True)
        (files / "thread_siblings_list").write_text(f"{siblings}\n")
        (files / "physical_package_id").write_text(f"{package}\n")


def test_cores_are_counted_not_hardware_threads(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = [("0,4", 0), ("1,5", 0), ("2,6", 1), ("3,7", 1)] * 2
    topology(tmp_path / "cpu", pairs)
    for domain in (0, 1):
        (tmp_path / f"numa/node{domain}/cpu{domain}").mkdir(parents=True)
    (tmp_path / "numa/node2/cpu99").mkdir(parents=True)  # not ours
    monkeypatch.setattr(detection, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(detection, "NUMA_DOMAINS", tmp_path / "numa")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    (node,) = detect("h").nodes
    assert (node.cores, node.sockets, node.threads_per_core, node.numa_domains) == (4, 2, 2, 2)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 4})  # a container's share
    (node,) = detect("h").nodes
    assert (node.cores, node.sockets, node.threads_per_core) == (2, 1, 1)


def test_a_kernel_that_tells_nothing(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(detection, "CPUS", tmp_path / "nothing")
    monkeypatch.setattr(detection, "NUMA_DOMAINS", tmp_path / "nothing")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: {0, 1, 2})
    (node,) = detect("h").nodes
    assert (node.cores, node.sockets, node.threads_per_core, node.numa_domains) == (3, 1, 1, 1)


def test_the_layout_that_lstopo_shows_where_it_is_that_of_the_kernel(
    path: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    topology(tmp_path / "cpu", [("0,4", 0), ("1,5", 0), ("2,6", 1), ("3,7", 1)] * 2)
    for domain, cpu in ((0, 0), (1, 2)):
        (tmp_path / f"numa/node{domain}/cpu{cpu}").mkdir(parents=True)
    monkeypatch.setattr(detection, "CPUS", tmp_path / "cpu")
    monkeypatch.setattr(detection, "NUMA_DOMAINS", tmp_path / "numa")
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(8)))
    assert detect("h", with_layout=True).nodes[0].layout is None  # no lstopo
    xml = xml_of("pack:2 [numa] core:2 pu:2(indexes=2*4:1*2)")
    program(path, "lstopo", {"--of*": xml})
    assert detect("h", with_layout=True).nodes[0].layout == WrittenLayout(
        sockets=[["0-1+4-5"], ["2-3+6-7"]]
    )
    assert detect("h").nodes[0].layout is None
    for other in ("pack:2 [numa] core:2 pu:1", "pack:1 [numa] core:4 pu:2(indexes=2*4:1*2)"):
        program(path, "lstopo", {"--of*": xml_of(other)})
        assert detect("h", with_layout=True).nodes[0].layout is None
    program(path, "lstopo", {"--of*": xml[:500]})
    assert detect("h", with_layout=True).nodes[0].layout is None


def test_this_host_as_lscpu_sees_it() -> None:
    if shutil.which("lscpu") is None:
        pytest.skip("lscpu is not here")
    done = subprocess.run(
        ["lscpu", "--parse=cpu,core,socket"], capture_output=True, text=True, check=True
    )
    rows = [line.split(",") for line in done.stdout.splitlines() if not line.startswith("#")]
    ours = [row for row in rows if int(row[0]) in os.sched_getaffinity(0)]
    (node,) = detect("h").nodes
    assert node.cores == len({row[1] for row in ours})
    assert node.sockets == len({row[2] for row in ours})
    assert node.memory.bytes > 2**20


def test_what_is_detected_can_be_read_back(tmp_path: Path) -> None:
    command = [str(Path(sys.executable).with_name("seatrial")), "machine", "h", "--detect"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    (tmp_path / "h.yaml").write_text(done.stdout)
    machine = load_machine(tmp_path / "h.yaml").machine
    assert machine == detect("h", with_layout=True)
    assert yaml.safe_load(done.stdout)["machine"] == "h"
