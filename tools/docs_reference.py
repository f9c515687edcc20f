"""The reference, made from the code as pages of Markdown: commands, keys of files, expressions,
events, verdicts, criteria, exit codes.

    python -m tools.docs_reference | less       # all pages in turn, as `make reference` prints them
"""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, get_args

from msgspec import Struct
from msgspec.structs import fields

from seatrial.cli import EXIT_CODES, seatrial
from seatrial.cli.about import FILES, CommandHelp, pages, shape_of
from seatrial.execute.plan.policy import ANSWERS
from seatrial.execute.script import SCRIPT_EXIT_CODES
from seatrial.journal.events import EVENT_KINDS, Event, RunEvent
from seatrial.journal.trial import RUN_STATE_HELP, TRIAL_STATE_HELP
from seatrial.model.codes import CODES
from seatrial.model.documents import json_schema
from seatrial.model.expressions import FACTS, FUNCTIONS
from seatrial.model.kinds import criterion_kinds
from seatrial.model.parameters import BUILD_AND_RUN, RUN_ONLY
from seatrial.results.selection import KEYS
from seatrial.results.status import judge_of
from seatrial.results.utilisation import USES

TYPES = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "mapping",
    "array": "list",
}
SCALARS = set(TYPES.values()) - {"mapping", "list"}


def reference_pages() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield the headings of the reference, with its pages: their places and texts."""
    yield "Each command", dict(command_pages())
    yield "Each key of a file", dict(file_pages())
    yield (
        "Each name",
        {
            "expressions.md": expressions_page(),
            "events.md": events_page(),
            "verdicts.md": verdicts_page(),
            "criteria.md": criteria_page(),
            "exit-codes.md": exit_codes_page(),
        },
    )


# ---- commands ---------------------------------------------------------------------------------


def command_pages() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of the page of each command, those below it on the same."""
    groups: dict[str, list[CommandHelp]] = {}
    for page in pages(seatrial):
        words = page.name.split(" ")
        groups.setdefault(words[1] if len(words) > 1 else "", []).append(page)
    for name, group in groups.items():
        texts = [_command(page, "#" * min(3, len(page.name.split(" ")))) for page in group]
        if name:  # the page of a command begins with its own heading
            texts[0] = texts[0].removeprefix("#")
        yield f"commands/{name or 'seatrial'}.md", "\n".join(texts)


def _command(page: CommandHelp, hashes: str) -> str:
    lines = [f"{hashes} {page.name}", "", f"    {page.name} {page.usage}", ""]
    for paragraph in page.paragraphs:
        indent = "    " if paragraph.verbatim else ""
        lines += [*(indent + _plain(line, paragraph.verbatim) for line in paragraph.lines), ""]
    lines += _pairs("command", "what it does", page.commands)
    lines += _pairs("option", "meaning", page.options)
    return "\n".join(lines)


# ---- files ------------------------------------------------------------------------------------


def file_shapes() -> dict[str, tuple[str, type[Struct]]]:
    """Return the files that people write: name, title and shape of each."""
    return {kind: (file.title, shape_of(kind)) for kind, file in FILES.items()}


def file_pages() -> Iterator[tuple[str, str]]:
    """Yield the place and the text of the page of each kind of file that people write."""
    for kind, (title, shape) in file_shapes().items():
        lines = [f"# {title}", "", _first_paragraph(shape.__doc__), ""]
        lines += [f"Each key, as `seatrial schema {kind}` has it.", ""]
        parts = json_schema(shape, kind)["$defs"]
        for name, part in parts.items():
            if not name.startswith("Inheriting"):  # the same keys, with `inherit` in addition
                lines += _struct(name, part, parts)
        yield f"files/{kind}.md", "\n".join(lines)


def _struct(name: str, part: Mapping[str, Any], parts: Mapping[str, Any]) -> list[str]:
    lines = [f"## {name}", "", _first_paragraph(part.get("description")), ""]
    if not part.get("properties"):
        return [*lines, f"Type: {_type(part)}", ""] if "type" in part else lines
    needed = set(part.get("required", []))
    rows = [
        (
            f"`{key}`",
            _type(value),
            "needed" if key in needed else _default(value),
            _escaped(meaning(value, parts)),
        )
        for key, value in part["properties"].items()
    ]
    return [*lines, *_table(["key", "type", "default", "meaning"], rows)]


