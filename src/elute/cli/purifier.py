"""From options to a fitted purifier, for every command that purifies.

check_options(options)                         # before any work is done
fitted, choice = fit_purifier(options, demos, seeds, checkpoint)
transform = clipped(fitted, demos, options)
"""

from dataclasses import replace
from functools import partial
from pathlib import Path

from elute.cli.arguments import parse_bounds
from elute.cli.show import progress, say
from elute.diffusion.ddpm import OtherTrainingError
from elute.errors import EluteError
from elute.experiment.purifiers import (
    PurifierOptions,
    check_purifier,
    make_purifier,
    parse_step,
    parse_target,
)
from elute.purify.artefact import load_transform
from elute.purify.clip import ClippedTransform, action_bounds
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.purifier import Transform
from elute.purify.select import CANDIDATES, FOLDS, Choice, choose_reverse_step, trained_up_to
from elute.rng import Seeds
from elute.types import DemoSet


def check_options(options: PurifierOptions) -> None:
    """Refuse options that do not go together, before any work is done.

    Raises:
        EluteError: one of them would change nothing, or the bounds are none.
    """
    check_purifier(options)
    if options.bounds and not options.clip:
        raise EluteError("--bounds goes with --clip")
    if options.bounds:
        parse_bounds(options.bounds)


def fit_purifier(
    options: PurifierOptions, demos: DemoSet, seeds: Seeds, checkpoint: Path
) -> tuple[Transform, Choice | None]:
    """A fitted purifier, and how its reverse step was chosen; an interrupted training goes on."""
    if options.model is not None:
        loaded = load_transform(options.model)
        step, target = parse_step(options.reverse_step), parse_target(options.target)
        aimed = replace(loaded.purifier, target=target or loaded.purifier.target)
        loaded = replace(loaded, purifier=aimed)
        return (loaded if step is None else loaded.at(step)), None
    purifier = make_purifier(options)
    if not isinstance(purifier, DiffusionPurifier):
        return purifier.fit(demos, seeds), None
    choice = None
    if options.preset == "default":
        given = parse_step(options.reverse_step)
        judged = CANDIDATES if given is None else (0, given)
        if given is None or (given and len(demos.optimal) >= 2 * FOLDS):  # judged, if it can be
            with progress("choosing the reverse step") as update:
                choice = choose_reverse_step(
                    purifier, demos, seeds, candidates=judged, progress=update
                )
        if given is None and choice is not None:
            purifier = replace(purifier, reverse_step=choice.for_actions)
    return _trained(purifier, demos, seeds, checkpoint), choice


def _trained(
    purifier: DiffusionPurifier, demos: DemoSet, seeds: Seeds, checkpoint: Path
) -> DiffusionTransform:
    if checkpoint.exists():
        say(f"going on with the training in {checkpoint}; delete it to begin anew")
    with progress("training") as update:
        up_to = trained_up_to(purifier.reverse_step)
        fit = partial(purifier.fit, demos, seeds, up_to=up_to, checkpoint=checkpoint)
        try:
            return fit(progress=update)
        except OtherTrainingError:
            say(f"{checkpoint} is of another training; beginning anew")
            checkpoint.unlink()
            return fit(progress=update)


def clipped(fitted: Transform, demos: DemoSet, options: PurifierOptions) -> Transform:
    """With actions clipped, if that was asked for; says to what."""
    if not options.clip:
        return fitted
    bounds, said_by = (
        (parse_bounds(options.bounds), "--bounds") if options.bounds else action_bounds(demos)
    )
    low, high = float(bounds.low.min()), float(bounds.high.max())
    say(f"actions are clipped to {low:.4g}..{high:.4g} ({said_by})")
    return ClippedTransform(fitted, bounds)
