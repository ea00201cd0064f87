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


def same_line(found: AnyBox, known: AnyBox) -> bool:
    """Whether a line that a reader found is the known one, seen again.

    Boxes of one line differ in height by more than half (a detector pads, a text layer is tight), so the heights are
    compared by the smaller of the two, and the found line must lie within the known one by half of its width.
    """
    common_width = min(found[2], known[2]) - max(found[0], known[0])
    common_height = min(found[3], known[3]) - max(found[1], known[1])
    lower = min(found[3] - found[1], known[3] - known[1])
    return common_width >= 0.5 * (found[2] - found[0]) and common_height >= 0.5 * lower


def united(boxes: Iterable[AnyBox]) -> list[tuple[float, float, float, float]]:
    """Boxes around groups of overlapping boxes, until no two of the results overlap."""
    groups: list[tuple[float, float, float, float]] = []
    for box in boxes:
        current = (box[0], box[1], box[2], box[3])
        while touching := [group for group in groups if overlap(group, current) > 0]:
            groups = [group for group in groups if group not in touching]
            all_of_them = [current, *touching]
            current = (
                min(b[0] for b in all_of_them),
                min(b[1] for b in all_of_them),
                max(b[2] for b in all_of_them),
                max(b[3] for b in all_of_them),
            )
        groups.append(current)
    return groups


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
