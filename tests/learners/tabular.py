"""A small MDP with everything known: occupancies by linear algebra, the best policy by search."""

from dataclasses import dataclass

import numpy as np
import torch
from scipy.optimize import minimize

from elute.rng import Seeds

STATES, ACTIONS, DISCOUNT = 4, 2, 0.9


@dataclass(frozen=True)
class MDP:
    moves: np.ndarray
    """P(s' | s, a), (S, A, S)."""
    start: np.ndarray

    def occupancy(self, policy):
        """Discounted share of time in each (s, a)."""
        between = np.einsum("sa,sax->sx", policy, self.moves)
        visits = np.linalg.solve(np.eye(STATES) - DISCOUNT * between.T, (1 - DISCOUNT) * self.start)
        return visits[:, None] * policy

    def imbalance(self, flow):
        """What leaves each state less what enters it."""
        entering = DISCOUNT * np.einsum("sa,sax->x", flow, self.moves)
        return flow.sum(axis=1) - (1 - DISCOUNT) * self.start - entering

    def best(self, cost):
        """The occupancy of lowest cost, by search over policies."""

        def of(logits):
            policy = np.exp(logits.reshape(STATES, ACTIONS))
            return self.occupancy(policy / policy.sum(axis=1, keepdims=True))

        found = minimize(lambda x: cost(of(x)), np.zeros(STATES * ACTIONS), options={"gtol": 1e-9})
        return of(found.x)

    def minimise(self, loss, rewards, base):
        """Residuals (S, A, S) of the nu that a loss of first values and residuals is lowest at.

        A row that stands for a share p of n rows counts n p times.
        """
        share = torch.tensor(base[:, :, None] * self.moves)
        s, a, x = torch.nonzero(share, as_tuple=True)
        counts = share[s, a, x] * len(s)

        def residuals(nu):
            return torch.tensor(rewards)[s, a] + DISCOUNT * nu[x] - nu[s]

        def value(given):
            nu = torch.tensor(given, requires_grad=True)
            total = loss(torch.tensor(self.start) * STATES * nu, residuals(nu), counts)
            total.backward()
            return total.item(), nu.grad.numpy()

        begin = Seeds(5)("nu").standard_normal(STATES)
        nu = torch.tensor(minimize(value, begin, jac=True, tol=1e-12).x)
        table = torch.zeros(STATES, ACTIONS, STATES, dtype=torch.float64)
        table[s, a, x] = residuals(nu)
        return table.numpy()


def mdp(*, deterministic):
    rng = Seeds(0)("mdp")
    moves = rng.dirichlet(np.full(STATES, 0.5), (STATES, ACTIONS))
    if deterministic:
        following = np.array([[1, 2], [2, 0], [3, 1], [0, 3]])
        moves = np.eye(STATES)[following]
    return MDP(moves, np.array([0.7, 0.3, 0.0, 0.0]))


def policies():
    """An expert that prefers one action, and somebody who does not."""
    expert = np.array([[0.9, 0.1], [0.2, 0.8], [0.7, 0.3], [0.6, 0.4]])
    return expert, np.array([[0.3, 0.7], [0.5, 0.5], [0.2, 0.8], [0.5, 0.5]])


def divergence(one, other):
    return float((one * np.log(one / other)).sum())
