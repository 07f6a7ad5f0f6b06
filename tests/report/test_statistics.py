import math
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from elute.errors import EluteError
from elute.report.statistics import (
    Estimate,
    Interval,
    bootstrap_interval,
    estimate,
    grand_means,
    improvement_probabilities,
    interquartile_mean,
    interquartile_means,
    probability_of_improvement,
    wilson,
    winners,
)

# Cells of five seeds, with ties and an outlier.
OURS = [
    [0.91, 0.85, 1.02, 0.40, 0.97],
    [0.42, 0.55, 0.38, 0.61, 0.47],
    [0.10, 0.31, 0.22, 0.18, 0.05],
    [0.77, 0.77, 0.60, 0.93, 0.77],
]
THEIRS = [
    [0.80, 0.91, 0.75, 0.66, 0.88],
    [0.45, 0.35, 0.42, 0.30, 0.52],
    [0.20, 0.15, 0.28, 0.22, 0.31],
    [0.77, 0.64, 0.77, 0.81, 0.70],
]
SHORT = [cell[:3] for cell in OURS]


class TestRliable:
    """Figures of rliable 1.2.0 (arch 7.2.0, numpy 2.4.6); `tests/peers/test_rliable.py` asks it."""

    def test_interquartile_mean(self):
        assert interquartile_mean(OURS) == pytest.approx(0.5740000000000001, abs=1e-15)
        assert interquartile_mean(THEIRS) == pytest.approx(0.557, abs=1e-15)
        assert interquartile_mean(SHORT) == pytest.approx(0.5816666666666667, abs=1e-15)

    def test_probability_of_improvement(self):
        assert probability_of_improvement(OURS, THEIRS) == pytest.approx(0.58, abs=1e-15)
        assert probability_of_improvement(SHORT, THEIRS) == pytest.approx(7 / 12, abs=1e-15)
        assert probability_of_improvement(OURS, OURS) == 0.5

    @pytest.mark.parametrize(
        ("statistic", "samples", "theirs", "between_their_seeds"),
        [
            (interquartile_means, (OURS,), (0.488, 0.662), 0.001),
            (grand_means, (OURS,), (0.4995, 0.619), 0.001),
            (improvement_probabilities, (OURS, THEIRS), (0.405, 0.7475), 0.005),
        ],
    )
    def test_intervals(self, statistic, samples, theirs, between_their_seeds):
        ours = bootstrap_interval(statistic, *samples, resamples=50_000)
        assert ours == pytest.approx(theirs, abs=between_their_seeds + 1e-9)


class TestOneCell:
    def test_closed_form(self):
        cell = estimate([1.0, 2.0, 3.0, 4.0, 5.0])
        assert cell.mean == 3.0
        assert cell.seeds == 5
        assert cell.stderr == pytest.approx(math.sqrt(2.5 / 5))
        half = 2.776445105198 * math.sqrt(0.5)  # Student's t of 4 degrees of freedom
        assert cell.interval == pytest.approx((3 - half, 3 + half))

    def test_a_single_seed_has_no_spread(self):
        assert estimate([7.0]) == Estimate(7.0, None, None, 1)

    def test_interval_holds_the_mean_as_often_as_it_says(self):
        rng, asked, trials = np.random.default_rng(0), 0.8, 2000
        held = sum(
            cell.low <= 3.0 <= cell.high
            for cell in (estimate(rng.normal(3.0, 2.0, 4), asked).interval for _ in range(trials))
        )
        assert stats.binomtest(held, trials, asked).pvalue > 0.001


class TestInterquartileMean:
    def test_leaves_out_a_quarter_at_either_end(self):
        assert interquartile_mean([[-1e9, 1e9, 2.0], [3.0, 4.0, 9.0, 5.0, -7.0]]) == 3.5

    def test_rounds_the_quarter_down(self):
        assert interquartile_mean([[0.0, 1.0, 2.0]]) == 1.0
        assert interquartile_mean([[0.0, 1.0, 2.0, 3.0, 5.0]]) == 2.0
        assert interquartile_mean([[0.0, 9.0, 3.0]]) == 4.0

    def test_rows_of_a_batch_are_those_one_by_one(self):
        rng = np.random.default_rng(0)
        batch = [rng.normal(size=(6, 5)), rng.normal(size=(6, 3))]
        alone = [interquartile_mean([cell[row] for cell in batch]) for row in range(6)]
        np.testing.assert_allclose(interquartile_means(batch), alone, rtol=1e-15)


