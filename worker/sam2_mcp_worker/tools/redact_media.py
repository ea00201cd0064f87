"""redact_media: the same picture, PDF or video with chosen parts really gone, and what was verified of it."""

from __future__ import annotations

from typing import Annotated, Any, Literal, TypeVar

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, ConfigDict, Field

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.redact_media import Redaction, redact_media
from sam2_mcp_worker.pipelines.redact_request import RedactRequest
from sam2_mcp_worker.pipelines.redact_request import Region as RequestedRegion
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.tools.picture_road import ImageArgument, send
from sam2_mcp_worker.tools.request_arguments import CursorArgument, SourceArgument

DESCRIPTION = """\
Makes a copy of an image, PDF or video in which chosen parts are gone for good, with their metadata, and verifies it. \
Parameters: source (file_... handle, path or https URL), regions, phrases (text to find and cover; look-alikes in OCR \
are covered too and named), method (pixelate and blur can be reversed), audio, password, image, cursor. A region is \
{box_xyxy_px} (image; video with start_s, end_s), {page_number, box_xyxy_pt} (PDF, as inspect_pdf gives them) or \
{handle} of a mask from segment_image or of tracks from track_video; shape 'mask' cuts a box to its object. The \
result names what was covered, verified and not: status 'incomplete' or not_found means that a phrase may still be \
there. With `cursor`, call again with the same arguments plus it. Ends inside 27 s."""


class Region(BaseModel):
    """A place to cover: one of the boxes or a handle."""

    model_config = ConfigDict(extra="forbid")

    box_xyxy_px: Annotated[list[int], Field(max_length=4, description="Pixels, origin top left")] = []
    box_xyxy_pt: Annotated[list[float], Field(max_length=4, description="PDF: points")] = []
    page_number: Annotated[int, Field(ge=0, description="PDF: page from 1")] = 0
    start_s: Annotated[float, Field(ge=0, description="Video: covered from here")] = 0
    end_s: Annotated[float, Field(ge=0, description="Video: up to here; 0: the end")] = 0
    shape: Annotated[Literal["box", "mask"], Field(description="mask: cut to the object in the box; images")] = "box"
    handle: Annotated[str, Field(max_length=80, description="art_... of a mask or of tracks")] = ""

    def requested(self, number: int) -> RequestedRegion:
        """The pipeline's form."""
        return RequestedRegion(
            number,
            box_xyxy_px=_four(number, self.box_xyxy_px),
            box_xyxy_pt=_four(number, self.box_xyxy_pt),
            page_number=self.page_number or None,
            start_s=self.start_s or None,
            end_s=self.end_s or None,
            shape=self.shape,
            handle=self.handle.strip(),
        )


Number = TypeVar("Number", int, float)


def _four(number: int, values: list[Number]) -> tuple[Number, Number, Number, Number] | None:
    if not values:
        return None
    if len(values) != 4:
        raise WorkerError(
            "region_invalid",
            f"the box of region {number} has {len(values)} numbers",
            rule="a box is [x0, y0, x1, y1]",
            next_step="correct it and call again",
        )
    return values[0], values[1], values[2], values[3]


class RedactedMedia(BaseModel):
    """Result of redact_media."""

    file: str
    kind: Literal["image", "pdf", "video"]
    status: Literal["done", "incomplete", "nothing_covered", "running"]
    redacted: Annotated[str | None, Field(description="artifact:// address of the verified file")] = None
    name: str | None = None
    size_bytes: int | None = None
    covered_count: int | None = None
    covered: Annotated[
        list[dict[str, Any]] | None,
        Field(
            description="Up to 100 areas: region (its number) or phrase, match (near: OCR read something like it, see "
            "read_as), box, page_number, times, shape, source, note"
        ),
    ] = None
    not_found: Annotated[
        list[dict[str, Any]] | None, Field(description="phrase, and the closest text that was read")
    ] = None
    incomplete_because: list[str] | None = None
    method: str | None = None
    method_note: str | None = None
    verified: Annotated[list[str] | None, Field(description="What was checked on the file, and holds")] = None
    not_verified: list[str] | None = None
    notes: list[str] | None = None
    doing: str | None = None
    cursor: str | None = None
    next_step: str | None = None


# More would fill a result; the count tells of all.
MAX_LISTED = 100


def _model(redaction: Redaction) -> RedactedMedia:
    result, artifact = redaction.result, redaction.artifact
    if result is None:
        return RedactedMedia(
            file=redaction.file.name,
            kind=redaction.kind,
            status="running",
            doing=redaction.doing,
            cursor=redaction.cursor,
            next_step="call redact_media again with the same arguments and this cursor; nothing is redacted yet",
        )
    return RedactedMedia(
        file=redaction.file.name,
        kind=redaction.kind,
        status=result["status"],
        redacted=artifact.uri if artifact else None,
        name=artifact.name if artifact else None,
        size_bytes=artifact.size_bytes if artifact else None,
        covered_count=len(result["covered"]),
        covered=result["covered"][:MAX_LISTED] or None,
        not_found=result["not_found"] or None,
        incomplete_because=result["incomplete_because"] or None,
        method=result["method"],
        method_note=result["method_note"],
        verified=result["verified"] or None,
        not_verified=result["not_verified"] or None,
        notes=result["notes"] or None,
    )


def register(server: MCPServer[Any], services: Services) -> None:
    """Add the tool to the server."""

    async def tool(
        source: SourceArgument,
        regions: Annotated[list[Region], Field(max_length=200, description="Places to cover")] = [],  # noqa: B006
        phrases: Annotated[
            list[str], Field(max_length=50, description="Texts to find and cover; 1-200 characters each")
        ] = [],  # noqa: B006
        method: Annotated[
            Literal["fill", "pixelate", "blur"],
            Field(description="fill: gone; the others can be reversed, not for PDFs"),
        ] = "fill",
        audio: Annotated[Literal["keep", "mute"], Field(description="Sound of a video")] = "keep",
        password: Annotated[str, Field(max_length=1000, description="For a PDF that needs one")] = "",
        image: ImageArgument = "auto",
        cursor: CursorArgument = "",
    ) -> Annotated[CallToolResult, RedactedMedia]:
        asked = tuple(region.requested(number) for number, region in enumerate(regions, 1))
        request = RedactRequest(source, asked, tuple(phrases), method, audio, password, cursor)
        redaction = await redact_media(services, request)
        made = [redaction.artifact] if redaction.artifact else []
        pictures, links = (made, []) if redaction.kind == "image" else ([], made)
        return await send(services, _model(redaction), image, pictures=pictures, links=links)

    server.add_tool(
        tool,
        name="redact_media",
        title="Redact an image, PDF or video",
        description=DESCRIPTION,
        annotations=ToolAnnotations(
            read_only_hint=False, destructive_hint=False, idempotent_hint=True, open_world_hint=True
        ),
    )
