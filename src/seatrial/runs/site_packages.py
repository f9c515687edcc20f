"""Packages of the site's Spack or EasyBuild as builds: ``build: {spack: SPEC}``, ``{easybuild:
FILE}``.

    script = install_lines(build) + load_lines(build) + build.script    # of the build
    preamble += load_lines(build)                                       # of each run

The build asks which concrete spec SPEC stands for, or which easyconfigs the robot of EasyBuild
needs, writes that with its key beside the compilers that it found (``seatrial.compilers``), and
installs it. The key is Spack's own hash of the concrete spec, or the SHA-256 of all these
easyconfigs. Runs load exactly what their build recorded in ``seatrial.package``.
"""

from pathlib import Path

from seatrial.escaping import shell_word
from seatrial.runs.compiler_versions import FILE
from seatrial.runs.environment import NO_MODULE, module_command
from seatrial.suite.model import Build
from seatrial.verify.reading import OWN_WORDS

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
