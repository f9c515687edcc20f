"""The names by which glibc's malloc is tuned: tunables, and variables of the environment.

    fault_of_variable("MALLOC_MMAP_MAX", "0")   # "glibc knows no MALLOC_MMAP_MAX; ..."

Sources: `ld.so --list-tunables` of glibc 2.36, the manual's chapter Memory Allocation Tunables, and
`elf/dl-tunables.list`, which has the variables.
"""

from seatrial.errors import suggest
from seatrial.file_model import Scalar
from seatrial.lazy import regex

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

_TUNABLE = regex(r"glibc\.malloc\.([^=:]*)")


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
        for found in _TUNABLE.finditer(str(value)):
            if found[1] not in MALLOC_TUNABLES:
                return f"glibc knows no {found[0]}; {near(found[1]) or known()}"
    elif (
        name.startswith("MALLOC_") and name not in (*VARIABLES, *OTHERS) and (remedy := near(name))
    ):
        return f"glibc knows no {name}, so it would change nothing; {remedy}"
    return ""


def known() -> str:
    return f"there are {', '.join(sorted(MALLOC_TUNABLES))}"
