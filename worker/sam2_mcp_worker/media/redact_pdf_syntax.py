"""What pikepdf leaves to its users: names in odd encodings, resources inherited by pages. Runs in redact children."""

from __future__ import annotations

from typing import Any

import pikepdf
from pikepdf import Dictionary, Name

# Page trees deeper than this are cyclic.
_MAX_DEPTH = 64


def name_text(value: Any) -> str:
    """A name with its slash, as pikepdf gives the keys of dictionaries; empty for anything else."""
    return bytes(value).decode("utf-8", errors="surrogateescape") if isinstance(value, Name) else ""


def page_resources(page: pikepdf.Page) -> Dictionary:
    """The page's resources, its own or inherited. (`Page.resources` gives a page without an empty dictionary.)"""
    node: Any = page.obj
    for _ in range(_MAX_DEPTH):
        if not isinstance(node, Dictionary):
            break
        own = node.get("/Resources")
        if isinstance(own, Dictionary):
            return own
        node = node.get("/Parent")
    return Dictionary()
