"""The overlay picture of a page as an artifact: boxes of lines, then regions, then unread ink, numbered on."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import anyio

from sam2_mcp_worker.artifacts import INSPECTED
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.boxes import rounded_out, scaled
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.services import Services

OVERLAY_MAX_SIDE_PX = 1600
# The report holds one picture a page; 120 pages at this size make a file that a browser still opens at once.
OVERLAY_MAX_BYTES = 250_000
# A landing page is drawn as several columns side by side: at 250 KB its fine print would no longer be legible.
TALL_OVERLAY_MAX_BYTES = 700_000
TALL_ASPECT = 2.5

logger = logging.getLogger(__name__)


async def draw_page_overlay(
    services: Services,
    pixels: PixelFile,
    result: dict[str, Any],
    px_per_pt: float,
    workdir: Path,
    job: str,
    *,
    inspected: str,
) -> str | None:
    """Draw the overlay and store it; returns its handle, or None when only the drawing failed.

    `inspected` is the handle of the file that the page is of.
    """
    boxes = [
        _box(kind, number, box, px_per_pt)
        for number, (kind, box) in enumerate(
            [
                *((line["source"], line["box_xyxy_pt"]) for line in result["lines"]),
                *(("region", region["box_xyxy_pt"]) for region in result["regions"] or ()),
                *(("ink", box) for box in result["undetected_ink"]),
            ],
            start=1,
        )
    ]
    out_path = workdir / "overlay.jpg"
    params = {
        "pixels": pixels.to_params(),
        "boxes": boxes,
        "out_path": str(out_path),
        "max_side_px": OVERLAY_MAX_SIDE_PX,
        "max_bytes": TALL_OVERLAY_MAX_BYTES if _is_tall(pixels) else OVERLAY_MAX_BYTES,
    }
    name = f"page-{result['page_number']}.jpg"

    def store() -> str:
        facts = {INSPECTED: inspected}
        return services.artifacts.put(out_path.read_bytes(), name=name, mime_type="image/jpeg", facts=facts).handle

    try:
        await services.decoders.run("draw_overlay", params, timeout_s=services.settings.step_timeout_s, job=job)
        return await anyio.to_thread.run_sync(store)
    except (WorkerError, OSError) as error:
        # The page was read; a missing picture must not turn it into a failed page.
        logger.warning("overlay not drawn: %s", getattr(error, "code", type(error).__name__))
        return None


def _box(kind: str, number: int, box_xyxy_pt: Sequence[float], px_per_pt: float) -> dict[str, Any]:
    return {"box": list(rounded_out(scaled(box_xyxy_pt, px_per_pt))), "kind": kind, "number": number}


def _is_tall(pixels: PixelFile) -> bool:
    return max(pixels.width_px, pixels.height_px) > TALL_ASPECT * min(pixels.width_px, pixels.height_px)
