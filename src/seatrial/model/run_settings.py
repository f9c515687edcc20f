"""What a test asks for its runs: GPUs, memory, partition, QOS, reservation, account and options of
the scheduler; pages, malloc, stripes, directory and container of the nodes.

    asked = AskedOptions(test.run, component.slurm)     # parses the texts once
    asked.bound(names)                         # the JobOptions of one case
    asked = AskedSettings(test.run, machine)
    asked.bound(names)                         # the RunSettings of one case

All of them may follow from parameters, so that a tuning can try several.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from seatrial.errors import suggest
from seatrial.model.expressions import Expression, ExpressionError, compile_expression
from seatrial.model.file_model import Scalar
from seatrial.model.identifiers import show
from seatrial.model.machine import PAGES, Machine, SlurmOverride
from seatrial.model.schedulers import BatchSettings, Slurm
from seatrial.model.task_placement import (
    DEFAULT,
    Names,
    Quantity,
    asked_bytes,
    quantity,
    whole_or_none,
)
from seatrial.model.test import Case, JobOptions, RunSettings, RunSpec, Space, Test
from seatrial.units import bytes_of, count, listed, show_bytes, show_seconds

# ---- of the scheduler ----------------------------------------------------------------------------
#
# Who decides, the strongest first: a component of a plan, the test, the machine as it is in the
# phase. The ``options`` of all are given to sbatch in the order machine, test, component.


GPU_KEYS = ("gpus_per_node", "gpus_per_task")
TEXT_KEYS = ("partition", "account", "qos", "reservation")
ASKED_KEYS = (*GPU_KEYS, "memory", *TEXT_KEYS, "options")
_OVERRIDDEN = (*TEXT_KEYS, "constraint")

_INSERTED = r"\{([^{}]*)\}"
_LONGEST = 1000

# Options of sbatch by which Seatrial describes a job itself, and what is to be used instead.
_OWN = {
    **dict.fromkeys(("array", "a", "job-name", "J", "chdir", "D", "wrap", "clusters", "M"), ""),
    **dict.fromkeys(("output", "o", "error", "e", "input", "i", "parsable", "wait", "W"), ""),
    **dict.fromkeys(("requeue", "test-only", "help", "h", "version", "V", "usage"), ""),
    **dict.fromkeys(("nodes", "N"), "run.nodes"),
    **dict.fromkeys(("ntasks", "n"), "run.tasks"),
    "ntasks-per-node": "run.tasks_per_node",
    **dict.fromkeys(("cpus-per-task", "c"), "run.threads_per_task"),
    **dict.fromkeys(("time", "t"), "run.walltime"),
}
_OPTION = r"--([a-z][a-z-]*)(=.*)?|-([A-Za-z])(.*)"


class AskedOptions:
    """The options that a test asks for, overridden by a component of a plan; ``partition`` is the
    one of a phase, for tests that ask for none. The attribute of this name is None where nobody
    asks for one, or it depends on the case. Raises ExpressionError for what cannot be parsed."""

    def __init__(
        self, run: RunSpec, by: SlurmOverride | None = None, partition: str | None = None
    ) -> None:
        gpus = _given(run, GPU_KEYS)
        self._gpus = {key: quantity(value, key, whole_or_none) for key, value in gpus.items()}
        self._memory = asked_bytes(run.memory, "memory") if run.memory is not None else None
        self._texts = {key: Text.parse(text, key) for key, text in _given(run, TEXT_KEYS).items()}
        self._options = [Text.parse(each, "options", i) for i, each in enumerate(run.options)]
        self._by = by
        self._under = replace(_NO_OPTIONS, partition=partition)
        self._any = bool(self._gpus or self._memory or self._texts or self._options)
        self.any_gpus = bool(self._gpus)
        self.partition = self._texts["partition"].fixed if "partition" in self._texts else partition
        if by is not None and by.partition is not None:
            self.partition = by.partition
        self._by_node = any(
            "node.gpus" in compile_expression(value).names
            for value in gpus.values()
            if isinstance(value, str)
        )

    def bound(self, names: Names) -> JobOptions:
        """Return the options for the values of a case. Raises ExpressionError."""
        options = self._of_test(names) if self._any else self._under
        return overridden(options, self._by) if self._by is not None else options

    def _of_test(self, names: Names) -> JobOptions:
        texts = {key: text.value(names) for key, text in self._texts.items()}
        options = tuple(text.value(names) for text in self._options)
        for i, fault in faults_of_options(options):
            raise ExpressionError(fault, "run", "options", i)
        memory_asked = self._memory(names) if self._memory else 0
        gpus = {key: number(names) for key, number in self._gpus.items()}
        return replace(self._under, **gpus, **texts, memory=memory_asked, options=options)

    def wants_missing(self, names: Names) -> bool:
        """Return whether the test asks for as many GPUs as a node has, where it has none."""
        return self._by_node and not names["node.gpus"]


def _given(run: RunSpec, keys: Sequence[str]) -> dict[str, Any]:
    """Return the values of those keys that a test gives."""
    return {key: value for key in keys if (value := getattr(run, key)) is not None}


class Text(Struct, frozen=True):
    """A text in which ``{name}``, or another expression in braces, stands for its value."""

    parts: tuple[str | Expression, ...]
    key: tuple[str | int, ...]

    @classmethod
    def parse(cls, written: str, *key: str | int) -> "Text":
        """Parse a text. Raises ExpressionError."""
        parts: list[str | Expression] = []
        end = 0
        for match in re.finditer(_INSERTED, written):
            parts += written[end : match.start()], compile_expression(match[1])
            end = match.end()
        parts.append(written[end:])
        if any(isinstance(part, str) and re.search(r"[{}]", part) for part in parts):
            raise ExpressionError(f"{written!r} has half a pair of braces; write {{name}}")
        return cls(tuple(parts), key)

    @property
    def names(self) -> frozenset[str]:
        used = [part.names for part in self.parts if isinstance(part, Expression)]
        return frozenset().union(*used)

    @property
    def fixed(self) -> str | None:
        """The text where it has no expression."""
        return None if len(self.parts) > 1 else str(self.parts[0])

    def inserted(self, names: Names) -> str:
        """Return the text with the values of a case. Raises ExpressionError."""
        return "".join(
            part if isinstance(part, str) else show(part.evaluate(names, "run", *self.key))
            for part in self.parts
        )

    def value(self, names: Names) -> str:
        """Return the text for the values of a case, which is a word for Slurm. Raises
        ExpressionError."""
        text = self.inserted(names)
        if fault := fault_of_word(text) if "options" in self.key else fault_of_name(text):
            raise ExpressionError(fault, "run", *self.key)
        return text


# ---- faults -------------------------------------------------------------------------------


def fault_of_word(text: str) -> str:
    """Return why a text cannot be an argument of sbatch; "" if it can."""
    if len(text) > _LONGEST:
        return f"is longer than {_LONGEST} characters"
    bad = next((c for c in text if not c.isprintable()), "")
    return f"{text!r} holds {bad!r}, which no argument of sbatch may" if bad else ""


def fault_of_name(text: str) -> str:
    """Return why a text cannot be the name of a partition, an account, ...; "" if it can."""
    if text != text.strip() or " " in text or text.startswith("-"):
        return f"{text!r} is not a name of Slurm's; write one word, e.g. gpu"
    return fault_of_word(text)


def faults_of_options(options: Sequence[str]) -> Iterator[tuple[int, str]]:
    """Yield the position and the fault of each of these arguments of sbatch that cannot be given
    to it."""
    takes_value = False  # whether the word before is an option that may take this word as its value
    for i, word in enumerate(options):
        match = re.fullmatch(_OPTION, word, re.DOTALL)
        if fault := fault_of_word(word):
            yield i, fault
        elif match is None:
            if not takes_value:
                yield i, f"{word!r} is no option; it must begin with -, e.g. --constraint=a100"
            takes_value = False
            continue
        else:
            name = match[1] or match[3]
            if name in _OWN:
                instead = f"; use {_OWN[name]}" if _OWN[name] else ""
                yield i, f"{word!r} is given by Seatrial itself{instead or '; remove it'}"
        takes_value = match is not None and not (match[2] or match[4])


def faults_of_override(slurm: SlurmOverride) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Yield the key and the text of each fault of what a plan says to Slurm."""
    for key in TEXT_KEYS:
        if fault := fault_of_name(getattr(slurm, key) or ""):
            yield (key,), fault
    for i, fault in faults_of_options(slurm.options):
        yield ("options", i), fault


