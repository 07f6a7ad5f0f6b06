"""Numbers as people read them."""

from collections.abc import Collection, Sequence

import numpy as np

from elute.report.statistics import Estimate, Interval


def number(value: float, like: float | None = None) -> str:
    """About three digits; with the decimals of `like`, so that numbers side by side agree."""
    size = abs(value if like is None else like)
    decimals = 0 if size >= 100 or size == 0 else 1 if size >= 10 else 2 if size >= 1 else 3
    if like is None and 0 < size < 0.1:
        return f"{value:.2g}"
    shown = f"{value:.{decimals}f}"
    return shown.removeprefix("-") if float(shown) == 0 else shown


def with_error(estimate: Estimate, like: float | None = None) -> str:
    """`3925 ± 37`; the mean alone where nothing is known of its spread."""
    like = max(abs(estimate.mean), estimate.stderr or 0.0) if like is None else like
    mean = number(estimate.mean, like)
    if estimate.stderr is None:
        return mean
    return f"{mean} ± {number(estimate.stderr, like)}"


def between(interval: Interval | None) -> str:
    """`0.34 to 0.53`."""
    return "-" if interval is None else f"{interval.low:.2f} to {interval.high:.2f}"


def with_interval(value: float, interval: Interval | None) -> str:
    """`0.43 (0.34 to 0.53)`; the value alone where nothing is known of its spread."""
    return f"{value:.2f}" if interval is None else f"{value:.2f} ({between(interval)})"


def range_of(counts: Collection[int]) -> str:
    """`3`, or `1 to 3`."""
    few, many = min(counts), max(counts)
    return str(few) if few == many else f"{few} to {many}"


def steps_of(chosen: Sequence[int]) -> str:
    """`60/100`."""
    return "/".join(map(str, chosen))


def footnote(text: str, notes: dict[str, str]) -> str:
    """Its mark; it joins the notes where it is not there yet."""
    if not text:
        return ""
    return notes.setdefault(text, f"({len(notes) + 1}) {text}").partition(" ")[0]


def percent(share: float) -> str:
    """`92 %`."""
    return f"{100 * share:.0f} %"


def duration(seconds: float) -> str:
    """`12 s`, `3.4 min`, `5.1 h`."""
    if seconds < 100:
        return f"{number(seconds)} s"
    return f"{seconds / 60:.1f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


def ticks(low: float, high: float, about: int = 4) -> list[float]:
    """Round numbers inside the range, about so many."""
    span = high - low
    if not span > 0:
        return [low]
    raw = span / about
    power = 10.0 ** np.floor(np.log10(raw))
    step = float(next(power * m for m in (1, 2, 2.5, 5, 10) if power * m >= raw * 0.999))
    first, last = int(np.ceil(low / step - 1e-9)), int(np.floor(high / step + 1e-9))
    return [k * step for k in range(first, last + 1)]


def tick_labels(values: Sequence[float]) -> list[str]:
    """As few digits as tell them apart."""
    for digits in range(1, 8):
        labels = [f"{value:.{digits}g}" for value in values]
        if len(set(labels)) == len(labels) and all(
            abs(float(label) - value) <= 1e-6 * max(abs(value), 1e-12)
            for label, value in zip(labels, values, strict=True)
        ):
            return [_plain(float(label)) for label in labels]
    return [_plain(value) for value in values]


def _plain(value: float) -> str:
    return f"{value:.0f}" if abs(value) >= 100 else f"{value:g}"
