"""Check a decoded ``test.yaml``: names, expressions, patterns, paths."""

import keyword
import os
from pathlib import Path

from seatrial.documents import Spot
from seatrial.errors import suggest
from seatrial.file_model import Scalar
from seatrial.lazy import regex
from seatrial.machine.check import faults_of_variables
from seatrial.machine.failures import check_known_failures, log_pattern
from seatrial.suite.case_names import show
from seatrial.suite.check_expressions import ExpressionChecker
from seatrial.suite.check_run import RunChecker
from seatrial.suite.expressions import FACTS
from seatrial.suite.inputs import name_of
from seatrial.suite.model import Build, FromParameter, Input, Keep, KeepWord, Test
from seatrial.suite.parameters import fault_of_value
from seatrial.suite.proving import COUNTED_FILE, PLACEMENT_FILE
from seatrial.suite.run_settings import (
    CONTAINER_FILE,
    DIRECTORY_FILE,
    JOB_STATS_FILE,
    OPEN_FILES_FILE,
    PAGES_FILE,
    STRIPES_FILE,
)
from seatrial.suite.toolchain_flags import FLAGS
from seatrial.suite.variables import (
    HOSTFILE,
    HUNG_FILE,
    MACHINEFILE,
    NODEFILE,
    ORDER_FILE,
    is_reserved,
)

RUN_FILES = frozenset(
    {
        *("job.sh", "job.environment", "job.rankfile", "events.jsonl"),
        *(ORDER_FILE, "job.bind", "job.gpus", "job.container", CONTAINER_FILE),
        *("job.threads", "job.threads.d", COUNTED_FILE),
        *("compat", HOSTFILE, MACHINEFILE, NODEFILE),
        *(HUNG_FILE, PAGES_FILE, STRIPES_FILE, DIRECTORY_FILE, PLACEMENT_FILE),
        *(OPEN_FILES_FILE, JOB_STATS_FILE),
        *("stdout", "stdout.tail", "stderr", "stderr.tail"),
    }
)
BUILD_LOG, BUILD_FILES = "build.log", "seatrial."

_PARAMETER = regex(r"[A-Za-z][A-Za-z0-9_]*")
_SHA256 = regex(r"[0-9a-fA-F]{64}")
_MEANT = regex(r"\$\{?([A-Za-z]\w*)\}?|\{([A-Za-z]\w*)\}")  # $name, ${name}, {name}


def check(test: Test, spot: Spot, names_known: bool = True) -> None:
    """Add every fault of a decoded test at ``spot``. ``names_known`` is False if the parameters
    could not be read; undefined names are then not reported."""
    checker = _Checker(test, spot, names_known)
    checker.words()
    checker.parameters()
    RunChecker(test, spot, names_known).check()
    checker.build()
    checker.inputs()
    check_keep(test.keep, spot)
    check_known_failures(test.known_failures, spot, of_one_test=True)
    _failures(test, spot)


def _failures(test: Test, spot: Spot) -> None:
    """Check the failure modes of a test."""
    codes: dict[int, str] = {}
    for name, mode in test.failures.items():
        at = spot.inside("failures", name)
        if not name.strip() or not name.isprintable():
            at.fault("is no name")
        if mode.pattern:
            at.parsed(log_pattern, mode.pattern, "pattern")
        elif mode.exit_code is None:
            at.fault("give a pattern or an exit_code, by which it is known")
        if mode.code in codes:
            at.fault(f"{mode.code} is the code of {codes[mode.code]}, too", "code")
        codes.setdefault(mode.code, name)


