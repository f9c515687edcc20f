"""Write the test.yaml of a test of ReFrame, whole or as far as it is understood.

writer = TestWriter(test)
"".join(writer.parts().values())
"""

import contextlib
import datetime
import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from seatrial.escaping import comment, shell_word
from seatrial.model.expressions import LONGEST_TEXT
from seatrial.model.identifiers import show
from seatrial.model.kinds import launcher_kinds
from seatrial.plugins.importers.reframe.classes import NotProvable
from seatrial.plugins.importers.reframe.evaluate import (
    DEFAULTS,
    FOLLOWS,
    Deferred,
    Launcher,
    OfMachine,
    TracedInt,
    is_of_machine,
)
from seatrial.plugins.importers.reframe.results import ReframeFigure
from seatrial.plugins.importers.reframe.tests import ReframeCase, ReframeTest
from seatrial.plugins.importers.reframe.texts import CaseTexts, checks_of, condition_of, metric_of
from seatrial.units import count

SOURCES = "src"  # the folder of a test's sources
UNFINISHED = "unfinished"  # the name of the check that fails until a person has finished a test
NAME_OF_FOLDER = re.compile(r"[A-Za-z0-9][A-Za-z0-9._+-]*")  # as folders of tests are named
_PLAIN_TEXT = re.compile(r"[\w./+:,=@%^!-]*", re.ASCII)  # as the shell takes it, too
_TIME_LIMIT = re.compile(r"(?:(\d+)d)?(?:(\d+)h)?(?:(\d+)m)?(?:(\d+)s)?")
_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_COMPILERS: dict[str, tuple[str, str, str]] = {
    **dict.fromkeys((".c", ".upc"), ("$CC", "$CFLAGS", "cflags")),
    **dict.fromkeys((".cc", ".cp", ".cpp", ".cxx", ".C"), ("$CXX", "$CFLAGS", "cxxflags")),
    **dict.fromkeys(
        (".f90", ".F90", ".f", ".F", ".f95", ".f03", ".f08", ".for", ".F95", ".F08"),
        ("$FC", "$CFLAGS", "fflags"),
    ),
    ".cu": ("${NVCC:-nvcc}", "", "cxxflags"),
}
_OWN = {"$CC": "cc", "$CXX": "cxx", "$FC": "ftn", "${NVCC:-nvcc}": "nvcc"}
"""ReFrame's names of compilers."""
_FLAGS = ("cppflags", "cflags", "cxxflags", "fflags", "ldflags")
NOT_CARRIED = {
    "extra_resources": "extra_resources are about a machine: write run.options",
    "build_time_limit": "build_time_limit: see build.timeout",
    "max_pending_time": "max_pending_time: the scheduler decides",
    "local": "local: it runs in a job as others",
    "require_reference": "require_reference: see the criterion every_test",
    "job.launcher.options": "options of the launcher belong to the machine's file",
    "use_multithreading": "hardware threads are chosen in the machine's file",
    "num_tasks_per_core": "num_tasks_per_core: see run.tasks_per_node",
    "num_tasks_per_socket": "num_tasks_per_socket: see run.spread",
}
REFUSED = ("container_platform", "extra_resources_of", "mpi_options")


_FAULTS = (TypeError, ValueError, ArithmeticError, LookupError, AttributeError)
_PLACEHOLDERS = {
    "run": "run:\n  script: |\n    echo 'this test is unfinished' >&2\n    exit 1\n",
    "verify": "verify:\n",
}
"""What an unfinished test has in place of parts that are not understood."""


# ---- one test ------------------------------------------------------------------------------------


