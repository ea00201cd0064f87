"""The task that redacts a PDF: what runs in which order, from the file to the file. Runs in redact children.

MuPDF takes out glyphs and picture content, then qpdf (pikepdf) cuts drawings, removes annotations and everything beside
the pages, covers the regions visibly, and writes a fresh file of what is still reachable: one revision, no history.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pikepdf

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf_document import open_document, open_page
from sam2_mcp_worker.media.pdf_geometry import BoxPt
from sam2_mcp_worker.media.redact_paths import Rect
from sam2_mcp_worker.media.redact_pdf_annotations import RemovedAnnotations, remove_annotations
from sam2_mcp_worker.media.redact_pdf_content import clean_page_content, has_odd_pictures
from sam2_mcp_worker.media.redact_pdf_fonts import prune_fonts
from sam2_mcp_worker.media.redact_pdf_glyphs import PageCut, cut_glyphs
from sam2_mcp_worker.media.redact_pdf_names import replace_names
from sam2_mcp_worker.media.redact_pdf_private import drop_private_data
from sam2_mcp_worker.media.redact_pdf_raster import rasterise
from sam2_mcp_worker.media.redact_pdf_scrub import GoneWords, scrub
from sam2_mcp_worker.media.redact_pdf_syntax import page_resources
from sam2_mcp_worker.media.redact_pdf_text import page_chars, under
from sam2_mcp_worker.media.redact_pdf_unseen import drop_unseen_appearances
from sam2_mcp_worker.media.redact_picture_metadata import strip_pictures
from sam2_mcp_worker.media.redact_words import needles, plain

# Words of a region that titles and addresses are searched for: shorter ones (of, to, 및) stand everywhere.
_MIN_LATIN_CHARS = 3
_MIN_OTHER_CHARS = 2
_UNCHANGEABLE = "its content is damaged and cannot be changed safely"
# What wrong operands and missing entries raise; viewers pass over them.
_BROKEN_CONTENT = (pikepdf.PdfError, TypeError, ValueError, AttributeError, KeyError, ArithmeticError)


@dataclass(slots=True)
class _Page:
    """One affected page on its way through."""

    number: int
    boxes: list[BoxPt]
    rects: list[Rect] = field(default_factory=list)
    glyphs: list[Rect] = field(default_factory=list)
    text: str = ""
    rest: str = ""
    characters: int = 0
    paths: int = 0
    pictures: int = 0
    rasterised: str = ""
    raster_px_per_pt: float = 0.0
    annotations: RemovedAnnotations = field(default_factory=RemovedAnnotations)


def pdf_redact(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, password, regions, words, rgb, rasterise, subset_fonts, out_path}` -> what was done; writes `out_path`.

    `regions` are `[page_number, x0, y0, x1, y1]` in displayed points, `rasterise` maps page numbers to reasons.

    Raises:
        WorkerError: those of `open_page`; region_outside_page, pdf_damaged, no_space.
    """
    path, password, out_path = Path(params["path"]), params["password"], Path(params["out_path"])
    page_count = len(open_document(path, password))
    pages = [_measure(path, password, number, boxes) for number, boxes in sorted(_by_page(params["regions"]).items())]
    for page in pages:
        page.rasterised = params["rasterise"].get(str(page.number), "")
    between = out_path.with_suffix(".cut.pdf")
    odd = _pages_with_odd_pictures(path, password, [page.number for page in pages])
    cuts = [PageCut(page.number, page.rects, page.glyphs, page.number in odd) for page in pages if not page.rasterised]
    try:
        failed = cut_glyphs(path, password, page_count, cuts, between, subset_fonts=params["subset_fonts"])
        for page in pages:
            if page.number in failed:
                page.rasterised = _UNCHANGEABLE
        with pikepdf.open(between) as pdf:
            report = _finish(pdf, pages, params, page_count)
            pdf.remove_unreferenced_resources()
            pdf.save(out_path, object_stream_mode=pikepdf.ObjectStreamMode.generate, compress_streams=True)
    finally:
        between.unlink(missing_ok=True)
    return report


def _pages_with_odd_pictures(path: Path, password: str, numbers: Sequence[int]) -> set[int]:
    """Pages with pictures that only MuPDF can unpack, whether they lie in a region or not."""
    try:
        with pikepdf.open(path, password=password) as pdf:
            return {number for number in numbers if has_odd_pictures(page_resources(pdf.pages[number - 1]))}
    except (pikepdf.PdfError, pikepdf.PasswordError, IndexError):
        return set(numbers)


def _by_page(regions: Sequence[Sequence[float]]) -> dict[int, list[BoxPt]]:
    grouped: dict[int, list[BoxPt]] = {}
    for number, x0, y0, x1, y1 in regions:
        grouped.setdefault(int(number), []).append((min(x0, x1), min(y0, y1), max(x0, x1), max(y0, y1)))
    return grouped


