"""Redacts a picture, a PDF or a video: which kind it is, one job for it, and its result or how far it is.

A redaction is all or nothing: what the job makes is looked at, kept and told only when it is whole and verified. A call
that ends before that gets a cursor; the job goes on.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.cursors import decode_cursor, encode_cursor
from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.pipelines.redact_image import ImageRedactor
from sam2_mcp_worker.pipelines.redact_pdf import PdfRedactor
from sam2_mcp_worker.pipelines.redact_request import Kind, RedactRequest, check_request
from sam2_mcp_worker.pipelines.redact_task import RedactionTask
from sam2_mcp_worker.pipelines.redact_video import VideoRedactor
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

TOOL = "redact_media"
# Readers look for a PDF's mark in the first kilobyte (ISO 32000-1, note to 7.5.2).
_HEAD_BYTES = 1024
_IMAGE_MARKS = (b"\xff\xd8\xff", b"\x89PNG", b"GIF8", b"BM", b"II*\0", b"MM\0*")
_PICTURE_BRANDS = (b"heic", b"heix", b"mif1", b"msf1", b"avif")


@dataclass(frozen=True, slots=True)
class Redaction:
    """What one call delivers: the whole result, or none yet and the cursor that asks for it again."""

    file: StoredFile
    kind: Kind
    result: dict[str, Any] | None
    artifact: Artifact | None
    doing: str
    cursor: str | None


async def redact_media(services: Services, request: RedactRequest) -> Redaction:
    """Run a redaction, or wait for one that runs, until the current deadline.

    Raises:
        WorkerError: the source, a region, a phrase or the cursor is wrong, the file cannot be read, or the output did
            not pass its check.
    """
    deadline = current_deadline()
    stored = await services.sources.resolve(request.source)
    kind = await asyncio.to_thread(kind_of, stored.path)
    check_request(request, kind)
    engines = [services.reader.identity, services.segmenter.identity if services.segmenter else ""]
    key = cache_key(TOOL, stored.sha256, stored.name, *request.key_parts(), *engines)
    if request.cursor.strip():
        decode_cursor(request.cursor, TOOL, key)

    async def start(job: Job) -> None:
        async def compute() -> dict[str, Any]:
            return await _redact(services, stored, request, kind, job)

        job.coverage.mark_done(1, await services.cache.get_or_compute(key, compute, fresh=_still_there(services)))

    async with services.jobs.join(key, (1,), start) as job:
        await job.wait(deadline)
        job.raise_error()
        result = job.coverage.done.get(1)
        if result is None:
            return Redaction(stored, kind, None, None, job.notes.get("doing", "starting"), encode_cursor(TOOL, key, {}))
        artifact = (await asyncio.to_thread(services.artifacts.get, result["handle"]))[0] if result["handle"] else None
        return Redaction(stored, kind, result, artifact, "", None)


def kind_of(path: Path) -> Kind:
    """What kind of file it is, by its first bytes; what is neither PDF nor picture is tried as a video."""
    with path.open("rb") as file:
        head = file.read(_HEAD_BYTES)
    riff_picture = head[:4] == b"RIFF" and head[8:12] == b"WEBP"
    boxed_picture = head[4:8] == b"ftyp" and head[8:12] in _PICTURE_BRANDS
    if head.startswith(_IMAGE_MARKS) or riff_picture or boxed_picture:
        return "image"  # also when a comment of it holds a PDF's mark: what comes out is nothing but pixels
    return "pdf" if b"%PDF-" in head else "video"


def _still_there(services: Services) -> Any:
    def fresh(result: dict[str, Any]) -> bool:
        # What could not be read is tried again; a file that was swept is made again.
        kept = result["handle"] is None or services.artifacts.holds(result["handle"])
        return kept and not result["parts_failed"]

    return fresh


async def _redact(
    services: Services, stored: StoredFile, request: RedactRequest, kind: Kind, job: Job
) -> dict[str, Any]:
    def tell(doing: str) -> None:
        job.notes["doing"] = doing

    with services.work_directory("redact") as workdir:
        task = RedactionTask(services, stored, request, job.key, workdir, tell)
        if kind == "pdf":
            return await PdfRedactor(task).run()
        return await (VideoRedactor(task) if kind == "video" else ImageRedactor(task)).run()
