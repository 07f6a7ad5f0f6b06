"""Theorem 5: the formula, the size it has, and what it means for the inflection."""

import numpy as np
import pytest
import sympy as sp

from elute.theory.bounds import noise_bound
from elute.theory.elasticity import elasticity, inflection_elasticity
from elute.theory.inflection import inflection_times


@pytest.mark.parametrize(
    ("dimension", "high", "low"),
    [(14, 0.0401, 0.0178), (23, 0.0360, 0.0164), (51, 0.0293, 0.0140), (119, 0.0225, 0.0113)],
)
def test_sizes_of_the_printed_elasticity(dimension, high, low):
    sizes = np.abs(elasticity(dimension, [0.05, 1e-4], form="printed"))
    assert sizes == pytest.approx([high, low], abs=5e-5)


@pytest.mark.parametrize("form", ["printed", "corrected"])
def test_the_formulas_are_derivatives(form):
    d, sigma = sp.symbols("d sigma", positive=True)
    if form == "printed":
        squared = 2 * d * (1 + sp.sqrt(8 * sp.log(2 / sigma) / d))
    else:
        tail = sp.log(1 / sigma)
        squared = 2 * (d + 2 * sp.sqrt(d * tail) + 2 * tail)
    symbolic = sp.lambdify((d, sigma), sigma * sp.diff(sp.log(squared) / 2, sigma))
    for dimension in (6, 23, 119):
        for failure_prob in (1e-4, 0.01, 0.05):
            found = elasticity(dimension, failure_prob, form=form)
            assert found == pytest.approx(symbolic(dimension, failure_prob), rel=1e-10)


def test_elasticity_of_the_inflection_by_differences():
    d, sigma, h = 23, 0.01, 1e-4
    least = 3.0 * noise_bound(d, sigma)
    up, down = (
        np.log(inflection_times(float(least / noise_bound(d, sigma * np.exp(s))))[0])
        for s in (h, -h)
    )
    (root,) = inflection_times(3.0)
    found = inflection_elasticity(root, d, sigma)
    assert found == pytest.approx((up - down) / (2 * h), rel=1e-4)
    assert found > 0  # a rarer failure has a larger C, and bends earlier
