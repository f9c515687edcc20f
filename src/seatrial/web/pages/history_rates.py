"""The part of the page History that shows how often the runs of each test passed."""

from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from seatrial import draw
from seatrial.structs import copied
from seatrial.studies.success_rate import SuccessRates
from seatrial.units import SECOND_NS
from seatrial.web.formatting import NARROW, WIDE

MAX_RATES = 50  # of a test, the latest


class DayRate(Struct, frozen=True, kw_only=True):
    """The share of the runs of a test that passed, of a trial on one day, with its 95 % interval.
    ``time`` (ns) is that of the first of them."""

    time: int
    trial: str
    passed: int
    counted: int
    rate: float
    low: float
    high: float


class RateLine(Struct, frozen=True, kw_only=True):
    """The success rates of a test on a machine, by time."""

    machine: str
    test: str
    rates: list[DayRate]

    def chart(self, wide: bool = False) -> Any:
        """Draw the rates as dots, and the ends of their intervals, as SVG."""
        kinds = (("95 %", "low", 4, 3), ("", "high", 4, 3), ("passed", "rate", 1, 1))
        return draw.chart(
            [
                draw.ChartSeries(
                    name,
                    [(each.time / SECOND_NS, 100 * getattr(each, key)) for each in self.rates],
                    "dots",
                    colour,
                    form,
                )
                for name, key, colour, form in kinds
            ],
            title=f"Success rate of {self.test} on {self.machine}",
            about=f"{len(self.rates)} rates, each of a trial and a day",
            x=draw.Axis(kind="time"),
            y=draw.Axis("passed", "%"),
            width=WIDE if wide else NARROW,
            height=200,
        )


def rate_lines(found: Iterable[SuccessRates]) -> list[RateLine]:
    """Return the rates of tests, those that did worst the latest time first."""
    return [
        _rate_line(each)
        for each in sorted(found, key=lambda one: (one.rates[-1].rate, one.test, one.machine))
    ]


def _rate_line(series: SuccessRates) -> RateLine:
    rates = [
        copied(DayRate, each, rate=each.rate, low=each.interval[0], high=each.interval[1])
        for each in series.rates[-MAX_RATES:]
    ]
    return RateLine(machine=series.machine, test=series.test, rates=rates)
