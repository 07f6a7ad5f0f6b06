"""`elute theory`: the paper's claims put to numbers, and its theorems put to one's own data."""

from collections import Counter
from dataclasses import asdict, dataclass
from math import isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from rich.table import Table

from elute.cli.show import out, print_json, say
from elute.errors import EluteError
from elute.report.claims import ledger
from elute.report.theory import DataFigures, check_folder, draw_data, draw_theory
from elute.theory.claims.claim import Checked, Verdict
from elute.theory.data import STEPS

if TYPE_CHECKING:
    from elute.cli.theory_data import Study

STYLE: dict[Verdict, str] = {
    "holds": "bold green",
    "holds corrected": "bold yellow",
    "fails": "bold red",
    "vacuous": "bold magenta",
}


@dataclass(frozen=True, kw_only=True)
class TheoryOptions:
    """What `elute theory` was told."""

    optimal: str
    supplementary: str
    model: Path | None
    optimal_rows: int | None
    rows: int | None
    target: str
    seed: int
    figure: Path | None
    as_json: bool


def run(options: TheoryOptions) -> None:
    """Check the claims, study the data if there is any, print, draw."""
    with_data = _check(options)
    checked, study = ledger(), None
    if with_data:
        from elute.cli.theory_data import study_data  # with torch, which the ledger does not need

        study = study_data(options)
    if options.as_json:
        every = checked if study is None else checked + study.claims
        report: dict[str, Any] = {"claims": [asdict(claim) for claim in every]}
        print_json(report if study is None else report | {"data": facts(study)})
    elif study is None:
        _show_claims(checked)
        out.print(_counted(checked, "claims"), style="bold", markup=False)
    else:
        told = _counted(checked, "claims of the paper")
        out.print(f"{told}; elute theory alone lists them\n", markup=False)
        _show_claims(study.claims)
        _show_study(facts(study))
    if options.figure is not None:
        for path in _draw(study, options.figure):
            say(f"wrote {path}")


def _check(options: TheoryOptions) -> bool:
    """Whether there is data; what cannot end well is refused before any work is done."""
    files = {"--optimal": options.optimal, "--supplementary": options.supplementary}
    missing = [name for name, given in files.items() if not given]
    if len(missing) == 1:
        raise EluteError(
            f"{missing[0]} is missing", hint="the theorems compare good demonstrations with others"
        )
    of_data = {
        "--model": options.model,
        "--optimal-rows": options.optimal_rows,
        "--rows": options.rows,
        "--target": options.target,
    }
    alone = [name for name, given in of_data.items() if given]
    if missing and alone:
        raise EluteError(f"{' and '.join(alone)}: only with --optimal and --supplementary")
    if options.figure is not None:
        check_folder(options.figure)
    return not missing


def facts(study: "Study") -> dict[str, Any]:
    """What the theorems say about the data, as JSON has it."""
    steps = [step for step in STEPS if step < len(study.bounds.upper)]
    bounds, forward, alpha_bar = study.bounds, study.forward, study.schedule.alpha_bar
    directions = study.model.contractions(alpha_bar)
    survives = study.model.survives(alpha_bar) if study.delta > 0 else None
    return {
        **study.about,
        "dimension": study.scores.dimension,
        "failure_prob": study.failure_prob,
        "delta": {
            "norm": _number(float(np.sqrt(np.trace(study.model.noise)))),
            "bounded": _number(study.delta),
            "known": study.known,
            "columns": {name: _number(value) for name, value in study.noise.items()},
        },
        "ratio": _number(study.ratio),
        "lambda_largest": _number(float(bounds.printed_lower[1:].max())),
        "score": [
            {
                "step": i,
                "least": _number(study.scores.least[i]),
                "most": _number(study.scores.most[i]),
            }
            for i in steps
        ],
        "bounds": [
            {
                "step": i,
                "lower_printed": _number(bounds.printed_lower[i]),
                "upper_printed": _number(bounds.printed_upper[i]),
                "upper_corrected": _number(bounds.upper[i]),
                "upper_per_step": _number(bounds.path_upper[i]),
                "lower_per_step": _number(bounds.path_lower[i]),
            }
            for i in steps
        ],
        "contraction": [
            {
                "step": i,
                "narrowest": _number(directions[i, 0]),
                "widest": _number(directions[i, -1]),
                "delta": None if survives is None else _number(survives[i]),
            }
            for i in steps
        ],
        "kl": [
            {
                "step": i,
                "gaussian": _number(forward.gaussian[k]),
                "sample": _number(forward.sample.kl[k]),
                "stderr": _number(forward.sample.kl_error[k]),
            }
            for k, i in enumerate(forward.steps)
        ],
        "distance": _distances(study),
        "alike_after": forward.alike_after,
        "reverse_step": study.steps,
    }


def _distances(study: "Study") -> list[dict[str, float]] | None:
    """Measured, where the clean actions are known."""
    if study.distances is None or study.usual is None:
        return None
    chain, usual = (
        [found.delta.mean(), *found.purified.mean(axis=1)]
        for found in (study.distances, study.usual)
    )
    return [
        {"step": step, "one_draw": _number(one), "purified": _number(mean)}
        for step, one, mean in zip((0, *study.distances.steps), chain, usual, strict=True)
    ]


