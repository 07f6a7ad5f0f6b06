"""The parts of the page about what policies earn: bars with intervals, and tables."""

from collections.abc import Iterable, Sequence

import numpy as np

from elute.report.blocks import Section, figure, legend, note, table
from elute.report.charts import Bar, bar_chart
from elute.report.groups import Group, Place, Row, is_scored, place, step
from elute.report.markup import Content, Html, element, join
from elute.report.numbers import number, with_error
from elute.report.paper import REMARKS
from elute.report.statistics import winners


def bars_section(groups: Sequence[Group]) -> Section:
    """A chart for every set of demonstrations, by task and regime."""
    charts: dict[tuple[str, str], dict[Place, list[Group]]] = {}
    for group in groups:
        regime, task, _ = group.place
        charts.setdefault((task, regime), {}).setdefault(group.place, []).append(group)
    parts = []
    for (task, regime), places in charts.items():
        parts.append(element("h3", task, " ", element("small", f"regime {regime}")))
        panels = [_bar_panel(where, line) for where, line in places.items()]
        parts.append(element("div", *panels, class_="panels"))
    if parts:
        keys = [("plain", "unpurified"), ("after", "purified")]
        if any(group.paper for group in groups):
            keys.append(("mark", "the paper's number"))
        told = "Mean return over seeds; the line through a bar is the 95 % interval of its mean."
        parts = [element("p", told), legend(keys), *parts]
    return Section("returns", "What the policies earn", join(parts))


def _bar_panel(where: Place, line: Sequence[Group]) -> Html:
    size = max(abs(g.ours.mean) for g in line)
    title = f"Mean return on {where.task} with {where.demos}"
    chart = bar_chart(
        title,
        "; ".join(f"{g.name} {with_error(g.ours, size)}" for g in line),
        [_bar(g, size) for g in line],
    )
    return figure(where.demos, chart)


def _bar(group: Group, size: float) -> Bar:
    paper = group.paper
    more = [f"95 % interval {_interval(group)}"] if group.ours.interval else []
    more += [f"in the paper {number(paper.mean)}"] if paper else []
    return Bar(
        name=group.name,
        value=group.ours.mean,
        shown=with_error(group.ours, size),
        style="after" if group.purified else "plain",
        interval=group.ours.interval,
        mark=paper.mean if paper else None,
        hint=f"{group.name}: {', '.join(more)}" if more else "",
    )


def _interval(group: Group) -> str:
    interval = group.ours.interval
    if interval is None:
        return ""
    size = max(map(abs, interval))
    return f"{number(interval.low, like=size)} to {number(interval.high, like=size)}"


def tables_section(groups: Sequence[Group], rows: Sequence[Row]) -> Section:
    """Every mean, and every run."""
    if not groups:
        return Section("tables", "All numbers", Html())
    parts = [*_result_table(groups)]
    if len(rows) > len(groups):
        title = f"Every run by itself ({len(rows)})"
        parts.append(element("details", element("summary", title), _run_table(rows)))
    return Section("tables", "All numbers", join(parts))


def _result_table(groups: Sequence[Group]) -> Iterable[Html]:
    notes = list(dict.fromkeys(g.paper.note for g in groups if g.paper and g.paper.note))
    best = _best(groups)
    sizes: dict[Place, float] = {}
    for g in groups:
        sizes[g.place] = max(sizes.get(g.place, 0.0), abs(g.ours.mean))
    columns: dict[str, list[Content]] = {
        "task": [g.place.task for g in groups],
        "demonstrations": [g.place.demos for g in groups],
        "regime": [g.place.regime for g in groups],
        "method": [g.name for g in groups],
        "reverse step": [", ".join(map(str, g.chosen)) for g in groups],
        "return": [_return(g, sizes[g.place], (g.place, g.name) in best) for g in groups],
        "best": ["best" if (g.place, g.name) in best else "" for g in groups],
        "95 % interval": [_interval(g) for g in groups],
        "normalised": [_mean(g.normalised) for g in groups],
        "success": [_mean(g.success) for g in groups],
        "seeds": [str(g.ours.seeds) for g in groups],
        "paper": [_paper(g, notes) for g in groups],
    }
    kept = {name: values for name, values in columns.items() if any(values)}
    regimes = {g.place.regime for g in groups}
    if len(regimes) == 1:
        del kept["regime"]
    everywhere = f", regime {regimes.pop()}" if len(regimes) == 1 else ""
    texts = {"task", "demonstrations", "regime", "method", "best"}
    yield table(
        tuple(kept),
        list(zip(*kept.values(), strict=True)),
        f"Mean return of every method on every set of demonstrations{everywhere}",
        numbers={k for k, name in enumerate(kept) if name not in texts},
        filtered=True,
    )
    if "best" in kept:
        yield note("best: no other on the same demonstrations is clearly better.")
    if any(g.paper for g in groups):
        yield from _about_paper(groups, notes)


def _best(groups: Sequence[Group]) -> set[tuple[Place, str]]:
    """Of every place with several methods and seeds."""
    places: dict[Place, list[Group]] = {}
    for group in groups:
        places.setdefault(group.place, []).append(group)
    return {
        (where, name)
        for where, line in places.items()
        for name in winners({g.name: g.ours for g in line})
    }


def _return(group: Group, size: float, best: bool) -> Content:
    shown = with_error(group.ours, size)
    return element("strong", shown) if best else shown


def _mean(values: Sequence[float]) -> str:
    return f"{np.mean(values):.2f}" if values else ""


def _paper(group: Group, notes: Sequence[str]) -> Content:
    paper = group.paper
    if paper is None:
        return ""
    spread = "" if paper.spread is None else f" ± {number(paper.spread, like=paper.mean)}"
    shown = f"{number(paper.mean)}{spread}"
    if not paper.note:
        return shown
    k = notes.index(paper.note) + 1
    link = element("a", str(k), href=f"#note-{k}", aria_label=f"note {k}")
    return join([shown, element("sup", link)])


def _about_paper(groups: Sequence[Group], notes: Sequence[str]) -> Iterable[Html]:
    remarks = [REMARKS.get(t, "") for t in dict.fromkeys(g.paper.table for g in groups if g.paper)]
    if not all("real" in g.place.regime for g in groups):
        remarks.insert(0, "Our demonstrations were recorded anew, with our experts: the paper's "
                          "numbers are of other data.")  # fmt: skip
    told = " ".join(filter(None, remarks))
    yield note(f"About the paper's numbers: {told}")
    if notes:
        items = [element("li", note, id=f"note-{k}") for k, note in enumerate(notes, start=1)]
        yield element("ol", *items, class_="quiet notes")


def _run_table(rows: Sequence[Row]) -> Html:
    head = ("task", "demonstrations", "regime", "method", "step", "seed", "return", "took", "run")
    made = []
    for row in rows:
        regime, task, demos = place(row)
        mean = number(row["metrics"]["mean"]) if is_scored(row) else "none"
        used = row.get("reverse_step") if step(row) else None
        seconds = sum((row.get("timings") or {}).values())
        made.append(
            (task, demos, regime, row["method"], used, row["seed"], mean, f"{seconds:.0f} s",
             str(row.get("digest", ""))[:8])
        )  # fmt: skip
    return table(head, made, "Every run", numbers={4, 5, 6, 7}, filtered=True)
