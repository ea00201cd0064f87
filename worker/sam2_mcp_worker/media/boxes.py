"""Arithmetic on axis-aligned boxes `(x0, y0, x1, y1)`; x1 and y1 are exclusive. Pure, any unit."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

AnyBox = Sequence[float]


def area(box: AnyBox) -> float:
    """Width times height; 0 for an empty box."""
    return max(0.0, box[2] - box[0]) * max(0.0, box[3] - box[1])


def overlap(a: AnyBox, b: AnyBox) -> float:
    """Area that two boxes share."""
    return area((max(a[0], b[0]), max(a[1], b[1]), min(a[2], b[2]), min(a[3], b[3])))


def covered_share(box: AnyBox, others: Iterable[AnyBox]) -> float:
    """The greatest share (0-1) of `box` that lies inside one of `others`."""
    whole = area(box)
    if whole <= 0:
        return 1.0
    return max((overlap(box, other) / whole for other in others), default=0.0)


def scaled(box: AnyBox, factor: float) -> tuple[float, float, float, float]:
    """The box with every coordinate multiplied."""
    x0, y0, x1, y1 = (value * factor for value in box)
    return x0, y0, x1, y1


def rounded_out(box: AnyBox, pad: int = 0) -> tuple[int, int, int, int]:
    """The smallest whole-number box around `box`, grown by `pad` on every side and kept at or above 0."""
    return (
        max(0, int(box[0] // 1) - pad),
        max(0, int(box[1] // 1) - pad),
        max(0, -int(-box[2] // 1) + pad),
        max(0, -int(-box[3] // 1) + pad),
    )
