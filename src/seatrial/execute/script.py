"""The job script of a run: plain bash, which a person can read and run again.

The script claims the run directory, so that a job that was submitted twice runs once. It sets the
environment, writes its own events by shell builtins alone, and sources the script of the test,
which lies unchanged in a file of its own.
"""

import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.escaping import comment, shell_word
from seatrial.execute import kept_files, wrappers
from seatrial.execute.directory import (
    enter_lines,
    fill_lines,
    leave_lines,
    make_lines,
    working_directory,
)
from seatrial.execute.environment import (
    NO_MODULE,
    environment_lines,
    environments,
    exports,
    load_lines,
    module_lines,
    preamble,
    toolchain_variables,
)
from seatrial.execute.launchers import (
    LaunchLine,
    container_words,
    host_files,
    launch_of,
    shared_host_files,
)
from seatrial.execute.trial_paths import TrialPaths
from seatrial.execute.wrappers import CLEARED_FOR_PATTERN, image_lines
from seatrial.execute.wrappers import enter_container_lines as enter_container
from seatrial.files import SMALLEST_ROOM
from seatrial.hooks import load, provided
from seatrial.judge.formats import find_format
from seatrial.judge.metrics import FROM
from seatrial.model.build import words_of
from seatrial.model.file_model import Scalar
from seatrial.model.machine import Machine
from seatrial.model.machine_file import references_of
from seatrial.model.nodes import spans
from seatrial.model.run_settings import PREFIX, SPACE_FILE, TUNABLES
from seatrial.model.schedulers import scheduler_of
from seatrial.model.task_placement import (
    HELLO,
    PIECE,
    PLACEMENT_FILE,
    counts_threads,
    tells_placement,
)
from seatrial.model.test import Case, FromParameter, Metric, RunSettings, Test

NO_DIRECTORY, NOT_WRITABLE, CLAIMED = 91, 92, 93
"""The exit codes of a job script that started nothing: the directory of its run is not there, or
cannot be written, or another job has claimed it."""

END_NOT_WRITTEN = 94
"""The exit code of a job script that could not write the end of its run."""

BROKEN, NOT_BOOTED = 95, 96
"""The exit codes of a job whose nodes did not become a cluster: for a fault of the set-up, which
its stderr says; as not all nodes answered in time."""

SCRIPT_EXIT_CODES = {
    NO_MODULE: "a module did not load; stderr says which (builds, too)",
    NO_DIRECTORY: "its directory is not there (builds, too)",
    NOT_WRITABLE: "its directory cannot be written",
    CLAIMED: "another job has claimed this run; nothing was started",
    END_NOT_WRITTEN: "the end of the run could not be written, as its file system is full",
    BROKEN: "a compat job cannot start; stderr says why (`compat run`, too)",
    NOT_BOOTED: (
        "not all nodes of a compat job answered in time; stderr names them (`compat run`, too)"
    ),
}
"""The exit codes of the scripts around those that people write."""

LAST_LINE = "# end of the script"

# A crash of the host that wrote this script may have cut it, while its job waits elsewhere.
_WHOLE = f"""\
mapfile -t _text < job.sh
[ "${{_text[*]: -1}}" = "{LAST_LINE}" ] || exit 91
"""

# Variables of Seatrial begin with an underscore; parameters of tests cannot.

# Where the claim cannot be written nothing runs, as there would be no verdict.
_CLAIM = """\
set -C
if { : > events.jsonl; } 2> /dev/null; then
  %s
elif [ ! -e events.jsonl ]; then
  echo "seatrial: cannot write in $_run; see its space, quota and permissions" >&2
  exit 92
else
%sfi
set +C
"""
_REFUSE = """\
  echo 'seatrial: another job has claimed this run; nothing was started' >&2
  exit 93
"""
# The claim of a job that may run again holds its id. A job that Slurm requeued (its restart count
# is above 0, which a job inherits of one that submits it) runs in the directory that it claimed
# before, with new output and new events.
_CLAIM_WITH_ID = """printf '{"claim":"%s"}\\n' "$_job" 2> /dev/null >> events.jsonl"""
_REFUSE_UNLESS_REQUEUED = """\
  _claim=
  [ "${SLURM_RESTART_COUNT:-0}" -eq 0 ] || read -r _claim < events.jsonl
  if [ "$_claim" != "{\\"claim\\":\\"$_job\\"}" ]; then
    echo 'seatrial: another job has claimed this run; nothing was started' >&2
    exit 93
  fi
  printf '%s\\n' "$_claim" >| events.jsonl
  for _file in stdout stderr job.environment; do : >| "$_file"; done
"""

