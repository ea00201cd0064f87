"""Pieces of HTML that every part of a report is made of. All that comes from outside passes `text_html` here."""

from __future__ import annotations

import html
import re
from collections.abc import Mapping

# Control characters are invisible or break encoders; bidirectional overrides make a line read other than it is.
UNPRINTABLE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
HANGUL = re.compile("[\u1100-\u11ff\u3130-\u318f\uac00-\ud7af]")


def text_html(value: object) -> str:
    """Anything from outside, made safe for element content and quoted attributes."""
    plain = str(value).replace("\r\n", "\n").replace("\r", "\n")
    return html.escape(UNPRINTABLE.sub("\ufffd", plain), quote=True)


def both(english: str, korean: str) -> str:
    """A sentence in English with the Korean one beside it, where there is one."""
    return text_html(english) + (f' <span class="ko" lang="ko">{text_html(korean)}</span>' if korean else "")


def words_for(table: Mapping[str, tuple[str, str]], key: str) -> tuple[str, str]:
    """English and Korean words of a key; the key itself where the table has none."""
    return table.get(key, (key, ""))


def language_attribute(text: str) -> str:
    """Screen readers and line breaking need to know Korean; other languages are left open."""
    return ' lang="ko"' if HANGUL.search(text) else ""


def points(value: float | None) -> str:
    """A size in points; a dash for none."""
    return "–" if value is None else f"{value:.1f} pt"
