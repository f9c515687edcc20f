"""Machine files that take over keys of others: ``include: [parts/toolchains.yaml]``.

    node = read_with_includes(Path("machines/frost.yaml"), faults)

A file's own keys win over those that it includes: mappings are joined key by key, an empty value
removes a key, any other value replaces. Where two included files differ, the file itself must say.
Every value keeps the place where it was written.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from seatrial.documents import Faults, YamlNode, key_text, lay_over, read

INCLUDE = "include"


def read_with_includes(path: Path, faults: Faults) -> YamlNode | None:
    """Return the document of a machine file, laid over those that it includes; None, with the
    faults added, if it cannot be read."""
    return _read(path, faults, ())


def _read(path: Path, faults: Faults, above: tuple[Path, ...]) -> YamlNode | None:
    """``above``: the files that include this one, the outermost first."""
    node = read(path, faults)
    if node is None or not isinstance(node.value, dict) or INCLUDE not in node.value:
        return node
    chain = (*above, path)
    own = YamlNode({k: v for k, v in node.value.items() if k != INCLUDE}, node.place, node.keys)
    included: YamlNode | None = None
    for file, at in _files(node.value[INCLUDE], path, faults):
        if any(os.path.realpath(file) == os.path.realpath(each) for each in chain):
            circle = " -> ".join(str(each) for each in (*chain, file))
            faults.add(at.place, INCLUDE, f"goes round in a circle: {circle}")
        elif not os.path.isfile(file):  # noqa: PTH113 - Path's raises where it may not look
            faults.add(at.place, INCLUDE, f"{file} is no file; paths start at {path.parent}")
        elif (found := _read(file, faults, chain)) is None:
            continue
        elif not isinstance(found.value, dict):
            faults.add(found.place, "", "is not a mapping of keys to values")
        else:
            included = found if included is None else _joined(included, found, own, (), faults)
    return own if included is None else lay_over(included, own)


def _files(written: YamlNode, path: Path, faults: Faults) -> list[tuple[Path, YamlNode]]:
    """Return the included files, each with the place where it is named."""
    items = written.value if isinstance(written.value, list) else [written]
    found = []
    for item in items:
        if isinstance(item.value, str) and item.value:
            found.append((path.parent / item.value, item))
        else:
            faults.add(item.place, INCLUDE, "must be the path of a file, or a list of paths")
    return found


def _joined(
    one: YamlNode, other: YamlNode, own: YamlNode | None, key: tuple[str, ...], faults: Faults
) -> YamlNode:
    """Return two included nodes as one. It is a fault if they differ where ``own``, the value of
    the including file, says nothing."""
    if isinstance(one.value, dict) and isinstance(other.value, dict):
        values = dict(one.value)
        for name, inner in other.value.items():
            known = own.child(name) if own is not None else None
            values[name] = (
                _joined(values[name], inner, known, (*key, name), faults)
                if name in values
                else inner
            )
        return YamlNode(values, one.place, other.keys | one.keys)
    if own is None and _plain(one) != _plain(other):
        text = f"differs from {one.place}, which is included, too; give it in the file that "
        faults.add(other.place, key_text(key), f"{text}includes both, or remove one")
    return one


def _plain(node: YamlNode) -> Any:
    if isinstance(node.value, dict):
        return {name: _plain(inner) for name, inner in node.value.items()}
    return [_plain(each) for each in node.value] if isinstance(node.value, list) else node.value