# A fork is slow for a short job, so functions return texts in a variable, not by $(...). Where the
# clock was set while the test ran, the time since boot tells when it ended, to 20 ms.
# Bash before 5.0 has no EPOCHREALTIME.
_EVENTS = r"""
seatrial_clock() {  # _time = the clock in ns, _up = the time since boot in 1/100 s
  _time=${EPOCHREALTIME-}  # in microseconds, whatever the decimal sign
  _time=${_time//[!0-9]/}000
  [[ $_time != 000 ]] || _time=$(date +%s%N)
  [[ -r /proc/uptime ]] && IFS=' ' read -r _up _ < /proc/uptime
  _up=${_up/./}
}
seatrial_event() {  # name, further members of the JSON object, number of blanks
  printf '{"time":%s,"event":"%s"%s%*s}\n' "$_time" "$1" "$2" "${3:-0}" '' >> "$_run/events.jsonl"
}
seatrial_json() {  # _text = its argument, fit for a JSON string
  _text=${1//\\/\\\\}
  _text=${_text//\"/\\\"}
  _text=${_text//[[:cntrl:]]/ }
}
"""

# The unique ids of the GPUs that the job may use. The programs number GPUs as the variables do: all
# that they see are those of the job where Slurm constrains devices.
_GPUS = r"""
if command -v nvidia-smi > /dev/null; then
  _gpus=$(timeout 20 nvidia-smi --query-gpu=uuid --format=csv,noheader \
    ${CUDA_VISIBLE_DEVICES:+--id="$CUDA_VISIBLE_DEVICES"} 2> /dev/null) || _gpus=
elif command -v rocm-smi > /dev/null; then
  while read -r _line; do
    case $_line in "GPU["*"Unique ID: "*) ;; *) continue ;; esac
    _index=${_line#GPU[} _index=${_index%%]*}
    case ,${ROCR_VISIBLE_DEVICES:-$_index}, in
      *,"$_index",*) _gpus+="${_gpus:+ }${_line##*Unique ID: }" ;;
    esac
  done < <(timeout 20 rocm-smi --showuniqueid 2> /dev/null)
fi
seatrial_json "${_gpus//$'\n'/ }"
_gpus=${_gpus:+",\"gpus\":\"$_text\""}
"""

# The CPUs that the job was given, before a launcher binds anything.
_GIVEN = r"""
set +aeu
read -r _node < /proc/sys/kernel/hostname # HOSTNAME may be that of the host of sbatch
while read -r _name _text; do
  [ "$_name" != Cpus_allowed_list: ] || printf 'given node %s mask %s\n' "$_node" "$_text"
done < /proc/self/status >| placement.txt
"""
_PROVE = 'timeout -k 5 60 $LAUNCH "$BUILD/%s" < /dev/null >> placement.txt 2>&1\n'

# The environment goes to a file that the driver created, readable by its owner alone. The driver
# computes the hash, as a checksum here would cost three processes. To truncate the empty file would
# have ext4 give it blocks on the disk at once (auto_da_alloc); it is removed before it needs any.
# The set-up of a site may have changed shell options; they are reset for the script of the test.
_ENVIRONMENT = r"""
set +aeu
_unwritten=
declare -x >> job.environment || _unwritten=1
_said= _gpus=
"""

_START = r"""
_mark=$_told/$HOSTNAME+${TOOLCHAIN//\//+}
[[ -e $_mark || ! -r $_told/facts.sh ]] || . "$_told/facts.sh"
seatrial_clock
_start=$_time _start_up=$_up
seatrial_json "${_nodes_of_job:-$HOSTNAME}"
_facts=",\"job_id\":\"$_job\",\"nodes\":\"$_text\""
_text=
[[ -z ${LOADEDMODULES-} ]] || seatrial_json "$LOADEDMODULES"
_facts+=",\"text\":\"$_text\"$_gpus${_said:+,\"facts\":{$_said\}}"
seatrial_event binary_execute_start "$_facts" || _unwritten=1
[[ -z $_said ]] || : 2> /dev/null >| "$_mark"
"""