class TestImprovement:
    def test_counts_pairs_with_ties_half(self):
        # 1 > 0; 1 = 1; 3 > 0; 3 > 1: 3.5 of 4; the second cell is all ties
        assert probability_of_improvement([[1.0, 3.0], [2.0]], [[0.0, 1.0], [2.0]]) == (
            (3.5 / 4 + 0.5) / 2
        )

    @given(
        st.lists(st.integers(0, 5), min_size=1, max_size=6),
        st.lists(st.integers(0, 5), min_size=1, max_size=6),
    )
    def test_is_the_mann_whitney_statistic(self, x, y):
        u = stats.mannwhitneyu(x, y, method="asymptotic").statistic if len({*x, *y}) > 1 else None
        expected = 0.5 if u is None else u / (len(x) * len(y))
        assert probability_of_improvement([x], [y]) == pytest.approx(expected, abs=1e-12)
        assert probability_of_improvement([y], [x]) == pytest.approx(1 - expected, abs=1e-12)


class TestBootstrap:
    def test_of_three_scores_reaches_the_extremes(self):
        # All three draws the least: 1 / 27 = 3.7 %, more than the 2.5 % cut off.
        assert bootstrap_interval(grand_means, [[2.0, 5.0, 11.0]]) == (2.0, 11.0)

    def test_quantiles_of_the_exact_distribution(self):
        cells = [[0.0, 1.0, 4.0], [10.0, 12.0]]
        draws = [
            (Fraction(sum(a), 3) + Fraction(sum(b), 2)) / 2
            for a in product(map(int, cells[0]), repeat=3)
            for b in product(map(int, cells[1]), repeat=2)
        ]
        levels, counts = np.unique([float(draw) for draw in draws], return_counts=True)
        below = np.cumsum(counts) / len(draws)
        ends = [levels[np.searchsorted(below, p)] for p in (0.1, 0.9)]
        nearest = min(abs(below - p).min() for p in (0.1, 0.9))
        assert nearest > 0.005, "a step of the distribution at the quantile: chance would decide"
        found = bootstrap_interval(grand_means, cells, confidence=0.8, resamples=100_000)
        assert found == pytest.approx(ends, rel=1e-12)

    def test_never_mixes_cells(self):
        low, high = bootstrap_interval(grand_means, [[1.0, 1.5], [100.0, 100.0, 100.0]])
        assert (low, high) == (50.5, 50.75)

    def test_draws_that_all_agree_leave_no_interval(self):
        always = [[3.0, 4.0], [7.0, 8.0]], [[1.0, 2.0], [5.0, 6.0]]
        assert bootstrap_interval(improvement_probabilities, *always) is None
        assert bootstrap_interval(improvement_probabilities, *always[::-1]) is None

    def test_cells_of_the_same_runs_are_one(self):
        one = [[0.0, 1.0, 4.0]]
        alone, thrice = (bootstrap_interval(grand_means, cells) for cells in (one, one * 3))
        assert alone == thrice
        apart = bootstrap_interval(grand_means, [[0.0, 1.0, 4.0], [1.0, 0.0, 4.0], [4.0, 0.0, 1.0]])
        assert apart.high - apart.low < 0.8 * (alone.high - alone.low)

    def test_samples_are_drawn_each_by_itself(self):
        # Drawn together, x would always tie with itself and the interval would be the point 1/2.
        same = [[1.0, 2.0, 3.0, 4.0]]
        low, high = bootstrap_interval(improvement_probabilities, same, same)
        assert low < 0.3
        assert high > 0.7

    def test_same_seed_same_interval(self):
        same = [bootstrap_interval(interquartile_means, OURS, resamples=99, seed=4) for _ in "ab"]
        other = bootstrap_interval(interquartile_means, OURS, resamples=99, seed=5)
        assert same[0] == same[1] != other

    def test_more_confidence_is_wider(self):
        narrow, wide = (
            bootstrap_interval(grand_means, OURS, confidence=level) for level in (0.5, 0.99)
        )
        assert wide.low < narrow.low < narrow.high < wide.high

    def test_a_single_seed_in_a_cell_leaves_no_interval(self):
        assert bootstrap_interval(grand_means, [[1.0, 2.0], [3.0]]) is None
        assert bootstrap_interval(improvement_probabilities, [[1.0, 2.0]], [[3.0]]) is None


