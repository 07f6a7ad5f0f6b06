"""HTML and SVG put together so that text can never become markup.

    element("p", "a < b & c", class_="lead")       # <p class="lead">a &lt; b &amp; c</p>
    element("p", element("b", name), " is new")    # what is markup already stays

Only `Html` is markup; every other string is text and is escaped, whoever wrote it.
"""

import re
from collections.abc import Iterable
from html import escape

VOID = frozenset({"link", "meta", "rect", "line", "path", "circle", "polyline", "polygon"})
_CONTROL = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
"""Signs that no HTML may hold."""


class Html(str):
    """Markup, as opposed to text."""

    __slots__ = ()


Content = str | int | None


def text(content: Content) -> Html:
    """Markup as it is, text escaped, nothing for None."""
    if isinstance(content, Html):
        return content
    return Html(
        "" if content is None else escape(_CONTROL.sub("\N{REPLACEMENT CHARACTER}", str(content)))
    )


def join(parts: Iterable[Content]) -> Html:
    """One after the other."""
    return Html("".join(map(text, parts)))


def element(name: str, /, *content: Content, **attributes: Content | float) -> Html:
    """`class_` is class, `aria_label` is aria-label; an attribute of None is left out."""
    given = "".join(
        f' {key.rstrip("_").replace("_", "-")}="{text(_attribute(value))}"'
        for key, value in attributes.items()
        if value is not None
    )
    if name in VOID and not content:
        return Html(f"<{name}{given}/>")
    return Html(f"<{name}{given}>{join(content)}</{name}>")


def _attribute(value: Content | float) -> Content:
    """Coordinates to a tenth of a pixel: finer ones are only bytes."""
    return f"{value:.1f}".removesuffix(".0") if isinstance(value, float) else value
