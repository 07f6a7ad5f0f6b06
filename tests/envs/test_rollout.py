"""Rollouts: the same whatever the workers, and clear when something breaks."""

import os
from inspect import signature

import gymnasium
import numpy as np
import pytest
from gymnasium.spaces import Box

from elute.cli import main
from elute.collect.record import record
from elute.collect.shipped import EXPERTS, find_policy
from elute.envs.make import make
from elute.envs.rollout import LANES, Rollouts
from elute.envs.task import TASKS, Task, find_task
from elute.errors import EluteError
from elute.evaluation import SEED, Evaluation, evaluate
from elute.noise import ActionNoise
from elute.policy import GaussianPolicy
from elute.rng import Seeds


class Counter(gymnasium.Env):
    """Observes how many steps were made; ends at step 7 of every third episode; can break."""

    observation_space = Box(-np.inf, np.inf, (2,))
    action_space = Box(-1.0, 1.0, (1,))

    def __init__(self, fault=""):
        self.fault, self.t = fault, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.t, self.ends = 0, seed % 3 == 0
        return np.array([0.0, seed % 1000]), {}

    def step(self, action):
        assert -1 <= action[0] <= 1
        self.t += 1
        if self.t == 4:
            self.break_down()
        seen = np.array([self.t, np.nan if self.fault == "nan" and self.t == 4 else action[0]])
        return seen, float(action[0]), self.ends and self.t == 7, False, {"is_success": self.ends}

    def break_down(self):
        if self.fault == "raise":
            raise RuntimeError("joint 3 is loose")
        if self.fault == "die":
            os._exit(7)


for _fault in ("", "raise", "nan", "die"):
    gymnasium.register(
        id=f"Counter{_fault.capitalize()}-v0",
        entry_point=Counter,
        kwargs={"fault": _fault},
        max_episode_steps=20,
    )


def counter(fault=""):
    return find_task(f"gym:{__name__}:Counter{fault.capitalize()}-v0")


def policy(task, std=0.3):
    rng = np.random.default_rng(0)
    a, s = task.n_actions, task.n_observations
    low, high = task.bounds
    return GaussianPolicy(
        layers=((0.1 * rng.normal(size=(s, a)).astype("f4"), np.zeros(a, "f4")),),
        log_std=np.full(a, np.log(std)),
        mean=np.zeros(s),
        scale=np.ones(s),
        low=low.astype(float),
        high=high.astype(float),
    )


def same(one, two):
    """Bit for bit."""

    def contents(stretch):
        arrays = (stretch.observations, stretch.means, stretch.actions, stretch.rewards)
        ends = (stretch.episode, stretch.terminated, stretch.truncated)
        return ends, [array.tobytes() for array in arrays]

    return list(map(contents, one)) == list(map(contents, two))


def episodes(task, n, *, workers=1, seed=0, noise="gaussian:0.5", lanes=LANES):
    kind = ActionNoise.parse(noise)
    with Rollouts(task, Seeds(seed), noise=kind, lanes=lanes, workers=workers) as rollouts:
        return rollouts.episodes(policy(task), n)


def test_episodes_are_whole_in_order_and_end_as_they_should():
    played = episodes(counter(), 23)
    assert [s.episode for s in played] == list(range(23))
    for stretch in played:
        ended = stretch.success
        assert (stretch.terminated, stretch.truncated) == (ended, not ended)
        assert len(stretch) == (7 if ended else 20)
        assert stretch.observations.shape == (len(stretch) + 1, 2)
        assert np.array_equal(stretch.observations[:, 0], np.arange(len(stretch) + 1))
        executed = np.clip(stretch.actions[:, 0], -1, 1)
        np.testing.assert_array_equal(stretch.observations[1:, 1], executed)
        np.testing.assert_array_equal(stretch.rewards, executed)
    assert {s.success for s in played} == {True, False}


