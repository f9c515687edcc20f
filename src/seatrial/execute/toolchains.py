"""Detect the compilers and MPIs of this host, as toolchains; read which of them builds had."""

import contextlib
import os
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from seatrial.escaping import plain_line, shell_word
from seatrial.files import read_regular
from seatrial.model.machine import Launcher, Toolchain
from seatrial.units import show_seconds

COMPILERS = (
    ("gcc", "gcc", "g++", "gfortran"),
    ("clang", "clang", "clang++", "flang"),
    ("oneapi", "icx", "icpx", "ifx"),
    ("nvhpc", "nvc", "nvc++", "nvfortran"),
)
OPENMP_FLAGS = {"oneapi": "-qopenmp", "nvhpc": "-mp"}
MPI_COMPILERS = ("mpicc", "mpicc.openmpi", "mpicc.mpich")
PATIENCE_SECONDS = 20.0
LONGEST_FAULT = 120


class Mpi(Struct, frozen=True):
    """An MPI of this host: its flavour and the paths of its compilers and its launcher."""

    flavour: Literal["openmpi", "mpich"]
    mpicc: str
    mpicxx: str
    mpifc: str
    mpirun: str


class FoundToolchains(NamedTuple):
    """The toolchains of this host, and what was left out of them, each with its reason."""

    toolchains: dict[str, Toolchain]
    left_out: list[str]

    @property
    def comments(self) -> str:
        """What was left out, as comments for the machine's file."""
        whole_words = textwrap.TextWrapper(76, break_long_words=False, break_on_hyphens=False)
        lines = [line for text in self.left_out for line in whole_words.wrap(text)]
        return "".join(f"# {line}\n" for line in lines)


def detect_toolchains() -> FoundToolchains:
    """Return a toolchain for every pair of a compiler and an MPI of this host."""
    left_out: list[str] = []
    mpis = _mpis(left_out)
    toolchains: dict[str, Toolchain] = {}
    for family, *names in COMPILERS:
        plain = _compilers(family, names, left_out)
        if plain is None:
            continue
        for mpi in mpis:
            toolchains[f"{family}-{mpi.flavour}"] = _with_mpi(plain, mpi)
        if not mpis:
            toolchains[family] = plain
    if not toolchains:
        names = [cc for _, cc, *_ in COMPILERS]
        left_out.append(f"No toolchain: none of {', '.join(names)} is on PATH.")
    return FoundToolchains(toolchains, left_out)


def _compilers(family: str, names: Sequence[str], left_out: list[str]) -> Toolchain | None:
    """Return the compilers of a family, C, C++ and Fortran; None where there is no C compiler."""
    name_of_cc, name_of_cxx, name_of_fc = names
    numbered = _numbered(name_of_cc)
    cc = name_of_cc if shutil.which(name_of_cc) else numbered[max(numbered)] if numbered else ""
    if not cc:
        return None
    version = version_of(cc)
    openmp = OPENMP_FLAGS.get(family, "-fopenmp")
    # Debian's clang comes without the OpenMP runtime.
    program = "int main(void) { return 0; }\n"
    if family == "clang" and (fault := _fault_of(program, cc, openmp, "-o", os.devnull)):
        left_out.append(f"{cc}: openmp is empty, as {openmp} does not work ({fault}).")
        openmp = ""
    major = re.search(r"(\d+)\.\d", version)
    return Toolchain(
        cc=cc,
        cxx=_companion(name_of_cxx, cc, major[1] if major else "", "cxx", left_out),
        fc=_companion(name_of_fc, cc, major[1] if major else "", "fc", left_out),
        openmp=openmp,
        version=version,
    )