# ---- who decides --------------------------------------------------------------------------


def overridden(options: JobOptions, by: SlurmOverride) -> JobOptions:
    """Return the options of a test as a component of a plan overrides them."""
    return _laid_over(options, _as_options(by))


def as_written(machine: Slurm, run: RunSpec, plan: SlurmOverride) -> dict[str, str]:
    """Return what is asked of the scheduler for a test, as the files have it: the value of each
    key that the test or its plan gives, or the machine's where they give none."""
    said = {}
    for key in (*GPU_KEYS, "memory", *_OVERRIDDEN):
        texts = (getattr(each, key, None) for each in (plan, run, machine))
        said[key] = str(next((text for text in texts if text is not None), ""))
    said["options"] = " ".join([*machine.options, *run.options, *plan.options])
    return said


def overridden_settings(slurm: Slurm, by: SlurmOverride) -> Slurm:
    """Return the settings of a machine as a phase of a plan overrides them."""
    given = {key: text for key in _OVERRIDDEN if (text := getattr(by, key)) is not None}
    return replace(slurm, **given, options=[*slurm.options, *by.options])


def effective(machine: BatchSettings, options: JobOptions) -> JobOptions:
    """Return what is said to the scheduler: the machine's settings, overridden by the options of a
    case. Texts are "" where nothing is said."""
    return _laid_over(_as_options(machine), options)


