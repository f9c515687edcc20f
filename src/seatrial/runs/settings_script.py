"""The parts of a job script that ask for pages, settings of malloc, stripes and the directory in
which the script works, and that tell what the run got of them.

Nothing of ours runs on a node but bash: the job script samples /proc beside the test, at most every
5 s, and asks Lustre about the files of the run after its end.
"""

from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from seatrial.file_model import Scalar
from seatrial.machine.glibc import PREFIX, TUNABLES
from seatrial.machine.model import Machine
from seatrial.runs.environment import exports, module_lines
from seatrial.runs.working_directory import enter_lines, fill_lines, leave_lines, make_lines
from seatrial.suite.model import Case, FromParameter, RunSettings, Test

HUGETLB = {"4k": 0, "thp": 1, "2M": 2 << 20, "1G": 1 << 30}
"""The values of glibc.malloc.hugetlb (since glibc 2.35): 1 is madvise, more are bytes of a page."""

MAX_FILES = 16  # of a run, whose stripes are asked for


class RunVariables(Struct, frozen=True):
    """The modules, variables and tunables of malloc by which a run has what its case asks for."""

    modules: list[str]
    environment: dict[str, Scalar]
    tunables: dict[str, int]


def variables_of(machine: Machine, test: Test, case: Case) -> RunVariables:
    """Return how a case gets its pages, its settings of malloc and the variables of its
    parameters."""
    environment: dict[str, Scalar] = {
        name: test.bound(case.parameters)[value.parameter]
        for name, value in test.environment.items()
        if isinstance(value, FromParameter)
    }
    settings = case.settings
    tunables = dict(settings.malloc)
    site = machine.pages.get(settings.pages)
    if site is not None:
        return RunVariables(list(site.modules), {**site.environment, **environment}, tunables)
    if settings.pages:
        tunables["hugetlb"] = HUGETLB[settings.pages]
    return RunVariables([], environment, tunables)


def settings_lines(machine: Machine, test: Test, case: Case, directory: Path | None) -> str:
    """Return bash that sets the variables of a run, and makes its directory (if it has one beside
    the run directory) and its stripes, before its script."""
    found = variables_of(machine, test, case)
    variables = module_lines(found.modules) + exports(found.environment)
    variables += tunables_line(found.tunables)
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
    subshell of the script, in its directory."""
    return (_SAMPLE_PAGES if case.settings.pages else "") + "(\n" + enter_lines(directory)


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
