"""Boxes and points of a call as the prompts of numbered objects. Pure: knows the size of the picture and nothing else.

Object n is box n; points name their object by number, to correct a box or to mark an object of their own. Whatever is
probably a slip (another scale, width and height for a corner, a gap in the numbers) is refused with the rule, because
a mask of the wrong thing looks as good as one of the right thing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sam2_mcp_worker.engines.ports import Box, ObjectPrompt
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.boxes import area, overlap

# A prompt takes 0.07-0.11 s at 1024 px on two cores (reference/sam.md 3b, 3c): 100 of them about 10 s beside the 4-6 s
# of the picture, one call. More numbers on one overlay nobody can follow either.
MAX_OBJECTS = 100
# SAM was trained with about ten corrections of one object; more do not help, and each lengthens the decoder's input.
MAX_POINTS_PER_OBJECT = 20
# A box that reaches over the edge by a little is a loose box; one of more than this many times the part of it that is
# inside was meant for another scale. Whole, as coordinates are: floats end at 1e308, and what an agent sends does not.
MAX_BOX_TIMES_INSIDE = 2
# Enough of four coordinates to recognise them in an error.
_SHOWN_CHARS = 60


@dataclass(frozen=True, slots=True)
class MarkedPoint:
    """A point of object `object_number` (from 1); a negative one says what does not belong to the object."""

    object_number: int
    x_px: int
    y_px: int
    positive: bool = True


@dataclass(frozen=True, slots=True)
class PictureSize:
    """Size of the picture or video that prompts refer to; `kind` names it in errors."""

    width_px: int
    height_px: int
    kind: str = "picture"

    @property
    def rule(self) -> str:
        """The rule for coordinates, with the numbers."""
        return (
            f"the {self.kind} is {self.width_px} x {self.height_px} px, origin top left: "
            f"x 0-{self.width_px}, y 0-{self.height_px} for boxes, one less for points"
        )


@dataclass(frozen=True, slots=True)
class Prompts:
    """`objects[i]` belongs to object i + 1; `notes` say what was changed."""

    objects: tuple[ObjectPrompt, ...]
    notes: tuple[str, ...] = ()


def object_prompts(boxes: Sequence[Sequence[int]], points: Sequence[MarkedPoint], size: PictureSize) -> Prompts:
    """The prompts of all objects, checked against the picture's size.

    Raises:
        WorkerError: prompt_missing, too_many_objects, too_many_points, object_number_gap, box_invalid,
            prompt_outside, point_missing.
    """
    count = max([len(boxes), *(point.object_number for point in points)])
    _check_numbers(len(boxes), points, count)
    notes: list[str] = []
    objects = []
    for number in range(1, count + 1):
        box = _checked_box(boxes[number - 1], number, size, notes) if number <= len(boxes) else None
        own = [point for point in points if point.object_number == number]
        objects.append(ObjectPrompt(box, _checked_points(own, number, box, size)))
    return Prompts(tuple(objects), tuple(notes))


def _check_numbers(boxes: int, points: Sequence[MarkedPoint], count: int) -> None:
    if count < 1:
        raise WorkerError(
            "prompt_missing",
            "neither boxes nor points were given",
            rule="every object needs a box or at least one positive point",
            next_step="give boxes [[x0, y0, x1, y1], ...] or points [{object_number, x_px, y_px, positive}, ...]",
        )
    if count > MAX_OBJECTS:
        raise WorkerError(
            "too_many_objects",
            f"{count} objects were asked for",
            rule=f"at most {MAX_OBJECTS} in one call",
            next_step="ask for the rest in a further call: the picture is not embedded anew",
        )
    numbered = {point.object_number for point in points} | set(range(1, boxes + 1))
    missing = sorted(set(range(1, count + 1)) - numbered)
    if missing:
        raise WorkerError(
            "object_number_gap",
            f"object {missing[0]} has neither a box nor a point, but object {count} has",
            rule="object n is box n; objects without a box follow with the next numbers, none left out",
            next_step=f"number the points' objects up to {len(numbered)}",
        )


def _checked_box(values: Sequence[int], number: int, size: PictureSize, notes: list[str]) -> Box:
    x0, y0, x1, y1 = values
    shown = str(list(values))[:_SHOWN_CHARS]
    if x1 <= x0 or y1 <= y0:
        raise WorkerError(
            "box_invalid",
            f"box {number} {shown} is empty or reversed",
            rule="a box is [x0, y0, x1, y1] with x0 < x1 and y0 < y1: two corners, not width and height",
            next_step="correct the box and call again",
        )
    inside = (max(0, x0), max(0, y0), min(size.width_px, x1), min(size.height_px, y1))
    if MAX_BOX_TIMES_INSIDE * overlap(values, (0, 0, size.width_px, size.height_px)) < area(values):
        raise WorkerError(
            "prompt_outside",
            f"box {number} {shown} lies {'partly ' if area(inside) else ''}outside the {size.kind}",
            rule=size.rule,
            next_step="give whole pixels of this size",
        )
    if inside != (x0, y0, x1, y1):
        notes.append(f"box {number} reached over the edge of the {size.kind} and was cut to {list(inside)}")
    return inside


def _checked_points(
    points: Sequence[MarkedPoint], number: int, box: Box | None, size: PictureSize
) -> tuple[tuple[int, int, bool], ...]:
    if len(points) > MAX_POINTS_PER_OBJECT:
        raise WorkerError(
            "too_many_points",
            f"object {number} has {len(points)} points",
            rule=f"at most {MAX_POINTS_PER_OBJECT} for one object",
            next_step="keep those that tell the object from its surroundings",
        )
    if box is None and not any(point.positive for point in points):
        raise WorkerError(
            "point_missing",
            f"object {number} has negative points only",
            rule="every object needs a box or at least one positive point",
            next_step="add a point with positive true on the object",
        )
    for point in points:
        if not (0 <= point.x_px < size.width_px and 0 <= point.y_px < size.height_px):
            raise WorkerError(
                "prompt_outside",
                f"point {str((point.x_px, point.y_px))[:_SHOWN_CHARS]} of object {number} lies outside the {size.kind}",
                rule=size.rule,
                next_step="give whole pixels of this size",
            )
    return tuple((point.x_px, point.y_px, point.positive) for point in points)
