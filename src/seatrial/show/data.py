"""Pages for programs: JSON and CSV."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from seatrial.escaping import csv_cell, plain_line
from seatrial.results.store.export import to_json
from seatrial.show.page import Page


def page_json(page: Page) -> str:
    return to_json(page.records())


def page_csv(page: Page) -> str:
    return csv_text(page.lines() if page.lines else ())


def csv_text(rows: Iterable[Sequence[object]]) -> str:
    """Return rows as CSV, the titles first. No text of a user or a job becomes a formula."""
    out = io.StringIO()
    safe = ([csv_cell(plain_line(c)) if isinstance(c, str) else c for c in row] for row in rows)
    csv.writer(out, lineterminator="\n").writerows(safe)
    return out.getvalue()
