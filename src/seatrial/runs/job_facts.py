"""The script by which a job tells what it found."""

from pathlib import Path

from seatrial.machine.program_version import version_script

FACTS_SCRIPT = "facts.sh"


def facts_script() -> str:
    """Return the script by which a job tells what it found: kernel, CPU, compilers, ..."""
    return version_script() + (Path(__file__).parent / "facts" / "job.sh").read_text()
