"""The local Korean reader as the pipelines see it. Owns the way to its child processes; imports nothing heavy.

The work is done by local_ocr_child in a pool of killable processes: here requests become child tasks and their answers
become lines.
"""

from __future__ import annotations

import importlib.metadata
import importlib.util
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Protocol

from sam2_mcp_worker.disk import file_sha256
from sam2_mcp_worker.engines.ports import Box, TextLine, TileReading
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.tiling import OCR_TILES, TileLimit

CHILD_MODULE = "sam2_mcp_worker.engines.local_ocr_child"
# Raise it whenever the same picture may be read otherwise: it is part of every cache key.
READER_VERSION = 3
NETWORKS = ("PP-OCRv6_det_small.onnx", "PP-OCRv6_rec_small.onnx")
HASH_DIGITS = 8
# The pool runs as many as it has children, the rest wait ready in its queue.
TILES_IN_FLIGHT = 8


class OcrPool(Protocol):
    """Child processes that run the tasks of local_ocr_child."""

    async def run(self, task: str, params: dict[str, Any], *, timeout_s: float, job: str) -> dict[str, Any]:
        """Run one task in a free child. Raises WorkerError when the child fails, dies or runs out of time."""
        ...


class LocalOcr:
    """A `TextReader` over a pool of OCR children."""

    def __init__(self, pool: OcrPool, *, identity: str) -> None:
        self._pool = pool
        self._identity = identity

    @property
    def identity(self) -> str:
        return self._identity

    @property
    def tile_limit(self) -> TileLimit:
        return OCR_TILES

    @property
    def tiles_in_flight(self) -> int:
        return TILES_IN_FLIGHT

    @property
    def costs_money(self) -> bool:
        return False

    async def read_tile(self, pixels: PixelFile, rect_xyxy_px: Box, *, job: str, timeout_s: float) -> TileReading:
        params = {"pixels": pixels.to_params(), "rect": list(rect_xyxy_px)}
        answer = await self._pool.run("read_tile", params, timeout_s=timeout_s, job=job)
        return TileReading(
            lines=tuple(_line(line) for line in answer["lines"]),
            undetected_ink=tuple(_box(box) for box in answer["ink"]),
        )

    async def read_boxes(
        self, pixels: PixelFile, boxes_xyxy_px: list[Box], *, job: str, timeout_s: float
    ) -> list[TextLine]:
        if not boxes_xyxy_px:
            return []
        params = {"pixels": pixels.to_params(), "boxes": [list(box) for box in boxes_xyxy_px]}
        answer = await self._pool.run("read_boxes", params, timeout_s=timeout_s, job=job)
        return [_line(line) for line in answer["lines"]]


def child_config(tessdata_dir: Path, languages: Sequence[str], *, threads: int = 1) -> dict[str, Any]:
    """What `local_ocr_child.setup` takes. More than one thread a child only helps while other cores are idle."""
    return {"tessdata_dir": str(tessdata_dir), "languages": list(languages), "threads": threads}


def local_ocr_identity(tessdata_dir: Path, languages: Sequence[str]) -> str:
    """Everything that decides what is read: own version, networks, Tesseract, language data; `absent` for no file.

    Reads and hashes about 33 MB, so call it once at the start (0.05 s).
    """
    networks = " ".join(f"{name.split('_')[1]}={_digest(_network(name))}" for name in NETWORKS)
    data = " ".join(f"{name}:{_digest(tessdata_dir / f'{name}.traineddata')}" for name in languages)
    tesserocr, rapidocr = (_version(name) for name in ("tesserocr", "rapidocr"))
    return f"local-ocr/{READER_VERSION} rapidocr-{rapidocr} {networks} tesserocr={tesserocr} lang={data}"


def _network(name: str) -> Path:
    spec = importlib.util.find_spec("rapidocr")  # finds, does not import
    roots = (spec.submodule_search_locations or []) if spec else []
    return Path(next(iter(roots), "")) / "models" / name


def _digest(path: Path) -> str:
    return file_sha256(path)[:HASH_DIGITS] if path.is_file() else "absent"


def _version(distribution: str) -> str:
    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return "absent"


def _line(line: dict[str, Any]) -> TextLine:
    return TextLine(line["text"], _box(line["box"]), float(line["height_px"]), float(line["confidence"]))


def _box(box: Sequence[int]) -> Box:
    x0, y0, x1, y1 = box
    return x0, y0, x1, y1
