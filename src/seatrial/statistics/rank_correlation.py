"""Which covariates rise or fall with a figure, beyond chance: "elapsed rises with groups touched".

    found = correlations([CorrelationSample(strata, covariates, figures)])
    found[0][1]            # of the first sample's second covariate: Correlation(4.2, 0.001)

Figures are ranked within their stratum (the runs of a case), so what differs between cases is no
evidence. The statistic is the sum over strata of the products of ranks, which are divided by the
size of the stratum + 1 (van Elteren 1960), as a deviate. Chance is what figures show that are dealt
to the runs of their stratum anew. p is the share of the deals in which the largest deviate of all
covariates of all samples is as large (Westfall and Young 1993). So it is corrected for how many
were looked at, and covariates that are nearly the same do not count twice.
"""

from collections.abc import Sequence
from typing import NamedTuple

from seatrial.arrays import Floats
from seatrial.lazy import np
from seatrial.statistics.significance import ranks

DEALS = 2000
AT_ONCE = 100  # deals
SEED = 20260101


class CorrelationSample(NamedTuple):
    """Figures, shape (n,), the number of the stratum of each, and covariates, shape (k, n)."""

    strata: Sequence[int]
    covariates: Sequence[Sequence[float]]
    figures: Sequence[float]


class Correlation(NamedTuple):
    """A covariate and the figures of a sample: the ``deviate`` is below 0 where figures fall as it
    rises; ``p`` is two-sided and corrected."""

    deviate: float
    p: float


def correlations(samples: Sequence[CorrelationSample]) -> list[list[Correlation | None]]:
    """Return the correlation of each covariate of each sample; None for one that is the same for
    all figures of each stratum, or whose figures are."""
    ranked = [_Ranked(sample) for sample in samples]
    observed = [one.deviates(one.figures[None, :])[0] for one in ranked]
    largest = np.concatenate([_largest(ranked, at) for at in range(0, DEALS, AT_ONCE)])
    largest.sort()

    def told(deviate: float, known: bool) -> Correlation | None:
        as_large = DEALS - int(np.searchsorted(largest, abs(deviate) - 1e-9))
        return Correlation(deviate, (1 + as_large) / (1 + DEALS)) if known else None

    return [
        [*map(told, own.tolist(), one.known.tolist())]
        for own, one in zip(observed, ranked, strict=True)
    ]


def _largest(ranked: "Sequence[_Ranked]", at: int) -> Floats:
    """Return the largest absolute deviate of each of ``AT_ONCE`` deals; shape (AT_ONCE,)."""
    largest = np.zeros(AT_ONCE)
    for number, one in enumerate(ranked):
        if one.known.any():
            rng = np.random.default_rng([SEED, number, at])
            deviates = np.abs(one.deviates(one.dealt(rng)))
            largest = np.maximum(largest, deviates.max(axis=1))
    return largest


class _Ranked:
    """The ranks of a sample in the order of its strata, each with a mean of 0 in its stratum."""

    def __init__(self, sample: CorrelationSample) -> None:
        _, strata, sizes = np.unique(sample.strata, return_inverse=True, return_counts=True)
        order = np.argsort(strata, kind="stable")
        self._strata, ends = strata[order], np.cumsum(sizes)
        self._spans = [*zip((ends - sizes).tolist(), ends.tolist(), strict=True)]
        covariates = np.asarray(sample.covariates, dtype=float).reshape(-1, len(strata))
        self._covariates = np.array([self._ranks(own) for own in covariates[:, order]])
        self.figures = self._ranks(np.asarray(sample.figures, dtype=float)[order])
        variance = np.zeros(len(covariates))
        for (start, end), size in zip(self._spans, sizes.tolist(), strict=True):
            own = np.square(self._covariates[:, start:end]).sum(axis=1)
            variance += own * np.square(self.figures[start:end]).sum() / max(1, size - 1)
        self.known = variance > 1e-12
        self._scale = np.where(self.known, 1 / np.sqrt(np.where(self.known, variance, 1.0)), 0.0)

    def _ranks(self, values: Floats) -> Floats:
        """Return centred ranks within strata, the mean of them for equal values; shape (n,)."""
        found = np.empty(len(values))
        for start, end in self._spans:
            size = end - start
            found[start:end] = (ranks(values[start:end]) - (size + 1) / 2) / (size + 1)
        return found

    def deviates(self, figures: Floats) -> Floats:
        """Return the deviates of deals of the figures, shape (deals, n); shape (deals, k)."""
        found: Floats = figures @ self._covariates.T * self._scale
        return found

    def dealt(self, rng: "np.random.Generator") -> Floats:
        """Return the figures dealt anew within their strata; shape (AT_ONCE, n)."""
        keys = self._strata + rng.random((AT_ONCE, len(self._strata)))
        found: Floats = self.figures[keys.argsort(axis=1)]
        return found
