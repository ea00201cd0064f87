"""The work of an OCR child process: models loaded once, then one tile or a list of boxes a call.

Owns the order of the steps on one tile: detect, cut, read, look again, measure, account for the ink. Runs in a child
only: the server process imports nothing from here.
"""

from __future__ import annotations

import importlib.util
import logging
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_THREAD_LIMIT", "1")  # Tesseract's threads cost more than they give on single lines

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.engines.line_detector import LineDetector, Quad
from sam2_mcp_worker.engines.line_reader import LineReader
from sam2_mcp_worker.engines.sign_reader import SignReader, second_look
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.ink import residual_ink
from sam2_mcp_worker.media.line_crop import cut_line
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.text_height import font_size_px

Box = tuple[int, int, int, int]
Line = dict[str, Any]

DETECTOR_FILE, SIGN_READER_FILE = "PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx"
EMPTY_CONTRAST = 16  # of 255 between darkest and lightest: less is paper, however noisy
QUIET_MARGIN_PX = 32  # paper left around the ink for the detector: it misses text at the very edge
BELIEVED = 0.3  # right readings have 0.85 and more, icons and torn print taken for letters 0-0.3
RESCUED = 0.75  # confidence with which ink that the detector missed is believed to be a line
BOX_MARGIN = 0.15  # of the height: boxes from a text layer are drawn tight, or from the font's nominal metrics

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class _Models:
    detector: LineDetector
    reader: LineReader
    signs: SignReader


_models: _Models | None = None


def setup(config: dict[str, Any]) -> None:
    """Load the models: `tessdata_dir`, `languages` (Tesseract's names), `threads` (of ONNX Runtime).

    Raises:
        WorkerError: `language_data_missing`, or `ocr_models_missing` when the installed rapidocr carries other weights.
    """
    global _models
    threads = int(config["threads"])
    cv2.setNumThreads(threads)
    _models = _Models(
        LineDetector(model_file(DETECTOR_FILE), threads=threads),
        LineReader(Path(config["tessdata_dir"]), list(config["languages"])),
        SignReader(model_file(SIGN_READER_FILE), threads=threads),
    )


def model_file(name: str) -> Path:
    """Where the rapidocr wheel keeps a network; found without importing rapidocr."""
    spec = importlib.util.find_spec("rapidocr")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        path = Path(root) / "models" / name
        if path.is_file():
            return path
    raise WorkerError(
        "ocr_models_missing",
        f"{name} is not installed",
        rule="the local reader uses the networks of rapidocr 3.10.0",
        next_step="install sam2-mcp[worker] anew",
    )


def read_tile(params: dict[str, Any]) -> dict[str, Any]:
    """Find and read the lines in `rect`; all coordinates, in and out, are of the whole picture."""
    x0, y0, x1, y1 = params["rect"]
    rgb = PixelFile.from_params(params["pixels"]).crop_rgb((x0, y0, x1, y1))
    origin = (max(0, x0), max(0, y0))
    quads = _find(rgb)
    found = [(_read(rgb, quad, origin), quad) for quad in quads]
    read = [(line, quad) for line, quad in found if line["text"] and line["confidence"] >= BELIEVED]
    # What the detector takes for a line and nobody can read was seen all the same.
    ink = [line["box"] for line, _ in found if not line["text"] or line["confidence"] < BELIEVED]
    for box in residual_ink(rgb, covered_quads=quads):
        line = _read(rgb, _quad_of(box, BOX_MARGIN), origin)
        if line["confidence"] >= RESCUED and not _holds_any(box, [quad for _, quad in read]):
            read.append((line, _quad_of(box, 0)))
        else:
            ink.append(_shifted(box, origin))
    read.sort(key=lambda entry: entry[0]["box"][1::-1])
    return {"lines": [line for line, _ in read], "ink": ink}


