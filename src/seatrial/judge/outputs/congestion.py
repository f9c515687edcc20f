"""The probe congestion: latency, bandwidth and allreduce, alone and under load, and the impact.

latency avg alone 1.52 loaded 4.61 us impact 3.03 low 2.87 high 3.2
congestion finished, all messages correct
"""

import re

from seatrial.judge.formats import once
from seatrial.model.figures import MetricValue, number, shown
from seatrial.units import Better

TESTS: dict[str, tuple[str, Better]] = {
    "latency": ("us", "lower"),
    "bandwidth": ("MiB/s", "higher"),
    "allreduce": ("us", "lower"),
}
STATISTICS = ("avg", "p99")
NETWORKS = ("isolated", "congested")  # the same as in GPCNeT, so that both make the same table

_TITLE = re.compile(r"^congestion of \d+ ranks: ", re.MULTILINE)
_DONE = re.compile(r"^congestion finished, all messages correct$", re.MULTILINE)
_ROW = r"^{test} {statistic} alone (\S+) loaded (\S+) {unit} impact (\S+) low (\S+) high (\S+)$"


def parse(text: str) -> list[MetricValue]:
    """Return avg and p99 of each test, labelled ``test`` and ``network`` (isolated or congested),
    and impact_avg and impact_p99 with the ends of their intervals, labelled ``test``. Raises
    ValueError with the reason if a line is missing."""
    once(_TITLE, text, "title 'congestion of'")
    once(_DONE, text, "closing line 'congestion finished'")
    figures: list[MetricValue] = []
    for test, (unit, better) in TESTS.items():
        for statistic in STATISTICS:
            pattern = _ROW.format(test=test, statistic=statistic, unit=unit)
            row = once(re.compile(pattern, re.MULTILINE), text, f"line of {test} {statistic}")
            values = [number(column) for column in row.groups()]
            if min(values) <= 0 or not values[3] <= values[2] <= values[4]:
                raise ValueError(f"its line of {test} {statistic} cannot be: {shown(row[0])}")
            for network, value in zip(NETWORKS, values, strict=False):
                labels: dict[str, int | str] = {"test": test, "network": network}
                figures.append(MetricValue(statistic, value, unit, better, labels=labels))
            for ending, value in zip(("", "_low", "_high"), values[2:], strict=True):
                name = f"impact_{statistic}{ending}"
                figures.append(MetricValue(name, value, "1", "lower", labels={"test": test}))
    return figures
