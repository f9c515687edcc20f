"""Every page of the core, in one table, and those of plug-ins. Each of the core has a function in
``pages/``, and a template of its own or ``study.html``."""

from __future__ import annotations

from functools import cache
from typing import Any

from seatrial.hooks import WebPage, provided
from seatrial.show.web.study_view import page_of

# The navigation: the area of pages, its title, its address.
_AREAS = (
    ("now", "Now", "/"),
    ("trials", "Trials", "/trials"),
    ("failures", "Failures", "/failures"),
    ("runs", "Runs", "/runs"),
    ("machines", "Machines", "/machines"),
    ("networks", "Networks", "/network"),
    ("compare", "Compare", "/compare"),
    ("history", "History", "/history"),
    ("records", "Records", "/records"),
    ("matrix", "Matrix", "/matrix"),
    ("scaling", "Scaling", "/scaling"),
    ("ratio", "Ratio", "/ratio"),
    ("best", "Best", "/best"),
)


def _page(path: str, area: str, name: str, template: str = "", **other: Any) -> WebPage:
    """Return a page of the core: its module is ``pages/NAME.py``, or NAME:FUNCTION tells both."""
    module, _, function = name.partition(":")
    data = f"seatrial.show.web.pages.{module}:{function or 'data'}"
    return WebPage(path, area, data, template, **other)


_PAGES = (
    _page("/", "now", "trials:now", "now.html"),
    _page("/trials", "trials", "trials:trials", "trials.html", form=True),
    _page("/trials/{tag}", "trials", "trial", "trial.html", plots=True),
    _page("/trials/{tag}/utilisation", "trials", "trial:utilisation"),
    _page("/trials/{tag}/in-flight", "trials", "trial:in_flight"),
    _page("/trials/{tag}/elapsed", "trials", "trial:elapsed"),
    _page("/trials/{tag}/loads", "trials", "trial:loads"),
    _page("/trials/{tag}/tune", "trials", "trial:tune", "study.html", rows="lines"),
    _page("/failures", "failures", "runs:failures", "failures.html", form=True, rows="failures"),
    _page("/runs", "runs", "runs:runs", "runs.html", form=True, rows="runs"),
    _page("/runs/{trial}/{run_id}", "runs", "runs:run", "run.html", form=True),
    _page("/machines", "machines", "machine:machines", "machines.html", form=True),
    _page("/machines/{machine}", "machines", "machine", "machine.html", form=True),
    _page("/machines/{machine}/nodes/{node}", "machines", "node", "node.html", form=True),
    _page("/bands", "networks", "trial:bands", "study.html", form=True),
    _page("/compare", "compare", "side_studies:compare", "study.html", form=True),
    _page("/history", "history", "history:history", "study.html", form=True, rows="lines"),
    _page("/records", "records", "history:records", "study.html", form=True, rows="lines"),
    _page("/matrix", "matrix", "side_studies:matrix", "study.html", form=True),
    _page("/best", "best", "side_studies:best", "study.html", form=True),
    _page("/ratio", "ratio", "side_studies:ratio", "study.html", form=True, rows="lines"),
    _page("/scaling", "scaling", "side_studies:scaling", "study.html", form=True, rows="lines"),
)


@cache
def pages() -> tuple[WebPage, ...]:
    """Return all pages: the core's, then those of plug-ins."""
    studies = (page_of(study) for study in provided("seatrial_studies"))
    return (*_PAGES, *provided("seatrial_pages"), *studies)


@cache
def areas() -> tuple[tuple[str, str, str], ...]:
    """Return the navigation: the area of pages, its title, its address."""
    first: dict[str, str] = {}  # of each area, in place of a page that is not there
    for page in pages():
        first.setdefault(page.area, page.path)
    added = ((page.area, page.title, page.path) for page in pages() if page.title)
    of_core = (
        (name, title, path if has_page(path) else first[name]) for name, title, path in _AREAS
    )
    return (*of_core, *added)


def has_page(path: str) -> bool:
    """Return whether the server has a page at a path, which a plug-in may bring."""
    return any(page.path == path for page in pages())


def additions_to(page: str) -> list[str]:
    """Return the templates of what plug-ins add to a page of the core."""
    return [one.template for one in provided("seatrial_page_additions") if one.page == page]
