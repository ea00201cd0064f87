"""Two-page leaflets whose wording is known, from a seed: laid out, drawn, and read by the local reader.

Owns the layout and the way to a `Reading`; which phrases are asked for is phrase_text.py's business. Even seeds print
the first sentence of each pair, odd seeds the second.
"""

from __future__ import annotations

import hashlib
import json
import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random
from typing import Any

from tests.bench.checks.phrase_text import ABSENT, FILLERS, PAIRS
from tests.bench.ocr import pages
from tests.bench.ocr.pages import A4_PX, Page, Rect, Writer
from tests.bench.ocr.run import read_page

from sam2_mcp_worker.checks.reading import Reading, ReadLine, ReadPage, Source, Unread
from sam2_mcp_worker.media.level_boxes import order_of_lines

MARGIN_PX = 80
GAP_PX = 50


@dataclass(frozen=True, slots=True)
class Leaflet:
    """Its pages as drawing operations in reading order, and what is true of each phrase that is asked for."""

    seed: int
    pages: tuple[Page, ...]
    present: tuple[str, ...]
    altered: tuple[str, ...]
    absent: tuple[str, ...] = tuple(ABSENT)


def leaflet(seed: int) -> Leaflet:
    """A leaflet with every pair's sentence of the seed's side and fillers, in an order and a layout of its own.

    One sentence is broken over the page's end.
    """
    chance = Random(f"phrases-{seed}")
    side = seed % 2
    printed, others = zip(*((pair[side], pair[1 - side]) for pair in PAIRS), strict=True)
    broken = chance.choice([text for text in printed if text.endswith(".")])
    sentences = [text for text in (*printed, *FILLERS) if text != broken]
    chance.shuffle(sentences)
    return Leaflet(seed, laid_out(chance, sentences, broken), printed, others)


def printed_reading(leaflet: Leaflet, slips: Callable[[str], str] = str, source: Source = "ocr") -> Reading:
    """What a reader gives whose lines are those that were printed, apart from the slips."""
    done = []
    for number, page in enumerate(leaflet.pages, start=1):
        lines = tuple(
            ReadLine(slips(text.text), source, text.box_xyxy_px, float(text.size_px), 0.9) for text in page.texts
        )
        done.append(ReadPage(number, "done", lines, size=(float(page.size_px[0]), float(page.size_px[1]))))
    return Reading("pdf", "px", tuple(done))


def read_by_ocr(leaflet: Leaflet, seen: Callable[[Page], Page], kept: Path | None = None) -> Reading:
    """What the local reader gives (`local_ocr_child.setup` was called), each page seen as `seen` makes it.

    Readings are kept in the folder `kept`, by the picture, so that judging them again costs nothing.
    """
    return Reading(
        "pdf", "px", tuple(_read(seen(drawn(page)), number, kept) for number, page in enumerate(leaflet.pages, 1))
    )


def drawn(page: Page) -> Page:
    """The page with its picture at 150 dpi."""
    return page if page.rgb is not None else replace(page, rgb=pages.render_pdf(page))


def laid_out(chance: Random, sentences: Sequence[str], broken: str) -> tuple[Page, ...]:
    """Two pages with columns, a table, paragraphs and fine print; one sentence is broken over the page's end."""
    rest = list(sentences)
    first, second = (Page(f"page {n}", A4_PX, [Rect(0, 0, *A4_PX, chance.choice(pages.PAPERS))]) for n in (1, 2))
    writer = Writer(first, chance)
    writer.banner(MARGIN_PX, chance.choice((56, 64)), 26)
    _columns(writer, chance, _taken(rest, 12), chance.choice((18, 20)))
    writer.table(MARGIN_PX, A4_PX[0] - 2 * MARGIN_PX, 18, 5)
    writer.section(MARGIN_PX, 24)
    _paragraphs(writer, chance, _taken(rest, 10), 18)
    _broken_over_the_page(writer, second, broken)
    writer = Writer(second, chance)
    writer.y = 170
    _columns(writer, chance, _taken(rest, 10), 16)
    writer.y += 30
    _paragraphs(writer, chance, _taken(rest, 7), 14)
    writer.y += 30
    _paragraphs(writer, chance, _taken(rest, len(rest)), 12)
    return first, second


def _taken(rest: list[str], count: int) -> list[str]:
    taken = rest[:count]
    del rest[:count]
    return taken


def _columns(writer: Writer, chance: Random, sentences: Sequence[str], size_px: int) -> None:
    width = (A4_PX[0] - 2 * MARGIN_PX - GAP_PX) / 2
    half = len(sentences) // 2
    top = writer.y
    ends = []
    for column, texts in enumerate((sentences[:half], sentences[half:])):
        writer.y = top
        x = MARGIN_PX + column * (width + GAP_PX)
        writer.section(x, size_px + 6)
        for text in texts:
            writer.paragraph(x, width, text, size_px, writer.ink, leading=1.5)
        ends.append(writer.y)
    writer.y = max(ends) + size_px


def _paragraphs(writer: Writer, chance: Random, sentences: Sequence[str], size_px: int) -> None:
    """Full width, one to three sentences each, where they end with a full stop."""
    paragraph = ""
    for text in sentences:
        paragraph = f"{paragraph} {text}".strip()
        if not text.endswith(".") or chance.random() < 0.5:
            _paragraph(writer, "- " + paragraph, size_px)
            paragraph = ""
    if paragraph:
        _paragraph(writer, "- " + paragraph, size_px)


def _paragraph(writer: Writer, text: str, size_px: int) -> None:
    writer.paragraph(MARGIN_PX, A4_PX[0] - 2 * MARGIN_PX, text, size_px, writer.ink, leading=1.45)


def _broken_over_the_page(writer: Writer, following: Page, text: str) -> None:
    """Its first half ends the page, the rest begins the following one."""
    if writer.y > A4_PX[1] - 110:
        raise AssertionError(f"{writer.page.name} overflows: {writer.y}")
    words = text.split(" ")
    halves = " ".join(words[: len(words) // 2]), " ".join(words[len(words) // 2 :])
    for page, y, half in zip((writer.page, following), (A4_PX[1] - 60, 80), halves, strict=True):
        page.ops.append(pages.Text(MARGIN_PX, y, half, writer.regular, 14, writer.ink))


def _read(page: Page, number: int, kept: Path | None) -> ReadPage:
    assert page.rgb is not None
    path = kept / f"{hashlib.sha256(page.rgb.tobytes()).hexdigest()}.json" if kept else None
    if path is not None and path.is_file():
        return _page_of(json.loads(path.read_text("utf-8")), number)
    with tempfile.TemporaryDirectory() as folder:
        lines, ink = read_page(page, Path(folder))
    order = order_of_lines([(line.box_xyxy_px, line.height_px) for line in lines])
    data = {
        "size": page.size_px,
        "lines": [[lines[i].text, lines[i].box_xyxy_px, lines[i].height_px, lines[i].confidence] for i in order],
        "ink": ink,
    }
    if path is not None:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps(data, ensure_ascii=False, default=float), "utf-8")
    return _page_of(json.loads(json.dumps(data, default=float)), number)


def _page_of(data: dict[str, Any], number: int) -> ReadPage:
    lines = tuple(
        ReadLine(text, "ocr", (box[0], box[1], box[2], box[3]), height, confidence)
        for text, box, height, confidence in data["lines"]
    )
    unread = tuple(Unread("ink that no line covers", (box[0], box[1], box[2], box[3])) for box in data["ink"])
    return ReadPage(number, "done", lines, unread, size=(float(data["size"][0]), float(data["size"][1])))
