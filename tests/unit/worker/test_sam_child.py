"""What the segmentation child does, called in this process: embeddings kept and made again, windows."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from tests.fakes.onnx_pairs import tiny_pair
from tests.fakes.sam2_weights import random_weights

from sam2_mcp_worker.engines import sam2, sam_child
from sam2_mcp_worker.engines.mask_wire import mask_from_json
from sam2_mcp_worker.engines.segmenter import child_config
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import load_mask
from sam2_mcp_worker.media.pixels import PixelFile

BOX = {"box": [0, 0, 8, 8], "points": []}
NOTHING = {"box": [0, 0, 8, 8], "points": [[1, 1, False]]}


def start(folder: Path, cache_bytes: int = 2**20) -> None:
    weights = tiny_pair(folder).weights()
    sam_child.setup(child_config("onnx", weights, threads=1, embedding_cache_bytes=cache_bytes, track_memory_bytes=0))


@pytest.fixture(autouse=True)
def no_engine_afterwards() -> Iterator[None]:
    yield
    sam_child._engine = None


def picture(folder: Path, rgb: NDArray[np.uint8], key: str = "key") -> dict[str, Any]:
    """Parameters of a task on these pixels."""
    path = folder / f"{key}.rgb"
    path.write_bytes(rgb.tobytes())
    pixels = PixelFile(path, rgb.shape[1], rgb.shape[0])
    return {"pixels": pixels.to_params(), "content_key": key, "quality": "fast", "mask_dir": str(folder)}


def bright_square(width: int, height: int, box: tuple[int, int, int, int]) -> NDArray[np.uint8]:
    rgb = np.zeros((height, width, 3), np.uint8)
    rgb[box[1] : box[3], box[0] : box[2]] = 255
    return rgb


def test_a_picture_is_embedded_once_for_all_its_prompts(tmp_path: Path) -> None:
    start(tmp_path)
    task = picture(tmp_path, bright_square(64, 64, (32, 16, 64, 48)))
    assert sam_child.encode(task) == {"cached": False}
    assert sam_child.encode(task) == {"cached": True}
    assert sam_child.encode({**task, "quality": "accurate"}) == {"cached": False}
    (tmp_path / "key.rgb").unlink()  # so that embedding it again would fail
    found = [mask_from_json(mask) for mask in sam_child.masks({**task, "prompts": [BOX, NOTHING, BOX]})["masks"]]
    assert [mask.box_xyxy_px for mask in found] == [(32, 16, 64, 48), None, (32, 16, 64, 48)]
    assert found[0].mask_path != found[2].mask_path
    assert found[0].mask_path is not None
    assert load_mask(found[0].mask_path).mean() > 0.99  # the corners are rounded by the interpolation
    assert found[0].touches_border


def test_a_picture_that_was_driven_out_is_embedded_again(tmp_path: Path) -> None:
    start(tmp_path, cache_bytes=1)
    task = picture(tmp_path, bright_square(64, 64, (32, 16, 64, 48)))
    assert sam_child.encode(task) == {"cached": False}
    assert sam_child.encode(task) == {"cached": False}
    [mask] = sam_child.masks({**task, "prompts": [BOX]})["masks"]
    assert mask["box"] == [32, 16, 64, 48]


def test_pixels_that_are_gone_are_named_as_such(tmp_path: Path) -> None:
    start(tmp_path)
    task = picture(tmp_path, bright_square(64, 64, (32, 16, 64, 48)))
    (tmp_path / "key.rgb").unlink()
    with pytest.raises(WorkerError, match="pixels_unreadable"):
        sam_child.encode(task)
    with pytest.raises(WorkerError, match="pixels_unreadable"):
        sam_child.masks({**task, "prompts": [BOX]})


def test_a_huge_picture_is_embedded_around_its_prompts(tmp_path: Path) -> None:
    start(tmp_path)
    task = picture(tmp_path, bright_square(9000, 1000, (4000, 400, 4256, 656)))
    assert sam_child.encode(task) == {"cached": False}
    assert not len(sam_child._loaded().cache), "all of a huge picture is not embedded beforehand"
    [small] = sam_child.masks({**task, "prompts": [{"box": [3990, 390, 4270, 670], "points": []}]})["masks"]
    # One cell of the tiny network's masks is 64 px of a window of 1,024 px, and would be 562 px of the whole picture.
    assert np.abs(np.array(small["box"]) - (4000, 400, 4256, 656)).max() <= 64
    assert len(sam_child._loaded().cache) == 1


def test_an_object_that_runs_out_of_its_window_is_asked_for_again_in_a_wider_one(tmp_path: Path) -> None:
    start(tmp_path)
    task = picture(tmp_path, bright_square(9000, 1000, (3000, 0, 5000, 1000)))
    prompt: dict[str, Any] = {"box": None, "points": [[4000, 500, True]]}
    [first] = sam_child.masks({**task, "prompts": [prompt]})["masks"]
    assert set(first) == {"window"}
    [second] = sam_child.masks({**task, "prompts": [{**prompt, "window": first["window"]}]})["masks"]
    x0, y0, x1, y1 = second["box"]
    assert (y0, y1) == (0, 1000)
    assert abs(x0 - 3000) <= 64
    assert abs(x1 - 5000) <= 64


def test_sam_2_brings_the_tasks_of_tracking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the comparison of its encoders, which test_sam2 makes."""
    monkeypatch.setattr(sam2, "PREPARE_BUDGET_S", 0.0)
    monkeypatch.setattr(sam_child, "TASKS", dict(sam_child.TASKS))
    random = random_weights()
    weights = {"model": random.model, "weights": str(random.path), "sha256": random.sha256}
    sam_child.setup(
        child_config(
            "sam2",
            {**weights, "exports_dir": str(tmp_path)},
            threads=1,
            embedding_cache_bytes=2**20,
            track_memory_bytes=2**20,
        )
    )
    assert {"encode", "masks", "track_start", "track_step"} <= set(sam_child.TASKS)
    assert isinstance(sam_child._loaded().predictor, sam2.Sam2Predictor)


def test_a_defect_of_our_own_is_not_taken_for_a_missing_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "sam2_mcp_worker.engines.sam2", None)
    with pytest.raises(ModuleNotFoundError):
        sam_child._load_sam2({})


def test_a_child_that_was_not_set_up_says_so(tmp_path: Path) -> None:
    with pytest.raises(WorkerError, match="engine_not_ready"):
        sam_child.encode(picture(tmp_path, bright_square(8, 8, (0, 0, 4, 4))))
