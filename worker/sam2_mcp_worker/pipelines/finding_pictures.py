"""Pictures of the pages, or frames, on which something was found, with a numbered box around each finding.

Owns which of them are drawn and at what size. What a number stands for is told by findings_report.py and by the result.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import INSPECTED, Artifact
from sam2_mcp_worker.checks.reading import Box
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.box_styles import FindingKind
from sam2_mcp_worker.media.boxes import rounded_out, scaled
from sam2_mcp_worker.media.image import decode_image
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.video import VideoFrame, read_frames
from sam2_mcp_worker.pipelines.artifact_keeping import kept_artifact
from sam2_mcp_worker.pipelines.page_documents import PdfDocument, PictureDocument
from sam2_mcp_worker.pipelines.page_overlay import OVERLAY_MAX_BYTES, OVERLAY_MAX_SIDE_PX
from sam2_mcp_worker.pipelines.read_documents import ReadDocument
from sam2_mcp_worker.pipelines.sound_documents import VideoDocument
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it whenever the same marks are drawn otherwise: it is part of the pictures' cache keys.
PICTURES_VERSION = 1
# A picture takes half a second of a core; a reviewer looks at the first findings, and the table holds them all.
MAX_PICTURES = 12
# As sharp as a sheet of OVERLAY_MAX_SIDE_PX shows a page of ordinary paper. Of landing pages many metres long the area
# is bounded instead: they are drawn as several columns.
PX_PER_PT = 2.0
MAX_PAGE_PIXELS = 16e6

logger = logging.getLogger(__name__)

PictureKey = tuple[int, float | None]
"""Page number from 1, and the time of the frame where the document is a video."""


@dataclass(frozen=True, slots=True)
class Mark:
    """A finding's box, in the unit of the reading, and its number in the result."""

    number: int
    kind: FindingKind
    page: int
    box_xyxy: Box
    time_s: float | None = None


async def finding_pictures(
    services: Services, read: ReadDocument, marks: Sequence[Mark], *, max_pictures: int = MAX_PICTURES
) -> dict[PictureKey, Artifact]:
    """The pictures of the first pages or frames that have marks, in their order; those that cannot be drawn are left
    out, for they are beside the result. The same marks on the same document give the same artifacts.
    """
    groups: dict[PictureKey, list[Mark]] = {}
    for mark in sorted(marks, key=lambda one: (one.page, one.time_s or 0.0, one.number)):
        groups.setdefault((mark.page, mark.time_s), []).append(mark)
    pictures: dict[PictureKey, Artifact] = {}
    for key in list(groups)[:max_pictures]:
        try:
            pictures[key] = await _picture(services, read, key, groups[key])
        except (WorkerError, OSError) as error:
            logger.warning("findings not drawn: %s", getattr(error, "code", type(error).__name__))
    return pictures


async def _picture(services: Services, read: ReadDocument, key: PictureKey, marks: Sequence[Mark]) -> Artifact:
    document = read.document
    assert document.file is not None  # text has no places
    drawn = [asdict(mark) for mark in marks]
    kept_as = cache_key("finding_picture", PICTURES_VERSION, document.file.sha256, document.key, key, drawn)
    name = f"page-{key[0]}-findings.jpg" if key[1] is None else f"frame-{key[1]:.2f}-s-findings.jpg"
    facts = {INSPECTED: document.file.handle}

    async def make() -> Artifact:
        with services.work_directory("findings") as folder:
            pixels, scale = await _pixels(services, read, key, folder)
            out_path = folder / "findings.jpg"
            await services.decoders.run(
                "draw_overlay",
                {
                    "pixels": pixels.to_params(),
                    "boxes": [_box(mark, scale) for mark in marks],
                    "out_path": str(out_path),
                    "max_side_px": OVERLAY_MAX_SIDE_PX,
                    "max_bytes": OVERLAY_MAX_BYTES,
                },
                timeout_s=services.settings.step_timeout_s,
                job=document.key,
            )
            put = services.artifacts.put
            data = await asyncio.to_thread(out_path.read_bytes)
            return await asyncio.to_thread(put, data, name=name, mime_type="image/jpeg", facts=facts)

    return await kept_artifact(services, kept_as, make)


def _box(mark: Mark, scale: float) -> Mapping[str, Any]:
    return {"box": list(rounded_out(scaled(mark.box_xyxy, scale))), "kind": mark.kind, "number": mark.number}


async def _pixels(services: Services, read: ReadDocument, key: PictureKey, folder: Path) -> tuple[PixelFile, float]:
    """What is drawn on, and pixels of it for one unit of the reading.

    Raises:
        WorkerError: it cannot be decoded, or it is a document without pictures.
    """
    document, settings = read.document, services.settings
    if isinstance(document, PdfDocument):
        scale = _px_per_pt(read, key[0])
        pixels = await document.pages.pdf.render_page(
            services.decoders,
            key[0],
            px_per_pt=scale,
            out_path=folder / "page.rgb",
            max_pixels=settings.max_picture_pixels,
            timeout_s=settings.step_timeout_s,
            job=document.key,
        )
        return pixels, scale
    if isinstance(document, PictureDocument):
        image = await decode_image(
            services.decoders,
            document.stored.path,
            folder / "image.rgb",
            max_pixels=settings.max_picture_pixels,
            timeout_s=settings.step_timeout_s,
            job=document.key,
        )
        return image.pixels, 1.0
    if isinstance(document, VideoDocument) and key[1] is not None:
        return await _frame(services, document, key[1], folder), 1.0
    raise WorkerError("no_picture", f"there is no picture of a {document.kind}")


def _px_per_pt(read: ReadDocument, number: int) -> float:
    size = next((page.size for page in read.reading.pages if page.number == number), None)
    if size is None or size[0] * size[1] <= 0:
        return PX_PER_PT
    return min(PX_PER_PT, float((MAX_PAGE_PIXELS / (size[0] * size[1])) ** 0.5))


async def _frame(services: Services, document: VideoDocument, time_s: float, folder: Path) -> PixelFile:
    frames = read_frames(
        services.decoders,
        document.stored.path,
        document.facts,
        [time_s],
        folder,
        timeout_s=services.settings.step_timeout_s,
        job=document.key,
        keep=True,
    )
    async for frame in frames:
        if isinstance(frame, VideoFrame):
            return frame.pixels
        raise WorkerError("frame_lost", frame.reason)
    raise WorkerError("frame_lost", f"there is no frame at {time_s:.2f} s")
