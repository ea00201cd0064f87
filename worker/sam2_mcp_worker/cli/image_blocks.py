"""Blocks of a tool's result looked at as a careful client would: which there are, and is the picture in them whole.

Order of the checks: length, strict Base64, signature against the declared type, bounded decoding in a child process.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp_types import (
    AudioContent,
    BlobResourceContents,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
)

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.image import DecodedImage, decode_image
from sam2_mcp_worker.media.pixels import PixelFile
from sam2_mcp_worker.media.signatures import check_type, decode_strictly

# What models take of one picture, before Base64 (reference/vision.md 1).
CLIENT_LIMIT_BYTES = 3_700_000
# A picture in a result is at most 1568 px on a side; this is what a careless client would still decode.
CLIENT_LIMIT_PIXELS = 64_000_000
DECODE_LIMIT_S = 20.0
_HIDDEN_PICTURE = re.compile(r"data:image/|iVBORw0KGgo|/9j/4[A-Za-z0-9+/]{20}")


@dataclass(frozen=True, slots=True)
class SeenPicture:
    """A picture block after all checks; `data` never goes into a record."""

    data: bytes
    mime_type: str
    base64_chars: int
    decoded: DecodedImage

    @property
    def sha256(self) -> str:
        return hashlib.sha256(self.data).hexdigest()


def describe_blocks(content: Sequence[Any]) -> list[dict[str, Any]]:
    """Number and types of the blocks with their sizes, without their contents."""
    return [_described(block) for block in content]


def _described(block: Any) -> dict[str, Any]:
    about: dict[str, Any] = {"type": block.type}
    if isinstance(block, TextContent):
        about["characters"] = len(block.text)
    elif isinstance(block, ImageContent | AudioContent):
        about |= {"mime_type": block.mime_type, "base64_characters": len(block.data)}
    elif isinstance(block, ResourceLink):
        about |= {"mime_type": block.mime_type or "none", "name": block.name}
    elif isinstance(block, EmbeddedResource):
        kind = "blob" if isinstance(block.resource, BlobResourceContents) else "text"
        about |= {"mime_type": block.resource.mime_type or "none", "holds": kind}
    if (notes := getattr(block, "annotations", None)) is not None and notes.audience:
        about["audience"] = "+".join(notes.audience)
    return about


def image_block(result: CallToolResult) -> ImageContent:
    """The first picture of a result.

    Raises:
        WorkerError: there is none; the text says in which other shape the picture came, and the mend of that.
    """
    for block in result.content:
        if isinstance(block, ImageContent):
            return block
    raise _no_picture(result)


def _no_picture(result: CallToolResult) -> WorkerError:
    rule = "a picture is an `image` block with `data` and `mimeType`"
    texts = "\n".join(block.text for block in result.content if isinstance(block, TextContent))
    if _HIDDEN_PICTURE.search(texts):
        what, mend = "the picture came as Base64 inside a text block", "the server must send it as an image block"
    elif any(isinstance(block, EmbeddedResource) for block in result.content):
        what, mend = "the picture came as an embedded resource", "the host must read blobs of resources"
    elif any(isinstance(block, ResourceLink) for block in result.content):
        reason = _not_shown(texts)
        what = f"only the place of the picture came (resource_link{': ' + reason if reason else ''})"
        mend = "fetch it with resources/read, or raise SAM2_MCP_MAX_IMAGE_BLOCK_BYTES if the picture was too large"
    else:
        what, mend = "no block holds a picture", "update the worker, and look into its log for the call"
    return WorkerError("no_image_block", what, rule=rule, next_step=mend)


def _not_shown(texts: str) -> str:
    """Why the worker says that it did not show the picture."""
    pictures = text_facts(texts).get("pictures", [])
    return next((str(one["not_shown"]) for one in pictures if "not_shown" in one), "")


def text_facts(text: str) -> dict[str, Any]:
    """The facts in a result's text block; empty where it is no JSON object."""
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}


def check_order(result: CallToolResult) -> str:
    """Text first, and nothing structured beside a picture.

    Raises:
        WorkerError: a host that reads the first block only, or prefers structured content, would miss something.
    """
    mend = "update the worker: its results are not made for hosts that read one block"
    if not result.content or not isinstance(result.content[0], TextContent):
        raise WorkerError("text_not_first", "the first block is no text", next_step=mend)
    if result.structured_content is not None:
        raise WorkerError("structured_beside_picture", "hosts that find structured content show nothing else")
    return f"{len(result.content)} blocks, text first, no structured content beside the picture"


def decoded_data(data: str, limit_bytes: int = CLIENT_LIMIT_BYTES) -> bytes:
    """The bytes of a block, by length limit and strict Base64.

    Raises:
        WorkerError: base64_too_long, base64_invalid, with what to do.
    """
    try:
        return decode_strictly(data, limit_bytes)
    except WorkerError as error:
        mend = "something between worker and client changed or cut the data: compare with a call straight to the worker"
        raise WorkerError(error.code, error.what, rule=error.rule, next_step=mend) from error


def check_declared(data: bytes, mime_type: str) -> str:
    """Signature against declared type.

    Raises:
        WorkerError: media_type_mismatch.
    """
    try:
        check_type(data, mime_type)
    except WorkerError as error:
        mend = "declare the type that the bytes are of"
        raise WorkerError(error.code, error.what, rule=error.rule, next_step=mend) from error
    return f"declared and found {mime_type}"


async def decode(
    decoders: TaskRunner, data: bytes, folder: Path, name: str, max_pixels: int = CLIENT_LIMIT_PIXELS
) -> DecodedImage:
    """The picture to pixels, bounded in pixels, memory and time.

    Raises:
        WorkerError: image_damaged, image_too_large, unsupported_image, or the child ran out of time or memory.
    """
    path = folder / name
    path.write_bytes(data)
    return await decode_image(
        decoders,
        path,
        folder / f"{name}.rgb",
        max_pixels=max_pixels,
        timeout_s=DECODE_LIMIT_S,
        job="doctor",
    )


def colour_at(pixels: PixelFile, x: float, y: float) -> tuple[int, int, int]:
    """The colour of a picture at a place given in shares of its width and height."""
    column = min(pixels.width_px - 1, int(x * pixels.width_px))
    row = min(pixels.height_px - 1, int(y * pixels.height_px))
    with pixels.path.open("rb") as file:
        file.seek((row * pixels.width_px + column) * 3)
        red, green, blue = file.read(3)
    return red, green, blue
