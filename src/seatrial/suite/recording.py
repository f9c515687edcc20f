"""``run.pattern``: the library that records who sends how much to whom is built with the test, and
$LAUNCH starts its programs under it.
"""

from pathlib import Path

from msgspec.structs import replace

from seatrial.suite.model import Build, Test

PATTERN_FILE = "pattern.txt"
"""The file of a run directory with the pattern of the run."""

LIBRARY = "libseatrial_pattern.so"
"""The library in the build directory; its source is beside this module."""

_SOURCE = "seatrial_pattern.c"

# One line before the script of the test, which may change the directory, or end by `exit`.
_SCRIPT = (
    '[ "$MPICC" ] || { echo "run.pattern: the toolchain has no MPI compiler (mpicc)"; exit 1; }; '
    f"$MPICC -std=c11 -O1 -fPIC -c -o {LIBRARY}.o {_SOURCE} && "
    f"${{CC:-cc}} -shared -Wl,-z,lazy -o {LIBRARY} {LIBRARY}.o -ldl -lpthread || exit\n"
)


def recorded(test: Test) -> Test:
    """Return the test with ``run.pattern``, and the build of the library."""
    if test.only_builds or test.run.pattern:
        return test
    return with_recorder(replace(test, run=replace(test.run, pattern=True)))


def with_recorder(test: Test) -> Test:
    """Return the test with the build of the library if its runs are recorded."""
    if not test.run.pattern:
        return test
    build = test.build or Build()
    source = str(Path(__file__).with_name(_SOURCE))
    build = replace(build, sources=[*build.sources, source], script=_SCRIPT + build.script)
    return replace(test, build=build)
