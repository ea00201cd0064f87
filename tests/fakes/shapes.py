"""Drawn pictures with the exact masks of what is in them."""

from __future__ import annotations

from dataclasses import dataclass
from math import cos, pi, sin

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw

Box = tuple[int, int, int, int]


@dataclass(frozen=True, slots=True)
class Scene:
    """A picture and the true pixels of each object on it."""

    picture: Image.Image
    truths: tuple[NDArray[np.bool_], ...]

    @property
    def boxes(self) -> list[Box]:
        """The tight box of each object."""
        return [tight_box(truth) for truth in self.truths]

    @property
    def points(self) -> list[tuple[int, int]]:
        """A point inside each object."""
        return [((x0 + x1) // 2, (y0 + y1) // 2) for x0, y0, x1, y1 in self.boxes]


def scene(width: int = 320, height: int = 240) -> Scene:
    """An ellipse, a star and a rectangle on paper with a little grain, none touching another or the border."""
    picture = Image.blend(
        Image.effect_noise((width, height), 20).convert("RGB"), Image.new("RGB", (width, height), (225, 228, 232)), 0.85
    )
    truths = []
    for colour, draw in (((190, 40, 40), _ellipse), ((30, 80, 170), _star), ((40, 130, 60), _rectangle)):
        mask = Image.new("L", (width, height))
        draw(ImageDraw.Draw(mask), width, height)
        picture.paste(colour, mask=mask)
        truths.append(np.asarray(mask) > 127)
    return Scene(picture, tuple(truths))


def _ellipse(pen: ImageDraw.ImageDraw, width: int, height: int) -> None:
    pen.ellipse((0.06 * width, 0.1 * height, 0.34 * width, 0.5 * height), fill=255)


def _star(pen: ImageDraw.ImageDraw, width: int, height: int) -> None:
    x, y, radius = 0.7 * width, 0.35 * height, 0.28 * height
    radii = [radius if corner % 2 == 0 else 0.45 * radius for corner in range(10)]
    pen.polygon([(x + r * sin(n * pi / 5), y - r * cos(n * pi / 5)) for n, r in enumerate(radii)], fill=255)


def _rectangle(pen: ImageDraw.ImageDraw, width: int, height: int) -> None:
    pen.rectangle((0.2 * width, 0.68 * height, 0.62 * width, 0.9 * height), fill=255)


def tight_box(inside: NDArray[np.bool_]) -> Box:
    """x0, y0, x1, y1 around all that is inside; x1 and y1 exclusive."""
    rows, columns = np.flatnonzero(inside.any(axis=1)), np.flatnonzero(inside.any(axis=0))
    return int(columns[0]), int(rows[0]), int(columns[-1]) + 1, int(rows[-1]) + 1


def iou(a: NDArray[np.bool_], b: NDArray[np.bool_]) -> float:
    """Intersection over union; 1 for two empty masks."""
    union = np.count_nonzero(a | b)
    return np.count_nonzero(a & b) / union if union else 1.0
