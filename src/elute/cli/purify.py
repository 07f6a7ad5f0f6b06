"""`elute purify`: fit a purifier on the good demonstrations and clean the others."""

from collections.abc import Sequence
from dataclasses import replace
from functools import reduce
from operator import add
from pathlib import Path
from shlex import quote
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from rich.table import Table

from elute.cli.demos import parse_bounds
from elute.cli.show import out, print_json, progress, say, say_losses
from elute.demos.audit.alignment import alignment_findings
from elute.demos.audit.audit import audit
from elute.demos.audit.finding import Finding
from elute.demos.audit.sample import SAMPLE_ROWS, take_sample
from elute.demos.audit.summary import Bounds
from elute.demos.files import open_demos, save, split_spec
from elute.demos.output import check_output
from elute.episodes import Array
from elute.errors import EluteError
from elute.purify.artefact import load_transform, save_transform
from elute.purify.clip import ClippedTransform, action_bounds
from elute.purify.controls import NearestPurifier, RelabelPurifier
from elute.purify.diffusion import DiffusionPurifier, DiffusionTransform
from elute.purify.filters import FilterPurifier
from elute.purify.identity import IdentityPurifier
from elute.purify.normaliser import Normaliser
from elute.purify.purifier import Purifier, Target, Transform
from elute.purify.select import FOLDS, MOST_ROWS, Choice, at_most, choose_reverse_step
from elute.purify.wiener import WienerPurifier, WienerTransform
from elute.report.before_after import SERIES_ROWS, BeforeAfter, check_figure, draw_before_after
from elute.rng import Seeds
from elute.types import Demonstrations, DemoSet, DemoSource

if TYPE_CHECKING:
    from elute.cli.main import PurifyOptions

MOVED = "moved"
"""Extra column: how far each pair moved, in standard deviations per column."""
TARGETS: tuple[Target, ...] = ("joint", "action", "inpaint")
MOST_FINDINGS = 3
"""Of the audit that are said; the audit itself says them all."""


def run(noisy: str, output: Path, options: "PurifyOptions") -> None:
    """Purify a file and say what was done."""
    import torch

    torch.set_num_threads(1)
    limits = _check(noisy, output, options)
    seeds = Seeds(options.seed)
    source = _first(noisy, options.rows)
    good = _first(options.optimal, options.optimal_rows)
    optimal = good.rows(0, good.episodes.n_rows)
    sample = at_most(source, MOST_ROWS, seeds)
    demos = DemoSet(optimal=optimal, supplementary=sample)
    _say_findings(noisy, source, optimal, options)
    fitted, choice = _fitted(demos, seeds, options, output)
    if options.save_model is not None and isinstance(fitted, DiffusionTransform):
        save_transform(fitted, options.save_model)
    transform = _clipped(fitted, demos, limits) if options.clip else fitted
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
    cleaned = purified(0, sample)
    distances = [_distances(optimal, rows, normaliser) for rows in (sample, cleaned)]
    report = _report(demos, cleaned, distances, _settings(fitted, choice, options))
    report["rows"] = source.episodes.n_rows
    if options.as_json:
        print_json(report)
    else:
        _show(report)
    say(f"wrote {output}")
    if options.figure is not None:
        first = source.rows(0, min(SERIES_ROWS, source.episodes.n_rows))
        shown = BeforeAfter(
            title=_title(report, source),
            before=first,
            after=purified(0, first),
            optimal=optimal,
            scale=normaliser.scale,
            moved=cleaned.extras[MOVED],
            distances=(distances[0], distances[1]),
        )
        draw_before_after(shown, options.figure)
        say(f"wrote {options.figure}")


