"""A small harmless picture for `doctor image`: one plain shape on a plain ground, another one each time.

No text names the shape, neither in the picture nor in what a tool says of it: who can tell it has seen the picture.
"""

from __future__ import annotations

import secrets
import struct
import zlib
from dataclasses import dataclass

Rgb = tuple[int, int, int]

WIDTH_PX, HEIGHT_PX = 320, 200
RADIUS_PX = 44
GROUND: Rgb = (236, 238, 242)
COLOURS: dict[str, Rgb] = {
    "red": (204, 32, 40),
    "green": (24, 140, 68),
    "blue": (28, 84, 190),
    "orange": (240, 132, 16),
    "purple": (122, 52, 160),
}
SHAPES = ("circle", "square", "triangle", "cross")
PLACES = {"left": 72, "middle": 160, "right": 248}
_MIDDLE_Y = HEIGHT_PX // 2


@dataclass(frozen=True, slots=True)
class DrawnPicture:
    """The file, and what is on it: `element` for people, `colour` at `centre_px` for the check of the pixels."""

    png: bytes
    element: str
    colour: Rgb
    centre_px: tuple[int, int]


def draw_test_picture() -> DrawnPicture:
    """A shape, a colour and a place by chance."""
    shape, colour, place = (secrets.choice(tuple(names)) for names in (SHAPES, COLOURS, PLACES))
    x = PLACES[place]
    rows = b"".join(b"\0" + _row(shape, COLOURS[colour], x, y) for y in range(HEIGHT_PX))
    header = struct.pack(">IIBBBBB", WIDTH_PX, HEIGHT_PX, 8, 2, 0, 0, 0)
    chunks = ((b"IHDR", header), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    png = b"\x89PNG\r\n\x1a\n" + b"".join(_chunk(kind, data) for kind, data in chunks)
    article = "an" if colour == "orange" else "a"
    return DrawnPicture(png, f"{article} {colour} {shape} ({place})", COLOURS[colour], (x, _MIDDLE_Y))


def _row(shape: str, colour: Rgb, centre_x: int, y: int) -> bytes:
    dy = y - _MIDDLE_Y
    return b"".join(bytes(colour if _inside(shape, x - centre_x, dy) else GROUND) for x in range(WIDTH_PX))


def _inside(shape: str, dx: int, dy: int) -> bool:
    if max(abs(dx), abs(dy)) > RADIUS_PX:
        return False
    if shape == "circle":
        return dx * dx + dy * dy <= RADIUS_PX * RADIUS_PX
    if shape == "triangle":
        return 2 * abs(dx) <= dy + RADIUS_PX
    return shape == "square" or min(abs(dx), abs(dy)) <= RADIUS_PX // 3


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
