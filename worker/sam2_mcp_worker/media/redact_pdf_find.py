"""Finds words in the text layers of a PDF, wherever they are drawn or hidden. Runs in redact children."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.media.pdf_document import open_page
from sam2_mcp_worker.media.redact_paths import Rect
from sam2_mcp_worker.media.redact_pdf_text import Char, page_chars, page_text
from sam2_mcp_worker.media.redact_words import found_in_text, plain

# What pdfium makes of a hyphen at the end of a line. It may belong to a word or not, so both are tried.
LINE_END_HYPHENS = ("\ufffe", "\x02")


def pdf_find_words(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, password, pages, forms}` -> `{found: [[page_number, form, [x0, y0, x1, y1]], ..]}` in displayed points.

    One box for each line that a word is broken over. `forms` are comparable words (redact_words).
    """
    found = []
    for number in params["pages"]:
        with open_page(Path(params["path"]), params["password"], number) as opened:
            if not found_in_text(page_text(opened), params["forms"]):
                continue  # boxes of all characters take ten times as long
            chars = page_chars(opened)
            for form, rect in occurrences(chars, params["forms"]):
                found.append([number, form, list(opened.geometry.box(*rect))])
    return {"found": found}


def occurrences(chars: Sequence[Char], forms: Sequence[str]) -> Iterator[tuple[str, Rect]]:
    """Boxes of every occurrence, line by line; spaces between the characters do not count."""
    places: dict[tuple[str, tuple[int, ...]], None] = {}
    letters = _letters(chars)
    for hyphen in ("", "-") if any(char.text in LINE_END_HYPHENS for char in chars) else ("",):
        owners: list[int] = []
        parts: list[str] = []
        for number, letter in enumerate(letters):
            text = "".join(chars[index].text for index in letter)
            parts.append(hyphen if text in LINE_END_HYPHENS else plain(text))
            owners += [number] * len(parts[-1])
        text = "".join(parts)
        for form in forms:
            at = text.find(form)
            while at >= 0:
                places[form, tuple(dict.fromkeys(owners[at : at + len(form)]))] = None
                at = text.find(form, at + 1)
    for form, numbers in places:
        hit = [chars[index] for number in numbers for index in letters[number]]
        yield from ((form, box) for box in _lines(hit))


def _letters(chars: Sequence[Char]) -> list[list[int]]:
    """Indices of the characters that make up a letter: accents and the parts of a syllable may stand apart (NFD)."""
    letters: list[list[int]] = []
    for index, char in enumerate(chars):
        joins = bool(char.text) and (unicodedata.combining(char.text[0]) or "\u1160" <= char.text[0] <= "\u11ff")
        if joins and letters:
            letters[-1].append(index)
        else:
            letters.append([index])
    return letters


def _lines(hit: Sequence[Char]) -> Iterator[Rect]:
    """Join the boxes of neighbours; a new one starts where the next character does not stand beside the last."""
    current: Rect | None = None
    for char in hit:
        box = char.ink if char.ink[0] < char.ink[2] and char.ink[1] < char.ink[3] else char.cell
        if current is not None and _beside(current, box):
            current = (
                min(current[0], box[0]), min(current[1], box[1]), max(current[2], box[2]), max(current[3], box[3]),
            )  # fmt: skip
            continue
        if current is not None:
            yield current
        current = box
    if current is not None:
        yield current


def _beside(one: Rect, other: Rect) -> bool:
    """Whether two boxes follow each other along a line, upright or turned: nearer than the larger is long."""
    reach = max(other[2] - other[0], other[3] - other[1])
    across = min(one[3], other[3]) - max(one[1], other[1])
    along = min(one[2], other[2]) - max(one[0], other[0])
    return (across > 0 and along > -reach) or (along > 0 and across > -reach / 2)


TASKS = {"pdf_find_words": pdf_find_words}
