"""The parts of the page about purification: what it changed, and how far it went back."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from elute.demos.audit.finding import counted
from elute.report.blocks import Section, facts_list, figure, legend, note, short_name, table
from elute.report.changes import ColumnChange
from elute.report.charts import Axis, Line, histogram, line_chart, spanning
from elute.report.markup import Content, Html, element, join
from elute.report.numbers import number

Json = Mapping[str, Any]


@dataclass(frozen=True, kw_only=True)
class Purification:
    """What became of one file."""

    name: str
    facts: Json
    """As `elute purify --json` prints them."""
    columns: tuple[ColumnChange, ...] = ()
    """Of `changes.column_changes`: what moved most."""


def changes_section(purifications: Sequence[Purification]) -> Section:
    """What purification changed, file by file."""
    parts = [part for purified in purifications for part in _purification(purified)]
    return Section("changes", "What purification changed", join(parts))


def _purification(purified: Purification) -> Iterable[Html]:
    yield element("h3", short_name(purified.name), title=purified.name)
    yield facts_list(_purifier_facts(purified.facts))
    if purified.columns:
        yield legend([("before", "before"), ("after", "after"), ("optimal", "optimal rows")])
        panels = map(_change, purified.columns)
        yield element("div", *panels, class_="panels")
    moved = purified.facts.get("moved") or {}
    if any(moved.values()):
        rows = [(name, number(by)) for name, by in moved.items() if by > 0]
        still = len(moved) - len(rows)
        caption = "Mean move of each column, in its own unit"
        whole = table(("column", "moved by"), rows, caption, numbers={1})
        others = (note(f"{counted(still, 'other')} stayed as before."),) if still else ()
        title = f"The columns that moved ({len(rows)})"
        yield element("details", element("summary", title), whole, *others)


def _purifier_facts(facts: Json) -> Iterable[tuple[str, Content]]:
    target = facts.get("target")
    yield "method", f"{facts['method']}, target {target}" if target else str(facts["method"])
    if facts.get("rows") is not None:
        yield "rows", f"{facts['rows']}, judged by {facts.get('optimal_rows', 0)} optimal ones"
    if facts.get("reverse_step") is not None:
        why = facts.get("reverse_step_why")
        yield "reverse step", f"{facts['reverse_step']}{f' ({why})' if why else ''}"
    for key, name in (("distance", "distance to the nearest optimal row"),
                      ("heldout_error", "held-out action error")):  # fmt: skip
        pair = facts.get(key) or {}
        if pair.get("before") is not None and pair.get("after") is not None:
            yield name, f"{number(pair['before'])} → {number(pair['after'])}"


def _change(change: ColumnChange) -> Html:
    """Row by row, and below it how the values are distributed."""
    caption = f"{change.name}: moved by {number(change.moved)} standard deviations"
    return figure(caption, _series_chart(change), _distribution(change))


def _series_chart(change: ColumnChange) -> Html:
    rows = list(range(len(change.before)))
    low, high = change.optimal_range
    return line_chart(
        f"{change.name}, row by row",
        f"The first {len(rows)} rows before and after; the band holds 90 % of the optimal rows, "
        f"{number(low)} to {number(high)}.",
        [
            Line("before", rows, change.before, "before"),
            Line("after", rows, change.after, "after"),
        ],
        Axis("row", 0, max(1, len(rows) - 1)),
        spanning("", [*change.before, *change.after, low, high]),
        band=(low, high),
        stops=[stop - 0.5 for stop in change.stops],
    )


def _distribution(change: ColumnChange) -> Html:
    kinds = [kind for kind in ("optimal", "before", "after") if kind in change.histograms]
    low, high = change.edges
    return histogram(
        f"{change.name}, distribution",
        "The share of all rows at each value: before, after, and in the optimal rows.",
        [(kind, kind, change.histograms[kind]) for kind in kinds],
        Axis("value (height: share of rows)", low, high if high > low else low + 1),
        change.edges,
    )


def reverse_step_section(purifications: Sequence[Purification]) -> Section:
    """Held-out errors of the steps that were tried, with the chosen one."""
    panels = [
        _step_curve(purified)
        for purified in purifications
        if len(purified.facts.get("candidates") or {}) > 1
    ]
    told = (
        "Optimal actions that were held out are spoilt, purified at every step that is tried, and "
        "compared with the truth; habits that are left and wrong guesses are added. No simulator "
        "is needed. Step 0 is no purification."
    )
    content = join([element("p", told), element("div", *panels, class_="panels")])
    return Section("reverse-step", "How far to go back", content if panels else Html())


def _step_curve(purified: Purification) -> Html:
    found = {int(k): float(v) for k, v in purified.facts["candidates"].items()}
    steps = sorted(found)
    errors = [found[k] for k in steps]
    chosen = purified.facts.get("reverse_step")
    places = list(range(len(steps)))
    shown = [(float(k), str(value)) for k, value in zip(places, steps, strict=True)]
    marked = (float(steps.index(chosen)), f"chosen: {chosen}") if chosen in steps else None
    chart = line_chart(
        f"Held-out action error at each reverse step, {short_name(purified.name)}",
        ", ".join(f"{k}: {number(e)}" for k, e in found.items()) + f"; chosen {chosen}.",
        [Line("held-out action error", places, errors, "after", dots=True)],
        Axis("reverse step", -0.3, len(steps) - 0.7, shown),
        spanning("", errors, zero=True),
        chosen=marked,
    )
    rows = [(str(k), number(found[k]), "chosen" if k == chosen else "") for k in steps]
    head = ("reverse step", "held-out error", "")
    whole = table(head, rows, "Held-out action error at each step", numbers={0, 1})
    more = element("details", element("summary", "The same as a table"), whole)
    return figure(f"{short_name(purified.name)}: held-out action error", chart, more)
