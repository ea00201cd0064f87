"""PDF tasks of the decoder children. Results are JSON; see pdf.py for the server's side of each."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from sam2_mcp_worker.media.pdf_document import open_document, open_page
from sam2_mcp_worker.media.pdf_geometry import BoxPt
from sam2_mcp_worker.media.pdf_objects import count_annotations, find_objects
from sam2_mcp_worker.media.pdf_render import render
from sam2_mcp_worker.media.pdf_text import read_text
from sam2_mcp_worker.media.text_lines import Line

# Hundredths of a point: 1/7200 inch, below what any box here is used for.
_DECIMALS = 2


def pdf_open(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, password?}` -> `{page_count}`."""
    return {"page_count": len(open_document(Path(params["path"]), params.get("password") or ""))}


def pdf_page(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, password?, page_number}` -> size, lines, pictures and counts, as in `pdf.PdfPage`."""
    with open_page(Path(params["path"]), params.get("password") or "", params["page_number"]) as opened:
        text = read_text(opened)
        objects = find_objects(opened)
        width_pt, height_pt = opened.geometry.size_pt
        return {
            "width_pt": width_pt,
            "height_pt": height_pt,
            "rotation_deg": opened.geometry.rotation_deg,
            "lines": [_line(line) for line in text.lines],
            "hidden_chars": text.hidden_chars,
            "unmapped_chars": text.unmapped_chars,
            "images": [
                {
                    "box_xyxy_pt": _box(picture.box_xyxy_pt),
                    "width_px": picture.width_px,
                    "height_px": picture.height_px,
                    "px_per_pt": picture.px_per_pt,
                }
                for picture in objects.pictures
            ],
            "vector_paths": objects.vector_paths,
            "annotations": count_annotations(opened.page),
        }


def pdf_render(params: dict[str, Any]) -> dict[str, Any]:
    """`{path, password?, page_number, px_per_pt, out_path, max_pixels}` -> `{width_px, height_px}`; writes raw RGB."""
    with open_page(Path(params["path"]), params.get("password") or "", params["page_number"]) as opened:
        size = render(opened, params["px_per_pt"], Path(params["out_path"]), params["max_pixels"])
    return {"width_px": size[0], "height_px": size[1]}


TASKS = {"pdf_open": pdf_open, "pdf_page": pdf_page, "pdf_render": pdf_render}


def _line(line: Line) -> dict[str, Any]:
    return {
        "text": line.text,
        "box_xyxy_pt": _box(line.box_xyxy_pt),
        "size_pt": round(line.size_pt, _DECIMALS),
        "min_size_pt": round(line.min_size_pt, _DECIMALS),
        "font": line.font,
        "level": line.level,
    }


def _box(box: BoxPt) -> list[float]:
    return [round(side, _DECIMALS) for side in box]
