"""Why a build is made anew: what it is made of, beside the newest shared build of the same test,
toolchain and parameters.

    inputs = BuildInputs(parts=..., versions=..., told=..., variables=...)
    changes(before, inputs)      # "the version of cc changed from gcc 12.2.0 to gcc 13.1.0"
"""

import hashlib
from collections.abc import Iterator, Mapping

from msgspec import Struct

from seatrial.units import listed

MAX_NAMED = 6

_WORDS = {
    "script": "the script of the build",
    "toolchain": "compilers or flags of the toolchain",
    "environment": "the environment of machine or test",
    "modules": "the modules of machine or test",
    "setup": "the set-up of the machine",
    "architecture": "the architecture of this host",
    "spack": "the spec",
    "easybuild": "the easyconfig",
    "nodes": "the nodes on which it is built",
    "path wrapper": "what the MPI compiler calls",
}
_SOURCE = "source "
_FILE = "program "
_SAID = "said "
_PATH = "path "
_TOOL = "tool "


class BuildInputs(Struct, frozen=True, kw_only=True):
    """What a build is made of: the parts of its key, the versions that it finds, what else tells
    compilers and folders apart, and the variables that it may read. All but versions are hashes."""

    parts: dict[str, str] = {}
    versions: dict[str, str] = {}
    told: dict[str, str] = {}
    variables: dict[str, str] = {}

    def is_of(self, other: "BuildInputs") -> bool:
        """Return whether both are of the same parameters; where these are not known, neither."""
        parameters = self.parts.get("parameters")
        return parameters is not None and parameters == other.parts.get("parameters")


def hashed(values: Mapping[str, str]) -> dict[str, str]:
    """Return the hashes of values: environments may hold secrets."""
    return {
        name: hashlib.sha256(value.encode(errors="surrogateescape")).hexdigest()[:12]
        for name, value in values.items()
    }


def changes(before: BuildInputs, now: BuildInputs) -> str:
    """Return what differs, in words; "" for nothing."""
    said = [*_versions(before, now), *_files(before, now), *_parts(before, now)]
    return "; ".join(said)


def _versions(before: BuildInputs, now: BuildInputs) -> Iterator[str]:
    for name in before.versions | now.versions:
        one, other = before.versions.get(name, "none"), now.versions.get(name, "none")
        if one != other:
            yield f"the version of {name} changed from {one} to {other}"


def _files(before: BuildInputs, now: BuildInputs) -> Iterator[str]:
    """Compilers of the same version that are others."""
    told = [
        name.removeprefix(kind).removeprefix(_TOOL)
        for kind in (_FILE, _SAID)
        for name in _changed(before.told, now.told)
        if name.startswith(kind)
    ]
    same = [name for name in told if before.versions.get(name) == now.versions.get(name)]
    if same:
        yield f"{_listed(same)} changed, with the same version"


def _parts(before: BuildInputs, now: BuildInputs) -> Iterator[str]:
    parts = _changed(before.parts, now.parts)
    if sources := [name.removeprefix(_SOURCE) for name in parts if name.startswith(_SOURCE)]:
        yield f"sources changed: {_listed(sources)}"
    told = [name for name in _changed(before.told, now.told) if name.startswith(_PATH)]
    others = [_WORDS[name] for name in [*parts, *told] if name in _WORDS]
    names = [name.removeprefix(_PATH) for name in told if name not in _WORDS]
    others += [*names, *_changed(before.variables, now.variables)]
    if others:
        yield f"changed: {_listed(others)}"


def _changed(one: Mapping[str, str], other: Mapping[str, str]) -> list[str]:
    return [name for name in {**one, **other} if one.get(name) != other.get(name)]


def _listed(names: list[str]) -> str:
    return listed(list(dict.fromkeys(names)), MAX_NAMED)
