"""What a test asks for its runs: pages, malloc, stripes, directory, container.

    asked = AskedSettings(test.run, machine)     # parses the texts once
    asked.bound(names)                              # the RunSettings of one case

All of them may follow from parameters, so that a tuning can try several.
"""

import re
from pathlib import Path
from typing import Any

from seatrial.errors import suggest
from seatrial.model.expressions import ExpressionError
from seatrial.model.file_model import Scalar
from seatrial.model.job_options import Text
from seatrial.model.machine import PAGES, Machine
from seatrial.model.task_placement import DEFAULT, Names, Quantity, asked_bytes, quantity
from seatrial.model.test import RunSettings, RunSpec, Space
from seatrial.units import bytes_of

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
            return _NONE
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


_NONE = RunSettings()


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
