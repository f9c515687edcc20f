"""``run.prove``: the probe hello is built with the test, started before its script by the same
$LAUNCH, and what it says of ranks and threads is checked.
"""

from pathlib import Path

from msgspec.structs import replace

from seatrial.suite.check_spec import Check, PlacementCheck
from seatrial.suite.model import Build, Test

PLACEMENT_FILE = "placement.txt"
"""The file of a run directory with the CPUs that the job was given, and the lines of hello."""

HELLO = "seatrial_hello"
"""The binary of hello in the build directory; beside this module, as a link, is its source."""

# One line before the script of the test, which may change the directory, or end by `exit`.
_SCRIPT = (
    '[ "$MPICC" ] || { echo "run.prove: the toolchain has no MPI compiler (mpicc)"; exit 1; }; '
    f"$MPICC $CFLAGS $OPENMP -o {HELLO} {HELLO}.c $LDFLAGS $LDLIBS || exit\n"
)


def with_proof(test: Test) -> Test:
    """Return the test with what ``run.prove`` asks for: the build of hello, and the check of what
    it says, unless the test has a check of that file itself."""
    if not test.run.prove:
        return test
    build = test.build or Build()
    source = str(Path(__file__).with_name(f"{HELLO}.c"))
    build = replace(build, sources=[*build.sources, source], script=_SCRIPT + build.script)
    verify = test.verify
    if not any(each.placement and each.in_file == PLACEMENT_FILE for each in verify):
        verify = [*verify, Check(placement=PlacementCheck(), in_file=PLACEMENT_FILE)]
    return replace(test, build=build, verify=verify)


def tells_placement(test: Test) -> bool:
    """Return whether the runs of a test tell where their threads are."""
    return any(check.placement is not None for check in test.verify)
