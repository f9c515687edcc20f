"""The script by which a job tells what it found."""

from pathlib import Path

from seatrial.machine.program_version import version_script

FACTS_SCRIPT = "facts.sh"

COLLECTION = Path(__file__).parent / "facts"
"""The scripts and the suite that collect facts of nodes."""


def facts_script() -> str:
    """Return the script by which a job tells what it found: kernel, CPU, compilers, ..."""
    # plain: a file of the package
    return version_script() + (COLLECTION / "job.sh").read_text()