def _companion(name: str, cc: str, major: str, key: str, left_out: list[str]) -> str:
    """Return the C++ or Fortran compiler beside a C compiler: that of its name, or of its major
    version, such as gfortran-12; "" if there is none."""
    if shutil.which(name):
        return name
    numbered = _numbered(name)
    if major and int(major) in numbered:
        return numbered[int(major)]
    others = f"; {', '.join(numbered.values())} is of another version" if numbered else ""
    tried = f"{name} and {name}-{major} are" if major else f"{name} is"
    left_out.append(f"{cc}: {key} is empty, as {tried} not on PATH{others}.")
    return ""


def _numbered(name: str) -> dict[int, str]:
    """Return the programs NAME-N on PATH by their numbers."""
    pattern = re.compile(re.escape(name) + r"-(\d{1,3})", re.ASCII)
    found: dict[int, str] = {}
    for folder in os.get_exec_path():
        with contextlib.suppress(OSError):
            matches = [pattern.fullmatch(each) for each in os.listdir(folder)]  # noqa: PTH208
            found |= {int(match[1]): match[0] for match in matches if match}
    return dict(sorted(found.items()))


def _fault_of(program: str, *compiler: str) -> str:
    """Return why a compiler with these arguments does not accept a C program; "" if it does."""
    return _asked(*compiler, "-x", "c", "-", program=program).fault


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


def _mpis(left_out: list[str]) -> list[Mpi]:
    """Return the MPIs on PATH, one of each flavour; if there is none, the one beside this Python.
    That one does not count as on PATH, so that an activated environment changes nothing."""
    own = str(Path(sys.prefix) / "bin")
    others = [folder for folder in os.get_exec_path() if os.path.realpath(folder) != own]
    mpis = {mpi.flavour: mpi for mpi in _mpis_on(os.pathsep.join(others), left_out)}
    if not mpis:
        mpis = {mpi.flavour: mpi for mpi in _mpis_on(own, left_out)}
    if not (mpis or left_out):
        left_out.append(f"No MPI: none of {', '.join(MPI_COMPILERS)} is on PATH.")
    return list(mpis.values())


def _mpis_on(path: str, left_out: list[str]) -> Iterator[Mpi]:
    for name in reversed(MPI_COMPILERS):  # the plain name last: it overrides the others
        mpicc = shutil.which(name, path=path)
        if mpicc is None:
            continue
        ending = name.removeprefix("mpicc")
        flavour = _flavour(mpicc)
        mpirun = _beside(mpicc, f"mpirun{ending}") or _beside(mpicc, f"mpiexec{ending}")
        if flavour is None:
            left_out.append(f"{mpicc} left out: it says it is neither Open MPI nor MPICH.")
        elif not mpirun:
            left_out.append(f"{mpicc} left out: no mpirun{ending} and no mpiexec is beside it.")
        # Debian's MPI for running programs comes without its header.
        elif fault := _fault_of("#include <mpi.h>\n", mpicc, "-E", "-o", os.devnull):
            left_out.append(f"{mpicc} left out: it does not compile ({fault}).")
        else:
            mpicxx, mpifc = _beside(mpicc, f"mpicxx{ending}"), _beside(mpicc, f"mpif90{ending}")
            for key, wrapper, found in (("mpicxx", "mpicxx", mpicxx), ("mpifc", "mpif90", mpifc)):
                if not found:
                    text = f"{key} is empty, as no {wrapper}{ending} is beside it."
                    left_out.append(f"{mpicc}: {text}")
            yield Mpi(flavour, mpicc, mpicxx, mpifc, mpirun)


def _beside(program: str, name: str) -> str:
    path = Path(program).with_name(name)
    return str(path) if path.exists() else ""


def _flavour(mpicc: str) -> Literal["openmpi", "mpich"] | None:
    """Return the flavour of an MPI compiler, or None. Open MPI and MPICH each have an option that
    only they know. MVAPICH and Intel MPI derive from MPICH and accept its arguments."""
    if "Open MPI" in _asked(mpicc, "--showme:version").output:
        return "openmpi"
    words = _asked(mpicc, "-v").output + " " + _asked(mpicc, "-show").output
    return "mpich" if re.search(r"mpich|mvapich|intel\(r\) mpi", words, re.IGNORECASE) else None


