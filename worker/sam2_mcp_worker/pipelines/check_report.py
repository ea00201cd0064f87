"""The report of a check as an artifact: its pictures are drawn and it is written in the background, under one address.

Owns how long a call waits for it. What it says is findings_report.py's.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from dataclasses import replace

from sam2_mcp_worker.artifacts import INSPECTED, Artifact
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.pipelines.finding_pictures import Mark, PictureKey, finding_pictures
from sam2_mcp_worker.pipelines.findings_report import FindingsReport, render_findings
from sam2_mcp_worker.pipelines.read_documents import ReadDocument
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it whenever the same findings make another file: it is part of the reports' cache keys.
REPORT_VERSION = 1
# Of the time kept free for the answer: the rest is for packing and sending it.
MARGIN_SHARE = 0.4

logger = logging.getLogger(__name__)


async def write_report(
    services: Services, read: ReadDocument, marks: Sequence[Mark], report: FindingsReport, deadline: Deadline
) -> Artifact:
    """The report's artifact; one that takes longer than the call has is written on, and its address returned.

    The same findings on the same document have the same address. `report.pictures` are made here, from the marks.
    """
    content = replace(report, created_at="", pictures=())
    key = cache_key("check_report", REPORT_VERSION, read.document.key, repr(content), repr(marks))
    name = f"{read.document.name.rsplit('.', 1)[0]}-check.html"

    async def new_handle() -> str:
        return services.artifacts.new_handle()

    handle = str(await services.cache.get_or_compute(key, new_handle))
    held = await asyncio.to_thread(services.artifacts.find, handle)
    if held is not None:
        return held
    writing = services.in_background(_write(services, read, marks, report, handle, name))
    limit = Deadline(deadline.at_s + deadline.margin_s * MARGIN_SHARE, deadline.clock)
    await asyncio.wait({writing}, timeout=limit.remaining_s())
    return await asyncio.to_thread(services.artifacts.find, handle) or Artifact(handle, name, "text/html", 0)


async def _write(
    services: Services, read: ReadDocument, marks: Sequence[Mark], report: FindingsReport, handle: str, name: str
) -> None:
    """The report is beside the result: whatever is wrong with it must not cost that."""
    try:
        pictures = await finding_pictures(services, read, marks)
        shown = [(_title(key), await asyncio.to_thread(_bytes, services, one)) for key, one in pictures.items()]
        html = await asyncio.to_thread(render_findings, replace(report, pictures=shown))
        facts = {INSPECTED: read.document.file.handle} if read.document.file is not None else {}
        data = html.encode("utf-8", "replace")
        await asyncio.to_thread(
            services.artifacts.put, data, name=name, mime_type="text/html", handle=handle, facts=facts
        )
    except Exception as error:
        logger.warning("report not written: %s", type(error).__name__, exc_info=not isinstance(error, OSError))


def _title(key: PictureKey) -> str:
    return f"Page {key[0]}" if key[1] is None else f"Frame at {key[1]:.2f} s"


def _bytes(services: Services, picture: Artifact) -> bytes:
    try:
        return services.artifacts.get(picture.handle)[1].read_bytes()
    except (WorkerError, OSError):
        return b""  # swept meanwhile: the report says that it was left out
