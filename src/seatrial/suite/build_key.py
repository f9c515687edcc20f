"""A build's key: the hash of everything that the result depends on.

Key = SHA-256 of the sources' bytes and modes, the script, the toolchain, the environment, the
modules, the parameters that the build uses, and the architecture. A build is given those
parameters alone that its script names or ``build.parameters`` lists, so cases that differ in others
share it.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from pathlib import Path

import msgspec

from seatrial.errors import UsageError
from seatrial.machine.model import Machine
from seatrial.suite.model import Build, Case, Scalar, Test

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


def build_parameters(build: Build, parameters: dict[str, Scalar]) -> dict[str, Scalar]:
    """The parameters that a build is given."""
    words = {*_WORD.findall(build.script), *build.parameters}
    return {name: value for name, value in parameters.items() if name in words}


class BuildKeys:
    """Computes keys; each source is read once."""

    def __init__(self) -> None:
        self._digests: dict[str, str] = {}
        self._keys: dict[tuple[str, str, tuple[tuple[str, Scalar], ...]], str] = {}

    def key(self, test: Test, case: Case, machine: Machine) -> str:
        """The key of a case's build: 16 hex digits. Raises UsageError for an unreadable source."""
        assert test.build is not None
        parameters = build_parameters(test.build, case.parameters)
        memo = (test.name, case.toolchain, tuple(parameters.items()))
        if memo not in self._keys:
            self._keys[memo] = self._compute(test, test.build, case.toolchain, parameters, machine)
        return self._keys[memo]

    def _compute(
        self,
        test: Test,
        build: Build,
        toolchain: str,
        parameters: dict[str, Scalar],
        machine: Machine,
    ) -> str:
        content = {
            "sources": {Path(s).name: self._digest(s) for s in build.sources},
            "script": build.script,
            "parameters": parameters,
            "toolchain": machine.toolchains[toolchain],
            "environment": [machine.environment, test.environment],
            "modules": [machine.modules, test.modules],
            "setup": machine.setup,
            "architecture": platform.machine(),
        }
        return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()[:16]

    def _digest(self, source: str) -> str:
        if source not in self._digests:
            try:
                self._digests[source] = digest_of(Path(source))
            except OSError as error:
                raise UsageError(f"{error.filename}: cannot be read: {error.strerror}") from error
        return self._digests[source]


def digest_of(path: Path) -> str:
    """SHA-256 of a file, or of a folder's files with their names and modes."""
    if path.is_dir():
        total = hashlib.sha256()
        for folder, subfolders, files in os.walk(path):
            subfolders.sort()
            for name in sorted(files):
                file = Path(folder) / name
                total.update(f"{file.relative_to(path)}\0{digest_of(file)}\n".encode())
        return total.hexdigest()
    with path.open("rb") as file_object:
        executable = b"x" if os.access(path, os.X_OK) else b"-"
        return hashlib.file_digest(file_object, "sha256").hexdigest() + executable.decode()
