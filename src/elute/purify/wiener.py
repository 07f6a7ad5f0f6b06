"""A diffusion purifier in closed form, if D_o were Gaussian: a Wiener filter across columns.

With D_o ~ N(m, S) and an exact denoiser the mean of Algorithm 2 is, with alpha_bar at i_r,

    x_hat = m + K (x_s - m),   K = alpha_bar S (alpha_bar S + (1 - alpha_bar) I)^-1        (joint)

`inpaint` knows the state exactly (as every target knows discrete columns): the action is drawn
towards its regression on the state, as far as the residual covariance C tells it to,

    mu = m_a + B (s - m_s),   B = S_as S_ss^+,   C = S_aa - B S_sa
    a_hat = mu + K (a_s - mu),   K = alpha_bar C (alpha_bar C + (1 - alpha_bar) I)^-1

No network and no noise: an oracle, a baseline, an ablation. Units are those of D_o and D_s
together. With fewer rows than columns S is singular and knows relations that are not there; its
off-diagonal entries are then shrunk by a tenth.
"""

from dataclasses import dataclass

import numpy as np

from elute.columns import Column
from elute.diffusion.schedule import Schedule
from elute.episodes import Array
from elute.errors import EluteError
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import (
    Progress,
    Target,
    check_widths,
    purifiable,
    put_back,
)
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, check_finite

SHRINK = 0.1


@dataclass(frozen=True, kw_only=True)
class WienerPurifier:
    """The closed form."""

    reverse_step: int = 150
    """i_r, 0..N; 0 changes nothing."""
    target: Target = "joint"
    n_steps: int = 1000

    def __post_init__(self) -> None:
        Schedule.linear(self.n_steps).check(self.reverse_step)

    def fit(
        self, demos: DemoSet, seeds: Seeds, *, progress: Progress = lambda done, total: None
    ) -> "WienerTransform":
        """Mean and covariance of D_o, in units of D_o and D_s."""
        check_finite(demos.optimal, "D_o")
        check_finite(demos.supplementary, "D_s")
        del seeds, progress
        if len(demos.optimal) < 2:
            raise EluteError("D_o has one row; expected at least two", hint="fifty are few already")
        optimal = demos.optimal.pairs.astype(np.float64)
        columns = (*demos.optimal.observation_columns, *demos.optimal.action_columns)
        normaliser = Normaliser.fit(np.concatenate([optimal, demos.supplementary.pairs]), columns)
        scaled = normaliser.apply(optimal)[:, normaliser.varies]
        n_observations = demos.optimal.observations.shape[1]
        free = self._free(columns, n_observations)[normaliser.varies]
        alpha_bar = float(Schedule.linear(self.n_steps).alpha_bar[self.reverse_step])
        gain = joint_gain(covariance(scaled), free, alpha_bar)
        return WienerTransform(self, normaliser, scaled.mean(axis=0), gain, n_observations)

    def _free(self, columns: tuple[Column, ...], n_observations: int) -> Array:
        """Columns that are estimated; the others are known exactly."""
        free = purifiable(columns)
        if self.target == "inpaint":
            free[:n_observations] = False
        return free


@dataclass(frozen=True, eq=False)
class WienerTransform:
    """x -> m + G (x - m)."""

    purifier: WienerPurifier
    normaliser: Normaliser
    mean: Array
    gain: Array
    n_observations: int

    def __call__(
        self, rows: Demonstrations, *, first_row: int = 0, seed: int = 0
    ) -> Demonstrations:
        """The mean of what each row may have been."""
        del seed
        self._check(rows, first_row)
        pairs = rows.pairs.astype(np.float64)
        if self.purifier.reverse_step > 0:
            used = self.normaliser.varies
            scaled = self.normaliser.apply(pairs)
            scaled[:, used] = self.mean + _product(scaled[:, used] - self.mean, self.gain)
            pairs[:, used] = self.normaliser.undo(scaled, pairs)[:, used]
        return put_back(
            rows,
            pairs,
            target=self.purifier.target,
            operation="purify",
            method="wiener",
            reverse_step=self.purifier.reverse_step,
        )

    def _check(self, rows: Demonstrations, first_row: int) -> None:
        check_widths(rows, self.n_observations, len(self.normaliser.mean))
        check_finite(rows, "D_s")
        self.normaliser.check(rows, first_row)


def covariance(rows: Array) -> Array:
    """S, shrunk towards its diagonal if there are fewer rows than columns."""
    found = np.atleast_2d(np.cov(rows, rowvar=False))
    if len(rows) >= rows.shape[1]:
        return np.asarray(found)
    return np.asarray((1 - SHRINK) * found + SHRINK * np.diag(np.diag(found)))


def joint_gain(s: Array, free: Array, alpha_bar: float) -> Array:
    """G, such that x_hat = m + G (x - m): the identity for columns that are known exactly."""
    gain = np.eye(len(s))
    if alpha_bar == 1:
        return gain
    known = ~free
    b = s[np.ix_(free, known)] @ np.linalg.pinv(s[np.ix_(known, known)], 1e-10, hermitian=True)
    c = s[np.ix_(free, free)] - b @ s[np.ix_(known, free)]
    one = np.eye(len(c))
    k = np.linalg.solve(alpha_bar * c + (1 - alpha_bar) * one, alpha_bar * c).T
    gain[np.ix_(free, free)] = k
    gain[np.ix_(free, known)] = (one - k) @ b
    return gain


def _product(rows: Array, gain: Array) -> Array:
    """The matrix product, column by column: no row depends on how many others there are."""
    total = np.zeros_like(rows)
    for j, column in enumerate(gain.T):
        total += rows[:, j, None] * column
    return total
