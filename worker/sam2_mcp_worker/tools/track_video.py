"""track_video: objects marked in one frame, followed through a video."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Annotated, Any, overload

from mcp.server.mcpserver import Context, MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from sam2_mcp_worker.media.tracks_file import TrackedFrame
from sam2_mcp_worker.pipelines.track_course import TrackRequest
from sam2_mcp_worker.pipelines.track_report import ObjectSummary, fitting_frames, spacing_of, summarise
from sam2_mcp_worker.pipelines.track_video import Tracking, track_video
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.tools.picture_road import ImageArgument, send
from sam2_mcp_worker.tools.prompt_arguments import BoxesArgument, PointsArgument, QualityArgument
from sam2_mcp_worker.tools.request_arguments import CursorArgument, SourceArgument

# Of a result's characters, what everything but the frames may take.
REST_CHARS = 4000

DESCRIPTION = """\
Follows objects through a video with SAM 2: mark them by boxes and/or points in the frame on screen at start_s, get \
rows [time_s, x0, y0, x1, y1, area_px] per object, or that it is lost. Use inspect_video to read a video. Parameters: \
source (file_... handle, path or https URL), boxes ([x0, y0, x1, y1] px, origin top left), points, start_s, end_s, \
every_s, quality, image, cursor. Without every_s the frames are spread evenly over start_s..end_s, as many as one \
call gets through; with it that spacing is kept, and the rest goes on in the background: call again with the cursor. \
denser_cursor, given as cursor, adds the frames in between. quality: accurate (512 px), balanced (448 px), fast \
(int8: may lose objects sooner). Nothing is known between tracked frames (spacing_s). Artifacts: tracks (all masks; \
for redact_media), contact sheet, time line, annotated video. Ends inside 27 s."""


class TrackedObjectModel(BaseModel):
    """One object. Times and shares are over all frames tracked so far, rows over those not told before."""

    number: int
    first_visible_s: Annotated[float | None, Field(description="Absent: visible in no tracked frame")] = None
    last_visible_s: float | None = None
    visible_share: Annotated[float, Field(description="0-1, of the tracked frames, not of the time")]
    visible: Annotated[list[list[int | float]], Field(description="Rows of time_s, x0, y0, x1, y1, area_px")]
    lost_times_s: Annotated[list[float], Field(description="Tracked frames without the object")]


class FrameCoverage(BaseModel):
    """What became of the planned frames."""

    planned: int
    done: int
    failed_times_s: list[float]
    unreached: int
    unreached_from_s: float | None = None


class TrackedVideo(BaseModel):
    """Times are seconds since the first frame of the video."""

    file: str
    width_px: int
    height_px: int
    duration_s: float
    start_s: Annotated[float, Field(description="Time of the frame that the prompts hold for")]
    end_s: float
    quality: str
    coverage: FrameCoverage
    spacing_s: Annotated[list[float] | None, Field(description="Shortest and longest time between tracked frames")] = (
        None
    )
    objects: list[TrackedObjectModel]
    frames_left_out: Annotated[int | None, Field(description="Frames without room here; `tracks` has them")] = None
    tracks: Annotated[str, Field(description="artifact:// address of all boxes and masks")]
    contact_sheet: str | None = None
    time_line: str | None = None
    annotated_video: str | None = None
    notes: list[str] | None = None
    cursor: Annotated[str | None, Field(description="Call again with it; absent when the range is finished")] = None
    denser_cursor: Annotated[
        str | None, Field(description="Optional: as `cursor`, tracks the frames halfway between as well")
    ] = None
    next_step: str | None = None


def _object(summary: ObjectSummary, frames: Sequence[TrackedFrame]) -> TrackedObjectModel:
    found = [(_ms(frame.time_s), frame.objects[summary.number - 1]) for frame in frames]
    return TrackedObjectModel(
        number=summary.number,
        first_visible_s=_ms(summary.first_visible_s),
        last_visible_s=_ms(summary.last_visible_s),
        visible_share=round(summary.visible_share, 3),
        visible=[[time_s, *one.box_xyxy_px, one.area_px] for time_s, one in found if one.box_xyxy_px is not None],
        lost_times_s=[time_s for time_s, one in found if one.lost],
    )


@overload
def _ms(time_s: float) -> float: ...
@overload
def _ms(time_s: None) -> None: ...
def _ms(time_s: float | None) -> float | None:
    return None if time_s is None else round(time_s, 3)


def _chars(frame: TrackedFrame) -> int:
    """What a frame takes of a result."""
    rows = [[_ms(frame.time_s), one.box_xyxy_px, one.area_px] for one in frame.objects]
    return len(json.dumps(rows))


def _next_step(tracking: Tracking) -> str | None:
    if tracking.cursor is not None:
        return "call track_video again with the same arguments and this cursor"
    if tracking.denser_cursor is not None:
        return "if the spacing is too wide: the same arguments with denser_cursor as cursor"
    return None


def _model(tracking: Tracking, max_chars: int) -> TrackedVideo:
    course, coverage, pictures = tracking.course, tracking.coverage, tracking.pictures
    facts, spacing = course.video.facts, spacing_of(tracking.frames)
    shown = fitting_frames(tracking.new, max_chars - REST_CHARS, _chars)
    return TrackedVideo(
        file=course.video.stored.name,
        width_px=facts.width_px,
        height_px=facts.height_px,
        duration_s=_ms(facts.duration_s),
        start_s=_ms(course.start_s),
        end_s=_ms(course.end_s),
        quality=course.quality,
        coverage=FrameCoverage(
            planned=coverage.planned,
            done=coverage.done,
            failed_times_s=[_ms(time_s) for time_s in coverage.failed_times_s],
            unreached=coverage.unreached,
            unreached_from_s=_ms(coverage.unreached_from_s),
        ),
        spacing_s=[_ms(spacing.shortest_s), _ms(spacing.longest_s)] if spacing else None,
        objects=[_object(one, shown) for one in summarise(tracking.frames, len(course.prompts))],
        frames_left_out=len(tracking.new) - len(shown) or None,
        tracks=pictures.tracks.uri,
        contact_sheet=pictures.contact_sheet.uri if pictures.contact_sheet else None,
        time_line=pictures.time_line.uri if pictures.time_line else None,
        annotated_video=pictures.annotated_video.uri if pictures.annotated_video else None,
        notes=list(tracking.notes) or None,
        cursor=tracking.cursor,
        denser_cursor=tracking.denser_cursor,
        next_step=_next_step(tracking),
    )


def register(server: MCPServer[Any], services: Services) -> None:
    """Add the tool to the server."""

    async def tool(
        ctx: Context[Any, Any],
        source: SourceArgument,
        boxes: BoxesArgument = [],  # noqa: B006 (the schema's default; nothing changes it)
        points: PointsArgument = [],  # noqa: B006
        start_s: Annotated[float, Field(ge=0, description="The prompts hold for the frame on screen then")] = 0.0,
        end_s: Annotated[float | None, Field(ge=0, description="Absent: to the end of the video")] = None,
        every_s: Annotated[
            float | None, Field(gt=0, description="Seconds between frames; absent: as dense as fits one call")
        ] = None,
        quality: QualityArgument = "balanced",
        image: ImageArgument = "auto",
        cursor: CursorArgument = "",
    ) -> Annotated[CallToolResult, TrackedVideo]:
        request = TrackRequest(
            source, boxes, [point.marked() for point in points], start_s, end_s, every_s, quality, cursor
        )

        async def progress(settled: int, planned: int) -> None:
            await ctx.report_progress(settled, planned, f"{settled} of {planned} frames")

        tracking = await track_video(services, request, progress)
        sheet = tracking.pictures.contact_sheet
        return await send(
            services,
            _model(tracking, services.settings.result_max_chars),
            image,
            pictures=[sheet] if sheet else [],
            links=[one for one in tracking.pictures.ready if one is not sheet],
        )

    server.add_tool(
        tool,
        name="track_video",
        title="Follow objects through a video",
        description=DESCRIPTION,
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
