"""Confidences: given, derived, learnt. Numbers of tests are sections of the method notes."""

from dataclasses import replace

import numpy as np
import pytest
import torch
from torch.nn.functional import softplus

from elute.envs.task import find_task
from elute.episodes import Episodes
from elute.errors import EluteError
from elute.learners.confidence import Confidence, confidence_risk, demonstrator_return
from elute.learners.ic_gail import mixture_weights
from elute.learners.two_iwil import TwoIWIL
from elute.rng import Seeds
from elute.types import DemoSet
from learners.online import FEW, look, scene, task
from learners.point_mass import both, demonstrations


def known(demos, **settings):
    return Confidence(**settings).known(demos, task(), Seeds(0)("method"))


def marked(optimal, supplementary):
    """Both sets with a column; none where it is None."""
    given = []
    for rows, value in zip(both().given, (optimal, supplementary), strict=True):
        column = None if value is None else np.broadcast_to(value, len(rows))
        given.append(rows if column is None else rows.with_extra("confidence", column))
    return DemoSet(*given)


def test_a_column_is_taken_as_it_is():
    n_good, n_noisy = (len(d) for d in both().given)
    np.testing.assert_array_equal(
        known(marked(np.nan, 0.25)), [*[np.nan] * n_good, *[0.25] * n_noisy]
    )


def test_optimal_demonstrations_without_a_column_are_optimal():
    n_good, n_noisy = (len(d) for d in both().given)
    np.testing.assert_array_equal(known(marked(None, 0.25)), [*[1.0] * n_good, *[0.25] * n_noisy])


def test_a_column_of_the_optimal_demonstrations_alone_says_nothing_about_the_others():
    with pytest.raises(EluteError, match="only the optimal demonstrations have a column") as error:
        known(marked(1.0, None))
    assert "NaN" in error.value.hint
    only = DemoSet(marked(0.5, None).optimal, None)
    assert set(known(only)) == {0.5}


@pytest.mark.parametrize("share_unknown", [0.0, 0.5])
def test_2iwil_gives_more_to_the_optimal_set_than_to_one_of_confidence_03(share_unknown):
    n_good, n_noisy = (len(d) for d in both().given)
    column = np.where(np.arange(n_noisy) % 10 < 10 * share_unknown, np.nan, 0.3)
    seen, _ = scene(marked(None, column))
    weights = TwoIWIL(confidence=FEW).begin(seen)(look(None)).expert
    assert weights[:n_good].mean() > weights[n_good:].mean()


@pytest.mark.parametrize("bad", [-0.01, 1.5, np.inf])
def test_a_column_out_of_0_to_1_is_refused_by_row(bad):
    demos = both()
    column = np.full(len(demos.supplementary), 0.5)
    column[7] = bad
    spoilt = DemoSet(demos.optimal, demos.supplementary.with_extra("confidence", column))
    with pytest.raises(EluteError, match=r"noisy: confidence is .* in row 7; expected 0 to 1"):
        known(spoilt)


def test_words_are_no_confidence():
    demos = both()
    column = np.full(len(demos.supplementary), "high")
    with pytest.raises(EluteError, match="confidence is <U4"):
        known(DemoSet(None, demos.supplementary.with_extra("confidence", column)))


@pytest.mark.parametrize("optimal", [np.nan, None])
def test_only_unknown_confidences_are_refused(optimal):
    with pytest.raises(EluteError, match="no row has a confidence"):
        known(marked(optimal, np.nan))


def test_no_confidence_at_all_leaves_2iwil_nothing():
    with pytest.raises(EluteError, match="no row has any confidence"):
        TwoIWIL().begin(scene(marked(0.0, 0.0))[0])