def _measure(path: Path, password: str, number: int, boxes: Sequence[BoxPt]) -> _Page:
    """Where the regions are on the sheet, and what text lies under them."""
    with open_page(path, password, number) as opened:
        chars = page_chars(opened)
        page = _Page(number, [opened.geometry.clip(box) for box in boxes])
        for box, clipped in zip(boxes, page.boxes, strict=True):
            if clipped[0] >= clipped[2] or clipped[1] >= clipped[3]:
                clipped = box  # text beside the visible page is text all the same
                if not under(chars, [opened.geometry.sheet_box(box)]):
                    raise _outside(number, box, opened.geometry.size_pt)
            page.rects.append(opened.geometry.sheet_box(clipped))
        gone = under(chars, page.rects)
        page.glyphs = [char.ink for char in gone if char.ink[0] < char.ink[2] and char.ink[1] < char.ink[3]]
        page.text = "".join(char.text for char in gone)
        away = {id(char) for char in gone}
        page.rest = "".join(char.text for char in chars if id(char) not in away)
        page.characters = sum(not char.text.isspace() for char in gone)
    return page


def _outside(number: int, box: BoxPt, size_pt: tuple[float, float]) -> WorkerError:
    return WorkerError(
        "region_outside_page",
        f"the region {[round(side, 1) for side in box]} covers nothing of page {number}",
        rule=f"the page is {size_pt[0]:.0f} x {size_pt[1]:.0f} pt, origin top left",
        next_step="Take boxes as inspect_pdf gives them (detail='detailed')",
    )


def _finish(pdf: pikepdf.Pdf, pages: list[_Page], params: dict[str, Any], page_count: int) -> dict[str, Any]:
    affected = {page.number: page for page in pages}
    forms = needles(params["words"])
    elsewhere: dict[int, RemovedAnnotations] = {}
    for number, page_object in enumerate(pdf.pages, 1):
        page = affected.get(number)
        if page is None:
            elsewhere[number] = remove_annotations(pdf, page_object, (), forms)
        else:
            _clean_page(pdf, page_object, page, params)
    drop_unseen_appearances(pdf)
    strip_pictures(pdf)
    told = needles(word for page in pages for word in _telling(page.text, page.rest))
    gone = GoneWords(forms, told)
    done = scrub(pdf, gone)
    done.renamed += replace_names(pdf, gone)
    drop_private_data(pdf)
    return {
        "page_count": page_count,
        "pages": [_page_report(page) for page in pages],
        "encrypted": bool(params["password"]) or _is_encrypted(Path(params["path"])),
        "elsewhere": {
            str(number): [list(box) for box in gone.boxes] for number, gone in elsewhere.items() if gone.boxes
        },
        "attachments": done.attachments
        + sum(gone.carriers for gone in (*elsewhere.values(), *(page.annotations for page in pages))),
        "scripts": done.scripts,
        "renamed": done.renamed,
        "signatures": done.signatures,
        "xfa": done.xfa,
        "metadata": done.metadata,
        "fonts_pruned": prune_fonts(pdf) if params["subset_fonts"] else 0,
    }


def _is_encrypted(path: Path) -> bool:
    try:
        with pikepdf.open(path) as pdf:
            return bool(pdf.is_encrypted)
    except (pikepdf.PdfError, pikepdf.PasswordError):
        return True


def _clean_page(pdf: pikepdf.Pdf, page_object: pikepdf.Page, page: _Page, params: dict[str, Any]) -> None:
    if not page.rasterised:
        try:
            drawings = clean_page_content(pdf, page_object, page.rects)
        except _BROKEN_CONTENT:
            page.rasterised = _UNCHANGEABLE
        else:
            page.paths, page.pictures = drawings.paths, drawings.pictures
            page.rasterised = "; ".join(drawings.obstacles)
    rgb = tuple(params["rgb"])
    if page.rasterised:
        page.annotations = remove_annotations(pdf, page_object, page.rects, (), every=True)
        source = (Path(params["path"]), params["password"], page.number)
        page.raster_px_per_pt = rasterise(
            pdf, page_object, source, page.boxes, rgb, Path(params["out_path"]).with_suffix(".rgb")
        )
    else:
        page.annotations = remove_annotations(pdf, page_object, page.rects, needles(params["words"]))
        _cover(pdf, page_object, page.rects, rgb)


def _cover(pdf: pikepdf.Pdf, page: pikepdf.Page, rects: Sequence[Rect], rgb: tuple[int, ...]) -> None:
    """Fill the regions, so that people see that something was taken out."""
    color = " ".join(f"{value / 255:.4g}" for value in rgb)
    boxes = "".join(f"{x0:.4f} {y0:.4f} {x1 - x0:.4f} {y1 - y0:.4f} re\n" for x0, y0, x1, y1 in rects)
    page.contents_add(b"q\n", prepend=True)
    page.contents_add(f"\nQ q {color} rg\n{boxes}f Q\n".encode("ascii"))


def _telling(text: str, rest: str) -> list[str]:
    """Words of a region that titles must not hold; those that can still be read on the page tell nothing new."""
    open_words = set(rest.split())
    words = [plain(text), *(word for word in text.split() if word not in open_words)]
    return [word for word in words if len(word) >= (_MIN_LATIN_CHARS if word.isascii() else _MIN_OTHER_CHARS)]


def _page_report(page: _Page) -> dict[str, Any]:
    return {
        "page_number": page.number,
        "rects": [list(rect) for rect in page.rects],
        "gone_boxes": [list(box) for box in (*page.annotations.boxes, *page.glyphs)],
        "characters": page.characters,
        "paths": page.paths,
        "pictures": page.pictures,
        "annotations": len(page.annotations.boxes),
        "fields": page.annotations.fields,
        "rasterised": page.rasterised,
        "raster_px_per_pt": page.raster_px_per_pt,
    }


TASKS = {"pdf_redact": pdf_redact}