class _Answer(Struct, frozen=True):
    """What a command printed, "" if it failed, and why it failed."""

    output: str
    fault: str = ""


def _asked(*command: str, program: str = "") -> _Answer:
    """Return the answer of a command that is given a program as input. All that it says is its
    output: a notice of a wrapper may be its first line."""
    try:
        done = subprocess.run(
            command,
            input=program,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            text=True,
            errors="replace",
        )
    except OSError as error:
        return _Answer("", f"it cannot be started: {error.strerror}")
    except subprocess.TimeoutExpired:
        return _Answer("", f"it does not end in {show_seconds(PATIENCE_SECONDS)}")
    if done.returncode == 0:
        return _Answer(done.stdout)
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    first = next((line for line in lines if "error" in line.lower()), "".join(lines[:1]))
    said = re.sub(r"^.*?(?:fatal )?error: ", "", first)
    return _Answer("", plain_line(said[:LONGEST_FAULT]) or f"exit code {done.returncode}")


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


# ---- compilers of a build ------------------------------------------------------------------------
#
# The compilers of a toolchain, as builds record them and runs tell of them.
#
#     found = read_compiler_facts(build_directory)
#     found["cc"]                  # "gcc (Debian 12.2.0-14) 12.2.0", or "not known"
#     found["tool nvcc"]           # of a compiler that the build script names by itself
#
# A build writes what it found by ``versions_script`` into its directory
# (``COMPILERS_FILE``).


COMPILERS_FILE = "seatrial.compilers"
MAX_COMPILERS_BYTES = 1 << 16
MAX_TOOLS = 8
PACKAGES = ("spack", "easybuild")
"""Under these names a build tells which package of the site it installed (environment.py)."""

_VERSIONS = ("cc", "cxx", "fc", "mpi")
_TOOL = "tool "
_IDENTITIES = ("said ", "program ")
"""How the names begin under which a build tells by what else a compiler is told from another: the
hash of all that it says with its version, and of its file."""

_WORD = r"[^\s;|&()<>\"'`={}]+"
_COMPILER = (
    r"(?:[\w.-]+-)?(?:gcc|g\+\+|gfortran|clang|clang\+\+|flang|cc|c\+\+|CC|ftn|nvcc|hipcc|amdclang(?:\+\+)?"
    r"|amdflang|icc|icpc|ifort|icx|icpx|ifx|dpcpp|nvc|nvc\+\+|nvfortran|pgcc|pgc\+\+|pgfortran|xlc|xlC"
    r"|xlf|craycc|crayCC|crayftn|armclang(?:\+\+)?|armflang|fcc|FCC|frt|ncc|nc\+\+|nfort|nagfor"
    r"|mpicc|mpicxx|mpic\+\+|mpifort|mpif90|mpif77)(?:-\d[\d.]*)?"
)

