"""The arguments that mark objects, the same for pictures and videos."""

from __future__ import annotations

from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

from sam2_mcp_worker.engines.ports import Quality
from sam2_mcp_worker.pipelines.prompts import MAX_OBJECTS, MAX_POINTS_PER_OBJECT, MarkedPoint

# More than can be right is refused by prompts.py with its rule; this only bounds what is looked at.
_MAX_LISTED = 10 * MAX_OBJECTS * MAX_POINTS_PER_OBJECT


class PointArgument(BaseModel):
    """A point on an object, or, when not positive, on what does not belong to it."""

    model_config = ConfigDict(extra="forbid")

    object_number: Annotated[int, Field(ge=1, description="n for box n, or the next number for an object of its own")]
    x_px: int
    y_px: int
    positive: bool = True

    def marked(self) -> MarkedPoint:
        """The pipeline's form."""
        return MarkedPoint(self.object_number, self.x_px, self.y_px, self.positive)


BoxArgument = Annotated[list[int], Field(min_length=4, max_length=4)]
BoxesArgument = Annotated[
    list[BoxArgument], Field(max_length=_MAX_LISTED, description="[[x0, y0, x1, y1], ...] px; object n is box n")
]
PointsArgument = Annotated[
    list[PointArgument],
    Field(max_length=_MAX_LISTED, description="Mark an object without a box, or correct the mask of one"),
]
QualityArgument = Annotated[
    Quality, Field(description="'fast' is quicker and coarser; with an ONNX pair there is no difference")
]
