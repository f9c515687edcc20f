"""What Seatrial tells of itself: settings, schema, man pages, completion of the shell."""

from __future__ import annotations

import inspect
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import click
from msgspec import Struct

from seatrial import __version__
from seatrial.account import home
from seatrial.cli import BUILT_IN
from seatrial.errors import UsageError
from seatrial.hooks import FileKind, load, provided
from seatrial.model import settings
from seatrial.model.documents import json_schema
from seatrial.results.store.location import shown
from seatrial.units import count

# ---- settings ------------------------------------------------------------------------------------

NAMES = ("machine", "trials", "store", "log_level", "name", "organisation", "alert")
VARIABLES = {
    "machine": "SEATRIAL_MACHINE",
    "trials": "SEATRIAL_TRIALS",
    "store": "SEATRIAL_STORE",
    "log_level": "SEATRIAL_LOG_LEVEL",
}


class EffectiveSetting(NamedTuple):
    """A setting as the next command would take it, and where that comes from: a variable, a file
    with its line, the command line, "default" or "" (not set)."""

    key: str
    value: str
    origin: str


def config(context: click.Context, key: str | None, show_origin: bool) -> int:
    """Do ``seatrial config``; return the exit code."""
    root = context.find_root()
    settings_now = [effective(each, root) for each in ([key] if key else NAMES)]
    if key and not show_origin:
        click.echo(settings_now[0].value)
        return 0 if settings_now[0].value else 1
    _print(settings_now, show_origin)
    return 0


def _print(shown_settings: list[EffectiveSetting], show_origin: bool) -> None:
    """Print settings, a line each, and behind each where it comes from."""
    width = max(len(each.key) for each in shown_settings)
    for each in shown_settings:
        value = each.value or "(not set)"
        click.echo(f"{each.key.ljust(width)}  {value}")
        if show_origin and each.origin:
            click.echo(f"{' ' * width}  from {each.origin}")


def effective(key: str, root: click.Context) -> EffectiveSetting:
    """Return a setting as the next command would take it. Raises InvalidFiles."""
    if key in root.params and _is_typed(root, key):
        return EffectiveSetting(key, shown(str(root.params[key])), "the command line")
    variable = VARIABLES.get(key, "")
    if value := os.environ.get(variable, ""):
        return EffectiveSetting(key, shown(value), f"${variable}")
    value, place = settings.origin(key)
    if value:
        return EffectiveSetting(key, shown(value), as_home(place))
    return EffectiveSetting(key, BUILT_IN.get(key, ""), "default" if key in BUILT_IN else "")


def _is_typed(root: click.Context, key: str) -> bool:
    return root.get_parameter_source(key) is click.core.ParameterSource.COMMANDLINE


def as_home(place: str) -> str:
    """Return a place with ``~`` for the user's home."""
    folder = f"{home()}/"
    return f"~/{place.removeprefix(folder)}" if place.startswith(folder) else place


# ---- files and shells ----------------------------------------------------------------------------

SHELLS = ("bash", "zsh", "fish")
FILES = {
    kind.name: kind
    for kind in [
        FileKind("test", "test.yaml", "seatrial.model.test:TestFile"),
        FileKind("machine", "Machine files", "seatrial.model.machine:Machine"),
        FileKind("references", "references.yaml", "seatrial.judge.references:ReferencesFile"),
        FileKind("plan", "plan.yaml", "seatrial.model.plan:Plan"),
        FileKind("score", "score.yaml", "seatrial.results.scores:ScoreFile"),
        FileKind("tune", "tune.yaml", "seatrial.model.tune_file:TuneFile"),
        FileKind("config", "config.yaml: the settings", "seatrial.model.settings:Settings"),
        *provided("seatrial_files"),
    ]
}


def schema(file: str) -> int:
    """Do ``seatrial schema``; return the exit code."""
    schema = json_schema(shape_of(file), f"Seatrial: {file}")
    click.echo(json.dumps(schema, indent=2))
    return 0


def shape_of(file: str) -> type[Struct]:
    """Return the Struct of a kind of file."""
    shape: type[Struct] = load(FILES[file].shape)
    return shape


def completion(shell: str) -> int:
    """Do ``seatrial completion``; return the exit code.

    The scripts ask the command by the variables that click reads (``click.shell_completion``). They
    are not those of click, which cut texts at commas, put a space behind ``TAG/``, and do not
    complete ``--machine=lo``.
    """
    click.echo(Path(__file__).with_name(f"completion.{shell}").read_text(), nl=False)
    return 0


# ---- man pages -----------------------------------------------------------------------------------

SECTION = 1