@pytest.mark.parametrize("name", ["hopper", "halfcheetah"])
def test_the_number_of_workers_changes_nothing(name):
    task = find_task(name)
    assert same(episodes(task, 12), episodes(task, 12, workers=2))


def test_an_episode_does_not_depend_on_how_many_are_played():
    task = find_task("hopper")
    assert same(episodes(task, 3), episodes(task, 14)[:3])


def test_stretches_of_lanes_join_up_to_episodes():
    task = counter()
    whole = {s.episode: s for s in episodes(task, 200, lanes=4)}
    with Rollouts(task, Seeds(0), noise=ActionNoise.parse("gaussian:0.5"), lanes=4) as rollouts:
        pieces = [s for _ in range(9) for s in rollouts.advance(policy(task), 6)]
    assert sum(map(len, pieces)) == 9 * 4 * 6
    for episode in {s.episode for s in pieces}:
        joined = np.concatenate([s.actions for s in pieces if s.episode == episode])
        np.testing.assert_array_equal(joined, whole[episode].actions[: len(joined)])


def test_other_seeds_are_other_episodes():
    assert not same(episodes(counter(), 5), episodes(counter(), 5, seed=1))


def test_sampling_follows_the_policy_of_the_moment_within_an_episode():
    task = counter()
    with Rollouts(task, Seeds(0), noise=ActionNoise("sample"), lanes=5) as rollouts:
        wide = rollouts.advance(policy(task, std=1.0), 5)
        narrow = rollouts.advance(policy(task, std=0.01), 2)
    assert {s.episode for s in narrow} <= {s.episode for s in wide}
    spread = [np.concatenate([s.actions - s.means for s in part]).std() for part in (wide, narrow)]
    assert spread[0] > 0.5
    assert spread[1] < 0.05


class Buffered(Counter):
    """Hands out the same array at every step, as views of simulator data are."""

    def reset(self, *, seed=None, options=None):
        self.buffer, _ = super().reset(seed=seed)
        return self.buffer, {}

    def step(self, action):
        self.buffer[:], *rest = super().step(action)
        return self.buffer, *rest


gymnasium.register(id="Buffered-v0", entry_point=Buffered, max_episode_steps=20)
gymnasium.register(
    id="Tenfold-v0",
    entry_point=Counter,
    max_episode_steps=20,
    additional_wrappers=(
        gymnasium.envs.registration.WrapperSpec(
            "Tenfold", "gymnasium.wrappers:TransformReward", {"func": lambda reward: 10 * reward}
        ),
    ),
)


def test_observations_are_copied_and_other_wrappers_are_part_of_the_task():
    plain = episodes(counter(), 3)
    buffered = episodes(find_task(f"gym:{__name__}:Buffered-v0"), 3)
    assert same(plain, buffered)
    tenfold = episodes(find_task(f"gym:{__name__}:Tenfold-v0"), 3)
    for one, ten in zip(plain, tenfold, strict=True):
        np.testing.assert_allclose(10 * one.rewards, ten.rewards)


def test_the_traceback_of_a_worker_is_kept():
    with pytest.raises(EluteError) as caught:
        episodes(counter("raise"), 8, workers=2)
    assert "break_down" in str(caught.value.__cause__)


def test_our_episode_is_gymnasiums():
    task = find_task("hopper")
    ours = episodes(task, 1, noise="none")[0]
    theirs = gymnasium.make(task.gym_id)
    start = int(Seeds(0)("start", 0).integers(2**31))
    seen, _ = theirs.reset(seed=start)
    for t, reward in enumerate(ours.rewards):
        np.testing.assert_array_equal(seen, ours.observations[t])
        seen, earned, terminated, truncated, _ = theirs.step(task.clip(ours.actions[t]))
        assert earned == reward
    assert (terminated, truncated) == (ours.terminated, ours.truncated)


