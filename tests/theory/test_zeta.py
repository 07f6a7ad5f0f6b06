"""zeta and its derivatives, for the real and for the simplified schedule."""

import numpy as np
import pytest

from elute.diffusion.schedule import Schedule, Time
from elute.errors import EluteError
from elute.theory.zeta import REAL, SIMPLIFIED

TIMES = np.linspace(0, 1, 11)


def test_the_real_schedule_is_that_of_the_steps():
    assert REAL.zeta(1.0) == pytest.approx(5.025)
    assert REAL.zeta(TIMES) == pytest.approx(0.05 * TIMES + 4.975 * TIMES**2)
    linear = Schedule.linear()
    for t in TIMES:
        assert REAL.zeta(t) == pytest.approx(linear.zeta(Time(t)), abs=1e-9)
    steps = np.arange(1, 302)
    off = np.exp(-2 * REAL.zeta(steps / 1000)) / linear.alpha_bar[steps] - 1
    assert np.abs(off).max() == pytest.approx(1.06e-3, abs=1e-5)  # what N = 1000 steps differ by


@pytest.mark.parametrize("beta", [REAL, SIMPLIFIED], ids=["real", "simplified"])
def test_derivatives_by_differences(beta):
    t, h = np.linspace(0.1, 0.9, 9), 1e-5
    slope = (beta.zeta(t + h) - beta.zeta(t - h)) / (2 * h)
    assert beta.slope(t) == pytest.approx(slope, rel=1e-8)
    assert beta.slope(t, form="printed") == pytest.approx(2 * slope, rel=1e-8)
    bend = (beta.slope(t + h) - beta.slope(t - h)) / (2 * h)
    assert bend == pytest.approx(np.full(9, beta.curvature), rel=1e-6)
    assert beta.time(beta.zeta(t)) == pytest.approx(t)


def test_the_simplified_schedule_has_the_papers_ratio():
    t = np.linspace(0.1, 1, 5)
    ratio = SIMPLIFIED.slope(t) ** 2 / SIMPLIFIED.curvature
    assert ratio == pytest.approx(2 * SIMPLIFIED.zeta(t))


def test_another_form_is_refused():
    with pytest.raises(EluteError, match="expected printed or corrected"):
        REAL.slope(0.5, form="right")
