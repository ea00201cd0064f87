"""Edges of pages: what they cut, what runs off on purpose, how much ink there is."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont
from tests.fakes.measured_documents import FACES

from sam2_mcp_worker.media.page_edges import page_edges
from sam2_mcp_worker.media.pixels import PixelFile

WIDTH, HEIGHT = 900, 1200


def told(picture: Image.Image | NDArray[np.uint8], folder: Path, **params: Any) -> dict[str, Any]:
    rgb = np.asarray(picture)
    path = folder / "page.rgb"
    path.write_bytes(np.ascontiguousarray(rgb).tobytes())
    return page_edges({"pixels": PixelFile(path, rgb.shape[1], rgb.shape[0]).to_params(), **params})


def paper() -> tuple[Image.Image, ImageDraw.ImageDraw]:
    picture = Image.new("RGB", (WIDTH, HEIGHT), "white")
    return picture, ImageDraw.Draw(picture)


def font(size: int) -> ImageFont.FreeTypeFont:
    return ImageFont.truetype(str(FACES["body"]), size)


@pytest.mark.parametrize(
    ("place", "side"),
    [((200, -22), "top"), ((200, HEIGHT - 25), "bottom"), ((WIDTH - 100, 500), "right"), ((-60, 500), "left")],
)
def test_letters_that_an_edge_cuts_are_seen(place, side, tmp_path):
    picture, draw = paper()
    draw.text(place, "잘린 글자입니다", fill="black", font=font(40))
    found = told(picture, tmp_path)["cuts"]
    assert [each["side"] for each in found] == [side]
    x0, y0, x1, y1 = found[0]["box"]
    assert 0 <= x0 < x1 <= WIDTH and 0 <= y0 < y1 <= HEIGHT


def test_a_round_figure_that_an_edge_cuts_is_seen(tmp_path):
    picture, draw = paper()
    draw.ellipse((WIDTH - 20, 500, WIDTH + 40, 560), fill=(200, 30, 30))
    assert [each["side"] for each in told(picture, tmp_path)["cuts"]] == ["right"]


def test_bands_rules_pictures_and_backgrounds_run_off_the_page_on_purpose(tmp_path):
    picture, draw = paper()
    draw.rectangle((0, 100, WIDTH, 220), fill=(20, 60, 160))  # a band across
    draw.line((0, 400, WIDTH, 400), fill="black", width=3)  # a rule
    draw.line((300, 0, 300, 15), fill="black", width=3)  # a mark for folding
    draw.ellipse((-200, 500, 200, 760), fill=(200, 230, 200))  # a hill
    draw.rectangle((600, 800, WIDTH, 1100), fill=(90, 90, 90))  # a picture with straight sides
    assert told(picture, tmp_path)["cuts"] == []
    noise = np.random.default_rng(1).integers(0, 255, (HEIGHT, WIDTH, 3), np.uint8)
    assert told(noise, tmp_path)["cuts"] == []


def test_text_inside_of_the_page_is_not_cut(tmp_path):
    picture, draw = paper()
    draw.text((40, 40), "다 있는 글자", fill="black", font=font(40))
    assert told(picture, tmp_path)["cuts"] == []


def test_what_known_pictures_end_with_at_an_edge_is_left_out(tmp_path):
    picture, draw = paper()
    draw.ellipse((WIDTH - 20, 500, WIDTH + 40, 560), fill=(200, 30, 30))
    assert told(picture, tmp_path, ignored=[[WIDTH - 80, 480, WIDTH, 640]])["cuts"] == []


def test_a_hundred_cuts_are_told_by_the_first_few(tmp_path):
    picture, draw = paper()
    for y in range(20, HEIGHT - 20, 60):
        draw.ellipse((WIDTH - 10, y, WIDTH + 10, y + 20), fill="black")
    assert 0 < len(told(picture, tmp_path)["cuts"]) <= 5


def test_ink_is_what_differs_from_the_ground_whatever_its_colour(tmp_path):
    assert told(np.full((300, 200, 3), (20, 60, 160), np.uint8), tmp_path)["ink_share"] == 0.0
    half = np.full((300, 200, 3), 255, np.uint8)
    half[:60] = 0
    assert told(half, tmp_path)["ink_share"] == pytest.approx(0.2, abs=0.01)


def test_sides_of_bands_tell_their_share_of_colour(tmp_path):
    picture, draw = paper()
    draw.rectangle((0, 0, WIDTH // 2, 50), fill=(20, 60, 160))
    bands = told(picture, tmp_path, bands={"trim": [0, 0, WIDTH, HEIGHT], "outside": [-50, -90, -10, -20]})["bands"]
    assert bands["trim"]["top"] == pytest.approx(0.5, abs=0.01)
    assert bands["trim"]["bottom"] == bands["trim"]["right"] == 0.0
    assert set(bands["outside"].values()) == {0.0}


def test_a_picture_of_a_few_pixels_has_edges_too(tmp_path):
    assert told(np.zeros((2, 3, 3), np.uint8), tmp_path)["cuts"] == []
    assert told(np.zeros((1, 1, 3), np.uint8), tmp_path)["ink_share"] == 0.0
