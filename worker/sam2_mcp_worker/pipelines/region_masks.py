"""Regions of one picture cut to masks: what is kept, what is cut anew, and why a box stays a box.

Owns what of a region's mask is remembered. Whether a mask is plausible is refine.py's judgement, what its files are
picture_masks.py's.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box, ObjectPrompt, Quality
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import JOB_LIMIT_S
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.image_facts import ImageFacts
from sam2_mcp_worker.pipelines.picture_masks import PictureMasks
from sam2_mcp_worker.pipelines.refine import Refined, refine
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

# As segment_image takes in one call: about 10 s of two cores beside the picture's embedding. A pattern of a thousand
# coins is found, but nobody needs the outline of each.
MAX_CUT = 100
TOO_MANY = f"only the first {MAX_CUT} regions of a picture are cut out"
QUALITY: Quality = "accurate"


class RegionMasks:
    """Cuts the regions of one decoded picture, at most `MAX_CUT` of them.

    A cut is JSON: the mask as `PictureMasks` keeps it, or `{"reason": why the box stays}`. `again` says that another
    try may cut more: the network failed, or its files could not be written.
    """

    def __init__(
        self, services: Services, stored: StoredFile, image: ImageFacts, pixels: PixelFile, folder: Path, job: str
    ) -> None:
        self._services = services
        self._stored = stored
        self._pixels = pixels
        self._folder = folder
        self._job = job
        self._count = 0
        self.again = False
        segmenter = services.segmenter
        self._masks = PictureMasks(services, segmenter, stored, image, QUALITY, job) if segmenter else None

    async def cut(self, boxes: Sequence[Box]) -> list[dict[str, Any]]:
        """What became of each box, in order. Nothing is raised: what cannot be cut stays a box."""
        if self._masks is None:
            missing = self._services.segmenter_missing
            reason = missing.reason if missing else "no engine for masks is there"
            return [{"reason": reason} for _ in boxes]
        allowed = boxes[: max(0, MAX_CUT - self._count)]
        first, self._count = self._count, self._count + len(boxes)
        cuts = [await asyncio.to_thread(self._kept, box) for box in allowed]
        todo = [index for index, cut in enumerate(cuts) if cut is None]
        if todo:
            fresh = await self._cut_anew([allowed[index] for index in todo], first)
            for index, cut in zip(todo, fresh, strict=True):
                cuts[index] = cut
        return [*(cut or {} for cut in cuts), *({"reason": TOO_MANY} for _ in boxes[len(allowed) :])]

    async def _cut_anew(self, boxes: Sequence[Box], first: int) -> list[dict[str, Any]]:
        refined = await refine(
            self._services,
            self._pixels,
            self._stored.sha256,
            boxes,
            mask_dir=self._folder,
            job=self._job,
            deadline=Deadline.after(JOB_LIMIT_S),
            quality=QUALITY,
        )
        return await asyncio.gather(*(self._store(first + n, one) for n, one in enumerate(refined)))

    def _kept(self, box: Box) -> dict[str, Any] | None:
        """What an earlier call made of the box, if its files are still there."""
        kept = self._services.cache.get(self._key(box))
        if kept is not None and "reason" in kept:
            return dict(kept)
        assert self._masks is not None
        return self._masks.kept(ObjectPrompt(box)) if kept is not None else None

    async def _store(self, number: int, refined: Refined) -> dict[str, Any]:
        if refined.mask is None:
            cut: dict[str, Any] = {"reason": refined.reason or "it was not cut"}
            self.again |= not refined.judged
            if refined.judged:
                await asyncio.to_thread(self._services.cache.put, self._key(refined.box_xyxy_px), cut)
            return cut
        assert self._masks is not None
        try:
            mask = await self._masks.keep(number, ObjectPrompt(refined.box_xyxy_px), refined.mask, self._folder)
        except (WorkerError, OSError) as error:
            self.again = True
            return {"reason": error.reason if isinstance(error, WorkerError) else "its mask could not be stored"}
        await asyncio.to_thread(self._services.cache.put, self._key(refined.box_xyxy_px), {"plausible": True})
        return mask

    def _key(self, box: Box) -> str:
        assert self._services.segmenter is not None
        return cache_key("region_mask", self._stored.sha256, self._services.segmenter.identity, QUALITY, list(box))
