"""Write Seatrial with all that it needs as one file, for hosts without a network.

    .venv/bin/python tools/zipapp.py dist/seatrial-0.2.0-py3-none-any.whl     # make zipapp
    python3.11 seatrial-0.2.0-cp311-x86_64.pyz ~/seatrial                     # on the login node
    ~/seatrial/bin/seatrial --version

The file holds the wheel and the packages that it needs, as they are in the environment of the
Python that runs this: the versions that were tested. It is a zipapp of PEP 441 that makes a virtual
environment (PEP 405) by the standard library alone, without pip.
"""

from __future__ import annotations

import platform
import sys
import zipfile
from collections.abc import Iterator
from email import message_from_bytes
from importlib.metadata import Distribution, distribution
from pathlib import Path, PurePath

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

MAIN = Path(__file__).with_name("zipapp_main.py")
PACKAGES = "packages/"
LEVEL = 4  # of deflate: the usual 6 takes twice as long for a file that is 4 % smaller


def needed(requirements: list[str]) -> Iterator[Distribution]:
    """Yield the installed distributions that the requirements name, and those that they need."""
    seen: set[str] = set()
    waiting = [Requirement(text) for text in requirements]
    while waiting:
        one = waiting.pop()
        name = canonicalize_name(one.name)
        if name in seen or (one.marker and not one.marker.evaluate({"extra": ""})):
            continue
        seen.add(name)
        found = distribution(one.name)
        yield found
        waiting += [Requirement(text) for text in found.requires or []]


def wanted(path: PurePath) -> bool:
    """Return True if an installation needs this file of a package. Tests, which are half of numpy's
    source, take long to compile."""
    return path.parts[0] != ".." and path.suffix != ".pyc" and "tests" not in path.parts


def write(wheel: Path, target: Path) -> None:
    """Write the zipapp of a wheel."""
    with target.open("wb") as file:
        file.write(f"#!/usr/bin/env python3.{sys.version_info.minor}\n".encode())
        with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED, compresslevel=LEVEL) as archive:
            archive.write(MAIN, "__main__.py")
            with zipfile.ZipFile(wheel) as own:
                names = own.namelist()
                for name in names:
                    archive.writestr(PACKAGES + name, own.read(name))
                (about,) = (name for name in names if name.endswith(".dist-info/METADATA"))
                requirements = message_from_bytes(own.read(about)).get_all("Requires-Dist", [])
            for found in needed(requirements):
                for path in found.files or []:
                    if wanted(path):
                        archive.write(str(path.locate()), PACKAGES + str(path))
    target.chmod(0o755)


def main() -> None:
    wheel = Path(sys.argv[1])
    version = wheel.name.split("-")[1]
    python = f"cp{sys.version_info.major}{sys.version_info.minor}"
    target = wheel.with_name(f"seatrial-{version}-{python}-{platform.machine()}.pyz")
    write(wheel, target)
    print(target)


if __name__ == "__main__":
    main()
