"""The formulas of well-known scores, as functions of plain numbers, each with its source.

ssp([rate(1065, 2048, 92.4), ...], 6384)        # Tflop/s of a system of 6,384 nodes
"""

import math
from collections.abc import Sequence
from statistics import harmonic_mean

from seatrial.verify.outputs.io500 import BANDWIDTH, METADATA


def rate(work: float, count: float, time: float) -> float:
    """SSP's rate of one benchmark on each node (or core): P = F / (n t), with F a fixed reference
    count of operations, n nodes and t seconds (Kramer, Shalf, Strohmaier: The NERSC Sustained
    System Performance Metric, LBNL-58868, 2005). MiniFE on Hopper: 1065 Tflop on 2,048 nodes in
    92.4 s are 0.00563 Tflop/s a node."""
    return work / (count * time)


def ssp(rates: Sequence[float], size: float) -> float:
    """SSP = N (P_1 P_2 ... P_M)^(1/M), with N nodes (or cores) of the system (LBNL-58868)."""
    return size * weighted_mean(rates, [1.0] * len(rates))


def over_time(values: Sequence[float], durations: Sequence[float]) -> float:
    """What a system delivers over its phases: the sum of SSP_k dt_k, so that what comes late counts
    for less (LBNL-58868)."""
    return math.fsum(value * time for value, time in zip(values, durations, strict=True))


def utilisation(count: float, size: float, reference_count: float, reference_size: float) -> float:
    """SSI's U = (n_ref / n) (N / N_ref): how many more of the problem the system holds at a time
    (Austin et al.: A Metric for Evaluating Supercomputer Performance in the Era of Extreme
    Heterogeneity, PMBS 2018)."""
    return reference_count / count * size / reference_size


def ssi(gains: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted geometric mean of c U S, with c the capability, U the utilisation and S the
    speed-up t_ref / t, or FOM / FOM_ref (Austin et al., PMBS 2018)."""
    return weighted_mean(gains, weights)


def hpl_rate(order: float, time: float) -> float:
    """Flop/s of HPL: N^2 (2/3 N + 3/2) / t (Petitet, Whaley, Dongarra, Cleary: HPL 2.0)."""
    return order * order * (2 / 3 * order + 3 / 2) / time


def graph500(teps: Sequence[float]) -> float:
    """The harmonic mean of traversed edges a second (Graph500 specification 2.0)."""
    return harmonic_mean(teps)


def io500(bandwidths: Sequence[float], rates: Sequence[float]) -> float:
    """sqrt(BW MD): BW the fourth root of the product of the four IOR phases in GiB/s, MD the eighth
    root of that of the eight metadata phases in kIOPS (io500.org, rules for submission). Raises
    ValueError where a phase is missing or not above 0."""
    if (len(bandwidths), len(rates)) != (len(BANDWIDTH), len(METADATA)):
        raise ValueError(f"it has {len(bandwidths)} and {len(rates)} phases, not 4 and 8")
    means = (weighted_mean(values, [1.0] * len(values)) for values in (bandwidths, rates))
    return math.sqrt(math.prod(means))


def weighted_mean(values: Sequence[float], weights: Sequence[float]) -> float:
    """The weighted geometric mean. Raises ValueError where a value is not above 0."""
    for value in values:
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{value:g} is not above 0: a geometric mean has no place for it")
    total = math.fsum(weights)
    pairs = zip(values, weights, strict=True)
    return math.exp(math.fsum(weight * math.log(value) for value, weight in pairs) / total)