# The blanks need a block of the file system: where it is full, the output may not be whole, and the
# run has no end. It may have found room again just now, so the end tells whether something could
# not be written, or there is hardly any room. The latter is asked where a test failed, as that
# starts a process.
_SCRIPT_END = rf"""
_code=$?
seatrial_clock
if [[ $_code != 0 ]] && _room=($(stat -f -c '%a %S %c %d' "$_run")); then
  [[ $((_room[0] * _room[1])) -ge {SMALLEST_ROOM} ]] || _unwritten=1
  [[ ${{_room[2]}} = 0 || ${{_room[3]}} != 0 ]] || _unwritten=1
fi
"""

_END = r"""
_off=$((_time - _start - (${_up:-0} - ${_start_up:-0}) * 10000000))
[[ -z $_up || ${_off#-} -le 50000000 ]] || _time=$((_time - _off))
_sizes=
%s_more=",\"sizes\":{${_sizes#,}}${_unwritten:+,\"unwritten\":true}"
seatrial_event binary_execute_end ",\"value\":$_code$_more" 4096 || exit 94
exit "$_code"
"""

# On other hosts a run's end tells the sizes of stdout and of the files that are judged, so that a
# file that is seen late here, or was cut by a crash of a host, is not judged as it is. No process
# is started for an empty file.
_SIZES = r"""
for _file in %s; do
  _size=0
  [[ -f $_file && ! -s $_file ]] || _size=$(stat -L -c %%s -- "$_file" 2> /dev/null) || continue
  seatrial_json "$_file"
  _sizes+=",\"$_text\":$_size"
done
"""


class JobLines(Struct, frozen=True):
    """Bash that a plug-in adds to the job script of a case."""

    #: At its very beginning, in the directory of the run.
    first: str = ""
    #: Before the script of the test, when its variables are set.
    before: str = ""
    #: In the environment of that script alone.
    inside: str = ""
    #: After that script.
    after: str = ""


class ScriptWriter:
    """Writes job scripts. The part that all cases of a test and toolchain share is made once."""

    def __init__(self, machine: Machine, trial: str, folder: TrialPaths) -> None:
        """``trial``: the tag of the trial; ``folder``: its folder, with the scripts of tests."""
        self.machine = machine
        self.trial = trial
        self._folder = folder
        self._parts = [load(part.lines) for part in provided("seatrial_job_parts")]
        self._common: dict[tuple[str, str], str] = {}
        self._ends: dict[str, str] = {}
        self._elsewhere = machine.jobs_run_elsewhere
        by_slurm = machine.scheduler == "slurm"
        parts = (_CLAIM_WITH_ID, _REFUSE_UNLESS_REQUEUED) if by_slurm else (":", _REFUSE)
        self._claim = scheduler_of(machine.scheduler).job_id + _CLAIM % parts

    def job_script(
        self, test: Test, case: Case, run_id: str, path: str, build: str, nodes: str = ""
    ) -> str:
        """Return the text of ``job.sh`` for one run: ``path`` is its directory, ``build`` that of
        its build, ``nodes`` were chosen for it, in the order of its ranks."""
        launch = launch_of(self.machine, test, case, nodes)
        line = wrappers.from_anywhere(launch.line, path)
        hosts = shared_host_files(self.machine, test, case, self._folder.hosts)
        variables = {
            "BUILD": build,
            **run_variables_of(case),
            "SEATRIAL_RUN": run_id,
            "SEATRIAL_TEST": test.folder,
            **({"PIECE": case.parameters[PIECE]} if test.run.pieces is not None else {}),
        }
        added = self._added(test, case)
        directory = working_directory(case, self.trial, run_id)
        return "".join(
            (
                "#!/bin/bash\n",
                f"# {comment(case.name)}: run {run_id} of trial {self.trial}\n",
                f"_run={shell_word(path)}\n",
                f"_told={shell_word(str(self._folder.facts))}\n",
                'cd "$_run" || exit 91\n',
                added.first,
                _WHOLE if self._elsewhere else "",
                self._claim,
                exports({**test.bound(case.parameters), **variables}),
                host_files(self.machine, case, hosts),
                self._shared(test, case.toolchain),
                launch.before,
                exports({"LAUNCH": line, "CONTAINER": " ".join(container_words(case))}),
                image_lines(self.machine, test, case),
                settings_lines(self.machine, test, case, directory),
                _given(launch) if tells_placement(test) else "",
                added.before,
                _proof(added.inside) if test.run.prove else "",
                CLEARED_FOR_PATTERN if test.run.pattern else "",
                wrappers.CLEARED_FOR_COUNTER if counts_threads(test, case) else "",
                _ENVIRONMENT,
                _GPUS if case.gpus else "",
                _START,
                added.inside,
                kept_files.before_script(self.machine, case),
                before_script(case, directory),
                enter_container(test, case),
                f". {shell_word(str(self._folder.script(test.name)))}\n)",
                _SCRIPT_END,
                kept_files.after_script(self.machine),
                added.after,
                after_script(case, directory, judged_files(test) if directory else ()),
                self._end(test),
                f"{LAST_LINE}\n",
            )
        )

    def _added(self, test: Test, case: Case) -> JobLines:
        """Return what plug-ins add, the first one outermost."""
        parts = [lines(self.machine, test, case) for lines in self._parts]
        return JobLines(
            "".join(part.first for part in parts),
            "".join(part.before for part in parts),
            "".join(part.inside for part in parts),
            "".join(part.after for part in reversed(parts)),
        )

    def _end(self, test: Test) -> str:
        if test.name not in self._ends:
            files = " ".join(map(shell_word, ("stdout", *judged_files(test))))
            self._ends[test.name] = _END % (_SIZES % files if self._elsewhere else "")
        return self._ends[test.name]

    def _shared(self, test: Test, toolchain: str) -> str:
        key = (test.name, toolchain)
        if key not in self._common:
            variables = exports(toolchain_variables(self.machine, test, toolchain))
            loaded = preamble(self.machine, test, toolchain) + load_lines(test.build)
            self._common[key] = variables + loaded + _EVENTS
        return self._common[key]


