"""fio 3, its JSON: rate, operations a second and latency of each direction, of each group of jobs.

    fio --output-format=json --group_reporting --rw=write ...

The figures of the first job that writes, or that reads, have no label, those of others the label
``job``. ``write_latency`` is the mean time from the call to its end (fio's ``lat``),
``write_latency_p99`` the 99th percentile of completions (``clat``).
"""

from collections import Counter
from collections.abc import Iterator

from msgspec import DecodeError, Struct, field

from seatrial.judge.formats import json_in
from seatrial.model.figures import MetricValue, shown
from seatrial.model.file_model import decoder

_P99 = "99.000000"
_WITHIN = 0.01  # of its rate: io_bytes by runtime, which is in whole ms


class _Latency(Struct):
    mean: float
    percentile: dict[str, float] = {}


class _Direction(Struct):
    size: int = field(name="io_bytes")
    rate: float = field(name="bw_bytes")
    operations: float = field(name="iops")
    runtime: float  # ms
    latency: _Latency = field(name="lat_ns")
    completion: _Latency = field(name="clat_ns")


class _Job(Struct):
    name: str = field(name="jobname")
    error: int
    read: _Direction
    write: _Direction


class _Output(Struct):
    version: str = field(name="fio version")
    jobs: list[_Job]


def parse(text: str) -> list[MetricValue]:
    """Return write, write_iops, write_latency and write_latency_p99, and so of read, as far as they
    were run. Raises ValueError with the reason if the JSON is not whole, a job ended with an error,
    or nothing was run."""
    try:
        output = decoder(_Output).decode(json_in(text))
    except (DecodeError, RecursionError, UnicodeEncodeError) as error:
        raise ValueError(f"its JSON is not whole, or not that of fio 3: {error}") from None
    names = Counter(job.name for job in output.jobs)
    if names and (several := names.most_common(1)[0])[1] > 1:
        raise ValueError(f"it has {several[1]} jobs {shown(several[0])}: give --group_reporting")
    figures: list[MetricValue] = []
    for job in output.jobs:
        if job.error:
            raise ValueError(f"its job {shown(job.name)} ended with error {job.error}")
        for name, ran in (("write", job.write), ("read", job.read)):
            is_first = all(figure.name != name for figure in figures)
            figures += _figures(name, ran, job.name, {} if is_first else {"job": job.name})
    if not figures:
        raise ValueError("its jobs wrote and read nothing")
    return figures


def _figures(
    name: str, ran: _Direction, job: str, labels: dict[str, int | str]
) -> Iterator[MetricValue]:
    if not ran.size:
        return
    if ran.runtime <= 0 or abs(ran.size * 1000 / ran.runtime - ran.rate) > _WITHIN * ran.rate:
        raise ValueError(f"its rate of {name} of {shown(job)} is not its bytes by its time")
    yield MetricValue(name, ran.rate / 2**20, "MiB/s", "higher", labels=labels)
    yield MetricValue(f"{name}_iops", ran.operations, "ops/s", "higher", labels=labels)
    yield MetricValue(f"{name}_latency", ran.latency.mean / 1000, "us", "lower", labels=labels)
    if (p99 := ran.completion.percentile.get(_P99)) is not None:
        yield MetricValue(f"{name}_latency_p99", p99 / 1000, "us", "lower", labels=labels)
