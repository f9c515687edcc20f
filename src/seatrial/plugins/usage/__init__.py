"""What others ran on a machine: its jobs, whoever submitted them, and questions about them."""

from __future__ import annotations

from typing import Annotated

from seatrial.hooks import (
    Command,
    FileKind,
    Key,
    Option,
    ResourceKind,
    StoreTable,
    SuspectSource,
    WebPage,
    hookimpl,
    load,
)
from seatrial.model.file_model import doc

_HERE = "seatrial.plugins.usage"

NEWS = (
    "SELECT count(*), max(imported), CAST(sum(jobs) AS BIGINT), CAST(sum(removed) AS BIGINT) "
    "FROM usage_imports"
)
"""What is another row after every import, and whenever jobs are removed."""


@hookimpl
def seatrial_commands() -> list[Command]:
    return [
        Command(
            "usage",
            f"{_HERE}.commands:usage",
            "Tell what others ran: hours, waits, failures, charges.",
            "Judge results",
        ),
    ]


@hookimpl
def seatrial_files() -> list[FileKind]:
    attributes = f"{_HERE}.attributes"
    return [
        FileKind("applications", "Applications of jobs", f"{attributes}:ApplicationFile"),
        FileKind("charges", "Charges of jobs", f"{_HERE}.charges:ChargesFile"),
        FileKind("fields", "Fields of science of jobs", f"{attributes}:FieldFile"),
        FileKind("jobs", "Columns of a table of jobs", f"{_HERE}.sources.table:TableMap"),
    ]


@hookimpl
def seatrial_keys() -> list[Key]:
    keys = f"{_HERE}.keys"
    settings = load(f"{keys}:UsageSettings")
    about = doc("the jobs that others run: what is kept and shown")
    return [
        Key(
            "machine",
            "usage",
            Annotated[settings, about],
            settings(),
            check=f"{keys}:check",
            resolve=f"{keys}:with_paths",
            of_runs=False,
        )
    ]


@hookimpl
def seatrial_resources() -> list[ResourceKind]:
    return [ResourceKind("charge", f"{_HERE}.charges:rate_of")]


@hookimpl
def seatrial_suspect_sources() -> list[SuspectSource]:
    line = "Also by jobs of everybody that ended since: 14d, 2026-11-20, or FROM..TO."
    return [SuspectSource(Option("jobs", line), "SPAN", f"{_HERE}.suspects:accuse")]


@hookimpl
def seatrial_tables() -> list[StoreTable]:
    return [
        StoreTable(
            "usage_jobs", f"{_HERE}.jobs:JOBS", f"{_HERE}.archive:fill", f"{_HERE}.archive:missing"
        ),
        StoreTable("usage_words", f"{_HERE}.jobs:WORD_TABLE"),
        StoreTable("usage_imports", f"{_HERE}.archive:IMPORTS", news=NEWS),
    ]


@hookimpl
def seatrial_pages() -> list[WebPage]:
    first = _page("", "overview", title="Usage")
    others = ("by", "waits", "failures", "charges", "losses", "imports")
    return [first, *(_page(f"/{name}", name) for name in others)]


def _page(path: str, function: str, title: str = "") -> WebPage:
    """Return a page of the area Usage."""
    data = f"{_HERE}.pages:{function}"
    return WebPage(f"/usage{path}", "usage", data, "study.html", title, rows="lines", form=True)
