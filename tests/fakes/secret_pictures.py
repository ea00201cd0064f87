"""Fifty small pictures, each with a secret in its print and, where the format allows it, in everything beside it.

Formats, colour modes, EXIF turns, thumbnails, comments, profiles and transparency take turns by coprime steps, so that
fifty pictures see them in many combinations.
"""

from __future__ import annotations

import io
import random
from dataclasses import dataclass
from pathlib import Path

from PIL import Image, ImageCms, ImageDraw, PngImagePlugin, TiffImagePlugin

from sam2_mcp_worker.demo.fonts import find_fonts, load_font

COUNT = 50
SIZE = (600, 150)
SECRETS = (
    "홍길동",
    "김서연 고객",
    "Nightingale",
    "110-234-567890",
    "주민번호 900101",
    "Project Falcon",
    "박지훈",
    "Confidential",
)
KEPT = ("보험 계약 안내", "Terms and conditions", "매월 납입 합니다")
SUFFIXES = ("png", "jpg", "webp", "tif", "bmp", "gif")
MODES = {
    "png": ("RGB", "L", "P", "RGBA", "LA", "I;16", "1"),
    "jpg": ("RGB", "L", "CMYK"),
    "webp": ("RGB", "RGBA"),
    "tif": ("RGB", "L", "CMYK", "RGBA", "I;16"),
    "bmp": ("RGB", "L", "P"),
    "gif": ("P", "L"),
}
_ORIENTATION, _DESCRIPTION, _ARTIST = 0x0112, 0x010E, 0x013B
# How a stored picture is made so that the turn that EXIF asks for makes it upright.
_UNDO = {
    1: None,
    2: Image.Transpose.FLIP_LEFT_RIGHT,
    3: Image.Transpose.ROTATE_180,
    4: Image.Transpose.FLIP_TOP_BOTTOM,
    5: Image.Transpose.TRANSPOSE,
    6: Image.Transpose.ROTATE_90,
    7: Image.Transpose.TRANSVERSE,
    8: Image.Transpose.ROTATE_270,
}


@dataclass(frozen=True, slots=True)
class SecretPicture:
    """A file, the words that must go, and the words beside them that must stay."""

    path: Path
    secret: str
    kept: str
    mode: str
    orientation: int


def secret_picture(number: int, folder: Path) -> SecretPicture:
    """Picture `number` of `COUNT`."""
    suffix = SUFFIXES[number % len(SUFFIXES)]
    mode = MODES[suffix][number // len(SUFFIXES) % len(MODES[suffix])]
    secret, kept = SECRETS[number % len(SECRETS)], KEPT[number % len(KEPT)]
    orientation = 1 + number % 8 if suffix in ("jpg", "png", "webp") else 1
    path = folder / f"picture-{number}.{suffix}"
    picture = _in_mode(_drawn(number, secret, kept), mode, secret)
    undo = _UNDO[orientation]
    stored = picture if undo is None else picture.transpose(undo)
    _save(stored, path, secret, orientation)
    return SecretPicture(path, secret, kept, mode, orientation)


def _drawn(number: int, secret: str, kept: str) -> Image.Image:
    """Two lines at places that differ, the secret above or below."""
    place = random.Random(number)
    paper, ink = [("white", "black"), ("#fff8e0", "#202060"), ("#204060", "white")][number % 3]
    picture = Image.new("RGB", SIZE, paper)
    pen, font = ImageDraw.Draw(picture), load_font(find_fonts()["body"], 26)
    lines = [secret, kept] if number % 2 else [kept, secret]
    for row, text in enumerate(lines):
        pen.text((20 + place.randrange(90), 18 + 70 * row + place.randrange(12)), text, font=font, fill=ink)
    return picture


def _in_mode(picture: Image.Image, mode: str, secret: str) -> Image.Image:
    if mode in ("RGBA", "LA"):
        return _with_hidden_print(picture, mode, secret)
    if mode == "I;16":
        return picture.convert("I").point(lambda value: value * 257).convert("I;16")
    return picture.convert(mode)


def _with_hidden_print(picture: Image.Image, mode: str, secret: str) -> Image.Image:
    """The secret once more, in colours that full transparency hides."""
    alpha = Image.new("L", picture.size, 255)
    alpha.paste(0, (400, 0, *picture.size))
    font = load_font(find_fonts()["body"], 22)
    ImageDraw.Draw(picture).text((405, 55), secret, font=font, fill="red")
    seen = picture.convert("RGB" if mode == "RGBA" else "L")
    seen.putalpha(alpha)
    return seen


def _save(picture: Image.Image, path: Path, secret: str, orientation: int) -> None:
    suffix = path.suffix
    exif = Image.Exif()
    exif[_ORIENTATION] = orientation
    exif[_DESCRIPTION] = exif[_ARTIST] = f"of {secret}"
    if suffix == ".png":
        about = PngImagePlugin.PngInfo()
        about.add_itxt("Description", secret, zip=len(secret) % 2 == 0)
        about.add_text("Comment", secret.encode("utf-8").decode("latin-1"))
        picture.save(path, pnginfo=about, exif=exif, dpi=(200, 200), icc_profile=_profile())
    elif suffix == ".jpg":
        data = _with_thumbnail(picture, exif, secret)
        picture.save(path, quality=93, exif=data, comment=secret.encode("utf-8"), icc_profile=_profile())
    elif suffix == ".webp":
        picture.save(path, lossless=True, exif=exif, xmp=f"<x>{secret}</x>".encode())
    elif suffix == ".tif":
        about = TiffImagePlugin.ImageFileDirectory_v2()
        about[700] = f"<x>{secret}</x>".encode()  # XMP
        picture.save(path, tiffinfo=about, compression="tiff_lzw")
    elif suffix == ".gif":
        picture.save(path, comment=secret.encode("utf-8"))
    else:
        picture.save(path)


def _profile() -> bytes:
    return ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()


def _with_thumbnail(picture: Image.Image, exif: Image.Exif, secret: str) -> bytes:
    """EXIF whose second directory holds a JPEG of the whole picture, as cameras write it."""
    small = io.BytesIO()
    picture.convert("RGB").resize((300, 75)).save(small, "JPEG", comment=secret.encode("utf-8"))
    data = small.getvalue()
    head = exif.tobytes()
    tiff = bytearray(head[6:])  # behind "Exif\0\0"
    order = "little" if tiff[:2] == b"II" else "big"
    first = int.from_bytes(tiff[4:8], order)
    entries = int.from_bytes(tiff[first : first + 2], order)
    link = first + 2 + 12 * entries
    second = len(tiff)
    tiff[link : link + 4] = second.to_bytes(4, order)
    start = second + 2 + 2 * 12 + 4

    def entry(tag: int, value: int) -> bytes:
        return tag.to_bytes(2, order) + (4).to_bytes(2, order) + (1).to_bytes(4, order) + value.to_bytes(4, order)

    tiff += (2).to_bytes(2, order) + entry(0x0201, start) + entry(0x0202, len(data)) + bytes(4) + data
    return head[:6] + bytes(tiff)