class _Checker(ExpressionChecker):
    def __init__(self, test: Test, spot: Spot, names_known: bool) -> None:
        super().__init__(test, spot, names_known)
        self.used: dict[str, frozenset[str]] = {}  # names in the expression of each parameter

    # ---- names and words ------------------------------------------------------------------

    def words(self) -> None:
        if not self.test.app.strip():
            self.fault("is empty; name the application", "app")
        for key in ("tags", "toolchains", "modules"):
            words = getattr(self.test, key)
            for i, word in enumerate(words if isinstance(words, list) else ()):
                if not word.strip() or any(c.isspace() for c in word):
                    self.fault(f"{word!r} is not one word", key, i)
        for part, scripted in (("run", self.test.run), ("build", self.test.build)):
            if scripted and "\0" in scripted.script:
                self.fault("holds a NUL character", part, "script")
        self._own_flags()
        self._environment()

    def _environment(self) -> None:
        known = self.test.parameter_names
        for name, message in faults_of_variables(self.test.fixed_environment):
            self.fault(message, "environment", name)
        for name, value in self.test.environment.items():
            if name in known:
                self.fault("is a parameter too; rename one of them", "environment", name)
            if isinstance(value, FromParameter):
                if value.parameter not in known and self.names_known:
                    remedy = (
                        suggest(value.parameter, known) or f"there are {', '.join(known) or 'none'}"
                    )
                    text = f"{value.parameter!r} is not a parameter; {remedy}"
                    self.fault(text, "environment", name, "parameter")
            elif (meant := _MEANT.fullmatch(str(value))) and (own := meant[1] or meant[2]) in known:
                text = f"{value!r} is only text; for the parameter write {{parameter: {own}}}"
                self.fault(text, "environment", name)

    def _own_flags(self) -> None:
        """Check what the test says of toolchains."""
        said = self.test.toolchains
        for name, own in said.items() if isinstance(said, dict) else ():
            if not own.reason.strip():
                self.fault("is empty; say why it is needed", "toolchains", name, "reason")
            changes = [key for key in FLAGS if getattr(own, key) is not None]
            if own.skip and (changes or own.environment):
                self.fault("goes with no flags; remove one of them", "toolchains", name, "skip")
            elif not (own.skip or changes or own.environment):
                text = f"changes nothing; give one of {', '.join(FLAGS)}, environment, skip"
                self.fault(text, "toolchains", name)
            for variable, message in faults_of_variables(own.environment):
                self.fault(message, "toolchains", name, "environment", variable)

    # ---- parameters -----------------------------------------------------------------------

    def parameters(self) -> None:
        known: set[str] = {*FACTS, *self.test.defaults}
        for name, usual in self.test.defaults.items():
            self._parameter_name(name, "defaults")
            if name in self.test.parameters:
                self.fault("is in `parameters`, too; remove one of them", "defaults", name)
            self.told(fault_of_value(usual), "defaults", name)
        for name, value in self.test.parameters.items():
            self._parameter_name(name, "parameters")
            if isinstance(value, list):
                self._literals(name, value)
            elif isinstance(value, str):
                self.used[name] = self.expression(value, known, "parameters", name)
            known.add(name)
        self._groups()
        for i, condition in enumerate(self.test.exclude):
            self.expression(condition, known, "exclude", i)

    def _groups(self) -> None:
        grouped: set[str] = set()
        for i, group in enumerate(self.test.zip):
            if len(group) < 2:
                self.fault("a group needs two or more parameters", "zip", i)
            for name in group:
                if name not in self.test.parameters:
                    if self.names_known:
                        self.fault(f"{name!r} is not a parameter", "zip", i)
                elif name in grouped:
                    self.fault(f"{name!r} is in a group already", "zip", i)
                grouped.add(name)
            self._independent(group, i)

    def _independent(self, group: list[str], i: int) -> None:
        """Check that no zipped parameter of a group depends on a parameter of the group or below
        it: they are bound together, where the first of them stands."""
        order = list(self.test.parameters)
        first = min((order.index(name) for name in group if name in order), default=0)
        for name in group:
            used = self.used.get(name, ())
            if late := [other for other in used if other in order[first:]]:
                message = f"{name} depends on {late[0]}, which is bound with it or after it"
                self.fault(f"{message}; a parameter that depends needs no zip", "zip", i)

    def _parameter_name(self, name: str, key: str) -> None:
        if not _PARAMETER.fullmatch(name) or keyword.iskeyword(name) or name in ("true", "false"):
            message = "a parameter's name must be letters, digits and _, and no word of expressions"
            self.fault(message, key, name)
        elif is_reserved(name):
            self.fault("scripts use this name for something else; choose another", key, name)

    def _literals(self, name: str, values: list[Scalar]) -> None:
        if not values:
            self.fault("has no value, so the test has no case", "parameters", name)
        zipped = any(name in group for group in self.test.zip)
        seen = set()
        for i, value in enumerate(values):
            if show(value) in seen and not zipped:
                self.fault(f"{show(value)} is given twice", "parameters", name, i)
            self.told(fault_of_value(value), "parameters", name, i)
            if value in FACTS:
                message = f"{value} in a list is only text; for its value put the list in quotes"
                self.fault(f"{message}: '[1, {value}]'", "parameters", name, i)
            seen.add(show(value))

    # ---- build and inputs -----------------------------------------------------------------

    def build(self) -> None:
        build = self.test.build
        if build is None:
            return
        if build.prebuilt or build.sha256:
            self._prebuilt(build)
        elif build.spack or build.easybuild:
            self._package(build)
        elif not build.script.strip():
            self.fault("is empty; give a script, or name a prebuilt binary", "build", "script")
        for i, name in enumerate(build.parameters):
            if name not in self.test.parameter_names:
                self.fault(f"{name!r} is not a parameter", "build", "parameters", i)
        names = set()
        for i, source in enumerate(build.sources):
            path = Path(source)
            if not os.path.exists(path):  # noqa: PTH110 - Path's raises where it may not look
                self.fault(f"{path} does not exist", "build", "sources", i)
            if path.name in names:
                self.fault(
                    f"a second {path.name}; both would be copied there", "build", "sources", i
                )
            self._free_in_build(path.name, "build", "sources", i)
            names.add(path.name)

    def _prebuilt(self, build: Build) -> None:
        path = Path(build.prebuilt)
        if not build.prebuilt:
            self.fault("is of a prebuilt binary; name it by prebuilt", "build", "sha256")
            return
        if not os.path.isfile(path):  # noqa: PTH113 - Path's raises where it may not look
            self.fault(f"{path} is no file", "build", "prebuilt")
        self._free_in_build(path.name, "build", "prebuilt")
        if not _SHA256.fullmatch(build.sha256):
            text = "must be the checksum of the prebuilt binary: 64 hex digits, as sha256sum prints"
            self.fault(text, "build", "sha256")
        for key, default in (
            ("script", ""),
            ("spack", ""),
            ("easybuild", ""),
            ("sources", []),
            ("parameters", []),
            ("where", None),
        ):
            if getattr(build, key) != default:
                self.fault("goes with no prebuilt binary; remove one of them", "build", key)

    def _package(self, build: Build) -> None:
        """Check what is asked of the site's Spack or EasyBuild."""
        if build.spack and build.easybuild:
            self.fault("goes with no spack; remove one of them", "build", "easybuild")
        if "\0" in build.spack or build.spack.lstrip().startswith("-"):
            self.fault(f"{build.spack!r} is not a spec; write e.g. hpl@2.3", "build", "spack")
        file = Path(build.easybuild)
        if file.is_absolute() and not file.is_file():
            self.fault(f"{file} is no file", "build", "easybuild")
        elif build.easybuild and file.suffix != ".eb":
            text = f"{file.name!r} is not the name of an easyconfig; it ends in .eb"
            self.fault(text, "build", "easybuild")

    def _free_in_build(self, name: str, *key: str | int) -> None:
        if name == BUILD_LOG or name.startswith(BUILD_FILES):
            self.fault(f"{name} is a name of Seatrial's own in a build; rename it", *key)

    def inputs(self) -> None:
        taken = list(RUN_FILES)
        for i, item in enumerate(self.test.inputs):
            if not isinstance(item, Input):
                continue
            if not os.path.exists(item.source):  # noqa: PTH110
                self.fault(f"{item.source} does not exist", "inputs", i)
            name = os.path.normpath(name_of(item))
            if name == "." or Path(name).is_absolute() or name.startswith(".."):
                self.fault(f"{name!r} must be a name inside the run directory", "inputs", i)
            elif other := next((one for one in taken if collide(one, name)), ""):
                self.fault(f"{name!r} is not free: {other!r} is there already", "inputs", i)
            taken.append(name)


