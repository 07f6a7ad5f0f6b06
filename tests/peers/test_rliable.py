"""rliable finds our interquartile means, probabilities of improvement and their intervals.

`make test-peers` builds the environment it needs. The figures in `tests/report/test_statistics.py`
are those that rliable 1.2.0 gave here.
"""

import numpy as np
import pytest

from elute.report.statistics import (
    bootstrap_interval,
    improvement_probabilities,
    interquartile_mean,
    interquartile_means,
    probability_of_improvement,
)

pytestmark = pytest.mark.peers

SEEDS, CELLS, RESAMPLES = 5, 6, 2000


@pytest.fixture(scope="module")
def rliable():
    return pytest.importorskip("rliable", reason="not installed: pip install rliable 'pandas<3'")


@pytest.fixture(params=range(3))
def scores(request):
    """Rounded, so that there are ties."""
    rng = np.random.default_rng(request.param)
    return [np.round(rng.normal(mean, 1, (CELLS, SEEDS)), 1) for mean in (0.3, 0.0)]


def test_points(rliable, scores):
    from rliable import metrics  # noqa: PLC0415 (a peer)

    ours, theirs = scores
    assert interquartile_mean(ours) == pytest.approx(metrics.aggregate_iqm(ours.T), abs=1e-14)
    assert probability_of_improvement(ours, theirs) == pytest.approx(
        metrics.probability_of_improvement(ours.T, theirs.T), abs=1e-14
    )


@pytest.mark.parametrize("two", [False, True])
def test_intervals(rliable, scores, two):
    from rliable import library, metrics  # noqa: PLC0415 (a peer)

    ours, theirs = scores
    samples = [ours, theirs] if two else [ours]
    metric = metrics.probability_of_improvement if two else metrics.aggregate_iqm
    statistic = improvement_probabilities if two else interquartile_means
    np.random.seed(0)  # noqa: NPY002 (its random_state does not reach its draws)
    given = {"method": [sample.T for sample in samples] if two else ours.T}
    _, found = library.get_interval_estimates(
        given, lambda *drawn: np.array([metric(*drawn)]), reps=RESAMPLES
    )
    # The share of draws below an end is 2.5 % +- .35 %: six deviations of it, in quantiles of ours.
    off = 6 * np.sqrt(0.025 * 0.975 / RESAMPLES)
    for end, at in zip(found["method"].ravel(), (0.025, 0.975), strict=True):
        low, high = max(at - off, 0.001), min(at + off, 0.999)
        assert quantile(statistic, samples, low) <= end <= quantile(statistic, samples, high)


def quantile(statistic, samples, share):
    """Of our bootstrap distribution."""
    interval = bootstrap_interval(statistic, *samples, confidence=abs(1 - 2 * share))
    return interval.low if share < 0.5 else interval.high
