"""A folder that does what a run did, without Seatrial: for a vendor who is to see a failure.

reproducer = write_reproducer(trial_folder, run, Path("reproducer"))
reproducer.notices        # what is not as it ran, or is not in it

README.md        what ran where, what it gave, how to run it
run.sh           builds and runs it in `work/`, and compares the exit code
environment.sh   the set-up, modules and variables of machine, toolchain and test
build.script, run.script     as the test has them; run.sh sources them
sources/, inputs/, test/     what they use
observed/        stdout, stderr, events and checksums of the run, the versions that it found
SHA256SUMS       of all of these
"""

import hashlib
import os
import shlex
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from seatrial.errors import TrialError, UsageError
from seatrial.escaping import plain_line, shell_word
from seatrial.execute.environment import (
    exports,
    load_lines,
    preamble,
    toolchain_variables,
    write_script,
)
from seatrial.execute.kept_files import TAIL
from seatrial.execute.launchers import launch_written
from seatrial.execute.plan.component import part_of
from seatrial.execute.script import run_variables_of, settings_lines
from seatrial.execute.toolchains import read_compiler_facts, versions_of
from seatrial.execute.trial_folder import Record, TrialFolder
from seatrial.execute.trial_paths import BUILD_LOG, BUILD_RESULT
from seatrial.files import make_folder, open_regular, read_regular, remove_tree, write_durably
from seatrial.hooks import keys_of
from seatrial.journal.events import ScriptStarted
from seatrial.journal.journal import read
from seatrial.model.build import BuildKeys, build_parameters, digest, name_of
from seatrial.model.file_model import encode
from seatrial.model.task_placement import PIECE
from seatrial.model.test import Case, Input, Test
from seatrial.units import count, listed, show_seconds

MAX_OUTPUT_BYTES = 64 << 20  # of a file that the run wrote; of a longer one the end is packed
_OBSERVED = (
    *("stdout", "stderr", f"stdout{TAIL}", f"stderr{TAIL}"),
    *("events.jsonl", "job.sh", "placement.txt", "stripes.txt"),
)

_RUN = """\
#!/bin/bash
# Does what {title} did. Files that it writes are in work/; see README.md.
# usage: [LAUNCH='srun -n 4'] [HOSTFILE=FILE] bash run.sh
set -u
{consent}here=$(cd -- "$(dirname -- "${{BASH_SOURCE[0]}}")" && pwd -P) || exit
if [ -e "$here/work" ]; then
  echo "$here/work: is there from an earlier run; move it away" >&2
  exit 2
fi
mkdir -p -- "$here/work/build" "$here/work/run" || exit
{build}cp -R -- "$here/inputs/." "$here/work/run" || exit
cd -- "$here/work/run" || exit
(
  set +u
  . "$here/environment.sh"
  . "$here/run.script"
) > ../stdout 2> ../stderr < /dev/null
code=$?
cat ../stdout
cat ../stderr >&2
echo "exit code $code; {exit_code}" >&2
exit "$code"
"""

_BUILD = """\
cp -R -- "$here/sources/." "$here/work/build" || exit
(
  cd -- "$here/work/build" || exit
  set +u
  . "$here/environment.sh"
{parameters}  . "$here/build.script"
) > "$here/work/build.log" 2>&1 < /dev/null || {{
  cat "$here/work/build.log" >&2
  echo "the build failed; see environment.sh" >&2
  exit 3
}}
"""

_CONSENT = """\
case ${CONSENT-} in *[![:space:]]*) ;; *)
  echo 'this test can harm the machine: say CONSENT=NAME, of who agrees; see README.md' >&2
  exit 2 ;;
esac
"""

_HOSTS = """\
if [ -z "${{HOSTFILE-}}" ]; then
  echo "localhost slots={tasks}" > "$here/work/hosts.hostfile"
  echo "localhost:{tasks}" > "$here/work/hosts.machinefile"
  for _each in $(seq {tasks}); do echo localhost; done > "$here/work/hosts.nodefile"
  export HOSTFILE=$here/work/hosts.hostfile MACHINEFILE=$here/work/hosts.machinefile \\
    NODEFILE=$here/work/hosts.nodefile NODELIST=localhost
fi
"""


class Reproduced(Struct, frozen=True):
    """The run of which a folder is made: its case, its directory ("" where it had none), what came
    of it in words, its nodes and its exit code."""

    run_id: str
    case_id: str
    path: str
    verdict: str
    reason: str
    nodes: str
    exit_code: int | None


