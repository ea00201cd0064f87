"""What people and other programs get of a segmentation: the picture with its regions, and all masks as COCO JSON."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.ports import ObjectPrompt
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.image_facts import ImageFacts
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

COCO_KIND = "masks"
"""`Artifact.facts["kind"]` of all masks of a picture in one COCO document."""

logger = logging.getLogger(__name__)


async def draw_overlay(
    services: Services,
    pixels: PixelFile,
    prompts: Sequence[ObjectPrompt],
    masks: Mapping[int, Mapping[str, Any]],
    folder: Path,
    job: str,
) -> str | None:
    """Draw the objects on their picture and store it; returns its handle, or None when only the drawing failed.

    Args:
        masks: by object number, from 1.
    """
    out_path = folder / "overlay.jpg"
    objects = [
        {"number": number, "counts": masks[number]["counts"], **prompts[number - 1].to_params()}
        for number in sorted(masks)
    ]
    params = {"pixels": pixels.to_params(), "objects": objects, "out_path": str(out_path)}

    def store() -> str:
        return services.artifacts.adopt(out_path, name="objects.jpg", mime_type="image/jpeg").handle

    try:
        await services.decoders.run("draw_mask_overlay", params, timeout_s=services.settings.step_timeout_s, job=job)
        return await asyncio.to_thread(store)
    except (WorkerError, OSError) as error:
        # The masks are there; a missing picture must not cost them.
        logger.warning("overlay of masks not drawn: %s", getattr(error, "code", type(error).__name__))
        return None


def coco_document(stored: StoredFile, image: ImageFacts, masks: Mapping[int, Mapping[str, Any]]) -> bytes:
    """All objects with a mask as one COCO data set; annotation ids are the object numbers, runs are exact."""
    size = [image.height_px, image.width_px]
    annotations = [
        {
            "id": number,
            "image_id": 1,
            "category_id": 1,
            "iscrowd": 0,
            "bbox": _xywh(mask["box_xyxy_px"]),
            "area": mask["area_px"],
            "segmentation": {"size": size, "counts": mask["counts"]},
            "predicted_iou": mask["predicted_iou"],
            "stability_score": mask["stability"],
        }
        for number, mask in sorted(masks.items())
        if mask["box_xyxy_px"] is not None
    ]
    document = {
        "images": [{"id": 1, "width": image.width_px, "height": image.height_px, "file_name": stored.name}],
        "categories": [{"id": 1, "name": "object"}],
        "annotations": annotations,
    }
    return json.dumps(document, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")


def _xywh(box: Sequence[int]) -> list[int]:
    x0, y0, x1, y1 = box
    return [x0, y0, x1 - x0, y1 - y0]
