"""`elute purify`: fit a purifier on the good demonstrations and clean the others."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.table import Table

from elute.cli.show import out, print_json, progress, say, say_losses
from elute.demos.audit.alignment import measure_alignment
from elute.demos.audit.sample import take_sample
from elute.demos.files import open_demos, save, split_spec
from elute.demos.output import check_output
from elute.errors import EluteError
from elute.purify.artefact import load_transform, save_transform
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.filters import FilterPurifier
from elute.purify.identity import IdentityPurifier
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Purifier, Target, Transform
from elute.purify.select import MOST_ROWS, Choice, at_most, choose_reverse_step
from elute.purify.wiener import WienerPurifier
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, DemoSource

if TYPE_CHECKING:
    from elute.cli.main import PurifyOptions

MOVED = "moved"
"""Extra column: how far each pair moved, in standard deviations per column."""
TARGETS: tuple[Target, ...] = ("joint", "action", "inpaint")


def run(noisy: str, output: Path, options: "PurifyOptions") -> None:
    """Purify a file and say what was done."""
    import torch

    torch.set_num_threads(1)
    check_output(output, [split_spec(given)[0] for given in (noisy, options.optimal)])
    seeds = Seeds(options.seed)
    source = _first(noisy, options.rows)
    good = _first(options.optimal, options.optimal_rows)
    optimal = good.rows(0, good.episodes.n_rows)
    sample = at_most(source, MOST_ROWS, seeds)
    demos = DemoSet(optimal=optimal, supplementary=sample)
    _warn_of_misalignment(optimal, source)
    transform, choice = _fitted(demos, seeds, options, output)
    if options.save_model is not None and isinstance(transform, DiffusionTransform):
        save_transform(transform, options.save_model)
    normaliser = Normaliser.fit(np.concatenate([optimal.pairs, sample.pairs]).astype(np.float64))

    def purified(start: int, rows: Demonstrations) -> Demonstrations:
        cleaned = transform(rows, first_row=start, seed=options.seed)
        moved = (cleaned.pairs - rows.pairs) / normaliser.scale
        return cleaned.with_extra(MOVED, np.sqrt((moved**2).mean(axis=1)))

    with progress("purifying") as update:
        losses = save(
            source,
            output,
            format=options.to,
            transform=purified,
            strict=options.strict,
            progress=update,
        )
    say_losses(losses)
    report = _report(demos, purified(0, sample), normaliser, transform, choice, options)
    report["rows"] = source.episodes.n_rows
    if options.as_json:
        print_json(report)
    else:
        _show(report)
    say(f"wrote {output}")


def _first(spec: str, rows: int | None) -> DemoSource:
    """A file, or only its first rows, which alone are read."""
    source = open_demos(spec)
    return source if rows is None else source.rows(0, min(rows, source.episodes.n_rows))


def _warn_of_misalignment(*sources: DemoSource) -> None:
    for source in sources:
        found = measure_alignment(take_sample(source).runs)
        if found.verdict == "misaligned":
            name = source.provenance.source
            say(
                f"warning: {name} is misaligned by {found.shift} rows; "
                f"elute demos audit {name} --fix OUT realigns it"
            )


def _fitted(
    demos: DemoSet, seeds: Seeds, options: "PurifyOptions", output: Path
) -> tuple[Transform, Choice | None]:
    """A fitted purifier, and how its reverse step was chosen; an interrupted training goes on."""
    if options.model is not None:
        loaded = load_transform(options.model)
        step = _step(options.reverse_step)
        return (loaded if step is None else loaded.at(step)), None
    purifier = _purifier(options)
    if not isinstance(purifier, DiffusionPurifier):
        return purifier.fit(demos, seeds), None
    choice = None
    if options.preset == "default":
        step = _step(options.reverse_step)
        with progress("choosing the reverse step") as update:
            choice = choose_reverse_step(
                purifier,
                demos,
                seeds,
                progress=update,
                **({} if step is None else {"candidates": (0, step) if step else (0,)}),
            )
        purifier = replace(purifier, reverse_step=choice.reverse_step if step is None else step)
    checkpoint = output.with_name(f".{output.name}.training")
    if checkpoint.exists():
        say(f"going on with the training in {checkpoint}; delete it to begin anew")
    with progress("training") as update:
        return purifier.fit(demos, seeds, progress=update, checkpoint=checkpoint), choice


def _purifier(options: "PurifyOptions") -> Purifier:
    step, target = _step(options.reverse_step), _target(options.target)
    if options.method == "diffusion":
        if options.preset == "default":
            return DiffusionPurifier(target=target or "inpaint")
        made = {"paper": DiffusionPurifier.paper, "reference": DiffusionPurifier.reference}
        if options.preset not in made:
            raise EluteError(f"{options.preset!r} is no preset", hint="default, paper, reference")
        preset = made[options.preset](10 if step is None else step)
        return replace(preset, target=target or preset.target)
    smoothed: Literal["joint", "action"] = "joint" if target == "joint" else "action"
    others: dict[str, Purifier] = {
        "wiener": WienerPurifier(
            reverse_step=150 if step is None else step, target=target or "joint"
        ),
        "gaussian": FilterPurifier(kind="gaussian", target=smoothed),
        "mean": FilterPurifier(kind="mean", target=smoothed),
        "median": FilterPurifier(kind="median", target=smoothed),
        "nearest": NearestPurifier(),
        "relabel": RelabelPurifier(),
        "identity": IdentityPurifier(),
    }
    if options.method not in others:
        raise EluteError(
            f"{options.method!r} is no method",
            hint="there are diffusion, " + ", ".join(others),
        )
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


def _report(
    demos: DemoSet,
    purified: Demonstrations,
    normaliser: Normaliser,
    transform: Transform,
    choice: Choice | None,
    options: "PurifyOptions",
) -> dict[str, Any]:
    step = transform.purifier.reverse_step if isinstance(transform, DiffusionTransform) else None
    target = transform.purifier.target if isinstance(transform, DiffusionTransform) else None
    before = demos.supplementary
    columns = [c.name for c in (*before.observation_columns, *before.action_columns)]
    moved = np.abs(purified.pairs - before.pairs).mean(axis=0)
    errors = dict(choice.errors) if choice is not None else {}
    return {
        "method": options.method,
        "reverse_step": step,
        "target": target,
        "rows": len(before),
        "optimal_rows": len(demos.optimal),
        "seed": options.seed,
        "heldout_error": {"before": errors.get(0), "after": errors.get(step or 0)},
        "candidates": {str(k): v for k, v in errors.items()},
        "moved": dict(zip(columns, moved.tolist(), strict=True)),
        "distance": {
            "before": _distance(demos.optimal, before, normaliser),
            "after": _distance(demos.optimal, purified, normaliser),
        },
    }


def _distance(optimal: Demonstrations, others: Demonstrations, normaliser: Normaliser) -> float:
    """Mean distance of a pair to the nearest optimal pair, in standard deviations per column."""
    from scipy.spatial import cKDTree

    width = np.sqrt(max(1, int(normaliser.varies.sum())))
    near, _ = cKDTree(normaliser.apply(optimal.pairs)).query(normaliser.apply(others.pairs))
    return float(near.mean() / width)


def _show(report: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("method", f"{report['method']}, target {report['target'] or '-'}")
    table.add_row("rows", f"{report['rows']}, with {report['optimal_rows']} optimal ones")
    if report["reverse_step"] is not None:
        why = "recovers spoilt optimal actions best" if len(report["candidates"]) > 2 else "given"
        table.add_row("reverse step", f"{report['reverse_step']} ({why})")
    errors, distance = report["heldout_error"], report["distance"]
    if errors["before"] is not None:
        table.add_row("held-out action error", f"{errors['before']:.4g} -> {errors['after']:.4g}")
    table.add_row("distance to optimal", f"{distance['before']:.4g} -> {distance['after']:.4g}")
    moved = {name: value for name, value in report["moved"].items() if value > 0}
    largest = sorted(moved, key=lambda name: -moved[name])[:6]
    table.add_row("moved most", ", ".join(f"{name} {moved[name]:.3g}" for name in largest) or "-")
    out.print(table, markup=False)
