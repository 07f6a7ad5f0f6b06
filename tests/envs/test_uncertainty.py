"""The interval of a success rate."""

from statistics import NormalDist

import pytest

from elute.envs.task import TASKS
from elute.errors import EluteError
from elute.evaluation import Evaluation
from elute.uncertainty import wilson

Z = NormalDist().inv_cdf(0.975)


@pytest.mark.parametrize(("k", "n"), [(0, 10), (1, 3), (41, 50), (250, 500), (7, 7)])
def test_its_ends_are_the_shares_that_are_just_not_contradicted(k, n):
    """(k/n - p)^2 = z^2 p (1 - p) / n."""
    for p in wilson(k, n):
        assert (k / n - p) ** 2 == pytest.approx(Z**2 * p * (1 - p) / n, abs=1e-12)


def test_nothing_and_everything():
    """z^2 / (n + z^2) remains."""
    low, high = wilson(0, 20)
    assert low == 0.0
    assert high == pytest.approx(Z**2 / (20 + Z**2))
    assert wilson(20, 20) == pytest.approx((1 - high, 1.0))


def test_more_confidence_is_wider_and_more_trials_narrower():
    usual, sure, many = wilson(41, 50), wilson(41, 50, 0.99), wilson(410, 500)
    assert sure[0] < usual[0] < many[0] < 0.82 < many[1] < usual[1] < sure[1]


@pytest.mark.parametrize(("k", "n"), [(0, 0), (-1, 5), (6, 5)])
def test_what_cannot_be_counted_is_refused(k, n):
    with pytest.raises(EluteError, match="successes of"):
        wilson(k, n)


def test_an_evaluation_knows_its_interval():
    score = Evaluation(TASKS["hopper"], (1.0, 2.0, 6.0), (3, 4, 5), (None, True, False))
    assert score.success_interval == wilson(1, 2)
    assert Evaluation(TASKS["hopper"], (1.0,), (3,), (None,)).success_interval is None
