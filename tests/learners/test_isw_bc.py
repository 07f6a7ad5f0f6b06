"""ISW-BC clones everything as far as the expert would do it."""

from dataclasses import replace

import numpy as np
import pytest
import torch

from elute.errors import EluteError
from elute.learners.bc import BC
from elute.learners.isw_bc import ISWBC, importance
from elute.learners.ratio import Ratio
from elute.rng import Seeds
from elute.types import DemoSet
from learners.point_mass import both, demonstrations
from learners.test_ratio import EXPERT, UNION


def test_the_population_identity_on_four_bins():
    with np.errstate(divide="ignore"):
        weights = importance(torch.tensor(np.log(EXPERT / UNION)))
    np.testing.assert_allclose(weights, [2.0, 1.5, 0.8, 0.0])
    for f in Seeds(0)("f").standard_normal((5, 4)):
        assert (UNION * weights * f).sum() == pytest.approx((EXPERT * f).sum(), abs=1e-12)


def test_equal_sets_weigh_one():
    demos = demonstrations(8, noise=0.3)
    _, weights = ISWBC(updates=300, ratio=Ratio(batch_size=64)).weigh(
        DemoSet(demos, demos), Seeds(0)("learn")
    )
    assert weights.mean() == pytest.approx(1.0, abs=0.1)
    assert weights.std() < 0.2


def test_a_large_threshold_recovers_bc_on_near_expert_pairs_only():
    demos = both(supplementary=12, noise=0.6)
    sharp = ISWBC(
        updates=400, batch_size=64, threshold=2.0, ratio=Ratio(learning_rate=3e-3, batch_size=64)
    )
    policy, weights = sharp.weigh(demos, Seeds(0)("learn"))
    kept = weights > 0
    off = np.abs(demos.all.actions - demos.all.extras["clean_actions"])[:, 0]
    assert 0 < kept.mean() < 1
    assert (weights[kept] >= 2.0).all()
    assert off[kept].max() < np.median(off[len(demos.optimal) :])
    rows = demos.all.pick(np.flatnonzero(kept))
    near = BC(updates=400, batch_size=64).clone(rows, Seeds(0)("learn"))
    noisy = BC(updates=400, batch_size=64).clone(demos.supplementary, Seeds(0)("learn"))
    acts, of_near, of_noisy = (p.act(rows.observations) for p in (policy, near, noisy))
    assert np.abs(acts - of_near).mean() < 0.5 * np.abs(acts - of_noisy).mean()


def test_a_threshold_above_all_ratios_is_said():
    with pytest.raises(EluteError, match="no row has a ratio of 50"):
        replace(ISWBC(updates=5), threshold=50.0).fit(both(), Seeds(0)("learn"))


def test_both_sets_are_needed():
    with pytest.raises(EluteError, match="no supplementary"):
        ISWBC(updates=5).fit(DemoSet(demonstrations(2)), Seeds(0)("learn"))


def test_the_papers_settings():
    paper = ISWBC.paper()
    assert (paper.updates, paper.batch_size, paper.learning_rate) == (1_000_000, 256, 3e-4)
    assert (paper.ratio.guard, paper.ratio.penalty, paper.threshold) == (1e-3, 1.0, 0.0)
    assert (paper.actor.hidden, paper.actor.activation) == ((256, 256), "relu")
    replace(paper, updates=3).fit(both(), Seeds(0)("learn"))
