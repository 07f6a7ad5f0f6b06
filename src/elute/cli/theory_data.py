"""What `elute theory` does with two files: fit or load a purifier and ask the theorems about it."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import torch

from elute.cli.arguments import named, open_first
from elute.cli.show import progress, say
from elute.demos.audit.alignment import alignment_findings
from elute.demos.audit.sample import take_sample
from elute.demos.files import open_demos
from elute.diffusion.schedule import Floats, Schedule
from elute.episodes import Array
from elute.errors import EluteError
from elute.experiment.purifiers import parse_target
from elute.purify.artefact import load_transform
from elute.purify.criteria import THEOREM_ROWS
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.purifier import check_widths, purifiable
from elute.purify.select import MOST_ROWS, at_most, choose_reverse_step, surprise
from elute.purify.wiener import covariance
from elute.rng import Seeds
from elute.theory.claims.claim import Checked
from elute.theory.claims.data import Distances, distance_claims, forward_claims
from elute.theory.data import (
    FAILURE_PROB,
    STEPS,
    DataBounds,
    Forward,
    ScoreBounds,
    data_bounds,
    forward,
    inflections,
    score_bounds,
    spread_steps,
)
from elute.theory.wiener import GaussianModel, conditional_covariance, matched_step
from elute.types import Demonstrations, DemoSet, check_finite

if TYPE_CHECKING:
    from elute.cli.theory import TheoryOptions

DISTANCE_STEPS = (1, 3, 5, 10, 30, 60, 100, 150, 200, 300)
KL_STEPS = 80
CLEAN = "clean_actions"


@dataclass(frozen=True, eq=False)
class Study:
    """Two files under the theorems."""

    about: dict[str, Any]
    schedule: Schedule
    noise: Mapping[str, float]
    """Standard deviation of delta, per action column, in the units of the data."""
    delta: float
    """Mean of its norm over the rows, in the units of the purifier; their root mean square if it
    is not known row by row."""
    known: bool
    """From clean actions in the data, and not estimated."""
    scores: ScoreBounds
    bounds: DataBounds
    ratio: float
    """C~ / C where lambda bends, or as far as it is known."""
    forward: Forward
    model: GaussianModel
    distances: Distances | None
    usual: Distances | None
    """After the purification that `elute purify` does, instead of the chain of Eq. 7."""
    steps: dict[str, int | None]
    claims: list[Checked]
    failure_prob: float = FAILURE_PROB


def study_data(options: "TheoryOptions") -> Study:
    """Read the files, fit or load a purifier, and put the theorems to it."""
    torch.set_num_threads(1)
    seeds = Seeds(options.seed)
    demos = _read(options, seeds)
    trained, chosen, noise = _purifier(options, demos, seeds)
    schedule, columns = trained.purifier.noise_schedule, Columns.of(trained)
    if not columns.changed.any():
        raise EluteError("no column varies that this target purifies", hint="try --target joint")
    rows = at_most(demos.supplementary, THEOREM_ROWS, seeds)
    clean = _clean(rows)
    if clean is not None:
        noise = _deviation(rows, clean)
    scores = _scores(trained, rows, columns, seeds)
    model = _gaussian(demos.optimal, columns, noise)
    delta = (
        float(np.sqrt(np.trace(model.noise)))
        if clean is None
        else float(columns.distance(rows, clean).mean())
    )
    bounds, bends = data_bounds(schedule, scores, delta), inflections(schedule, scores)
    sets = columns.used(demos.optimal), columns.used(demos.supplementary)
    diffused = forward(*sets, schedule, _kl_steps(schedule), seeds("theory"))
    steps: dict[str, int | None] = {
        ("auto" if options.model is None else "model"): chosen,
        "theorem_4_printed": bends.printed,
        "theorem_4_corrected": bends.corrected,
        "at_least": bounds.reaching_step,
        "gaussian_mean": model.best_step(schedule),
        "gaussian_draw": model.best_step(schedule, draws=1),
        "matched": matched_step(schedule, _variance_per_column(model)),
        "alike": diffused.alike_step,
    }
    told = forward_claims(diffused, schedule)
    distances, usual = None, None
    if clean is not None:
        distances, usual = _measure(trained, rows, clean, columns)
        steps |= {"measured": distances.best_step, "measured_mean": usual.best_step}
        told += distance_claims(distances, scores, schedule, bends.corrected)
    return Study(
        about=_about(options, demos, trained),
        schedule=schedule,
        noise=_by_column(noise, demos),
        delta=delta,
        known=clean is not None,
        scores=scores,
        bounds=bounds,
        ratio=bends.ratio,
        forward=diffused,
        model=model,
        distances=distances,
        usual=usual,
        steps=steps,
        claims=[claim.check() for claim in told],
    )


def _about(options: "TheoryOptions", demos: DemoSet, trained: DiffusionTransform) -> dict[str, Any]:
    return {
        "optimal": options.optimal,
        "supplementary": options.supplementary,
        "optimal_rows": len(demos.optimal),
        "rows": len(demos.supplementary),
        "target": trained.purifier.target,
        "seed": options.seed,
    }


def _by_column(noise: Floats, demos: DemoSet) -> dict[str, float]:
    names = (column.name for column in demos.optimal.action_columns)
    return dict(zip(names, noise.tolist(), strict=True))


def _kl_steps(schedule: Schedule) -> tuple[int, ...]:
    """Enough for an integral, and those that are reported."""
    reported = {step for step in STEPS if step <= schedule.n_steps}
    return tuple(sorted(reported | set(spread_steps(schedule.n_steps, KL_STEPS))))


@dataclass(frozen=True, eq=False)
class Columns:
    """Which columns a purifier works in, and its units."""

    trained: DiffusionTransform
    varies: Array
    free: Array
    """Those it diffuses and carries back, of all."""
    changed: Array
    """Those of them whose result is kept."""

    @classmethod
    def of(cls, trained: DiffusionTransform) -> "Columns":
        """Of a fitted purifier."""
        varies = trained.normaliser.varies
        free = purifiable(trained.columns) & varies
        changed, target = free.copy(), trained.purifier.target
        changed[: trained.n_observations] &= target == "joint"
        return cls(trained, varies, changed if target == "inpaint" else free, changed)

    def scaled(self, rows: Demonstrations) -> Floats:
        """All columns, in the units of the purifier."""
        return self.trained.normaliser.apply(rows.pairs.astype(np.float64))

    def used(self, rows: Demonstrations) -> Floats:
        """The columns that vary."""
        return self.scaled(rows)[:, self.varies]

    def distance(self, one: Demonstrations, other: Demonstrations) -> Floats:
        """Between rows, in the columns that change."""
        apart = (self.scaled(one) - self.scaled(other))[:, self.changed]
        return np.asarray(np.linalg.norm(apart, axis=1), dtype=np.float64)


def _scores(
    trained: DiffusionTransform, rows: Demonstrations, columns: Columns, seeds: Seeds
) -> ScoreBounds:
    """In the columns that change: each is carried back by itself but for its score."""
    changed = columns.changed[columns.free]
    with progress("taking scores") as update:

        def scores_at(step: int) -> Floats:
            update(step, trained.max_step)
            return trained.scores(rows, step, seeds("theorem", step))[:, changed]

        return score_bounds(scores_at, trained.max_step)


def _read(options: "TheoryOptions", seeds: Seeds) -> DemoSet:
    specs = named(options.optimal), named(options.supplementary)
    good, noisy = (
        open_first(spec, rows)
        for spec, rows in zip(specs, (options.optimal_rows, options.rows), strict=True)
    )
    demos = DemoSet(
        optimal=good.rows(0, good.episodes.n_rows), supplementary=at_most(noisy, MOST_ROWS, seeds)
    )
    check_finite(demos.optimal, "D_o")
    check_finite(demos.supplementary, "D_s")
    clean = _clean(demos.supplementary)
    if clean is not None and not np.isfinite(clean.actions).all():
        raise EluteError(
            f"{options.supplementary}: {CLEAN} holds values that are not finite",
            hint=f"mend {CLEAN}, or leave it out: delta is then estimated",
        )
    if min(len(demos.optimal), len(demos.supplementary)) < 4:
        raise EluteError("fewer than four rows; expected more in both sets")
    for spec in specs:
        for finding in alignment_findings(take_sample(open_demos(spec)), None):
            if finding.code == "misaligned":
                say(f"warning: {spec}: {finding.message}")
    return demos


def _purifier(
    options: "TheoryOptions", demos: DemoSet, seeds: Seeds
) -> tuple[DiffusionTransform, int, Floats]:
    """A fitted purifier, the step that was chosen, and how far D_s seems to stray."""
    target = parse_target(options.target)
    if options.model is not None:
        loaded = load_transform(options.model)
        aimed = replace(loaded.purifier, target=target or loaded.purifier.target)
        for rows in (demos.optimal, demos.supplementary):
            check_widths(rows, loaded.n_observations, len(loaded.columns))
        trained = replace(loaded, purifier=aimed)
        return trained, loaded.purifier.reverse_step, _at_most_all(_strays(trained, demos), demos)
    purifier = DiffusionPurifier(target=target or "inpaint")
    with progress("choosing the reverse step") as update:
        choice = choose_reverse_step(purifier, demos, seeds, progress=update)
    every_step = replace(purifier, reverse_step=purifier.n_steps)
    with progress("training") as update:
        trained = every_step.fit(demos, seeds, progress=update)
    return trained, choice.for_actions, _at_most_all(np.array(choice.strays), demos)


def _at_most_all(noise: Floats, demos: DemoSet) -> Floats:
    """No more than the deviation of the actions of D_s; a guess that is off can exceed it.

    It is taken around the mean of D_o, so that a bias of D_s, which is a delta too, counts.
    """
    apart = demos.supplementary.actions.astype(np.float64) - demos.optimal.actions.mean(axis=0)
    return np.asarray(np.minimum(noise, np.sqrt((apart**2).mean(axis=0))), dtype=np.float64)


def _strays(trained: DiffusionTransform, demos: DemoSet) -> Floats:
    """Deviation of the actions of D_s from what their states suggest, beyond that of D_o."""
    if trained.max_step < 1:
        return np.zeros(demos.optimal.actions.shape[1])
    knowing = trained.at(trained.max_step)
    usual = demos.optimal.actions.mean(axis=0)
    odd, normal = (surprise(knowing, part, usual) for part in (demos.supplementary, demos.optimal))
    beyond = odd - normal
    return np.asarray(np.sqrt(np.maximum(beyond, 0.0)), dtype=np.float64)


def _clean(rows: Demonstrations) -> Demonstrations | None:
    """The rows with their clean actions, where the data holds them."""
    clean = rows.extras.get(CLEAN)
    if clean is None or clean.shape != rows.actions.shape:
        return None
    return replace(rows, actions=clean.astype(np.float64))


def _deviation(rows: Demonstrations, clean: Demonstrations) -> Floats:
    apart = (rows.actions - clean.actions).astype(np.float64)
    return np.asarray(np.sqrt((apart**2).mean(axis=0)), dtype=np.float64)


def _gaussian(optimal: Demonstrations, columns: Columns, noise: Floats) -> GaussianModel:
    """D_o as a Gaussian, given the columns that are held; delta on the actions alone.

    Of the columns that are purified along with others but left as they were, no error is counted.
    """
    free = columns.free[columns.varies]
    spread = covariance(columns.used(optimal))
    width = len(columns.varies)
    variance = np.zeros(width)
    variance[width - len(noise) :] = noise**2
    scaled = variance / columns.trained.normaliser.scale**2
    return GaussianModel(
        conditional_covariance(spread, free),
        np.diag(scaled[columns.free]),
        columns.changed[columns.free],
    )


def _variance_per_column(model: GaussianModel) -> float:
    """Of delta, where it is."""
    variance = np.diag(model.noise)
    return float(variance[variance > 0].mean()) if (variance > 0).any() else 0.0


def _measure(
    trained: DiffusionTransform, rows: Demonstrations, clean: Demonstrations, columns: Columns
) -> tuple[Distances, Distances]:
    """Distances from the clean pairs: by the chain of Eq. 7, and as elute purifies."""
    steps = tuple(step for step in DISTANCE_STEPS if step <= trained.max_step)
    every_step = replace(trained, purifier=replace(trained.purifier, descents=0, draws=1))
    delta = columns.distance(rows, clean)
    found: list[Distances] = []
    with progress("measuring distances") as update:
        for way in (every_step, trained):
            apart = []
            for step in steps:
                apart.append(columns.distance(way.at(step)(rows), clean))
                update(len(found) * len(steps) + len(apart), 2 * len(steps))
            found.append(Distances(steps, np.array(apart), delta))
    return found[0], found[1]
