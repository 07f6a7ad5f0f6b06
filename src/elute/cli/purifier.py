"""From options to a fitted purifier, for every command that purifies.

check_purifier(options)                       # before any work is done
fitted, choice = fit_purifier(options, demos, seeds, checkpoint)
transform = clipped(fitted, demos, options)
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from elute.cli.arguments import parse_bounds
from elute.cli.show import progress, say
from elute.diffusion.ddpm import OtherTrainingError
from elute.errors import EluteError
from elute.purify.artefact import load_transform
from elute.purify.clip import ClippedTransform, action_bounds
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.filters import FilterPurifier
from elute.purify.identity import IdentityPurifier
from elute.purify.purifier import Purifier, Target, Transform
from elute.purify.select import FOLDS, Choice, choose_reverse_step
from elute.purify.wiener import WienerPurifier
from elute.rng import Seeds
from elute.types import DemoSet

TARGETS: tuple[Target, ...] = ("joint", "action", "inpaint")
FILTERS = ("gaussian", "mean", "median")
METHODS = ("diffusion", "wiener", *FILTERS, "nearest", "relabel", "identity")


@dataclass(frozen=True, kw_only=True)
class PurifierOptions:
    """What a command was told about its purifier, word for word."""

    method: str = "diffusion"
    reverse_step: str = "auto"
    target: str = ""
    """Empty: the method's own."""
    preset: str = "default"
    model: Path | None = None
    """A trained one to use again."""
    clip: bool = False
    bounds: str = ""
    """What to clip to; empty: what file, task or data say."""


def check_purifier(options: PurifierOptions) -> None:
    """Refuse options that do not go together.

    Raises:
        EluteError: one of them would change nothing, or the bounds are none.
    """
    _check_method(options)
    if options.model is not None:
        _check_reuse(options)
    if options.bounds and not options.clip:
        raise EluteError("--bounds goes with --clip")
    if options.bounds:
        parse_bounds(options.bounds)


def _check_method(options: PurifierOptions) -> None:
    """A flag that would change nothing is a mistake."""
    method = options.method
    takes_step = method in ("diffusion", "wiener")
    targets = TARGETS if takes_step else ("joint", "action") if method in FILTERS else ()
    ignored = [
        *(["--preset"] if method != "diffusion" and options.preset != "default" else []),
        *(["--reverse-step"] if not takes_step and options.reverse_step != "auto" else []),
        *(["--target"] if options.target in TARGETS and options.target not in targets else []),
    ]
    if method in METHODS and ignored:
        can = f"; targets of {method} are {', '.join(targets)}" if targets else ""
        raise EluteError(f"{' and '.join(ignored)}: not for --method {method}{can}")


def _check_reuse(options: PurifierOptions) -> None:
    """A model brings its own settings."""
    for name, default in (("method", "diffusion"), ("preset", "default")):
        given = getattr(options, name)
        if given != default:
            raise EluteError(
                f"--{name} {given} does not go with --model: the model is trained already",
                hint="leave out one of them; --target and --reverse-step may be given",
            )


def make_purifier(options: PurifierOptions) -> Purifier:
    """The purifier, not fitted; `auto` leaves its reverse step at the default.

    Raises:
        EluteError: there is no such method, preset, step or target.
    """
    step, target = _step(options.reverse_step), _target(options.target)
    if options.method == "diffusion":
        if options.preset == "default":
            default = DiffusionPurifier()
            return replace(
                default,
                reverse_step=default.reverse_step if step is None else step,
                target=target or default.target,
            )
        made = {"paper": DiffusionPurifier.paper, "reference": DiffusionPurifier.reference}
        if options.preset not in made:
            raise EluteError(f"{options.preset!r} is no preset", hint="default, paper, reference")
        preset = made[options.preset](10 if step is None else step)
        return replace(preset, target=target or preset.target)
    if options.method in FILTERS:
        smoothed: Literal["joint", "action"] = "joint" if target == "joint" else "action"
        kind = cast("Literal['gaussian', 'mean', 'median']", options.method)
        return FilterPurifier(kind=kind, target=smoothed)
    wiener = WienerPurifier()
    others: dict[str, Purifier] = {
        "wiener": replace(
            wiener,
            reverse_step=wiener.reverse_step if step is None else step,
            target=target or wiener.target,
        ),
        "nearest": NearestPurifier(),
        "relabel": RelabelPurifier(),
        "identity": IdentityPurifier(),
    }
    if options.method not in others:
        raise EluteError(f"{options.method!r} is no method", hint="there are " + ", ".join(METHODS))
    return others[options.method]


def _step(text: str) -> int | None:
    """A reverse step; none for "auto"."""
    if text == "auto":
        return None
    if not text.isdecimal():
        raise EluteError(f"--reverse-step {text}: expected auto or a number from 0 to 1000")
    return int(text)


def _target(text: str) -> Target | None:
    if not text:
        return None
    for target in TARGETS:
        if target == text:
            return target
    raise EluteError(f"{text!r} is no target", hint="there are " + ", ".join(TARGETS))


def fit_purifier(
    options: PurifierOptions, demos: DemoSet, seeds: Seeds, checkpoint: Path
) -> tuple[Transform, Choice | None]:
    """A fitted purifier, and how its reverse step was chosen; an interrupted training goes on."""
    if options.model is not None:
        loaded = load_transform(options.model)
        step, target = _step(options.reverse_step), _target(options.target)
        aimed = replace(loaded.purifier, target=target or loaded.purifier.target)
        loaded = replace(loaded, purifier=aimed)
        return (loaded if step is None else loaded.at(step)), None
    purifier = make_purifier(options)
    if not isinstance(purifier, DiffusionPurifier):
        return purifier.fit(demos, seeds), None
    choice = None
    if options.preset == "default":
        given = _step(options.reverse_step)
        if given is None or len(demos.optimal) >= 2 * FOLDS:  # a given step is judged, if it can be
            with progress("choosing the reverse step") as update:
                choice = choose_reverse_step(
                    purifier,
                    demos,
                    seeds,
                    progress=update,
                    **({} if given is None else {"candidates": (0, given) if given else (0,)}),
                )
        if given is None and choice is not None:
            purifier = replace(purifier, reverse_step=choice.reverse_step)
    return _trained(purifier, demos, seeds, checkpoint), choice


def _trained(
    purifier: DiffusionPurifier, demos: DemoSet, seeds: Seeds, checkpoint: Path
) -> DiffusionTransform:
    if checkpoint.exists():
        say(f"going on with the training in {checkpoint}; delete it to begin anew")
    with progress("training") as update:
        try:
            return purifier.fit(demos, seeds, progress=update, checkpoint=checkpoint)
        except OtherTrainingError:
            say(f"{checkpoint} is of another training; beginning anew")
            checkpoint.unlink()
            return purifier.fit(demos, seeds, progress=update, checkpoint=checkpoint)


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
