"""segment_image with SAM 2 itself on a real worker. The weights are random: masks mean nothing, but must be the same
whoever asks beside, and cost no memory that is not given back.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.conftest import RunningWorker, serving
from tests.e2e.sam2_worker import with_sam2
from tests.e2e.segmenting import mask_of
from tests.e2e.tools import Agent

pytestmark = pytest.mark.timeout(300)

SIZE_PX = (160, 120)
CALLS, SETTLED = 200, 60
CALLS_A_PICTURE = 5
# What allocators may keep beyond the settled state. An embedding (0.8 MB at 448 px) or a decoded picture with its mask
# (0.1 MB) that is lost in every call would be 110 or 14 MB.
MOST_GROWTH_BYTES = 12 * 2**20


@pytest.fixture(scope="module")
def sam2(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningWorker]:
    """One worker with SAM 2 whose cache is full after a few pictures."""
    yield from serving(with_sam2(tmp_path_factory.mktemp("sam2"), embedding_cache_bytes=4 * 2**20))


def pictures(folder: Path, count: int, *, compress_level: int = 1) -> list[Path]:
    """The same pixels at every level of compression, in files of other content."""
    random = np.random.default_rng(0)
    folder.mkdir(exist_ok=True)
    paths = [folder / f"{number}.png" for number in range(count)]
    for path in paths:
        coarse = Image.fromarray(random.integers(0, 256, (6, 8, 3), np.uint8))
        coarse.resize(SIZE_PX, Image.Resampling.BICUBIC).save(path, compress_level=compress_level)
    return paths


async def test_four_parallel_calls_give_what_four_calls_in_turn_give(sam2: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(sam2)

    async def cut(path: Path, number: int) -> list[dict[str, Any]]:
        marks = {
            "boxes": [[20, 20, 100, 90], [60, 10, 150, 110]],
            "points": [{"object_number": 3, "x_px": 40 + number, "y_px": 60}],
        }
        result = await agent.call("segment_image", source=await agent.upload(path), quality="fast", **marks)
        return list(result["objects"])

    one, other = pictures(tmp_path / "one", 4), pictures(tmp_path / "other", 4, compress_level=9)
    in_parallel = await asyncio.gather(*(cut(path, number) for number, path in enumerate(one)))
    in_turn = [await cut(path, number) for number, path in enumerate(other)]
    drawn = 0
    for beside, alone in zip(chain(*in_parallel), chain(*in_turn), strict=True):
        if not beside.get("blank"):
            assert np.array_equal(mask_of(sam2, beside), mask_of(sam2, alone))
            assert beside.pop("mask") != alone.pop("mask"), "asked twice, cut twice"
            drawn += 1
        assert beside == alone
    assert drawn, "blank masks would be the same whatever went wrong"


async def test_two_hundred_calls_leave_the_memory_as_it_was(sam2: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(sam2)
    handles = [await agent.upload(path) for path in pictures(tmp_path / "many", CALLS // CALLS_A_PICTURE)]
    numbers = iter(range(CALLS))

    async def calls(count: int) -> None:
        for _ in range(count):
            number = next(numbers)
            box = [5 + number % 40, 5, 80 + number % 70, 100]
            handle = handles[number // CALLS_A_PICTURE]
            found = await agent.call("segment_image", source=handle, boxes=[box], quality="fast")
            assert found["coverage"]["done"] == 1

    async def resident_after(count: int) -> dict[int | None, int]:
        await asyncio.gather(*(calls(count // 4) for _ in range(4)))
        assert sam2.services.sam_pool is not None
        pools = (sam2.services.sam_pool, sam2.services.decoders)
        return {child.pid: child.rss_bytes for pool in pools for child in pool.stats().children}

    settled = await resident_after(SETTLED)
    after = await resident_after(CALLS - SETTLED)
    assert next(numbers, None) is None
    assert after.keys() == settled.keys(), "no child was replaced"
    growth = {pid: after[pid] - settled[pid] for pid in settled}
    assert max(growth.values()) < MOST_GROWTH_BYTES, growth