class TestWinners:
    def cell(self, mean, half):
        interval = None if half is None else Interval(mean - half, mean + half)
        return Estimate(mean, half, interval, 1 if half is None else 5)

    def test_the_best_alone_when_it_stands_apart(self):
        assert winners({"a": self.cell(1, 1), "b": self.cell(9, 2), "c": self.cell(6, 0.5)}) == (
            "b",
        )

    def test_ties_when_intervals_overlap_best_first(self):
        cells = {"a": self.cell(1, 1), "b": self.cell(8, 1), "c": self.cell(9, 0.5)}
        assert winners(cells) == ("c", "b")

    def test_ties_are_with_the_best_not_with_each_other(self):
        cells = {"a": self.cell(1, 1), "b": self.cell(2.5, 1), "c": self.cell(4, 1)}
        assert winners(cells) == ("c", "b")

    def test_ends_that_touch_overlap(self):
        assert winners({"a": self.cell(1, 1), "b": self.cell(3, 1)}) == ("b", "a")

    def test_nobody_wins_against_too_few_seeds_or_alone(self):
        assert winners({"a": self.cell(1, None), "b": self.cell(9, 1)}) == ()
        assert winners({"a": estimate([1.0, 1.1]), "b": estimate([9.0, 9.1, 9.2])}) == ()
        assert winners({"a": self.cell(1, 1)}) == winners({}) == ()

    def test_equal_scores_all_win(self):
        same = [3.0] * 5
        assert winners({"a": estimate(same), "b": estimate(same)}) == ("a", "b")


class TestWilson:
    @pytest.mark.parametrize("successes", [0, 1, 25, 43, 50])
    @pytest.mark.parametrize("confidence", [0.5, 0.95])
    def test_is_scipys(self, successes, confidence):
        theirs = stats.binomtest(successes, 50).proportion_ci(confidence, method="wilson")
        found = wilson(successes, 50, confidence)
        assert found == pytest.approx((theirs.low, theirs.high), abs=1e-14)

    def test_ends_solve_its_equation(self):
        z = 1.959963984540054
        for p in wilson(43, 50):
            assert abs(43 / 50 - p) == pytest.approx(z * math.sqrt(p * (1 - p) / 50), rel=1e-12)

    def test_stays_between_0_and_1(self):
        assert wilson(0, 3).low == 0.0
        assert wilson(3, 3).high == 1.0
        assert 0.0 < wilson(3, 3).low < wilson(30, 30).low < 1.0


@pytest.mark.parametrize(
    "call",
    [
        lambda: estimate([]),
        lambda: estimate([1.0, math.nan]),
        lambda: estimate([1.0, 2.0], confidence=95),
        lambda: estimate([math.inf]),
        lambda: interquartile_mean([]),
        lambda: interquartile_mean([[1.0], []]),
        lambda: interquartile_mean([[[1.0]]]),
        lambda: probability_of_improvement([[1.0]], [[1.0], [2.0]]),
        lambda: bootstrap_interval(improvement_probabilities, [[1.0, 2.0]], [[1.0], [2.0]]),
        lambda: bootstrap_interval(grand_means, [[1.0, 2.0]], resamples=0),
        lambda: bootstrap_interval(grand_means, [[1.0, 2.0]], confidence=1.0),
        lambda: wilson(1, 0),
        lambda: wilson(-1, 5),
        lambda: wilson(6, 5),
        lambda: wilson(1, 5, confidence=0.0),
    ],
)
def test_refuses(call):
    with pytest.raises(EluteError):
        call()