def check_keep(keep: KeepWord | Keep | None, spot: Spot) -> None:
    """Add every fault of ``keep`` of the test or component at ``spot``."""
    if not isinstance(keep, Keep):
        return
    for key in ("remove", "files"):
        for i, pattern in enumerate(getattr(keep, key)):
            parts = pattern.split("/")
            if not pattern or "" in parts or ".." in parts or "\0" in pattern:
                message = f"{pattern!r} is no pattern of paths inside the run directory"
                spot.fault(f"{message}; write e.g. '*.dat' or 'out/*'", "keep", key, i)


def collide(one: str, other: str) -> bool:
    """Return True if two names are equal, or one lies below the other."""
    return f"{one}/".startswith(f"{other}/") or f"{other}/".startswith(f"{one}/")


def fault_of_file_name(name: str, test: Test) -> str:
    """Return what is wrong with a further name in the run directory; "" if nothing is."""
    name = os.path.normpath(name)
    if name in (".", "..") or name.startswith(("/", "../")):
        return f"{name!r} must be a name inside the run directory; give name"
    inputs = [each for each in test.inputs if isinstance(each, Input)]
    taken = [*RUN_FILES, *(os.path.normpath(name_of(each)) for each in inputs)]
    other = next((each for each in taken if collide(each, name)), "")
    return f"{name!r} is not free: {other!r} is there already" if other else ""
