"""Check a decoded ``test.yaml``: names, expressions, patterns, paths."""

import keyword
import os
import re
from collections.abc import Callable, Set
from pathlib import Path

from seatrial.errors import suggest
from seatrial.hooks import check_keys
from seatrial.model import run_settings
from seatrial.model.build import FLAGS, name_of
from seatrial.model.documents import Location
from seatrial.model.expressions import FACTS, Expression, ExpressionError, compile_expression
from seatrial.model.failures import check_known_failures
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.machine_file import faults_of_variables, references_of
from seatrial.model.parameters import (
    HOSTFILE,
    HUNG_FILE,
    MACHINEFILE,
    NODEFILE,
    ORDER_FILE,
    fault_of_value,
    is_reserved,
)
from seatrial.model.requirements import KEYS as PLACE_KEYS
from seatrial.model.requirements import fault_of_order
from seatrial.model.run_settings import (
    CONTAINER_FILE,
    DIRECTORY_FILE,
    GPU_KEYS,
    JOB_STATS_FILE,
    OPEN_FILES_FILE,
    PAGES_FILE,
    SPACE_FILE,
    STRIPES_FILE,
    TEXT_KEYS,
    Text,
    fault_of_name,
    faults_of_options,
)
from seatrial.model.task_placement import (
    CHOICES,
    COUNTED_FILE,
    DEFAULT,
    MAX_PIECES,
    NOT_BOTH,
    PIECE,
    PLACEMENT_FILE,
    asked_bytes,
    fault_of_choice,
    fault_of_launcher,
    split_size,
)
from seatrial.model.test import AskedNodes, Build, FromParameter, Input, Test
from seatrial.units import seconds

# ---- check expressions ---------------------------------------------------------------------------
#
# Check the expressions of a decoded test, and texts with expressions in braces.


class _ExpressionChecker:
    """Adds the faults of a test at ``location``. ``written`` are names of parameters that could not
    be read; None: there may be any, so undefined names are not reported."""

    def __init__(self, test: Test, location: Location, written: Set[str] | None) -> None:
        self.test = test
        self.location = location
        self.fault = location.fault
        self.written = written
        self.names_known = written is not None and not written
        #: the names of parameters and facts
        self.known = {*FACTS, *test.parameter_names}

    def add(self, fault: str, *key: str | int) -> None:
        """Add a fault, unless it is empty."""
        if fault:
            self.fault(fault, *key)

    def expression(self, text: str, known: set[str], *key: str | int) -> frozenset[str]:
        """Check an expression; return the names that it uses."""
        try:
            names = compile_expression(text).names
        except ExpressionError as error:
            self.fault(str(error), *key)
            return frozenset()
        for name in sorted(names - known - self.written if self.written is not None else ()):
            self.fault(f"{text!r}: {name} is not defined{self._remedy(name, key[0])}", *key)
        return names

    def _remedy(self, name: str, key: str | int) -> str:
        known = [*self.test.parameter_names, *FACTS]
        if name in known:
            return "; it is written further down, and must stand above"
        if near := suggest(name, known):
            return f"; {near}"
        words = f"for a word write [{name}]; " if key == "parameters" else ""
        return f"; {words}the facts are {', '.join(FACTS)}"

    def text(self, written: str, known: set[str], *key: str | int) -> str | None:
        """Check a text with expressions in braces; return it where it has none."""
        try:
            parsed = Text.parse(written)
        except ExpressionError as error:
            self.fault(str(error), *key)
            return None
        for each in parsed.parts:
            if isinstance(each, Expression):
                self.expression(each.text, known, *key)
        return parsed.fixed


# ---- check ---------------------------------------------------------------------------------------


RUN_FILES = frozenset(
    {
        *("job.sh", "job.environment", "job.rankfile", "events.jsonl"),
        *(ORDER_FILE, "job.bind", "job.gpus", "job.container", CONTAINER_FILE),
        *("job.threads", "job.threads.d", COUNTED_FILE),
        *("compat", HOSTFILE, MACHINEFILE, NODEFILE),
        *(HUNG_FILE, PAGES_FILE, STRIPES_FILE, DIRECTORY_FILE, PLACEMENT_FILE),
        *(OPEN_FILES_FILE, JOB_STATS_FILE, SPACE_FILE),
        *("stdout", "stdout.tail", "stderr", "stderr.tail"),
    }
)
BUILD_LOG, BUILD_FILES = "build.log", "seatrial."