def run_variables_of(case: Case) -> dict[str, Scalar]:
    """Return the variables by which a script knows the size of its run."""
    return {
        "NODES": case.nodes,
        "TASKS": case.tasks,
        "TASKS_PER_NODE": case.tasks_per_node,
        "THREADS": case.threads,
        "OMP_NUM_THREADS": case.threads,
        "GPUS_PER_NODE": case.gpus,
        "WALLTIME": round(case.walltime),
    }


def _given(launch: LaunchLine) -> str:
    """Return bash that tells which CPUs the job was given, and which its launcher asks for."""
    lines = "".join(
        f"asked slot {slot} mask {spans(cpus)}\n" for slot, cpus in enumerate(launch.cpus)
    )
    return _GIVEN + (f"cat >> placement.txt << 'END'\n{lines}END\n" if lines else "")


def _proof(inside: str) -> str:
    """Return bash that starts the probe hello in the environment of the test's script."""
    line = _PROVE % HELLO
    return f"(\n{inside}{line})\n" if inside else line


def judged_files(test: Test) -> list[str]:
    """Return the files of a run, besides stdout, that the checks and metrics of a test name, or
    that the output format of its metrics is in."""
    names = [name for check in test.verify for name in (check.in_file, check.file, check.identical)]
    names += [PLACEMENT_FILE] if tells_placement(test) else []
    names += [metric.in_file for metric in test.metrics.values() if isinstance(metric, Metric)]
    if isinstance(form := test.metrics.get(FROM), str):
        names.append(find_format(form).file)
    return sorted({name for name in names if name not in (None, "stdout")})


# ---- settings script -----------------------------------------------------------------------------
#
# The parts of a job script that ask for pages, settings of malloc, stripes and the directory in
# which the script works, and that tell what the run got of them.
#
# Nothing of ours runs on a node but bash: the job script samples /proc beside the test, at most
# every 5 s, and asks Lustre about the files of the run after its end.


HUGETLB = {"4k": 0, "thp": 1, "2M": 2 << 20, "1G": 1 << 30}
"""The values of glibc.malloc.hugetlb (since glibc 2.35): 1 is madvise, more are bytes of a page."""

MAX_FILES = 16  # of a run, whose stripes are asked for


class RunVariables(Struct, frozen=True):
    """The modules, variables and tunables of malloc by which a run has what its case asks for."""

    modules: list[str]
    environment: dict[str, Scalar]
    tunables: dict[str, int]
    #: Variables that have the values of parameters.
    parameters: dict[str, Scalar] = {}


