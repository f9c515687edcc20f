"""Detect the compilers and MPIs of this host, as toolchains."""

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec.structs import replace

from seatrial.model.machine import Launcher, Toolchain

COMPILERS = (
    ("gcc", "gcc", "g++", "gfortran"),
    ("clang", "clang", "clang++", "flang"),
    ("oneapi", "icx", "icpx", "ifx"),
    ("nvhpc", "nvc", "nvc++", "nvfortran"),
)
OPENMP_FLAGS = {"oneapi": "-qopenmp", "nvhpc": "-mp"}
MPI_COMPILERS = ("mpicc", "mpicc.openmpi", "mpicc.mpich")
PATIENCE_SECONDS = 20.0


class Mpi(NamedTuple):
    """An MPI of this host: its flavour and the paths of its compilers and its launcher."""

    flavour: Literal["openmpi", "mpich"]
    mpicc: str
    mpicxx: str
    mpifc: str
    mpirun: str


def detect_toolchains() -> dict[str, Toolchain]:
    """Return a toolchain for every pair of a compiler and an MPI of this host."""
    mpis = list(_mpis())
    toolchains: dict[str, Toolchain] = {}
    for family, cc, cxx, fc in COMPILERS:
        if shutil.which(cc) is None:
            continue
        # Debian's clang comes without the OpenMP runtime.
        program = "int main(void) { return 0; }\n"
        openmp = family != "clang" or _takes(program, cc, "-fopenmp", "-o", os.devnull)
        plain = Toolchain(
            cc=cc,
            cxx=cxx if shutil.which(cxx) else "",
            fc=fc if shutil.which(fc) else "",
            openmp=OPENMP_FLAGS.get(family, "-fopenmp") if openmp else "",
            version=version_of(cc),
        )
        for mpi in mpis:
            toolchains[f"{family}-{mpi.flavour}"] = _with_mpi(plain, mpi)
        if not mpis:
            toolchains[family] = plain
    return toolchains


def _takes(program: str, *compiler: str) -> bool:
    """Return True if a compiler with these arguments accepts a C program."""
    return _output(*compiler, "-x", "c", "-", program=program) is not None


def _with_mpi(plain: Toolchain, mpi: Mpi) -> Toolchain:
    prefix = {"openmpi": "OMPI", "mpich": "MPICH"}[mpi.flavour]
    wrapped = {f"{prefix}_CC": plain.cc, f"{prefix}_CXX": plain.cxx, f"{prefix}_FC": plain.fc}
    return replace(
        plain,
        mpicc=mpi.mpicc,
        mpicxx=mpi.mpicxx,
        mpifc=mpi.mpifc,
        launcher=Launcher(kind="mpirun", flavour=mpi.flavour, command=mpi.mpirun),
        environment={name: value for name, value in wrapped.items() if value},
    )


def _mpis() -> Iterator[Mpi]:
    """Yield the MPIs on PATH, one of each flavour; if there is none, the one beside this Python.
    That one does not count as on PATH, so that an activated environment changes nothing."""
    own = str(Path(sys.prefix) / "bin")
    others = [folder for folder in os.get_exec_path() if os.path.realpath(folder) != own]
    mpis = {mpi.flavour: mpi for mpi in _mpis_on(os.pathsep.join(others))}
    yield from (mpis or {mpi.flavour: mpi for mpi in _mpis_on(own)}).values()


def _mpis_on(path: str) -> Iterator[Mpi]:
    for name in reversed(MPI_COMPILERS):  # the plain name last: it overrides the others
        mpicc = shutil.which(name, path=path)
        if mpicc is None:
            continue
        ending = name.removeprefix("mpicc")
        flavour = _flavour(mpicc)
        mpirun = _beside(mpicc, f"mpirun{ending}") or _beside(mpicc, f"mpiexec{ending}")
        # Debian's MPI for running programs comes without its header.
        if flavour and mpirun and _takes("#include <mpi.h>\n", mpicc, "-E", "-o", os.devnull):
            mpicxx, mpifc = _beside(mpicc, f"mpicxx{ending}"), _beside(mpicc, f"mpif90{ending}")
            yield Mpi(flavour, mpicc, mpicxx, mpifc, mpirun)


def _beside(program: str, name: str) -> str:
    path = Path(program).with_name(name)
    return str(path) if path.exists() else ""


def _flavour(mpicc: str) -> Literal["openmpi", "mpich"] | None:
    """Return the flavour of an MPI compiler, or None. Open MPI and MPICH each have an option that
    only they know. MVAPICH and Intel MPI derive from MPICH and accept its arguments."""
    if "Open MPI" in _output_of(mpicc, "--showme:version"):
        return "openmpi"
    words = _output_of(mpicc, "-v") + " " + _output_of(mpicc, "-show")
    return "mpich" if re.search(r"mpich|mvapich|intel\(r\) mpi", words, re.IGNORECASE) else None


def _output_of(*command: str) -> str:
    """Return all that a command says: a notice of a wrapper may be its first line."""
    return _output(*command) or ""


def _output(*command: str, program: str = "") -> str | None:
    """Return the output of a command, given a program as input; None where it fails."""
    try:
        done = subprocess.run(
            command,
            input=program,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            text=True,
            errors="replace",
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout if done.returncode == 0 else None


# ---- program version -----------------------------------------------------------------------------
#
# What a program says of its version, wherever that stands in what it says.
#
#     version_of("nvc")            # "nvc 25.3-0 64-bit target on x86-64 Linux -tp znver3"
#     version_of("xlc")            # "" where it cannot be had
#
# ``version_script`` is the bash that asks, for builds and jobs, which ask on their own hosts.


NOT_KNOWN = "not known"
"""What is recorded of a program that is there and does not say its version."""

VERSION_SECONDS = 60.0


def version_script() -> str:
    """Return bash that defines ``seatrial_said_version``."""
    return (Path(__file__).parent / "version.sh").read_text()


def version_of(program: str) -> str:
    """Return what a program on this host says of its version; "" where it cannot be had."""
    script = f'{version_script()}\nseatrial_said_version "$1" && printf %s "$_line"'
    try:
        done = subprocess.run(
            ("bash", "-c", script, "bash", program),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=VERSION_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""


# ---- job facts -----------------------------------------------------------------------------------
#
# The script by which a job tells what it found.


FACTS_SCRIPT = "facts.sh"

COLLECTION = Path(__file__).parent / "facts"
"""The scripts and the suite that collect facts of nodes."""


def facts_script() -> str:
    """Return the script by which a job tells what it found: kernel, CPU, compilers, ..."""
    # plain: a file of the package
    return version_script() + (COLLECTION / "job.sh").read_text()
