"""The scripted operator: perfect at full skill, flawed below, seeded, shipped as it was made."""

import numpy as np
import pytest

from elute.collect import catalogue
from elute.collect.operator import (
    ABOVE,
    LEVELS,
    SHIPPED,
    TOLERANCE,
    Reacher,
    demonstrate,
    draw_flaws,
    operate,
    parse_skill,
    ten_like,
    twist_action,
)
from elute.collect.roboturk import members
from elute.demos.audit.audit import audit
from elute.demos.files import load
from elute.envs.make import make
from elute.envs.sawyer_arm import GAINS, GRIP_AT, LINKS, SPEEDS, handle_distance, pose
from elute.envs.task import find_task
from elute.errors import EluteError
from elute.evaluation import evaluate
from elute.rng import Seeds

TASK = find_task("sawyer-reach")


@pytest.fixture(scope="module")
def shipped():
    return load(SHIPPED)


def test_a_wanted_velocity_is_what_the_joints_are_asked_for():
    """J q' = v, where q' is what the soft servo makes of the action, but for the damping."""
    seen = np.array([make(TASK).reset(seed=seed)[0] for seed in range(3)])
    velocity = np.random.default_rng(0).normal(0, 0.1, (3, 3))
    gains, dampings = np.array(GAINS), np.array([link.damping for link in LINKS])
    joints = twist_action(seen, velocity) * SPEEDS * gains / (gains + dampings)
    moved = np.einsum("nij,nj->ni", pose(seen[:, :7], seen[:, 7:14]).jacobian, joints)
    np.testing.assert_allclose(moved[:, :3], velocity, atol=0.02)


def test_at_full_skill_nearly_every_episode_succeeds():
    score = evaluate(Reacher(), TASK, episodes=20)
    assert score.success >= 0.95
    assert np.mean(score.readings["at_end"]) >= 0.95
    assert score.readings["nut_peg"] == (False,) * 20
    assert min(score.returns) > 300


def test_full_skill_is_the_perfect_hand():
    demos = demonstrate(1.0, seed=3)
    np.testing.assert_allclose(demos.actions, demos.extras["clean_actions"], atol=1e-9)
    last = demos.observations[-1:]
    assert handle_distance(last)[0] == pytest.approx(np.linalg.norm(ABOVE), abs=0.02)


def test_less_skill_earns_less_and_strays_further():
    skills = (0.2, 0.6, 1.0)
    played = {s: [demonstrate(s, seed) for seed in range(2)] for s in skills}
    earned = [np.mean([d.rewards.sum() for d in played[s]]) for s in skills]
    assert earned == sorted(earned)
    strayed = [
        np.mean([np.abs(d.actions - d.extras["clean_actions"]).mean() for d in played[s]])
        for s in skills
    ]
    assert strayed == sorted(strayed, reverse=True)


def test_the_same_seed_is_the_same_episode():
    one, same, other = demonstrate(0.4, 7), demonstrate(0.4, 7), demonstrate(0.4, 8)
    assert one.observations.tobytes() == same.observations.tobytes()
    assert one.actions.tobytes() == same.actions.tobytes()
    assert one.actions.tobytes() != other.actions.tobytes()


def test_the_simulator_was_given_the_clipped_action():
    demos = demonstrate(0.0, 1)
    np.testing.assert_array_equal(demos.extras["executed_actions"], np.clip(demos.actions, -1, 1))
    np.testing.assert_array_equal(demos.observations[1:], demos.next_observations[:-1])
    assert len(demos) == TASK.horizon


def test_flaws_grow_with_the_lack_of_skill():
    def size(skill):
        drawn = [draw_flaws(skill, Seeds(s)("operator"), 500) for s in range(40)]
        return np.array(
            [
                np.mean([d.delay for d in drawn]),
                np.mean([len(d.detours) for d in drawn]),
                np.mean([d.paused.mean() for d in drawn]),
                -np.mean([d.speed for d in drawn]),
                np.mean([d.gain for d in drawn]),
                np.mean([np.linalg.norm(d.aim) for d in drawn]),
                np.mean([d.tremor.std() for d in drawn]),
            ]
        )

    none, some, much = size(1.0), size(0.6), size(0.1)
    assert (none < some).all()
    assert (some < much).all()
    assert none[[0, 1, 2, 5, 6]].max() == 0.0