def test_a_fifth_of_the_rows_is_labelled_by_the_return_of_their_demonstrator():
    demos, of = both(), replace(task(), random_score=-30.0)
    q = Confidence().known(demos, of, Seeds(0)("method"))
    labelled = ~np.isnan(q)
    assert labelled.sum() == round(0.2 * len(q))
    good, noisy = (demonstrator_return(d, of) for d in demos.given)
    n_good = len(demos.optimal)
    assert set(q[:n_good][labelled[:n_good]]) == {1.0}
    share = (noisy + 30) / (good + 30)
    np.testing.assert_allclose(np.unique(q[n_good:][labelled[n_good:]]), [share])
    assert 0 < share < 1


def test_without_a_random_score_the_worse_demonstrator_has_none():
    q = known(both(), labelled=1.0)
    assert set(q[: len(both().optimal)]) == {1.0}
    assert set(q[len(both().optimal) :]) == {0.0}


def test_without_rewards_the_sets_say_it():
    demos = DemoSet(*(replace(d, rewards=None) for d in both().given))
    assert set(known(demos, labelled=1.0)) == {0.0, 1.0}
    with pytest.raises(EluteError, match="one set without rewards"):
        known(DemoSet(None, demos.supplementary))


def rows(lengths, terminated, rewards=1.0):
    """Episodes that earn so much at each step."""
    n = sum(lengths)
    return replace(
        demonstrations(1).first(1),
        observations=np.zeros((n, 2)),
        actions=np.zeros((n, 1)),
        next_observations=None,
        extras={},
        rewards=np.broadcast_to(np.repeat(rewards, lengths if np.ndim(rewards) else n), n),
        episodes=Episodes.of(lengths, terminated, [not t for t in terminated]),
    )


def test_one_set_with_rewards_goes_by_the_return_of_each_episode():
    """Returns of 60, 40 and, of a cut one, unknown; random actions earn 20."""
    of = replace(find_task("hopper"), random_score=20.0)
    one = DemoSet(None, rows([60, 40, 90], [True, True, False]))
    q = Confidence(labelled=1.0).known(one, of, Seeds(0)("method"))
    np.testing.assert_array_equal(q, np.repeat([1.0, 0.5, np.nan], [60, 40, 90]))
    share = Confidence(labelled=0.2).known(one, of, Seeds(0)("method"))
    assert (~np.isnan(share)).sum() == 20
    np.testing.assert_array_equal(share[~np.isnan(share)], q[~np.isnan(share)])


def test_one_set_of_cut_episodes_goes_by_their_mean_rewards():
    of = replace(find_task("hopper"), random_score=None)
    one = DemoSet(rows([50, 10, 40], [False] * 3, [1.0, 3.0, 1.5]), None)
    q = Confidence(labelled=1.0).known(one, of, Seeds(0)("method"))
    np.testing.assert_allclose(q, np.repeat([0.0, 1.0, 0.25], [50, 10, 40]), rtol=1e-12)


@pytest.mark.parametrize(
    ("lengths", "terminated"),
    [([60], [True]), ([60, 60], [True, True]), ([60, 40], [True, False]), ([9, 8], [False] * 2)],
)
def test_one_set_without_different_returns_is_refused(lengths, terminated):
    with pytest.raises(EluteError, match="nothing says which rows are better"):
        Confidence().known(
            DemoSet(None, rows(lengths, terminated)), find_task("hopper"), Seeds(0)("method")
        )


def test_a_cut_is_no_end_of_an_episode():
    hopper = find_task("hopper")
    assert demonstrator_return(rows([60, 40], [True, True]), hopper) == 50
    assert demonstrator_return(rows([60, 40], [True, False]), hopper) == 100
    assert demonstrator_return(rows([50], [False]), hopper) == 1000
    assert demonstrator_return(rows([1000, 1000], [False, False]), hopper) == 1000


