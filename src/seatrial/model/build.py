"""The key of a build: the hash of everything that its result depends on.

Key = SHA-256 of the names, bytes and modes of the sources, the script, the toolchain (without its
launcher, with the test's own flags), the environment, the modules, the parameters that the build
uses, the machine's name and architecture and, for a build in a job, what chooses its nodes. The key
of a prebuilt binary is made of its path and checksum; that of a package has the spec, or the bytes
of the easyconfig. A build gets only those parameters that its
script names or ``build.parameters`` lists, so cases that differ in other parameters share it.
"""

import functools
import hashlib
import os
import platform
import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from itertools import islice
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from seatrial.errors import UsageError
from seatrial.files import open_regular
from seatrial.model.file_model import Scalar, encode
from seatrial.model.identifiers import show
from seatrial.model.machine import Machine, Toolchain
from seatrial.model.test import Build, Case, Input, JobOptions, OwnFlags, Test

# Of a larger link or input only the name counts.
MAX_FILES = 200
MAX_BYTES = 1 << 28

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def build_parameters(build: Build, parameters: dict[str, Scalar]) -> dict[str, Scalar]:
    """Return the parameters that a build gets."""
    words = words_of(f"{build.script}\n{build.spack}")
    return {n: value for n, value in parameters.items() if n in words or n in build.parameters}


@functools.lru_cache(maxsize=4096)
def words_of(script: str) -> frozenset[str]:
    """Return the names in a script, variables among them."""
    return frozenset(_WORD.findall(script))


class BuildKeys:
    """Computes keys, and reads each source once."""

    def __init__(self) -> None:
        self._digest = functools.cache(_digest_of_source)
        self._keys: dict[tuple[str, ...], str] = {}

    def key(self, test: Test, case: Case, machine: Machine) -> str:
        """Return the key of a case's build: 16 hex digits. Raises UsageError for an unreadable
        source."""
        assert test.build is not None
        parameters = build_parameters(test.build, test.bound(case.parameters))
        shown = {name: show(value) for name, value in parameters.items()}
        kind = _kind_of_nodes(test, case, machine)
        memo = (test.name, case.toolchain, *kind, *(f"{n}={v}" for n, v in shown.items()))
        if memo not in self._keys:
            content = self._content(test, test.build, case.toolchain, shown, machine)
            self._keys[memo] = _hash({**content, "nodes": kind} if kind else content)
        return self._keys[memo]

    def parts(self, test: Test, case: Case, machine: Machine) -> dict[str, str]:
        """Return a hash for each part of the key of a case's build, and for each of its sources, so
        that people are told which of them changed. Raises UsageError for an unreadable source."""
        assert test.build is not None
        parameters = build_parameters(test.build, test.bound(case.parameters))
        shown = {name: show(value) for name, value in parameters.items()}
        content = self._content(test, test.build, case.toolchain, shown, machine)
        sources = content.pop("sources", {})
        parts = {name: _hash(value) for name, value in content.items()}
        parts["nodes"] = _hash(_kind_of_nodes(test, case, machine))
        return parts | {f"source {name}": str(digest) for name, digest in sources.items()}

    def _content(
        self, test: Test, build: Build, toolchain: str, shown: dict[str, str], machine: Machine
    ) -> dict[str, Any]:
        if build.prebuilt:
            return {"prebuilt": build.prebuilt, "sha256": build.sha256.lower()}
        return {
            **self._package(build),
            "sources": {Path(s).name: self._digest(s) for s in build.sources},
            "script": build.script,
            "parameters": shown,
            "toolchain": [
                toolchain,
                replace(toolchain_of(machine, test, toolchain), launcher=None),
            ],
            "machine": machine.machine,
            "environment": [machine.environment, test.fixed_environment],
            "modules": [machine.modules, test.modules],
            "setup": machine.setup,
            "architecture": platform.machine(),
        }

    def _package(self, build: Build) -> dict[str, Any]:
        """Return what is asked of Spack or EasyBuild. What they make of it is asked when the build
        is made, in each trial."""
        if build.spack:
            return {"spack": build.spack.split()}
        if not build.easybuild:
            return {}
        file = Path(build.easybuild)
        return {"easybuild": [file.name, self._digest(str(file)) if file.is_absolute() else ""]}


def _kind_of_nodes(test: Test, case: Case, machine: Machine) -> list[str]:
    """Return what chooses the nodes of a build in a job; nothing for one on this host."""
    if not is_in_job(test, machine):
        return []
    job = job_options_of(case, machine)
    chosen = [f"{key}={getattr(job, key)}" for key in ("partition", "constraint")]
    return [*chosen, f"gpus={case.gpus > 0}", *sorted(test.requires.features)]


def is_in_job(test: Test, machine: Machine) -> bool:
    """Return whether a test is built in a job of the machine's scheduler."""
    build = test.build
    if build is None or build.prebuilt or not machine.jobs_run_elsewhere:
        return False
    return (build.where or machine.builds.where) == "job"


def job_options_of(case: Case, machine: Machine) -> JobOptions:
    """Return what the job of a build asks of the scheduler: what its case does, in the partition
    that the machine names for builds."""
    partition = machine.builds.partition
    return replace(case.job, partition=partition) if partition else case.job


def _digest_of_source(source: str) -> str:
    try:
        return digest_of(Path(source))
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be read: {error.strerror}") from error


