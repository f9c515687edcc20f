"""The advertised figures of a file system, as a person writes them.

Advertised("50 GB/s").value, Advertised("50 GB/s").unit        # 50.0, "GB/s"
"""

from __future__ import annotations

import re
from typing import Annotated

from seatrial.model.file_model import Quantity, checked, doc
from seatrial.units import unfit

_FIGURE = r"(\d{1,30}(?:\.\d{1,30})?(?:[eE][+-]?\d{1,3})?)(?:\s+|(?=[A-Za-z]))(\S{1,40})"
_LONGEST = 80


class Advertised(Quantity):
    """A figure that was promised: ``50 GB/s``."""

    form = Annotated[int | float | str, doc("a number above 0 and its unit: 50 GB/s, 50000 1/s")]
    __slots__ = ("unit", "value")

    def __init__(self, written: int | float | str) -> None:
        super().__init__(written)
        text = str(written).strip()[:_LONGEST]
        match = re.fullmatch(_FIGURE, text)
        if not match:
            raise ValueError(f"{text!r} is no figure with a unit; write e.g. 50 GB/s or 50000 1/s")
        self.value, self.unit = float(match[1]), match[2]
        if fault := "not more than 0" if self.value <= 0 else unfit(self.value):
            raise ValueError(f"{text!r} is {fault}; write what was promised, e.g. 50 GB/s")


def _is_metric(name: str) -> None:
    if not name.strip() or not name.isprintable() or "{" in name or "/" in name:
        raise ValueError(f"{name!r} is no name of a metric; write e.g. write, read or file_create")


AdvertisedName = Annotated[str, checked(_is_metric)]