# Each program has 10 s. Open MPI and MPICH each have an option that only they know.
_VERSIONS_SCRIPT = r"""
_seatrial_found() {  # name, text
  [ -n "$2" ] && printf 'seatrial:%s=%s\n' "$1" "${2:0:200}"
  return 0
}
_seatrial_identity() {  # name, file: all that was said with the version, and the file
  local -a _sums
  mapfile -t _sums < <(printf %s "$_whole" | timeout 30 sha256sum -- - "$2")
  _seatrial_found "said $1" "${_sums[0]:0:12}"
  _seatrial_found "program $1" "${_sums[1]:0:12} $(realpath "$2")"
}
_seatrial_compiler() {  # name, program
  local _path
  _path=$(type -P "${2%% *}") || return 0
  seatrial_said_version "$2"
  _seatrial_found "$1" "${_line:-not known}"
  _seatrial_identity "$1" "$_path"
}
_seatrial_mpi() {
  local _path
  _path=$(type -P "${MPICC%% *}") || return 0
  seatrial_said_version "$MPICC" --showme:version || seatrial_said_version "$MPICC" -v
  [[ ${_line,,} == *mpi* ]] || _line=
  _seatrial_found mpi "${_line:-not known}"
  _seatrial_identity mpi "$_path"
}
_seatrial_behind() {  # name, MPI compiler: what it calls
  local _path
  _path=$(type -P "${2%% *}") || return 0
  seatrial_said_version "$2"
  _seatrial_identity "$1" "$_path"
}
_seatrial_tool() {  # a compiler that the script names, if it is none of the toolchain
  local _each
  for _each in "$CC" "$CXX" "$FC" "$MPICC"; do
    [ "${_each%% *}" != "$1" ] || return 0
  done
  _seatrial_compiler "tool ${1##*/}" "$1"
}
_seatrial_found host "$HOSTNAME"
_seatrial_found toolchain "$TOOLCHAIN"
_seatrial_compiler cc "$CC"
_seatrial_compiler cxx "$CXX"
_seatrial_compiler fc "$FC"
_seatrial_mpi
_seatrial_behind mpicc "$MPICC"
_seatrial_behind mpicxx "$MPICXX"
_seatrial_behind mpifc "$MPIFC"
"""


def versions_script(build_script: str) -> str:
    """Return bash that prints what a build finds: the compilers of its toolchain, and those that
    its script names by themselves."""
    tools = "".join(f"_seatrial_tool {shell_word(tool)}\n" for tool in tools_named(build_script))
    return f"{version_script()}{_VERSIONS_SCRIPT}{tools}"


def tools_named(build_script: str) -> list[str]:
    """Return the compilers that a build script names by themselves, such as ``nvcc``."""
    named = dict.fromkeys(re.findall(_WORD, build_script))
    return [
        word
        for word in named
        if "$" not in word and re.fullmatch(_COMPILER, word.rpartition("/")[2])
    ][:MAX_TOOLS]


def versions_of(facts: Mapping[str, str]) -> dict[str, str]:
    """Return the versions alone, by what a person calls each: cc, mpi, nvcc."""
    named = {name: facts[name] for name in _VERSIONS if name in facts}
    tools = {
        name.removeprefix(_TOOL): text for name, text in facts.items() if name.startswith(_TOOL)
    }
    return tools | named


def not_known(facts: Mapping[str, str]) -> list[str]:
    """Return the compilers that are there and whose version could not be had."""
    return [name for name, version in versions_of(facts).items() if version == NOT_KNOWN]


def identities_of(found: Mapping[str, str]) -> dict[str, str]:
    """Return by what the compilers are told from others: versions, what they say, their files."""
    facts = {name: text for name, text in found.items() if name.startswith(_IDENTITIES)}
    return versions_of(found) | facts


def facts_of(found: Mapping[str, str]) -> dict[str, str]:
    """Return what is recorded in the build's event: host, toolchain, versions, package."""
    left_out = (*_IDENTITIES, "path ")
    return {name: text for name, text in found.items() if not name.startswith(left_out)}


def read_compiler_facts(directory: Path) -> dict[str, str]:
    """Return what a build wrote of its compilers, as its event has it; nothing where it wrote
    nothing."""
    return facts_of(read_all_compiler_facts(directory))


def read_all_compiler_facts(directory: Path) -> dict[str, str]:
    """Return all that a build wrote of its compilers."""
    try:
        return parsed_compiler_facts(read_regular(directory / COMPILERS_FILE, MAX_COMPILERS_BYTES))
    except OSError:
        return {}


def parsed_compiler_facts(said: bytes) -> dict[str, str]:
    """Return what the script printed, name by name."""
    facts = {}
    for line in said.decode(errors="replace").splitlines():
        if line.startswith("seatrial:"):
            name, _, text = line.removeprefix("seatrial:").partition("=")
            facts[name] = "".join(c for c in text if c.isprintable())
    return facts
