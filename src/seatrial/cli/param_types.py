"""What options of several commands share.

@click.option("--days", type=FiniteRange(min=0, min_open=True))
@format_option("table", "json")
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """click's FloatRange, without ``inf`` and ``nan``, which is inside all of click's bounds."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number


def format_option(*forms: str, help: str | None = None) -> Callable[..., Any]:
    """Return the option ``--format``; the first form is the default."""
    kind = click.Choice(forms)
    return click.option(
        "--format", "form", type=kind, default=forms[0], show_default=True, help=help
    )
