"""A number of the command line that is one: ``nan`` is inside all bounds of click's own range.

@click.option("--days", type=FiniteRange(min=0, min_open=True))
"""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """click's range of numbers, without ``nan`` and ``inf``."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is no number to go by; give a finite one.", param, ctx)
        return number
