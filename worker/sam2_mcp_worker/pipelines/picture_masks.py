"""The masks of one picture: cut in chunks, stored as PNG artifacts, and kept under everything that decides them.

Owns what of a mask is kept, so that a repeated prompt costs nothing. Which prompts there are and what of the masks is
delivered when is segment_image's business.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt, Quality, Segmenter
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.image_facts import ImageFacts
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

# A star, a person or a bottle keep their outline with these; about 450 characters of a result for one object. Exact
# masks are in the artifacts.
MAX_VERTICES = 40
# A mask of 172 MP costs 3.7 s of a core to cut and 4.4 s to write; on a busy machine four times as long.
MASK_PX_PER_S = 10e6
MASK_KIND = "mask"
"""`Artifact.facts["kind"]` of a mask: a PNG of the whole picture, white (255 when read as 8-bit grey) = inside."""


class PictureMasks:
    """Masks of one file at one quality, as JSON.

    A mask has `box_xyxy_px`, `area_px`, `predicted_iou`, `stability`, `touches_border`, `polygons`, `tolerance_px`,
    `counts` (COCO's compressed run lengths) and `mask` (handle of its PNG); one that is blank has `box_xyxy_px` None,
    `counts` None and `mask` None.
    """

    def __init__(
        self,
        services: Services,
        segmenter: Segmenter,
        stored: StoredFile,
        image: ImageFacts,
        quality: Quality,
        job: str,
    ) -> None:
        self._services = services
        self._segmenter = segmenter
        self._stored = stored
        self._size = (image.width_px, image.height_px)
        self._quality = quality
        self._job = job
        # The largest mask is as large as the picture.
        self._timeout_s = services.settings.step_timeout_s + image.width_px * image.height_px / MASK_PX_PER_S

    def kept(self, prompt: ObjectPrompt) -> dict[str, Any] | None:
        """The mask of an earlier call, if its PNG is still there. Reads files."""
        mask = self._services.cache.get(self._key(prompt))
        if mask is None or not (mask["mask"] is None or self._services.artifacts.holds(mask["mask"])):
            return None
        return dict(mask)

    async def encode(self, pixels: PixelFile) -> None:
        """Embed the picture, a step of its own.

        Raises:
            WorkerError: the engine failed, crashed or ran out of time.
        """
        await self._segmenter.encode(
            pixels, self._stored.sha256, quality=self._quality, job=self._job, timeout_s=self._timeout_s
        )

    async def cut(
        self, pixels: PixelFile, numbers: Sequence[int], prompts: Sequence[ObjectPrompt], folder: Path
    ) -> list[dict[str, Any]]:
        """The masks of one chunk of prompts, in order; `numbers` name their files.

        Raises:
            WorkerError: as `encode`, or a mask could not be stored.
        """
        found = await self._segmenter.masks(
            pixels,
            self._stored.sha256,
            prompts,
            quality=self._quality,
            mask_dir=folder,
            job=self._job,
            timeout_s=self._timeout_s,
        )
        parts = zip(numbers, prompts, found, strict=True)
        return await asyncio.gather(*(self.keep(*part, folder) for part in parts))

    async def keep(self, number: int, prompt: ObjectPrompt, found: ObjectMask, folder: Path) -> dict[str, Any]:
        """One mask that the engine gave, as JSON; its PNG is an artifact then.

        Raises:
            WorkerError: it could not be written.
        """
        mask: dict[str, Any] = {
            "box_xyxy_px": found.box_xyxy_px and list(found.box_xyxy_px),
            "area_px": found.area_px,
            "predicted_iou": found.predicted_iou,
            "stability": found.stability,
            "touches_border": found.touches_border,
            "polygons": [],
            "tolerance_px": 0.0,
            "counts": None,
            "mask": None,
        }
        path = folder / f"object-{number}.png"
        if not found.blank:
            params = {
                "mask_path": str(found.mask_path),
                "box": mask["box_xyxy_px"],
                "size": list(self._size),
                "out_path": str(path),
                "max_vertices": MAX_VERTICES,
            }
            mask |= await self._services.decoders.run("mask_files", params, timeout_s=self._timeout_s, job=self._job)
        return await asyncio.to_thread(self._store, prompt, mask, path)

    def _store(self, prompt: ObjectPrompt, mask: dict[str, Any], path: Path) -> dict[str, Any]:
        """In one go and in a thread, so that a call that is cancelled leaves no artifact that nobody knows."""
        if mask["box_xyxy_px"] is not None:
            facts = {
                "kind": MASK_KIND,
                "width_px": self._size[0],
                "height_px": self._size[1],
                "box_xyxy_px": mask["box_xyxy_px"],
                "source_sha256": self._stored.sha256,
            }
            artifact = self._services.artifacts.adopt(path, name=path.name, mime_type="image/png", facts=facts)
            mask["mask"] = artifact.handle
        self._services.cache.put(self._key(prompt), mask)
        return mask

    def _key(self, prompt: ObjectPrompt) -> str:
        return cache_key(
            "picture_mask",
            self._stored.sha256,
            self._segmenter.identity,
            self._quality,
            MAX_VERTICES,
            prompt.to_params(),
        )