def test_9_the_risk_is_that_of_knowing_all_labels():
    """With q in {0, 1} and no unlabelled rows it is the cross entropy, from either side."""
    rng = torch.Generator().manual_seed(0)
    scores, q = torch.randn(40, generator=rng), (torch.rand(40, generator=rng) < 0.4).float()
    cross = torch.nn.functional.binary_cross_entropy_with_logits(scores, q)
    for mean in (0.4, 0.6):
        risk = confidence_risk(scores, q, scores[:1], 0.0, mean)
        torch.testing.assert_close(risk, cross)


def test_9_it_matters_which_row_has_which_confidence():
    rng = torch.Generator().manual_seed(0)
    scores, others = torch.randn(40, generator=rng), torch.randn(60, generator=rng)
    q = torch.rand(40, generator=rng)
    order = torch.randperm(40, generator=rng)
    risk = confidence_risk(scores, q, others, 0.6, 0.4)
    torch.testing.assert_close(confidence_risk(scores[order], q[order], others, 0.6, 0.4), risk)
    assert abs(confidence_risk(scores, q[order], others, 0.6, 0.4) - risk) > 1e-3


def test_9_what_would_be_negative_counts_as_nothing():
    scores, q = torch.full((5,), 8.0), torch.full((5,), 0.9)
    risk = confidence_risk(scores, q, torch.full((5,), -8.0), 0.5, 0.4)
    torch.testing.assert_close(risk, (q * softplus(-scores)).mean())


def test_9_two_gaussians_are_told_apart_from_a_fifth_of_the_labels():
    rng = np.random.default_rng(0)
    good = rng.random(2000) < 0.5
    points = rng.normal(np.where(good, 1.5, -1.5)[:, None], 1.0, (2000, 2))
    q = 1 / (1 + np.exp(-2 * 1.5 * points.sum(axis=1)))  # the exact posterior
    told = np.where(rng.random(2000) < 0.2, q, np.nan)
    seen, _ = scene()
    seen = seen._replace(inputs=torch.tensor(points, dtype=torch.float32))
    learnt = Confidence(updates=2000).learn(seen, told)
    hidden = np.isnan(told)
    np.testing.assert_array_equal(learnt[~hidden], q[~hidden])
    ranks = learnt[hidden].argsort().argsort() + 1.0
    positive = good[hidden]
    n, m = positive.sum(), (~positive).sum()
    auc = (ranks[positive].sum() - n * (n + 1) / 2) / (n * m)
    assert auc > 0.95


def test_9_weights_of_2iwil_average_to_1_and_follow_the_confidence():
    demos = marked(1.0, 0.25)
    seen, _ = scene(demos)
    weights = TwoIWIL(confidence=FEW).begin(seen)(look(None)).expert
    assert weights.mean().item() == pytest.approx(1.0, abs=1e-5)
    assert (weights[0] / weights[-1]).item() == pytest.approx(4.0, rel=1e-5)


def test_9_ic_gails_terms_keep_their_sum():
    """All weights of the agent's side, the policy's and the worse rows', add up to 1."""
    q = np.array([1.0, 0.5, np.nan, 0.1, np.nan])
    weights = mixture_weights(q, 0.7)
    assert weights.policy == 0.7
    assert weights.agent.mean().item() == pytest.approx(0.3, abs=1e-6)
    assert weights.agent[[0, 2, 4]].abs().max() == 0
    ratio = weights.agent[3] / weights.agent[1]
    assert ratio.item() == pytest.approx(0.9 / 0.5, rel=1e-5)


def test_all_confidences_1_leave_ic_gail_without_a_third_term():
    weights = mixture_weights(np.array([1.0, np.nan, 1.0]), 0.7)
    assert weights.policy == 1.0
    assert weights.agent.abs().max() == 0
    assert torch.isfinite(weights.agent).all()


@pytest.mark.parametrize("bad", [{"labelled": 0.0}, {"labelled": 1.1}, {"dropout": 1.0}])
def test_shares_that_are_none_are_refused(bad):
    with pytest.raises(EluteError, match="expected shares"):
        Confidence(**bad)
