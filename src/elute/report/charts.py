"""Charts as inline SVG. Colours are classes of the page's style sheet, so charts turn dark with it.

Every chart is drawn about as wide as a phone (`WIDTH`), so that its text is as large as the page's
wherever it stands, and has a title and a description for those who do not see it. Lines differ in
dashes as well as in colour.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from elute.report.markup import Html, element, join
from elute.report.numbers import tick_labels, ticks

WIDTH = 320
HEIGHT = 190
LEFT, RIGHT, TOP, BOTTOM = 42, 10, 12, 38
ROW = 24
"""Height of one bar with its gap."""
LETTER = 6.4
"""Width of a letter."""
LONGEST = 17
"""Letters of a name that are shown beside a bar."""
STYLES = 8
"""Classes `line-0` and so on."""


@dataclass(frozen=True)
class Line:
    """A series of a line chart; None is a gap."""

    name: str
    x: Sequence[float]
    y: Sequence[float | None]
    style: str
    """Class: `before`, `after`, `optimal`, `plain` or `line-K`."""
    dots: bool = False


@dataclass(frozen=True)
class Bar:
    """One bar with its interval and, as a diamond, a number to compare it with."""

    name: str
    value: float
    shown: str
    """The number in words, beside the bar."""
    style: str
    interval: tuple[float, float] | None = None
    mark: float | None = None
    hint: str = ""
    """What is told of it when it is pointed at."""


@dataclass(frozen=True)
class Axis:
    """From low to high; ticks where they are given, else at round numbers."""

    name: str
    low: float
    high: float
    labels: Sequence[tuple[float, str]] = ()

    def ticks(self) -> Sequence[tuple[float, str]]:
        """Where, and what stands there."""
        if self.labels:
            return self.labels
        values = ticks(self.low, self.high)
        return list(zip(values, tick_labels(values), strict=True))


def spanning(name: str, values: Sequence[float | None], *, zero: bool = False) -> Axis:
    """An axis that holds all values, with a little room."""
    known = [value for value in values if value is not None and np.isfinite(value)]
    low, high = min(known, default=0.0), max(known, default=1.0)
    low = min(low, 0.0) if zero else low
    room = (high - low) * 0.06 or max(abs(high), 1.0) * 0.1
    return Axis(name, low if zero and low == 0 else low - room, high + room)


@dataclass(frozen=True)
class _Plane:
    """Numbers to pixels."""

    x: Axis
    y: Axis

    def at(self, x: float, y: float) -> tuple[float, float]:
        across = (x - self.x.low) / ((self.x.high - self.x.low) or 1)
        up = (y - self.y.low) / ((self.y.high - self.y.low) or 1)
        return (
            LEFT + across * (WIDTH - LEFT - RIGHT),
            HEIGHT - BOTTOM - up * (HEIGHT - TOP - BOTTOM),
        )


def line_chart(
    title: str,
    description: str,
    lines: Sequence[Line],
    x: Axis,
    y: Axis,
    *,
    band: tuple[float, float] | None = None,
    chosen: tuple[float, str] | None = None,
    stops: Sequence[float] = (),
) -> Html:
    """Lines over axes, a band from side to side, dotted stops, and a chosen x."""
    plane = _Plane(x, y)
    parts = [_axes(plane)]
    if band is not None:
        parts.append(_band(plane, band))
    for stop in stops:
        parts.append(_upright(plane, stop, "stop"))
    if chosen is not None:
        parts.append(_upright(plane, chosen[0], "chosen"))
    parts += [_line(plane, line) for line in lines]
    if chosen is not None:
        parts.append(_chosen(plane, *chosen))
    return _svg(title, description, HEIGHT, parts)


def histogram(
    title: str,
    description: str,
    shares: Sequence[tuple[str, str, Sequence[float]]],
    x: Axis,
    edges: tuple[float, float],
) -> Html:
    """Outlines of histograms (name, class, shares) over one range; the first is filled."""
    top = max((max(values) for _, _, values in shares), default=1.0) or 1.0
    plane = _Plane(x, Axis("share of rows", 0.0, top * 1.06))
    parts = [_axes(plane)]
    for k, (name, style, values) in enumerate(shares):
        bins = np.linspace(*edges, len(values) + 1)
        corners = [(bins[0], 0.0)]
        for value, low, high in zip(values, bins[:-1], bins[1:], strict=True):
            corners += [(low, value), (high, value)]
        corners.append((bins[-1], 0.0))
        path = _path([plane.at(float(a), float(b)) for a, b in corners])
        drawn = element(
            "path", element("title", name), d=path, class_=f"line {style}{' fill' * (not k)}"
        )
        parts.append(drawn)
    return _svg(title, description, HEIGHT, parts)


def bar_chart(title: str, description: str, bars: Sequence[Bar]) -> Html:
    """Horizontal bars from zero. A long interval is cut at the edge, so that means stay visible."""
    values = [0.0, *(bar.value for bar in bars), *(b.mark for b in bars if b.mark is not None)]
    ends = [end for bar in bars if bar.interval for end in bar.interval]
    room = 0.35 * (max(values) - min(values) or 1.0)
    low = max(min([*values, *ends]), min(values) - room)
    high = min(max([*values, *ends]), max(values) + room)
    label = LETTER * min(LONGEST, max((len(bar.name) for bar in bars), default=0)) + 4
    left = label + 10  # room for half a diamond
    right = WIDTH - 1.08 * LETTER * max((len(bar.shown) for bar in bars), default=0) - 10

    def across(value: float) -> float:
        return float(
            left + (np.clip(value, low, high) - low) / ((high - low) or 1) * (right - left)
        )

    height = ROW * len(bars) + 6
    zero = element("line", x1=across(0), x2=across(0), y1=2, y2=height - 4, class_="zero")
    rows = [_bar(bar, 3 + ROW * k, label, across) for k, bar in enumerate(bars)]
    return _svg(title, description, height, [zero, *rows])


def _bar(bar: Bar, top: float, label: float, across: Callable[[float], float]) -> Html:
    middle, thick = top + ROW / 2, ROW - 10
    start, end = sorted((across(0), across(bar.value)))
    name = bar.name if len(bar.name) <= LONGEST else f"{bar.name[: LONGEST - 1]}…"
    parts = [
        element("title", bar.hint) if bar.hint else None,
        element("text", name, x=label, y=middle + 4, class_="end"),
        element("rect", x=start, y=top + 5, width=max(end - start, 1.0), height=thick, rx=2,
                class_=f"bar {bar.style}"),
        element("text", bar.shown, x=WIDTH, y=middle + 4, class_="end strong"),
    ]  # fmt: skip
    if bar.interval is not None:
        one, other = across(bar.interval[0]), across(bar.interval[1])
        whisker = f"M{one:.1f} {middle:.1f}H{other:.1f}" + "".join(
            f"M{end:.1f} {middle - 4:.1f}v8" for end in (one, other)
        )
        parts.append(element("path", d=whisker, class_="whisker"))
    if bar.mark is not None:
        x = across(bar.mark)
        parts.append(element("path", d=f"M{x:.1f} {middle - 6:.1f}l5 6l-5 6l-5-6z", class_="mark"))
    return element("g", *parts)


def _svg(title: str, description: str, height: float, parts: Sequence[Html]) -> Html:
    return element(
        "svg",
        element("title", title),
        element("desc", description),
        *parts,
        viewBox=f"0 0 {WIDTH} {height:g}",
        role="img",
        class_="chart",
    )


def _axes(plane: _Plane) -> Html:
    parts = []
    for value, label in plane.y.ticks():
        _, y = plane.at(plane.x.low, value)
        parts.append(element("line", x1=LEFT, x2=WIDTH - RIGHT, y1=y, y2=y, class_="grid"))
        parts.append(element("text", label, x=LEFT - 6, y=y + 4, class_="end"))
    for value, label in plane.x.ticks():
        x, _ = plane.at(value, plane.y.low)
        parts.append(element("text", label, x=x, y=HEIGHT - BOTTOM + 15, class_="middle"))
    across = LEFT + (WIDTH - LEFT - RIGHT) / 2
    parts.append(element("text", plane.x.name, x=across, y=HEIGHT - 5, class_="middle axis"))
    return join(parts)


def _band(plane: _Plane, band: tuple[float, float]) -> Html:
    left, top = plane.at(plane.x.low, min(band[1], plane.y.high))
    right, bottom = plane.at(plane.x.high, max(band[0], plane.y.low))
    return element("rect", x=left, y=top, width=right - left, height=max(bottom - top, 1.0),
                   class_="band")  # fmt: skip


def _upright(plane: _Plane, x: float, style: str) -> Html:
    (left, bottom), (_, top) = plane.at(x, plane.y.low), plane.at(x, plane.y.high)
    return element("line", x1=left, x2=left, y1=bottom, y2=top, class_=style)


def _chosen(plane: _Plane, x: float, label: str) -> Html:
    left, top = plane.at(x, plane.y.high)
    side = "end" if left > WIDTH / 2 else "start"
    away = -6 if side == "end" else 6
    return element("text", label, x=left + away, y=top + 10, class_=f"{side} strong")


def _line(plane: _Plane, line: Line) -> Html:
    pieces: list[list[tuple[float, float]]] = [[]]
    for x, y in zip(line.x, line.y, strict=True):
        if y is None or not np.isfinite(y):
            pieces.append([])
        else:
            pieces[-1].append(plane.at(float(x), float(y)))
    path = "".join(map(_path, pieces))
    parts = [element("title", line.name), element("path", d=path, class_=f"line {line.style}")]
    if line.dots:
        parts += [
            element("circle", cx=x, cy=y, r=3, class_=f"dot {line.style}")
            for piece in pieces
            for x, y in piece
        ]
    return element("g", *parts)


def _path(points: Sequence[tuple[float, float]]) -> str:
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points) if points else ""
