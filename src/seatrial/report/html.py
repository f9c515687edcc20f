"""The report as one HTML file: nothing is loaded from elsewhere, and no script runs.

page(report)         # its text
"""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from pathlib import Path
from typing import Any, Final

from seatrial.draw import PALETTE
from seatrial.report.checksums import PLACE, block
from seatrial.report.content import (
    Cell,
    Report,
    ended_runs,
    moment,
    not_passed,
    sentence,
    shown,
)
from seatrial.units import show_bytes, show_seconds

TEMPLATES: Final = Path(__file__).with_name("templates")
MAX_SUBJECTS: Final = 60  # of a criterion
SHORT_TABLE: Final = 40  # rows up to which the data of a figure are printed


def page(report: Report) -> str:
    """The report as HTML text."""
    from jinja2 import Environment, FileSystemLoader, StrictUndefined
    from markupsafe import Markup

    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= _filters()
    sheets = [PALETTE, TEMPLATES / "report.css"]
    sheets += [TEMPLATES / "rehearsed.css"] if report.rehearsed else []
    style = "".join(sheet.read_text() for sheet in sheets)
    style = style.replace("REPORT-NAME", report.name)  # hexadecimal digits alone
    return environment.get_template("report.html").render(
        report=report,
        style=Markup(style),
        style_hash=_hash(style),
        sentence=sentence(report),
        subjects=MAX_SUBJECTS,
        place=PLACE,
        checksums=block(report.files),
        short=SHORT_TABLE,
        drawing=Markup,
    )


def _hash(style: str) -> str:
    """The style as a content security policy names it: no other is used."""
    return f"sha256-{b64encode(sha256(style.encode()).digest()).decode()}"


def _filters() -> dict[str, Any]:
    from seatrial.acceptance.criteria import show_value
    from seatrial.verify.reading import plain

    def figure(value: Cell) -> str:
        return plain(value) if isinstance(value, str) else shown(value, "number")

    return {
        "cell": lambda value, column: plain(shown(value, column.kind)),
        "moment": moment,
        "seconds": lambda value: show_seconds(value) if value else "",
        "bytes": show_bytes,
        "value": lambda result: show_value(result.criterion, result.value),
        "percent": lambda value: shown(value, "share"),
        "state_class": lambda state: state.replace(" ", "-"),
        "text": plain,
        "figure": figure,
        "ended_runs": ended_runs,
        "not_passed": not_passed,
    }
