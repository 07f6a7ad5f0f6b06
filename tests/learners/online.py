"""Online methods small enough for tests, on the point that is to be brought to rest."""

from elute.envs.rollout import Rollouts
from elute.envs.task import find_task
from elute.learners.adversarial import Adversarial, Inputs, Judge, Look, Scene
from elute.learners.confidence import Confidence
from elute.learners.gail import GAIL
from elute.learners.ic_gail import ICGAIL
from elute.learners.sail import SAIL
from elute.learners.two_iwil import TwoIWIL
from elute.learners.wgail import WGAIL
from elute.noise import ActionNoise
from elute.rl.agent import Agent, Learning
from elute.rl.trpo import TRPO
from elute.rng import Seeds
from learners.point_env import NAME
from learners.point_mass import both

LEARNING = Learning(hidden=(32, 32), initial_std=0.5, gamma=0.95, lam=0.95, trpo=TRPO(entropy=1e-4))
LOOP = Adversarial(
    env_steps=40_000,
    batch=1000,
    lanes=10,
    check_every=10_000,
    learning=LEARNING,
    hidden=(32, 32),
    critic_updates=5,
    critic_rate=1e-3,
    allowed=(0.0, 1.0),  # the demonstrations lie around one point
)
FEW = Confidence(updates=1000)
METHODS = {
    "gail": GAIL(loop=LOOP),
    "2iwil": TwoIWIL(loop=LOOP, confidence=FEW),
    "ic-gail": ICGAIL(loop=LOOP, confidence=FEW),
    "wgail": WGAIL(loop=LOOP, warm_up=10_000),
    "sail": SAIL(loop=LOOP),
}


def task():
    return find_task(NAME)


def scene(demos=None, log=lambda row: None):
    """What a method sees before the first step, and the units."""
    demos, of = demos or both(), task()
    inputs, rows = Inputs(demos, of), demos.all
    return Scene(
        demos=demos,
        task=of,
        inputs=inputs(rows.observations, rows.actions),
        rng=Seeds(0)("method"),
        log=log,
        policy=lambda: agent().policy(method="none"),
    ), inputs


def agent(seed=0):
    return Agent(task(), LEARNING, Seeds(seed)("agent"))


def judge(method, demos=None):
    seen, inputs = scene(demos)
    return Judge(method, seen, inputs, Seeds(0))


class Now:
    """What a judge asks of a run."""

    def __init__(self, env_steps, updates=0, loop=LOOP):
        self.env_steps, self.updates, self.loop = env_steps, updates, loop


def played(episodes=10):
    """Stretches of the first policy."""
    with Rollouts(task(), Seeds(0), noise=ActionNoise("sample"), lanes=5) as rollouts:
        return rollouts.episodes(agent().policy(), episodes)


def look(of, env_steps=0):
    return Look(of, agent(), Now(env_steps))