def described(options: JobOptions) -> str:
    """Return options for people: ``gpus_per_node=4 memory=16.0 GiB partition=gpu``; "" for none."""
    if options == _NO_OPTIONS:
        return ""
    words = [f"{key}={getattr(options, key)}" for key in GPU_KEYS if getattr(options, key)]
    words += [f"memory={show_bytes(options.memory).replace(' ', '')}"] if options.memory else []
    words += [f"{key}={value}" for key in _OVERRIDDEN if (value := getattr(options, key))]
    return " ".join([*words, *options.options])


def _as_options(settings: BatchSettings | SlurmOverride) -> JobOptions:
    texts: dict[str, Any] = {key: getattr(settings, key, "") for key in _OVERRIDDEN}
    if isinstance(settings, BatchSettings) and (queue := getattr(settings, "queue", "")):
        texts["partition"] = queue
    return JobOptions(**texts, options=tuple(settings.options))


def _laid_over(under: JobOptions, over: JobOptions) -> JobOptions:
    texts = {
        key: getattr(under, key) if (value := getattr(over, key)) is None else value
        for key in _OVERRIDDEN
    }
    return JobOptions(
        **texts,
        gpus_per_node=over.gpus_per_node or under.gpus_per_node,
        gpus_per_task=over.gpus_per_task or under.gpus_per_task,
        memory=over.memory or under.memory,
        options=under.options + over.options,
    )


_NO_OPTIONS = JobOptions()


# ---- shared allocations --------------------------------------------------------------------------
#
# Which cases share allocations: those of the same nodes and scheduler options that are to.
#
#     groups = sharing_groups(tests, cases, together=True)     # [1, 1, 2, 0]: by case
#
# A test says so of its own cases (``run.within: allocation``, ``run.pieces``), a person of all
# cases of a trial (``--together``).


def sharing_groups(
    tests: Mapping[str, Test], cases: Sequence[Case], together: bool = False
) -> list[int]:
    """Return for each case the number of its group, from 1 on, 0 for one that shares with none; an
    empty list where none does. A group has one allocation, so its cases need the same nodes."""
    numbers: dict[object, int] = {}
    groups = []
    for case in cases:
        test = tests[case.test]
        if case.only_builds or not (together or shares(test)):
            groups.append(0)
            continue
        test_name = case.test if shares(test) else ""
        key = (test_name, case.nodes, case.node, case.exclusive, case.at_once, case.job, case.place)
        features = tuple(sorted(test.requires.features))
        groups.append(numbers.setdefault((*key, features), len(numbers) + 1))
    return groups if numbers else []


def shares(test: Test) -> bool:
    """Return whether the cases and repeats of a test share an allocation."""
    return test.run.within == "allocation" or test.run.pieces is not None


