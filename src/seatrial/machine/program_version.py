"""What a program says of its version, wherever that stands in what it says.

    version_of("nvc")            # "nvc 25.3-0 64-bit target on x86-64 Linux -tp znver3"
    version_of("xlc")            # "" where it cannot be had

``version_script`` is the bash that asks, for builds and jobs, which ask on their own hosts.
"""

import subprocess
from pathlib import Path

NOT_KNOWN = "not known"
"""What is recorded of a program that is there and does not say its version."""

PATIENCE_SECONDS = 60.0


def version_script() -> str:
    """Return bash that defines ``seatrial_said_version``."""
    return (Path(__file__).parent / "version.sh").read_text()


def version_of(program: str) -> str:
    """Return what a program on this host says of its version; "" where it cannot be had."""
    script = f'{version_script()}\nseatrial_said_version "$1" && printf %s "$_line"'
    try:
        done = subprocess.run(
            ("bash", "-c", script, "bash", program),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            timeout=PATIENCE_SECONDS,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode(errors="replace").strip() if done.returncode == 0 else ""
