"""segment_image: objects of one image, marked by boxes and points, as exact masks."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from sam2_mcp_worker.pipelines.segment_image import Request, Segmentation, segment_image
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.tools.coverage import CoverageModel
from sam2_mcp_worker.tools.picture_road import ImageArgument, send
from sam2_mcp_worker.tools.prompt_arguments import BoxesArgument, PointsArgument, QualityArgument
from sam2_mcp_worker.tools.request_arguments import CursorArgument, SourceArgument

DESCRIPTION = """\
Cuts objects of one image out to exact masks. Mark every object in one call: object n by a box around it, boxes \
[[x0, y0, x1, y1], ...], and/or by points [{object_number, x_px, y_px, positive}, ...]: positive true on the object, \
false on what is not part of it (whole pixels, origin top left, after EXIF rotation). Further parameters: source \
(file_... handle, path or https URL), quality (accurate, balanced, fast), image, cursor. Per object: tight \
box_xyxy_px, area, polygons with holes, touches_border, a PNG mask (for redact_media too); over all: overlay with \
numbers, COCO run lengths. predicted_iou and stability (0-1) are the network's own opinion: look at the overlay. \
blank: nothing found. With `cursor`, call again with the same arguments plus it. Ends inside 27 s."""


class PolygonModel(BaseModel):
    """One part of an object."""

    outer: list[list[int]]
    holes: list[list[list[int]]] | None = None


class SegmentedObject(BaseModel):
    """One object. Only `done` ones were looked for; of a blank one nothing was found."""

    number: int
    status: Literal["done", "failed"]
    blank: Annotated[bool | None, Field(description="True when the network found nothing there")] = None
    reason: Annotated[str | None, Field(description="Why a failed object failed")] = None
    box_xyxy_px: Annotated[list[int] | None, Field(description="Tight box of the mask, x1 and y1 exclusive")] = None
    area_px: int | None = None
    area_pct: Annotated[float | None, Field(description="Per cent of the picture")] = None
    predicted_iou: float | None = None
    stability: Annotated[float | None, Field(description="How little the mask depends on the threshold")] = None
    touches_border: Annotated[bool | None, Field(description="The object may go on beyond the picture")] = None
    polygons: list[PolygonModel] | None = None
    polygon_tolerance_px: float | None = None
    mask: Annotated[str | None, Field(description="artifact:// address of a PNG of the picture's size")] = None


class SegmentedImage(BaseModel):
    """Result of segment_image."""

    file: str
    width_px: int
    height_px: int
    frames: Annotated[int | None, Field(description="Frames of an animation; only the first is used")] = None
    engine: str
    coverage: CoverageModel
    objects: list[SegmentedObject]
    notes: list[str] | None = None
    overlay: Annotated[str | None, Field(description="artifact:// address of the picture with numbered objects")] = None
    coco: Annotated[str | None, Field(description="artifact:// address of all masks as COCO JSON (RLE)")] = None
    cursor: Annotated[str | None, Field(description="Call again with it; absent when everything was delivered")] = None
    next_step: str | None = None


def _model(result: Segmentation) -> SegmentedImage:
    return SegmentedImage(
        file=result.file.name,
        width_px=result.image.width_px,
        height_px=result.image.height_px,
        frames=result.image.frames if result.image.frames != 1 else None,
        engine=result.engine,
        coverage=CoverageModel.of(result.coverage),
        objects=[SegmentedObject(**fields) for fields in result.objects],
        notes=list(result.notes) or None,
        overlay=result.overlay.uri if result.overlay else None,
        coco=result.coco.uri if result.coco else None,
        cursor=result.cursor,
        next_step=_next_step(result),
    )


def _next_step(result: Segmentation) -> str | None:
    if result.cursor:
        return "call segment_image again with the same arguments and this cursor"
    if result.overlay is None:
        return "the overlay picture was not made: call segment_image again with the same arguments for it"
    return None


def register(server: MCPServer[Any], services: Services) -> None:
    """Add the tool to the server."""

    async def tool(
        source: SourceArgument,
        boxes: BoxesArgument = [],  # noqa: B006 (pydantic copies it)
        points: PointsArgument = [],  # noqa: B006
        quality: QualityArgument = "accurate",
        image: ImageArgument = "auto",
        cursor: CursorArgument = "",
    ) -> Annotated[CallToolResult, SegmentedImage]:
        request = Request(source, boxes, [point.marked() for point in points], quality, cursor)
        result = await segment_image(services, request)
        return await send(services, _model(result), image, pictures=[result.overlay] if result.overlay else [])

    server.add_tool(
        tool,
        name="segment_image",
        title="Cut objects out of an image",
        description=DESCRIPTION,
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