def described_groups(cases: Sequence[Case], groups: Sequence[int], allocations: int) -> str:
    """Return how cases share allocations, and how long one may take at most, for people; "" where
    none does."""
    members: dict[int, list[Case]] = {}
    for case, group in zip(cases, groups, strict=False):
        if group:
            members.setdefault(group, []).append(case)
    if not members:
        return ""
    parts = [_described_group(together, allocations) for together in members.values()]
    text = f"{count(len(members) * allocations, 'allocation')}: {listed(parts, 5)}"
    if len(members) > 1:
        differ = _differing([together[0] for together in members.values()])
        text += f"; cases with other {differ} cannot share one"
    return text


def _described_group(cases: Sequence[Case], allocations: int) -> str:
    first = cases[0]
    runs = sum(case.repeat for case in cases)
    where = first.node or count(first.nodes, "node")
    seconds = sum(case.repeat * case.walltime for case in cases) / first.at_once
    longest = f"up to {show_seconds(seconds / allocations)}{' each' if allocations > 1 else ''}"
    return f"{count(runs, 'run')} of {count(len(cases), 'case')} on {where} ({longest})"


def _differing(cases: Sequence[Case]) -> str:
    """Return in what cases of different groups differ, in words."""
    if len({case.nodes for case in cases}) > 1:
        return "numbers of nodes"
    names = [
        name
        for name in ("exclusive", "at_once")
        if len({getattr(case, name) for case in cases}) > 1
    ]
    for name in JobOptions.__struct_fields__:
        if len({getattr(case.job, name) for case in cases}) > 1:
            names.append(name)
    return f"scheduler options ({', '.join(names)})" if names else "nodes"


# ---- of the nodes --------------------------------------------------------------------------------


PAGES_FILE, STRIPES_FILE, DIRECTORY_FILE = "pages.txt", "stripes.txt", "directory.txt"
SPACE_FILE = "space.txt"
OPEN_FILES_FILE, JOB_STATS_FILE = "open_files.txt", "job_stats.txt"
"""What a run got, and what files it had open."""

STRIPE_UNIT = 64 << 10  # Lustre takes multiples of it

_FILE_SYSTEM = r"[A-Za-z0-9_][\w.+-]*"