_PARAMETER = r"[A-Za-z][A-Za-z0-9_]*"
_SHA256 = r"[0-9a-fA-F]{64}"
_MEANT = r"\$\{?([A-Za-z]\w*)\}?|\{([A-Za-z]\w*)\}"  # $name, ${name}, {name}


def check(test: Test, location: Location, written: Set[str] | None = frozenset()) -> None:
    """Add every fault of a decoded test at ``location``. ``written`` are names of parameters that
    could not be read; None: there may be any, so undefined names are not reported."""
    checker = _Checker(test, location, written)
    checker.environment()
    checker.own_flags()
    checker.parameters()
    _RunChecker(test, location, written).check()
    checker.build()
    checker.inputs()
    check_known_failures(test.known_failures, location, of_one_test=True)
    _failures(test, location)
    check_keys("test", test, location)


def _failures(test: Test, location: Location) -> None:
    """Check the failure modes of a test."""
    codes: dict[int, str] = {}
    for name, mode in test.failures.items():
        at = location.inside("failures", name)
        if not mode.pattern and mode.exit_code is None:
            at.fault("give a pattern or an exit_code, by which it is known")
        if mode.code in codes:
            at.fault(f"{mode.code} is the code of {codes[mode.code]}, too", "code")
        codes.setdefault(mode.code, name)


class _Checker(_ExpressionChecker):
    def __init__(self, test: Test, location: Location, written: Set[str] | None) -> None:
        super().__init__(test, location, written)
        self.used: dict[str, frozenset[str]] = {}  # names in the expression of each parameter

    # ---- environment and flags ------------------------------------------------------------

    def environment(self) -> None:
        known = self.test.parameter_names
        for name, message in faults_of_variables(self.test.fixed_environment):
            self.fault(message, "environment", name)
        for name, value in self.test.environment.items():
            if name in known:
                self.fault("is a parameter too; rename one of them", "environment", name)
            if isinstance(value, FromParameter):
                self._parameter_of(value, name)
            elif (meant := re.fullmatch(_MEANT, str(value))) and (
                parameter := meant[1] or meant[2]
            ) in known:
                text = f"{value!r} is only text; for the parameter write {{parameter: {parameter}}}"
                self.fault(text, "environment", name)
            elif used := [each for each in references_of(value) if each in known]:
                text = f"{value!r}: {used[0]} is a parameter, which builds do not have; export it"
                self.fault(f"{text} in the script", "environment", name)

    def _parameter_of(self, value: FromParameter, name: str) -> None:
        known = self.test.parameter_names
        if value.parameter not in known and self.names_known:
            remedy = suggest(value.parameter, known) or f"there are {', '.join(known) or 'none'}"
            text = f"{value.parameter!r} is not a parameter; {remedy}"
            self.fault(text, "environment", name, "parameter")

    def own_flags(self) -> None:
        """Check what the test says of toolchains."""
        if isinstance(self.test.toolchains, list):
            return
        for name, flags in self.test.toolchains.items():
            changes = flags.environment or any(getattr(flags, key) is not None for key in FLAGS)
            if flags.skip and changes:
                self.fault("goes with no flags; remove one of them", "toolchains", name, "skip")
            elif not (flags.skip or changes):
                text = f"changes nothing; give one of {', '.join(FLAGS)}, environment, skip"
                self.fault(text, "toolchains", name)
            for variable, message in faults_of_variables(flags.environment):
                self.fault(message, "toolchains", name, "environment", variable)

    # ---- parameters -----------------------------------------------------------------------

    def parameters(self) -> None:
        known: set[str] = {*FACTS, *self.test.defaults}
        for name, usual in self.test.defaults.items():
            self._parameter_name(name, "defaults")
            if name in self.test.parameters:
                self.fault("is in `parameters`, too; remove one of them", "defaults", name)
            self.add(fault_of_value(usual), "defaults", name)
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
        if (
            not re.fullmatch(_PARAMETER, name)
            or keyword.iskeyword(name)
            or name in ("true", "false")
        ):
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
            self.add(fault_of_value(value), "parameters", name, i)
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
        self._sources(build)

    def _sources(self, build: Build) -> None:
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
        if not re.fullmatch(_SHA256, build.sha256):
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


