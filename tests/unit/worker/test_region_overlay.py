"""The overlay of labelled regions: a colour and a line of the legend for each label, frames where there is no mask."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from sam2_mcp_worker.media.mask_overlay import COLOURS, FRAME_PX, draw_mask_overlay
from sam2_mcp_worker.media.masks import tight_mask
from sam2_mcp_worker.media.overlay_layout import Rect
from sam2_mcp_worker.media.overlay_legend import drawable
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.rle import coco_rle


def region(number: int, group: int, box: Rect, counts: str | None = None) -> dict[str, Any]:
    return {"number": number, "group": group, "counts": counts, "box": list(box), "points": []}


def draw(folder: Path, size: tuple[int, int], objects: list[dict[str, Any]], legend: list[str]) -> NDArray[np.int16]:
    path, out_path = folder / "picture.rgb", folder / "out.jpg"
    path.write_bytes(np.full((size[1], size[0], 3), 255, np.uint8).tobytes())
    params = {"pixels": PixelFile(path, *size).to_params(), "out_path": str(out_path)}
    draw_mask_overlay(params | {"objects": objects, "legend": legend})
    with Image.open(out_path) as picture:
        return np.asarray(picture, np.int16)


def near(pixels: NDArray[np.int16], colour: tuple[int, int, int]) -> NDArray[np.bool_]:
    return np.asarray(np.abs(pixels - np.array(colour, np.int16)).sum(axis=2) < 90)


def test_regions_of_one_label_share_its_colour_and_a_frame_stands_around_a_box_without_a_mask(tmp_path: Path) -> None:
    inside = np.zeros((240, 400), np.bool_)
    inside[40:100, 50:110] = True
    counts = str(coco_rle(tight_mask(inside, (0, 0)), (400, 240))["counts"])
    boxes: list[Rect] = [(50, 40, 110, 100), (200, 40, 260, 100), (300, 150, 360, 200)]
    objects = [region(1, 1, boxes[0], counts), region(2, 1, boxes[1]), region(3, 2, boxes[2])]
    pixels = draw(tmp_path, (400, 240), objects, ["coin: 1-2", "seal: 3"])
    left = 8  # the sheet's margin
    for box, group in zip(boxes[1:], (1, 2), strict=True):
        x0, y0, x1, y1 = box[0] + left, box[1], box[2] + left, box[3]
        assert near(pixels, COLOURS[group - 1][0])[y0 - FRAME_PX : y0, x0:x1].mean() > 0.5
        assert (pixels[y0 + 1 : y1 - 1, x0 + 1 : x1 - 1] > 200).all(), "the frame hides nothing in the box"
    tinted = pixels[60:80, 70 + left : 75 + left].mean(axis=(0, 1))
    assert tinted[0] < 200 < tinted[2], "the mask is tinted with the colour of its label"
    foot = pixels[240:]
    assert near(foot, COLOURS[0][0]).any() and near(foot, COLOURS[1][0]).any()
    assert not near(foot, COLOURS[2][0]).any(), "no entry for a label that is not there"


def test_a_legend_too_long_for_one_row_takes_several_and_leaves_room_for_the_picture(tmp_path: Path) -> None:
    labels = [f"label number {number}: {number}" for number in range(1, 21)]
    objects = [region(number, number, (10, 10, 40, 40)) for number in range(1, 21)]
    wide = draw(tmp_path, (1200, 300), objects, labels)
    narrow = draw(tmp_path, (200, 300), objects, labels)
    assert wide.shape[0] - 300 < narrow.shape[0] - 300
    assert narrow.shape[0] - 300 > 20 * 15


@pytest.mark.parametrize(
    ("words", "shown"), [("coin: 1, 3-5", "coin: 1, 3-5"), ("동전: 1", "label 2: 1"), ("동전", "label 2")]
)
def test_words_that_the_font_lacks_become_the_number_of_their_label(words: str, shown: str) -> None:
    assert drawable(words, "label 2") == shown
