"""Turn data into HTML, JSON and CSV.

html = as_html(page, state, query, data)
text = as_json(data)                         # bytes; single times as ISO 8601 in UTC
"""

import csv
import hashlib
import io
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import import_module
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
from jinja2 import Environment, FileSystemLoader, StrictUndefined
from msgspec import Struct, structs

from seatrial import __version__
from seatrial.escaping import csv_cell, plain_page
from seatrial.hooks import WebPage, provided
from seatrial.results.store.export import iso
from seatrial.results.store.tables import RUN_TIMES
from seatrial.show import trial
from seatrial.show.formatting import FILTERS, GLOBALS
from seatrial.show.html import page_html, table_html
from seatrial.show.text import page_csv
from seatrial.show.web import output
from seatrial.show.web.page import PageData, PageQuery
from seatrial.show.web.routes import additions_to, areas, has_page, pages
from seatrial.show.web.server_state import ServerState
from seatrial.show.web.study_view import StudyView

FOLDER = Path(str(files("seatrial.show.web")))
STATIC = FOLDER / "static"

# Fields that hold a time in ns if they hold one number.
_NESTED = (dict, list)
_TIMES = frozenset((*RUN_TIMES, "started", "ended", "last", "now", "since", "time", "until"))


def _template_folders() -> list[Path]:
    """Return the folders of templates: that of the core, and those beside the pages of plug-ins."""
    shown = [*pages(), *provided("seatrial_page_additions")]
    modules = {page.data.partition(":")[0]: None for page in shown if page.template}
    origins = [spec.origin for module in modules if (spec := find_spec(module)) is not None]
    beside = dict.fromkeys(Path(origin).parent / "templates" for origin in origins if origin)
    return [FOLDER / "templates", *(folder for folder in beside if folder.is_dir())]


@cache
def environment() -> Environment:
    """Return what makes text from the templates; each is compiled once."""
    made = Environment(
        loader=FileSystemLoader(_template_folders()),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    made.filters.update(
        FILTERS | output.FILTERS | {"page_html": page_html, "table_html": table_html}
    )
    made.globals.update(
        GLOBALS | output.GLOBALS,
        version=__version__,
        static=_static,
        areas=areas(),
        json_link=json_link,
        additions_to=additions_to,
        has_page=has_page,
        run_times=RUN_TIMES,
        tables=trial,
    )
    return made


def as_html(
    page: WebPage, state: ServerState, query: PageQuery, data: PageData, refused: str = ""
) -> bytes:
    """Return a page as HTML. ``refused`` is why its query has no answer, or "". The template has
    the page's module as ``module``, for what is drawn or said of the data."""
    text = (
        environment()
        .get_template(page.template)
        .render(
            page=page,
            module=import_module(page.data.partition(":")[0]),
            state=state,
            query=query,
            data=data,
            refused=refused,
        )
    )
    return plain_page(text).encode()


def error_page(state: ServerState, status: int, title: str, text: str) -> bytes:
    """Return a page that says what is wrong and what to do."""
    page = WebPage("", "", "")
    template = environment().get_template("error.html")
    words = template.render(
        page=page, state=state, query=None, status=status, title=title, text=text
    )
    return plain_page(words).encode()


def sign_in_page(wrong: bool, way: str) -> bytes:
    """Return the page that asks for the token. ``way`` is the address to return to."""
    return environment().get_template("sign_in.html").render(wrong=wrong, way=way).encode()


def json_link(query: PageQuery, ending: str = ".json") -> str:
    """Return the address of a page's data as JSON, or of its rows as CSV."""
    parameters = query.link().removeprefix(query.address)
    return ("/now" if query.address == "/" else query.address) + ending + parameters


@cache
def _static(name: str) -> str:
    """Return the address of a static file, which changes with its content."""
    digest = hashlib.sha256((STATIC / name).read_bytes()).hexdigest()[:10]
    return f"/static/{name}?v={digest}"


def as_json(data: PageData) -> bytes:
    """Encode a page's data as JSON. Columns of a plot keep their numbers."""
    if isinstance(data, StudyView):
        return msgspec.json.encode(data.record)
    record = msgspec.to_builtins(data, enc_hook=lambda part: part.record)  # of a PagePart
    record |= record.pop("added", {})
    return msgspec.json.encode(_with_iso(record))


def as_csv(data: PageData, rows: str) -> bytes:
    """Encode the rows of a page as CSV, without the store's own numbers of them. No text of a user
    or a job becomes a formula."""
    if isinstance(data, StudyView):
        return (page_csv(data.answer) if data.answer else "").encode()
    assert isinstance(data, Struct), "rows have types, by which an empty table has its titles"
    (kind,) = (field.type for field in structs.fields(data) if field.name == rows)
    text = io.StringIO()
    columns = [name for name in _columns(kind.__args__[0]) if name != "row"]
    writer = csv.DictWriter(text, columns, lineterminator="\r\n", extrasaction="ignore")
    writer.writeheader()
    writer.writerows(
        dict(_flat(row)) for row in _with_iso(msgspec.to_builtins(getattr(data, rows)))
    )
    return text.getvalue().encode()


def _columns(kind: Any, before: str = "") -> Iterator[str]:
    for field in structs.fields(kind):
        if isinstance(field.type, type) and issubclass(field.type, Struct):
            yield from _columns(field.type, f"{before}{field.encode_name}_")
        else:
            yield before + field.encode_name


def _flat(row: Mapping[str, Any], before: str = "") -> Iterator[tuple[str, Any]]:
    for name, value in row.items():
        if isinstance(value, dict):
            yield from _flat(value, f"{before}{name}_")
        else:
            yield before + name, csv_cell(value) if isinstance(value, str) else value


def _with_iso(value: Any) -> Any:
    """Return builtins with the times in them as ISO 8601, without the store's own numbers of rows,
    which are others when it is made anew."""
    if isinstance(value, dict):
        return {
            key: _shown(key, inner)
            for key, inner in value.items()
            if key != "row" or not isinstance(inner, int)
        }
    if isinstance(value, list):
        plain = value and isinstance(value[0], int | float | str)
        return value if plain else list(map(_with_iso, value))
    return value


def _shown(key: str, value: Any) -> Any:
    if value.__class__ in _NESTED:
        return _with_iso(value)
    is_time = key in _TIMES and value.__class__ is int and value > 0  # not a truth
    return iso(value) if is_time else value
