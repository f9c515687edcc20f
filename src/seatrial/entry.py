"""Where the installed command enters.

Modules of a site set ``PYTHONPATH`` for the programs of their own, and the packages there (an older
click, another yaml) come before those that Seatrial was installed with. So they are moved to the
end of the path, before anything is imported; unless Seatrial itself is found there.
"""

import os
import sys
from pathlib import Path


def main() -> None:
    """Run the command line."""
    put_own_first()
    from seatrial.cli import main as run

    run()


def put_own_first() -> None:
    """Put the packages of this process before those of ``PYTHONPATH``."""
    if not sys.flags.ignore_environment:
        sys.path[:] = own_first(sys.path, os.environ.get("PYTHONPATH", ""), __file__)


def own_first(path: list[str], variable: str, here: str) -> list[str]:
    """Return a path with the entries of ``PYTHONPATH`` at its end; as it is where the package of
    the module ``here`` is in one of them."""
    theirs = {os.path.realpath(each) for each in variable.split(os.pathsep) if each}
    if os.path.realpath(Path(here).parent.parent) in theirs:
        return path
    last = [each for each in path if each and os.path.realpath(each) in theirs]
    return [each for each in path if each not in last] + last
