"""Artifacts as MCP resources: the list, newest first and in pages, and reading them with their own types.

Whoever holds the worker's token may list them; without the token nobody gets here.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

import anyio
from mcp.server.lowlevel.helper_types import ReadResourceContents
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError
from mcp_types import ListResourcesResult, Resource

from sam2_mcp_worker.artifacts import URI_PREFIX, Artifact, Artifacts
from sam2_mcp_worker.cursors import decode_cursor, encode_cursor
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.tools.icons import icons_of_type

# In Base64 just below the 1 MiB at which MCP clients give up an event (reference/mcp.md 1.5).
MAX_RESOURCE_BYTES = 700 * 1024
# About 12 KB a page; hosts ask for all pages at once, some at every start.
PAGE_ARTIFACTS = 50
# Masks come by the hundred: beyond this nobody looks, and every one can still be read by its address.
MAX_LISTED = 500

_METHOD = "resources/list"
_NANOSECONDS = re.compile(r"[0-9]{1,20}\Z")
_TEXT_TYPES = ("text/", "application/json")


def list_artifacts(artifacts: Artifacts, cursor: str | None) -> ListResourcesResult:
    """One page of the newest artifacts; blocks on the disk for some milliseconds.

    Raises:
        WorkerError: cursor_invalid.
    """
    listed, before = _place_of(cursor) if cursor else (0, None)
    room = min(PAGE_ARTIFACTS, MAX_LISTED - listed)
    found = artifacts.newest(room + 1, before) if room > 0 else []
    page = found[:room]
    listed += len(page)
    more = len(found) > len(page) and listed < MAX_LISTED
    return ListResourcesResult(
        resources=[_resource(artifact) for _, artifact in page],
        next_cursor=_cursor(listed, page[-1][0]) if more else None,
    )


def _cursor(listed: int, place: tuple[int, str]) -> str:
    # Nanoseconds are more than a JSON number carries exactly.
    return encode_cursor(_METHOD, "", {"n": listed, "ns": str(place[0]), "h": place[1]})


def _place_of(cursor: str) -> tuple[int, tuple[int, str]]:
    state = decode_cursor(cursor, _METHOD, "")
    match state:
        case {"n": int(listed), "ns": str(at_ns), "h": str(handle)} if listed >= 0 and _NANOSECONDS.match(at_ns):
            return listed, (int(at_ns), handle)
    raise WorkerError("cursor_invalid", "the cursor is damaged", next_step="list the resources from the start")


def _resource(artifact: Artifact) -> Resource:
    return Resource(
        uri=artifact.uri,
        name=artifact.name,
        mime_type=artifact.mime_type,
        size=artifact.size_bytes,
        icons=icons_of_type(artifact.mime_type),
    )


async def read_artifact(artifacts: Artifacts, uri: str) -> Iterable[ReadResourceContents]:
    """The artifact at `uri`, texts as text.

    Raises:
        ResourceNotFoundError, ResourceError: it is gone, or too large to be read here.
    """
    handle = uri.removeprefix(URI_PREFIX)
    try:
        artifact, path = await anyio.to_thread.run_sync(artifacts.get, handle)
        if (await anyio.Path(path).stat()).st_size > MAX_RESOURCE_BYTES:
            raise ResourceError(f"the artifact is too large to be read here: fetch it with GET /artifacts/{handle}")
        data: bytes = await anyio.Path(path).read_bytes()
    except (WorkerError, OSError) as error:
        raise ResourceNotFoundError(str(error) if isinstance(error, WorkerError) else "artifact gone") from error
    try:
        content: str | bytes = data.decode("utf-8") if artifact.mime_type.startswith(_TEXT_TYPES) else data
    except UnicodeDecodeError:
        content = data
    return [ReadResourceContents(content, artifact.mime_type)]