class AskedSettings:
    """The settings that a test asks for. Raises ExpressionError for what cannot be parsed."""

    def __init__(self, run: RunSpec, machine: Machine, space: str | Space | None = None) -> None:
        self._machine = machine
        self._pages = Text.parse(run.pages, "pages") if run.pages else None
        self._malloc = {
            name: quantity(value, "malloc", _tunable_value) for name, value in run.malloc.items()
        }
        stripe = run.stripe
        self._count = quantity(stripe.count, "stripe", stripe_count) if stripe else None
        self._size = Text.parse(stripe.size, "stripe", "size") if stripe and stripe.size else None
        self._directory = Text.parse(run.directory, "directory") if run.directory else None
        self._container = Text.parse(run.container, "container") if run.container else None
        space = Space(size=space) if isinstance(space, str) else space
        self._space = asked_bytes(space.size, "space", "requires") if space else None
        self._file: Quantity | None = None
        self._space_path = Text.parse(space.path if space else "", "space", "path")
        if space and space.largest_file:
            self._file = asked_bytes(space.largest_file, "space", "requires")
        self._any = any((run.pages, run.malloc, stripe, run.directory, run.container, space))

    def bound(self, names: Names) -> RunSettings:
        """Return the settings for the values of a case. Raises ExpressionError."""
        if not self._any:
            return _NO_SETTINGS
        tunables: dict[str, int] = {}
        for name, value_of in self._malloc.items():
            tunable, value = tunable_of(name), value_of(names)
            if tunable is not None and value is not None:
                tunables[tunable] = value
        directory, file_system_type = self._directory_of(names)
        return RunSettings(
            pages=self._pages_of(names),
            malloc=tunables,
            stripe_count=self._count(names) if self._count else 0,
            stripe_size=self._size_of(names),
            directory=directory,
            file_system_type=file_system_type,
            container=self._container_of(names),
            space=self._space(names) if self._space else 0,
            largest_file=self._file(names) if self._file else 0,
            space_path=self._space_path_of(names) if self._space else "",
        )

    def _pages_of(self, names: Names) -> str:
        pages = self._pages.value(names) if self._pages else ""
        if pages and (fault := fault_of_pages(pages)):
            raise ExpressionError(fault, "run", "pages")
        return "" if pages == DEFAULT else pages

    def _size_of(self, names: Names) -> int:
        if self._size is None:
            return 0
        try:
            return stripe_size(self._size.value(names))
        except ValueError as error:
            raise ExpressionError(str(error), "run", "stripe", "size") from None

    def _container_of(self, names: Names) -> str:
        image = self._container.inserted(names) if self._container else DEFAULT
        if image == DEFAULT:
            return ""
        if fault := fault_of_image(image):
            raise ExpressionError(fault, "run", "container")
        if self._machine.containers is None:
            text = (
                f"{self._machine.machine} does not say how containers are started; write "
                "`containers: {kind: apptainer}`, or another kind, into its file"
            )
            raise ExpressionError(text, "run", "container")
        kind = self._machine.containers.kind
        if is_path(image) and kind in TAKES_NAMES:
            text = f"{image!r} is a path, and {kind} takes names of images, such as debian:12"
            raise ExpressionError(text, "run", "container")
        return image

    def _space_path_of(self, names: Names) -> str:
        """Return the path of which it is asked: of a file system of the machine, or as written."""
        try:
            on = self._space_path.inserted(names) or "."
        except ExpressionError as error:
            raise ExpressionError(str(error), "requires", "space", "path") from None
        if not on.isprintable():
            raise ExpressionError(f"{on!r} is no path", "requires", "space", "path")
        systems = self._machine.file_systems
        return systems[on].path if on in systems else on

    def _directory_of(self, names: Names) -> tuple[str, str]:
        """Return the path, and the type that its file system must have."""
        directory = self._directory.inserted(names) if self._directory else DEFAULT
        if fault := fault_of_directory(directory):
            raise ExpressionError(fault, "run", "directory")
        if directory == DEFAULT or directory.startswith("/"):
            return ("" if directory == DEFAULT else directory), ""
        systems = self._machine.file_systems
        if directory not in systems:
            remedy = suggest(directory, systems) or f"there are {', '.join(systems) or 'none'}"
            text = f"{directory!r} is no file system of {self._machine.machine}; {remedy}"
            raise ExpressionError(text, "run", "directory")
        return systems[directory].path, systems[directory].type


_NO_SETTINGS = RunSettings()


def fault_of_directory(directory: str) -> str:
    """Return the fault of a directory, "" if it is a path, a name or the word ``default``."""
    if directory.startswith("/") and directory.isprintable() and ".." not in directory.split("/"):
        return ""
    if re.fullmatch(_FILE_SYSTEM, directory):
        return ""
    return (
        f"{directory!r} is no absolute path, and no name of a file system of the machine; "
        "`default` is the run directory"
    )


def fault_of_pages(pages: str) -> str:
    """Return the fault of a word for pages, "" if it has none."""
    words = (DEFAULT, *PAGES)
    return "" if pages in words else f"{pages!r} is not one of {', '.join(words)}"


def fault_of_tunable(name: str) -> str:
    """Return the fault of the name of a tunable of malloc, "" if it has none."""
    if tunable_of(name) == "hugetlb":
        return "is what `pages` sets; write e.g. pages: thp"
    return "" if tunable_of(name) else f"glibc knows no {name!r}; {near(name) or known()}"


def _tunable_value(value: Any) -> int | None:
    """Return the value of a tunable; None for the word ``default``."""
    if value == DEFAULT:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise ValueError(f"it must be a whole number, or {DEFAULT}")
    return value


def stripe_count(value: Any) -> int:
    """Return a number of stripes: 0 for the default, -1 for all targets. Raises ValueError."""
    if value == DEFAULT:
        return 0
    if isinstance(value, bool) or not isinstance(value, int) or value < -1:
        raise ValueError(f"it must be a whole number above 0, -1 for all targets, or {DEFAULT}")
    return value


def stripe_size(text: str) -> int:
    """Return the bytes of a stripe, 0 for the default. Raises ValueError."""
    if text == DEFAULT:
        return 0
    size = bytes_of(int(text) if text.isdigit() else text)
    if size % STRIPE_UNIT:
        raise ValueError(f"{text!r} is no multiple of 64 KiB, which Lustre asks for; write e.g. 4M")
    return size


