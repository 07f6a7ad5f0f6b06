"""How likely a demonstration is optimal: given for some rows, learnt for the others.

    q(s, a) = P(optimal | s, a)                           in [0, 1]; known on n_c rows of n_c + n_u
    g = argmin  R(g),   q^ = sigma(g)                     b = n_u / (n_c + n_u), softplus per row

    mean q <= .5:  R = E_c[ q sp(-g) ]       + max(0, E_c[ (1 - b - q) sp(g) ] + b E_u[ sp(g) ])
    else:          R = E_c[ (1 - q) sp(g) ]  + max(0, E_c[ (q - b) sp(-g) ]    + b E_u[ sp(-g) ])

(Wu et al. 2019.) The product of confidence and loss is taken row by row. The released code, and all
that copied it, multiplies the mean confidence with the mean loss: then it does not matter which row
has which confidence, and nothing is learnt. Dropout is off when q^ is read.

Where confidences come from, in this order:

1. a column `confidence` of the demonstrations; NaN is "not known". If only D_s has one, D_o is
   what its name says: 1. If only D_o has one, nothing is known of D_s, and that is refused;
2. rewards: the return of the demonstrator of each set, 0 for random actions and 1 for the better
   demonstrator, given to a share of the rows (the paper: 20 %). A demonstrator's return is what
   it earned by the number of episodes that ended; a cut is no end. If none ended: its mean reward
   times the horizon. In a single set it is the return of each episode, 1 for the best one, and not
   known of one that was cut;
3. without rewards 1 for D_o and 0 for D_s, for the same share of the rows.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn.functional import softplus

from elute.envs.task import Task
from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.adversarial import Scene
from elute.learners.descent import Descent
from elute.nets import evaluating, generator, seeded, tensor
from elute.types import Demonstrations, DemoSet

COLUMN = "confidence"
HINT = f"give both sets, rewards, or a column {COLUMN!r} with numbers from 0 to 1"


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """How confidences are had; defaults are those of the authors' code."""

    labelled: float = 0.2
    """Share of the rows whose confidence is known, where no column says it."""
    updates: int = 25_000
    batch_size: int = 128
    """Labelled rows in one update; of the others in proportion."""
    learning_rate: float = 3e-4
    hidden: tuple[int, ...] = (40, 40)
    dropout: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.labelled <= 1 or not 0 <= self.dropout < 1:
            raise EluteError(
                f"a share of {self.labelled} labelled, dropout {self.dropout}; expected shares"
            )

    def known(self, demos: DemoSet, task: Task, rng: np.random.Generator) -> Array:
        """Of each row of `demos.all`; NaN where it is to be learnt.

        Raises:
            EluteError: a column is out of [0, 1], knows nothing, or is missing in D_s alone; or
                there is nothing to tell rows by.
        """
        if any(COLUMN in given.extras for given in demos.given):
            return _by_column(demos)
        told = _by_return(demos, task)
        rows = np.flatnonzero(~np.isnan(told))
        n = max(1, round(self.labelled * len(rows)))
        hidden = rows[rng.permutation(len(rows))[n:]]
        told[hidden] = np.nan
        return told

    def learn(self, scene: Scene, known: Array) -> Array:
        """Confidence of each row: as known, or else as a classifier says.

        Raises:
            EluteError: none is known.
            DivergenceError: the classifier's loss is not finite.
        """
        unknown, inputs, rng = np.isnan(known), scene.inputs, scene.rng
        if unknown.all():
            raise EluteError("no row has a confidence", hint="some must have a number from 0 to 1")
        if not unknown.any():
            return known
        q, net = tensor(known[~unknown]), self._network(inputs.shape[1], rng)
        labelled, others = inputs[~unknown], inputs[unknown]
        stream, share, mean = generator(rng), len(others) / len(inputs), float(q.mean())
        size = max(1, round(self.batch_size * len(others) / len(labelled)))
        optimiser = torch.optim.Adam(net.parameters(), lr=self.learning_rate, amsgrad=True)
        descent = Descent(self.updates, {"classifier": net}, scene.policy, scene.log)
        with torch.random.fork_rng(devices=[]):  # dropout has no stream of its own
            torch.manual_seed(int(rng.integers(2**63)))
            for drawn in descent.draws(stream, len(labelled), self.batch_size):
                more = torch.randint(0, len(others), (size,), generator=stream)
                scores = net(torch.cat([labelled[drawn], others[more]]))[:, 0]
                first, rest = scores[: len(drawn)], scores[len(drawn) :]
                risk = confidence_risk(first, q[drawn], rest, share, mean)
                descent.step(optimiser, risk=risk)
        with evaluating(net):
            found = torch.sigmoid(net(others)[:, 0]).numpy().astype(np.float64)
        learnt = known.copy()
        learnt[unknown] = found
        return learnt

    def _network(self, width: int, rng: np.random.Generator) -> nn.Sequential:
        sizes, parts = [width, *self.hidden], list[nn.Module]()
        with seeded(rng):
            for before, after in pairwise(sizes):
                parts += [nn.Linear(before, after), nn.Tanh(), nn.Dropout(self.dropout)]
            return nn.Sequential(*parts, nn.Linear(sizes[-1], 1))