def _number(value: float) -> float:
    return float(f"{value:.6g}")


def _show_claims(checked: list[Checked]) -> None:
    for claim in checked:
        out.print(claim.verdict, style=STYLE[claim.verdict], end="")
        out.print(f": {claim.claim}  ({claim.where})", markup=False)
        out.print(f"  printed   {claim.printed}", markup=False)
        computed = "; ".join(f"{name}: {value:.4g}" for name, value in claim.computed.items())
        out.print(f"  computed  {computed}\n", markup=False)


def _counted(checked: list[Checked], what: str) -> str:
    counts = Counter(claim.verdict for claim in checked)
    told = ", ".join(f"{counts[verdict]} {verdict}" for verdict in STYLE)
    return f"{len(checked)} {what}: {told}"


def _show_study(found: dict[str, Any]) -> None:
    """The data, on the terminal."""
    delta = found["delta"]
    how = (
        "known: the data holds its clean actions"
        if delta["known"]
        else "upper estimate: how far D_s strays from its states"
    )
    title = f"\n{found['supplementary']}, purified by what {found['optimal']} shows"
    out.print(title, style="bold", markup=False)
    about = Table(show_header=False, box=None, padding=(0, 2))
    about.add_row("rows", f"{found['rows']}, with {found['optimal_rows']} optimal ones")
    about.add_row("target", f"{found['target']}: d = {found['dimension']} columns change")
    about.add_row("||delta||", f"{delta['norm']:.4g} rms; {how}")
    about.add_row("C~ / C", f"{found['ratio']:.3g} where lambda bends")
    about.add_row("lambda", f"{found['lambda_largest']:.3g} at most; it says something above 0")
    about.add_row("score", PROXY)
    out.print(about, markup=False)
    out.print()
    out.print(_steps_table(found))
    out.print("\nwhich reverse step?", style="bold")
    named = Table(show_header=False, box=None, padding=(0, 2))
    for name, step in found["reverse_step"].items():
        from_to = f"{found['alike_after']} to " if name == "alike" and step else ""
        named.add_row("none" if step is None else f"{from_to}{step}", NAMES[name])
    out.print(named, markup=False)


def _steps_table(found: dict[str, Any]) -> Table:
    measured = {row["step"]: row["one_draw"] for row in found["distance"] or ()}
    divergence = {row["step"]: row["sample"] for row in found["kl"]}
    left = {row["step"]: row["delta"] for row in found["contraction"]}
    table = Table(
        "step", "KL", "delta\nleft", "no\nnearer", "Lambda\nper step", "Lambda\ncorrected",
        "Lambda\nprinted", "lambda\nprinted", *(["measured"] if measured else []),
        box=None, padding=(0, 1, 0, 0),
    )  # fmt: skip
    for row in found["bounds"]:
        values = (
            divergence[row["step"]], left[row["step"]], max(0.0, row["lower_per_step"]),
            row["upper_per_step"], row["upper_corrected"], row["upper_printed"],
            row["lower_printed"], *([measured.get(row["step"])] if measured else []),
        )  # fmt: skip
        table.add_row(str(row["step"]), *map(_short, values))
    return table


def _short(value: float | None) -> str:
    if value is None:
        return "-"
    if not isfinite(value):
        return str(value)
    if abs(value) >= 99.95:
        return f"{value:.0f}" if abs(value) < 1e5 else f"{value:.0e}".replace("e+0", "e")
    return f"{value:.3g}" if abs(value) >= 1e-3 else "0"


PROXY = "a proxy: D_s diffused forward, step by step, not the way back"
NAMES = {
    "auto": "chosen by auto: actions should err least",
    "model": "the model's own",
    "theorem_4_printed": "Theorem 4 as printed",
    "theorem_4_corrected": "Theorem 4 corrected: lambda bends",
    "at_least": "Theorem 2 corrected: below it a typical delta cannot be undone",
    "gaussian_mean": "Gaussian data: nearest to x_o, mean of many draws",
    "gaussian_draw": "Gaussian data: nearest to x_o, one draw",
    "matched": "Gaussian rule: (1 - alpha_bar) / alpha_bar = var(delta)",
    "alike": "diffused D_s differs from D_o no more than D_o from itself",
    "measured": "measured: nearest to the clean actions, one draw",
    "measured_mean": "measured: nearest to the clean actions, as elute purifies",
}


def _draw(study: "Study | None", folder: Path) -> list[Path]:
    drawn = draw_theory(folder)
    if study is None:
        return drawn
    names = {"auto": "auto", "model": "model", "gaussian_mean": "Gaussian data",
             "theorem_4_corrected": "Theorem 4"}  # fmt: skip
    marks = {names[key]: step for key, step in study.steps.items() if key in names and step}
    spec = study.about["supplementary"]
    name = Path(spec).name if Path(spec).is_absolute() else spec
    shown = DataFigures(
        title=f"{name}, target {study.about['target']}",
        schedule=study.schedule,
        forward=study.forward,
        bounds=study.bounds,
        model=study.model,
        distances=study.distances,
        marks=marks,
    )
    return drawn + draw_data(shown, folder)
