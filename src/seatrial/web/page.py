"""A page: one function from the server's state and a query to data, a template, an address.

A page's ``data`` is called in a worker thread. It returns a Struct that is both what the template
shows (as ``data``) and the page's JSON. It raises an error of ``seatrial.errors`` for what is not
there or cannot be done; ``web.app`` makes a page of that.
"""

from msgspec import Struct

from seatrial.hooks import WebPage, load
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState


def data_of(page: WebPage, state: ServerState, query: PageQuery) -> Struct:
    """Return what a page shows. Its module is imported now, so that the server starts fast."""
    data: Struct = load(page.data)(state, query)
    return data
