"""The picture task, run in a real decoder child on files of every accepted kind and of several others."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
from PIL import Image, ImageOps

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.media.decoder import MAX_PIXELS
from sam2_mcp_worker.media.image import DecodedImage, decode_image

FORMATS = ["JPEG", "PNG", "GIF", "WEBP", "TIFF", "BMP"]


class Desk:
    """Sends files through the decoder."""

    def __init__(self, decoders: ChildPool, folder: Path) -> None:
        self.decoders = decoders
        self.path = folder / "picture"
        self.out_path = folder / "out.rgb"

    async def decode(self, max_pixels: int = MAX_PIXELS) -> DecodedImage:
        return await decode_image(
            self.decoders, self.path, self.out_path, max_pixels=max_pixels, timeout_s=100, job="t"
        )

    async def refused(self, data: bytes | None = None, max_pixels: int = MAX_PIXELS) -> WorkerError:
        if data is not None:
            self.path.write_bytes(data)
        with pytest.raises(WorkerError) as caught:
            await self.decode(max_pixels)
        assert not self.out_path.exists()
        return caught.value


@pytest.fixture
def desk(decoders: ChildPool, tmp_path: Path) -> Desk:
    return Desk(decoders, tmp_path)


def scene(width: int = 40, height: int = 24) -> Image.Image:
    """No two corners alike: red top left, green top right, blue bottom left, white elsewhere."""
    image = Image.new("RGB", (width, height), (255, 255, 255))
    image.paste((255, 0, 0), (0, 0, width // 2, height // 2))
    image.paste((0, 255, 0), (width // 2, 0, width, height // 2))
    image.paste((0, 0, 255), (0, height // 2, width // 2, height))
    return image


@pytest.mark.parametrize("format_name", FORMATS)
async def test_every_accepted_format_comes_out_as_the_same_rgb(desk: Desk, format_name: str) -> None:
    options = {"lossless": True} if format_name == "WEBP" else {"quality": 95} if format_name == "JPEG" else {}
    scene().save(desk.path, format_name, **options)
    decoded = await desk.decode()
    assert (decoded.format, decoded.frames, decoded.rotated) == (format_name, 1, False)
    assert (decoded.pixels.width_px, decoded.pixels.height_px) == (40, 24)
    difference = np.abs(decoded.pixels.map_rgb().astype(int) - np.asarray(scene(), dtype=int))
    assert np.median(difference) <= 1
    assert difference[2:10, 2:18].max() < 16


@pytest.mark.parametrize("orientation", range(1, 9))
@pytest.mark.parametrize("format_name", ["JPEG", "PNG", "TIFF", "WEBP"])
async def test_exif_orientation_is_applied_strip_by_strip(desk: Desk, orientation: int, format_name: str) -> None:
    exif = Image.Exif()
    exif[0x0112] = orientation
    picture = scene(3000, 2001)  # two strips of 4 MP
    options = {"lossless": True} if format_name == "WEBP" else {"quality": 95} if format_name == "JPEG" else {}
    picture.save(desk.path, format_name, exif=exif, **options)
    decoded = await desk.decode()
    picture.getexif()[0x0112] = orientation
    upright = np.asarray(ImageOps.exif_transpose(picture), dtype=int)
    assert decoded.rotated is (orientation != 1)
    known = await desk.decoders.run(
        "image_size", {"path": str(desk.path), "max_pixels": MAX_PIXELS}, timeout_s=20, job="t"
    )
    assert (known["width_px"], known["height_px"]) == (decoded.pixels.width_px, decoded.pixels.height_px)
    assert decoded.pixels.map_rgb().shape == upright.shape
    assert np.abs(decoded.pixels.map_rgb().astype(int) - upright).mean() < 1


def with_alpha(mode: str) -> Image.Image:
    image = Image.new("RGBA", (10, 10), (0, 0, 0, 0))
    image.paste((200, 0, 0, 255), (0, 0, 5, 10))
    return image.convert(mode)


@pytest.mark.parametrize(("mode", "left"), [("RGBA", (200, 0, 0)), ("LA", (60, 60, 60)), ("P", (200, 0, 0))])
async def test_transparency_is_laid_over_white(desk: Desk, mode: str, left: tuple[int, int, int]) -> None:
    with_alpha(mode).save(desk.path, "PNG")
    pixels = (await desk.decode()).pixels.map_rgb()
    assert np.abs(pixels[5, 2].astype(int) - left).max() <= 1
    assert pixels[5, 8].tolist() == [255, 255, 255]


async def test_a_transparent_colour_without_an_alpha_channel_is_white_too(desk: Desk) -> None:
    scene().save(desk.path, "PNG", transparency=(0, 0, 255))
    assert (await desk.decode()).pixels.map_rgb()[20, 5].tolist() == [255, 255, 255]


async def test_cmyk_is_converted(desk: Desk) -> None:
    Image.new("CMYK", (16, 16), (0, 255, 255, 0)).save(desk.path, "JPEG", quality=95)
    red, green, blue = (await desk.decode()).pixels.map_rgb()[8, 8]
    assert red > 240
    assert max(green, blue) < 15


@pytest.mark.parametrize("mode", ["1", "L", "P", "I;16", "F"])
async def test_grey_palette_bilevel_and_deep_pictures_keep_their_brightness(desk: Desk, mode: str) -> None:
    ramp = np.tile(np.array([0, 255], dtype=np.uint8), (8, 4))
    match mode:
        case "I;16":
            picture = Image.fromarray((ramp.astype(np.uint16) * 257) // 2)
        case "F":
            picture = Image.fromarray(ramp.astype(np.float32) / 510)
        case _:
            picture = Image.fromarray(ramp).convert(mode)
    picture.save(desk.path, "TIFF" if mode == "F" else "PNG")
    pixels = (await desk.decode()).pixels.map_rgb()[0].tolist()
    high = 127 if mode in ("I;16", "F") else 255
    assert pixels[0] == [0, 0, 0]
    assert pixels[1] == pytest.approx([high] * 3, abs=1)


@pytest.mark.parametrize("format_name", ["GIF", "WEBP", "TIFF", "PNG"])
async def test_of_an_animation_the_first_frame_is_taken_and_all_are_counted(desk: Desk, format_name: str) -> None:
    others = [Image.new("RGB", (40, 24), (n * 60, 0, 0)) for n in range(3)]
    scene().save(desk.path, format_name, save_all=True, append_images=others)
    decoded = await desk.decode()
    assert decoded.frames == 4
    assert decoded.pixels.map_rgb()[4, 4, 0] > 240


async def test_the_stated_resolution_is_passed_on_when_it_makes_sense(desk: Desk) -> None:
    for dpi, expected in [((300, 300), 300), ((300, 150), None), ((0, 0), None)]:
        scene().save(desk.path, "JPEG", dpi=dpi)
        assert (await desk.decode()).dpi == expected
    scene().save(desk.path, "BMP", dpi=(96, 96))
    assert (await desk.decode()).dpi == pytest.approx(96, abs=0.1)


@pytest.mark.parametrize("format_name", FORMATS)
async def test_a_truncated_picture_is_damaged_and_never_half_read(desk: Desk, format_name: str) -> None:
    noise = Image.effect_noise((200, 200), 80).convert("RGB")
    noise.save(desk.path, format_name)
    data = desk.path.read_bytes()
    for share in (0.3, 0.7, 0.95):
        assert (await desk.refused(data[: int(len(data) * share)])).code == "image_damaged"


async def test_flipped_bytes_give_a_picture_or_a_clear_error_and_cost_no_child(decoders: ChildPool, desk: Desk) -> None:
    rng = np.random.default_rng(7)
    codes = set()
    for format_name in FORMATS:
        Image.effect_noise((64, 64), 80).convert("RGB").save(desk.path, format_name)
        data = np.frombuffer(desk.path.read_bytes(), dtype=np.uint8)
        for _ in range(40):
            broken = data.copy()
            broken[rng.integers(0, min(len(broken), 400), 6)] = rng.integers(0, 256, 6)
            desk.path.write_bytes(broken.tobytes())
            try:
                await desk.decode()
            except WorkerError as error:
                codes.add(error.code)
    assert codes <= {"image_damaged", "unsupported_image", "image_too_large", "out_of_memory"}
    assert "image_damaged" in codes
    assert decoders.stats().ready == 1


@pytest.mark.parametrize(
    ("data", "named"),
    [
        (b"<svg xmlns='http://www.w3.org/2000/svg'/>", "SVG"),
        (b"\xef\xbb\xbf<?xml version='1.0'?><svg/>", "SVG"),
        (b"\x00\x00\x00\x18ftypheic\x00\x00\x00\x00mif1heic", "HEIC"),
        (b"\x00\x00\x00\x18ftypavif\x00\x00\x00\x00", "AVIF"),
        (b"%PDF-1.7\n", "inspect_pdf"),
        (b"\x00\x00\x00\x20ftypisom\x00\x00\x02\x00isomiso2avc1mp41", "inspect_video"),
        (b"\x1aE\xdf\xa3\x01\x00\x00\x00", "inspect_video"),
        (b"RIFF\x24\x00\x00\x00WAVEfmt ", "transcribe_audio"),
        (b"<!doctype html><p>", "HTML"),
        (b"P6 2 2 255 " + b"\0" * 12, "not a picture that is known"),
        (b"8BPS" + b"\0" * 40, "not a picture that is known"),
    ],
    ids=["svg", "svg with bom", "heic", "avif", "pdf", "mp4", "mkv", "wav", "html", "ppm", "psd"],
)
async def test_other_files_are_named_with_what_is_accepted(desk: Desk, data: bytes, named: str) -> None:
    error = await desk.refused(data)
    assert error.code == "unsupported_image"
    assert named in error.what
    assert all(name in error.rule for name in FORMATS)


async def test_an_empty_file_is_said_to_be_empty(desk: Desk) -> None:
    error = await desk.refused(b"")
    assert error.code == "image_damaged"
    assert "0 bytes" in error.what


def chunk(kind: bytes, data: bytes) -> bytes:
    """A chunk of a PNG."""
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png_header(width: int, height: int) -> bytes:
    """A PNG that claims a size and holds next to nothing."""
    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", zlib.compress(b"\0" * 100)) + chunk(b"IEND", b"")
    )


async def test_a_bomb_is_refused_by_its_header_with_the_numbers(desk: Desk) -> None:
    error = await desk.refused(png_header(60_000, 60_000))
    assert error.code == "image_too_large"
    assert "60000 x 60000 px = 3600 MP" in error.what
    assert "250 MP" in error.rule
    scene().save(desk.path, "PNG")
    assert (await desk.refused(max_pixels=40 * 24 - 1)).code == "image_too_large"


PARTS = 120


def tall_png(mode: str, width: int, height: int) -> bytes:
    """A PNG of one colour, (9, 8, 7): the compressed rows of its first part again and again, else it takes seconds."""
    kind, pixel = {"RGB": (2, b"\x09\x08\x07"), "RGBA": (6, b"\x09\x08\x07\xff"), "P": (3, b"\x01")}[mode]
    part = (b"\0" + pixel * width) * (height // PARTS)
    packer = zlib.compressobj(1)
    first = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    again = packer.compress(part) + packer.flush(zlib.Z_FULL_FLUSH)
    check = 1
    for _ in range(PARTS):
        check = zlib.adler32(part, check)
    end = b"\x03\0" + struct.pack(">I", check)  # an empty last block
    data = first + again * (PARTS - 1) + end
    palette = chunk(b"PLTE", b"\0\0\0\x09\x08\x07") if mode == "P" else b""
    header = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, kind, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + palette + chunk(b"IDAT", data) + chunk(b"IEND", b"")


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["RGB", "RGBA", "P"])
async def test_a_strip_of_120000_rows_fits_into_the_memory_limit(desk: Desk, mode: str) -> None:
    desk.path.write_bytes(tall_png(mode, 1916, 120_000))
    decoded = await desk.decode()
    assert (decoded.pixels.width_px, decoded.pixels.height_px) == (1916, 120_000)
    assert desk.out_path.stat().st_size == 1916 * 120_000 * 3
    assert decoded.pixels.map_rgb()[[0, 60_000, 119_999], [0, 1000, 1915]].tolist() == [[9, 8, 7]] * 3
