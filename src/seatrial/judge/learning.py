"""Learn a reference from measurements.

value, lower, upper = learn([5693.6, 5701.2, 5688.0], "higher")      # 5693.6, -0.02, None
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median

from msgspec.structs import replace

from seatrial.judge.references import Reference
from seatrial.judge.statistics.spread import MAD_TO_SIGMA
from seatrial.model.test import Check, Test
from seatrial.units import Better, listed, unfit_of

MIN_TOLERANCE = 0.02
ONE_SAMPLE_TOLERANCE = 0.10
DEVIATIONS = 3.5


def learn(
    samples: Sequence[float], better: Better, two_sided: bool = False
) -> tuple[float, float | None, float | None]:
    """Return a reference from measurements: value, lower, upper, the latter two as in
    ``Reference``.

    The value is the median m. The tolerance is max(2 %, 3.5 s / |m|), where s is a robust standard
    deviation: 1.4826 b MAD for five samples or more, with b the small-sample correction of Croux
    and Rousseeuw (1992), or 1.2533 times the mean absolute deviation where more than half of the
    samples are equal and MAD is 0; range / d2 for two to four samples, with d2 the mean range of
    that many normal samples. One sample gives 10 %. It bounds the worse side alone: lower where
    higher is better, upper where lower is; with ``two_sided`` both. Raises ValueError where no
    reference can come of them.
    """
    if not samples:
        raise ValueError("a reference is learned from one figure or more")
    if reason := unfit_of(samples):
        raise ValueError(f"a reference is learned from figures that can be judged; {reason}")
    middle = median(samples)
    if middle == 0:
        raise ValueError("the median of the figures is 0; give min or max by hand")
    if len(samples) == 1:
        tolerance = ONE_SAMPLE_TOLERANCE
    else:
        tolerance = max(MIN_TOLERANCE, DEVIATIONS * _deviation(samples, middle) / abs(middle))
    if not tolerance < 1:
        raise ValueError(
            f"{len(samples)} figures scatter too much for a reference: they would allow "
            f"{100 * tolerance:.0f} %; find out why, or give min or max by hand"
        )
    value = float(f"{middle:.6g}")
    tolerance = min(0.9999, math.ceil(tolerance * 1e4 - 1e-6) / 1e4)
    lower = -tolerance if two_sided or better == "higher" else None
    return value, lower, tolerance if two_sided or better == "lower" else None


_MEAN_RANGE = {2: 1.128, 3: 1.693, 4: 2.059}
_CORRECTION = {5: 1.206, 6: 1.200, 7: 1.140, 8: 1.129, 9: 1.107}


def _deviation(samples: Sequence[float], middle: float) -> float:
    count = len(samples)
    if count in _MEAN_RANGE:
        return (max(samples) - min(samples)) / _MEAN_RANGE[count]
    off = [abs(sample - middle) for sample in samples]
    if spread := median(off):
        return MAD_TO_SIGMA * _CORRECTION.get(count, count / (count - 0.8)) * spread
    return 1.2533 * sum(off) / count


# ---- learned sums --------------------------------------------------------------------------------
#
# The sums of files that must be the same bit for bit, where they are learned references.


def with_sums(test: "Test", learned: Mapping[str, str]) -> "Test":
    """Return a test that checks ``learned`` sums, by the names of files. Of a file whose sum is not
    known, its checks ask only that it is there."""
    verify = [
        replace(check, sha256=learned[str(check.identical)])
        if is_learned(check) and learned.get(check.identical or "")
        else replace(check, identical=None, file=check.identical)
        if is_learned(check)
        else check
        for check in test.verify
    ]
    return replace(test, verify=verify)


def is_learned(check: Check) -> bool:
    """Return whether the sum of a check is a learned reference."""
    return check.identical is not None and check.sha256 is None


def learned_files(test: "Test") -> list[str]:
    """Return the files of a test whose sums are learned references."""
    return [str(check.identical) for check in test.verify if is_learned(check)]


def unlearned_sums(tests: "Mapping[str, Test]", expected: "Iterable[Reference]") -> str:
    """Return a note if files must be the same bit for bit and no sum of them has been learned; else
    ""."""
    known = {(one.test, one.file) for one in expected if one.file}
    files = [
        f"{file} of {name}"
        for name, test in tests.items()
        for file in learned_files(test)
        if (name, file) not in known
    ]
    if not files:
        return ""
    return f"no sum of {listed(files, 3)} has been learned, so every file passes"
