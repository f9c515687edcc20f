"""A range of finite numbers. ``nan`` is inside all bounds of click's own FloatRange.

@click.option("--days", type=FiniteRange(min=0, min_open=True))
"""

from __future__ import annotations

import math
from typing import Any

import click


class FiniteRange(click.FloatRange):
    """click's FloatRange, without ``nan`` and ``inf``."""

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        number = float(super().convert(value, param, ctx))
        if not math.isfinite(number):
            self.fail(f"{value} is not a finite number.", param, ctx)
        return number
