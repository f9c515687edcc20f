"""The parts that job scripts and build scripts share: exports, the set-up of the machine, modules,
packages of the site, and writing the script."""

import hashlib
import os
import re
import shutil
import sys
from collections.abc import Iterable, Mapping
from functools import cache
from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.execute.kept_files import sizes_of
from seatrial.execute.toolchains import COMPILERS_FILE
from seatrial.files import make_folder, open_descriptor, read_start, replace_file
from seatrial.judge.reading import OWN_WORDS
from seatrial.model.build import own_flags, toolchain_of
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine, Toolchain
from seatrial.model.machine_file import REFERENCE, references_of
from seatrial.model.parameters import IMAGE_DIGEST, RUN_ONLY
from seatrial.model.schedulers import schedulers
from seatrial.model.test import Build, Test

# Functions that a user exported under the names of builtins, such as a cd that lists the folder.
# Job scripts use these builtins.
_OF_BUILTIN = (
    r"BASH_FUNC_([.:\[]|alias|bg|bind|break|builtin|cd|command|continue|declare|dirs|echo|enable"
    r"|eval"
    r"|exec|exit|export|false|fc|fg|getopts|hash|help|jobs|kill|let|local|mapfile|popd|printf|pushd"
    r"|pwd|read|readarray|readonly|return|set|shift|shopt|source|suspend|test|times|trap|true|type"
    r"|typeset|ulimit|umask|unalias|unset|wait)(%%|\(\))"
)
NO_MODULE = 90  # the exit code of a script whose modules cannot be loaded


def exports(variables: Mapping[str, Scalar]) -> str:
    """Return one ``export`` line; the values are quoted."""
    words = [
        f"{name}={value if value.__class__ is int else shell_word(show(value))}"
        for name, value in variables.items()
    ]
    return f"export {' '.join(words)}\n" if words else ""


def environment_lines(*layers: Mapping[str, Scalar]) -> str:
    """Return bash that exports variables as people wrote them, layer by layer. ``$NAME`` and
    ``${NAME}`` in a value are what NAME is then, on the node; ``$$`` is a dollar sign."""
    if any(REFERENCE.search(str(value)) for layer in layers for value in layer.values()):
        pairs = [pair for layer in layers for pair in layer.items()]
        return "".join(f"export {name}={_expanding(show(value))}\n" for name, value in pairs)
    merged: dict[str, Scalar] = {}
    for layer in layers:
        merged |= layer
    return exports(merged)


def _expanding(text: str) -> str:
    """Return the value of a variable as a word of bash. Where a part of a list with colons is a
    variable that is not set, its colon goes, too: an empty part is the current directory."""
    parts = text.split(":")
    alone = [_name_alone(part) for part in parts]
    kept = alone.index("") if "" in alone else 0  # the part before and behind which colons go
    before = [f'"${{{name}:+${name}:}}"' for name in alone[:kept]]
    behind = [
        f'"${{{name}:+:${name}}}"' if name else f":{_replaced(part)}"
        for part, name in zip(parts[kept + 1 :], alone[kept + 1 :], strict=True)
    ]
    if alone[kept] and behind:  # variables alone: the colon behind the first goes with that, too
        behind[0] = f'"${{{alone[1]}:+${{{alone[0]}:+:}}${alone[1]}}}"'
    return "".join([*before, _replaced(parts[kept]), *behind]) or "''"


def _name_alone(text: str) -> str:
    """Return the variable to which a text refers if it is nothing else; "" for any other text."""
    match = REFERENCE.fullmatch(text)
    return (match[2] or match[3] or "") if match else ""


def _replaced(text: str) -> str:
    """Return text as a word of bash, in which ``$NAME`` is what NAME is then."""
    words, end = [], 0
    for match in REFERENCE.finditer(text):
        literal, end = text[end : match.start()] + ("$" if match[1] else ""), match.end()
        words.append(shell_word(literal) if literal else "")
        words.append("" if match[1] else f'"${{{match[2] or match[3]}-}}"')
    return "".join([*words, shell_word(text[end:]) if text[end:] else ""])