# ---- the image of a container --------------------------------------------------------------

# A test names it by a path of a file or a folder (absolute, or from the test's folder with a dot:
# `./lammps.sif`), or by a name that the runtime of the machine knows (`docker://debian:12`,
# `registry.site/lammps:2023`).

CONTAINER_FILE = "container.txt"
"""The file of a run with the digest of its image, or why it has none."""

TAKES_NAMES = frozenset({"podman", "podman-hpc", "shifter", "sarus"})
"""Runtimes that keep their images themselves: a path is none of them."""

_NAME = r"[A-Za-z0-9][\w./:@+~=-]*"


def is_path(image: str) -> bool:
    """Return whether an image is named by its path."""
    return image.startswith(("/", "./", "../"))


def image_of(image: str, folder: str) -> str:
    """Return an image with its path from the root; ``folder``: that of its test."""
    return str((Path(folder) / image).resolve()) if image.startswith(".") else image


def fault_of_image(image: str) -> str:
    """Return the fault of an image; "" if it is a path or may be a name."""
    if is_path(image) and image.isprintable():
        return ""
    if re.fullmatch(_NAME, image):
        return ""
    return f"{image!r} is no absolute path, no path that begins with ./, and no name of an image"


# ---- glibc ---------------------------------------------------------------------------------------
#
# The names by which glibc's malloc is tuned: tunables, and variables of the environment.
#
#     fault_of_variable("MALLOC_MMAP_MAX", "0")   # "glibc knows no MALLOC_MMAP_MAX; ..."
#
# Sources: `ld.so --list-tunables` of glibc 2.36, the manual's chapter Memory Allocation Tunables,
# and `elf/dl-tunables.list`, which has the variables.


TUNABLES = "GLIBC_TUNABLES"
PREFIX = "glibc.malloc."

VARIABLES: dict[str, str] = {
    "MALLOC_CHECK_": "check",
    "MALLOC_TOP_PAD_": "top_pad",
    "MALLOC_PERTURB_": "perturb",
    "MALLOC_MMAP_MAX_": "mmap_max",
    "MALLOC_MMAP_THRESHOLD_": "mmap_threshold",
    "MALLOC_TRIM_THRESHOLD_": "trim_threshold",
    "MALLOC_ARENA_MAX": "arena_max",
    "MALLOC_ARENA_TEST": "arena_test",
}
"""The variables of the environment, with the tunable that each of them sets."""

OTHERS = ("MALLOC_CONF", "MALLOC_OPTIONS", "MALLOC_TRACE")  # of jemalloc, of BSD, of mtrace

MALLOC_TUNABLES = frozenset(
    {
        *VARIABLES.values(),
        *("hugetlb", "mxfast", "tcache_count", "tcache_max", "tcache_unsorted_limit"),
    }
)

_TUNABLE = r"glibc\.malloc\.([^=:]*)"


def tunable_of(name: str) -> str | None:
    """Return the tunable of malloc that a name means: its own, with or without the prefix, or that
    of a variable; None where there is none."""
    short = VARIABLES.get(name, name.removeprefix(PREFIX))
    return short if short in MALLOC_TUNABLES else None


def near(name: str) -> str:
    """Return "did you mean ..." for the name of a tunable or variable; "" if none is near."""
    for right in (f"{name}_", name.rstrip("_")):
        if right != name and right in VARIABLES:
            return f"did you mean {right!r}?"
    return suggest(name, [*VARIABLES, *sorted(MALLOC_TUNABLES)])


def fault_of_variable(name: str, value: Scalar) -> str:
    """Return the fault of a variable that is to tune malloc, and that glibc ignores; "" if it has
    none. Variables of other allocators have other names, and no fault."""
    if name == TUNABLES:
        for match in re.finditer(_TUNABLE, str(value)):
            if match[1] not in MALLOC_TUNABLES:
                return f"glibc knows no {match[0]}; {near(match[1]) or known()}"
    elif (
        name.startswith("MALLOC_") and name not in (*VARIABLES, *OTHERS) and (remedy := near(name))
    ):
        return f"glibc knows no {name}, so it would change nothing; {remedy}"
    return ""


def known() -> str:
    return f"there are {', '.join(sorted(MALLOC_TUNABLES))}"
