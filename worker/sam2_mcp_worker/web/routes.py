"""Health, version, uploads and artifacts over HTTP."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Annotated, Any

import anyio
from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import FileResponse, JSONResponse
from starlette.requests import ClientDisconnect

from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.signatures import (
    HEAD_BYTES,
    KNOWN_TYPES,
    check_type,
    media_type_of,
    plain_type,
    type_of_name,
)
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile
from sam2_mcp_worker.version import worker_version

# HTTP status per error code; everything else an upload or artifact can raise is the client's mistake.
STATUS_BY_CODE = {
    "upload_too_large": 413,
    "file_unknown": 404,
    "artifact_unknown": 404,
    "no_space": 507,
    "storage_failed": 500,
    "media_type_mismatch": 415,
}

# With every answer about a file: by it a client knows that it talks to a worker, and what it need not even try to send.
UPLOAD_LIMIT_HEADER = "Sam2-Mcp-Max-Upload-Bytes"

# A report shows text of unknown documents: no scripts, no requests, no access to our origin.
ARTIFACT_HEADERS = {
    "Content-Security-Policy": "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'",
    "X-Content-Type-Options": "nosniff",
    "Cache-Control": "private, no-store",
}


def build_routes(services: Services) -> APIRouter:
    """All routes that are not MCP."""
    router = APIRouter()

    @router.get("/healthz")
    async def healthz() -> dict[str, str]:
        return {"status": "alive"}

    @router.get("/readyz")
    async def readyz() -> JSONResponse:
        trouble = services.trouble()
        return JSONResponse(
            {"status": "ready"} if not trouble else {"status": "not ready", "reasons": trouble},
            status_code=503 if trouble else 200,
        )

    @router.get("/version")
    async def version() -> dict[str, str]:
        return {"name": "sam2-mcp-worker", "version": worker_version()}

    @router.post("/files", status_code=201)
    async def upload(request: Request, name: Annotated[str, Query(max_length=400)] = "file") -> dict[str, Any]:
        _check_upload_headers(request, services)
        with _as_http_errors():
            try:
                stored = await services.uploads.store(_as_declared(request), name)
            except ClientDisconnect as error:  # its call was cancelled, or is out of time: no fault, nobody listens
                raise HTTPException(400, {"code": "upload_broken_off"}) from error
        return await _about(stored)

    @router.api_route("/files/{handle}", methods=["GET", "HEAD"])
    async def about_file(handle: str, response: Response) -> dict[str, Any]:
        limit = {UPLOAD_LIMIT_HEADER: str(services.settings.max_upload_bytes)}
        with _as_http_errors(limit):
            stored = await anyio.to_thread.run_sync(services.uploads.get, handle)
        response.headers.update(limit | {"ETag": f'"{stored.sha256}"'})
        return await _about(stored)

    # Asked before the SDK's own route, which would open a stream that never ends and that nothing is ever sent on:
    # a stateless server has no sessions to send to or to end (reference/mcp.md 7.25).
    @router.api_route("/mcp", methods=["GET", "DELETE"])
    async def mcp_without_sessions() -> JSONResponse:
        message = "this server has no sessions and no stream of its own: send each request with POST"
        return JSONResponse(
            {"detail": {"code": "method_not_allowed", "message": message}}, status_code=405, headers={"Allow": "POST"}
        )

    @router.get("/artifacts/{handle}")
    async def artifact(handle: str) -> Response:
        with _as_http_errors():
            about, path = await anyio.to_thread.run_sync(services.artifacts.get, handle)
        return FileResponse(
            path,
            media_type=about.mime_type,
            filename=about.name,
            headers=ARTIFACT_HEADERS,
            content_disposition_type="inline",
        )

    return router


async def _about(stored: StoredFile) -> dict[str, Any]:
    """What is known of a file. What it is, its bytes decide: a name is only compared with them."""
    about = {"handle": stored.handle, "name": stored.name, "size_bytes": stored.size_bytes, "sha256": stored.sha256}
    async with await anyio.open_file(stored.path, "rb") as file:
        media_type = media_type_of(await file.read(HEAD_BYTES))
    about |= {"media_type": media_type} if media_type else {}
    promised = type_of_name(stored.name)
    if promised not in (None, media_type):
        about["note"] = f"the name says {promised}, the bytes {media_type or 'do not'}; the bytes count"
    return about


async def _as_declared(request: Request) -> AsyncIterator[bytes]:
    """The body; one that is declared as a picture or sound must begin like one of that type.

    Raises:
        WorkerError: media_type_mismatch, before anything is stored.
    """
    declared = plain_type(request.headers.get("content-type", ""))
    head, unchecked = b"", declared in KNOWN_TYPES
    async for chunk in request.stream():
        head += chunk[: HEAD_BYTES - len(head)]
        if unchecked and len(head) == HEAD_BYTES:
            check_type(head, declared)
            unchecked = False
        yield chunk
    if unchecked and head:
        check_type(head, declared)


def _check_upload_headers(request: Request, services: Services) -> None:
    if request.headers.get("content-type", "").startswith("multipart/"):
        raise HTTPException(
            415,
            {
                "code": "multipart_not_accepted",
                "message": "send the file's bytes as the body, e.g. "
                "curl --data-binary @leaflet.pdf '.../files?name=leaflet.pdf'",
            },
        )
    announced = request.headers.get("content-length", "")
    if announced.isdigit() and int(announced) > services.settings.max_upload_bytes:
        error = services.uploads.too_large()
        raise HTTPException(413, {"code": error.code, "message": error.public_text})


class _as_http_errors:
    """Turns a WorkerError into an HTTP answer with the same text and these headers."""

    def __init__(self, headers: dict[str, str] | None = None) -> None:
        self._headers = headers

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, trace: object) -> None:
        if isinstance(error, WorkerError):
            status = STATUS_BY_CODE.get(error.code, 400)
            raise HTTPException(status, {"code": error.code, "message": error.public_text}, self._headers) from error
