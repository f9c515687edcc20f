r"""Text for each target that could take a part of it for something else: one function for each.

    c_text('müller "x"')            # "m\303\274ller \042x\042", with its quotes
    lua_text("a b")                 # "\097\032\098"
    shell_word("a b")               # 'a b'
    comment("a\nb")                 # a?b, for a comment of bash, YAML or ini files
    plain_line(text)                # for a terminal, on one line; `plain` keeps lines and tabs
    plain_page(text)                # for the text of a page, whose markup Jinja has escaped
    csv_cell(text)                  # what no spreadsheet computes
    xml_text(text), xml_value(text) # between tags; the value of an attribute, with its quotes

Text in HTML and SVG is escaped by Jinja and markupsafe, InfluxDB's line protocol by
``plugins/sinks/influxdb.py``, Markdown by ``show/report/render.py``.
"""

import re
import shlex

_PLAIN_WORD = re.compile(r"[A-Za-z0-9_./:,+-]+")
_IN_C = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789 ./_-")
_BREAKS = ("\t", "\r", "\n")
_FORMULAS = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
# Controls but line ends and tabs, characters that change the direction of writing, and halves of
# characters.
_CONTROLS = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff]"
)
# What XML 1.0 cannot hold, and what a terminal would take for a command.
_NO_XML = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ud800-\udfff"
    "\ufffe\uffff]"
)


# ---- programs and scripts -----------------------------------------------------------------


def c_text(text: str) -> str:
    """Return a text as a literal of C, in UTF-8; bytes of a path that are not UTF-8 stay as they
    are. C ends a text at a NUL."""
    data = text.encode("utf-8", errors="surrogateescape")
    return '"' + "".join(chr(byte) if byte in _IN_C else f"\\{byte:03o}" for byte in data) + '"'


def lua_text(text: str) -> str:
    """Return a text as a literal of Lua, whose escapes are decimal."""
    data = text.encode("utf-8", errors="surrogateescape")
    return '"' + "".join(f"\\{byte:03}" for byte in data) + '"'


def shell_word(text: str) -> str:
    """Return a text as one word of bash, in quotes where it needs them."""
    return text if _PLAIN_WORD.fullmatch(text) else shlex.quote(text)


def comment(text: str) -> str:
    """Return a text on one line, for a comment: a line end in it would begin a command."""
    return text if text.isprintable() else "".join(c if c.isprintable() else "?" for c in text)


def has_controls(text: str) -> bool:
    """Return whether a path or name has control characters, line ends and tabs among them, or
    characters that change the direction of writing: lists with a line for each cannot hold it."""
    return any(char in text for char in _BREAKS) or _CONTROLS.search(text) is not None


# ---- what people look at ------------------------------------------------------------------


def plain(text: str) -> str:
    """Return text that is safe on a terminal: all unprintable but newline and tab is escaped."""
    return _escaped(text, "\n\t")


def plain_line(text: str) -> str:
    """Return text that is safe on a terminal, on one line: newline and tab are escaped too."""
    return _escaped(text, "")


def plain_page(text: str) -> str:
    """Return the text of a page without control characters, and without those that change the
    direction of writing: these are escaped. Line ends and tabs stay."""
    return _CONTROLS.sub(lambda match: repr(match[0])[1:-1], text)


def _escaped(text: str, kept: str) -> str:
    printable = text
    for character in kept:
        printable = printable.replace(character, "")
    if printable.isprintable():
        return text
    return "".join(c if c.isprintable() or c in kept else repr(c)[1:-1] for c in text)


# ---- files for other programs -------------------------------------------------------------


def csv_cell(text: str) -> str:
    """Return the text of a cell, with an apostrophe before what a spreadsheet would compute, and
    without control characters; the writer of CSV adds quotes. Line ends and tabs stay."""
    text = plain_page(text.replace("\0", ""))
    return f"'{text}" if text.lstrip().startswith(_FORMULAS) or text[:1] in _BREAKS else text


def xml_text(text: str) -> str:
    """Return text for XML: markup is quoted, characters that XML cannot hold are made visible."""
    legal = re.sub(_NO_XML, lambda match: _visible(match[0]), text)
    return legal.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")


def xml_value(text: str) -> str:
    """Return an attribute's value with its quotes. Line ends are kept."""
    escaped = xml_text(text).replace('"', "&quot;").replace("\n", "&#10;").replace("\t", "&#9;")
    return f'"{escaped}"'


def _visible(character: str) -> str:
    number = ord(character)
    return f"\\x{number:02x}" if number < 0x100 else f"\\u{number:04x}"
