"""What a build would find on this host: its compilers, asked for before it starts.

    found = await probe(machine, test, "gcc", environment)
    found.facts["cc"]            # "gcc (Debian 12.2.0-14) 12.2.0"

The probe asks the questions of a build in its environment, so that builds of an older compiler are
not taken for new ones.
"""

import asyncio
import hashlib
import re
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct

from seatrial.escaping import shell_word
from seatrial.execute.environment import (
    NO_MODULE,
    exports,
    module_command,
    preamble,
    toolchain_variables,
)
from seatrial.execute.shell import kill_group, read_to_end
from seatrial.execute.toolchains import NOT_KNOWN, version_script
from seatrial.files import read_regular
from seatrial.judge.reading import OWN_WORDS
from seatrial.model.machine import Machine
from seatrial.model.test import Build, Test

PROBE_SECONDS = 60.0

# What else a build may find: two environments that differ here share no builds.
_PATHS = r"""
for _name in PATH LD_LIBRARY_PATH LIBRARY_PATH CPATH C_INCLUDE_PATH CPLUS_INCLUDE_PATH \
  PKG_CONFIG_PATH CMAKE_PREFIX_PATH LOADEDMODULES; do
  printf 'seatrial:path %s=%s\n' "$_name" "${!_name-}"
done
seatrial_version_lines "$(timeout 10 $MPICC -show 2> /dev/null < /dev/null)"
printf 'seatrial:path wrapper=%s\n' "${_whole//$'\n'/ }"
"""


class FoundCompilers(Struct, frozen=True):
    """What a build finds: ``facts``, as a run's (host, toolchain, cc, ...), ``told``: that by which
    it is told from what another finds, such as versions, and where programs, headers and libraries
    are looked for, and the hash of this."""

    facts: dict[str, str]
    told: dict[str, str]
    digest: str


