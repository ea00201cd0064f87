"""Tiles become files at full resolution; through real decoder children, and directly for the kinds of files."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image, ImageDraw
from tests.bench.ocr.pages import load_font

from sam2_mcp_worker.engines.ports import Box, TextLine
from sam2_mcp_worker.engines.vision_errors import VisionError
from sam2_mcp_worker.engines.vision_tiles import encode_tile, settle_lines
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media import tile_pictures
from sam2_mcp_worker.media.pixels import PixelFile

RGB = NDArray[np.uint8]
ENOUGH = 3_700_000


def on_disk(folder: Path, rgb: RGB) -> PixelFile:
    path = folder / "picture.rgb"
    path.write_bytes(rgb.tobytes())
    return PixelFile(path, rgb.shape[1], rgb.shape[0])


def noise(width: int, height: int) -> RGB:
    return np.random.default_rng(1).integers(0, 256, (height, width, 3), np.uint8)


def encode(pixels: PixelFile, rect: Box, out: Path, max_bytes: int = ENOUGH) -> dict[str, object]:
    return tile_pictures.encode_tile(
        {"pixels": pixels.to_params(), "rect": list(rect), "out_path": str(out), "max_bytes": max_bytes}
    )


@pytest.mark.parametrize("rect", [(0, 0, 300, 200), (17, 31, 118, 160), (299, 0, 300, 200), (4, 5, 5, 6)])
def test_a_tile_becomes_a_png_of_exactly_its_pixels(tmp_path: Path, rect: Box) -> None:
    rgb = noise(300, 200)
    made = encode(on_disk(tmp_path, rgb), rect, tmp_path / "tile")
    x0, y0, x1, y1 = rect
    with Image.open(tmp_path / "tile") as image:
        assert (image.format, image.info) == ("PNG", {})
        assert np.array_equal(np.asarray(image), rgb[y0:y1, x0:x1])
    size = (tmp_path / "tile").stat().st_size
    assert made == {"mime_type": "image/png", "width_px": x1 - x0, "height_px": y1 - y0, "bytes": size}


def test_a_tile_too_large_as_png_becomes_the_best_jpeg_that_fits_and_is_never_scaled(tmp_path: Path) -> None:
    pixels = on_disk(tmp_path, noise(300, 200))
    sizes = []
    for max_bytes in (150_000, 90_000, 70_000):
        made = encode(pixels, (0, 0, 300, 200), tmp_path / "tile", max_bytes)
        with Image.open(tmp_path / "tile") as image:
            assert (image.format, image.size) == ("JPEG", (300, 200))
        sizes.append((tmp_path / "tile").stat().st_size)
        assert made["mime_type"] == "image/jpeg"
        assert sizes[-1] <= max_bytes
    assert sizes == sorted(sizes, reverse=True)
    assert len(set(sizes)) == 3


def test_coloured_letters_keep_their_colour_edges_in_a_jpeg(tmp_path: Path) -> None:
    rgb = noise(64, 64) // 8 + 220
    rgb[:, ::2, 1:] -= 220  # one pixel red, one white: at half the colour resolution both become pink
    encode(on_disk(tmp_path, rgb), (0, 0, 64, 64), tmp_path / "tile", encode_floor(tmp_path, rgb))
    with Image.open(tmp_path / "tile") as image:
        seen = np.asarray(image.convert("RGB")).astype(int)
    assert image.format == "JPEG"
    assert (seen[:, 1::2, 1] - seen[:, ::2, 1]).mean() > 180


def encode_floor(folder: Path, rgb: RGB) -> int:
    """One byte less than the PNG of the picture takes."""
    made = encode(on_disk(folder, rgb), (0, 0, rgb.shape[1], rgb.shape[0]), folder / "png")
    size = made["bytes"]
    assert isinstance(size, int)
    return size - 1


def test_a_tile_outside_the_picture_is_a_named_error(tmp_path: Path) -> None:
    pixels = on_disk(tmp_path, noise(30, 20))
    with pytest.raises(WorkerError, match="tile_outside"):
        encode(pixels, (0, 0, 31, 20), tmp_path / "tile")
    with pytest.raises(WorkerError, match="tile_outside"):
        encode(pixels, (5, 5, 5, 9), tmp_path / "tile")
    assert not (tmp_path / "tile").exists()


async def test_a_tile_that_fits_no_limit_is_declined_before_anything_is_sent(
    decoders: ChildPool, tmp_path: Path
) -> None:
    pixels = on_disk(tmp_path, noise(300, 200))
    with pytest.raises(VisionError, match=r"300 x 200 px.*at most 10000 bytes") as caught:
        await encode_tile(
            decoders, pixels, (0, 0, 300, 200), tmp_path / "tile", max_bytes=10_000, job="t", timeout_s=20
        )
    assert caught.value.kind == "too_large"
    assert caught.value.local_reads_on
    assert not (tmp_path / "tile").exists()


async def test_a_tile_is_encoded_and_its_lines_settled_by_decoder_children(decoders: ChildPool, tmp_path: Path) -> None:
    image = Image.new("RGB", (900, 200), (255, 255, 255))
    text, at = "보험료가 오를 수 있습니다", (300, 80)
    draw = ImageDraw.Draw(image)
    draw.text(at, text, font=load_font("NanumGothic", 20), fill=(0, 0, 0))
    x0, y0, x1, y1 = (round(edge) for edge in draw.textbbox(at, text, font=load_font("NanumGothic", 20)))
    pixels = on_disk(tmp_path, np.asarray(image, np.uint8))
    rect = (200, 40, 900, 200)
    picture = await encode_tile(decoders, pixels, rect, tmp_path / "tile", max_bytes=ENOUGH, job="t", timeout_s=20)
    assert (picture.mime_type, picture.width_px, picture.height_px) == ("image/png", 700, 160)
    assert picture.path.read_bytes().startswith(b"\x89PNG")
    rough = TextLine(text, (x0 - 4, y0 + 3, x1 + 4, y1 + 3), 0.0, 0.8)
    made_up = TextLine("없음", (700, 150, 760, 170), 0.0, 0.8)
    settled = await settle_lines(decoders, pixels, rect, [rough, made_up], job="t", timeout_s=20)
    (line,) = settled.lines
    assert (line.text, line.confidence) == (text, 0.8)
    assert all(abs(a - b) <= 3 for a, b in zip(line.box_xyxy_px, (x0, y0, x1, y1), strict=True))
    assert line.height_px == pytest.approx(20, abs=1)
    assert (settled.undetected_ink, settled.invented) == ((), 1)
    (ink,) = (await settle_lines(decoders, pixels, rect, [], job="t", timeout_s=20)).undetected_ink
    assert all(abs(a - b) <= 3 for a, b in zip(ink, (x0, y0, x1, y1), strict=True))


async def test_any_other_failure_of_a_child_stays_what_it_is(decoders: ChildPool, tmp_path: Path) -> None:
    gone = PixelFile(tmp_path / "gone.rgb", 30, 20)
    with pytest.raises(WorkerError, match="pixels_unreadable"):
        await encode_tile(decoders, gone, (0, 0, 30, 20), tmp_path / "tile", max_bytes=ENOUGH, job="t", timeout_s=20)
