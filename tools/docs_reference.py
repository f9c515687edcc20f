"""Pages of the reference that are made: one for each command, one for each kind of file."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from seatrial.cli import seatrial
from seatrial.cli.command_help import CommandHelp, pages
from seatrial.cli.schema import SHAPES, shape_of
from seatrial.documents import json_schema

FILES = {
    "test": "test.yaml",
    "machine": "Machine files",
    "references": "references.yaml",
    "plan": "plan.yaml",
    "score": "score.yaml",
    "tune": "tune.yaml",
}


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of the page of each command, those below it on the same."""
    found: dict[str, list[CommandHelp]] = {}
    for page in pages(seatrial):
        words = page.name.split(" ")
        found.setdefault(words[1] if len(words) > 1 else "", []).append(page)
    for name, group in found.items():
        texts = [_command(page, "#" * min(3, len(page.name.split(" ")))) for page in group]
        if name:  # the page of a command begins with its own heading
            texts[0] = texts[0].removeprefix("#")
        yield f"commands/{name or 'seatrial'}.md", "\n".join(texts)


def _command(page: CommandHelp, hashes: str) -> str:
    lines = [f"{hashes} {page.name}", "", f"    {page.name} {page.usage}", ""]
    for paragraph in page.paragraphs:
        indent = "    " if paragraph.verbatim else ""
        lines += [*(indent + _plain(line, paragraph.verbatim) for line in paragraph.lines), ""]
    lines += _table(["command", "what it does"], page.commands)
    lines += _table(["option", "meaning"], page.options)
    return "\n".join(lines)


def _plain(text: str, verbatim: bool) -> str:
    return text if verbatim else re.sub(r"([<>*_\[\]])", r"\\\1", text)


def _table(heads: Sequence[str], rows: Sequence[tuple[str, str]]) -> list[str]:
    if not rows:
        return []
    cells = [[f"`{name}`", _cell(about)] for name, about in rows]
    return [_row(heads), _row(["---"] * len(heads)), *map(_row, cells), ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(text: str) -> str:
    return _plain(" ".join(text.split()), False).replace("|", r"\|")


# ---- files ----------------------------------------------------------------------------------


def file_pages() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of the page of each kind of file that people write."""
    for kind in SHAPES:
        shape = shape_of(kind)
        schema = json_schema(shape, kind)
        lines = [f"# {FILES[kind]}", ""]
        lines += [f"Every key, its type and its default, as `seatrial schema {kind}` has them.", ""]
        for name, part in schema["$defs"].items():
            if not name.startswith("Inheriting"):  # the same keys, with `inherit` in addition
                lines += _struct(name, part)
        yield f"files/{kind}.md", "\n".join(lines)


def _struct(name: str, part: Mapping[str, Any]) -> list[str]:
    about = re.sub(r"``?([^`]+)``?", r"`\1`", part.get("description", "")).split("\n\n")[0]
    lines = [f"## {name}", "", " ".join(about.split()), ""]
    if not part.get("properties"):
        return [*lines, f"Type: {_type(part)}", ""] if "type" in part else lines
    needed = set(part.get("required", []))
    lines += [_row(["key", "type", "default", "meaning"]), _row(["---"] * 4)]
    for key, value in part["properties"].items():
        default = "needed" if key in needed else _default(value)
        about = _cell(value.get("description", ""))
        lines.append(_row([f"`{key}`", _type(value), default, about]))
    return [*lines, ""]


def _default(value: Mapping[str, Any]) -> str:
    default = value.get("default")
    return "" if default in (None, "", []) or isinstance(default, dict) else f"`{default}`"


def _type(value: Mapping[str, Any]) -> str:
    """Return the type of a value in words, with links to the tables of its parts."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2].removeprefix("Inheriting")
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        kinds = [_type(one) for one in value["anyOf"] if one.get("type") != "null"]
        return " or ".join(dict.fromkeys(filter(None, kinds)))
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if value.get("type") == "array":
        return f"list of {_type(value.get('items') or {}) or 'values'}"
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"mapping to {_type(value['additionalProperties']) or 'values'}"
    return str(value.get("type", ""))