def man(context: click.Context, folder: Path) -> int:
    """Do ``seatrial man``; return the exit code."""
    section = folder / f"man{SECTION}"
    found = list(pages(context.find_root().command))
    names = [page.name for page in found]
    try:
        section.mkdir(parents=True, exist_ok=True)
        for page in found:
            above = [name for name in names if name == page.name.rpartition(" ")[0]]
            below = [name for name in names if name.rpartition(" ")[0] == page.name]
            (section / file_name(page)).write_text(man_page(page, [*above, *below]), "utf-8")
    except OSError as error:
        raise UsageError(f"{error.filename}: cannot be written: {error.strerror}") from None
    click.echo(f"{count(len(found), 'page')} in {section}")
    return 0


def file_name(page: CommandHelp) -> str:
    """Return the name of a page's file: ``seatrial-accept-run.1``."""
    return f"{page.name.replace(' ', '-')}.{SECTION}"


def man_page(page: CommandHelp, see_also: Sequence[str]) -> str:
    """Return a page as roff. ``see_also``: names of other pages' commands."""
    return "\n".join(_lines(page, see_also)) + "\n"


def _lines(page: CommandHelp, see_also: Sequence[str]) -> Iterator[str]:
    name = page.name.replace(" ", "-")
    yield f'.TH {_text(name.upper())} {SECTION} "" "Seatrial {__version__}" "Seatrial"'
    yield from (".nh", ".ad l")  # no word is broken, no blanks fill a line
    yield from (".SH NAME", f"{_text(name)} \\- {_text(page.summary)}")
    yield from (".SH SYNOPSIS", f".B {_text(page.name)}", _text(page.usage))
    yield ".SH DESCRIPTION"
    for paragraph in page.paragraphs:
        yield ".PP"
        if paragraph.verbatim:
            yield from (".nf", *map(_line, paragraph.lines), ".fi")
        else:
            yield from map(_line, paragraph.lines)
    for heading, entries in (("COMMANDS", page.commands), ("OPTIONS", page.options)):
        if entries:
            yield f".SH {heading}"
        for names, about in entries:
            yield from (".TP", f".B {_text(names)}", _line(about))
    if see_also:
        pages = [f"{_text(one.replace(' ', '-'))}({SECTION})" for one in see_also]
        yield from (".SH SEE ALSO", ", ".join(pages))


def _line(text: str) -> str:
    """Return a line of text that is no request of roff."""
    escaped = _text(text)
    return rf"\&{escaped}" if escaped[:1] in (".", "'") else escaped


def _text(text: str) -> str:
    return " ".join(text.split("\n")).replace("\\", r"\e").replace("-", r"\-").replace("~", r"\(ti")


# ---- the help as data, of which man pages and the reference of the site are made -----------------


class Paragraph(NamedTuple):
    """A paragraph of a help text; ``lines`` keep their ends where it is ``verbatim``."""

    lines: list[str]
    verbatim: bool


class CommandHelp(NamedTuple):
    """The help of one command: ``name`` with the commands above it, its ``usage`` behind the name,
    its paragraphs, its options and the commands below it, each with a sentence."""

    name: str
    usage: str
    summary: str
    paragraphs: list[Paragraph]
    options: list[tuple[str, str]]
    commands: list[tuple[str, str]]


def pages(command: click.Command, name: str = "seatrial") -> Iterator[CommandHelp]:
    """Yield the help of a command and of all commands below it."""
    context = click.Context(command, info_name=name)
    below = _commands_below(command, context)
    options = (one for one in command.get_params(context) if isinstance(one, click.Option))
    records = (option.get_help_record(context) for option in options)
    yield CommandHelp(
        name,
        " ".join(command.collect_usage_pieces(context)),
        _first_sentence(command),
        list(_paragraphs(command.help or "")),
        [record for record in records if record is not None],
        [(one, _first_sentence(each)) for one, each in below.items()],
    )
    for one, each in below.items():
        yield from pages(each, f"{name} {one}")


def _commands_below(command: click.Command, context: click.Context) -> dict[str, click.Command]:
    """Return the commands of a group by name, without hidden ones; none of a single command."""
    if not isinstance(command, click.Group):
        return {}
    below = ((name, command.get_command(context, name)) for name in command.list_commands(context))
    return {name: one for name, one in below if one is not None and not one.hidden}


def _paragraphs(text: str) -> Iterator[Paragraph]:
    """Yield the paragraphs of a help text, where ``\\b`` marks a verbatim one, as in click."""
    for block in inspect.cleandoc(text).split("\n\n"):
        lines = block.strip("\n").splitlines()
        verbatim = bool(lines) and lines[0].strip() == "\b"
        if verbatim:
            lines = lines[1:]
        if lines:
            yield Paragraph(lines, verbatim)


def _first_sentence(command: click.Command) -> str:
    first = " ".join(inspect.cleandoc(command.help or "").partition("\n\n")[0].split())
    return first.partition(". ")[0].rstrip(".")
