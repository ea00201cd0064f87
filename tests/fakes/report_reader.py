"""Reads a report as a browser would, and knows what may stand in one."""

from __future__ import annotations

import re
from html.parser import HTMLParser

HOSTILE = "</pre><script>alert(1)</script><img src=x onerror=alert(2)> $name ${css} \"' &amp; javascript:1"
VOID_TAGS = {"meta", "img", "br"}
# fmt: off
ALLOWED_TAGS = {
    "html", "head", "meta", "title", "style", "body", "div", "header", "p", "span", "h1", "h2", "h3", "main", "section",
    "dl", "dt", "dd", "table", "caption", "thead", "tbody", "tr", "th", "td", "a", "ul", "ol", "li", "figure", "img",
    "pre", "footer", "br",
}
ALLOWED_ATTRIBUTES = {
    "lang", "charset", "http-equiv", "content", "name", "class", "id", "dir", "aria-label", "aria-labelledby",
    "aria-hidden", "scope", "href", "src", "alt", "value",
}
# fmt: on


class Reader(HTMLParser):
    """Collects what a browser would see, and fails on unbalanced tags."""

    def __init__(self) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[str] = []
        self.text: list[tuple[str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID_TAGS:
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text.append((self.open[-1] if self.open else "", data))


def read(document: str) -> Reader:
    reader = Reader()
    reader.feed(document)
    reader.close()
    assert reader.open == []
    return reader


def words(document: str) -> str:
    seen = "".join(data for tag, data in read(document).text if tag != "style")
    return re.sub(r"\s+", " ", seen)
