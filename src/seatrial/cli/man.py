"""``seatrial man``: man pages, made of the help."""

from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from seatrial import __version__
from seatrial.cli.command_help import CommandHelp, pages
from seatrial.errors import UsageError
from seatrial.units import count


@click.command("man")
@click.argument("folder", type=click.Path(path_type=Path))
@click.pass_context
def command(context: click.Context, folder: Path) -> int:
    """Write a man page of each command to FOLDER/man1.

    \b
    seatrial man ~/.local/share/man
    man seatrial-accept-status
    """
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


SECTION = 1


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
