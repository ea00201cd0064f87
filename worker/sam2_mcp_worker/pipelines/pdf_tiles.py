"""How many tiles the pages of a PDF give a vision provider: what the rule of the modes asks before anything is sent."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

from sam2_mcp_worker.checks.labels import Label
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pdf import PdfFile, suggested_px_per_pt
from sam2_mcp_worker.media.pdf_geometry import rendered_size_px
from sam2_mcp_worker.media.tiling import plan_tiles
from sam2_mcp_worker.pipelines.inspect_page import PageRequest, count_tiles
from sam2_mcp_worker.pipelines.page_readers import provider_readers
from sam2_mcp_worker.pipelines.page_room import PageRoom
from sam2_mcp_worker.pipelines.reading_choice import vision_tiles
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Of the time that the call has left. An analysis takes about a second a page; one that hangs must leave time to read.
TIME_SHARE = 0.3


async def count_tiles_of_call(
    services: Services,
    pdf: PdfFile,
    document_key: tuple[str, str],
    numbers: Sequence[int],
    labels: Sequence[Label],
    deadline: Deadline,
) -> int:
    """The tiles of all pages together, as exactly as the limit of the rule (`vision_fast_above_tiles`) asks for.

    More pages than the limit count one each, which is enough. Else the pages are analysed. A page without a text layer
    or one that is looked at for regions is sent whole. Of one with a layer only what that does not cover is sent: it is
    drawn and compared, unless the whole pages together are within the limit anyway. When time runs out, too many.
    """
    limit = services.settings.vision_fast_above_tiles
    if len(numbers) > limit:
        return len(numbers)
    job = cache_key("tiles", *document_key, list(numbers))
    readers = provider_readers(services, "fast", labels)  # both models have the same tiles
    room = PageRoom(drawn_at_once=services.settings.decoder_processes)
    requests = [PageRequest(pdf, number, document_key, job, readers, room) for number in numbers]
    try:
        async with asyncio.timeout(TIME_SHARE * deadline.remaining_s()):
            return await _count(services, requests, limit, sent_whole=bool(labels))
    except TimeoutError:
        return limit + 1


async def _count(services: Services, requests: Sequence[PageRequest], limit: int, *, sent_whole: bool) -> int:
    plans = [await _page_plan(services, request) for request in requests]
    at_most = sum(int(plan["tiles"]) for plan in plans)
    if at_most <= limit or sent_whole:
        return at_most
    total = 0
    for request, plan in zip(requests, plans, strict=True):
        total += await _uncovered_tiles(services, request) if plan["layer"] else int(plan["tiles"])
    return total


async def _page_plan(services: Services, request: PageRequest) -> dict[str, Any]:
    """`tiles` of the whole page, and whether a text `layer` tells something of it. A page that fails has none."""
    settings = services.settings
    limit = vision_tiles(settings)

    async def compute() -> dict[str, Any]:
        page = await request.pdf.read_page(
            services.decoders, request.page_number, timeout_s=settings.step_timeout_s, job=request.job
        )
        scale = suggested_px_per_pt(page, settings.max_picture_pixels)
        size = rendered_size_px(page.width_pt, page.height_pt, scale)
        return {"tiles": len(plan_tiles(*size, limit)), "layer": bool(page.lines)}

    key = cache_key("page_plan", *request.document_key, request.page_number, settings.max_picture_pixels, repr(limit))
    try:
        plan: dict[str, Any] = await services.cache.get_or_compute(key, compute)
    except WorkerError:  # the page is told as failed when it is inspected
        return {"tiles": 0, "layer": False}
    return plan


async def _uncovered_tiles(services: Services, request: PageRequest) -> int:
    """The tiles of a page whose text layer covers some of it; all of them when the layer cannot be believed."""
    settings = services.settings
    key = cache_key(
        "page_tiles",
        *request.document_key,
        request.page_number,
        services.reader.identity,
        settings.max_picture_pixels,
        repr(vision_tiles(settings)),
    )
    try:
        return int(await services.cache.get_or_compute(key, lambda: count_tiles(services, request)))
    except WorkerError:
        return 0
