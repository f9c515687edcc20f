"""The parts that job scripts and build scripts share: exports, the set-up of the machine, modules,
and writing the script."""

import os
import shutil
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.file_model import Scalar
from seatrial.files import open_descriptor
from seatrial.lazy import regex
from seatrial.machine.model import Machine
from seatrial.suite.case_names import show
from seatrial.suite.model import Test
from seatrial.suite.toolchain_flags import toolchain_of
from seatrial.verify.reading import OWN_WORDS

# Functions that a user exported under the names of builtins, such as a cd that lists the folder.
# Job scripts use these builtins.
_OF_BUILTIN = regex(
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


def inherited(machine: Machine) -> dict[str, str]:
    """Return the environment that builds and jobs get from this process. The virtual environment of
    Seatrial itself is no part of it. Where a compiler, an MPI or a launcher of the machine is found
    there alone, its programs come last on PATH, so that all others (python3) are the host's: an MPI
    finds its own programs beside itself."""
    environment = {
        name: value for name, value in os.environ.items() if not _OF_BUILTIN.fullmatch(name)
    }
    if "HOSTNAME" in environment:  # of another host, where a scheduler passed it to this process
        environment["HOSTNAME"] = os.uname().nodename
    own = Path(sys.prefix) / "bin"
    if sys.prefix == sys.base_prefix:
        return environment
    real = os.path.realpath(own)
    others = [folder for folder in os.get_exec_path() if os.path.realpath(folder) != real]
    path = os.pathsep.join(others)
    needed = [name for name in _programs(machine) if (own / name).exists()]
    alone = not all(shutil.which(name, path=path) for name in needed)
    environment["PATH"] = os.pathsep.join([*others, str(own)]) if alone else path
    if environment.get("VIRTUAL_ENV") == sys.prefix:
        del environment["VIRTUAL_ENV"]
        environment.pop("VIRTUAL_ENV_PROMPT", None)
    return environment


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
    """Return the variables of a toolchain, such as CC and MPICC, that ``suite/variables.py``
    documents."""
    chain = toolchain_of(machine, test, name)
    keys = ("cc", "cxx", "fc", "mpicc", "mpicxx", "mpifc", "cflags", "openmp", "ldflags", "ldlibs")
    own = {key.upper(): getattr(chain, key) for key in keys}
    return {**own, "TOOLCHAIN": name, "MACHINE": machine.machine}


def preamble(machine: Machine, test: Test, toolchain: str) -> str:
    """Return set-up and modules in the order machine, toolchain, test; then their environments,
    which can thus replace what a module set."""
    chain = toolchain_of(machine, test, toolchain)
    text = f"{machine.setup.rstrip()}\n" if machine.setup.strip() else ""
    text += module_lines([*machine.modules, *chain.modules, *test.modules])
    own = test.fixed_environment
    return text + exports({**machine.environment, **chain.environment, **own})


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
# did not load, and end well.
_LOAD = r"""
if ! command -v module > /dev/null; then
  for _init in /etc/profile.d/{z00_lmod,lmod,z00_modules,modules}.sh \
    {"${LMOD_PKG-}","${MODULESHOME-}",/usr/share/{lmod/lmod,modules,Modules}}/init/bash; do
    if [ -r "$_init" ] && . "$_init" && command -v module > /dev/null; then break; fi
  done
fi
command -v module > /dev/null || { echo %(no_command)s >&2; exit %(code)d; }
seatrial_load() {  # a module
  local _before=${LOADEDMODULES-} _words=
  if module load "$1"; then
    [ "${LOADEDMODULES-}" = "$_before" ] || return 0
    case :$_before: in *:"$1":* | *:"$1"/*) return 0 ;; esac
    _words=$(module load "$1" 2>&1) || :
    case $_words in *[Ee][Rr][Rr][Oo][Rr]*) ;; *) return 0 ;; esac
  else
    _words=$(module load "$1" 2>&1) || :  # the site may have set -e
  fi
  _words=$(tr -s '[:space:]' ' ' <<< "$_words")
  _words=${_words%% } _words=${_words# } _words=${_words:0:300}
  echo "%(words)smodule $1 did not load${_words:+: $_words}" >&2
  exit %(code)d
}
"""
