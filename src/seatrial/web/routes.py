"""Every page, in one table. Each has a module in ``pages/`` and a template of the same name."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from seatrial.web import pages
from seatrial.web.page import Page
from seatrial.web.query import PageQuery
from seatrial.web.state.server_state import ServerState

if TYPE_CHECKING:
    from seatrial.web.pages import (
        compare,
        failures,
        history,
        machine,
        machines,
        network,
        node,
        now,
        run,
        runs,
        scaling,
        trial,
        trial_plots,
        trials,
    )
else:

    class _Later:
        """A module of ``pages/``, imported when the first of its pages is asked for, so that the
        server starts without."""

        def __init__(self, name: str) -> None:
            self._name = f"{pages.__name__}.{name}"

        def __getattr__(self, function: str) -> Callable[[ServerState, PageQuery], Struct]:
            def data(state: ServerState, query: PageQuery) -> Struct:
                return getattr(importlib.import_module(self._name), function)(state, query)

            return data

    globals().update(
        (each.name, _Later(each.name)) for each in pkgutil.iter_modules(pages.__path__)
    )

PAGES = (
    Page("/", "now", now.data, "now.html"),
    Page("/trials", "trials", trials.data, "trials.html", form=True),
    Page("/trials/{tag}", "trials", trial.data, "trial.html", plots=True, numbers=("from", "to")),
    Page("/trials/{tag}/utilisation", "trials", trial_plots.utilisation),
    Page("/trials/{tag}/in-flight", "trials", trial_plots.in_flight),
    Page("/trials/{tag}/elapsed", "trials", trial_plots.elapsed),
    Page("/trials/{tag}/loads", "trials", trial_plots.loads),
    Page("/failures", "failures", failures.data, "failures.html", form=True, rows="failures"),
    Page("/runs", "runs", runs.data, "runs.html", form=True, rows="runs"),
    Page("/runs/{trial}/{run_id}", "runs", run.data, "run.html", form=True),
    Page("/machines", "machines", machines.data, "machines.html", form=True),
    Page("/machines/{machine}", "machines", machine.data, "machine.html", form=True),
    Page("/machines/{machine}/nodes/{node}", "machines", node.data, "node.html", form=True),
    Page("/network", "networks", network.listed, "networks.html", form=True),
    Page("/network/{trial}/{run_id}", "networks", network.data, "network.html", form=True),
    Page("/network/{trial}/{run_id}/cells", "networks", network.cells),
    Page("/compare", "compare", compare.data, "compare.html", form=True),
    Page("/history", "history", history.data, "history.html", form=True, also=("points",)),
    Page("/scaling", "scaling", scaling.data, "scaling.html", form=True),
)
