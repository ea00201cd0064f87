"""segment_image on pictures of every kind, orientation and shape: the same objects, in upright coordinates."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image
from tests.conftest import RunningWorker
from tests.e2e.segmenting import GOOD_IOU, mask_of, saved
from tests.e2e.tools import Agent
from tests.fakes.shapes import Scene, iou, scene


@pytest.fixture(scope="module")
def drawn() -> Scene:
    return scene()


@pytest.mark.parametrize("orientation", [5, 6, 8])
async def test_exif_rotation_is_applied_before_coordinates_are_given(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path, orientation: int
) -> None:
    inverse = {
        5: Image.Transpose.TRANSPOSE,
        6: Image.Transpose.ROTATE_90,
        8: Image.Transpose.ROTATE_270,
    }[orientation]
    exif = Image.Exif()
    exif[0x0112] = orientation
    agent = Agent(segmenting_worker)
    path = saved(drawn.picture.transpose(inverse), tmp_path / "turned.png", exif=exif)
    result = await agent.call("segment_image", source=await agent.upload(path), boxes=[list(drawn.boxes[1])])
    assert (result["width_px"], result["height_px"]) == drawn.picture.size
    assert iou(mask_of(segmenting_worker, result["objects"][0]), drawn.truths[1]) > GOOD_IOU


def sixteen_bit(picture: Image.Image) -> Image.Image:
    return Image.fromarray(np.asarray(picture.convert("L")).astype(np.uint16) * 257)


def with_alpha(picture: Image.Image, objects: Scene) -> Image.Image:
    """The objects alone, on nothing."""
    shown = np.any(objects.truths, axis=0).astype(np.uint8) * 255
    return Image.merge("RGBA", (*picture.split(), Image.fromarray(shown)))


@pytest.mark.parametrize("kind", ["alpha", "cmyk", "16 bit", "palette", "grey"])
async def test_pictures_of_any_kind_are_cut_alike(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path, kind: str
) -> None:
    picture = drawn.picture
    path = {
        "alpha": lambda: saved(with_alpha(picture, drawn), tmp_path / "a.png"),
        "cmyk": lambda: saved(picture.convert("CMYK"), tmp_path / "c.jpg", quality=95),
        "16 bit": lambda: saved(sixteen_bit(picture), tmp_path / "d.png"),
        "palette": lambda: saved(picture.quantize(64), tmp_path / "p.gif"),
        "grey": lambda: saved(picture.convert("L"), tmp_path / "g.webp"),
    }[kind]()
    agent = Agent(segmenting_worker)
    result = await agent.call("segment_image", source=await agent.upload(path), boxes=[list(drawn.boxes[0])])
    assert iou(mask_of(segmenting_worker, result["objects"][0]), drawn.truths[0]) > GOOD_IOU


async def test_a_picture_of_one_pixel_is_cut(segmenting_worker: RunningWorker, tmp_path: Path) -> None:
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(Image.new("RGB", (1, 1), "white"), tmp_path / "one.png"))
    result = await agent.call("segment_image", source=handle, boxes=[[0, 0, 1, 1]])
    assert result["coverage"]["done"] == 1
    (found,) = result["objects"]
    assert found.get("blank") or (found["box_xyxy_px"] == [0, 0, 1, 1] and found["touches_border"])
    assert result["overlay"]


async def test_an_object_at_the_far_end_of_a_picture_12000_px_wide_is_cut_exactly(
    segmenting_worker: RunningWorker, drawn: Scene, tmp_path: Path
) -> None:
    wide = Image.new("RGB", (12_000, 1500), (225, 228, 232))
    wide.paste(drawn.picture, (11_500, 1200))
    x0, y0, x1, y1 = drawn.boxes[2]
    box = [x0 + 11_500, y0 + 1200, x1 + 11_500, y1 + 1200]
    agent = Agent(segmenting_worker)
    handle = await agent.upload(saved(wide, tmp_path / "wide.png", compress_level=1))
    result = await agent.call("segment_image", source=handle, boxes=[box])
    mask = mask_of(segmenting_worker, result["objects"][0])
    assert mask.shape == (1500, 12_000)
    assert iou(mask[1200:1440, 11_500:11_820], drawn.truths[2]) > GOOD_IOU
    assert np.count_nonzero(mask) == result["objects"][0]["area_px"]
