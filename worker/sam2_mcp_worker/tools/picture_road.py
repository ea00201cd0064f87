"""The one road by which pictures, sounds and documents leave with a result.

The first text block carries every fact, also those of each picture: what it is of, its type, size, bytes, SHA-256 and
the limits it was made for. Then come the blocks, then links to everything in full. What is above the cap, cannot be
decoded or has no time left is a link, and the text says why. Nothing here is ever logged.
"""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Sequence
from dataclasses import asdict
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import anyio
from mcp_types import (
    Annotations,
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    TextResourceContents,
)
from pydantic import BaseModel, Field

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.outgoing_picture import (
    PictureLimits,
    inline_limits,
    outgoing_picture,
    thumb_limits,
)
from sam2_mcp_worker.media.signatures import base64_chars, check_type, decode_strictly
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.tools.host_profile import HostProfile, current_profile
from sam2_mcp_worker.tools.reply import reply, result_text

Show = Literal["auto", "none", "thumb", "inline"]
ImageArgument = Annotated[
    Show,
    Field(description="Picture in the result; auto: by the host"),
]

# Hosts that show the user what they show the model need no second block; it is a hint, no promise.
FOR_BOTH = Annotations(audience=["user", "assistant"], priority=0.9)
FOR_USER = Annotations(audience=["user"], priority=0.5)
# Of what a call keeps for its answer, the share that pictures may take; serialising has the rest.
MARGIN_SHARE = 0.5
# Where MCP clients give up an event, and some hosts an answer (reference/mcp.md 8); the bridge may tell less.
MAX_ANSWER_BYTES = 2**20
# Of these: ids, block types, links and `_meta`.
ANSWER_FRAME_BYTES = 8 * 1024
# A picture that must be smaller than that is worth less than its link.
SMALLEST_BLOCK_BYTES = 2 * 1024


async def send(
    services: Services,
    result: BaseModel,
    show: Show = "auto",
    *,
    pictures: Sequence[Artifact] = (),
    sounds: Sequence[Artifact] = (),
    documents: Sequence[Artifact] = (),
    links: Sequence[Artifact] = (),
    meta: dict[str, Any] | None = None,
) -> CallToolResult:
    """A tool's answer with what there is to see and to hear.

    Args:
        show: the tool's `image` argument.
        pictures: shown as image blocks (`thumb`, `inline`) and linked.
        sounds: sent as audio blocks with `inline`, else linked.
        documents: texts such as reports, embedded with `inline`, else linked.
        links: everything else that is linked.

    Beside a picture or a sound there is no structured content: hosts that find it show the model nothing else.
    """
    shown, profile = _resolved(show, current_profile()), current_profile()
    wanted = pictures if shown != "none" else ()
    whole = [*sounds, *documents] if shown == "inline" else []
    load = _Load(services, _cap_bytes(services, result, profile, len(wanted) + len(whole)))
    seen = await asyncio.gather(*(load.picture(one, thumb=shown == "thumb") for one in wanted))
    heard = [await load.sound(one) for one in sounds if one in whole]
    blocks = [block for block, _ in (*seen, *heard) if block is not None]
    told = {key: [facts for _, facts in made] for key, made in (("pictures", seen), ("sounds", heard)) if made}
    embedded = [block for one in documents if one in whole and (block := await load.document(one)) is not None]
    answer = reply(result, [*pictures, *sounds, *documents, *links], extra=told, meta=meta)
    text, *linked = answer.content
    structured = None if blocks else answer.structured_content
    return answer.model_copy(update={"content": [text, *blocks, *linked, *embedded], "structured_content": structured})


def shows_pictures(show: Show) -> bool:
    """Whether a call with this `image` argument wants any."""
    return _resolved(show, current_profile()) != "none"


async def artifacts_of(services: Services, handles: Sequence[str]) -> list[Artifact]:
    """Those of them that are still there."""

    def held() -> list[Artifact]:
        return [found for handle in handles if (found := services.artifacts.find(handle)) is not None]

    return await anyio.to_thread.run_sync(held)


def _resolved(show: Show, profile: HostProfile) -> Literal["none", "thumb", "inline"]:
    """The station's agents read the first text block only, and its models see no picture (reference/station.md 1.6)."""
    if show != "auto":
        return show
    return "none" if profile.is_station else "thumb"


def _cap_bytes(services: Services, result: BaseModel, profile: HostProfile, count: int) -> int:
    """Most bytes of one block: of the setting and of what the host's line has room for, shared by all blocks."""
    answer_bytes = min(profile.max_answer_bytes or MAX_ANSWER_BYTES, MAX_ANSWER_BYTES)
    # The bridge's line is ASCII, and a text in it is quoted once more; beside documents alone it comes twice.
    taken = 2 * len(json.dumps(result_text(result)[0])) + ANSWER_FRAME_BYTES
    room = max(0, answer_bytes - taken) * 3 // 4  # of Base64
    return min(services.settings.max_image_block_bytes, room) // max(1, count)