def test_tremor_is_an_ornstein_uhlenbeck_process():
    """Deviation 0.12 m/s at no skill; after a tenth of a second exp(-1) is left."""
    tremor = draw_flaws(0.0, Seeds(0)("operator"), 200_000).tremor
    assert tremor.std() == pytest.approx(0.12, rel=0.03)
    left = (tremor[10:] * tremor[:-10]).mean() / (tremor**2).mean()
    assert left == pytest.approx(np.exp(-1), abs=0.02)


@pytest.mark.parametrize("skill", [-0.1, 1.1, float("nan")])
def test_skills_beyond_the_range_are_refused(skill):
    with pytest.raises(EluteError, match="0 to 1"):
        demonstrate(skill)


def test_a_skill_is_read_off_its_name():
    assert parse_skill("operator:0.6") == 0.6
    for text in ("operator:good", "operator:", "operator"):
        with pytest.raises(EluteError, match="a skill from 0 to 1"):
            parse_skill(text)


def test_whole_episodes_are_operated_and_only_this_task():
    demos = operate(0.5, TASK, rows=501, seed=2)
    assert demos.episodes.lengths.tolist() == [500, 500]
    assert demos.provenance.steps[-1]["skill"] == 0.5
    assert "synthetic" in demos.provenance.source
    with pytest.raises(EluteError, match="cannot do hopper"):
        operate(0.5, find_task("hopper"), rows=10)


def test_returns_are_matched():
    demos = ten_like([350], seed=1, tolerance=20)
    assert abs(demos.returns()[0] - 350) <= 20


def test_a_return_that_nobody_reaches_is_refused(monkeypatch):
    monkeypatch.setattr("elute.collect.operator.TRIES", 2)
    with pytest.raises(EluteError, match="no operator earned 499"):
        ten_like([499])


def test_the_shipped_ten_have_the_returns_of_the_human_ones(shipped):
    assert np.abs(shipped.returns() - LEVELS).max() <= TOLERANCE
    assert shipped.provenance.steps[-1]["synthetic"] is True
    groups = [keys for about in shipped.episodes.attributes for keys in about["filters"]]
    assert [e for e in range(10) if groups[e] == "optimal"] == members("optimal")
    assert SHIPPED.stat().st_size < 1_500_000


def test_the_shipped_ten_were_made_by_this_operator(shipped):
    for episode in (0, 5):
        about = shipped.episodes.attributes[episode]
        again = demonstrate(about["skill"], about["seed"])
        there = shipped.select([episode])
        np.testing.assert_allclose(again.observations, there.observations, atol=1e-5)
        np.testing.assert_allclose(again.actions, there.actions, atol=1e-4)
        clean = there.extras["clean_actions"]
        np.testing.assert_allclose(again.extras["clean_actions"], clean, atol=1e-4)


def test_what_is_shipped_passes_the_audit(shipped):
    found = [f for f in audit(shipped).findings if f.severity == "error"]
    assert not found


def test_the_catalogue_has_it(tmp_path, monkeypatch, shipped):
    monkeypatch.setenv("ELUTE_CACHE", str(tmp_path))
    for name, count in (("", 10), ("/optimal", 2), ("/l1", 4), ("/l2", 4)):
        demos = load(catalogue.fetch(f"sawyer-reach/operator{name}"))
        assert len(demos.episodes) == count
    assert demos.observations[0, GRIP_AT] == pytest.approx(shipped.observations[0, GRIP_AT])
    with pytest.raises(EluteError, match="did you mean sawyer-reach/operator/optimal"):
        catalogue.fetch("sawyer-reach/operator/optimall")