def _check(noisy: str, output: Path, options: "PurifyOptions") -> Bounds | None:
    """Refuse what cannot end well, before any work is done; the bounds that were given."""
    inputs = [split_spec(given)[0] for given in (noisy, options.optimal)]
    check_output(output, inputs)
    for path in filter(None, (options.save_model, options.figure)):
        if path.resolve() == output.resolve():
            raise EluteError(f"{path}: stands for two outputs", hint="give each its own path")
    if options.figure is not None:
        check_figure(options.figure, inputs)
    if options.save_model is not None:
        check_output(options.save_model, inputs)
        if options.method != "diffusion":
            raise EluteError(f"--save-model: {options.method} has no model to save")
    if options.model is not None:
        _check_reuse(options)
    if options.bounds and not options.clip:
        raise EluteError("--bounds goes with --clip")
    return parse_bounds(options.bounds) if options.bounds else None


def _check_reuse(options: "PurifyOptions") -> None:
    """A model brings its own settings."""
    for name, default in (("method", "diffusion"), ("preset", "default")):
        given = getattr(options, name)
        if given != default:
            raise EluteError(
                f"--{name} {given} does not go with --model: the model is trained already",
                hint="leave out one of them; --target and --reverse-step may be given",
            )


def _clipped(fitted: Transform, demos: DemoSet, limits: Bounds | None) -> Transform:
    bounds, said_by = (limits, "--bounds") if limits is not None else action_bounds(demos)
    low, high = float(bounds.low.min()), float(bounds.high.max())
    say(f"actions are clipped to {low:.4g}..{high:.4g} ({said_by})")
    return ClippedTransform(fitted, bounds)


def _first(spec: str, rows: int | None) -> DemoSource:
    """A file, or only its first rows, which alone are read."""
    source = open_demos(spec)
    return source if rows is None else source.rows(0, min(rows, source.episodes.n_rows))


def _say_findings(
    noisy: str, source: DemoSource, optimal: Demonstrations, options: "PurifyOptions"
) -> None:
    """The gravest findings of the audit, in a few lines."""
    found = _findings(noisy, source, optimal, options)
    for finding in found[:MOST_FINDINGS]:
        mend = f"; elute demos audit {quote(finding.file)} --fix OUT mends it"
        say(f"warning: {finding.file}: {finding.message}{mend if finding.repair else ''}")
    if found:
        more = len(found) - MOST_FINDINGS
        rest = f"{more} more; " if more > 0 else ""
        command = f"elute demos audit {quote(noisy)} --optimal {quote(options.optimal)}"
        say(f"warning: {rest}{command} says what to do")


def _findings(
    noisy: str, source: DemoSource, optimal: Demonstrations, options: "PurifyOptions"
) -> list[Finding]:
    """Errors and warnings about the rows in use, and whether the whole files are misaligned."""
    audited = audit(_glance(source), optimal=_glance(optimal))
    found = [finding for finding in audited.findings if finding.severity != "note"]
    for spec, rows, about_optimal in (
        (noisy, options.rows, False),
        (options.optimal, options.optimal_rows, True),
    ):
        known = any(f.code == "misaligned" and f.about_optimal == about_optimal for f in found)
        if rows is not None and not known:  # so few may be too few to see it
            whole = alignment_findings(take_sample(open_demos(spec)), None)
            found = [*(replace(f, file=spec) for f in whole if f.code == "misaligned"), *found]
    return found


def _glance(source: DemoSource) -> DemoSource:
    """A source of bounded size: itself, or blocks of rows spread over it."""
    if source.episodes.n_rows <= SAMPLE_ROWS:
        return source
    joined = reduce(add, take_sample(source).runs)
    return replace(joined, provenance=source.provenance)