def run_variables(machine: Machine, test: Test, case: Case) -> RunVariables:
    """Return how a case gets its pages, its settings of malloc and the variables of its
    parameters."""
    parameters: dict[str, Scalar] = {
        name: test.bound(case.parameters)[value.parameter]
        for name, value in test.environment.items()
        if isinstance(value, FromParameter)
    }
    settings = case.settings
    tunables = dict(settings.malloc)
    site = machine.pages.get(settings.pages)
    if site is not None:
        return RunVariables(list(site.modules), site.environment, tunables, parameters)
    if settings.pages:
        tunables["hugetlb"] = HUGETLB[settings.pages]
    return RunVariables([], {}, tunables, parameters)


def settings_lines(machine: Machine, test: Test, case: Case, directory: Path | None) -> str:
    """Return bash that sets the variables of a run, and makes its directory (if it has one beside
    the run directory) and its stripes, before its script."""
    wanted = run_variables(machine, test, case)
    variables = module_lines(wanted.modules) + environment_lines(wanted.environment)
    variables += exports(wanted.parameters)
    variables += tunables_line(wanted.tunables)
    made = make_lines(directory)
    return variables + made + _set_stripes(case.settings, directory) + fill_lines(directory)


def tunables_line(values: Mapping[str, int]) -> str:
    """Return bash that adds tunables of malloc to those that are set: the last one counts."""
    if not values:
        return ""
    text = ":".join(f"{PREFIX}{name}={value}" for name, value in values.items())
    return f"export {TUNABLES}=${{{TUNABLES}:+${TUNABLES}:}}{text}\n"


def stripe_line(settings: RunSettings) -> str:
    """Return the command that sets the stripes of files in the current directory, "" if none are
    asked for."""
    options = []
    if settings.stripe_count:
        options.append(f"-c {settings.stripe_count}")
    if settings.stripe_size:
        options.append(f"-S {settings.stripe_size}")
    return f"lfs setstripe {' '.join(options)} ." if options else ""


def _set_stripes(settings: RunSettings, directory: Path | None) -> str:
    line = stripe_line(settings)
    if not line:
        return ""
    where = 'cd -- "$_work" && ' if directory else ""
    return (
        f"({where}{line}) >| stripes.txt 2>&1 "
        f'|| echo "failed: {line}: exit code $?" >> stripes.txt\n'
    )


def before_script(case: Case, directory: Path | None) -> str:
    """Return bash that begins to sample the pages of a run, if it asks for some, and starts the
    subshell of the script, in its directory, where there is the space that it asks for."""
    samples = _SAMPLE_PAGES if case.settings.pages else ""
    return samples + "(\n" + enter_lines(directory) + space_lines(case.settings)


def after_script(case: Case, directory: Path | None, files: Sequence[str]) -> str:
    """Return bash that tells what the run got, and keeps files of its directory, after its
    script."""
    settings = case.settings
    lines = _END_SAMPLES if settings.pages else ""
    if settings.stripe_count or settings.stripe_size:
        lines += _GET_STRIPES % ("$_work" if directory else ".")
    return lines + leave_lines(directory, files)


# Of the largest process on this node: kB of anonymous memory, of that in transparent huge pages,
# and in pages of hugetlbfs. smaps_rollup takes time with much memory, so it is read when the
# process has grown by a tenth. The sampler's own programs are not the run's.
_SAMPLE_PAGES = r"""
seatrial_pages() {
  local file path name kb wait=0.1 most=0 size largest at
  export -n SEATRIAL_RUN
  unset GLIBC_TUNABLES
  while sleep "$wait" && [ -d "/proc/$$" ]; do
    case $wait in 0.1) wait=0.2 ;; 0.2) wait=0.5 ;; 0.5) wait=1 ;; 1) wait=2 ;; *) wait=5 ;; esac
    largest=0 at= path=
    while IFS=$':\t ' read -r file name kb _; do
      [ "$file" = "$path" ] || path=$file size=0
      size=$((size + kb))
      [ "$size" -le "$largest" ] || largest=$size at=$file
    done < <(grep -lszxF "SEATRIAL_RUN=$SEATRIAL_RUN" /proc/[0-9]*/environ \
      | sed 's/environ$/status/' | xargs -r grep -HsE '^(RssAnon|HugetlbPages):')
    [ "$largest" -gt $((most + most / 10)) ] || continue
    local anonymous=0 thp=0 hugetlb=0
    while IFS=$':\t ' read -r name kb _; do
      case $name in
        Anonymous) anonymous=$kb ;;
        AnonHugePages) thp=$kb ;;
        Private_Hugetlb | Shared_Hugetlb) hugetlb=$((hugetlb + kb)) ;;
      esac
    done 2> /dev/null < "${at%status}smaps_rollup"
    [ $((anonymous + hugetlb)) -gt 0 ] || continue
    most=$largest
    echo "$anonymous $thp $hugetlb" >| "$_run/pages.txt"
  done
}
seatrial_pages < /dev/null > /dev/null 2>&1 &
_sampler=$!
disown
"""