def inherited(machine: Machine) -> dict[str, str]:
    """Return the environment that builds and jobs get from this process.

    It leaves out the virtual environment of Seatrial itself. If a compiler, MPI or launcher of the
    machine exists only in that virtual environment, its bin folder is appended to PATH, after the
    host's, so that all other programs (python3) are the host's.
    """
    environment = {
        name: value for name, value in os.environ.items() if not re.fullmatch(_OF_BUILTIN, name)
    }
    if "HOSTNAME" in environment:  # of another host, where a scheduler passed it to this process
        environment["HOSTNAME"] = os.uname().nodename
    if sys.prefix == sys.base_prefix:
        return environment
    environment["PATH"] = _path_of_host(machine, Path(sys.prefix) / "bin")
    if environment.get("VIRTUAL_ENV") == sys.prefix:
        del environment["VIRTUAL_ENV"]
        environment.pop("VIRTUAL_ENV_PROMPT", None)
    return environment


def _path_of_host(machine: Machine, own: Path) -> str:
    """Return PATH without the folder of Seatrial's own programs; it is the last where a program of
    the machine is nowhere else."""
    real = os.path.realpath(own)
    others = [folder for folder in os.get_exec_path() if os.path.realpath(folder) != real]
    path = os.pathsep.join(others)
    needed = [name for name in _programs(machine) if (own / name).exists()]
    alone = not all(shutil.which(name, path=path) for name in needed)
    return os.pathsep.join([*others, str(own)]) if alone else path


def _programs(machine: Machine) -> set[str]:
    """Return the programs that a machine's file names without their folder."""
    launchers = [machine.launcher, *(chain.launcher for chain in machine.toolchains.values())]
    names = {launcher.command or launcher.kind for launcher in launchers if launcher is not None}
    for chain in machine.toolchains.values():
        names |= {chain.cc, chain.cxx, chain.fc, chain.mpicc, chain.mpicxx, chain.mpifc}
    return {name for name in names if name and "/" not in name}