def _hash(content: object) -> str:
    return hashlib.sha256(encode(content, order="sorted")).hexdigest()[:16]


def digest_of(path: Path, within: set[Path] | None = None) -> str:
    """Return the SHA-256 of a file, or of the files and links in a folder with their names and
    modes. If a link leads out of the folder, its target counts too, unless it is large. ``within``:
    folders whose files count already."""
    if not path.is_dir():
        return _digest_of_file(path)
    within = {path.resolve()} if within is None else within
    total = hashlib.sha256()
    for name in _files_below(path):
        file = path / name
        text = _digest_of_link(file, within) if file.is_symlink() else _digest_of_file(file)
        total.update(os.fsencode(f"{name}\0{text}\n"))
    return total.hexdigest()


def _digest_of_link(link: Path, within: set[Path]) -> str:
    text = f"link to {link.readlink()}"
    target = _led_to(link, within)
    if target is None:
        return text
    try:
        return f"{text} {digest_of(target, within)}"
    except OSError:  # a device, or no permission
        return text


def _led_to(link: Path, within: set[Path]) -> Path | None:
    """Return the target of a link that leads out of these folders; a folder is added to them.
    Return None if the target is inside one of them, contains one (a cycle), is missing, or is
    large."""
    try:
        target = link.resolve(strict=True)
        large = is_large(target)
    except (OSError, RuntimeError):  # RuntimeError: a cycle of links (OSError from Python 3.13)
        return None
    if large or any(target.is_relative_to(one) or one.is_relative_to(target) for one in within):
        return None
    if target.is_dir():
        within.add(target)
    return target


def is_large(path: Path) -> bool:
    """Return True for a folder of more than ``MAX_FILES`` files, or more bytes than ``MAX_BYTES``.
    Raises OSError."""
    if not path.is_dir():
        return path.stat().st_size > MAX_BYTES
    sizes = [file.lstat().st_size for file in islice(path.rglob("*"), MAX_FILES + 1)]
    return len(sizes) > MAX_FILES or sum(sizes) > MAX_BYTES


def _files_below(folder: Path) -> list[str]:
    """Return the names of the files and links in a folder and its subfolders, sorted."""
    names: list[str] = []

    def unreadable(error: OSError) -> None:
        raise error

    for above, subfolders, files in os.walk(folder, onerror=unreadable):
        links = [name for name in subfolders if (Path(above) / name).is_symlink()]
        names += [os.path.relpath(Path(above) / name, folder) for name in [*files, *links]]
    return sorted(names)


def _digest_of_file(path: Path) -> str:
    with open_regular(path) as file_object:
        executable = "x" if os.access(path, os.X_OK) else "-"
        return hashlib.file_digest(file_object, "sha256").hexdigest() + executable


# ---- inputs --------------------------------------------------------------------------------------
#
# The checksums of test inputs when a trial is made.
#
# digests(tests) # {"/suite/deck.txt": "9f86d08188..."}, kept in trial.json


def digests(tests: Iterable[Test]) -> dict[str, str]:
    """Return the hash of each input of these tests, by its path; "" if it has none (see
    ``digest``)."""
    paths = {path_of(item) for test in tests for item in test.inputs}
    return {path: digest(path) for path in sorted(paths)}


def path_of(item: str | Input) -> str:
    return item if isinstance(item, str) else item.source


def name_of(item: str | Input) -> str:
    """Return the name of an input in the run directory."""
    named = "" if isinstance(item, str) else item.name
    return named or Path(path_of(item)).name


def digest(path: str) -> str:
    """Return the SHA-256 of a file, or of a folder's files. Return "" if it cannot be read, or is
    large."""
    try:
        return "" if is_large(Path(path)) else digest_of(Path(path))
    except OSError:
        return ""


# ---- toolchain flags -----------------------------------------------------------------------------
#
# A test's own flags for a toolchain, in place of the machine's.
#
# toolchain_of(machine, test, "intel-oneapi").cflags # "-O2", where the machine says -fast


FLAGS = ("cflags", "openmp", "ldflags", "ldlibs")


def patterns_of(test: Test) -> list[str]:
    """Return the patterns of the toolchains that a test is for; none: all."""
    return test.toolchains if isinstance(test.toolchains, list) else []


def own_flags(test: Test, toolchain: str) -> OwnFlags | None:
    """Return what a test says of a toolchain: by its name, else by the first pattern that
    matches."""
    toolchains = test.toolchains
    if isinstance(toolchains, list):
        return None
    if toolchain in toolchains:
        return toolchains[toolchain]
    return next((flags for name, flags in toolchains.items() if fnmatchcase(toolchain, name)), None)


def changed_flags(test: Test, toolchain: str) -> dict[str, str]:
    """Return the flags that a test replaces, with its own values."""
    flags = own_flags(test, toolchain)
    if flags is None:
        return {}
    return {key: value for key in FLAGS if (value := getattr(flags, key)) is not None}


def toolchain_of(machine: Machine, test: Test, name: str) -> Toolchain:
    """Return a toolchain of the machine with the flags and the environment of a test."""
    chain = machine.toolchains.get(name, Toolchain())
    flags = own_flags(test, name)
    if flags is None:
        return chain
    environment = {**chain.environment, **flags.environment}
    return replace(chain, **changed_flags(test, name), environment=environment)
