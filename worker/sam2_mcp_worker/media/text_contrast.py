"""Decoder task: how strongly the text in given boxes stands out from the ground right around it.

Owns the measurement of both colours. Text is judged piece by piece along its line, against the ground beside its
strokes: on a photograph each letter has a ground of its own, and one word may have another colour. Thin strokes never
reach their full colour in a picture; how much may be missing makes the range wider. What is enough is not known here.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from sam2_mcp_worker.checks.luminance import WEIGHTS, contrast_ratio, linear, luminance_ratio, relative_luminance
from sam2_mcp_worker.media.line_crop import commonest_colour
from sam2_mcp_worker.media.pixels import PixelFile

Pixels = NDArray[np.uint8]
Reals = NDArray[np.float32]

# A piece of a line is so many heights long: two or three letters, so that each has strokes and ground.
PIECE_HEIGHTS = 3.0
# Around the box, for the ground of letters that fill it.
PAD_HEIGHTS = 0.15
# Of 255, between ground and strongest pixel: less is the noise of paper and JPEG.
FAINTEST = 10.0
# Pixels this far of the way from the ground to the strongest one are the cores of strokes.
CORE = 0.85
# Of the pixels of a piece; the strongest few are noise, or a rule that runs through.
STRONGEST_PERCENTILE = 99.0
# Of the pieces of a line: where fewer show ink, the rest of it is hidden or covered.
LEAST_SEEN = 0.6
# Of the ink of the middle piece: less is a comma, or the edge of a letter at the end of the line.
LEAST_INKED = 0.4
# Strokes of fine print come out this much fainter where they lie across two pixels; a fainter piece has another colour.
SAME_COLOUR = 0.6
# Pixels nearer to the ground than this share of the way are ground, those between are smoothed edges.
GROUND = 0.25
# How far around strokes the ground is what one sees them against.
RING_HEIGHTS = 0.35
# A stroke of regular print is so wide; light faces have 0.05 and bold ones 0.12.
STROKE_EM = 0.06
# A stroke that is wider than this has pixels that it covers whole, wherever it lies on the grid.
WHOLE_STROKE_PX = 2.0
LEAST_COVER = 0.35
# On a photograph the ground is as bright as it is in this share of the pixels on the side of the text's colour.
UNFAVOURABLE = 0.15

# Luminance of many pixels at once.
_LIGHT = np.array([linear(stored) for stored in range(256)])
_WEIGHTS = np.array(WEIGHTS)


@dataclass(frozen=True, slots=True)
class _Seen:
    """A piece as it is: its pixels, both colours, and the share of its pixels that are ink."""

    part: Pixels
    text: Reals
    ground: Reals
    inked: float


@dataclass(frozen=True, slots=True)
class Piece:
    """The ratio that one piece of a line shows, at worst and at best."""

    low: float
    high: float


def text_contrast(params: dict[str, Any]) -> dict[str, Any]:
    """`{pixels, lines: [{box, height_px, own_px}]}` -> `{lines: [...]}`.

    Each line is `{low, high}` or `{reason, unseen}`; `unseen` ones show no ink, or little: a file may hold text that
    nobody sees. `own_px` is the height in the pixels that the text was made of: less than `height_px` where a picture
    was enlarged.

    Raises:
        WorkerError: pixels_unreadable.
    """
    pixels = PixelFile.from_params(params["pixels"])
    return {"lines": [_told(pixels, line["box"], line["height_px"], line["own_px"]) for line in params["lines"]]}


TASKS = {"text_contrast": text_contrast}


def _told(pixels: PixelFile, box: Sequence[float], height_px: float, own_px: float) -> dict[str, Any]:
    pad = max(1.0, PAD_HEIGHTS * height_px)
    x0, y0, x1, y1 = box
    crop = pixels.crop_rgb((int(x0 - pad), int(y0 - pad), int(np.ceil(x1 + pad)), int(np.ceil(y1 + pad))))
    if min(crop.shape[:2]) < 3:
        return {"reason": "the line lies outside of the picture", "unseen": False}
    pieces, seen_share = measured_pieces(crop, height_px, stroke_cover(own_px))
    if seen_share < LEAST_SEEN:
        part = "in much of the line" if pieces else "where the line stands"
        return {"reason": f"no ink was found {part}", "unseen": True}
    middle = sorted(pieces, key=lambda piece: piece.high)[len(pieces) // 2]
    return {
        "low": round(min(piece.low for piece in pieces), 2),
        "high": round(middle.high, 2),
    }


def measured_pieces(crop: Pixels, height_px: float, cover: float) -> tuple[list[Piece], float]:
    """The pieces of a level line that hold letters, along its longer side, and the share of all pieces with ink.

    `cover` as `stroke_cover` tells it.
    """
    tall = crop.shape[0] > crop.shape[1]
    level = np.ascontiguousarray(crop.transpose(1, 0, 2)) if tall else crop
    count = max(1, round(level.shape[1] / (PIECE_HEIGHTS * max(1.0, height_px))))
    parts = np.array_split(level, count, axis=1)
    seen = [one for one in (_seen(np.ascontiguousarray(part)) for part in parts) if one is not None]
    if not seen:
        return [], 0.0
    usual = float(np.median([one.inked for one in seen]))
    letters = [one for one in seen if one.inked >= LEAST_INKED * usual]
    by_strength = sorted(letters, key=lambda one: float(np.linalg.norm(one.text - one.ground)))
    usual_text = by_strength[len(letters) // 2].text  # the very strongest are overshot by JPEG
    measured = [_with_ratios(one, _own_colour(one, usual_text, cover), height_px, cover) for one in letters]
    return measured, len(seen) / len(parts)


def _seen(part: Pixels) -> _Seen | None:
    ground = commonest_colour(part)
    away = np.linalg.norm(part.astype(np.float32) - ground, axis=2)
    strongest = float(np.percentile(away, STRONGEST_PERCENTILE))
    if strongest < FAINTEST:
        return None
    core = away >= CORE * strongest
    text = np.asarray(np.median(part[core], axis=0), np.float32)
    return _Seen(part, text, ground, float((away >= strongest / 2).mean()))


def _own_colour(seen: _Seen, usual: Reals, cover: float) -> Reals:
    """The colour of a piece: the usual one of the line where its own is that one, only smoothed a little more."""
    way = usual - seen.ground
    length = float(way @ way)
    if cover >= 1 or length <= 0:
        return seen.text
    share = float((seen.text - seen.ground) @ way) / length
    beside = float(np.linalg.norm(seen.text - seen.ground - share * way))
    return usual if SAME_COLOUR <= share < 1 and beside <= (1 - SAME_COLOUR) * length**0.5 else seen.text


def _with_ratios(seen: _Seen, text: Reals, height_px: float, cover: float) -> Piece:
    around = _ground_pixels(seen.part, text, seen.ground, height_px)
    beside = np.asarray(np.median(around, axis=0), np.float32)
    luminances = _LIGHT[_few(around)] @ _WEIGHTS
    text_luminance = relative_luminance(text)
    # Of the ground pixels those that come nearest to the text: what a reader has to tell it from.
    nearer = UNFAVOURABLE if np.median(luminances) > text_luminance else 1 - UNFAVOURABLE
    worst = float(np.quantile(luminances, nearer))
    full = np.clip(beside + (text - beside) / cover, 0, 255)
    # Stronger in colour is not always stronger in brightness: blue text on grey may end up nearer to it.
    ratios = (contrast_ratio(text, beside), contrast_ratio(full, beside))
    return Piece(min(luminance_ratio(worst, text_luminance), *ratios), max(ratios))


def stroke_cover(own_px: float) -> float:
    """Of a pixel in the core of a stroke, how much the stroke covers at least: 1 for print that is large enough."""
    return float(np.clip(STROKE_EM * own_px / WHOLE_STROKE_PX, LEAST_COVER, 1.0))


def _ground_pixels(part: Pixels, text: Reals, ground: Reals, height_px: float) -> Pixels:
    """The pixels around strokes that belong neither to them nor to their smoothed edges; (n, 3)."""
    way = text - ground
    along = (part.astype(np.float32) - ground) @ way / max(1.0, float(way @ way))
    strokes = (along > 0.5).astype(np.uint8)
    size = 2 * max(2, round(RING_HEIGHTS * height_px)) + 1
    near = cv2.dilate(strokes, np.ones((size, size), np.uint8)) > 0
    ring = near & (cv2.dilate(strokes, np.ones((3, 3), np.uint8)) == 0)
    found = part[ring] if ring.any() else part[along < GROUND]
    return found if len(found) else np.asarray(ground, np.uint8)[None]


def _few(colours: Pixels) -> Pixels:
    """Enough of them to tell how they are spread."""
    return colours[:: max(1, len(colours) // 200)]
