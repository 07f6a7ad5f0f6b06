"""What all figures share: which files they can be, and how they are written."""

from collections.abc import Iterable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING

from elute.demos.output import check_output, output
from elute.errors import EluteError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

SUFFIXES = {
    ".png": {},
    ".pdf": {"CreationDate": None},
    ".svg": {"Date": None},
}
"""What can be drawn, and the stamps to leave out so that the same data gives the same file."""
DOTS = 150
"""To an inch."""


def check_figure(path: Path, others: Sequence[Path] = ()) -> None:
    """Refuse a figure that cannot be drawn, before any work is done for it.

    Raises:
        EluteError: another suffix, matplotlib is missing, or the path cannot be written.
    """
    if path.suffix.lower() not in SUFFIXES:
        raise EluteError(
            f"{path}: figures end in {', '.join(SUFFIXES)}", hint="the ending says what is drawn"
        )
    if find_spec("matplotlib") is None:
        raise EluteError(
            "a figure needs matplotlib, which is not installed",
            hint="pip install 'elute[report]'",
        )
    check_output(path, others)


def legend_below(figure: "Figure", axes: Iterable["Axes"], columns: int = 4) -> None:
    """One for all panels; what several show is named once."""
    shown = {
        label: line
        for axis in axes
        for line, label in zip(*axis.get_legend_handles_labels(), strict=True)
    }
    figure.legend(shown.values(), shown.keys(), loc="outside lower center", ncols=columns)


def save_figure(figure: "Figure", path: Path) -> None:
    """As the ending says; a failure leaves nothing behind."""
    suffix = path.suffix.lower()
    with output(path) as temporary:
        figure.savefig(temporary, format=suffix[1:], dpi=DOTS, metadata=SUFFIXES[suffix])
