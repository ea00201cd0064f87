"""Regions settle from the top down, each once and numbered alike in whatever order the tiles are read."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pytest
from tests.conftest import RunningWorker
from tests.e2e.segmenting import on_loop
from tests.fakes.shapes import scene

from sam2_mcp_worker.artifacts import Artifacts
from sam2_mcp_worker.engines.ports import Box, Region, TileReading
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines import region_masks
from sam2_mcp_worker.pipelines.image_facts import ImageFacts
from sam2_mcp_worker.pipelines.image_regions import FoundRegion, ImageRegions, _legend_words
from sam2_mcp_worker.pipelines.picture_job import PictureJob
from sam2_mcp_worker.pipelines.reading_choice import ReadingChoice
from sam2_mcp_worker.pipelines.region_masks import TOO_MANY, RegionMasks
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

WIDTH, HEIGHT = 320, 240
TILES: list[Box] = [(0, 0, 320, 110), (0, 50, 320, 180), (0, 120, 320, 240)]
LABELS = ("coin", "seal")
# A coin high up, a seal that two tiles see whole, one that a seam cuts, and two alike side by side at the foot.
SEEN: list[list[Region]] = [
    [
        Region("coin", (10, 10, 40, 30), 0.9),
        Region("seal", (100, 70, 120, 90), 0.8),
        Region("coin", (200, 60, 260, 110), 0.7),
    ],
    [Region("seal", (101, 70, 121, 90), 0.9), Region("coin", (200, 60, 260, 114), 0.9)],
    [Region("coin", (10, 200, 30, 220), 0.9), Region("coin", (40, 200, 60, 220), 0.9)],
]


def picture_of(services: Services, folder: Path, name: str = "regions") -> PictureJob:
    stored = StoredFile("file_test", f"{name}.png", 1, name, folder / "absent.png")
    choice = ReadingChoice(services.reader, "test", labels=LABELS)
    return PictureJob(services, stored, ImageFacts(WIDTH, HEIGHT, 1), choice, TILES, name)


def pixels_in(folder: Path) -> PixelFile:
    path = folder / "picture.rgb"
    path.write_bytes(np.asarray(scene(WIDTH, HEIGHT).picture).tobytes())
    return PixelFile(path, WIDTH, HEIGHT)


class NextTile(asyncio.Event):
    """Stands in for the coverage's event: whoever waits for a change gets the next tile."""

    def __init__(self, regions: ImageRegions, job: Job, order: Sequence[int]) -> None:
        super().__init__()
        self._regions, self._job, self._order = regions, job, list(order)
        self.counts: list[int] = []
        job.coverage.changed = self

    async def wait(self) -> Literal[True]:
        self.counts.append(len(self._regions.found))
        number = self._order.pop(0)
        self._job.coverage.mark_done(number, TileReading((), (), tuple(SEEN[number - 1])))
        self._job.coverage.changed = self
        return True


async def settled(regions: ImageRegions, pixels: PixelFile, folder: Path, order: Sequence[int]) -> list[int]:
    """Read the tiles in this order; how many regions were settled before each."""
    job = Job("test", (1, 2, 3))
    tiles = NextTile(regions, job, order)
    await regions.settle(job, pixels, folder)
    return tiles.counts


def told(regions: ImageRegions) -> list[tuple[int, str, Box]]:
    return [(one.number, one.region.label, one.region.box_xyxy_px) for one in regions.found]


async def test_whatever_the_order_of_the_tiles_regions_are_the_same_and_none_comes_before_it_can_be_known(
    worker: RunningWorker, tmp_path: Path
) -> None:
    pixels, results = pixels_in(tmp_path), []
    for order in itertools.permutations((1, 2, 3)):
        regions = ImageRegions(picture_of(worker.services, tmp_path))
        counts = await on_loop(worker, settled(regions, pixels, tmp_path, order))
        if order[-1] == 1:
            assert counts == [0, 0, 0], "nothing is settled below a tile that is missing"
        if order == (1, 2, 3):
            assert counts == [0, 1, 2], "what reaches to the next tile waits for it"
        results.append(told(regions))
    assert all(result == results[0] for result in results)
    assert [number for number, _, _ in results[0]] == [1, 2, 3, 4, 5]
    assert [label for _, label, _ in results[0]] == ["coin", "seal", "coin", "coin", "coin"]
    assert results[0][2][2] == (200, 60, 260, 114), "a coin that a seam cuts is one region"
    lower_edges = [box[3] for _, _, box in results[0]]
    assert lower_edges == sorted(lower_edges)