_END_SAMPLES = "kill $_sampler 2> /dev/null\n"

# Files that were there before have the stripes that they had.
_GET_STRIPES = rf"""
_asked=0 _told_stripes=$PWD/stripes.txt
cd -- "%s"
for _file in . *; do
  case $_file in
    .) ;;
    job.environment | events.jsonl | stdout | stderr | pages.txt | *.txt.part) continue ;;
    *) [ -f "$_file" ] && [ ! -L "$_file" ] && [ "$_file" -nt "$_told_stripes" ] || continue ;;
  esac
  [ $((_asked += 1)) -le {MAX_FILES} ] || break
  printf 'file: %%s\n' "$_file"
  lfs getstripe -y -d "$_file" 2>&1 || echo "failed: lfs getstripe: exit code $?"
done > "$_told_stripes.part"
cd -- "$_run"
head -c 65536 stripes.txt.part >> stripes.txt
rm -f stripes.txt.part
"""


# ---- build variables -----------------------------------------------------------------------------
#
# The variables of the environment that a build may depend on: two environments that differ in them
# share no builds.
#
#     digest_of_variables(build_variables(machine, test, toolchain, environment), found.digest)


# What make, CMake, Autoconf, compilers and their wrappers read, whatever the script says.
_READ_BY_TOOLS = (
    r"\w*(FLAGS|LIBS|_ROOT|_PREFIX|PATH)"
    r"|(CC|CXX|FC|F77|F90|CPP|LD|AR|MPI(CC|CXX|FC))"
    r"|(OMPI|MPICH|I_MPI|CRAY|CRAYPE|PE|CUDA|ROCM|HIP|NVHPC|MKL|CMAKE|CC|CXX)_\w+"
)
# They differ from shell to shell, and decide nothing of a build.
_OF_SESSIONS = (
    r"PWD|OLDPWD|SHLVL|_|MANPATH|INFOPATH|WINDOWPATH|(SEATRIAL|XDG|SSH|DBUS|GPG|SLURM)_\w*"
)


def build_variables(
    machine: Machine, test: Test, toolchain: str, environment: Mapping[str, str]
) -> list[tuple[str, str]]:
    """Return the variables of the environment that the build of a test may depend on: those that
    tools read, and those that its script or the values of its own variables name."""
    assert test.build is not None
    layers = [
        *environments(machine, test, toolchain),
        toolchain_variables(machine, test, toolchain),
    ]
    own = [value for each in layers for value in each.values()]
    named = words_of(test.build.script) | {name for value in own for name in references_of(value)}
    return sorted(
        (name, value)
        for name, value in environment.items()
        if (name in named or re.fullmatch(_READ_BY_TOOLS, name))
        and not re.fullmatch(_OF_SESSIONS, name)
    )


def digest_of_variables(seen: Sequence[tuple[str, str]], digest: str) -> str:
    """Return the hash of ``digest`` with the variables that a build may depend on."""
    return hashlib.sha256(repr((digest, seen)).encode(errors="surrogateescape")).hexdigest()[:8]


# ---- space ---------------------------------------------------------------------------------------
#
# The space that a test requires (``requires.space``): asked by the job before its script starts.
#
# The node that will write asks: it sees the file system, and other runs may have freed or taken
# space while the job was queued. It is asked for what ``statvfs`` says is free for this user; on
# Lustre, where ``lfs`` is there, also for what the fullest target has (`lfs df`), and for what the
# quota of the user leaves (`lfs quota`). What was found is in ``space.txt``; whatever cannot be
# read is ``unknown``, and then the script does not start either.


LFS_SECONDS = 60