def _fitted(
    demos: DemoSet, seeds: Seeds, options: "PurifyOptions", output: Path
) -> tuple[Transform, Choice | None]:
    """A fitted purifier, and how its reverse step was chosen; an interrupted training goes on."""
    if options.model is not None:
        loaded = load_transform(options.model)
        step, target = _step(options.reverse_step), _target(options.target)
        aimed = replace(loaded.purifier, target=target or loaded.purifier.target)
        loaded = replace(loaded, purifier=aimed)
        return (loaded if step is None else loaded.at(step)), None
    purifier = _purifier(options)
    if not isinstance(purifier, DiffusionPurifier):
        return purifier.fit(demos, seeds), None
    choice = None
    if options.preset == "default":
        step = _step(options.reverse_step)
        if step is None or len(demos.optimal) >= 2 * FOLDS:
            with progress("choosing the reverse step") as update:
                choice = choose_reverse_step(
                    purifier,
                    demos,
                    seeds,
                    progress=update,
                    **({} if step is None else {"candidates": (0, step) if step else (0,)}),
                )
        if step is None and choice is not None:
            step = choice.reverse_step
        purifier = replace(purifier, reverse_step=step or 0)
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


def _settings(fitted: Transform, choice: Choice | None, options: "PurifyOptions") -> dict[str, Any]:
    """What was done, and why at this step."""
    made = fitted.purifier if isinstance(fitted, DiffusionTransform | WienerTransform) else None
    step = None if made is None else made.reverse_step
    errors = dict(choice.errors) if choice is not None else {}
    if options.reverse_step != "auto":
        why = "given"
    elif choice is not None:
        why = "recovers spoilt optimal actions best"
    else:
        why = "the model's own" if options.model is not None else "the method's own"
    return {
        "method": options.method,
        "reverse_step": step,
        "reverse_step_why": None if made is None else why,
        "target": None if made is None else made.target,
        "seed": options.seed,
        "heldout_error": {"before": errors.get(0), "after": errors.get(step or 0)},
        "candidates": {str(k): v for k, v in errors.items()},
    }


def _report(
    demos: DemoSet, purified: Demonstrations, distances: Sequence[Array], settings: dict[str, Any]
) -> dict[str, Any]:
    before = demos.supplementary
    columns = [c.name for c in (*before.observation_columns, *before.action_columns)]
    moved = np.abs(purified.pairs - before.pairs).mean(axis=0)
    return {
        **settings,
        "rows": len(before),
        "optimal_rows": len(demos.optimal),
        "moved": dict(zip(columns, moved.tolist(), strict=True)),
        "distance": {"before": float(distances[0].mean()), "after": float(distances[1].mean())},
    }


def _distances(optimal: Demonstrations, others: Demonstrations, normaliser: Normaliser) -> Array:
    """Of each pair to the nearest optimal pair, in standard deviations per column."""
    from scipy.spatial import cKDTree

    width = np.sqrt(max(1, int(normaliser.varies.sum())))
    near, _ = cKDTree(normaliser.apply(optimal.pairs)).query(normaliser.apply(others.pairs))
    distances: Array = near / width
    return distances


def _title(report: dict[str, Any], source: DemoSource) -> str:
    name = Path(source.provenance.source).name
    step, target = report["reverse_step"], report["target"]
    how = f", reverse step {step}, target {target}" if step is not None else ""
    return f"{name}, purified: {report['rows']} rows, {report['method']}{how}"


def _show(report: dict[str, Any]) -> None:
    table = Table(show_header=False, box=None, padding=(0, 2))
    table.add_row("method", f"{report['method']}, target {report['target'] or '-'}")
    table.add_row("rows", f"{report['rows']}, with {report['optimal_rows']} optimal ones")
    if report["reverse_step"] is not None:
        step, why = report["reverse_step"], report["reverse_step_why"]
        nothing = "; nothing is purified" if step == 0 else ""
        table.add_row("reverse step", f"{step} ({why}{nothing})")
    errors, distance = report["heldout_error"], report["distance"]
    if errors["before"] is not None:
        table.add_row("held-out action error", f"{errors['before']:.4g} -> {errors['after']:.4g}")
    table.add_row("distance to optimal", f"{distance['before']:.4g} -> {distance['after']:.4g}")
    moved = {name: value for name, value in report["moved"].items() if value > 0}
    largest = sorted(moved, key=lambda name: -moved[name])[:6]
    table.add_row("moved most", ", ".join(f"{name} {moved[name]:.3g}" for name in largest) or "-")
    out.print(table, markup=False)