def _default(value: Mapping[str, Any]) -> str:
    default = value.get("default")
    if default in (None, "", []) or isinstance(default, dict):
        return ""
    return f"`{str(default).lower()}`" if isinstance(default, bool) else f"`{default}`"


def meaning(value: Mapping[str, Any], parts: Mapping[str, Any]) -> str:
    """Return what is said of a key: its description, else that of the part that is its value, or of
    the only kind of value beside null, as a plug-in's key has it."""
    part = parts.get(value.get("$ref", "").rpartition("/")[2], {})
    if described := value.get("description") or part.get("description"):
        return _first_paragraph(described)
    kinds = [one for one in value.get("anyOf", ()) if one.get("type") != "null"]
    return meaning(kinds[0], parts) if len(kinds) == 1 else ""


def _type(value: Mapping[str, Any]) -> str:
    """Return the type of a value in words, with links to the tables of its parts."""
    if "$ref" in value:
        name = value["$ref"].rpartition("/")[2].removeprefix("Inheriting")
        return f"[{name}](#{name.lower()})"
    if "anyOf" in value:
        kinds = [_type(one) for one in value["anyOf"] if one.get("type") != "null"]
        if set(kinds) >= SCALARS:
            kinds = ["value", *(one for one in kinds if one not in SCALARS)]
        if "number" in kinds and "whole number" in kinds:
            kinds.remove("whole number")
        return " or ".join(dict.fromkeys(filter(None, kinds)))
    if "enum" in value:
        return ", ".join(f"`{one}`" for one in value["enum"])
    if value.get("type") == "array":
        return f"list of {_type(value.get('items') or {}) or 'values'}"
    if value.get("type") == "object" and isinstance(value.get("additionalProperties"), dict):
        return f"mapping to {_type(value['additionalProperties']) or 'values'}"
    return TYPES.get(str(value.get("type", "")), "")


# ---- names ------------------------------------------------------------------------------------


def expressions_page() -> str:
    """Return the page of what tests, scripts and sides of comparisons may name."""
    scripts = {f"${name}": f"in builds and runs: {about}" for name, about in BUILD_AND_RUN.items()}
    scripts |= {f"${name}": f"in runs: {about}" for name, about in RUN_ONLY.items()}
    return "\n".join(
        [
            "# Expressions, variables and conditions",
            "",
            "## Functions of expressions",
            "",
            *_pairs("function", "value", FUNCTIONS.items()),
            "## Facts in expressions",
            "",
            *_pairs("fact", "value", FACTS.items()),
            "## Variables of scripts",
            "",
            *_pairs("variable", "value", scripts.items()),
            "## Conditions of a side",
            "",
            "`seatrial compare TRIAL:CONDITIONS` and other studies choose runs by these.",
            "",
            *_pairs("condition", "value", KEYS.items()),
        ]
    )


def events_page() -> str:
    """Return the page of the kinds of events and of the states that they lead to."""
    lines = [
        "# Events",
        "",
        "Each line of `journal.jsonl` is an event. Its number is not in the record; it belongs to",
        "the name. Members that are empty are left out.",
        "",
    ]
    for title, kind in (("Every event", Event), ("Every event of a run", RunEvent)):
        lines += [f"## {title}", "", _first_paragraph(kind.__doc__), "", *_members(kind, set())]
    for name, kind in sorted(EVENT_KINDS.items(), key=lambda item: item[1].number):
        common = RunEvent if issubclass(kind, RunEvent) else Event
        known = {field.encode_name for field in fields(common)}
        lines += [f"## {kind.number} {name}", "", _docs(kind), "", *_members(kind, known)]
    runs = {state.name.lower(): words for state, words in RUN_STATE_HELP.items()}
    lines += ["## States of a run", "", *_pairs("state", "meaning", runs.items())]
    lines += ["## States of a trial", "", *_pairs("state", "meaning", TRIAL_STATE_HELP.items())]
    return "\n".join(lines)


def _members(kind: type[Event], known: set[str]) -> list[str]:
    """Return the table of the members of an event by their names on disk, and, where the text above
    calls one otherwise, by that name."""
    rows = [
        (
            f"`{field.encode_name}`",
            f"`{field.name}`" if field.name != field.encode_name else "",
            _type_name(field.type),
        )
        for field in fields(kind)
        if field.encode_name not in known
    ]
    return _table(["member", "in the text above", "type"], rows) if rows else []