# The first word is the answer; the lines below it are for people and for the reason of the verdict.
# Numbers are of at most 18 digits, which bash can compute with: 2^62 stands for more than that.
_ASK_FOR_SPACE = rf"""
seatrial_lfs() {{ timeout {LFS_SECONDS} lfs "$@" -- "$path"; }}
seatrial_lustre() {{ # of $path, for a file of $1 bytes over $2 stripes: sets answer and told
  local file=$1 stripes=$2 table uuid free least='' targets=0 quota used limit left
  table=$(seatrial_lfs df 2>&1) || {{ answer="unknown lfs df: $table"; return; }}
  while read -r uuid _ _ free _; do
    case $uuid in *-OST*_UUID) ;; *) continue ;; esac
    case $free in '' | *[!0-9]*) answer="unknown lfs df: $uuid $free"; return ;; esac
    targets=$((targets + 1)) free=$((free * 1024))
    [ -n "$least" ] && [ "$least" -le "$free" ] || least=$free
  done <<< "$table"
  [ "$targets" -gt 0 ] || {{ answer='unknown lfs df names no target'; return; }}
  [ "$stripes" -ne 0 ] || stripes=$(seatrial_lfs getstripe -c -d 2> /dev/null)
  case $stripes in -1) stripes=$targets ;; '' | 0 | *[!0-9]*) stripes=1 ;; esac
  [ "$stripes" -le "$targets" ] || stripes=$targets
  file=$(((file + stripes - 1) / stripes))
  told+=$'\n'"targets $targets"$'\n'"fullest $least"$'\n'"part $file"
  [ "$file" -le "$least" ] || answer=refused
  quota=$(seatrial_lfs quota -q -u "$UID" 2>&1) || case $quota in *ot\ supported*) return 0 ;; esac
  # lfs puts a path of more than 15 characters on a line of its own
  read -r -d '' used _ limit _ <<< "${{quota#*"$path"}}" || :
  used=${{used//[]*[]/}} limit=${{limit//[]*[]/}}
  case $used:$limit in :* | *: | *[!0-9:]*) answer="unknown lfs quota: $quota"; return ;; esac
  [ "$limit" -gt 0 ] || return 0
  left=$(((limit - used) * 1024)) told+=$'\n'"quota $left"
  [ "$left" -ge "$wanted" ] || answer=refused
}}
seatrial_space() {{
  local wanted=$1 file=$2 stripes=$3 path=$4 said blocks free block type answer=enough told
  local most=$((1 << 62)) numbers='^[0-9]+ [0-9]+ [0-9]+ '
  said=$(LC_ALL=C timeout {LFS_SECONDS} stat -f -c '%b %a %S %T' -- "$path" 2>&1)
  [[ $said =~ $numbers ]] || {{ echo "unknown ${{said:-statvfs does not answer}}"; return; }}
  read -r blocks free block type <<< "$said"
  [ "$blocks" != 0 ] || {{ echo "unknown $type does not say how large it is"; return; }}
  if [ "${{#free}}" -gt 18 ] || [ "$free" -gt $((most / block)) ]; then
    free=$most
  else
    free=$((free * block))
  fi
  told="path $(cd -- "$path" 2> /dev/null && pwd || echo "$path")"
  told+=$'\n'"wanted $wanted"$'\n'"free $free"
  [ "$free" -ge "$wanted" ] || answer=refused
  if [ "$type" = lustre ] && command -v lfs > /dev/null; then seatrial_lustre "$file" "$stripes"; fi
  printf '%s\n%s\n' "$answer" "$told"
}}
"""

_REFUSE_WITHOUT_SPACE = f"""\
read -r _room < "$_run/{SPACE_FILE}"
[ "$_room" = enough ] || {{
  echo 'seatrial: there is not the space that the test requires; nothing was started' >&2
  exit 1
}}
unset -f seatrial_space seatrial_lustre seatrial_lfs
unset _room
"""


def space_lines(settings: RunSettings) -> str:
    """Return bash that ends the subshell of a script in which it stands where the space that the
    run takes is not there; "" where it asks for none."""
    if not settings.space:
        return ""
    file = settings.largest_file or settings.space
    words = f"{settings.space} {file} {settings.stripe_count} {shell_word(settings.space_path)}"
    ask = f'{_ASK_FOR_SPACE}seatrial_space {words} 2>&1 >| "$_run/{SPACE_FILE}"\n'
    return ask + _REFUSE_WITHOUT_SPACE