def write_script(path: str | Path, text: str, mode: int | None = None) -> None:
    """Write a script as UTF-8 in every locale. Bytes of a path that are not UTF-8 stay as they are
    on disk. The permissions are those that the umask leaves, without that to write for others, or
    ``mode``."""
    descriptor = open_descriptor(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    try:
        os.write(descriptor, text.encode("utf-8", errors="surrogateescape"))
        if mode is not None:
            os.fchmod(descriptor, mode)
    finally:
        os.close(descriptor)


def toolchain_variables(machine: Machine, test: Test, name: str) -> dict[str, Scalar]:
    """Return the variables of a toolchain, such as CC and MPICC, that ``model/parameters.py``
    documents."""
    chain = toolchain_of(machine, test, name)
    keys = ("cc", "cxx", "fc", "mpicc", "mpicxx", "mpifc", "cflags", "openmp", "ldflags", "ldlibs")
    own = {key.upper(): getattr(chain, key) for key in keys}
    return {**own, "TOOLCHAIN": name, "MACHINE": machine.machine}


def preamble(machine: Machine, test: Test, toolchain: str) -> str:
    """Return set-up and modules in the order machine, toolchain, test; then their environments,
    which can thus replace what a module or the toolchain set; then the flags of the toolchain that
    refer to variables, without those that an environment sets."""
    chain = toolchain_of(machine, test, toolchain)
    text = f"{machine.setup.rstrip()}\n" if machine.setup.strip() else ""
    text += module_lines([*machine.modules, *chain.modules, *test.modules])
    layers, flags = environments(machine, test, toolchain), _flags_of(machine, test, toolchain)
    replaced = {name: flags[name] for layer in layers for name in layer if name in flags}
    others = {name: value for name, value in flags.items() if name not in replaced}
    return text + _flag_lines(replaced) + environment_lines(*layers) + _flag_lines(others)


def _flags_of(machine: Machine, test: Test, toolchain: str) -> dict[str, Scalar]:
    """Return the compilers and flags of a toolchain that refer to variables."""
    variables = toolchain_variables(machine, test, toolchain)
    return {name: value for name, value in variables.items() if references_of(value)}


def _flag_lines(variables: Mapping[str, Scalar]) -> str:
    """Return bash that replaces ``$NAME`` and ``${NAME}`` in the compilers and flags of a
    toolchain, now that modules are loaded. One that is not set stays as it is written, and so do
    those of the linker."""
    pairs = variables.items()
    return "".join(f"export {name}={_flags(str(value))}\n" for name, value in pairs)


_NOT_REPLACED = ("", "ORIGIN", "LIB", "PLATFORM")  # $$ is a matter of make; of ld.so(8)


def _flags(text: str) -> str:
    """Return flags as a word of bash."""
    words = []
    end = 0
    for match in REFERENCE.finditer(text):
        name = match[2] or match[3] or ""
        if name in _NOT_REPLACED:
            continue
        literal, end = text[end : match.start()], match.end()
        written = match[0].replace("$", "\\$").replace("}", "\\}")
        value = f'"${{{name}-{written}}}"'
        words += [shell_word(literal) if literal else "", value]
    rest = text[end:]
    return "".join([*words, shell_word(rest) if rest else ""])


def environments(machine: Machine, test: Test, toolchain: str) -> list[dict[str, Scalar]]:
    """Return the environments of builds and runs of a test with a toolchain, in their order."""
    of_machine = machine.toolchains.get(toolchain, Toolchain()).environment
    flags = own_flags(test, toolchain)
    of_flags = flags.environment if flags else {}
    return [machine.environment, of_machine, of_flags, test.fixed_environment]


def module_lines(names: Iterable[str]) -> str:
    """Return bash that loads modules in their order, and ends the script with the words of
    ``module`` if one does not load."""
    names = list(names)
    if not names:
        return ""
    return module_command(names[0]) + "".join(
        f"seatrial_load {shell_word(name)}\n" for name in names
    )


def module_command(name: str) -> str:
    """Return bash that finds the command ``module``, and defines ``seatrial_load`` of a module.
    Where there is no such command, the script ends with a message that names this module."""
    no_command = (
        f"{OWN_WORDS}module {name} cannot be loaded: there is no command `module`; let "
        "`setup` read the site's file, e.g. `. /etc/profile.d/lmod.sh`"
    )
    return _LOAD % {"no_command": shell_word(no_command), "words": OWN_WORDS, "code": NO_MODULE}


# Where a shell that is no login shell has not read the files of Lmod or of Environment Modules,
# they are read from their usual places. Versions of Environment Modules before 5 say that a module
# did not load, and end well; Lmod loads one that wants another one, warns, and fails. Where
# one was loaded before, nothing tells that it was loaded anew: a failure is one.
_LOAD = r"""
if ! command -v module > /dev/null; then
  for _init in /etc/profile.d/{z00_lmod,lmod,z00_modules,modules}.sh \
    {"${LMOD_PKG-}","${MODULESHOME-}",/usr/share/{lmod/lmod,modules,Modules}}/init/bash; do
    if [ -r "$_init" ] && . "$_init" && command -v module > /dev/null; then break; fi
  done
fi
command -v module > /dev/null || { echo %(no_command)s >&2; exit %(code)d; }
seatrial_has() {  # a module, modules: whether it is one of them
  case :$2: in *:"$1":* | *:"$1"/*) ;; *) return 1 ;; esac
}
seatrial_load() {  # a module
  local _before=${LOADEDMODULES-} _words=
  if module load "$1"; then
    [ "${LOADEDMODULES-}" = "$_before" ] || return 0
    if seatrial_has "$1" "$_before"; then return 0; fi
    _words=$(module load "$1" 2>&1) || :
    case $_words in *[Ee][Rr][Rr][Oo][Rr]*) ;; *) return 0 ;; esac
  else
    if seatrial_has "$1" "${LOADEDMODULES-}" && ! seatrial_has "$1" "$_before"; then
      echo "note: module $1 is loaded, though \`module load\` failed: see what it said" >&2
      return 0
    fi
    _words=$(module load "$1" 2>&1) || :  # the site may have set -e
  fi
  _words=$(tr -s '[:space:]' ' ' <<< "$_words")
  _words=${_words%% } _words=${_words# } _words=${_words:0:300}
  echo "%(words)smodule $1 did not load${_words:+: $_words}" >&2
  exit %(code)d
}
"""


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
        return _SPACK % {"need": _need("spack"), "spec": spec, "found": COMPILERS_FILE}
    if not build.easybuild:
        return ""
    file = Path(build.easybuild)
    return _EASYBUILD % {
        "need": _need("eb"),
        "file": shell_word(build.easybuild),
        "pattern": "".join(c if c.isalnum() or c in "-_+" else f"[{c}]" for c in file.name),
        "shown": file.name,
        "found": COMPILERS_FILE,
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


# ---- environment capture -------------------------------------------------------------------------
#
# The environments of runs, each distinct one stored once.
#
# A job writes its exported variables into the directory of its run. This module copies them to
# ``environments/<hash>`` of the trial, readable by the owner alone; the run keeps the hash. The
# file of the run is removed when the hash is in the journal, so a driver that is killed loses
# none. Variables that differ from job to job and from session to session are left out. So the hash
# tells whether two runs had the same environment, and the files tell the differences.


ENVIRONMENT = "job.environment"
MAX_BYTES = 1 << 20

# The digest of a container's image tells runs apart.
_NAMES = (
    *(RUN_ONLY.keys() - {IMAGE_DIGEST}),
    "BUILD",
    "PWD",
    "OLDPWD",
    "SHLVL",
    "HOSTNAME",
    "TMPDIR",
)
_NAMES += ("CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL")
_NAMES += ("CI", "BUILD_ID", "BUILD_NUMBER", "BUILD_TAG", "BUILD_URL", "BUILD_DISPLAY_NAME")
_OF_CI = ("CI_", "GITLAB_", "GITHUB_", "RUNNER_", "JENKINS_", "HUDSON_")
_PREFIXES = (
    "SEATRIAL_",
    "SSH_",
    "XDG_",
    "BASH_FUNC_",
    "_",
    *_OF_CI,
)

# A variable in the output of bash's ``declare -x``: a name, and a value in quotes, which may have
# several lines. Else a line, which has no name. The first form of a value is the second without
# escaped quotes, as most values are; it is several times as quick.
_VALUE = r"""(?:"[^"]*+(?<!\\)"|"[^"\\]*(?:\\.[^"\\]*)*"|\$'[^'\\]*(?:\\.[^'\\]*)*'|[^\n]*)"""
_VARIABLE = re.compile(
    r"(declare -\w*x\w* ([^=\n]*)(?:=" + _VALUE + r")?\n|[^\n]*\n|[^\n]+)", re.DOTALL | re.ASCII
)


def capture(run: Path, environments: Path, parameters: Iterable[str]) -> str:
    """Return the hash (16 hex digits) of the environment of a run, and store it in
    ``environments``. Returns "" where the job left none that can be read."""
    path = f"{run}/{ENVIRONMENT}"
    try:
        text = read_start(path, MAX_BYTES, follow=False).data
        if not text:
            return ""
        kept = _stable(text, parameters)
        digest = hashlib.sha256(kept).hexdigest()[:16]
        if not sizes_of(environments, [digest]).get(digest):  # a crash of the host may have cut it
            _write(environments / digest, kept)
    except OSError:
        return ""
    return digest


def drop(runs: Iterable[Path]) -> None:
    """Remove the files that jobs left of their environments, whose hashes are in the journal."""
    for run in runs:
        try:
            # plain: a name in the own run directory; one call, as runs are many
            os.unlink(f"{run}/{ENVIRONMENT}")  # noqa: PTH108
        except OSError:
            continue


def _stable(text: bytes, parameters: Iterable[str]) -> bytes:
    """Return the text without the variables that do not count. Latin-1 keeps each byte as it is."""
    names, beginnings = _left_out()
    left_out = names.union(parameters)
    kept = [
        line
        for line, name in _VARIABLE.findall(text.decode("latin-1"))
        if name not in left_out and not name.startswith(beginnings)
    ]
    return "".join(kept).encode("latin-1")


@cache
def _left_out() -> tuple[frozenset[str], tuple[str, ...]]:
    """Return the names of variables that do not count, and beginnings of such names."""
    of_jobs = [name for each in schedulers().values() for name in each.job_variables]
    beginnings = tuple(name[:-1] for name in of_jobs if name.endswith("*"))
    return frozenset({*_NAMES, *of_jobs}), (*_PREFIXES, *beginnings)


def _write(target: Path, text: bytes) -> None:
    """Write a file that appears under its name when it is complete, as several runs may have the
    same environment at the same time."""
    make_folder(target.parent)
    replace_file(target, text, 0o600)
