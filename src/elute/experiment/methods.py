"""Methods by name, each with its settings by name: `default` is the best we know."""

from collections.abc import Callable, Mapping
from difflib import get_close_matches

from elute.errors import EluteError
from elute.learners.bc import BC
from elute.learners.learner import Learner

Presets = Mapping[str, Callable[[], Learner]]

METHODS: Mapping[str, Presets] = {
    "bc": {"default": BC, "paper": BC.paper},
    "bc-opt": {
        "default": lambda: BC(on="optimal"),
        "paper": lambda: BC.paper(on="optimal"),
    },
}
"""`bc` clones whatever is given, D_o and D_s."""


def find_method(name: str, preset: str = "default") -> Learner:
    """A learner with the settings of a preset.

    Raises:
        EluteError: no such method or preset.
    """
    if name not in METHODS:
        near = get_close_matches(name, METHODS, n=1)
        hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(METHODS)}"
        raise EluteError(f"{name!r} is no method", hint=hint)
    presets = METHODS[name]
    if preset not in presets:
        raise EluteError(
            f"{preset!r} is no preset of {name}", hint=f"there are {', '.join(presets)}"
        )
    return presets[preset]()
