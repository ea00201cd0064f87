"""`doctor image`: one picture along the whole road, and at which stage it was lost, if it was.

Making a picture, showing it to the person and giving it to the model are three successes, and each can fail alone. From
here the bytes can be followed as far as a client gets them; what a host does with them only the host can show.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
import sys
import tempfile
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib.metadata import version
from pathlib import Path
from typing import Any

import anyio
from mcp import Client, MCPError
from mcp_types import BlobResourceContents, CallToolResult, ImageContent, ResourceLink

from sam2_mcp_worker.cli import image_blocks as blocks
from sam2_mcp_worker.cli.client import WorkerClient, first_text
from sam2_mcp_worker.cli.drawn_picture import DrawnPicture, draw_test_picture
from sam2_mcp_worker.cli.image_record import Record
from sam2_mcp_worker.cli.logs import set_up_logging
from sam2_mcp_worker.cli.server import running_worker
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import ChildPool
from sam2_mcp_worker.execution.port import TaskRunner
from sam2_mcp_worker.media.decoder import DECODER_MEMORY_LIMIT_BYTES, DECODER_MODULE
from sam2_mcp_worker.media.image import DecodedImage
from sam2_mcp_worker.media.signatures import media_type_of, type_of_name
from sam2_mcp_worker.settings import Settings

# It gives a picture back without a network of masks, without a key and without money; one pixel of it is covered.
TOOL = "redact_media"
COVERED = [{"box_xyxy_px": [0, 0, 1, 1]}]
# Places compared, in shares of width and height; colours may differ by compression, edges by scaling.
GRID = [(0.05 + 0.1 * x, 0.05 + 0.1 * y) for x in range(10) for y in range(10)]
SAME_COLOUR = 48
SAME_SHARE = 0.85
LIST_PAGES = 12
logger = logging.getLogger(__name__)

ROAD = ("the bridge and the host", "shown to the person", "given to the model")


@dataclass(slots=True)
class _Walk:
    """What the stages hand on to each other."""

    record: Record
    decoders: TaskRunner
    folder: Path
    path: Path
    drawn: DrawnPicture | None
    max_pixels: int
    max_bytes: int
    worker: WorkerClient | None = None
    original: DecodedImage | None = None
    handle: str = ""
    result: CallToolResult | None = None
    data: bytes = b""
    decoded: DecodedImage | None = None
    links: list[ResourceLink] = field(default_factory=list)

    async def walk(self) -> None:
        """All stages, up to the first that makes the following ones useless."""
        check = self.record.check
        if not await check("the file", self.file) and self.original is None:
            return
        if await check("upload", self.upload):
            async with self._reached.session() as client:
                await self.session(client)

    @property
    def _reached(self) -> WorkerClient:
        assert self.worker is not None
        return self.worker

    async def session(self, client: Client) -> None:
        """What a client gets."""
        self.record.mcp_revision = client.protocol_version
        if client.server_info is not None:
            self.record.versions["server"] = f"{client.server_info.name} {client.server_info.version}"
        check = self.record.check
        if not await check("tool call", lambda: self.call(client)):
            return
        if await check("image block", self.block):
            await check("order of the blocks", self.order)
            if await check("strict Base64", self.base64) and await check("type", self.declared):
                if await check("bounded decoding", self.decode):
                    await check("same picture", self.same)
                await check("facts in the text", self.facts)
        if await check("resources/list", lambda: self.listed(client)):
            await check("resources/read", lambda: self.read_back(client))

    async def file(self) -> str:
        """The picture as it comes in."""
        data = await self._bytes()
        found, promised = media_type_of(data[:64]), type_of_name(self.path.name)
        self.original = await blocks.decode(self.decoders, data, self.folder, "original", self.max_pixels)
        size = f"{self.original.pixels.width_px} x {self.original.pixels.height_px} px"
        if promised is not None and found is not None and promised != found:
            raise WorkerError(
                "media_type_mismatch",
                f"the name promises {promised}, the bytes are {found} ({size}, whole)",
                next_step="rename the file: hosts that go by the name will not show it",
            )
        turned = ", turned by EXIF" if self.original.rotated else ""
        return f"{self.original.format}, {len(data)} bytes, decoded whole: {size}{turned}"

    async def _bytes(self) -> bytes:
        path = anyio.Path(self.path)
        try:
            if await path.exists() and not await path.is_file():  # a pipe or a device might never end
                raise WorkerError("file_unreadable", "it is no plain file", next_step="name a picture file")
            size_bytes = (await path.stat()).st_size
            if size_bytes > self.max_bytes:
                raise WorkerError(
                    "file_too_large",
                    f"{size_bytes} bytes",
                    rule=f"at most {self.max_bytes} (SAM2_MCP_MAX_UPLOAD_BYTES)",
                    next_step="name a smaller picture file",
                )
            return await path.read_bytes()
        except OSError as error:
            raise WorkerError("file_unreadable", f"{error.strerror}", next_step="check the path") from error

    async def upload(self) -> str:
        self.handle = await self._reached.upload(self.path)
        return f"stored as {self.handle}"

    async def call(self, client: Client) -> str:
        arguments = {"source": self.handle, "regions": COVERED, "image": "inline"}
        self.result = await client.call_tool(TOOL, arguments)
        self.record.blocks = blocks.describe_blocks(self.result.content)
        if self.result.is_error:
            raise WorkerError("tool_error", first_text(self.result)[:300], next_step=f"mend what {TOOL} complains of")
        self.links = [block for block in self.result.content if isinstance(block, ResourceLink)]
        return f"{TOOL} with image=inline, one pixel covered"

    def _block(self) -> ImageContent:
        assert self.result is not None
        return blocks.image_block(self.result)

    async def block(self) -> str:
        block = self._block()
        audience = "+".join(block.annotations.audience or ()) if block.annotations else ""
        return f"{block.mime_type}, audience {audience or 'not said'}"

    async def order(self) -> str:
        assert self.result is not None
        return blocks.check_order(self.result)

    async def base64(self) -> str:
        text = self._block().data
        self.data = blocks.decoded_data(text)
        return f"{len(text)} characters, {len(self.data)} bytes; a client may refuse above {blocks.CLIENT_LIMIT_BYTES}"

    async def declared(self) -> str:
        return blocks.check_declared(self.data, self._block().mime_type)

    async def decode(self) -> str:
        self.decoded = await blocks.decode(self.decoders, self.data, self.folder, "block")
        pixels = self.decoded.pixels
        return f"{self.decoded.format}, {pixels.width_px} x {pixels.height_px} px"

    async def same(self) -> str:
        """Whether the pixels are those that were sent."""
        assert self.original is not None
        assert self.decoded is not None
        sent, came = self.original.pixels, self.decoded.pixels
        alike = sum(_near(blocks.colour_at(sent, x, y), blocks.colour_at(came, x, y)) for x, y in GRID)
        if alike < SAME_SHARE * len(GRID):
            raise WorkerError(
                "another_picture",
                f"{alike} of {len(GRID)} places have the colour that was sent",
                next_step="report it with this record: the worker sent another picture",
            )
        if self.drawn is not None:
            x, y = self.drawn.centre_px
            seen = blocks.colour_at(came, x / sent.width_px, y / sent.height_px)
            self.record.read.append("the pixels of the shape in the test picture, out of the block as it came")
            if not _near(seen, self.drawn.colour):
                raise WorkerError("shape_missing", "the shape of the test picture is not where it was drawn")
        return f"{alike} of {len(GRID)} places have the colour that was sent"

    async def facts(self) -> str:
        """Whether the text tells of the block what is true."""
        assert self.result is not None
        told = blocks.text_facts(first_text(self.result)).get("pictures", [])
        shown = next((one for one in told if "sha256" in one), None)
        if shown is None:
            raise WorkerError("facts_missing", "the text says nothing of the picture", next_step="update the worker")
        true = {"bytes": len(self.data), "base64_chars": len(self._block().data), "mime_type": self._block().mime_type}
        if self.decoded is not None:
            true |= {"width_px": self.decoded.pixels.width_px, "height_px": self.decoded.pixels.height_px}
        wrong = [name for name, value in true.items() if shown.get(name) != value]
        if wrong:
            raise WorkerError("facts_wrong", f"of the picture the text tells another {', '.join(wrong)}")
        limits = f"at most {shown.get('limit_side_px')} px a side and {shown.get('limit_bytes')} bytes"
        return f"size, type and bytes as told; limits in force: {limits}"

    async def listed(self, client: Client) -> str:
        """Whether the picture is found without the result."""
        if not self.links:
            raise WorkerError("no_link", "the result links to no artifact", next_step="update the worker")
        count = 0
        cursor: str | None = None
        for _ in range(LIST_PAGES):
            page = await client.list_resources(cursor=cursor, cache_mode="bypass")
            count += len(page.resources)
            if any(str(resource.uri) == str(self.links[0].uri) for resource in page.resources):
                return f"found among the {count} newest"
            cursor = page.next_cursor
            if cursor is None:
                break
        raise WorkerError("not_listed", f"not among {count} resources", next_step="read it by the link in the result")

    async def read_back(self, client: Client) -> str:
        """Whether the full picture can be read by its link; one too large for a message has an address of its own."""
        try:
            answer = await client.read_resource(str(self.links[0].uri), cache_mode="bypass")
        except MCPError as error:
            saved = await self._reached.save(self.links[0], self.folder / "fetched")
            data, mime_type = await anyio.Path(saved).read_bytes(), self.links[0].mime_type or ""
            way = f"not as a resource ({error.error.message[:120]}), but from /artifacts"
        else:
            content = answer.contents[0]
            if not isinstance(content, BlobResourceContents):
                raise WorkerError("no_blob", "the resource came as text", next_step="update the worker")
            data, mime_type, way = blocks.decoded_data(content.blob), content.mime_type or "", "as a blob"
        found = blocks.check_declared(data, mime_type)
        whole = await blocks.decode(self.decoders, data, self.folder, "resource", self.max_pixels)
        return f"{way}: {len(data)} bytes, {found}, {whole.pixels.width_px} x {whole.pixels.height_px} px"


def _near(a: tuple[int, int, int], b: tuple[int, int, int]) -> bool:
    return all(abs(one - other) <= SAME_COLOUR for one, other in zip(a, b, strict=True))


def run(arguments: argparse.Namespace) -> int:
    """Print the record; 1 when a stage failed."""
    record = asyncio.run(diagnose(arguments.file, arguments.url))
    if arguments.json:
        sys.stdout.write(json.dumps(record.to_json(), ensure_ascii=False) + "\n")
    else:
        sys.stdout.write(record.to_text())
    return int(record.failed)


async def diagnose(file: Path | None, url: str | None) -> Record:
    """The record of one picture: `file`, or a test picture, through the worker at `url`, or one of our own."""
    settings = Settings()
    drawn = draw_test_picture() if file is None else None
    record = Record(picture="test picture, drawn for this" if file is None else file.name)
    record.versions = {"client": f"sam2-mcp {version('sam2-mcp')}", "SDK": f"mcp {version('mcp')}", "server": "unknown"}
    with tempfile.TemporaryDirectory(prefix="sam2-mcp-doctor-") as name:
        folder = Path(name)
        path = file if file is not None else folder / "test-picture.png"
        if drawn is not None:
            await anyio.Path(path).write_bytes(drawn.png)
        async with ChildPool(
            "decoder", DECODER_MODULE, size=1, config={}, memory_limit_bytes=DECODER_MEMORY_LIMIT_BYTES
        ) as decoders:
            walk = _Walk(record, decoders, folder, path, drawn, settings.max_picture_pixels, settings.max_upload_bytes)
            await _through(walk, settings, url)
    _leave_the_rest(record, walk, url)
    return record


async def _through(walk: _Walk, settings: Settings, url: str | None) -> None:
    """The walk with a worker; whatever ends it early is a finding too."""
    async with AsyncExitStack() as stack:

        async def reach() -> str:
            walk.worker = await stack.enter_async_context(_worker(settings, url))
            await walk.worker.check_reachable()
            return "reached at the given address" if url else "one of our own, started for this"

        if not await walk.record.check("the worker", reach):
            return
        try:
            await walk.walk()
        except Exception as error:  # the SDK wraps what happens to a session in groups of any kind
            logger.debug("the walk ended early", exc_info=True)
            await walk.record.check("the connection", partial(_raise, _named(error)))


def _named(error: Exception) -> WorkerError:
    """The first error that says something, of a group of them."""
    while isinstance(error, ExceptionGroup):
        error = error.exceptions[0]
    if isinstance(error, WorkerError):
        return error
    what = error.error.message if isinstance(error, MCPError) else str(error)
    return WorkerError(
        "call_failed", f"{type(error).__name__}: {what[:200]}", next_step="look into the worker's log for the reason"
    )


async def _raise(error: WorkerError) -> str:
    raise error


@asynccontextmanager
async def _worker(settings: Settings, url: str | None) -> AsyncIterator[WorkerClient]:
    """The worker at `url`, or one for this alone: no network of masks, and nothing that could cost money."""
    if url is not None:
        yield WorkerClient(url, settings.read_token())
        return
    set_up_logging("WARNING", as_json=False)
    changes: dict[str, Any] = {"host": "127.0.0.1", "port": 0, "segmenter": "off", "vision": "off", "ocr_processes": 1}
    async with running_worker(settings.model_copy(update=changes)) as base_url:
        yield WorkerClient(base_url, settings.read_token())


def _leave_the_rest(record: Record, walk: _Walk, url: str | None) -> None:
    """What only the host can show, and how to see it there."""
    record.versions |= {"host": "not verifiable from here", "model": "not verifiable from here"}
    call = json.dumps({"source": walk.handle or "file_...", "regions": COVERED, "image": "inline"})
    how = f"in the host, call {TOOL} with {call}"
    if url is None:
        how += ", with the handle that `doctor image --url` of the worker behind your host prints"
    element = walk.drawn.element if walk.drawn is not None else "something that no text says"
    record.leave(ROAD[0], "this went straight to the worker", f"{how}, and compare the blocks with those above")
    record.leave(ROAD[1], "only a person can say", f"look whether the host shows the picture: {element}")
    record.leave(
        ROAD[2],
        "a model that repeats the text has not thereby seen the picture",
        f"ask the model what is on the picture without naming it; right is: {element}. It proves this one picture",
    )
    record.not_checked += ["the picture's meaning", "other sizes and types than this one", "sounds and documents"]
