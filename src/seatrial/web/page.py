"""What a page is: one line in the table of ``routes.py``.

A page's ``data`` is called in a worker thread with the site and the question, and answers with a
Struct that is both what its template shows (as ``data``) and its JSON. It raises an error of
``seatrial.errors`` for what is not there or cannot be done; ``web.app`` makes a page of it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from msgspec import Struct

from seatrial.web.query import PageQuery
from seatrial.web.server_state import ServerState


class Page(NamedTuple):
    """A page at ``path`` (its JSON at the same path with ``.json``). ``area`` is the word of the
    navigation that it belongs to. One without a ``template`` is data only, for a plot. ``plots``
    says whether it needs the library that draws large plots. ``form``: its template shows its form
    and, in place of what is chosen, why a question was ``refused``. ``also`` names parameters that
    it reads at times only, ``numbers`` those that its scripts read as numbers. ``rows`` is the
    field of its data that is a table, to be had as CSV at the same path with ``.csv``."""

    path: str
    area: str
    data: Callable[[ServerState, PageQuery], Struct]
    template: str = ""
    plots: bool = False
    rows: str = ""
    form: bool = False
    also: tuple[str, ...] = ()
    numbers: tuple[str, ...] = ()
