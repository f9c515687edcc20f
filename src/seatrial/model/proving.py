"""``run.prove``: the probe hello is built with the test, started before its script by the same
$LAUNCH, and what it says of ranks and threads is checked. Hello shows what the launcher does. That
the program itself runs so many threads as were asked for, a library counts under which $LAUNCH
starts it.
"""

import re
from pathlib import Path

from msgspec.structs import replace

from seatrial.model.test import Build, Case, Check, PlacementCheck, Test

PLACEMENT_FILE = "placement.txt"
"""The file of a run directory with the CPUs that the job was given, and the lines of hello."""

HELLO = "seatrial_hello"
"""The binary of hello in the build directory; beside this module, as a link, is its source."""

THREADS_LIBRARY = "libseatrial_threads.so"
"""The library in the build directory that counts threads; its source is beside this module."""

WATCH = "seatrial_threads"
"""The program in the build directory that looks at the threads of a static program."""

COUNTED_FILE = "job.threads.txt"
"""The file of a run directory with the threads that the program ran, a line for each rank."""

COUNTED_LINE = re.compile(r"rank (\d{1,9}|-) threads (\d{1,9}) mpi ([01]) program (\S{1,200})")
"""A line of the library, and of that file: rank, most threads at a time, whether the process is one
of the MPI, program."""

_SOURCES = (f"{HELLO}.c", "seatrial_threads.c")

# One line before the script of the test, which may change the directory, or end by `exit`.
_SCRIPT = (
    '[ "$MPICC" ] || { echo "run.prove: the toolchain has no MPI compiler (mpicc)"; exit 1; }; '
    f"$MPICC $CFLAGS $OPENMP -o {HELLO} {HELLO}.c $LDFLAGS $LDLIBS || exit; "
    f"${{CC:-cc}} -O1 -fPIC -shared -o {THREADS_LIBRARY} seatrial_threads.c -ldl && "
    f"${{CC:-cc}} -O1 -DWATCH -o {WATCH} seatrial_threads.c -ldl || "
    'echo "run.prove: the threads of the program cannot be counted"\n'
)


def with_proof(test: Test) -> Test:
    """Return the test with what ``run.prove`` asks for: the build of hello, and the check of what
    it says, unless the test has a check of that file itself."""
    if not test.run.prove:
        return test
    build = test.build or Build()
    sources = [str(Path(__file__).with_name(name)) for name in _SOURCES]
    build = replace(build, sources=[*build.sources, *sources], script=_SCRIPT + build.script)
    verify = test.verify
    if not any(each.placement and each.in_file == PLACEMENT_FILE for each in verify):
        verify = [*verify, Check(placement=PlacementCheck(), in_file=PLACEMENT_FILE)]
    return replace(test, build=build, verify=verify)


def counts_threads(test: Test, case: Case) -> bool:
    """Return whether the threads of the program are counted: with ``run.prove``, where a rank has
    several, unless a check of the test says that any number will do."""
    if not test.run.prove or case.threads == 1:
        return False
    checks = [each.placement for each in test.verify if each.in_file == PLACEMENT_FILE]
    return any(each is not None and each.threads == "asked" for each in checks)


def tells_placement(test: Test) -> bool:
    """Return whether the runs of a test tell where their threads are."""
    return any(check.placement is not None for check in test.verify)
