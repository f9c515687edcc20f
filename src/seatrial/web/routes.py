"""Every page, in one table. Each has a module in ``pages/`` and a template of the same name."""

from __future__ import annotations

import importlib
from collections.abc import Callable

from msgspec import Struct

from seatrial.web.page import Page
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState


def _data(module: str, function: str = "data") -> Callable[[ServerState, PageQuery], Struct]:
    """Return a function of a module of ``pages/``, which is imported when a page is first asked
    for, so that the server starts fast."""

    def data(state: ServerState, query: PageQuery) -> Struct:
        page = importlib.import_module(f"seatrial.web.pages.{module}")
        found: Struct = getattr(page, function)(state, query)
        return found

    return data


PAGES = (
    Page("/", "now", _data("now"), "now.html"),
    Page("/trials", "trials", _data("trials"), "trials.html", form=True),
    Page("/trials/{tag}", "trials", _data("trial"), "trial.html", plots=True),
    Page("/trials/{tag}/utilisation", "trials", _data("trial_plots", "utilisation")),
    Page("/trials/{tag}/in-flight", "trials", _data("trial_plots", "in_flight")),
    Page("/trials/{tag}/elapsed", "trials", _data("trial_plots", "elapsed")),
    Page("/trials/{tag}/loads", "trials", _data("trial_plots", "loads")),
    Page("/failures", "failures", _data("failures"), "failures.html", form=True, rows="failures"),
    Page("/runs", "runs", _data("runs"), "runs.html", form=True, rows="runs"),
    Page("/runs/{trial}/{run_id}", "runs", _data("run"), "run.html", form=True),
    Page("/machines", "machines", _data("machines"), "machines.html", form=True),
    Page("/machines/{machine}", "machines", _data("machine"), "machine.html", form=True),
    Page("/machines/{machine}/nodes/{node}", "machines", _data("node"), "node.html", form=True),
    Page("/network", "networks", _data("network", "listed"), "networks.html", form=True),
    Page("/network/{trial}/{run_id}", "networks", _data("network"), "network.html", form=True),
    Page("/network/{trial}/{run_id}/cells", "networks", _data("network", "cells")),
    Page("/compare", "compare", _data("compare"), "compare.html", form=True),
    Page("/history", "history", _data("history"), "history.html", form=True),
    Page("/scaling", "scaling", _data("scaling"), "scaling.html", form=True),
)
