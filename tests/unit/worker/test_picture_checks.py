"""Pictures for results: whole, bare, within every limit. The child's functions, called here."""

from __future__ import annotations

import hashlib
import io
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image
from PIL.PngImagePlugin import PngInfo

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.decoder import MAX_PIXELS
from sam2_mcp_worker.media.outgoing_picture import INLINE_SIDE_PX, inline_limits, thumb_limits
from sam2_mcp_worker.media.picture_checks import SMALLEST_SIDE_PX, picture_block

NOISE = np.random.default_rng(5)


def made(
    source: Path,
    *,
    side: int = INLINE_SIDE_PX,
    area: int = INLINE_SIDE_PX**2,
    most: int = 700 * 1024,
) -> tuple[dict[str, Any], Image.Image]:
    """The facts, and the picture that they are of; what was written is held against them."""
    out = source.with_suffix(".out")
    limits = {"max_pixels": MAX_PIXELS, "max_side_px": side, "max_area_px": area, "max_bytes": most}
    facts = picture_block({"path": str(source), "out_path": str(out), **limits})
    data = out.read_bytes()
    picture = Image.open(io.BytesIO(data))
    picture.load()
    assert (len(data), hashlib.sha256(data).hexdigest()) == (facts["size_bytes"], facts["sha256"])
    assert (Image.MIME[picture.format or ""], *picture.size) == (
        facts["mime_type"],
        facts["width_px"],
        facts["height_px"],
    )
    assert len(data) <= most and max(picture.size) <= side and picture.width * picture.height <= area
    return facts, picture


def saved(folder: Path, picture: Image.Image, form: str = "PNG", **options: Any) -> Path:
    path = folder / f"in.{form.lower()}"
    picture.save(path, form, **options)
    return path


@pytest.mark.parametrize("mode", ["1", "L", "LA", "P", "RGB", "RGBA", "I;16"])
def test_a_small_picture_comes_through_pixel_by_pixel_whatever_its_mode(mode: str, tmp_path: Path) -> None:
    ramp = np.arange(40 * 30, dtype=np.uint32).reshape(30, 40) // 5
    if mode == "I;16":
        source = Image.fromarray((ramp * 250).astype(np.uint16))
    else:
        source = Image.fromarray(ramp.astype(np.uint8)).convert(mode)
    facts, picture = made(saved(tmp_path, source))
    assert facts["mime_type"] == "image/png" and (facts["of_width_px"], facts["of_height_px"]) == (40, 30)
    wanted = (ramp * 250 / 257).astype(np.uint8) if mode == "I;16" else np.asarray(source.convert("L"))
    assert np.abs(np.asarray(picture.convert("L")).astype(int) - wanted).max() <= 1
    assert picture.mode == ("L" if mode in ("1", "L") else "RGB")
    _, small = made(tmp_path / "in.png", side=20)
    assert small.size == (20, 15) and small.mode == picture.mode
    wanted = np.asarray(picture.convert("L").resize((20, 15), Image.Resampling.BOX)).astype(int)
    assert np.abs(np.asarray(small.convert("L")) - wanted).mean() < (40 if mode == "1" else 2)


@pytest.mark.parametrize(
    "size", [(1, 1), (1, 9000), (9000, 1), (1916, 6000), (2250, 900), (1568, 1568), (513, 511), (3000, 7)]
)
def test_every_shape_keeps_its_proportions_inside_the_limits(size: tuple[int, int], tmp_path: Path) -> None:
    path = saved(tmp_path, Image.new("RGB", size, (200, 30, 40)))
    for limits in (inline_limits(700 * 1024), thumb_limits(700 * 1024)):
        facts, picture = made(path, side=limits.max_side_px, area=limits.max_area_px, most=limits.max_bytes)
        assert (facts["of_width_px"], facts["of_height_px"]) == size
        scale = max(picture.size) / max(size)
        assert abs(min(picture.size) - max(1, min(size) * scale)) <= 1
        assert picture.getpixel((0, 0)) == (200, 30, 40)


def test_noise_is_made_smaller_until_it_fits_and_refused_when_it_cannot(tmp_path: Path) -> None:
    path = saved(tmp_path, Image.fromarray(NOISE.integers(0, 256, (900, 1200, 3), dtype=np.uint8)))
    facts, picture = made(path, most=60_000)
    assert facts["mime_type"] == "image/jpeg" and picture.width < 1200
    with pytest.raises(WorkerError) as caught:
        made(path, most=500)
    assert caught.value.code == "picture_too_large" and str(SMALLEST_SIDE_PX) in str(caught.value)


def test_nothing_goes_with_the_pixels_and_they_are_upright_and_on_white(tmp_path: Path) -> None:
    secret = "Kim Minjun, 37.5665 N"
    exif = Image.Exif()
    exif[0x010E], exif[0x0112] = secret, 6
    photo = Image.new("RGB", (80, 40), "blue")
    photo.paste("red", (0, 0, 40, 40))
    path = saved(tmp_path, photo, "JPEG", exif=exif, comment=secret.encode(), quality=95)
    path.write_bytes(path.read_bytes() + b"PK" + secret.encode())
    facts, picture = made(path)
    assert picture.size == (40, 80) and (facts["of_width_px"], facts["of_height_px"]) == (40, 80)
    top, bottom = picture.convert("RGB").getpixel((20, 10)), picture.convert("RGB").getpixel((20, 70))
    assert top[0] > 200 and bottom[2] > 200  # type: ignore[index]
    assert secret.encode() not in path.with_suffix(".out").read_bytes() and not picture.getexif()
    about = PngInfo()
    about.add_text("Comment", secret)
    path = saved(tmp_path, Image.new("RGBA", (30, 20), (9, 9, 9, 0)), "PNG", pnginfo=about)
    _, picture = made(path)
    assert picture.getpixel((3, 3)) == (255, 255, 255) and not picture.text  # type: ignore[attr-defined]


def test_what_is_broken_or_too_large_or_none_is_refused_by_name(tmp_path: Path) -> None:
    whole = saved(tmp_path, Image.fromarray(NOISE.integers(0, 256, (60, 60, 3), dtype=np.uint8)))
    cut = tmp_path / "cut.png"
    cut.write_bytes(whole.read_bytes()[:-4000])
    text = tmp_path / "page.png"
    text.write_text("<html>", encoding="utf-8")
    for path, most, code in (
        (cut, MAX_PIXELS, "image_damaged"),
        (whole, 3599, "image_too_large"),
        (text, MAX_PIXELS, "unsupported_image"),
    ):
        params = {"path": str(path), "out_path": str(tmp_path / "out"), "max_pixels": most, "max_side_px": 9}
        with pytest.raises(WorkerError) as caught:
            picture_block(params | {"max_area_px": 99, "max_bytes": 9999})
        assert caught.value.code == code
    assert not (tmp_path / "out").exists()