# ---- check run -----------------------------------------------------------------------------------
#
# Check the ``run`` of a decoded test: sizes, placement, what is asked of scheduler and memory.


_WORD = r"[A-Za-z_][A-Za-z0-9_.]*"
_SIZES = ("nodes", "tasks", "tasks_per_node", "threads_per_task", "tasks_per_numa")


class _RunChecker(_ExpressionChecker):
    """Adds the faults of the ``run`` of a test."""

    def check(self) -> None:
        """Add every fault."""
        run = self.test.run
        if not self.location.given("run"):
            self._without_run()
            return
        if run.tasks is not None and run.tasks_per_node is not None:
            self.fault("give tasks or tasks_per_node, not both", "run", "tasks_per_node")
        for key in _SIZES:
            self._number(key, 1)
        self._pieces()
        self._placement()
        self._job_options()
        self._requires()
        if run.prove and self.test.build is not None and self.test.build.prebuilt:
            self.fault(
                "builds the probe hello, but `build` is prebuilt; remove one", "run", "prove"
            )
        self._settings()
        if run.scope == "each_node" and run.nodes != 1:
            self.fault("scope: each_node runs on one node at a time; remove nodes", "run", "nodes")
        self._walltime(run.walltime)

    def _walltime(self, written: int | float | str) -> None:
        try:
            seconds(written)
        except ValueError as error:
            text = written if isinstance(written, str) else ""  # it may be an expression
            if self.known.intersection(re.findall(_WORD, text)) or set("*/+(") & set(text):
                self.expression(text, self.known, "run", "walltime")
            else:
                self.fault(str(error), "run", "walltime")

    def _number(self, key: str, lowest: int, highest: int | None = None) -> None:
        """Check a key that is a number within bounds, or an expression."""
        value = getattr(self.test.run, key)
        if isinstance(value, str):
            self.expression(value, self.known, "run", key)
        elif value is not None and highest is not None and not lowest <= value <= highest:
            self.fault(f"{value} is not from {lowest} to {highest}", "run", key)
        elif value is not None and value < lowest:
            self.fault(f"{value} is less than {lowest}", "run", key)

    def _words(self, key: str, fault_of: Callable[[str], str]) -> None:
        """Check a key that is a text, perhaps with expressions in braces."""
        if (written := getattr(self.test.run, key)) and (
            fixed := self.text(written, self.known, "run", key)
        ):
            self.add(fault_of(fixed), "run", key)

    def _pieces(self) -> None:
        run = self.test.run
        for key in ("pieces", "at_once"):
            self._number(key, 1, MAX_PIECES)
        if run.pieces is None and run.at_once != 1:
            self.fault("goes with `pieces`: how many runs are there?", "run", "at_once")
        if run.pieces is not None and PIECE in self.test.parameter_names:
            text = f"each run of `run.pieces` has the parameter {PIECE}: rename this one"
            self.fault(text, "parameters", PIECE)

    def _without_run(self) -> None:
        """Check a test that passes when it builds."""
        if self.test.build is None:
            self.fault("is missing; only a test with a `build` needs no `run`", "run")
            return
        for key in ("inputs", "verify", "metrics"):
            if getattr(self.test, key):
                self.fault("goes with no test without `run`: nothing is run that writes it", key)
        if self.test.repeat != 1:
            self.fault("a test without `run` is built once; remove it", "repeat")

    def _placement(self) -> None:
        """Check what the run says of cores and memory of its tasks."""
        run = self.test.run
        named = run.launcher in self.test.parameter_names or not self.names_known
        if run.launcher and not named:
            self.add(fault_of_launcher(run.launcher), "run", "launcher")
        for key in CHOICES:
            self._choice(key)
        if run.spread not in (None, "default") and run.tasks_per_numa is not None:
            self.fault(NOT_BOTH, "run", "tasks_per_numa")
        if run.order and run.order not in self.known:
            self._order(run.order)
        self._place()
        self._number("spare_cores", 0)

    def _choice(self, key: str) -> None:
        text = getattr(self.test.run, key)
        if text is None or text in self.known:
            return
        if not re.fullmatch(_WORD, text):
            self.expression(text, self.known, "run", key)
        elif self.names_known:
            self.add(fault_of_choice(key, text), "run", key)

    def _order(self, written: str) -> None:
        words = self.text(written, self.known, "run", "order")
        if words and self.names_known:
            self.add(fault_of_order(words), "run", "order")

    def _place(self) -> None:
        """Check where the nodes are to be; the machine knows its levels."""
        place = self.test.run.place
        if isinstance(place, AskedNodes):
            for key in PLACE_KEYS:
                self.text(getattr(place, key), self.known, "run", "place", key)
        elif place is not None:
            self.text(place, self.known, "run", "place")
        if place is not None and self.test.run.scope == "each_node":
            self.fault("scope: each_node has its nodes; remove place", "run", "place")

    def _job_options(self) -> None:
        run, known = self.test.run, self.known
        if run.gpus_per_node is not None and run.gpus_per_task is not None:
            text = "give gpus_per_node or gpus_per_task, not both"
            self.fault(text, "run", "gpus_per_task")
        for key in GPU_KEYS:
            self._number(key, 0)
        if run.memory is not None:
            self._size(run.memory, "run", "memory")
        for key in TEXT_KEYS:
            self._words(key, fault_of_name)
        options = [
            self.text(each, known, "run", "options", i) for i, each in enumerate(run.options)
        ]
        for i, fault in faults_of_options([each or "--unknown" for each in options]):
            self.fault(fault, "run", "options", i)

    def _size(self, written: int | str, *key: str) -> None:
        """Check a size whose number may be an expression."""
        try:
            asked_bytes(written, key[-1])
            self.expression(split_size(written)[0], self.known, *key)
        except ExpressionError as error:
            self.fault(str(error), *key)

    def _requires(self) -> None:
        given, space = self.test.requires.or_given, self.test.requires.space
        if given and given not in self.test.defaults and self.names_known:
            remedy = suggest(given, self.test.defaults) or f"write `defaults: {{{given}: ''}}`"
            self.fault(
                f"{given!r} is no parameter with a default; {remedy}", "requires", "or_given"
            )
        if isinstance(space, str):
            self._size(space, "requires", "space")
        elif space is not None:
            self._size(space.size, "requires", "space", "size")
            self.text(space.path, self.known, "requires", "space", "path")
            if space.largest_file:
                self._size(space.largest_file, "requires", "space", "largest_file")

    def _settings(self) -> None:
        run, known = self.test.run, self.known
        self._words("pages", run_settings.fault_of_pages)
        self._words("directory", run_settings.fault_of_directory)
        if run.container:
            self._container()
        for name, value in run.malloc.items():
            self.add(run_settings.fault_of_tunable(name), "run", "malloc", name)
            if isinstance(value, str) and value != DEFAULT:
                self.expression(value, known, "run", "malloc", name)
        if run.stripe is None:
            return
        at = ("run", "stripe")
        if isinstance(run.stripe.count, str) and run.stripe.count != DEFAULT:
            self.expression(run.stripe.count, known, *at, "count")
        else:
            self.location.parsed(run_settings.stripe_count, run.stripe.count, *at, "count")
        if run.stripe.size and (size := self.text(run.stripe.size, known, *at, "size")):
            self.location.parsed(run_settings.stripe_size, size, *at, "size")

    def _container(self) -> None:
        image = self.text(self.test.run.container, self.known, "run", "container")
        if image and (fault := run_settings.fault_of_image(image)):
            self.fault(fault, "run", "container")
        elif image and image.startswith("."):
            path = run_settings.image_of(image, self.test.folder)
            if not Path(path).exists():
                self.fault(f"there is no {path}; build the image first", "run", "container")
        if self.test.run.prove:
            message = "cannot be proved: hello is built for the host, and $LAUNCH starts the image"
            self.fault(message, "run", "container")