class TestWriter(CaseTexts):
    """Makes the parts of a test.yaml. What cannot be translated becomes a refusal of the test."""

    __test__ = False  # pytest must not collect it

    def __init__(self, test: ReframeTest, in_script: bool = False) -> None:
        super().__init__(test)
        self._in_script = in_script  # variables and modules, as those of a fixture

    def parts(self) -> dict[str, str]:
        """Return the parts in their order, by their names; a part that failed is not there."""
        makers: dict[str, Callable[[], Iterable[str]]] = {
            "head": self._head,
            "parameters": self._parameters,
            "toolchains": self._chains,
            "environment": self._environment,
            "build": self._build,
            "run": self._run,
            "verify": self._verify,
            "metrics": self._metrics,
            "known_failures": self._known_failures,
        }
        parts: dict[str, str] = {}
        if not self.cases:
            self.test.refuse(self.test.line, "ReFrame skips each of its cases", "skipped tests")
            return parts
        for name, make in makers.items():
            try:
                parts[name] = "".join(make())
            except NotProvable as error:
                line = error.line or self.test.line
                self.test.refuse(line, error.text, error.kind, area=name)
            except _FAULTS as error:  # a value of a type that ReFrame would not take, either
                text = f"{name}: a value is not of the usual type: {error}"
                self.test.refuse(self.test.line, text, "attributes of other types", area=name)
            if name not in parts:
                self.is_draft = True
                with contextlib.suppress(NotProvable, *_FAULTS):
                    parts[name] = "".join(make())
                self.is_draft = False
        return parts

    def skeleton(self, parts: dict[str, str]) -> Iterator[str]:
        """Yield the lines of a test that a person must finish: the parts that are understood, and
        beside them, as comments, the statements that are not."""
        test = self.test
        lost = count(len({each.source or each.text for each in test.refusals}), "part")
        yield f"# UNFINISHED: {lost} of {test.name} without a translation (see import.md).\n"
        yield "# Write what stands below as comments; then remove the key toolchains\n"
        yield f"# and the check {UNFINISHED}.\n"
        if test.kind == "CompileOnlyRegressionTest":
            yield "# A test that only builds has no key run and no key verify: remove these, too.\n"
        yield parts.get("head") or f"app: {json.dumps(test.name)}\n"
        yield "toolchains:\n"
        yield '  "*": {skip: true, reason: unfinished import from ReFrame}\n'
        areas = {refusal.area for refusal in test.refusals}
        yield from self._comments(areas - {"build", "run", "verify", "metrics"})
        for name in ("parameters", "environment"):
            yield parts.get(name, "")
        for name in ("build", "run", "verify", "metrics"):
            yield from self._comments({name})
            yield parts.get(name, "") or _PLACEHOLDERS.get(name, "")
            if name == "verify":
                yield f"  - {{name: {UNFINISHED}, contains: this test is finished}}\n"
        yield parts.get("known_failures", "")

    def _comments(self, areas: set[str]) -> Iterator[str]:
        for refusal in self.test.refusals:
            if refusal.area not in areas or (refusal.kind == FOLLOWS and not refusal.source):
                continue
            yield f"# {comment(refusal.module.path.name)}:{refusal.line}: {comment(refusal.text)}\n"
            yield from (f"#     {comment(line)}\n" for line in refusal.source.splitlines())

    # ---- parts ----------------------------------------------------------------------------

    def _head(self) -> Iterator[str]:
        """Yield what a test is."""
        test = self.test
        yield f"# Imported from {comment(test.module.path.name)}:{test.line} of ReFrame.\n"
        yield f"app: {_json(test.name)}\n"
        if (about := self._about()) is not None:
            yield f"about: {_json(about)}\n"
        if tags := self._tags():
            yield f"tags: {_json(tags)}\n"

    def _about(self) -> str | None:
        """Return the description that all cases share; None if there is none."""
        given = [each for each in self.values("descr") if not is_of_machine(each)]
        if not given or not given[0] or any(str(each) != str(given[0]) for each in given):
            return None
        return " ".join(str(given[0]).split())

    def _tags(self) -> list[str]:
        """Return the tags that all cases share; those with blanks are left out."""
        tags = [
            {str(tag) for tag in self.words(case, "tags") if not is_of_machine(tag)}
            for case in self.cases
        ]
        return [tag for tag in sorted(set.intersection(*tags)) if tag.split() == [tag]]

    def _parameters(self) -> Iterator[str]:
        """Yield the parameters, and the cases that ReFrame skips."""
        for name, column in self.columns.items():
            if any(isinstance(v, str) and not v.isprintable() for v in column):
                raise NotProvable(0, f"values of {name} are no lines of text", "parameters")
        if self.columns:
            yield f"parameters: {_json(self.columns)}\n"
        yield from self._exclude()

    def _exclude(self) -> Iterator[str]:
        """Yield the condition of the cases that ReFrame skips."""
        skipped = [case for case in self.test.cases if case.is_skipped]
        if not skipped:
            return
        names = list(self.columns)
        text = condition_of(names, [self.key(case, names) for case in skipped])
        if len(text) <= LONGEST_TEXT:
            yield f"exclude: [{json.dumps(text)}]\n"
        elif not self.is_draft:
            raise NotProvable(0, "ReFrame skips many of its cases", "skipped tests")

    def _chains(self) -> Iterator[str]:
        if chains := self._toolchains():
            yield f"toolchains: {_json(chains)}\n"

    def _toolchains(self) -> list[str]:
        """Return the names and patterns of the toolchains for which a test is; none for all."""
        given = self.one("valid_prog_environs", list, tuple, set) or ["*"]
        chains = [str(each) for each in given]
        if any(map(is_feature, chains)):
            return []  # environments by features: a note says so
        if chains == ["builtin"] and self.test.kind == "RunOnlyRegressionTest":
            return []  # ReFrame's name of no environment at all
        return [] if "*" in chains else sorted(chains) if isinstance(given, set) else chains

    def _variables(self, case: ReframeCase) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for name in ("variables", "env_vars"):
            out |= {str(key): each for key, each in self._mapping(case, name).items()}
        threads = case.values.get("num_cpus_per_task") or 1
        if str(out.get("OMP_NUM_THREADS")) in (str(threads), "None"):
            out.pop("OMP_NUM_THREADS", None)  # scripts get it
        for name, value in out.items():
            if not _NAME.fullmatch(name) or isinstance(value, Deferred | dict | list | tuple | set):
                raise NotProvable(0, f"variable {name}={value!r}", "attributes of other types")
        return out

    def _mapping(self, case: ReframeCase, name: str) -> dict[Any, Any]:
        """Return the mapping that an attribute is, or whose items it lists. Raises NotProvable."""
        value = self.value(case, name) or {}
        if isinstance(value, list | tuple):
            return dict(value)
        if not isinstance(value, dict):
            raise NotProvable(0, f"{name} is no mapping", "attributes of other types")
        return value

    def _fixed(self) -> dict[str, str]:
        """Return the variables of the same plain value in all cases."""
        out: dict[str, str] = {}
        if self._in_script:
            return out
        rows = [self._variables(case) for case in self.cases]
        for name, value in rows[0].items():
            text = self.shell("env_vars", value)
            same = all(name in row and self.shell("env_vars", row[name]) == text for row in rows)
            if same and _PLAIN_TEXT.fullmatch(text):
                out[name] = text
        return out

    def _environment(self) -> Iterator[str]:
        fixed = self._fixed()
        if fixed:
            yield "environment:\n"
            yield from (f"  {name}: {_json(value)}\n" for name, value in fixed.items())
        modules = self._fixed_modules()
        if modules:
            yield f"modules: {_json(modules)}\n"

    def _fixed_modules(self) -> list[str]:
        """Return the modules that all cases share; none if they differ."""
        rows = [self.words(case, "modules") for case in self.cases]
        if any(not isinstance(each, str) for row in rows for each in row):
            raise NotProvable(0, "modules with collections or paths", "modules of no known form")
        if self._in_script or any(row != rows[0] for row in rows):
            return []
        return [str(each) for each in rows[0]]

    def _set_up(self, case: ReframeCase) -> list[str]:
        """Return the lines that set what ``environment`` and ``modules`` cannot say."""
        fixed, lines = self._fixed(), []
        if not self._fixed_modules():
            words = self.words(case, "modules")
            lines = [f"module load {self.shell('modules', each)} || exit 90" for each in words]
        for name, value in self._variables(case).items():
            if name not in fixed:
                texts = _printable("env_vars", self.shell("env_vars", value))
                lines += [f"export {name}={texts[0]}", *texts[1:]]
        return lines

    def all_sources(self) -> dict[str, Path]:
        """Return the folders of sources by their names in the test: its own, those of fixtures."""
        own = self.sources()
        found = {} if own is None else {SOURCES: own}
        for name, (needed, _) in self.cases[0].fixtures.items() if self.cases else ():
            if (path := TestWriter(needed).sources()) is not None:
                found[name] = path
        return found

    def sources(self) -> Path | None:
        """Return the folder of the sources, None if there is none. Raises NotProvable."""
        given = self.one("sourcesdir", str) if self.cases else None
        if given is None:
            return None
        if is_remote(str(given)) and self.test.kind != "RunOnlyRegressionTest":
            return None  # the build clones it
        _require_inside(str(given))
        folder = self.test.module.path.parent
        path = folder / str(given)
        if str(given) == DEFAULTS["sourcesdir"] and not path.is_dir():
            return None
        if not path.is_dir() or path.resolve() == folder.resolve():
            raise NotProvable(0, f"sourcesdir {given} is no folder beside the source", "sources")
        return path

    def _build(self) -> Iterator[str]:
        folders = self.all_sources()
        builds = self.test.kind != "RunOnlyRegressionTest"
        if not builds and SOURCES in folders:
            yield from _inputs(folders.pop(SOURCES))
        scripts = self._build_scripts(folders, builds)
        if not any(scripts):
            return
        yield "build:\n"
        if folders:
            yield f"  sources: {_json(list(folders))}\n"
        if builds and not any(self.values("build_locally")):
            yield "  where: job\n"
        yield "  script: |\n"
        yield from self.script(scripts, "    ")

    def _build_scripts(self, folders: Mapping[str, Path], builds: bool) -> list[list[str]]:
        """Return the lines that build each case. Raises NotProvable if a test that builds has
        nothing to build."""
        scripts = [self._all_build_lines(case, folders, builds) for case in self.cases]
        is_empty = not folders and not any("".join(script[1:]) for script in scripts)
        if builds and any(scripts) and is_empty:
            raise NotProvable(0, "it builds nothing", "build systems")
        return scripts

    def _all_build_lines(
        self, case: ReframeCase, folders: Mapping[str, Path], builds: bool
    ) -> list[str]:
        """Return the lines that build the fixtures of a case, then the case itself."""
        lines = []
        for name, (needed, of) in case.fixtures.items():
            if not NAME_OF_FOLDER.fullmatch(name) or name == SOURCES:
                raise NotProvable(0, f"fixture {name} cannot name a folder", "fixtures")
            made = [] if name in folders else [f"mkdir -p {name}"]
            inner = TestWriter(needed, in_script=True).lines_as_fixture(of)
            lines += [*made, "(", f"cd {name}", *inner, ")"]
        if builds:
            lines += self._build_lines(case, SOURCES in folders)
        return ["set -e", *lines] if lines else []

    def lines_as_fixture(self, case: ReframeCase) -> list[str]:
        """Return the lines by which a test that needs this one makes it in its build."""
        kind, values = self.test.kind, case.values
        if kind == "CompileOnlyRegressionTest":
            return self._build_lines(case, has_sources=False)
        executable = self._text(case, "executable")
        if kind != "RunOnlyRegressionTest" or (
            values.get("local") is not True and executable not in _FETCHES
        ):
            text = f"fixture {self.test.name} runs {executable}"
            raise NotProvable(0, text, "fixtures that run a program")
        options = (self.shell("executable_opts", o) for o in self.words(case, "executable_opts"))
        body = [
            *self._lines(case, "prerun_cmds"),
            *_printable("executable_opts", " ".join([executable, *options])),
            *self._lines(case, "postrun_cmds"),
        ]
        return [*_stage(body), *self._set_up(case), *body]

    def _build_lines(self, case: ReframeCase, has_sources: bool) -> list[str]:
        body = [
            *self._lines(case, "prebuild_cmds"),
            *self._build_commands(case),
            *self._lines(case, "postbuild_cmds"),
        ]
        head = [f"cd {SOURCES}"] if has_sources else []
        given = str(case.values.get("sourcesdir", ""))
        if is_remote(given):
            head = [
                f"git clone --recurse-submodules {shell_word(given)} {SOURCES}",
                f"cd {SOURCES}",
            ]
        return [*head, *_stage(body), *self._set_up(case), *body]

    def _lines(self, case: ReframeCase, name: str) -> list[str]:
        texts = (self.shell(name, each) for each in self.words(case, name))
        return [line for text in texts for line in _printable(name, text)]

    def _flag(self, case: ReframeCase, name: str) -> str:
        return " ".join(self._lines(case, f"build_system.{name}"))

    def _build_commands(self, case: ReframeCase) -> list[str]:
        """Return the commands by which ReFrame's build system builds. Raises NotProvable."""
        source = self._text(case, "sourcepath")
        system = self._text(case, "build_system")
        suffix = Path(str(case.values.get("sourcepath", ""))).suffix
        if system in ("", "SingleSource") and suffix in _COMPILERS:
            return [self._single_source(case, source, suffix)]
        makers = {
            "Make": self._make,
            "CMake": self._cmake,
            "Autotools": self._autotools,
            "CustomBuild": self._custom,
        }
        if system in makers:
            return makers[system](case)
        if system:
            raise NotProvable(0, f"build system {system} is of no known form", "build systems")
        if not source and self.words(case, "prebuild_cmds"):
            return []
        if suffix or not source:
            what = f"build system by default of {source or 'no source'}"
            raise NotProvable(0, f"{what} is of no known form", "build systems")
        return self._make(case)

    def _single_source(self, case: ReframeCase, source: str, suffix: str) -> str:
        """Return the command that compiles and links the one source of a test."""
        self._only(case, *_FLAGS, *_OWN.values())
        compiler, flags, key = _COMPILERS[suffix]
        compiler = self._text(case, f"build_system.{_OWN[compiler]}") or compiler
        more = [self._flag(case, "cppflags"), self._flag(case, key)]
        links = self._flag(case, "ldflags")
        built = self._text(case, "executable")
        parts = (compiler, flags, *more, "-o", built, source, links, "$LDFLAGS", "$LDLIBS")
        return " ".join(filter(None, parts))

    def _text(self, case: ReframeCase, name: str) -> str:
        value = self.value(case, name)
        return self.shell(name, value) if value else ""

    def _only(self, case: ReframeCase, *names: str) -> None:
        """Refuse what the build system is told besides these."""
        for key, value in case.values.items():
            name = key.removeprefix("build_system.")
            if name != key and name not in names and value not in ([], None, ""):
                raise NotProvable(0, f"{key} has no known meaning", "build systems")

    def _make(self, case: ReframeCase) -> list[str]:
        self._only(
            case, *_FLAGS, *_OWN.values(), "options", "makefile", "srcdir", "max_concurrency"
        )
        parts = ["make"]
        for sign, name in (("-f", "makefile"), ("-C", "srcdir"), ("-j", "max_concurrency")):
            if value := self._text(case, f"build_system.{name}"):
                parts.append(f"{sign} {value}")
        for variable, name in (("CC", "cc"), ("CXX", "cxx"), ("FC", "ftn"), ("NVCC", "nvcc")):
            compiler = self._text(case, f"build_system.{name}")
            if compiler or name != "nvcc":
                parts.append(f'{variable}="{compiler or "$" + variable}"')
        names = {"cppflags": "CPPFLAGS", "cflags": "CFLAGS", "cxxflags": "CXXFLAGS"}
        for name, variable in {**names, "fflags": "FCFLAGS", "ldflags": "LDFLAGS"}.items():
            if flags := self._flag(case, name):
                own = f"${variable} " if name in ("cflags", "ldflags") else ""
                parts.append(f'{variable}="{own}{flags}"')
        parts += self._lines(case, "build_system.options")
        return [" ".join(parts)]

    def _cmake(self, case: ReframeCase) -> list[str]:
        before, folder, jobs, more = self._configured(case)
        options = " ".join(self._lines(case, "build_system.config_opts"))
        at = self._text(case, "build_system.configuredir") or "."
        configure = f'cmake -DCMAKE_C_COMPILER="$CC" -DCMAKE_CXX_COMPILER="$CXX" {options}'
        build = f"cmake --build {folder} -j {jobs}{f' -- {more}' if more else ''}"
        made = [f"mkdir -p {folder}"] if folder != "." else []
        return [*before, *made, f"{configure.rstrip()} -S {at} -B {folder}", build]

    def _autotools(self, case: ReframeCase) -> list[str]:
        before, folder, jobs, more = self._configured(case)
        options = " ".join(self._lines(case, "build_system.config_opts"))
        at = self._text(case, "build_system.configuredir") or "."
        if folder != "." and at != ".":
            raise NotProvable(0, "builddir and configuredir", "build systems")
        made = [f"mkdir -p {folder}", f"cd {folder}"] if folder != "." else []
        up = "/".join([".."] * len(Path(folder).parts)) if folder != "." else at
        configure = f'{up}/configure CC="$CC" CXX="$CXX" FC="$FC" {options}'
        return [*before, *made, configure.rstrip(), f"make -j {jobs} {more}".rstrip()]

    def _configured(self, case: ReframeCase) -> tuple[list[str], str, str, str]:
        """Return what CMake and Autotools share: commands before, the folder of the build, the
        number of jobs, and options of the build."""
        names = ("config_opts", "builddir", "configuredir", "srcdir", "max_concurrency")
        self._only(case, *names, "build_opts", "make_opts")
        srcdir = self._text(case, "build_system.srcdir")
        folder = self._text(case, "build_system.builddir").strip() or "."
        jobs = self._text(case, "build_system.max_concurrency") or "1"
        more = [
            *self._lines(case, "build_system.make_opts"),
            *self._lines(case, "build_system.build_opts"),
        ]
        return ([f"cd {srcdir}"] if srcdir else []), folder, jobs, " ".join(more)

    def _custom(self, case: ReframeCase) -> list[str]:
        self._only(case, "commands")
        return self._lines(case, "build_system.commands")

    # ---- run ------------------------------------------------------------------------------

    def _run(self) -> Iterator[str]:
        if self.test.kind == "CompileOnlyRegressionTest":
            return
        self._refuse_unknown()
        yield "run:\n"
        yield from self._sizes()
        if any(self.values("exclusive_access")) and self.one("exclusive_access", bool):
            yield "  exclusive: true\n"
        if (launcher := self._launcher()) is not None:
            yield f"  launcher: {launcher}\n"
        yield from self._walltime()
        yield from self._options()
        yield "  script: |\n"
        yield from self.script([self._run_lines(case) for case in self.cases], "    ")

    def _options(self) -> Iterator[str]:
        """Yield the options of the job, without those that give the number of nodes."""
        given = self.one("job.options", list) or []
        texts = [self.shell("job.options", each) for each in given]
        if options := [text for text in texts if not _NODES.fullmatch(text)]:
            yield f"  options: {_json(options)}\n"

    def _refuse_unknown(self) -> None:
        for case in self.cases:
            for name in case.values:
                if name.split(".")[0] in REFUSED:
                    raise NotProvable(0, f"{name} has no known meaning", "containers")
                if name.startswith("job.") and name not in _OF_JOB:
                    raise NotProvable(0, f"{name} has no known meaning", "attributes of the job")

    def _sizes(self) -> Iterator[str]:
        tasks = self.values("num_tasks")
        yield from self._nodes(tasks)
        yield f"  tasks: {self.expression('num_tasks', tasks)}\n"
        yield from self._size("threads_per_task", "num_cpus_per_task", usual=1)
        yield from self._size("gpus_per_node", "num_gpus_per_node", usual=0)

    def _nodes(self, tasks: Sequence[Any]) -> Iterator[str]:
        """Yield the number of nodes that the options of the job or the tasks of a node give."""
        per_node = self.values("num_tasks_per_node")
        if 0 in tasks:
            text = "num_tasks is 0: as many as there are"
            raise NotProvable(0, text, "sizes that ReFrame chooses")
        asked = [_nodes_asked(self.words(case, "job.options")) for case in self.cases]
        if all(asked) and all(value is None for value in per_node):
            yield f"  nodes: {self.expression('--nodes', asked)}\n"
        elif any(value is not None for value in per_node):
            numbers = list(map(_nodes_needed, tasks, per_node))
            yield f"  nodes: {self.expression('num_tasks_per_node', numbers)}\n"

    def _size(self, key: str, name: str, usual: int) -> Iterator[str]:
        """Yield a size that at least one case has; the others have the usual one."""
        values = self.values(name)
        if any(value is not None for value in values):
            numbers = [usual if value is None else value for value in values]
            yield f"  {key}: {self.expression(name, numbers)}\n"

    def _launcher(self) -> str | None:
        """Return the launcher that the test asks for, None for that of the machine."""
        given = self.one("job.launcher", Launcher)
        if given is None:
            return "none" if self.one("local", bool) else None
        name = "none" if given.name == "local" else given.name
        if name not in launcher_kinds():
            raise NotProvable(0, f"launcher {name} is not known", "launchers")
        return str(name)

    def _walltime(self) -> Iterator[str]:
        values = self.values("time_limit")
        if any(value is not None for value in values):
            seconds = [_seconds(value) for value in values]
            if len(set(seconds)) == 1:
                yield f"  walltime: {seconds[0]}s\n"
            else:
                yield f"  walltime: {self.expression('time_limit', seconds)}\n"

    def _run_lines(self, case: ReframeCase) -> list[str]:
        lines = []
        if self.test.kind == "RegressionTest":
            lines.append(f'cp -r "$BUILD"/{SOURCES}/. . 2>/dev/null || cp -r "$BUILD"/. .')
        executable = self.value(case, "executable") or "false"
        options = (self.shell("executable_opts", o) for o in self.words(case, "executable_opts"))
        words = " ".join([self.shell("executable", executable), *options])
        body = [
            *self._lines(case, "prerun_cmds"),
            *_printable("executable_opts", f"$LAUNCH {words}"),
            *self._lines(case, "postrun_cmds"),
        ]
        return [*lines, *_stage(body), *self._set_up(case), *body]

    # ---- answers --------------------------------------------------------------------------

    def _merged(self, rows: Sequence[Sequence[dict[str, Any]]]) -> list[dict[str, Any]]:
        """Return the checks of all cases; bounds that differ become expressions. Raises
        NotProvable for other differences."""
        shapes = [[check.keys() for check in row] for row in rows]
        if any(shape != shapes[0] for shape in shapes):
            raise NotProvable(0, "its checks differ between parameters", "values by parameters")
        return [
            {key: self._merged_value(key, [check[key] for check in checks]) for key in checks[0]}
            for checks in zip(*rows, strict=True)
        ]

    def _merged_value(self, key: str, values: Sequence[Any]) -> Any:
        """Return the value that a key of a check has in all cases, or an expression of them."""
        if all(value == values[0] for value in values):
            return values[0]
        if not all(isinstance(value, int | float) for value in values):
            text = f"its checks differ between parameters: {key}"
            raise NotProvable(0, text, "values by parameters")
        return json.loads(self.expression(key, values))

    def _plain_parameters(self) -> list[str]:
        """Return the parameters whose values are all single words."""
        return [
            name
            for name, column in self.columns.items()
            if all(re.fullmatch(r"\w+", show(value), re.ASCII) for value in column)
        ]

    def _verify(self) -> Iterator[str]:
        rows = []
        plain = self._plain_parameters()
        for case in self.cases:
            if case.sanity is None:  # refused where it is
                return
            rows.append(checks_of(case.sanity, plain))
        checks = self._merged(rows)
        if self.test.kind == "CompileOnlyRegressionTest":
            if any(check != {"exit_code": 0} for check in checks):
                text = "it checks the output of a build"
                raise NotProvable(0, text, "checks of a build's output")
            return
        yield "verify:\n"
        yield from (f"  - {_json(check)}\n" for check in _exit_code_first(checks))

    def _metrics(self) -> Iterator[str]:
        rows = [
            {
                name: {**metric_of(figure), "unit": unit or "1", "better": self._better(name, unit)}
                for name, (figure, unit) in case.figures.items()
            }
            for case in self.cases
        ]
        if any(row != rows[0] for row in rows):
            raise NotProvable(0, "its figures differ between parameters", "values by parameters")
        if rows[0]:
            yield "metrics:\n"
            yield from (f"  {_json(name)}: {_json(keys)}\n" for name, keys in rows[0].items())

    def _better(self, name: str, unit: str) -> str:
        """Return which is better of a figure, by its first reference or its unit."""
        for of_system in references_of(self.cases[0]):
            bounds = of_system.get(name)
            if isinstance(bounds, Deferred) and bounds.arguments[1:]:
                bounds = bounds.arguments[1]
            if isinstance(bounds, tuple) and len(bounds) >= 3:
                try:
                    return ReframeFigure(name, 0.0, unit, *bounds[:3]).better
                except TypeError:
                    break
        return ReframeFigure(name, 0.0, unit, None, None, None).better

    def _known_failures(self) -> Iterator[str]:
        if self.test.expected_failure:
            known = {
                "verdicts": ["wrong answer"],
                "reason": self.test.expected_failure,
                "until": str(a_year_on()),
            }
            yield f"known_failures:\n  - {_json(known)}\n"