class Reproducer(Struct, frozen=True):
    """A folder that was written. ``changed``: what is not as it was when the run was made;
    ``absent``: what is not in it."""

    folder: Path
    changed: list[str]
    absent: list[str]


def write_reproducer(trial: TrialFolder, run: Reproduced, folder: Path) -> Reproducer:
    """Write a folder that reproduces a run, complete or not at all. Raises UsageError for a run
    that cannot be reproduced and a folder that exists or cannot be written, TrialError for a trial
    that cannot be read."""
    record = trial.record()
    test, case = _ran(trial, record, run)
    if folder.exists() or folder.is_symlink():
        raise UsageError(f"{folder}: exists; name another folder with --output")
    part = folder.with_name(f".{folder.name}.part")
    packing = _Packing(trial, record, test, case, run, part)
    try:
        if part.exists():
            remove_tree(part)
        make_folder(part)
        packing.write()
        part.rename(folder)
    except OSError as error:
        if part.exists():
            remove_tree(part)
        where = error.filename or folder
        raise UsageError(f"{where}: {error.strerror or error}; nothing is written") from error
    except TrialError:
        remove_tree(part)
        raise
    return Reproducer(folder, packing.changed, packing.absent)


def _ran(trial: TrialFolder, record: Record, run: Reproduced) -> tuple[Test, Case]:
    """Return the test and the case of a run. Raises UsageError for one that Seatrial did not run
    itself."""
    case = trial.case(run.case_id)
    test = record.tests.get(case.test) if case is not None else None
    ran_elsewhere = record.rehearsed or record.given or record.imported
    if case is None or test is None or ran_elsewhere:
        raise UsageError(
            f"{run.run_id}: nothing of it can be packed, as Seatrial itself did not run it "
            "(it was rehearsed, given or imported); name a run that ran"
        )
    return test, case