def confidence_risk(
    labelled: Tensor, q: Tensor, unlabelled: Tensor, share: float, mean: float
) -> Tensor:
    """R(g) of scores of rows with known confidences, on average `mean`, and of rows without.

    The latter are a share of all.
    """
    if mean <= 0.5:
        sure, rest = q * softplus(-labelled), (1 - share - q) * softplus(labelled)
        others = softplus(unlabelled)
    else:
        sure, rest = (1 - q) * softplus(labelled), (q - share) * softplus(-labelled)
        others = softplus(-unlabelled)
    return sure.mean() + (rest.mean() + share * others.mean()).clamp(min=0.0)


def _by_column(demos: DemoSet) -> Array:
    """The columns of all sets; 1 for D_o if only D_s has one."""
    if COLUMN not in demos.given[-1].extras:
        raise EluteError(
            f"only the optimal demonstrations have a column {COLUMN!r}",
            hint="add it to the others too; NaN where it is not known",
        )
    columns = [_column(given) for given in demos.given if COLUMN in given.extras]
    if np.isnan(np.concatenate(columns)).all():
        raise EluteError("no row has a confidence", hint="some must have a number from 0 to 1")
    if len(columns) < len(demos.given):
        columns = [np.ones(len(demos.optimal)), *columns]
    return np.concatenate(columns)


def _column(given: Demonstrations) -> Array:
    """The column of a set, (n,)."""
    source, column = given.provenance.source or "demonstrations", given.extras[COLUMN]
    if column.dtype.kind not in "fiub" or column.size != len(given):
        raise EluteError(f"{source}: {COLUMN} is {column.dtype} of shape {column.shape}")
    values = column.reshape(-1).astype(np.float64)
    bad = np.flatnonzero((values < 0) | (values > 1))
    if len(bad):
        raise EluteError(
            f"{source}: {COLUMN} is {values[bad[0]]:.4g} in row {bad[0]}; expected 0 to 1",
            hint="it is a probability; NaN where it is not known",
        )
    return values


def _by_return(demos: DemoSet, task: Task) -> Array:
    """Of the demonstrator of each row, or of its episode if there is one set only."""
    paid = all(given.rewards is not None for given in demos.given)
    if len(demos.given) == 1:
        if not paid:
            raise EluteError(
                "one set without rewards: nothing says which rows are better", hint=HINT
            )
        return _by_episode(demos.all, task)
    of_sets = np.array([1.0, 0.0])
    if paid:
        of_sets = _spread(np.array([demonstrator_return(d, task) for d in demos.given]), task)
    return np.repeat(of_sets, [len(given) for given in demos.given])


def _by_episode(given: Demonstrations, task: Task) -> Array:
    """By the return of each episode; NaN if it was cut, where others were not."""
    assert given.rewards is not None
    lengths = given.episodes.lengths
    scores = np.array([part.sum() for part in np.split(given.rewards, np.cumsum(lengths)[:-1])])
    ended = given.episodes.terminated | (lengths >= task.horizon)
    scores = np.where(ended, scores, np.nan) if ended.any() else scores / lengths * task.horizon
    if len(np.unique(scores[~np.isnan(scores)])) < 2:
        raise EluteError(
            "one set without two whole episodes of different returns: nothing says which rows are "
            "better",
            hint=HINT,
        )
    return np.repeat(_spread(scores, task), lengths)


def _spread(scores: Array, task: Task) -> Array:
    """From 0, random actions or the least, to 1, the most; 1 if all are the same."""
    least, most = np.nanmin(scores), np.nanmax(scores)
    low = least if task.random_score is None else min(task.random_score, least)
    if most == low:
        return np.ones(len(scores))
    spread: Array = (scores - low) / (most - low)
    return spread


def demonstrator_return(given: Demonstrations, task: Task) -> float:
    """What one episode of the demonstrator earns, as far as these rows tell."""
    assert given.rewards is not None
    episodes, total = given.episodes, float(given.rewards.sum())
    ended = int((episodes.terminated | (episodes.lengths >= task.horizon)).sum())
    return total / ended if ended else total / len(given) * task.horizon
