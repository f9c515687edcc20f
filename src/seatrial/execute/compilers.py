"""The compilers of a toolchain, as builds record them and runs tell of them.

    found = read_found(build_directory)
    found["cc"]                  # "gcc (Debian 12.2.0-14) 12.2.0", or "not known"
    found["tool nvcc"]           # of a compiler that the build script names by itself

A build writes what it found by ``versions_script`` into its directory (``FILE``).
"""

import re
from collections.abc import Mapping
from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.execute.toolchains import NOT_KNOWN, version_script
from seatrial.files import read_regular

FILE = "seatrial.compilers"
MAX_BYTES = 1 << 16
MAX_TOOLS = 8
PACKAGES = ("spack", "easybuild")
"""Under these names a build tells which package of the site it installed (environment.py)."""

_VERSIONS = ("cc", "cxx", "fc", "mpi")
_TOOL = "tool "
_IDENTITIES = ("said ", "program ")
"""How the names begin under which a build tells by what else a compiler is told from another: the
hash of all that it says with its version, and of its file."""

_WORD = re.compile(r"[^\s;|&()<>\"'`={}]+")
_COMPILER = re.compile(
    r"(?:[\w.-]+-)?(?:gcc|g\+\+|gfortran|clang|clang\+\+|flang|cc|c\+\+|CC|ftn|nvcc|hipcc|amdclang(?:\+\+)?"
    r"|amdflang|icc|icpc|ifort|icx|icpx|ifx|dpcpp|nvc|nvc\+\+|nvfortran|pgcc|pgc\+\+|pgfortran|xlc|xlC"
    r"|xlf|craycc|crayCC|crayftn|armclang(?:\+\+)?|armflang|fcc|FCC|frt|ncc|nc\+\+|nfort|nagfor"
    r"|mpicc|mpicxx|mpic\+\+|mpifort|mpif90|mpif77)(?:-\d[\d.]*)?"
)

# Each program has 10 s. Open MPI and MPICH each have an option that only they know.
_SCRIPT = r"""
_seatrial_found() {  # name, text
  [ -n "$2" ] && printf 'seatrial:%s=%s\n' "$1" "${2:0:200}"
  return 0
}
_seatrial_hash() { timeout 30 sha256sum | cut -c 1-12; }
_seatrial_identity() {  # name, file: all that was said with the version, and the file
  _seatrial_found "said $1" "$(printf %s "$_whole" | _seatrial_hash)"
  _seatrial_found "program $1" "$(_seatrial_hash < "$2") $(realpath "$2")"
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
    return f"{version_script()}{_SCRIPT}{tools}"


def tools_named(build_script: str) -> list[str]:
    """Return the compilers that a build script names by themselves, such as ``nvcc``."""
    named = dict.fromkeys(_WORD.findall(build_script))
    return [
        word for word in named if "$" not in word and _COMPILER.fullmatch(word.rpartition("/")[2])
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


def read_found(directory: Path) -> dict[str, str]:
    """Return what a build wrote of its compilers, as its event has it; nothing where it wrote
    nothing."""
    return facts_of(read_all(directory))


def read_all(directory: Path) -> dict[str, str]:
    """Return all that a build wrote of its compilers."""
    try:
        return parsed(read_regular(directory / FILE, MAX_BYTES))
    except OSError:
        return {}


def parsed(said: bytes) -> dict[str, str]:
    """Return what the script printed, name by name."""
    facts = {}
    for line in said.decode(errors="replace").splitlines():
        if line.startswith("seatrial:"):
            name, _, text = line.removeprefix("seatrial:").partition("=")
            facts[name] = "".join(c for c in text if c.isprintable())
    return facts
