"""The segmenter over its real child process: order, parallel calls, a killed child, cancelled callers, bad set-up."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

import anyio
import numpy as np
import pytest
from numpy.typing import NDArray
from skimage import data
from tests.fakes.onnx_pairs import tiny_pair
from tests.models import DECODER_SHA256, ENCODER_SHA256, OnnxPair

from sam2_mcp_worker.engines.ports import ObjectMask, ObjectPrompt
from sam2_mcp_worker.engines.segmenter import (
    CHILD_MODULE,
    SamSegmenter,
    child_config,
    child_env,
    segmenter_identity,
    usable_cores,
)
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.masks import load_mask
from sam2_mcp_worker.media.pixels import PixelFile

STEP_S = 60.0
BOX = ObjectPrompt((0, 0, 8, 8))
COMPARED = ("box_xyxy_px", "area_px", "predicted_iou", "stability", "polygons")
NOTHING = ObjectPrompt((0, 0, 8, 8), ((1, 1, False),))


def make_pool(weights: dict[str, Any], data_dir: Path, *, engine: str = "onnx", **env: str) -> ChildPool:
    return ChildPool(
        "sam",
        CHILD_MODULE,
        size=1,
        config=child_config(
            engine, weights, threads=2, embedding_cache_bytes=64 * 2**20, track_memory_bytes=64 * 2**20
        ),
        memory_limit_bytes=0,
        env={**child_env(data_dir), **env},
        recycle_growth_bytes=None,
    )


@pytest.fixture
async def pool(tmp_path: Path) -> AsyncIterator[ChildPool]:
    async with make_pool(tiny_pair(tmp_path).weights(), tmp_path) as pool:
        yield pool


@pytest.fixture
def segmenter(pool: ChildPool) -> SamSegmenter:
    return SamSegmenter(pool, identity="tiny")


def write(path: Path, rgb: NDArray[np.uint8]) -> PixelFile:
    path.write_bytes(np.ascontiguousarray(rgb).tobytes())
    return PixelFile(path, rgb.shape[1], rgb.shape[0])


@pytest.fixture
def half_bright(tmp_path: Path) -> PixelFile:
    rgb = np.zeros((48, 64, 3), np.uint8)
    rgb[:, 32:] = 255
    return write(tmp_path / "half.rgb", rgb)


async def eventually(condition: Callable[[], bool]) -> None:
    """Wait for a state that another process brings about."""
    with anyio.fail_after(30):
        while not condition():
            await anyio.sleep(0.01)


async def test_results_stand_in_the_order_of_the_prompts_with_blank_ones_in_their_place(
    segmenter: SamSegmenter, half_bright: PixelFile, tmp_path: Path
) -> None:
    await segmenter.encode(half_bright, "k", quality="fast", job="j", timeout_s=STEP_S)
    found = await segmenter.masks(
        half_bright, "k", [NOTHING, BOX, NOTHING, BOX], quality="fast", mask_dir=tmp_path, job="j", timeout_s=STEP_S
    )
    assert [mask.blank for mask in found] == [True, False, True, False]
    assert found[1].box_xyxy_px == (32, 0, 64, 48)
    assert segmenter.identity == "tiny"


async def test_no_prompts_are_no_masks(segmenter: SamSegmenter, half_bright: PixelFile, tmp_path: Path) -> None:
    assert not await segmenter.masks(half_bright, "k", [], quality="fast", mask_dir=tmp_path, job="j", timeout_s=STEP_S)


async def test_a_killed_child_is_replaced_and_what_it_knew_is_made_again(
    pool: ChildPool, segmenter: SamSegmenter, half_bright: PixelFile, tmp_path: Path
) -> None:
    await segmenter.encode(half_bright, "k", quality="fast", job="j", timeout_s=STEP_S)
    pid = pool.stats().children[0].pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    await eventually(lambda: pool.stats().restarts == 1)
    [mask] = await segmenter.masks(
        half_bright, "k", [BOX], quality="fast", mask_dir=tmp_path, job="j", timeout_s=STEP_S
    )
    assert mask.box_xyxy_px == (32, 0, 64, 48)
    assert pool.stats().children[0].pid not in (None, pid)


async def test_objects_larger_than_their_window_come_back_whole_and_small_ones_sharp(
    segmenter: SamSegmenter, tmp_path: Path
) -> None:
    rgb = np.zeros((1200, 9000, 3), np.uint8)
    rgb[:, 3000:5000] = 255
    rgb[400:656, 8000:8256] = 255
    pixels = write(tmp_path / "huge.rgb", rgb)
    prompts = [ObjectPrompt(None, ((4000, 600, True),)), ObjectPrompt((7990, 390, 8270, 670)), NOTHING]
    large, small, nothing = await segmenter.masks(
        pixels, "huge", prompts, quality="fast", mask_dir=tmp_path, job="j", timeout_s=STEP_S
    )
    assert large.box_xyxy_px is not None
    assert np.abs(np.array(large.box_xyxy_px) - (3000, 0, 5000, 1200)).max() <= 64
    assert small.box_xyxy_px is not None
    assert np.abs(np.array(small.box_xyxy_px) - (8000, 400, 8256, 656)).max() <= 64
    assert nothing.blank


@pytest.fixture
def coins(tmp_path: Path) -> PixelFile:
    return write(tmp_path / "coins.rgb", np.repeat(data.coins()[:, :, None], 3, axis=2))


def facts(mask: ObjectMask) -> tuple[Any, ...]:
    """All of a mask, pixels included, but the name of its file."""
    assert mask.mask_path is not None
    return (*(getattr(mask, name) for name in COMPARED), load_mask(mask.mask_path).tobytes())


async def test_parallel_calls_agree_with_serial_ones_and_a_cancelled_one_loses_nothing(
    onnx_pair: OnnxPair, coins: PixelFile, tmp_path: Path
) -> None:
    """On the real network, with one embedding in all: whoever is cancelled, and whoever else asks for it, shares it."""
    weights = {
        "encoder": str(onnx_pair.encoder),
        "encoder_sha256": ENCODER_SHA256,
        "decoder": str(onnx_pair.decoder),
        "decoder_sha256": DECODER_SHA256,
    }
    calls = [
        [ObjectPrompt((22, 34, 66, 74)), ObjectPrompt((133, 30, 175, 74))],
        [ObjectPrompt((195, 30, 236, 70))],
        [ObjectPrompt(None, ((280, 53, True),)), ObjectPrompt((305, 15, 366, 74))],
        [ObjectPrompt((84, 42, 120, 74), ((101, 57, True),))],
    ]
    async with make_pool(weights, tmp_path) as pool:
        segmenter = SamSegmenter(pool, identity="mobile-sam")

        async def cut(number: int, folder: str) -> list[ObjectMask]:
            place = tmp_path / folder
            place.mkdir(exist_ok=True)
            return await segmenter.masks(
                coins, "c", calls[number], quality="fast", mask_dir=place, job=str(number), timeout_s=STEP_S
            )

        cancelled = asyncio.create_task(segmenter.encode(coins, "c", quality="fast", job="j", timeout_s=STEP_S))
        await eventually(lambda: pool.stats().busy == 1)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        parallel = await asyncio.gather(*(cut(number, "parallel") for number in range(4)))
        serial = [await cut(number, "serial") for number in range(4)]
        again = await pool.run(
            "encode", {"pixels": coins.to_params(), "content_key": "c", "quality": "fast"}, timeout_s=STEP_S, job="j"
        )
        stats = pool.stats()
    assert [list(map(facts, masks)) for masks in parallel] == [list(map(facts, masks)) for masks in serial]
    assert again == {"cached": True}
    assert stats.restarts == 0


async def start_error(weights: dict[str, Any], data_dir: Path, **options: str) -> WorkerError:
    pool = make_pool(weights, data_dir, **options)
    try:
        with pytest.raises(WorkerError) as refused:
            await pool.start()
    finally:
        await pool.close()
    return refused.value


async def test_files_that_are_missing_or_wrong_are_said_when_the_child_starts(tmp_path: Path) -> None:
    weights = tiny_pair(tmp_path).weights()
    wrong = await start_error({**weights, "decoder_sha256": "0" * 64}, tmp_path)
    assert wrong.code == "weights_wrong"
    missing = await start_error({**weights, "encoder": str(tmp_path / "absent.onnx")}, tmp_path)
    assert missing.code == "weights_missing"
    assert "models fetch" in missing.public_text
    mixed = await start_error(
        {**weights, "encoder": weights["decoder"], "encoder_sha256": weights["decoder_sha256"]}, tmp_path
    )
    assert mixed.code == "not_a_sam_model"


async def test_sam_2_without_its_packages_says_what_to_install(tmp_path: Path) -> None:
    """A package of that name that cannot be imported lies before the installed one."""
    (tmp_path / "torch.py").write_text("raise ModuleNotFoundError('gone', name='torch')", encoding="utf-8")
    weights = {"model": "sam2.1_hiera_tiny", "weights": "w.pt", "sha256": "0" * 64, "exports_dir": "."}
    error = await start_error(weights, tmp_path, engine="sam2", PYTHONPATH=str(tmp_path))
    assert error.code == "sam_not_installed"
    assert "torch" in error.what
    assert "[worker,sam]" in error.public_text


def test_the_configuration_names_what_decides_about_masks() -> None:
    onnx = {"encoder_sha256": "AB" * 32, "decoder_sha256": "cd" * 32}
    assert segmenter_identity("onnx", onnx) == "sam-onnx/1 abababab-cdcdcdcd"
    sam2 = {"model": "sam2.1_hiera_tiny", "sha256": "12" * 32}
    assert segmenter_identity("sam2", sam2) == "sam2/1 sam2.1_hiera_tiny 12121212"
    config = child_config("onnx", onnx, threads=0, embedding_cache_bytes=1, track_memory_bytes=2)
    assert config["threads"] == usable_cores() >= 1
    assert config["onnx"] is onnx


def test_the_child_neither_installs_nor_calls_out_nor_spins(tmp_path: Path) -> None:
    env = child_env(tmp_path)
    assert env["GOMP_SPINCOUNT"] == "0"
    assert (env["YOLO_OFFLINE"], env["HF_HUB_OFFLINE"], env["YOLO_AUTOINSTALL"]) == ("1", "1", "0")
    assert Path(env["YOLO_CONFIG_DIR"]).is_relative_to(tmp_path)
