"""Text for each target, through the target itself: every byte, and characters that move a cursor,
end a line or change the direction of writing."""

from __future__ import annotations

import csv
import html.parser
import io
import os
import shutil
import subprocess
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from seatrial import escaping
from seatrial.escaping import c_text, comment, csv_cell, lua_text, plain, plain_line, shell_word
from seatrial.show.draw import svg
from seatrial.show.report.render import environment as of_report
from seatrial.show.web.render import environment as of_pages

# A backslash and digits behind each byte: an escape must not reach into what follows.
BYTES = [bytes([number]) + tail for number in range(256) for tail in (b"", b"7", b"\\x", b"?>")]
TEXTS = [
    "müller",
    "Straße",
    "\u202etxt.exe",
    "a\u2028b\u2029c",
    "\x1b]0;title\x07\x1b[2J",
    "\x9b31m",
    "$(touch pwned)`touch pwned`",
    "'\";|&\\\n touch pwned #",
    "\ntouch pwned;#",
    "??/??=%s%n{}{{",
    "</td><script>alert(1)</script><!-- ]]>",
    "=cmd|' /C calc'!A0",
    "\udc80\udcff",
    "",
]
CASES = [*(os.fsdecode(each) for each in BYTES), *TEXTS]
WITHOUT_NUL = [text for text in CASES if "\0" not in text]


def test_c_has_the_bytes_of_each_text(tmp_path: Path) -> None:
    puts = "\n".join(
        f"fwrite({c_text(text)}, 1, sizeof({c_text(text)}), stdout);" for text in CASES
    )
    source = tmp_path / "a.c"
    source.write_text(f"#include <stdio.h>\nint main(void) {{\n{puts}\nreturn 0; }}\n")
    assert source.read_bytes().isascii()
    line = ["gcc", "-std=c11", "-O0", "-Wall", "-Wextra", "-Werror", "-o", "a", "a.c"]
    subprocess.run(line, cwd=tmp_path, check=True)
    said = subprocess.run([tmp_path / "a"], capture_output=True, check=True).stdout
    assert said == b"".join(os.fsencode(text) + b"\0" for text in CASES)


@pytest.mark.skipif(shutil.which("lua") is None, reason="needs lua")
def test_lua_has_the_bytes_of_each_text(tmp_path: Path) -> None:
    writes = "\n".join(f"io.write({lua_text(text)}, '\\0')" for text in CASES)
    (tmp_path / "a.lua").write_text(writes)
    said = subprocess.run(["lua", tmp_path / "a.lua"], capture_output=True, check=True).stdout
    assert said == b"".join(os.fsencode(text) + b"\0" for text in CASES)


@pytest.mark.parametrize("locale", ["C", "C.UTF-8"])
def test_bash_has_each_word_as_it_is(tmp_path: Path, locale: str) -> None:
    lines = "".join(f"printf '%s\\0' {shell_word(text)}\n" for text in WITHOUT_NUL)
    script = tmp_path / "a.sh"
    script.write_bytes(lines.encode("utf-8", errors="surrogateescape"))
    environment = {"PATH": os.environ["PATH"], "LC_ALL": locale}
    done = subprocess.run(
        ["bash", script], cwd=tmp_path, env=environment, capture_output=True, check=True
    )
    assert done.stdout == b"".join(os.fsencode(text) + b"\0" for text in WITHOUT_NUL)
    assert [path.name for path in tmp_path.iterdir()] == ["a.sh"]


def test_no_comment_of_bash_is_a_command(tmp_path: Path) -> None:
    commands = [f"# {comment(text + 'touch pwned')}\n" for text in CASES]
    script = tmp_path / "a.sh"
    script.write_text("".join(commands) + "echo done\n", encoding="utf-8")
    done = subprocess.run(["bash", script], cwd=tmp_path, capture_output=True, check=True)
    assert (done.stdout, done.stderr) == (b"done\n", b"")
    assert [path.name for path in tmp_path.iterdir()] == ["a.sh"]
    assert comment("grün a=1") == "grün a=1"


def test_nothing_controls_a_terminal() -> None:
    for text in CASES:
        line = plain_line(text)
        assert line.isprintable() and line.isprintable() == plain_line(line).isprintable()
        assert plain(text).replace("\n", "").replace("\t", "").isprintable()
        page = escaping.plain_page(text)
        assert page.encode() and not escaping._CONTROLS.search(page) if text else page == ""
        if text.isprintable():
            assert line == plain(text) == page == text


def test_a_reader_of_csv_gets_each_cell_and_computes_none() -> None:
    out = io.StringIO()
    cells = [csv_cell(text) for text in CASES]
    csv.writer(out).writerows([cell, "next"] for cell in cells)
    read = list(csv.reader(io.StringIO(out.getvalue(), newline="")))
    assert [(row[0], row[1]) for row in read] == [(cell, "next") for cell in cells]
    assert not [cell for cell in cells if cell.lstrip()[:1] in ("=", "+", "-", "@")]
    assert not [cell for cell in cells if "\x1b" in cell or "\u202e" in cell]
    out.getvalue().encode()


def test_a_reader_of_xml_gets_no_markup() -> None:
    for text in CASES:
        root = ET.fromstring(f"<a b={escaping.xml_value(text)}>{escaping.xml_text(text)}</a>")
        assert (root.tag, list(root), list(root.attrib)) == ("a", [], ["b"])
        assert root.get("b") == (root.text or "")
        if text.isprintable():
            assert root.get("b") == text


class _Elements(html.parser.HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.text = ""
        self.attribute: str | None = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attribute = dict(attrs).get("title", self.attribute)

    def handle_data(self, data: str) -> None:
        self.text += data


@pytest.mark.parametrize("environment", [of_report, of_pages])
def test_a_browser_gets_no_markup_from_text(environment: object) -> None:
    assert callable(environment)
    template = environment().from_string('<p title="{{ text }}">{{ text }}</p>')
    for text in CASES:
        page = escaping.plain_page(template.render(text=text))
        page.encode()
        found = _Elements()
        found.feed(page)
        found.close()
        assert found.tags == ["p"]
        if text.isprintable():
            assert (found.text, found.attribute) == (text, text)


def test_a_drawing_has_no_markup_of_text() -> None:
    for text in CASES:
        drawn = svg.picture([svg.words(text, 1, 2, full=text + "!")], 10, 10, text, text, "x")
        root = ET.fromstring(str(drawn))
        kinds = {"svg", "title", "desc", "text"}
        assert {each.tag for each in root.iter()} <= kinds
        shown = root.find("text")
        assert shown is not None
        assert [each.tag for each in shown] == ["title"]
        if text.isprintable() and text:
            assert root[0].text == text and (shown[0].tail or shown.text) == text


def test_paths_with_controls_are_known() -> None:
    bad = ["a\nb", "a\tb", "\x1b", "\u202ea", "\u2028", "a\x7f", "\x85"]
    assert [text for text in bad if not escaping.has_controls(text)] == []
    assert not escaping.has_controls("/home/müller/a b'c\"d$`*")
