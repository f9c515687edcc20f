"""HPC Challenge: the figures of the summary section of hpccoutf.txt.

Begin of Summary section.
Success=1
HPL_Tflops=0.00150289
End of Summary section.
End of HPC Challenge tests.
"""

import re

from seatrial.judge.formats import UniqueValues, once
from seatrial.model.figures import MetricValue, number
from seatrial.units import Better

FILE = "hpccoutf.txt"

_REQUIRED: dict[str, tuple[str, Better]] = {
    "HPL_Tflops": ("Tflop/s", "higher"),
    "PTRANS_GBs": ("GB/s", "higher"),
    "StarDGEMM_Gflops": ("Gflop/s", "higher"),
    "SingleDGEMM_Gflops": ("Gflop/s", "higher"),
    **{
        f"{how}STREAM_{kernel}": ("GB/s", "higher")
        for how in ("Star", "Single")
        for kernel in ("Copy", "Scale", "Add", "Triad")
    },
    **{f"{how}RandomAccess_GUPs": ("GUP/s", "higher") for how in ("MPI", "Star", "Single")},
    **{f"{how}FFT_Gflops": ("Gflop/s", "higher") for how in ("MPI", "Star", "Single")},
    **{f"{which}PingPongLatency_usec": ("us", "lower") for which in ("Max", "Min", "Avg")},
    **{f"{which}PingPongBandwidth_GBytes": ("GB/s", "higher") for which in ("Max", "Min", "Avg")},
    **{f"{which}OrderedRingLatency_usec": ("us", "lower") for which in ("Naturally", "Randomly")},
    **{
        f"{which}OrderedRingBandwidth_GBytes": ("GB/s", "higher")
        for which in ("Naturally", "Randomly")
    },
}
# Added in 1.4.
_OPTIONAL: dict[str, tuple[str, Better]] = {
    f"{how}RandomAccess_LCG_GUPs": ("GUP/s", "higher") for how in ("MPI", "Star", "Single")
}
FIGURES = (*_REQUIRED, *_OPTIONAL)

_BEGIN = re.compile(r"^Begin of Summary section\.$", re.MULTILINE)
_END = re.compile(r"^End of Summary section\.$", re.MULTILINE)
_CLOSED = re.compile(r"^End of HPC Challenge tests\.$", re.MULTILINE)


def parse(text: str) -> list[MetricValue]:
    """Return the rates, bandwidths and latencies, under HPCC's own names. Raises ValueError with
    the reason if the summary is not complete, reports no success, or lacks a benchmark."""
    begin = once(_BEGIN, text, "line 'Begin of Summary section.'").end()
    end = once(_END, text, "line 'End of Summary section.'").start()
    once(_CLOSED, text, "line 'End of HPC Challenge tests.'")
    pairs: UniqueValues[str] = UniqueValues()
    for line in text[begin:end].strip("\n").split("\n"):
        name, _, value = line.partition("=")
        if name.isidentifier():
            pairs[name] = value
    if pairs["Success"] != "1":
        raise ValueError(f"its summary says Success={pairs['Success']}, not 1")
    figures = []
    for name, (unit, better) in (_REQUIRED | _OPTIONAL).items():
        if name in _REQUIRED or name in pairs:
            figure = number(pairs[name])
            if figure <= 0:
                raise ValueError(f"its summary says {name}={pairs[name]}: that was not run")
            figures.append(MetricValue(name, figure, unit, better))
    return figures
