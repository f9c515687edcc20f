"""A page: one function from the server's state and a query to data, a template, an address.

A page's ``data`` is called in a worker thread. It returns a Struct that is both what the template
shows (as ``data``) and the page's JSON. It raises an error of ``seatrial.errors`` for what is not
there or cannot be done; ``web.app`` makes a page of that.
"""

import importlib
from typing import NamedTuple

from msgspec import Struct

from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState

# The navigation: the area of pages, its title, its address.
AREAS = (
    ("now", "Now", "/"),
    ("trials", "Trials", "/trials"),
    ("failures", "Failures", "/failures"),
    ("runs", "Runs", "/runs"),
    ("machines", "Machines", "/machines"),
    ("networks", "Networks", "/network"),
    ("compare", "Compare", "/compare"),
    ("history", "History", "/history"),
    ("matrix", "Matrix", "/matrix"),
    ("scaling", "Scaling", "/scaling"),
    ("ratio", "Ratio", "/ratio"),
    ("best", "Best", "/best"),
)


class Page(NamedTuple):
    """A page at ``path``; its JSON is at the same path with ``.json``. A page without a
    ``template`` is data only, for a plot.

    area: the area of the navigation to which it belongs.
    module: that of ``pages/`` with its ``function``.
    plots: whether it has large plots, which are drawn in the browser.
    rows: the field of its data that is a table, also served as CSV; "" for none.
    form: whether its template shows a form, and in place of data why a query was ``refused``."""

    path: str
    area: str
    module: str
    template: str = ""
    plots: bool = False
    rows: str = ""
    form: bool = False
    function: str = "data"

    def data(self, state: ServerState, query: PageQuery) -> Struct:
        """Return what the page shows. Its module is imported now, so that the server starts
        fast."""
        module = importlib.import_module(f"seatrial.web.pages.{self.module}")
        found: Struct = getattr(module, self.function)(state, query)
        return found