async def test_a_picture_that_cannot_be_drawn_costs_the_overlay_only(worker: RunningWorker, tmp_path: Path) -> None:
    regions = ImageRegions(picture_of(worker.services, tmp_path, "undrawn"))
    await on_loop(worker, settled(regions, pixels_in(tmp_path), tmp_path / "absent", (1, 2, 3)))
    assert len(regions.found) == 5 and regions.settled and regions.overlay is None


async def test_the_overlay_of_the_same_regions_is_drawn_once(worker: RunningWorker, tmp_path: Path) -> None:
    overlays = []
    for _ in range(2):
        regions = ImageRegions(picture_of(worker.services, tmp_path, "drawn"))
        await on_loop(worker, settled(regions, pixels_in(tmp_path), tmp_path, (1, 2, 3)))
        overlays.append(regions.overlay)
    assert overlays[0] is not None and overlays[0] == overlays[1]


def test_the_legend_names_the_numbers_of_each_label_and_stays_short() -> None:
    one = Region("coin", (0, 0, 1, 1), 1.0)
    found = [FoundRegion(number, (1, 1, 1, 1, 0), one, {}) for number in (1, 2, 4)]
    assert _legend_words("coin", found) == "coin: 1-2, 4"
    many = [FoundRegion(number, (1, 1, 1, 1, 0), one, {}) for number in range(1, 80, 2)]
    assert _legend_words("coin", many).endswith(", ...") and len(_legend_words("coin", many)) < 50
    assert _legend_words("seal", found) == "seal: "


class Counting:
    """The real segmenter; `asked` counts the boxes that it was given."""

    def __init__(self, segmenter: Any) -> None:
        self._segmenter = segmenter
        self.asked = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._segmenter, name)

    def masks(self, pixels: PixelFile, key: str, prompts: Sequence[Any], **options: Any) -> Any:
        self.asked += len(prompts)
        return self._segmenter.masks(pixels, key, prompts, **options)


async def test_masks_and_refusals_are_kept_and_more_than_the_limit_stay_boxes(
    segmenting_worker: RunningWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services, pixels, drawn = segmenting_worker.services, pixels_in(tmp_path), scene(WIDTH, HEIGHT)
    picture = picture_of(services, tmp_path, "kept")
    nothing: Box = (120, 10, 170, 60)
    boxes = [*drawn.boxes, nothing]
    counting = Counting(services.segmenter)
    monkeypatch.setattr(services, "segmenter", counting)

    def masks() -> RegionMasks:
        return RegionMasks(services, picture.stored, picture.image, pixels, tmp_path, "t")

    first = masks()
    cuts = await on_loop(segmenting_worker, first.cut(boxes))
    assert [("mask" in cut, "reason" in cut) for cut in cuts] == [*[(True, False)] * 3, (False, True)]
    assert counting.asked == 4 and not first.again
    assert await on_loop(segmenting_worker, masks().cut(boxes)) == cuts
    assert counting.asked == 4, "what is known is not asked again"
    monkeypatch.setattr(region_masks, "MAX_CUT", 2)
    few = await on_loop(segmenting_worker, masks().cut(boxes))
    assert few == [*cuts[:2], {"reason": TOO_MANY}, {"reason": TOO_MANY}]


async def test_a_network_or_a_disk_that_fails_leaves_boxes_that_may_be_tried_again(
    segmenting_worker: RunningWorker, tmp_path: Path
) -> None:
    services = segmenting_worker.services
    picture = picture_of(services, tmp_path, "gone")
    gone = PixelFile(tmp_path / "gone.rgb", WIDTH, HEIGHT)
    masks = RegionMasks(services, picture.stored, picture.image, gone, tmp_path, "t")
    (cut,) = await on_loop(segmenting_worker, masks.cut([(10, 10, 60, 60)]))
    assert cut["reason"].startswith("pixels_unreadable") and masks.again
    kept = picture_of(services, tmp_path, "kept elsewhere")
    masks = RegionMasks(services, kept.stored, kept.image, pixels_in(tmp_path), tmp_path / "absent", "t")
    (cut,) = await on_loop(segmenting_worker, masks.cut([scene(WIDTH, HEIGHT).boxes[0]]))
    assert "mask" not in cut and cut["reason"] and masks.again


async def test_a_mask_that_cannot_be_stored_leaves_its_box(
    segmenting_worker: RunningWorker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    services = segmenting_worker.services
    (tmp_path / "no folder").write_bytes(b"")
    monkeypatch.setattr(services, "artifacts", Artifacts(tmp_path / "no folder", 1.0))
    picture = picture_of(services, tmp_path, "kept")  # known to the network already
    masks = RegionMasks(services, picture.stored, picture.image, pixels_in(tmp_path), tmp_path, "t")
    (cut,) = await on_loop(segmenting_worker, masks.cut([scene(WIDTH, HEIGHT).boxes[1]]))
    assert cut == {"reason": "its mask could not be stored"} and masks.again
