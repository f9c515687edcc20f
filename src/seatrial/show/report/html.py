"""Write the report as one HTML file that loads nothing and runs no script.

page(report)         # its text
"""

import re
from base64 import b64encode
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from markupsafe import Markup, escape

from seatrial.escaping import plain, plain_page
from seatrial.lazy import jinja2
from seatrial.results.criteria.view import covered
from seatrial.show.draw.plots import PALETTE
from seatrial.show.page import Cell
from seatrial.show.report import content
from seatrial.show.report.people import issues
from seatrial.show.report.sign import PLACE, block
from seatrial.units import show_bytes, show_seconds

TEMPLATES: Final = Path(__file__).with_name("templates")
MAX_SUBJECTS: Final = 60  # of a criterion
_MARKS: Final = re.compile(r"(?<=\w)[{@%](?=\w)|(?<=})[@%](?=\w)")
_LONG: Final = re.compile(r"\S{37,}")
_PART: Final = re.compile(r"[^_./:,=-]{0,31}[_./:,=-]+|[^_./:,=-]{32}")
_BREAK: Final = "\x1f"  # where a line may break: `plain` leaves no such sign in a text
SHORT_TABLE: Final = 40  # the data of a figure are printed if they have so many rows or fewer


def page(report: content.Report) -> str:
    """Return the report as HTML text."""
    sheets = [PALETTE, TEMPLATES / "report.css"]
    sheets += [TEMPLATES / "rehearsed.css"] if report.rehearsed else []
    # plain: files of the package
    style = "".join(sheet.read_text() for sheet in sheets)
    style = style.replace("REPORT-NAME", report.name)  # only hexadecimal digits
    template = environment().get_template("report.html")
    text = template.render(
        report=report,
        style=Markup(style),
        # for the content security policy, which allows no other style
        style_hash=f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}",
        sentence=content.sentence(report),
        summed_up=content.state_of_criteria(report),
        faults=list(content.faulty_tests(report)),
        open_issues=issues(report.issues, "Open issues"),
        subjects=MAX_SUBJECTS,
        place=PLACE,
        checksums=block(report.files, report.decided),
        short=SHORT_TABLE,
        drawing=Markup,
    )
    return plain_page(text)


@cache
def environment() -> "jinja2.Environment":
    """Return what makes text from the templates; each is compiled once."""
    made = jinja2.Environment(
        loader=jinja2.FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters |= _filters()
    return made


def breakable(text: str) -> Markup:
    """Return text whose lines may break within the name of a case, before its parameters, toolchain
    and node; not elsewhere in a word, unless it is so long that a table of a few such words is
    wider than a page."""
    parted = _LONG.sub(lambda word: _PART.sub(rf"\g<0>{_BREAK}", word[0]).rstrip(_BREAK), text)
    shown = _MARKS.sub(r"<wbr>\g<0>", str(escape(parted)))
    return Markup(shown.replace(_BREAK, "<wbr>"))


def _filters() -> dict[str, Any]:
    def figure(value: Cell) -> str:
        return plain(value) if isinstance(value, str) else content.shown(value, "number")

    return {
        "cell": lambda value, column: plain(content.shown(value, column.kind)),
        "breakable": breakable,
        "moment": content.moment,
        "seconds": lambda value: show_seconds(value) if value else "",
        "bytes": show_bytes,
        "percent": lambda value: content.shown(value, "share"),
        "state_class": lambda state: state.partition(" (")[0].replace(" ", "-"),
        "text": plain,
        "figure": figure,
        "covered": covered,
        "ended_runs": content.ended_runs,
        "not_passed": content.not_passed,
    }