async def probe(
    machine: Machine, test: Test, toolchain: str, environment: Mapping[str, str]
) -> FoundCompilers | None:
    """Return what builds of a test with a toolchain find on this host; None where it cannot be
    told: a module does not load, or a program does not end."""
    assert test.build is not None
    script = exports(toolchain_variables(machine, test, toolchain))
    script += f"{preamble(machine, test, toolchain)}set +aeu\n"
    script += versions_script(test.build.script) + _PATHS
    process = await asyncio.create_subprocess_exec(
        "bash",
        "-c",
        script,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        async with asyncio.timeout(PROBE_SECONDS):
            output, _ = await process.communicate()
    except TimeoutError:
        return None
    finally:
        kill_group(process.pid)
        await read_to_end(process)
    if process.returncode:
        return None
    facts = parsed(output)
    kept = {name: text for name, text in sorted(facts.items()) if name != "host"}
    digest = hashlib.sha256(repr(sorted(kept.items())).encode()).hexdigest()[:8]
    return FoundCompilers(facts_of(facts), kept, digest)


def cannot_be_told(found: FoundCompilers | None) -> str:
    """Return why nobody can tell whether a build would find the same compilers as another; "" where
    it can be told. Such builds are made anew."""
    if found is None:
        return "what it finds cannot be told: a module does not load, or a compiler does not answer"
    if unknown := not_known(found.facts):
        return f"the version of {', '.join(unknown)} is not known"
    return ""


def differs(built: Mapping[str, str], found: FoundCompilers) -> str:
    """Return which compilers a build found that are not those of this host; "" for none. A job may
    find others, and so does a build while somebody replaces a compiler. Such a build is not
    shared."""
    before, now = identities_of(built), identities_of(found.told)
    names = [name for name in {**now, **before} if before.get(name) != now.get(name)]
    if not names:
        return ""
    versions = [name for name in names if name in versions_of(built) or name in versions_of(now)]
    differences = [f"{n} was {before.get(n, 'none')}, not {now.get(n, 'none')}" for n in versions]
    text = "; ".join(differences) or ", ".join(names)
    return f"not shared, as it found other compilers than this host has: {text}"


# ---- compiler versions ---------------------------------------------------------------------------
#
# The compilers of a toolchain, as builds record them and runs tell of them.
#
#     found = read_found(build_directory)
#     found["cc"]                  # "gcc (Debian 12.2.0-14) 12.2.0", or "not known"
#     found["tool nvcc"]           # of a compiler that the build script names by itself
#
# A build writes what it found by ``versions_script`` into its directory (``FILE``).


FILE = "seatrial.compilers"
MAX_BYTES = 1 << 16
MAX_TOOLS = 8
PACKAGES = ("spack", "easybuild")
"""Under these names a build tells which package of the site it installed (site_packages.py)."""

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


# ---- site packages -------------------------------------------------------------------------------
#
# Packages of the site's Spack or EasyBuild as builds: ``build: {spack: SPEC}``, ``{easybuild:
# FILE}``.
#
#     script = install_lines(build) + load_lines(build) + build.script    # of the build
#     preamble += load_lines(build)                                       # of each run
#
# The build asks which concrete spec SPEC stands for, or which easyconfigs the robot of EasyBuild
# needs, writes that with its key beside the compilers that it found (``seatrial.compilers``), and
# installs it. The key is Spack's own hash of the concrete spec, or the SHA-256 of all these
# easyconfigs. Runs load exactly what their build recorded in ``seatrial.package``.


# The words of the request are those of a command line, so parameters are variables of the shell.
_SPACK = """\
%(need)s
spack spec --json %(spec)s > seatrial.spec.json || exit
spack install ./seatrial.spec.json || exit
_package=$(spack find --format '{name}@{version}/{hash}' ./seatrial.spec.json) || exit
_package=${_package##*$'\\n'}
echo "/${_package##*/}" > seatrial.package
echo "seatrial:spack=$_package" >> %(found)s
"""

# A line of the plan: `` * [x] $CFGS/z/zlib-1.3.eb (module: Core | zlib/1.3)``.
_EASYBUILD = r"""
%(need)s
eb --dry-run --robot %(file)s > seatrial.plan || { cat seatrial.plan; exit 1; }
_name=$(sed -n 's|^ \* \[.\] .*/%(pattern)s (module: \(.*\))$|\1|p' seatrial.plan)
[ "$_name" ] || { cat seatrial.plan; echo "eb named no module of %(shown)s"; exit 1; }
_top=$(sed -n 's/^CFGS=//p' seatrial.plan)
_key=$(sed -n 's|^ \* \[.\] \(.*\) (module: .*|\1|p' seatrial.plan |
  while read -r _file; do cat "${_file/#\$CFGS/$_top}" || exit; done | sha256sum)
eb --robot --wait-on-lock-limit=-1 %(file)s || exit
_all=$(eb --show-full-config) || exit
_value() { sed -n "s/^$1  *([^)]*) = //p" <<< "$_all"; }
_path=$(_value installpath-modules)
[ "$_path" != None ] || _path=$(_value installpath)/$(_value subdir-modules)
_path+=/$(_value suffix-modules-path)
case $_name in *' | '*) _path+=/${_name%%%% | *} _name=${_name##* | } ;; esac
printf '%%s\n' "$_path" "$_name" > seatrial.package
echo "seatrial:easybuild=$_name/${_key:0:16}" >> %(found)s
"""

_NEED = "command -v %s > /dev/null || { echo %s; exit %d; }"

_LOAD_SPACK = """\
_package=$(< "$BUILD/seatrial.package")
command -v spack > /dev/null || { echo %(no_command)s >&2; exit %(code)d; }
_load=$(spack load --sh "$_package" 2> /dev/null) || {
  _words=$(spack load --sh "$_package" 2>&1 | tr -s '[:space:]' ' ') || :
  _words=${_words%% }
  echo "%(words)sspack load $_package failed: ${_words:0:300}" >&2
  exit %(code)d
}
eval "$_load"
"""

_LOAD_MODULE = """\
{ read -r _path && read -r _package; } < "$BUILD/seatrial.package"
module use "$_path"
seatrial_load "$_package"
"""


def install_lines(build: Build) -> str:
    """Return bash that installs what a build asks of Spack or EasyBuild, in the directory of the
    build; "" if it asks for nothing."""
    if build.spack:
        spec = " ".join(build.spack.split())
        return _SPACK % {"need": _need("spack"), "spec": spec, "found": FILE}
    if not build.easybuild:
        return ""
    file = Path(build.easybuild)
    return _EASYBUILD % {
        "need": _need("eb"),
        "file": shell_word(build.easybuild),
        "pattern": "".join(c if c.isalnum() or c in "-_+" else f"[{c}]" for c in file.name),
        "shown": file.name,
        "found": FILE,
    }


def load_lines(build: Build | None) -> str:
    """Return bash that loads the package of a build, and ends the script with the words of Spack or
    of ``module`` if it does not load; "" for a build without one."""
    if build is not None and build.spack:
        no_command = shell_word(OWN_WORDS + _no_command("spack"))
        return _LOAD_SPACK % {"no_command": no_command, "words": OWN_WORDS, "code": NO_MODULE}
    if build is not None and build.easybuild:
        return module_command(Path(build.easybuild).stem) + _LOAD_MODULE
    return ""


def _need(command: str) -> str:
    return _NEED % (command, shell_word(_no_command(command)), NO_MODULE)


def _no_command(command: str) -> str:
    where = "the site's file, e.g. `. /opt/spack/share/spack/setup-env.sh`"
    if command == "eb":
        where = "it, e.g. `module load EasyBuild`"
    return f"there is no command `{command}`; let `setup` of the machine read {where}"
