"""Methods by name, each with its settings by name: `default` is the best we know."""

from collections.abc import Callable, Mapping
from dataclasses import fields, replace
from difflib import get_close_matches

from elute.episodes import Array
from elute.errors import EluteError
from elute.learners.actor import Design
from elute.learners.adversarial import OnlineMethod
from elute.learners.bc import BC
from elute.learners.bcnd import BCND
from elute.learners.dbc import DBC
from elute.learners.demodice import DemoDICE
from elute.learners.diffusion_bc import DiffusionBC
from elute.learners.dwbc import DWBC
from elute.learners.gail import GAIL
from elute.learners.ic_gail import ICGAIL
from elute.learners.isw_bc import ISWBC
from elute.learners.learner import Learner
from elute.learners.sail import SAIL
from elute.learners.self_weighted import SelfWeightedBC
from elute.learners.smodice import SMODICE
from elute.learners.two_iwil import TwoIWIL
from elute.learners.wgail import WGAIL

Method = Learner | OnlineMethod
"""Learns from demonstrations alone, or by playing the task as well."""
Presets = Mapping[str, Callable[[], Method]]

METHODS: Mapping[str, Presets] = {
    "bc": {"default": BC, "paper": BC.paper},
    "bc-opt": {
        "default": lambda: BC(on="optimal"),
        "paper": lambda: BC.paper(on="optimal"),
    },
    "bcnd": {"default": BCND, "paper": BCND.paper, "no-ensemble": BCND.no_ensemble},
    "self-weighted-bc": {"default": SelfWeightedBC, "reference": SelfWeightedBC.reference},
    "dwbc": {"default": DWBC, "paper": DWBC.paper, "official": DWBC.official},
    "isw-bc": {"default": ISWBC, "paper": ISWBC.paper},
    "demodice": {"default": DemoDICE, "paper": DemoDICE.paper},
    "smodice": {"default": SMODICE, "paper": SMODICE.paper},
    "dbc": {"default": DBC, "paper": DBC.paper},
    "diffusion-bc": {"default": DiffusionBC, "paper": DiffusionBC.paper},
    "gail": {"default": GAIL, "paper": GAIL.paper},
    "2iwil": {"default": TwoIWIL, "paper": TwoIWIL.paper},
    "ic-gail": {"default": ICGAIL, "paper": ICGAIL.paper},
    "wgail": {"default": WGAIL, "paper": WGAIL.paper},
    "sail": {"default": SAIL, "paper": SAIL.paper},
}
"""`bc` clones whatever is given, D_o and D_s."""


def find_method(name: str, preset: str = "default") -> Method:
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


def with_bounds(learner: Method, low: Array, high: Array) -> Method:
    """The learner with policies that keep to these bounds, instead of any of its preset."""
    if isinstance(learner, OnlineMethod):
        return learner  # its task has them
    sides = tuple(low.tolist()), tuple(high.tolist())
    design = getattr(learner, "actor", None)
    if isinstance(design, Design):
        return _changed(learner, "actor", replace(design, bounds=sides))
    return _changed(learner, "bounds", sides)


def _changed(learner: Learner, name: str, value: object) -> Learner:
    given = {f.name: getattr(learner, f.name) for f in fields(learner)}  # type: ignore[arg-type]
    made: Learner = type(learner)(**(given | {name: value}))
    return made