class _Packing:
    def __init__(
        self,
        trial: TrialFolder,
        record: Record,
        test: Test,
        case: Case,
        run: Reproduced,
        folder: Path,
    ) -> None:
        self._trial, self._record, self._test, self._case = trial, record, test, case
        self._run, self._folder = run, folder
        self._directory = Path(run.path) if run.path else None
        self._build = trial.builds / case.build if case.build else None
        self.changed: list[str] = []
        self.absent: list[str] = []

    def write(self) -> None:
        for name in ("sources", "inputs", "observed"):
            make_folder(self._folder / name)
        self._sources()
        self._inputs()
        self._observed()
        self._scripts()
        self._left_out()
        self._text("README.md", "\n".join(self._readme()) + "\n")
        self._text("SHA256SUMS", "".join(_sums(self._folder)))

    # ---- what it uses ---------------------------------------------------------------------

    def _sources(self) -> None:
        """Pack the sources of the build as they are, or as the build has them where they changed
        since."""
        build = self._test.build
        if build is None:
            return
        if made := build.prebuilt or build.spack or build.easybuild:
            self.absent.append(f"the program of the build ({made}): give it yourself")
        same = self._is_same_build()
        for source in map(Path, build.sources):
            staged = self._build / source.name if self._build else source
            if not same:
                where = "those that were built are packed" if staged.exists() else "as they are now"
                self.changed.append(f"sources of {source} changed since the run: {where}")
            _copy(staged if not same and staged.exists() else source, self._folder / "sources")

    def _is_same_build(self) -> bool:
        try:
            key = BuildKeys().key(self._test, self._case, self._record.machine)
        except UsageError:  # a source that cannot be read any more
            return False
        return key == self._case.build

    def _inputs(self) -> None:
        items = (item for item in self._test.inputs if isinstance(item, Input))
        for item in (*items, *self._deck()):
            known = self._record.inputs.get(item.source)
            if known is None or known == "":
                self.absent.append(f"a checksum of the input {item.source}, which had none")
            elif digest(item.source) != known:
                self.changed.append(f"the input {item.source} changed since the trial was made")
            _copy(Path(item.source), self._folder / "inputs", name_of(item))
        if "SEATRIAL_TEST" in self._test.run.script + self._build_script():
            _copy(Path(self._test.folder), self._folder, "test")

    def _deck(self) -> Iterator[Input]:
        """Yield the deck that a component gives to the runs of the test, if it does."""
        component = self._record.component
        part = part_of(component, self._test.name) if component is not None else None
        if part is not None and part.deck is not None:
            deck = Path(os.path.normpath(Path(self._test.folder) / part.deck.source))
            yield Input(source=str(deck), name=part.deck.name or deck.name)

    def _build_script(self) -> str:
        return self._test.build.script if self._test.build is not None else ""

    def _helpers(self, launch: str) -> None:
        """Pack the scripts in the directory of the run that its launcher starts."""
        for word in _words(launch):
            if self._directory is None or not word.startswith("./"):
                continue
            if (helper := self._directory / word).is_file():
                _copy(helper, self._folder / "inputs")

    # ---- what it gave ---------------------------------------------------------------------

    def _observed(self) -> None:
        if self._directory is not None:
            self._outputs(self._directory, _OBSERVED)
        if self._build is not None:
            self._outputs(self._build, (BUILD_LOG, BUILD_RESULT))
        self._text("observed/versions.txt", "".join(f"{k}: {v}\n" for k, v in self._versions()))
        for name, value in (("test.json", self._test), ("case.json", self._case)):
            write_durably(self._folder / "observed" / name, encode(value) + b"\n")

    def _outputs(self, folder: Path, names: Iterable[str]) -> None:
        for name in names:
            path = folder / name
            try:
                opened = open_regular(path, follow=False)
            except OSError as error:
                if name in ("stdout", "stderr", BUILD_LOG):
                    self.absent.append(f"{name} of the run: {error.strerror or error}")
                continue
            with opened as file:
                size = file.seek(0, os.SEEK_END)
                file.seek(max(0, size - MAX_OUTPUT_BYTES))
                write_durably(self._folder / "observed" / name, file.read(MAX_OUTPUT_BYTES))
            if size > MAX_OUTPUT_BYTES:
                self.absent.append(f"the first {size - MAX_OUTPUT_BYTES:,} bytes of {name}")

    def _versions(self) -> Iterator[tuple[str, str]]:
        """Yield what a run of the toolchain found on its node, then what the build found."""
        yield "seatrial", self._record.version
        found: Mapping[str, str] = {}
        for event in read(self._trial.journal):
            if isinstance(event, ScriptStarted) and event.facts:
                if event.facts.get("toolchain") == self._case.toolchain:
                    found = event.facts
                if event.run_id == self._run.run_id:
                    break
        yield from found.items()
        if self._build is not None:
            yield from (
                (f"build {k}", v) for k, v in versions_of(read_compiler_facts(self._build)).items()
            )

    # ---- its scripts ----------------------------------------------------------------------

    def _scripts(self) -> None:
        test, case, run = self._test, self._case, self._run
        launch = self._launch()
        self._helpers(launch)
        self._text("environment.sh", self._environment(launch))
        self._text("run.script", "" if test.only_builds else test.run.script.rstrip("\n") + "\n")
        build = ""
        if test.build is not None:
            self._text("build.script", load_lines(test.build) + test.build.script + "\n")
            given = build_parameters(test.build, test.bound(case.parameters))
            lines = exports(given)
            build = _BUILD.format(parameters=f"  {lines}" if lines else "")
        expected = "the run left none" if run.exit_code is None else f"the run had {run.exit_code}"
        title = f"{plain_line(case.name)}, run {run.run_id} of trial {self._record.tag}"
        consent = _CONSENT if test.harmful else ""
        text = _RUN.format(title=title, consent=consent, build=build, exit_code=expected)
        write_script(self._folder / "run.sh", text, 0o755)

    def _launch(self) -> str:
        """Return $LAUNCH as the job of the run had it; "" where it is not known."""
        if self._directory is None:
            return ""
        try:
            text = read_regular(self._directory / "job.sh", 1 << 20).decode(errors="replace")
        except OSError:
            self.absent.append("$LAUNCH of the run: its job.sh is not there any more; set it")
            return ""
        return launch_written(text).replace(f"{self._run.path}/", "./")

    def _environment(self, launch: str) -> str:
        machine, test, case = self._record.machine, self._test, self._case
        variables = {**test.bound(case.parameters), **run_variables_of(case)}
        if test.run.pieces is not None:
            variables["PIECE"] = case.parameters[PIECE]
        named = ["# As the run had it. Change what is called otherwise where you are.\n"]
        named.append(exports(variables))
        named.append('export BUILD="$here/work/build" SEATRIAL_TEST="$here/test"\n')
        named.append(f"export SEATRIAL_RUN={shell_word(self._run.run_id)}\n")
        named.append(exports(toolchain_variables(machine, test, case.toolchain)))
        named.append(preamble(machine, test, case.toolchain))
        if test.build is not None:
            named.append(load_lines(test.build))
        if not case.only_builds:
            named.append(_HOSTS.format(tasks=case.tasks))
            named.append(f"export LAUNCH=${{LAUNCH-{shell_word(launch)}}} CONTAINER=''\n")
            named.append(settings_lines(machine, test, case, None))
        return "".join(named)

    def _left_out(self) -> None:
        """Tell what the job did for the run, and run.sh does not."""
        settings = self._case.settings
        if settings.directory:
            self.changed.append(f"it worked in {settings.directory}; run.sh works in work/run")
        if settings.container:
            self.changed.append(f"it ran in the container {settings.container}; run.sh does not")
        for key in keys_of("test"):
            if key.of_runs and getattr(self._test, key.name) != key.default:
                self.absent.append(f"what `{key.name}` of the test does beside its script")

    # ---- words ----------------------------------------------------------------------------

    def _readme(self) -> Iterator[str]:
        run, case, record = self._run, self._case, self._record
        yield f"# {plain_line(case.name)}"
        yield ""
        yield f"Run {run.run_id} of trial {record.tag} on {record.machine.machine} ended with:"
        yield ""
        yield f"    {plain_line(f'{run.verdict}: {run.reason}' if run.reason else run.verdict)}"
        yield ""
        if about := self._test.about:
            yield f"The test: {plain_line(about).rstrip('.')}."
        if not case.only_builds:
            yield (
                f"It asked for {count(case.nodes, 'node')}, {count(case.tasks, 'task')}, "
                f"{count(case.threads, 'thread')} each, at most {show_seconds(case.walltime)}"
                + (f", and ran on {plain_line(run.nodes)}." if run.nodes else ".")
            )
        if self._test.harmful:
            by = ", ".join(record.asked.consent)
            yield f"It can harm the machine: it ran with the consent of {plain_line(by)}."
        yield ""
        yield f"    {'CONSENT=NAME ' if self._test.harmful else ''}bash run.sh"
        yield ""
        yield (
            "builds it and runs it here, in `work/`, without Seatrial. `environment.sh` has the "
            "set-up, modules and variables as they were: change what is called otherwise where "
            "you are. On several nodes, call it in a job, with `LAUNCH` (and `HOSTFILE`, if your "
            "launcher reads one) in its environment; without `LAUNCH` it is that of the run."
        )
        yield ""
        yield "`observed/` has what the run gave, and the versions that it found in versions.txt."
        for title, lines in (("Not as it ran", self.changed), ("Not in here", self.absent)):
            if lines:
                yield ""
                yield f"## {title}"
                yield ""
                yield from (f"- {plain_line(line)}" for line in lines)

    def _text(self, name: str, text: str) -> None:
        write_durably(self._folder / name, text.encode("utf-8", errors="surrogateescape"))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:  # a quotation that does not end
        return []


def _copy(source: Path, folder: Path, name: str = "") -> None:
    """Copy a file or a folder into a folder; what symbolic links point to is copied. Raises
    OSError."""
    target = folder / (name or source.name)
    make_folder(target.parent)
    if source.is_dir():
        shutil.copytree(source, target)  # plain: into a folder that was just made
    else:
        shutil.copy2(source, target)  # plain: into a folder that was just made


def _sums(folder: Path) -> Iterator[str]:
    """Yield lines of sha256sum for all files of a folder."""
    for path in sorted(path for path in folder.rglob("*") if path.is_file()):
        with path.open("rb") as file:  # plain: it was just written
            yield f"{hashlib.file_digest(file, 'sha256').hexdigest()}  {path.relative_to(folder)}\n"


def notices_of(reproducer: Reproducer) -> list[str]:
    """Return what a person must know of a folder before it is given away."""
    notices = []
    if reproducer.changed:
        notices.append(f"it is not as it ran: {listed(reproducer.changed, 3)}")
    if reproducer.absent:
        notices.append(f"it has not: {listed(reproducer.absent, 3)}")
    notices.append("environment.sh has variables of the machine: look through it before giving it")
    return notices