@pytest.mark.parametrize("workers", [1, 2])
@pytest.mark.parametrize(
    ("fault", "message"),
    [("raise", "episode .*, step .*: step raised RuntimeError: joint 3 is loose"),
     ("nan", "episode .*, step .*: the environment returned values that are not finite")],
)  # fmt: skip
def test_a_broken_environment_says_where(fault, message, workers):
    with pytest.raises(EluteError, match=message):
        episodes(counter(fault), 8, workers=workers)


def test_a_worker_that_dies_is_an_error_and_not_a_hang():
    with pytest.raises(EluteError, match=r"worker died \(exit code 7\)"):
        episodes(counter("die"), 8, workers=2)


def test_a_policy_that_breaks_is_named():
    task = counter()
    broken = policy(task)
    broken.layers[0][0][:] = np.nan
    with pytest.raises(EluteError, match="the policy returned values that are not finite"):
        evaluate(broken, task, episodes=2)


def test_evaluation_computes_from_episodes():
    score = Evaluation(TASKS["hopper"], (1.0, 2.0, 6.0), (3, 4, 5), (None, True, False))
    assert score.mean == 3.0
    assert score.stderr == pytest.approx(np.std([1, 2, 6], ddof=1) / np.sqrt(3))
    assert score.success == 0.5
    assert Evaluation(TASKS["hopper"], (1.0,), (3,), (None,)).stderr is None
    assert Evaluation(TASKS["hopper"], (1.0,), (3,), (None,)).success is None


def test_a_policy_is_not_judged_where_recordings_begin():
    expert, hopper = find_policy("expert:hopper"), TASKS["hopper"]
    (recorded,) = record(expert, hopper, rows=1000).returns()
    same = pytest.approx((recorded,), rel=1e-12)  # rewards are added up in another order
    assert evaluate(expert, hopper, episodes=1, seed=0).returns == same
    assert evaluate(expert, hopper, episodes=1).returns != same
    assert signature(main.evaluate).parameters["seed"].default == SEED


def test_a_policy_of_another_task_is_refused():
    with pytest.raises(EluteError, match="2 observation and 1 action columns; hopper has 11 and 3"):
        evaluate(policy(counter()), TASKS["hopper"])


def test_no_episodes_are_refused():
    with pytest.raises(EluteError, match="expected at least 1"):
        evaluate(policy(counter()), counter(), episodes=0)


@pytest.mark.parametrize("name", sorted(TASKS))
def test_tasks_tell_the_truth_about_their_environment(name):
    task = TASKS[name]
    environment = make(task)
    assert environment.observation_space.shape == (task.n_observations,)
    assert environment.action_space.shape == (task.n_actions,)
    low, high = task.bounds
    np.testing.assert_array_equal(low, environment.action_space.low)
    np.testing.assert_array_equal(high, environment.action_space.high)
    assert gymnasium.spec(task.gym_id.rpartition(":")[2]).max_episode_steps == task.horizon
    environment.close()


@pytest.mark.parametrize("name", EXPERTS)
def test_tasks_know_how_many_positions_are_hidden(name):
    task = TASKS[name]
    environment = make(task)
    hidden = len(environment.data.qpos) + len(environment.data.qvel) - task.n_observations
    assert hidden == task.hidden_positions


def test_any_environment_with_vectors_is_a_task():
    task = find_task("gym:Pendulum-v1")
    assert (task.n_observations, task.n_actions, task.horizon) == (3, 1, 200)
    assert task.bounds[1].tolist() == [2.0]
    assert task.normalised(5.0) is None


@pytest.mark.parametrize(
    ("name", "message"),
    [("gym:CartPole-v1", "actions are Discrete"), ("gym:Nothing-v0", "cannot be made"),
     ("hoper", "did you mean hopper"), ("spaceship", "tasks are ant")],
)  # fmt: skip
def test_what_is_no_task_is_refused(name, message):
    with pytest.raises(EluteError, match=message):
        find_task(name)


def test_a_made_up_task_is_plain_facts():
    assert Task("t", "T-v0", (3,), 2).bounds[0].tolist() == [-1.0, -1.0]
