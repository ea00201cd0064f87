"""Print that no line covers is found; what is no print, and what is read, is not."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.bench.ocr.pages import load_font

from sam2_mcp_worker.media.ink import Box, residual_ink

RGB = NDArray[np.uint8]
LINES = ("보험료가 오를 수 있습니다", "해약환급금이 적거나 없을 수 있습니다", "1,588-0000 (09:00~18:00)")


def paper(colour: tuple[int, int, int] = (255, 255, 255), size: tuple[int, int] = (700, 400)) -> Image.Image:
    return Image.new("RGB", size, colour)


def printed(
    image: Image.Image, size_px: int, colour: tuple[int, int, int], lines: tuple[str, ...] = LINES
) -> tuple[RGB, list[Box]]:
    """The picture with lines on it, and the boxes of their ink."""
    draw = ImageDraw.Draw(image)
    font = load_font("NanumGothic", size_px)
    boxes = []
    for i, text in enumerate(lines):
        at = (40, 40 + i * size_px * 2)
        draw.text(at, text, font=font, fill=colour)
        x0, y0, x1, y1 = draw.textbbox(at, text, font=font)
        boxes.append((int(x0), int(y0), int(x1), int(y1)))
    return np.asarray(image, np.uint8), boxes


def covers(found: list[Box], box: Box) -> bool:
    x0, y0, x1, y1 = box
    mask = np.zeros((y1 - y0, x1 - x0), bool)
    for a, b, c, d in found:
        mask[max(0, b - y0) : max(0, d - y0), max(0, a - x0) : max(0, c - x0)] = True
    return bool(mask.mean() > 0.6)


@pytest.mark.parametrize("size_px", [10, 12, 20, 48])
@pytest.mark.parametrize(
    ("ground", "colour"),
    [
        ((255, 255, 255), (60, 60, 60)),
        ((255, 255, 255), (150, 150, 150)),
        ((20, 40, 90), (255, 255, 255)),
        ((230, 92, 0), (255, 255, 255)),
        ((255, 214, 51), (51, 34, 0)),
    ],
)
def test_each_line_that_nothing_covers_is_found(
    size_px: int, ground: tuple[int, int, int], colour: tuple[int, int, int]
) -> None:
    rgb, boxes = printed(paper(ground), size_px, colour)
    found = residual_ink(rgb)
    assert all(covers(found, box) for box in boxes)


@pytest.mark.parametrize("dropped", [0, 1, 2])
def test_only_the_line_that_was_dropped_is_found(dropped: int) -> None:
    rgb, boxes = printed(paper(), 14, (50, 50, 50))
    known = [box for i, box in enumerate(boxes) if i != dropped]
    found = residual_ink(rgb, covered_boxes=known)
    assert covers(found, boxes[dropped])
    assert not any(covers(found, box) for box in known)


def test_covered_quads_count_as_boxes_do() -> None:
    rgb, boxes = printed(paper(), 14, (50, 50, 50))
    quads = [np.array([(x0, y0), (x1, y0), (x1, y1), (x0, y1)], np.float32) for x0, y0, x1, y1 in boxes]
    assert residual_ink(rgb, covered_quads=quads) == []


def test_equally_bright_colours_still_differ() -> None:
    rgb, boxes = printed(paper((200, 80, 80)), 20, (60, 148, 60))  # the same grey
    assert all(covers(residual_ink(rgb), box) for box in boxes)


def gradient() -> RGB:
    ramp = np.linspace(0, 255, 700, dtype=np.uint8)
    return np.repeat(np.tile(ramp, (400, 1))[:, :, None], 3, axis=2)


def table_rules() -> RGB:
    image = paper()
    draw = ImageDraw.Draw(image)
    for y in range(50, 350, 40):
        draw.line((40, y, 660, y), fill=(120, 120, 120))
    for x in (40, 250, 450, 660):
        draw.line((x, 50, x, 330), fill=(120, 120, 120))
    return np.asarray(image, np.uint8)


def panels() -> RGB:
    image = paper()
    draw = ImageDraw.Draw(image)
    draw.rectangle((40, 40, 300, 160), fill=(0, 72, 153))
    draw.ellipse((350, 40, 600, 300), fill=(230, 92, 0))
    return np.asarray(image, np.uint8)


def photograph() -> RGB:
    """Soft shapes and grain, as in a photograph without writing."""
    rng = np.random.default_rng(7)
    coarse = rng.integers(30, 220, (8, 14, 3), dtype=np.uint8)
    soft = np.asarray(Image.fromarray(coarse).resize((700, 400), Image.Resampling.BICUBIC), np.int16)
    return np.clip(soft + rng.normal(0, 6, soft.shape), 0, 255).astype(np.uint8)


@pytest.mark.parametrize("picture", [gradient, table_rules, panels, photograph], ids=lambda make: make.__name__)
def test_what_is_no_print_raises_no_alarm(picture: object) -> None:
    assert callable(picture)
    assert residual_ink(picture()) == []


def test_the_panel_around_known_text_is_not_taken_for_text() -> None:
    image = paper((245, 248, 252))
    draw = ImageDraw.Draw(image)
    font = load_font("NanumGothicBold", 20)
    known = []
    for i, label in enumerate(("약관 내려받기", "보험료 계산하기", "지금 가입하기")):
        x = 40 + i * 200
        draw.rectangle((x, 40, x + 180, 84), fill=(255, 214, 51))
        draw.text((x + 20, 50), label, font=font, fill=(51, 34, 0))
        x0, y0, x1, y1 = draw.textbbox((x + 20, 50), label, font=font)
        known.append((int(x0) - 5, int(y0) - 5, int(x1) + 5, int(y1) + 5))
    assert residual_ink(np.asarray(image, np.uint8), covered_boxes=known) == []


@pytest.mark.parametrize("shape", [(1, 1, 3), (4, 4, 3), (3, 500, 3), (500, 3, 3)])
def test_pictures_too_small_for_print_hold_none(shape: tuple[int, int, int]) -> None:
    assert residual_ink(np.zeros(shape, np.uint8)) == []
    assert residual_ink(np.full(shape, 200, np.uint8)) == []


def test_boxes_beyond_the_picture_are_clipped() -> None:
    rgb, _ = printed(paper(), 14, (50, 50, 50))
    assert residual_ink(rgb, covered_boxes=[(-500, -500, 5000, 5000)]) == []