class _Load:
    """Makes blocks of at most `cap_bytes` each."""

    def __init__(self, services: Services, cap_bytes: int) -> None:
        self._services = services
        self._cap_bytes = cap_bytes

    async def picture(self, artifact: Artifact, *, thumb: bool) -> tuple[ImageContent | None, dict[str, Any]]:
        """The block, if there can be one, and its facts for the text."""
        limits = thumb_limits(self._cap_bytes) if thumb else inline_limits(self._cap_bytes)
        try:
            made = await self._made(artifact, limits)
            data = made.pop("data")
            _check(data, made["mime_type"], limits.max_bytes)
        except WorkerError as error:
            return None, {"artifact": artifact.uri, "not_shown": error.reason}
        block = ImageContent(type="image", data=data, mime_type=made["mime_type"], annotations=FOR_BOTH)
        facts = {"artifact": artifact.uri, "shown": "thumb" if thumb else "inline"} | made
        return block, facts | {
            "base64_chars": len(data),
            "limit_side_px": limits.max_side_px,
            "limit_area_px": limits.max_area_px,
            "limit_bytes": limits.max_bytes,
        }

    async def _made(self, artifact: Artifact, limits: PictureLimits) -> dict[str, Any]:
        """The picture's facts and `data`; kept, so that a repeated call makes nothing anew."""
        if limits.max_bytes < SMALLEST_BLOCK_BYTES:
            raise WorkerError("no_room", f"the answer has {limits.max_bytes} bytes left for a picture")
        deadline = current_deadline()
        path = await self._path(artifact)
        try:
            about = await anyio.Path(path).stat()
        except OSError as error:
            raise _gone() from error
        # An artifact that is made anew may keep its handle.
        key = cache_key("picture", artifact.handle, about.st_mtime_ns, about.st_size, asdict(limits))
        try:
            async with asyncio.timeout(deadline.remaining_s() + deadline.margin_s * MARGIN_SHARE):
                make = partial(self._make, path, limits, artifact.handle)
                return dict(await self._services.cache.get_or_compute(key, make))
        except TimeoutError as error:
            raise WorkerError("deadline", "no time was left for the picture") from error

    async def _make(self, path: Path, limits: PictureLimits, job: str) -> dict[str, Any]:
        settings = self._services.settings
        with self._services.work_directory("picture") as folder:
            made = await outgoing_picture(
                self._services.decoders,
                path,
                folder / "picture",
                limits,
                max_pixels=settings.max_picture_pixels,
                timeout_s=settings.step_timeout_s,
                job=job,
            )
        return {
            "mime_type": made.mime_type,
            "width_px": made.width_px,
            "height_px": made.height_px,
            "of_width_px": made.of_size_px[0],
            "of_height_px": made.of_size_px[1],
            "bytes": len(made.data),
            "sha256": made.sha256,
            "data": _encoded(made.data),
        }

    async def sound(self, artifact: Artifact) -> tuple[AudioContent | None, dict[str, Any]]:
        """The block, if there can be one, and its facts for the text. Sounds are sent as they are or not at all."""
        try:
            raw = await self._read(artifact)
            data = _encoded(raw)
            _check(data, artifact.mime_type, self._cap_bytes)
        except WorkerError as error:
            return None, {"artifact": artifact.uri, "not_sent": error.reason}
        block = AudioContent(type="audio", data=data, mime_type=artifact.mime_type, annotations=FOR_BOTH)
        facts = {"artifact": artifact.uri, "mime_type": artifact.mime_type, "bytes": len(raw)}
        return block, facts | {"base64_chars": len(data), "limit_bytes": self._cap_bytes}

    async def document(self, artifact: Artifact) -> EmbeddedResource | None:
        """A text for people, whole, or None: then its link has to do."""
        try:
            text = (await self._read(artifact)).decode("utf-8")
        except (WorkerError, UnicodeDecodeError):
            return None
        if len(json.dumps(text)) > base64_chars(self._cap_bytes):  # as the bridge writes it
            return None
        contents = TextResourceContents(uri=artifact.uri, mime_type=artifact.mime_type, text=text)
        return EmbeddedResource(type="resource", resource=contents, annotations=FOR_USER)

    async def _read(self, artifact: Artifact) -> bytes:
        path = anyio.Path(await self._path(artifact))
        try:
            size_bytes = (await path.stat()).st_size  # one that is still being written is told with 0
            if size_bytes > self._cap_bytes:
                raise WorkerError("too_large", f"{size_bytes} bytes", rule=f"at most {self._cap_bytes} in a result")
            return await path.read_bytes()
        except OSError as error:
            raise _gone() from error

    async def _path(self, artifact: Artifact) -> Path:
        return (await anyio.to_thread.run_sync(self._services.artifacts.get, artifact.handle))[1]


def _gone() -> WorkerError:
    return WorkerError("artifact_gone", "it is not there any more")


def _encoded(data: bytes) -> str:
    return base64.b64encode(data).decode("ascii")


def _check(data: str, mime_type: str, max_bytes: int) -> None:
    """Look at what is about to leave as a client will look at it."""
    check_type(decode_strictly(data, max_bytes), mime_type)
