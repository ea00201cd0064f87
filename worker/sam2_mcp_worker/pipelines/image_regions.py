"""Regions of one image, settled from the top down while its tiles are read, cut to masks, and drawn when all are there.

Owns when a region can no longer change, and its number. Which of them go into which call's result is region_delivery's
business; where they come from, read_picture's.

A region is settled when its lower edge lies above every tile that is not read yet: no tile to come can add to it.
Regions are numbered in the order in which they are settled, which is that of their lower edges.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import INSPECTED
from sam2_mcp_worker.cursors import number_ranges
from sam2_mcp_worker.engines.ports import Box, Region
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.region_seams import EDGE_PX
from sam2_mcp_worker.pipelines.bands import settled_until_px
from sam2_mcp_worker.pipelines.picture_job import PictureJob
from sam2_mcp_worker.pipelines.region_delivery import Place
from sam2_mcp_worker.pipelines.region_masks import RegionMasks
from sam2_mcp_worker.result_cache import cache_key

# A region of the last tile read and one of the next are taken for the same object when they nearly touch: what ends
# less than this above an unread tile may still grow.
SEAM_PX = 2 * EDGE_PX
# Everything read so far is put together at each step: 0.7 s of a core for 250 tiles. Steps grow with it, so that all of
# them cost five times the last one.
STEP_SHARE = 0.25
# How many boxes are cut before they are there to be delivered: in a huge picture each may take seconds.
CUT_AT_ONCE = 4
# Longer lists of numbers behind a label would push the other labels off the legend.
LEGEND_NUMBERS_CHARS = 24

logger = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class FoundRegion:
    """A settled region. `cut` is its mask as JSON, or `{"reason": why the box stays}`."""

    number: int
    place: Place
    region: Region
    cut: dict[str, Any]


@dataclass(slots=True)
class ImageRegions:
    """All regions of one picture that are settled, down to `settled_px`; grows while the job runs.

    `again` says that another run may cut more of them; `overlay` is the handle of the picture of all.
    """

    picture: PictureJob
    found: list[FoundRegion] = field(default_factory=list)
    settled_px: int = 0
    again: bool = False
    overlay: str | None = None

    @property
    def settled(self) -> bool:
        """Whether nothing will be added."""
        return self.settled_px >= self.picture.image.height_px

    async def settle(self, job: Job, pixels: PixelFile, folder: Path) -> None:
        """Follow the reading of the tiles to its end, then draw."""
        picture, height = self.picture, self.picture.image.height_px
        masks = RegionMasks(picture.services, picture.stored, picture.image, pixels, folder, picture.key)
        tiles_before = 0
        while not self.settled:
            changed = job.coverage.changed
            until = settled_until_px(picture.tiles, job.coverage.unreached, height)
            until = until if until == height else until - SEAM_PX
            news = job.coverage.settled - tiles_before
            if until <= self.settled_px or (until < height and news < STEP_SHARE * tiles_before):
                await changed.wait()
                continue
            tiles_before += news
            await self._settle_until(until, job, masks)
        self.again = masks.again
        if self.found:
            self.overlay = await self._draw(pixels, folder)

    async def _settle_until(self, until_px: int, job: Job, masks: RegionMasks) -> None:
        merged = await self.picture.merged(job.coverage)
        known = {_same(one.region) for one in self.found}
        # A dictionary, since one tile may see the same thing twice.
        band = {_same(region): region for region in merged.regions if region.box_xyxy_px[3] <= until_px}
        new = [(self._place(region), region) for same, region in band.items() if same not in known]
        placed = sorted(new, key=lambda pair: pair[0])
        for start in range(0, len(placed), CUT_AT_ONCE):
            some = placed[start : start + CUT_AT_ONCE]
            cuts = await masks.cut([region.box_xyxy_px for _, region in some])
            first = len(self.found) + 1
            self.found += [
                FoundRegion(number, place, region, cut)
                for number, ((place, region), cut) in enumerate(zip(some, cuts, strict=True), start=first)
            ]
        self.settled_px = until_px

    def _place(self, region: Region) -> Place:
        x0, y0, x1, y1 = region.box_xyxy_px
        # Never before what is settled, whatever the tiles to come made of it: it would be passed over.
        lower = max(y1, self.settled_px + 1)
        return lower, x0, y0, x1, self.picture.choice.labels.index(region.label)

    async def _draw(self, pixels: PixelFile, folder: Path) -> str | None:
        """The overlay's handle; None when only the drawing failed."""
        services, key = self.picture.services, self.picture.key
        objects = [self._drawn(found) for found in self.found]
        kept_as = cache_key("region_overlay", self.picture.stored.sha256, objects, self._legend())
        kept = await asyncio.to_thread(services.cache.get, kept_as)
        if kept is not None and await asyncio.to_thread(services.artifacts.holds, kept["overlay"]):
            return str(kept["overlay"])
        out_path = folder / "regions.jpg"
        params = {"pixels": pixels.to_params(), "objects": objects, "legend": self._legend(), "out_path": str(out_path)}

        def store() -> str:
            handle = services.artifacts.adopt(
                out_path,
                name="regions.jpg",
                mime_type="image/jpeg",
                facts={INSPECTED: self.picture.stored.handle},
            ).handle
            services.cache.put(kept_as, {"overlay": handle})
            return handle

        try:
            await services.decoders.run(
                "draw_mask_overlay", params, timeout_s=services.settings.step_timeout_s, job=key
            )
            return await asyncio.to_thread(store)
        except (WorkerError, OSError) as error:
            # The regions are there; a missing picture must not cost them.
            logger.warning("overlay of regions not drawn: %s", getattr(error, "code", type(error).__name__))
            return None

    def _drawn(self, found: FoundRegion) -> dict[str, Any]:
        return {
            "number": found.number,
            "group": found.place[-1] + 1,
            "counts": found.cut.get("counts"),
            "box": list(found.region.box_xyxy_px),
            "points": [],
        }

    def _legend(self) -> list[str]:
        return [_legend_words(label, self.found) for label in self.picture.choice.labels]


def _same(region: Region) -> tuple[str, Box]:
    return region.label, region.box_xyxy_px


def _legend_words(label: str, found: Sequence[FoundRegion]) -> str:
    numbers = number_ranges([one.number for one in found if one.region.label == label])
    if len(numbers) > LEGEND_NUMBERS_CHARS:
        numbers = numbers[: LEGEND_NUMBERS_CHARS - 3].rpartition(",")[0] + ",..."
    return f"{label}: {numbers.replace(',', ', ')}"
