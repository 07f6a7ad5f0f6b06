"""What the parts of the page are built from: sections, figures with legends, tables, facts."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from elute.report.markup import Content, Html, element

MOST_ROWS = 8
"""A longer table can be filtered."""


@dataclass(frozen=True)
class Section:
    """A part of the page; one without content is left out."""

    id: str
    title: str
    content: Html


def short_name(name: str) -> str:
    """A path without its folders, which say nothing to a reader elsewhere."""
    return name.rsplit("/", 1)[-1] if name.startswith(("/", ".")) else name


def sentence(words: str) -> str:
    """With a capital and a full stop: findings are told as half sentences."""
    whole = words[:1].upper() + words[1:]
    return whole if whole.endswith((".", "!", "?")) else f"{whole}."


def unbroken(words: str) -> str:
    """Numbers stay on a line with their error and unit."""
    return words.replace(" ± ", "\N{NO-BREAK SPACE}±\N{NO-BREAK SPACE}").replace(
        " %", "\N{NO-BREAK SPACE}%"
    )


def note(words: str) -> Html:
    """A remark."""
    return element("p", words, class_="quiet")


def facts_list(facts: Iterable[tuple[str, Content]]) -> Html:
    """Names and what they stand for, line by line."""
    pairs = [element("div", element("dt", name), element("dd", value)) for name, value in facts]
    return element("dl", *pairs)


def figure(caption: str, *content: Html) -> Html:
    """A panel with its caption."""
    return element("figure", element("figcaption", caption), *content)


def legend(keys: Sequence[tuple[str, str]]) -> Html:
    """What each style (class) of a line stands for."""
    items = [element("li", _key(style), name) for style, name in keys]
    return element("ul", *items, class_="legend")


def _key(style: str) -> Html:
    if style == "mark":
        drawn = element("path", d="M10 1l5 6l-5 6l-5-6z", class_="mark")
    else:
        drawn = element("path", d="M1 7H19", class_=f"line {style}")
    return element("svg", drawn, viewBox="0 0 20 14", aria_hidden="true")


def table(
    head: Sequence[str],
    rows: Sequence[Sequence[Content]],
    caption: str,
    *,
    numbers: set[int],
    filtered: bool = False,
) -> Html:
    """Sorted by the page's script, and filtered where there are many rows."""
    titles = [
        element("th", name, scope="col", class_="n" if k in numbers else None)
        for k, name in enumerate(head)
    ]
    lines = [_row(row, numbers) for row in rows]
    whole = element(
        "table",
        element("caption", caption),
        element("thead", element("tr", *titles)),
        element("tbody", *lines),
        data_filter="yes" if filtered and len(rows) > MOST_ROWS else None,
    )
    return element("div", whole, class_="scroll", tabindex="0", role="region", aria_label=caption)


def _row(row: Sequence[Content], numbers: set[int]) -> Html:
    cells = [element("td", v, class_="n" if k in numbers else None) for k, v in enumerate(row)]
    return element("tr", *cells)
