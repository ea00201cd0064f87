"""redact_media with real masks: handles of segment_image, boxes cut to the object in them, and boxes that stay."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from tests.conftest import RunningWorker
from tests.e2e.test_redact_images import decoded, fetched, lettered
from tests.e2e.tools import Agent, ToolFailure
from tests.fakes.shapes import Scene, scene

from sam2_mcp_worker.media.image_redaction import MASK_MARGIN_PX
from sam2_mcp_worker.media.redact_paint import grown


@pytest.fixture(scope="module")
def drawn() -> Scene:
    return scene()


@pytest.fixture
def picture(drawn: Scene, tmp_path: Path) -> Path:
    path = tmp_path / "shapes.png"
    drawn.picture.save(path)
    return path


def covered_pixels(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    return np.asarray((after == 0).all(axis=2) & (before != after).any(axis=2))


def near(mask: np.ndarray, margin_px: int) -> np.ndarray:
    wide = grown(mask, margin_px)
    return wide[margin_px : margin_px + mask.shape[0], margin_px : margin_px + mask.shape[1]]


async def redacted(worker: RunningWorker, handle: str, tmp_path: Path, **arguments: Any) -> tuple[Any, np.ndarray]:
    result = await Agent(worker).call("redact_media", source=handle, **arguments)
    return result, decoded(await fetched(worker, result, tmp_path / "out.png"))


async def test_the_mask_of_an_object_is_covered_and_what_lies_beside_it_stays(
    segmenting_worker: RunningWorker, drawn: Scene, picture: Path, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(picture)
    found = await agent.call("segment_image", source=handle, boxes=[list(drawn.boxes[0])])
    result, after = await redacted(
        segmenting_worker, handle, tmp_path, regions=[{"handle": found["objects"][0]["mask"]}]
    )
    assert result["status"] == "done"
    assert result["covered"][0]["shape"] == "mask"
    assert result["covered"][0]["margin_px"] == MASK_MARGIN_PX
    before, truth = decoded(picture), drawn.truths[0]
    seen = covered_pixels(before, after)
    assert (seen | (before == 0).all(axis=2))[truth].mean() > 0.97
    assert not seen[~near(truth, 12)].any()


async def test_all_masks_of_a_segmentation_are_covered_by_one_handle(
    segmenting_worker: RunningWorker, drawn: Scene, picture: Path, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(picture)
    boxes = [list(box) for box in drawn.boxes[:2]]
    found = await agent.call("segment_image", source=handle, boxes=boxes)
    result, after = await redacted(segmenting_worker, handle, tmp_path, regions=[{"handle": found["coco"]}])
    assert result["covered_count"] == 2
    seen = covered_pixels(decoded(picture), after)
    for mask in drawn.truths[:2]:
        assert seen[mask].mean() > 0.9


async def test_a_box_is_cut_to_the_object_in_it(
    segmenting_worker: RunningWorker, drawn: Scene, picture: Path, tmp_path: Path
) -> None:
    truth, (x0, y0, x1, y1) = drawn.truths[0], drawn.boxes[0]
    handle = await Agent(segmenting_worker).upload(picture)
    region = {"box_xyxy_px": [x0 - 4, y0 - 4, x1 + 4, y1 + 4], "shape": "mask"}
    result, after = await redacted(segmenting_worker, handle, tmp_path, regions=[region])
    assert result["covered"][0]["shape"] == "mask", result
    seen = covered_pixels(decoded(picture), after)
    assert seen[truth].mean() > 0.95
    assert seen.sum() < 0.98 * (x1 - x0 + 8) * (y1 - y0 + 8)


async def test_a_box_on_nothing_stays_a_box_and_says_why(segmenting_worker: RunningWorker, tmp_path: Path) -> None:
    rng = np.random.default_rng(4)
    Image.fromarray(rng.integers(90, 110, (200, 300, 3), np.uint8)).save(tmp_path / "noise.png")
    handle = await Agent(segmenting_worker).upload(tmp_path / "noise.png")
    region = {"box_xyxy_px": [40, 30, 200, 150], "shape": "mask"}
    result, after = await redacted(segmenting_worker, handle, tmp_path, regions=[region])
    assert result["covered"][0]["shape"] == "box"
    assert "the whole box was covered" in result["covered"][0]["note"]
    assert (after[30:150, 40:200] == 0).all()


async def test_without_an_engine_a_box_stays_a_box_and_says_why(worker: RunningWorker, tmp_path: Path) -> None:
    handle = await Agent(worker).upload(lettered(tmp_path / "a.png", "글자"))
    region = {"box_xyxy_px": [20, 20, 90, 60], "shape": "mask"}
    result, after = await redacted(worker, handle, tmp_path, regions=[region])
    assert result["covered"][0]["shape"] == "box"
    assert result["covered"][0]["note"]
    assert (after[20:60, 20:90] == 0).all()


async def test_a_mask_of_another_picture_is_refused(
    segmenting_worker: RunningWorker, drawn: Scene, picture: Path, tmp_path: Path
) -> None:
    agent = Agent(segmenting_worker)
    box = list(drawn.boxes[0])
    found = await agent.call("segment_image", source=await agent.upload(picture), boxes=[box])
    other = tmp_path / "other.png"
    drawn.picture.transpose(Image.Transpose.FLIP_LEFT_RIGHT).save(other)
    with pytest.raises(ToolFailure, match=r"^\[handle_unfit\].*another file"):
        regions = [{"handle": found["objects"][0]["mask"]}]
        await agent.call("redact_media", source=await agent.upload(other), regions=regions)


async def test_a_damaged_document_of_masks_is_refused(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)
    handle = await agent.upload(lettered(tmp_path / "a.png", "글자"))
    sha256 = worker.services.uploads.get(handle).sha256
    facts = {"kind": "masks", "width_px": 640, "height_px": 260, "source_sha256": sha256}
    for data in (b"{", b"[]", b'{"annotations": []}', b'{"annotations": [{"bbox": [1]}]}'):
        artifact = worker.services.artifacts.put(data, name="o.json", mime_type="application/json", facts=facts)
        with pytest.raises(ToolFailure, match=r"^\[handle_unfit\]"):
            await agent.call("redact_media", source=handle, regions=[{"handle": artifact.handle}])
    hostile = b'{"annotations": [{"bbox": [0, 0, 9, 9], "segmentation": {"counts": "%%%"}}]}'
    artifact = worker.services.artifacts.put(hostile, name="o.json", mime_type="application/json", facts=facts)
    with pytest.raises(ToolFailure, match=r"^\[rle_invalid\]"):
        await agent.call("redact_media", source=handle, regions=[{"handle": artifact.handle}])


async def test_a_handle_for_a_picture_of_another_size_is_refused(worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(worker)
    handle = await agent.upload(lettered(tmp_path / "a.png", "글자"))
    sha256 = worker.services.uploads.get(handle).sha256
    facts = {"kind": "mask", "width_px": 9, "height_px": 9, "box_xyxy_px": [0, 0, 9, 9], "source_sha256": sha256}
    artifact = worker.services.artifacts.put(b"x", name="m.png", mime_type="image/png", facts=facts)
    with pytest.raises(ToolFailure, match=r"^\[handle_unfit\].*9 x 9 px"):
        await agent.call("redact_media", source=handle, regions=[{"handle": artifact.handle}])
