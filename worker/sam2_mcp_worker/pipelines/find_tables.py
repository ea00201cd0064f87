"""Finds the ruled tables of a PDF's pages in the redact child, page by page, in a job that outlives the call."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job
from sam2_mcp_worker.media.pdf import PdfFile
from sam2_mcp_worker.pipelines.read_documents import settled_parts
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services

# Raise it when tables are found otherwise.
TABLES_VERSION = 1
# One is found while the next waits in the queue: there is one child.
PAGES_IN_FLIGHT = 2


async def find_tables(
    services: Services, pdf: PdfFile, document_key: Sequence[object], pages: Sequence[int], deadline: Deadline
) -> Coverage[int, Any]:
    """By page number the answer of the task `pdf_tables`, as far as they are found by the deadline.

    A page that fails has no tables then, and its lines all the same.
    """
    if not pages:
        return Coverage(())
    key = cache_key("pdf_tables", TABLES_VERSION, *document_key)

    async def page_tables(number: int) -> list[dict[str, Any]]:
        async def compute() -> list[dict[str, Any]]:
            params = {"path": str(pdf.path), "password": pdf.password, "page_number": number}
            timeout_s = services.settings.step_timeout_s
            result = await services.redactors.run("pdf_tables", params, timeout_s=timeout_s, job=key)
            tables: list[dict[str, Any]] = result["tables"]
            return tables

        found: list[dict[str, Any]] = await services.cache.get_or_compute(cache_key(key, number), compute)
        return found

    async def start(job: Job) -> None:
        await fan_out(job.coverage, page_tables, deadline=Deadline.after(JOB_LIMIT_S), limit=PAGES_IN_FLIGHT)

    async with services.jobs.join(cache_key(key, list(pages)), tuple(pages), start) as job:
        await job.wait(deadline)
        job.raise_error()
        return settled_parts(job)
