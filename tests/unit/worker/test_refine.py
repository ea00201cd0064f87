"""Refinement: an object in a box becomes its mask; on nothing, or on half of something, the box stays and says why."""

from __future__ import annotations

import asyncio
import dataclasses
import os
import signal
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image
from tests.conftest import RunningWorker
from tests.e2e.segmenting import on_loop
from tests.fakes.shapes import iou, scene

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.engines.ports import Box, ObjectMask
from sam2_mcp_worker.media.masks import load_mask
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.pipelines.refine import (
    MAX_GAP_SHARE,
    MAX_OVERHANG_SHARE,
    MIN_AREA_SHARE,
    MIN_PREDICTED_IOU,
    MIN_STABILITY,
    judged,
    refine,
)

BOX: Box = (100, 100, 200, 200)
GOOD = ObjectMask((110, 105, 190, 195), Path("mask.png"), 6000, 0.99, 0.99, False, (), 1.0)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"box_xyxy_px": None, "area_px": 0}, "nothing was found"),
        ({"box_xyxy_px": (130, 100, 200, 200)}, "30% of the box free"),
        ({"box_xyxy_px": (100, 100, 200, 170)}, "30% of the box free"),
        ({"box_xyxy_px": (80, 100, 200, 200)}, "20% beyond the box"),
        ({"area_px": 1000}, "fills 10% of the box"),
        ({"stability": 0.94}, "stability 0.94"),
        ({"predicted_iou": 0.8}, "predicted IoU 0.80"),
    ],
)
def test_a_mask_that_does_not_fit_leaves_the_box_and_says_why(changes: dict[str, object], said: str) -> None:
    refined = judged(BOX, dataclasses.replace(GOOD, **changes))  # type: ignore[arg-type]
    assert refined.mask is None
    assert refined.box_xyxy_px == BOX
    assert refined.reason is not None and said in refined.reason


def test_a_mask_that_fits_is_taken() -> None:
    refined = judged(BOX, GOOD)
    assert refined.mask == GOOD
    assert refined.reason is None


corner = st.integers(60, 240)


@given(corner, corner, corner, corner, st.integers(1, 20_000), st.floats(0, 1.1), st.floats(0, 1))
def test_what_is_taken_keeps_all_limits(
    x0: int, y0: int, x1: int, y1: int, area: int, predicted: float, stability: float
) -> None:
    found = (min(x0, x1), min(y0, y1), max(x0, x1) + 1, max(y0, y1) + 1)
    mask = dataclasses.replace(GOOD, box_xyxy_px=found, area_px=area, predicted_iou=predicted, stability=stability)
    fits = (
        all(abs_gap <= 100 * MAX_GAP_SHARE + 1e-9 for abs_gap in (found[0] - 100, found[1] - 100))
        and all(abs_gap <= 100 * MAX_GAP_SHARE + 1e-9 for abs_gap in (200 - found[2], 200 - found[3]))
        and min(found[0] - 100, found[1] - 100, 200 - found[2], 200 - found[3]) >= -100 * MAX_OVERHANG_SHARE - 1e-9
        and area / 10_000 >= MIN_AREA_SHARE
        and stability >= MIN_STABILITY
        and predicted >= MIN_PREDICTED_IOU
    )
    assert (judged(BOX, mask).mask is not None) is fits


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    (tmp_path / "masks").mkdir()
    yield tmp_path


async def test_loose_boxes_become_masks_and_boxes_on_nothing_stay(
    segmenting_worker: RunningWorker, folder: Path
) -> None:
    drawn = scene()
    path = folder / "picture.rgb"
    path.write_bytes(np.asarray(drawn.picture).tobytes())
    pixels = PixelFile(path, *drawn.picture.size)
    loose = [
        (max(0, x0 - (x1 - x0) // 5), max(0, y0 - (y1 - y0) // 5), x1 + (x1 - x0) // 5, min(240, y1 + (y1 - y0) // 5))
        for x0, y0, x1, y1 in drawn.boxes
    ]
    nothing: list[Box] = [(120, 10, 170, 60), (250, 140, 310, 230)]
    services = segmenting_worker.services
    refined = await on_loop(
        segmenting_worker,
        refine(
            services,
            pixels,
            "shapes",
            [*loose, *nothing],
            mask_dir=folder / "masks",
            job="t",
            deadline=Deadline.after(60),
        ),
    )
    for one, truth in zip(refined[:3], drawn.truths, strict=True):
        assert one.mask is not None and one.mask.mask_path is not None
        x0, y0, x1, y1 = one.mask.box_xyxy_px
        whole = np.zeros_like(truth)
        whole[y0:y1, x0:x1] = load_mask(one.mask.mask_path)
        assert iou(whole, truth) > 0.95
    assert [one.mask for one in refined[3:]] == [None, None]
    assert all(one.reason for one in refined[3:])


async def test_without_time_or_engine_every_box_stays_and_says_so(
    segmenting_worker: RunningWorker, worker: RunningWorker, folder: Path
) -> None:
    path = folder / "picture.rgb"
    path.write_bytes(np.asarray(Image.new("RGB", (300, 300))).tobytes())
    pixels = PixelFile(path, 300, 300)
    for running, deadline, said in (
        (segmenting_worker, Deadline.after(-1), "no time"),
        (worker, Deadline.after(60), "not_available"),
    ):
        coroutine = refine(
            running.services, pixels, "x", [BOX] * 5, mask_dir=folder / "masks", job="t", deadline=deadline
        )
        refined = await on_loop(running, coroutine)
        assert [one.box_xyxy_px for one in refined] == [BOX] * 5
        assert all(one.mask is None and one.reason is not None and said in one.reason for one in refined)


async def test_a_picture_that_is_gone_leaves_the_boxes(segmenting_worker: RunningWorker, folder: Path) -> None:
    coroutine = refine(
        segmenting_worker.services,
        PixelFile(folder / "absent.rgb", 300, 300),
        "absent",
        [BOX],
        mask_dir=folder / "masks",
        job="t",
        deadline=Deadline.after(60),
    )
    (refined,) = await on_loop(segmenting_worker, coroutine)
    assert refined.mask is None
    assert refined.reason is not None and refined.reason.startswith("pixels_unreadable")


async def test_a_network_that_is_busy_until_the_deadline_leaves_the_boxes_in_time(
    segmenting_worker: RunningWorker, folder: Path
) -> None:
    path = folder / "picture.rgb"
    path.write_bytes(np.asarray(Image.new("RGB", (300, 300))).tobytes())
    pool = segmenting_worker.services.sam_pool
    assert pool is not None
    child = pool.stats().children[0].pid
    assert child is not None
    os.kill(child, signal.SIGSTOP)
    try:
        coroutine = refine(
            segmenting_worker.services,
            PixelFile(path, 300, 300),
            "busy",
            [BOX] * 5,
            mask_dir=folder / "masks",
            job="t",
            deadline=Deadline.after(0.5),
        )
        refined = await asyncio.wait_for(on_loop(segmenting_worker, coroutine), 10)
    finally:
        os.kill(child, signal.SIGCONT)
    assert len(refined) == 5
    assert all(one.mask is None and one.reason is not None and "no time" in one.reason for one in refined)