def _type_name(hint: Any) -> str:
    names = {int: "integer", float: "number", str: "text", bool: "true or false", dict: "mapping"}
    kinds = [each for each in (get_args(hint) or (hint,)) if each is not type(None)]
    origin = getattr(hint, "__origin__", None)
    if origin in (dict, list):
        return "mapping" if origin is dict else "list"
    first = kinds[0]
    inner = getattr(first, "__origin__", first)
    if float in kinds:
        return "number"
    return names.get(first) or names.get(inner) or ("mapping" if inner is dict else "integer")


def verdicts_page() -> str:
    """Return the page of the codes of verdicts, and of what follows each cause of a failure."""
    codes = [
        (str(number), f"`{code.name}`", _escaped(code.meaning)) for number, code in CODES.items()
    ]
    return "\n".join(
        [
            "# Verdicts",
            "",
            *_table(["code", "verdict", "meaning"], codes),
            "## What follows a failure, where a plan says nothing else",
            "",
            *_pairs("cause", "reaction", ANSWERS.items()),
        ]
    )


def criteria_page() -> str:
    """Return the page of the criteria: the words of the functions that compute them."""
    lines = [
        "# Criteria",
        "",
        "Each is computed from the journal alone. What all have in common (states, waivers, stages",
        "of runs, time) is on the page [how criteria are judged](../explanations/criteria.md).",
        "",
    ]
    for name in criterion_kinds():
        lines += [f"## {name}", "", _docs(judge_of(name)), ""]
    lines += ["## Uses of node-hours", "", *_pairs("use", "what is in it", USES.items())]
    return "\n".join(lines)


def exit_codes_page() -> str:
    """Return the page of the exit codes: of all commands, of each that says more, of scripts."""
    lines = ["# Exit codes", "", "## Of every command", ""]
    lines += _pairs("code", "meaning", ((str(code), text) for code, text in EXIT_CODES.items()))
    lines += ["## Of single commands", ""]
    for page in pages(seatrial):
        texts = [" ".join(one.lines) for one in page.paragraphs if not one.verbatim]
        said = [text for text in texts if re.search(r"[Ee]xit code", text)]
        blocks = [one for one in page.paragraphs if one.verbatim and "xit codes:" in one.lines[0]]
        if page.name != "seatrial" and (said or blocks):
            lines += [f"### {page.name}", "", *(f"{_plain(text, False)}\n" for text in said)]
            for block in blocks:
                lines += [*(f"    {line}" for line in block.lines), ""]
    lines += ["## Of a run", ""]
    lines += ["The exit code of a run is that of its script. The scripts around it end with", ""]
    scripts = ((str(code), text) for code, text in SCRIPT_EXIT_CODES.items())
    return "\n".join([*lines, *_pairs("code", "meaning", scripts)])


# ---- Markdown ---------------------------------------------------------------------------------


def _docs(described: object) -> str:
    """Return a docstring as Markdown."""
    return re.sub(r"``([^`]+)``", r"`\1`", inspect.getdoc(described) or "")


def _first_paragraph(text: str | None) -> str:
    words = " ".join(inspect.cleandoc(text or "").split("\n\n")[0].split())
    return re.sub(r"``([^`]+)``", r"`\1`", words)


def _plain(text: str, verbatim: bool) -> str:
    return text if verbatim else re.sub(r"([<>*_\[\]])", r"\\\1", text)


def _escaped(text: str) -> str:
    """Return a text as a cell of a table; what stands in backticks stays."""
    parts = re.split(r"(`[^`]*`)", " ".join(text.split()))
    shown = (part if part.startswith("`") else _plain(part, False) for part in parts)
    return "".join(shown).replace("|", r"\|")


def _pairs(name: str, about: str, rows: Any) -> list[str]:
    """Return a table of names with what is said of each; no lines where there is none."""
    cells = [(f"`{key}`", _escaped(text)) for key, text in rows]
    return _table([name, about], cells) if cells else []


def _table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    return [_row(heads), _row(["---"] * len(heads)), *map(_row, rows), ""]


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main() -> None:
    for _, texts in reference_pages():
        for text in texts.values():
            sys.stdout.write(f"{text}\n")


if __name__ == "__main__":
    main()
