"""Which part of a picture is embedded for a prompt: all of it, or a window at native resolution in a huge one.

An encoder sees about 1,024 px. A logo of 40 px on a page of 12,000 px would be 3 px there, and come back as a blot.
Pure arithmetic on sizes and boxes.
"""

from __future__ import annotations

from sam2_mcp_worker.engines.ports import PROMPTS_PER_CHUNK, Box, ObjectPrompt

# Up to here the whole picture is embedded: at half size an encoder still sees what a person points at.
WHOLE_SIDE_PX = 2048
# The smallest window: an encoder's own size, so that nothing is scaled.
WINDOW_SIDE_PX = 1024
# How much wider than its prompt a window is at least: an object is recognised by its surroundings.
CONTEXT = 2
# An object that runs out of its window is looked at again in one that is this much wider.
GROWTH = 4
# Windows lie on a grid of this share of their side, so that prompts close together share one.
GRID_SHARE = 4


def whole(size_px: tuple[int, int]) -> Box:
    """All of a picture of `(width, height)`."""
    return 0, 0, size_px[0], size_px[1]


def has_windows(size_px: tuple[int, int]) -> bool:
    """Whether small prompts on a picture of this size get windows of their own."""
    return max(size_px) > WHOLE_SIDE_PX


def prompts_per_step(size_px: tuple[int, int]) -> int:
    """How many prompts fit one short step: where each may need an embedding of its own, one."""
    return 1 if has_windows(size_px) else PROMPTS_PER_CHUNK


def first_window(prompt: ObjectPrompt, size_px: tuple[int, int]) -> Box:
    """The window to embed for a prompt on a picture of `(width, height)`."""
    x0, y0, x1, y1 = extent(prompt)
    side = WINDOW_SIDE_PX
    while side < CONTEXT * max(x1 - x0, y1 - y0):
        side *= 2
    return _window(extent(prompt), side, size_px)


def wider_window(window: Box, prompt: ObjectPrompt, size_px: tuple[int, int]) -> Box:
    """The next window for an object that does not fit this one."""
    side = max(window[2] - window[0], window[3] - window[1])
    return _window(extent(prompt), GROWTH * side, size_px)


def runs_out(mask_box: Box | None, window: Box, size_px: tuple[int, int]) -> bool:
    """Whether a mask reaches an edge of its window that is not an edge of the picture."""
    if mask_box is None:
        return False
    low = any(mask_box[i] <= window[i] and window[i] > 0 for i in (0, 1))
    return low or any(mask_box[i + 2] >= window[i + 2] and window[i + 2] < size_px[i] for i in (0, 1))


def extent(prompt: ObjectPrompt) -> Box:
    """The box around all that a prompt consists of."""
    boxes = [(x, y, x + 1, y + 1) for x, y, _ in prompt.points]
    if prompt.box_xyxy_px is not None:
        boxes.append(prompt.box_xyxy_px)
    lows, highs = zip(*((box[:2], box[2:]) for box in boxes), strict=True)
    return min(x for x, _ in lows), min(y for _, y in lows), max(x for x, _ in highs), max(y for _, y in highs)


def inside_window(prompt: ObjectPrompt, window: Box) -> ObjectPrompt:
    """The prompt in pixels of the window."""
    x, y = window[:2]
    box = prompt.box_xyxy_px
    moved = (box[0] - x, box[1] - y, box[2] - x, box[3] - y) if box is not None else None
    return ObjectPrompt(moved, tuple((px - x, py - y, positive) for px, py, positive in prompt.points))


def _window(around: Box, side: int, size_px: tuple[int, int]) -> Box:
    """A square of `side` around a box, pushed into the picture; all of the picture where little would be left out."""
    if not has_windows(size_px) or 3 * side >= 2 * max(size_px):
        return whole(size_px)
    x0, x1 = _span(around[0] + around[2], side, size_px[0])
    y0, y1 = _span(around[1] + around[3], side, size_px[1])
    return x0, y0, x1, y1


def _span(twice_centre: int, side: int, length: int) -> tuple[int, int]:
    grid = side // GRID_SHARE
    start = round((twice_centre - side) / 2 / grid) * grid
    start = max(0, min(start, length - side))
    return start, min(length, start + side)
