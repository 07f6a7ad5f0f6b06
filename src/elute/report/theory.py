"""Pictures of the theorems: printed beside corrected, and what they say about data."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from tempfile import TemporaryFile
from typing import TYPE_CHECKING

import numpy as np

from elute.demos.output import output
from elute.diffusion.schedule import Floats, Schedule
from elute.errors import EluteError
from elute.theory.bounds import (
    lambda_curvature,
    lambda_slope,
    least_failure_prob,
    lower_bound,
    noise_bound,
    upper_bound,
)
from elute.theory.claims.data import Distances
from elute.theory.claims.theorem2 import RATIO
from elute.theory.claims.theorem4 import needed_ratio
from elute.theory.data import DataBounds, Forward
from elute.theory.elasticity import DIMENSIONS, FAILURE_PROBS, elasticity
from elute.theory.inflection import inflection_ratio, inflection_times, printed_slope_ratio
from elute.theory.wiener import GaussianModel
from elute.theory.zeta import REAL, SIMPLIFIED, Form

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PRINTED, CORRECTED, MEASURED = "#d55e00", "#0072b2", "#009e73"
COLOURS: dict[Form, str] = {"printed": PRINTED, "corrected": CORRECTED}
"""Told apart by the colour-blind too."""
SHADES = ("#bcd7ea", "#7fb2d6", "#3d87bd", "#00456b")
STYLE = {"font.size": 9, "axes.spines.top": False, "axes.spines.right": False}
LEAST = 1e-3
"""Nats that are still drawn."""


@dataclass(frozen=True, eq=False)
class DataFigures:
    """What is drawn of two data sets."""

    title: str
    schedule: Schedule
    forward: Forward
    bounds: DataBounds
    model: GaussianModel
    distances: Distances | None
    marks: dict[str, int]
    """Steps that somebody or something names."""


def check_folder(folder: Path) -> None:
    """Make the folder, or refuse, before any work is done.

    Raises:
        EluteError: matplotlib is missing, no folder can be there, or none that can be written.
    """
    if find_spec("matplotlib") is None:
        raise EluteError(
            "figures need matplotlib, which is not installed", hint="pip install 'elute[report]'"
        )
    if folder.exists() and not folder.is_dir():
        raise EluteError(f"{folder}: is a file; figures go into a folder")
    try:
        folder.mkdir(exist_ok=True)
    except OSError as error:
        raise EluteError(f"{folder}: cannot be made: {error.strerror}") from error
    try:
        with TemporaryFile(dir=folder):
            pass
    except OSError as error:
        raise EluteError(f"{folder}: nothing can be written there: {error.strerror}") from error


def draw_theory(folder: Path) -> list[Path]:
    """The theorems without data."""
    pictures: dict[str, Callable[[Path], None]] = {
        "theory-bounds.png": _bounds,
        "theory-lambda.png": _lambda,
        "theory-inflection.png": _inflection,
        "theory-elasticity.png": draw_elasticity,
    }
    return _drawn(folder, pictures)


def draw_data(shown: DataFigures, folder: Path) -> list[Path]:
    """What the theorems say about two data sets."""
    return _drawn(
        folder,
        {
            "theory-kl.png": lambda path: _kl(path, shown),
            "theory-data-bounds.png": lambda path: _data_bounds(path, shown),
            "theory-contraction.png": lambda path: _contraction(path, shown),
        },
    )


def _drawn(folder: Path, pictures: dict[str, Callable[[Path], None]]) -> list[Path]:
    for name, draw in pictures.items():
        draw(folder / name)
    return [folder / name for name in pictures]


@contextmanager
def _figure(path: Path, title: str, width: float = 9.0) -> Iterator["Figure"]:
    """A figure that is written when the block ends well."""
    import matplotlib as mpl  # noqa: PLC0415 (an extra; only figures need it)
    from matplotlib.figure import Figure  # noqa: PLC0415

    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(width, 3.4), layout="constrained")
        figure.suptitle(title, x=0.01, ha="left", fontweight="bold", fontsize=10)
        yield figure
        with output(path) as temporary:
            figure.savefig(temporary, format="png", dpi=110)


def _bounds(path: Path) -> None:
    times = np.linspace(0, 0.6, 400)
    zeta, noise = REAL.zeta(times), noise_bound(23, 0.05)
    with _figure(path, "Theorem 2: bounds of ||x_o - x_hat||, d = 23, ||delta|| = 5") as figure:
        left, right = figure.subplots(1, 2)
        for form, colour in COLOURS.items():
            most = upper_bound(zeta, score=20.0, delta=5.0, noise=noise, form=form)
            left.plot(times, most, color=colour, label=f"Lambda, {form}")
            score = RATIO * noise if form == "printed" else 20.0
            least = lower_bound(zeta, score=score, delta=5.0, noise=noise, form=form)
            right.plot(times, least, color=colour, label=_lower_label(form))
        left.axhline(5.0, color="0.5", lw=0.8, ls=":", label="||delta||")
        right.axhline(0.0, color="0.5", lw=0.8, ls=":")
        right.set_ylim(-20, 10)
        _described(left, "from above, C_gd = 20", "t", "distance")
        _described(right, "from below", "t", "distance")


def _lower_label(form: Form) -> str:
    return "lambda, printed, C~ = 3 C" if form == "printed" else "corrected, C_gd = 20"


def _lambda(path: Path) -> None:
    times = np.linspace(0.02, 0.6, 400)
    with _figure(path, "Derivatives of lambda, C~ = 3, C = 1") as figure:
        for axis, name, derivative, order in zip(
            figure.subplots(1, 2), ("lambda'", "lambda''"), (lambda_slope, lambda_curvature),
            (1, 2), strict=True,
        ):  # fmt: skip
            for form, colour in COLOURS.items():
                values = derivative(times, REAL, score=RATIO, noise=1.0, form=form)
                axis.plot(times, values, color=colour, label=form)
            some = times[20::40]
            axis.plot(some, _differences(some, order), "o", ms=3.5, color=MEASURED,
                      label="by differences")  # fmt: skip
            axis.axhline(0.0, color="0.5", lw=0.8, ls=":")
            _described(axis, name, "t", "")
        figure.axes[0].set_ylim(-20, 20)
        figure.axes[1].set_ylim(-200, 150)


def _differences(times: Floats, order: int, h: float = 1e-4) -> Floats:
    low, middle, high = (
        lower_bound(REAL.zeta(times + s), score=RATIO, delta=0.0, noise=1.0, form="printed")
        for s in (-h, 0.0, h)
    )
    return (high - low) / (2 * h) if order == 1 else (high - 2 * middle + low) / h**2


def _inflection(path: Path) -> None:
    zeta, needed = np.linspace(0.005, 1.6, 400), needed_ratio()
    times = SIMPLIFIED.time(zeta)
    with _figure(path, "Theorem 4: C~ / C with which lambda bends, zeta = k t^2 / 4") as figure:
        left, right = figure.subplots(1, 2)
        for form, colour in COLOURS.items():
            left.plot(
                zeta, inflection_ratio(times, SIMPLIFIED, form=form), color=colour, label=form
            )
        left.plot(zeta, printed_slope_ratio(times, SIMPLIFIED), color=PRINTED, ls="--", lw=1,
                  label="from the printed lambda'")  # fmt: skip
        left.axhline(needed, color="0.4", lw=0.8, ls=":",
                     label=f"needed for lambda >= 0: {needed:.3f}")  # fmt: skip
        left.set_ylim(-1, 6)
        _described(left, "left side of Eq. 11", "zeta", "C~ / C", place=(1.0, 0.49))
        ratios = np.linspace(0.2, 8, 60)
        steps = [1000 * inflection_times(ratio)[0] for ratio in ratios]
        right.plot(ratios, steps, color=CORRECTED, label="corrected, real schedule")
        right.axvspan(needed, 8, color="0.9", lw=0, label="lambda >= 0 somewhere")
        right.axhspan(1, 100, color=PRINTED, alpha=0.2, lw=0, label="published i_r")
        _described(right, "where that is", "C~ / C", "step i_p")


def draw_elasticity(path: Path) -> None:
    """Theorem 5: how much C changes with sigma, printed and corrected."""
    sigma = np.geomspace(*FAILURE_PROBS, 200)
    with _figure(path, "Theorem 5: elasticity of C with respect to sigma") as figure:
        left, right = figure.subplots(1, 2, sharey=True)
        for dimension, shade in zip(DIMENSIONS, SHADES, strict=True):
            printed = elasticity(dimension, sigma, form="printed")
            proved = sigma >= least_failure_prob(dimension)
            left.plot(sigma, printed, color=shade, ls="--", lw=1)
            left.plot(sigma[proved], printed[proved], color=shade, lw=2, label=f"d = {dimension}")
            right.plot(sigma, elasticity(dimension, sigma), color=shade, lw=2,
                       label=f"d = {dimension}")  # fmt: skip
        left.axhline(-0.0113, color=PRINTED, lw=1, ls=":", label="claimed: |E| < .0113")
        for axis in (left, right):
            axis.set_xscale("log")
        _described(left, "printed C (dashed where it is not proved)", "sigma", "E")
        _described(right, "C by Laurent and Massart, which always holds", "sigma", "")


def _kl(path: Path, shown: DataFigures) -> None:
    found = shown.forward
    steps = np.array(found.steps)
    zeta = -0.5 * np.log(shown.schedule.alpha_bar[steps])
    between, fall = np.sqrt(steps[1:] * steps[:-1]), -np.diff(found.sample.kl)
    with _figure(path, f"Theorem 1: {shown.title}") as figure:
        left, right = figure.subplots(1, 2)
        _logarithmic(left, steps, found.sample.kl, CORRECTED, "the two sets, diffused")
        _logarithmic(left, steps, found.gaussian, MEASURED, "if both were Gaussian")
        _logarithmic(left, steps, found.halves.kl, CORRECTED, "half of D_o, D_s", "--")
        _logarithmic(left, steps, found.floor.kl, "0.5", "two halves of D_o", "--")
        _logarithmic(right, between, fall / np.diff(np.log(zeta)), CORRECTED, "-d KL / d ln zeta")
        _logarithmic(right, steps, zeta * found.sample.fisher, PRINTED, "zeta F", "o")
        _described(left, "KL(D_o || D_s)", "step i", "nats")
        _described(right, "its fall, and what the Fisher divergence F says", "step i", "")


def _logarithmic(
    axis: "Axes", x: Floats, y: Floats, colour: str, label: str, style: str = "-"
) -> None:
    """What is too small to see, or not positive, lies below the picture."""
    shown = np.maximum(y, 0.1 * LEAST)
    width = 1.5 if style == "-" else 1.0
    axis.plot(x, shown, style, color=colour, lw=width, ms=3.5, label=label)
    axis.set_xscale("log")
    axis.set_yscale("log")
    axis.set_ylim(LEAST, max(1.0, axis.get_ylim()[1], 2 * float(shown.max())))


def _data_bounds(path: Path, shown: DataFigures) -> None:
    bounds = shown.bounds
    steps = np.arange(1, len(bounds.upper))
    with _figure(path, f"Theorem 2: {shown.title}") as figure:
        left, right = figure.subplots(1, 2, width_ratios=(1, 1))
        for axis in (left, right):
            for values, colour, style, label in (
                (bounds.printed_upper, PRINTED, "-", "Lambda, printed"),
                (bounds.upper, CORRECTED, "--", "corrected"),
                (bounds.path_upper, CORRECTED, "-", "corrected, a bound for each step"),
                (bounds.path_lower, CORRECTED, ":", "cannot be nearer, in the mean"),
            ):
                axis.plot(steps, values[1:], color=colour, ls=style, label=label)
            if shown.distances is not None:
                _measured(axis, shown.distances)
            axis.set_xscale("log")
        left.set_yscale("log")
        left.set_ylim(bottom=0.1)
        right.set_ylim(0, 3 * max(0.1, bounds.path_lower[0]))
        _described(left, "bounds of the mean (score: a proxy)", "step i", "||x_o - x_hat||")
        _described(right, "near the data", "step i", "", legend=False)


def _measured(axis: "Axes", distances: Distances) -> None:
    means = distances.purified.mean(axis=1)
    low, high = np.quantile(distances.purified, [0.05, 0.95], axis=1)
    axis.errorbar(distances.steps, means, yerr=[means - low, high - means], fmt="o", ms=3.5,
                  color=MEASURED, lw=1, label="measured, 5 % to 95 %")  # fmt: skip


def _contraction(path: Path, shown: DataFigures) -> None:
    steps = np.arange(1, shown.schedule.n_steps + 1)
    alpha_bar = shown.schedule.alpha_bar[1:]
    with _figure(path, f"A Gaussian model: {shown.title}") as figure:
        left, right = figure.subplots(1, 2)
        directions = shown.model.contractions(alpha_bar)
        left.fill_between(steps, directions[:, 0], directions[:, -1], color=CORRECTED, alpha=0.15,
                          lw=0, label="narrowest to widest direction")  # fmt: skip
        if shown.model.noise.any():
            left.plot(steps, shown.model.survives(alpha_bar), color=CORRECTED, label="of delta")
        _described(left, "share that is left (Wiener contraction)", "step i", "")
        for draws, style, label in ((np.inf, "-", "mean"), (1.0, "--", "one draw")):
            error = np.sqrt(shown.model.error(alpha_bar, draws=draws))
            right.plot(steps, error, color=CORRECTED, ls=style, label=f"expected, {label}")
        if shown.distances is not None:
            root = np.sqrt((shown.distances.purified**2).mean(axis=1))
            right.plot(shown.distances.steps, root, "o", ms=3.5, color=MEASURED,
                       label="measured, one draw")  # fmt: skip
        _mark(right, shown.marks)
        right.set_ylim(bottom=0)
        _described(right, "root mean square distance from x_o", "step i", "")
        for axis in (left, right):
            axis.set_xscale("log")


def _mark(axis: "Axes", marks: dict[str, int]) -> None:
    for (name, step), colour in zip(marks.items(), _greys(marks), strict=True):
        if step > 0:
            axis.axvline(step, color=colour, lw=1, ls=":", label=f"{name}: {step}")


def _greys(marks: Sequence[str] | dict[str, int]) -> list[str]:
    return [f"{value:.2f}" for value in np.linspace(0.15, 0.65, len(marks))]


def _described(
    axis: "Axes", title: str, x: str, y: str, *, legend: bool = True,
    place: tuple[float, float] | None = None,
) -> None:  # fmt: skip
    axis.set_title(title, loc="left", fontsize=9)
    axis.set_xlabel(x)
    axis.set_ylabel(y)
    if legend and place is None:
        axis.legend(frameon=False, fontsize=7.5)
    elif legend:  # where no curve is
        axis.legend(frameon=False, fontsize=7.5, loc="upper right", bbox_to_anchor=place)