def read_boxes(params: dict[str, Any]) -> dict[str, Any]:
    """Read what stands in each of `boxes`; no detection.

    An empty text with confidence 1 says that the box is bare paper, with 0 that its ink could not be read.
    """
    pixels = PixelFile.from_params(params["pixels"])
    lines = []
    for x0, y0, x1, y1 in params["boxes"]:
        reach = round((y1 - y0) * (BOX_MARGIN + 0.5)) + 2  # what the crop's own margins take from around the box
        area = (
            max(0, x0 - reach),
            max(0, y0 - reach),
            min(pixels.width_px, x1 + reach),
            min(pixels.height_px, y1 + reach),
        )
        if x1 <= x0 or y1 <= y0 or area[2] <= area[0] or area[3] <= area[1]:
            lines.append(_nothing((x0, y0, x1, y1)))
            continue
        inside = (x0 - area[0], y0 - area[1], x1 - area[0], y1 - area[1])
        if _spread(pixels.crop_rgb((x0, y0, x1, y1)), 1).max(initial=0) < EMPTY_CONTRAST:
            lines.append({**_nothing((x0, y0, x1, y1)), "confidence": 1.0})
            continue
        line = _read(pixels.crop_rgb(area), _quad_of(inside, BOX_MARGIN), (area[0], area[1]))
        lines.append({**line, "box": [x0, y0, x1, y1]})
    return {"lines": lines}


TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {"read_tile": read_tile, "read_boxes": read_boxes}


def _loaded() -> _Models:
    if _models is None:
        raise WorkerError("engine_not_ready", "the OCR child was asked before it was set up")
    return _models


def _find(rgb: NDArray[np.uint8]) -> list[Quad]:
    """Lines of the part that holds anything: white margins cost as much as print."""
    part = _inked_part(rgb)
    if part is None:
        return []
    x0, y0, x1, y1 = part
    shift = np.array([x0, y0], np.float32)
    return [quad + shift for quad in _loaded().detector.find(np.ascontiguousarray(rgb[y0:y1, x0:x1]))]


def _inked_part(rgb: NDArray[np.uint8]) -> Box | None:
    if rgb.size == 0:
        return None
    rows, columns = (np.flatnonzero(_spread(rgb, axis) >= EMPTY_CONTRAST) for axis in (1, 0))
    if not len(rows) or not len(columns):
        return None
    m = QUIET_MARGIN_PX
    return (
        max(0, int(columns[0]) - m),
        max(0, int(rows[0]) - m),
        min(rgb.shape[1], int(columns[-1]) + 1 + m),
        min(rgb.shape[0], int(rows[-1]) + 1 + m),
    )


def _spread(rgb: NDArray[np.uint8], axis: int) -> NDArray[np.int32]:
    """Largest less smallest value in any channel of each row (axis 1) or column (axis 0)."""
    highest, lowest = (cv2.reduce(rgb, axis, how) for how in (cv2.REDUCE_MAX, cv2.REDUCE_MIN))
    return np.asarray((highest.astype(np.int32) - lowest).max(axis=2).ravel(), np.int32)


def _read(rgb: NDArray[np.uint8], quad: Quad, origin: tuple[int, int]) -> Line:
    models = _loaded()
    crop = cut_line(rgb, quad)
    reading = models.reader.read(crop.gray)
    text, confidence = second_look(models.signs, crop.gray, reading)
    height, width = rgb.shape[:2]
    x0, y0 = np.clip(np.floor(quad.min(axis=0)), 0, (width, height)).astype(int)
    x1, y1 = np.clip(np.ceil(quad.max(axis=0)), 0, (width, height)).astype(int)
    return {
        "text": text,
        "box": _shifted((int(x0), int(y0), int(x1), int(y1)), origin),
        "height_px": round(font_size_px(crop, reading.symbols, text), 1) if text else 0.0,
        "confidence": round(confidence, 3),
        "quad": [[round(float(x) + origin[0], 1), round(float(y) + origin[1], 1)] for x, y in quad],
    }


def _holds_any(box: Box, quads: list[Quad]) -> bool:
    """Whether the centre of a known line lies in the box: then the ink around it is no line of its own."""
    return any(bool(box[0] < x < box[2] and box[1] < y < box[3]) for x, y in (quad.mean(axis=0) for quad in quads))


def _nothing(box: Box) -> Line:
    x0, y0, x1, y1 = box
    quad = [[x0, y0], [x1, y0], [x1, y1], [x0, y1]]
    return {"text": "", "box": list(box), "height_px": 0.0, "confidence": 0.0, "quad": quad}


def _quad_of(box: Box, margin: float) -> Quad:
    x0, y0, x1, y1 = box
    m = margin * (y1 - y0)
    return np.array([[x0 - m, y0 - m], [x1 + m, y0 - m], [x1 + m, y1 + m], [x0 - m, y1 + m]], np.float32)


def _shifted(box: Box, origin: tuple[int, int]) -> list[int]:
    return [box[0] + origin[0], box[1] + origin[1], box[2] + origin[0], box[3] + origin[1]]