_FETCHES = ("wget", "curl", "git", "tar", "cp", "unzip", "true")
_OF_JOB = ("job.options", "job.launcher", "job.launcher.options")


def _exit_code_first(checks: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return checks in the order of ``verify``: one of the exit code, which may be any if none is
    checked, then the others."""
    codes = [check for check in checks if "exit_code" in check] or [{"exit_code": "any"}]
    return [codes[0], *(check for check in checks if "exit_code" not in check)]


def _inputs(folder: Path) -> Iterator[str]:
    """Yield the inputs of a test that builds nothing: what its folder of sources holds."""
    files = sorted(each.name for each in folder.iterdir())
    if files:
        yield f"inputs: {_json([f'{SOURCES}/{name}' for name in files])}\n"


def _require_inside(sourcesdir: str) -> None:
    """Raise NotProvable for a sourcesdir that is no folder of the suite."""
    if is_remote(sourcesdir) or Path(sourcesdir).is_absolute() or "$" in sourcesdir:
        raise NotProvable(0, f"sourcesdir {sourcesdir} is no folder of the suite", "sources")


_NODES = re.compile(r"(?:--nodes=|-N ?)(\d+)")


def _nodes_asked(options: Sequence[object]) -> int | None:
    """Return the number of nodes that options of the scheduler ask for."""
    found = [match for each in options if (match := _NODES.fullmatch(str(each)))]
    return int(found[-1][1]) if found else None


def a_year_on() -> datetime.date:
    """Return the day until which an expected failure is known: ReFrame names none."""
    return datetime.date.today() + datetime.timedelta(days=365)


def is_feature(chain: object) -> bool:
    """Return whether ReFrame chooses environments by features, and not by a name."""
    return bool(re.match(r"[+%-]", str(chain))) or " " in str(chain)


def is_remote(folder: str) -> bool:
    """Return whether a sourcesdir is a repository that ReFrame clones."""
    return folder.startswith(("https://", "http://", "git@", "ssh://"))


def _nodes_needed(tasks: Any, per_node: Any) -> int | OfMachine:
    """Return the number of nodes of a case: one if no number of tasks of a node is given. Raises
    NotProvable."""
    a, b = _operand(tasks), _operand(per_node)
    rounded_up = f"({a} + {b} - 1) // {b}"
    if isinstance(tasks, OfMachine) or isinstance(per_node, OfMachine):
        return OfMachine("nodes", "", rounded_up)
    if per_node is None:
        return 1
    if not (isinstance(per_node, int) and isinstance(tasks, int) and per_node):
        raise NotProvable(0, "num_tasks_per_node is no number", "attributes of other types")
    nodes = -(-tasks // per_node)
    if isinstance(tasks, TracedInt) or isinstance(per_node, TracedInt):
        return TracedInt(nodes, rounded_up)
    return nodes


def _operand(value: object) -> object:
    """Return a number as an expression has it."""
    if isinstance(value, OfMachine):
        return value.expression
    return value.name if isinstance(value, TracedInt) else value


def references_of(case: ReframeCase) -> list[dict[str, Any]]:
    given = case.values.get("reference")
    return (
        [each for each in given.values() if isinstance(each, dict)]
        if isinstance(given, dict)
        else []
    )


def _json(value: object) -> str:
    """Return a value in JSON, which is YAML, too."""
    text = json.dumps(value, ensure_ascii=False)
    return text if text.isprintable() else json.dumps(value)


def _printable(name: str, text: str) -> list[str]:
    """Return the lines of a text. Raises NotProvable where YAML could not hold one."""
    lines = text.split("\n")
    if not all(line.replace("\t", " ").isprintable() for line in lines):
        raise NotProvable(0, f"{name} has characters that are not printed", "texts")
    return lines


def _stage(lines: Sequence[str]) -> list[str]:
    """Return the line that sets the folder of the run or build where lines use it."""
    return ["STAGEDIR=$PWD"] if any("${STAGEDIR}" in line for line in lines) else []


def _seconds(written: object) -> int:
    if isinstance(written, int | float) and not isinstance(written, bool) and written > 0:
        return int(written)
    match = _TIME_LIMIT.fullmatch(written) if isinstance(written, str) else None
    if match is None or not any(match.groups()):
        raise NotProvable(0, f"time_limit {written!r}", "time limits")
    days, hours, minutes, seconds = (int(each or 0) for each in match.groups())
    return ((days * 24 + hours) * 60 + minutes) * 60 + seconds
