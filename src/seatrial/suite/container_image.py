"""The image in which the programs of a run are started, as a test names it: a path of a file or a
folder (absolute, or from the test's folder with a dot: `./lammps.sif`), or a name that the runtime
of the machine knows (`docker://debian:12`, `registry.site/lammps:2023`)."""

from __future__ import annotations

import re
from pathlib import Path

CONTAINER_FILE = "container.txt"
"""The file of a run with the digest of its image, or why it has none."""

TAKES_NAMES = frozenset({"podman", "podman-hpc", "shifter", "sarus"})
"""Runtimes that keep their images themselves: a path is none of them."""

_NAME = re.compile(r"[A-Za-z0-9][\w./:@+~=-]*")


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
    if _NAME.fullmatch(image):
        return ""
    return f"{image!r} is no absolute path, no path that begins with ./, and no name of an image"
