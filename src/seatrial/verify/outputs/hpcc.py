"""HPC Challenge: the figures of the summary section of hpccoutf.txt.

Begin of Summary section.
Success=1
HPL_Tflops=0.00150289
End of Summary section.
End of HPC Challenge tests.
"""

from __future__ import annotations

import re

from seatrial.units import Better
from seatrial.verify.figures import MetricValue, number, shown
from seatrial.verify.outputs._text import once

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
    pairs: dict[str, str] = {}
    for line in text[begin:end].strip("\n").split("\n"):
        key, _, value = line.partition("=")
        if key in pairs:
            raise ValueError(f"its summary has {shown(key)} twice")
        pairs[key] = value
    if pairs.get("Success") != "1":
        raise ValueError(f"its summary says Success={pairs.get('Success')}, not 1")
    figures = []
    for name, (unit, better) in {**_REQUIRED, **_OPTIONAL}.items():
        if name not in pairs:
            if name in _OPTIONAL:
                continue
            raise ValueError(f"its summary has no {name}")
        figure = number(pairs[name])
        if figure <= 0:
            raise ValueError(f"its summary says {name}={pairs[name]}: that was not run")
        figures.append(MetricValue(name, figure, unit, better))
    return figures
