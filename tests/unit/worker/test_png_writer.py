"""The PNG writer against Pillow's and OpenCV's decoders, and the look at a file's chunks."""

from __future__ import annotations

import zlib
from pathlib import Path

import cv2
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from PIL import Image, ImageDraw, PngImagePlugin

from sam2_mcp_worker.media import pixel_writer
from sam2_mcp_worker.media.png_writer import chunk_types, write_png


def picture(width: int, height: int, kind: str, seed: int) -> np.ndarray:
    random = np.random.default_rng(seed)
    if kind == "noise":
        return random.integers(0, 256, (height, width, 3), np.uint8)
    if kind == "flat":
        return np.full((height, width, 3), seed % 256, np.uint8)
    ramp = np.add.outer(np.arange(height) * 3, np.arange(width) * 5)[..., None] + np.array([0, 80, 160])
    return (ramp % 256).astype(np.uint8)


@given(st.integers(1, 60), st.integers(1, 60), st.sampled_from(["noise", "flat", "ramp"]), st.integers(0, 999))
def test_two_decoders_give_back_every_pixel(
    tmp_path_factory: pytest.TempPathFactory, width: int, height: int, kind: str, seed: int
) -> None:
    rgb, path = picture(width, height, kind, seed), tmp_path_factory.mktemp("png") / "a.png"
    write_png(path, rgb)
    with Image.open(path) as image:
        assert image.mode == "RGB"
        assert np.array_equal(np.asarray(image), rgb)
    assert np.array_equal(cv2.imread(str(path), cv2.IMREAD_COLOR)[:, :, ::-1], rgb)
    assert set(chunk_types(path)) == {"IHDR", "IDAT", "IEND"}


def test_strips_join_without_a_seam(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pixel_writer, "STRIP_PIXELS", 50)
    rgb = picture(17, 40, "ramp", 0)
    write_png(tmp_path / "a.png", rgb)
    with Image.open(tmp_path / "a.png") as image:
        assert np.array_equal(np.asarray(image), rgb)


def test_print_takes_at_most_half_more_than_from_pillow(tmp_path: Path) -> None:
    page = Image.new("RGB", (600, 400), "white")
    for row in range(8):
        ImageDraw.Draw(page).text((20, 20 + 45 * row), f"{row} The quick brown fox jumps", fill="black", font_size=32)
    write_png(tmp_path / "ours.png", np.asarray(page))
    page.save(tmp_path / "theirs.png")
    assert (tmp_path / "ours.png").stat().st_size < 1.5 * (tmp_path / "theirs.png").stat().st_size


def test_foreign_chunks_and_bytes_behind_the_end_are_seen(tmp_path: Path) -> None:
    about = PngImagePlugin.PngInfo()
    about.add_text("Comment", "hidden")
    path = tmp_path / "a.png"
    Image.new("RGB", (4, 4)).save(path, pnginfo=about, dpi=(72, 72))
    assert {"tEXt", "pHYs"} <= set(chunk_types(path))
    write_png(path, picture(4, 4, "flat", 1))
    with path.open("ab") as file:
        file.write(b"hidden behind the end")
    assert "?" in chunk_types(path)
    path.write_bytes(path.read_bytes()[:20])
    assert chunk_types(path) == ["?"]
    path.write_bytes(b"GIF89a")
    assert chunk_types(path) == ["?"]


def test_the_checksums_of_our_chunks_are_right(tmp_path: Path) -> None:
    write_png(tmp_path / "a.png", picture(30, 20, "noise", 5))
    data = (tmp_path / "a.png").read_bytes()[8:]
    while data:
        length = int.from_bytes(data[:4], "big")
        assert int.from_bytes(data[8 + length : 12 + length], "big") == zlib.crc32(data[4 : 8 + length])
        data = data[12 + length :]
