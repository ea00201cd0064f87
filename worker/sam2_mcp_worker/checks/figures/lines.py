"""The figures of the lines of a document with what they are about.

Owns where the context of a figure is looked for: before it in its clause, behind it, in the text beside and above its
line. Knows no tables and no other document.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import replace

from sam2_mcp_worker.checks.figures.clauses import clauses_of, header_unit
from sam2_mcp_worker.checks.figures.form import VALUE_KINDS, Form
from sam2_mcp_worker.checks.figures.forms import bare_number, forms_of, normalised, pieces_of
from sam2_mcp_worker.checks.figures.shape import Figure, Place, figure_of
from sam2_mcp_worker.checks.figures.words import words_of
from sam2_mcp_worker.checks.reading import Box, Reading, ReadLine, ReadPage

# How far above a figure the line may end that names it, in heights of its line, and how far the next one to the left.
ABOVE_HEIGHTS = 2.5
LEFT_HEIGHTS = 12.0
# Confidence of OCR from which a figure may be told to be wrong: of figures read with less 20 % have another
# value, with more 2.5 % (docs/accuracy.md, Figures).
SURE_CONFIDENCE = 0.9
# A line of nothing but a few digits is the number of a page, of a step or of a note.
_MARK = re.compile(r"\s*\d{1,3}\s*")
# Lines that share this part of the lower one's height stand in one row.
ROW_SHARE = 0.5


def figures_of(reading: Reading) -> tuple[Figure, ...]:
    """Every figure of a reading, in its order; what OCR read again of a text layer counts once."""
    return tuple(figure for page in reading.pages for figure in _once(list(_of_page(page, reading))))


def _of_page(page: ReadPage, reading: Reading) -> Iterator[Figure]:
    parts = [(index, piece) for index, line in enumerate(page.lines) for piece in pieces_of(normalised(line.text))]
    lines, texts = [page.lines[index] for index, _ in parts], [text for _, text in parts]
    forms = [[] if _MARK.fullmatch(text) else forms_of(text) for text in texts]
    for part, (index, text) in enumerate(parts):
        place, unsure = _place(page, lines[part], index, reading), _unsure(lines[part])
        for form, clause in zip(forms[part], clauses_of(text, forms[part]), strict=True):
            near = True
            if not clause.named:
                found, near = _beside(lines, texts, forms, part)
                if near or not any(words_of(phrase) for phrase in clause.label):
                    clause = clause.named_by(found)
                else:
                    near = True  # what stands above is not needed
            unit = header_unit(clause.label) if form.kind == "number" else None
            form = bare_number(form, *unit) if unit else form
            form = _whole_number(form, text, texts[part + 1] if part + 1 < len(texts) else "")
            yield figure_of(form, clause, place, near=near, unsure=unsure)


def _place(page: ReadPage, line: ReadLine, index: int, reading: Reading) -> Place:
    return Place(
        page=page.number if reading.kind == "pdf" else None,
        box_xyxy=line.box_xyxy,
        line=index + 1 if line.box_xyxy is None and line.start_s is None else None,
        start_s=line.start_s,
        end_s=line.end_s,
        source=line.source,
    )


def _unsure(line: ReadLine) -> str:
    if line.source == "speech":
        return "only the sound is known"
    if line.source == "ocr" and (line.confidence is None or line.confidence < SURE_CONFIDENCE):
        return "the reading is not certain"
    return ""


def _whole_number(form: Form, text: str, following: str) -> Form:
    """A number at the end of a line that goes on in the next one ("150,000," above "000원") is in doubt."""
    rest = text[form.end :].strip()
    if rest == "," and following[:3].isdigit():
        return replace(form, doubt="it goes on in the next line")
    return form


def _beside(
    lines: Sequence[ReadLine], texts: Sequence[str], forms: Sequence[Sequence[Form]], index: int
) -> tuple[tuple[str, ...], bool]:
    """What names a figure whose own line does not: text to its left, else above it; whether it is near."""
    box = lines[index].box_xyxy
    if box is None:
        named_above = index > 0 and words_of(texts[index - 1]) and not _is_value(forms[index - 1])
        return ((texts[index - 1],) if named_above else ()), False
    named = [
        (other.box_xyxy, texts[at])
        for at, other in enumerate(lines)
        if at != index and other.box_xyxy is not None and words_of(texts[at]) and not _is_value(forms[at])
    ]
    height = box[3] - box[1]
    left = [
        (box[0] - other[2], text) for other, text in named if _in_row(other, box) and other[2] <= box[0] + height / 2
    ]
    if left and min(left)[0] <= LEFT_HEIGHTS * height:
        return (min(left)[1],), True
    above_them = [
        (box[1] - other[3], text) for other, text in named if _in_column(other, box) and other[3] <= box[1] + height / 2
    ]
    if above_them and min(above_them)[0] <= ABOVE_HEIGHTS * height:
        return (min(above_them)[1],), False
    return (), False


def _is_value(forms: Sequence[Form]) -> bool:
    """Whether a line holds an amount or a rate: it names itself and not its neighbour."""
    return any(form.kind in VALUE_KINDS for form in forms)


def _in_row(one: Box, other: Box) -> bool:
    shared = min(one[3], other[3]) - max(one[1], other[1])
    return shared >= ROW_SHARE * min(one[3] - one[1], other[3] - other[1])


def _in_column(one: Box, other: Box) -> bool:
    return min(one[2], other[2]) > max(one[0], other[0])


def _once(figures: list[Figure]) -> Iterator[Figure]:
    """Without those that OCR read where the text layer has the same figure."""
    sure = [figure for figure in figures if figure.place.source == "text_layer"]
    for figure in figures:
        again = figure.place.source == "ocr" and any(
            (figure.kind, figure.low, figure.high, figure.unit) == (one.kind, one.low, one.high, one.unit)
            and _overlap(figure.place.box_xyxy, one.place.box_xyxy)
            for one in sure
        )
        if not again:
            yield figure


def _overlap(one: Box | None, other: Box | None) -> bool:
    return one is not None and other is not None and _in_column(one, other) and _in_row(one, other)
