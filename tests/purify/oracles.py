"""Denoisers that are known exactly and the purifiers around them; data to train quick ones on."""

import numpy as np
import torch
from torch import nn

from elute.columns import columns
from elute.demos.corrupt import corrupt
from elute.demos.pointmass import pointmass
from elute.diffusion.ddpm import Training
from elute.diffusion.schedule import Schedule
from elute.episodes import Episodes
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.normaliser import Normaliser
from elute.types import Demonstrations, DemoSet

LINEAR = Schedule.linear()
QUICK = DiffusionPurifier(training=Training(updates=200, check_every=100))


class GaussianDenoiser(nn.Module):
    """eps*(x, i) if the data is N(mean, spread^2) in every column."""

    def __init__(self, mean, spread):
        super().__init__()
        self.mean, self.spread = torch.tensor(mean), torch.tensor(spread)
        self.alpha_bar = torch.tensor(LINEAR.alpha_bar)

    def forward(self, x, step):
        a = self.alpha_bar[step, None]
        rows = x.to(torch.float64)
        eps = (1 - a).sqrt() * (rows - a.sqrt() * self.mean) / (a * self.spread**2 + 1 - a)
        return eps.to(x.dtype)


class Recording(nn.Module):
    """Predicts no noise and remembers what it was shown."""

    def __init__(self):
        super().__init__()
        self.seen = []

    def forward(self, x, step):
        self.seen.append((int(step), x.clone()))
        return torch.zeros_like(x)


def demonstrations(pairs, n_actions=1):
    """One episode of raw pairs."""
    return Demonstrations(
        observations=pairs[:, :-n_actions],
        actions=pairs[:, -n_actions:],
        episodes=Episodes.of([len(pairs)]),
    )


def around(network, width, **settings):
    """A transform in raw units with the paper's chain around any network."""
    paper = {"target": "joint", "descents": 0, "draws": 1, "standardise": False}
    purifier = DiffusionPurifier(**(paper | settings))
    return DiffusionTransform(
        purifier,
        network,
        Normaliser.none(np.zeros((1, width))),
        (*columns("observation", width - 1), *columns("action", 1)),
        width - 1,
        max_step=purifier.n_steps,
    )


def wiener_factor(spread, step):
    """kappa: what the whole chain leaves of a distance from the mean."""
    a = LINEAR.alpha_bar[step]
    return a * spread**2 / (a * spread**2 + 1 - a)


def chain_variance(spread, step):
    """Variance of the result for one x_s, by recursion."""
    v = 1 - LINEAR.alpha_bar[step]
    for i in range(step, 0, -1):
        a, beta = LINEAR.alpha_bar[i], LINEAR.beta[i]
        keep = (1 - beta / (a * spread**2 + 1 - a)) / np.sqrt(1 - beta)
        v = keep**2 * v + (beta if i > 1 else 0.0)
    return v


def noisy_pointmass(level):
    """Four good episodes, and twelve with noise of this level on their actions."""
    driven = pointmass(30, noise=0.02)
    good, other = driven.select(range(4)), driven.select(range(4, 16))
    return DemoSet(optimal=good, supplementary=corrupt(other, "gaussian", level))
