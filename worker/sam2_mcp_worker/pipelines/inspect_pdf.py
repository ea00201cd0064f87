"""Inspects a whole PDF in one call: all pages in parallel, as many as the budget allows, the rest over the cursor.

Owns the order of work for a document; what of it goes into which call's result is delivery.py's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.deadline import current_deadline
from sam2_mcp_worker.fanout import Coverage
from sam2_mcp_worker.jobs import Progress
from sam2_mcp_worker.pipelines.delivery import (
    DeliveredPage,
    budget_for_pages,
    delivered_after,
    fills_a_result,
    from_cursor,
    next_cursor,
    pack,
    reported,
)
from sam2_mcp_worker.pipelines.labels import wanted_labels
from sam2_mcp_worker.pipelines.page_readers import PageChoice
from sam2_mcp_worker.pipelines.pdf_job import choice_of, open_pdf
from sam2_mcp_worker.pipelines.pdf_report import update_report
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage
from sam2_mcp_worker.uploads import StoredFile

TOOL = "inspect_pdf"


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call, checked but for the labels."""

    source: str
    pages: str = ""
    password: str = ""
    labels: tuple[str, ...] = ()
    mode: Mode = "auto"
    cursor: str = ""
    detailed: bool = False


@dataclass(slots=True)
class Inspection:
    """What one call delivers. `spent` is by page, since the call before; `choice` says who read.

    `report` and `texts` (of all pages, plain) are as of the last writing.
    """

    file: StoredFile
    page_count: int
    coverage: Coverage[int, Any]
    pages: list[DeliveredPage]
    not_delivered: int
    cursor: str | None
    report: Artifact | None
    texts: Artifact | None
    labels: tuple[str, ...]
    choice: PageChoice
    spent: dict[int, Usage]


async def inspect_pdf(services: Services, request: Request, progress: Progress | None = None) -> Inspection:
    """Run or continue an inspection until the current deadline.

    Raises:
        WorkerError: the source, the password, the page range, a label or the cursor is wrong, or the file is no
            readable PDF.
    """
    deadline = current_deadline()
    labels = wanted_labels(services, request.labels)
    stored = await services.sources.resolve(request.source)
    asked = await open_pdf(services, stored, request.pages, request.password)
    cursor_key = asked.cursor_key(TOOL, request.mode, labels, request.detailed)
    before = from_cursor(request.cursor, TOOL, cursor_key, asked.page_count)
    chosen = await asked.choose(request.mode, before.model, labels, deadline)
    # A call with a cursor goes on with what the one before it reported; one without tries again what failed.
    async with asked.join(chosen, retry=not request.cursor.strip()) as job:
        choice = choice_of(job, chosen)
        max_chars = services.settings.result_max_chars
        await job.wait_telling(
            deadline, progress, lambda: fills_a_result(job.coverage, before, max_chars, request.detailed)
        )
        job.raise_error()
        coverage = reported(job.coverage, before)
        pages = pack(coverage, before, budget_for_pages(coverage, max_chars), request.detailed)
        cursor = next_cursor(TOOL, cursor_key, coverage, before, pages, model=choice.model)
        report = await update_report(services, job, stored, choice, deadline)
        delivered = delivered_after(coverage, before, pages)
        return Inspection(
            stored,
            asked.page_count,
            coverage,
            pages,
            sum(number not in delivered for number in (*coverage.done, *coverage.failed)),
            cursor,
            report,
            job.notes.get("texts"),
            tuple(label.name for label in labels),
            choice,
            job.spent.take(),
        )
