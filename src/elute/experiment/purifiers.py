"""From words to a purifier, for every command and for experiments.

check_purifier(options)          # before any work is done
purifier = make_purifier(options)
"""

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Literal, cast

from elute.errors import EluteError
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.diffusion import DiffusionPurifier
from elute.purify.filters import FilterPurifier
from elute.purify.identity import IdentityPurifier
from elute.purify.purifier import Purifier, Target
from elute.purify.wiener import WienerPurifier

TARGETS: tuple[Target, ...] = ("joint", "action", "inpaint")
FILTERS = ("gaussian", "mean", "median")
STEPPED = ("diffusion", "wiener")
"""They take a reverse step."""
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

    def to_json(self) -> dict[str, str]:
        """What says which purifier it is."""
        names = ("method", "reverse_step", "target", "preset")
        return {name: getattr(self, name) for name in names}


def check_purifier(options: PurifierOptions) -> None:
    """Refuse options that do not go together.

    Raises:
        EluteError: one of them would change nothing.
    """
    _check_method(options)
    if options.model is not None:
        _check_reuse(options)


def _check_method(options: PurifierOptions) -> None:
    """A flag that would change nothing is a mistake."""
    method = options.method
    takes_step = method in STEPPED
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
    step, target = parse_step(options.reverse_step), parse_target(options.target)
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


def parse_step(text: str) -> int | None:
    """A reverse step; none for "auto"."""
    if text == "auto":
        return None
    if not text.isdecimal():
        raise EluteError(f"--reverse-step {text}: expected auto or a number from 0 to 1000")
    return int(text)


def parse_target(text: str) -> Target | None:
    """A target; none where the method has its own."""
    if not text:
        return None
    for target in TARGETS:
        if target == text:
            return target
    raise EluteError(f"{text!r} is no target", hint="there are " + ", ".join(TARGETS))
