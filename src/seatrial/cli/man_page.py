"""The help of a command as a man page, in the macros of man(7)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from seatrial import __version__
from seatrial.cli.command_help import CommandHelp

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
