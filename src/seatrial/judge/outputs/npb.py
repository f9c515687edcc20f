"""NAS Parallel Benchmarks 3: rate and time of each benchmark.

CG Benchmark Completed.
Class           =                        S
Time in seconds =                     0.01
Mop/s total     =                  5000.00
Verification    =               SUCCESSFUL
"""

import re

from seatrial.judge.formats import UniqueValues
from seatrial.model.figures import MetricValue, number, shown

_STARTED = re.compile(r"^[ \t]*NAS Parallel Benchmarks?\b.*Benchmark[ \t]*$", re.MULTILINE)
_COMPLETED = re.compile(r"^[ \t]*(\S+) Benchmark Completed\.?[ \t]*$", re.MULTILINE)
_VERIFIED = re.compile(r"^[ \t]*Verification[ \t]*=", re.MULTILINE)
_RATES = {
    "Mop/s total": "rate",
    "Mop/s/process": "rate_per_process",
    "Mop/s/thread": "rate_per_thread",
}
# Where the first is a line of a result, so is the rate.
_TOLD_BY = {
    "Mop/s total": "Verification",
    "Mop/s/process": "Total processes",
    "Mop/s/thread": "Total threads",
}


def parse(text: str) -> list[MetricValue]:
    """Return rate (and rate_per_process or rate_per_thread) and time, labelled ``benchmark`` and
    ``class``. Raises ValueError with the reason if a benchmark did not complete, or its
    verification was not successful."""
    _, *parts = _COMPLETED.split(text)
    completed = list(zip(parts[::2], parts[1::2], strict=True))
    if not completed:
        raise ValueError("its line '... Benchmark Completed' is missing")
    started = len(_STARTED.findall(text))
    if started > len(completed):
        raise ValueError(f"{started} benchmarks were started, and {len(completed)} completed")
    if len(_VERIFIED.findall(text)) > len(completed):
        raise ValueError("a line '... Benchmark Completed' is missing")
    return [figure for benchmark, block in completed for figure in _of_one(benchmark, block)]


def _of_one(benchmark: str, block: str) -> list[MetricValue]:
    pairs: UniqueValues[str] = UniqueValues()
    for line in block.split("\n"):
        key, equals, value = line.partition("=")
        if equals:
            pairs[key.strip()] = value.strip()
        if "Verification" in pairs:
            break
    if pairs["Verification"] != "SUCCESSFUL":
        raise ValueError(f"the verification of {shown(benchmark)}: {shown(pairs['Verification'])}")
    labels: dict[str, int | str] = {"benchmark": benchmark, "class": pairs["Class"]}
    figures = [MetricValue("time", number(pairs["Time in seconds"]), "s", "lower", labels=labels)]
    for key, name in _RATES.items():
        if key in pairs or _TOLD_BY[key] in pairs:
            rate = number(pairs[key])
            figures.append(MetricValue(name, rate, "Mop/s", "higher", labels=labels))
    return figures
