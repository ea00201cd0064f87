"""The HTML report of a PDF inspection: one artifact that grows with the job, rewritten when something was settled."""

from __future__ import annotations

import asyncio
import datetime
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.pipelines.report import render_report
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile


async def update_report(services: Services, job: Job, stored: StoredFile, page_count: int) -> Artifact:
    """Write the report as of now; the same address over all calls of a job.

    Two calls of one job may come here at once: the lock lets the second find the first one's work.
    """
    lock: asyncio.Lock = job.notes.setdefault("report_lock", asyncio.Lock())
    async with lock:
        known: Artifact | None = job.notes.get("report")
        if (
            known is not None
            and job.notes["report_settled"] == job.coverage.settled
            and services.artifacts.holds(known.handle)
        ):
            return known
        settled = job.coverage.settled
        report = await asyncio.to_thread(_write, services, job, stored, known)
        job.notes.update(report=report, report_settled=settled)
        return report


def _write(services: Services, job: Job, stored: StoredFile, known: Artifact | None) -> Artifact:
    coverage = job.coverage
    done, failed = dict(coverage.done), dict(coverage.failed)
    rows = [_row(number, done.get(number), failed.get(number)) for number in coverage.items]
    inspection = {
        "source_name": stored.name,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "engine": services.reader.identity,
        "coverage": {
            "total": len(coverage.items),
            "done": len(done),
            "failed": sorted(failed),
            "unreached": [number for number in coverage.items if number not in done and number not in failed],
        },
        "pages": rows,
    }
    pictures = {number: data for number, result in done.items() if (data := _picture(services, result)) is not None}
    html = render_report(inspection, pictures)
    name = f"{stored.name.rsplit('.', 1)[0]}-report.html"
    return services.artifacts.put(
        html.encode("utf-8", "replace"), name=name, mime_type="text/html", handle=known.handle if known else None
    )


def _row(number: int, result: dict[str, Any] | None, error: WorkerError | None) -> dict[str, Any]:
    row: dict[str, Any] = {
        "page_number": number,
        "status": "unreached",
        "source": "none",
        "characters": 0,
        "smallest_text_pt": None,
        "text": "",
        "lines": [],
        "ocr_text": None,
        "undetected_ink": 0,
        "width_pt": 0,
        "height_pt": 0,
        "rotation_deg": 0,
        "elapsed_ms": 0,
        "reason": None,
        "notes": [],
    }
    if error is not None:
        row.update(status="failed", reason=error.reason)
    elif result is not None:
        text, ocr_text = page_texts(result["source"], result["lines"])
        row.update({name: result[name] for name in row if name in result})
        row.update(status="done", text=text, ocr_text=ocr_text, undetected_ink=len(result["undetected_ink"]))
    return row


def page_texts(source: str, lines: list[dict[str, Any]]) -> tuple[str, str | None]:
    """The text from the page's main source, and what OCR found beside a text layer (None when that is nothing)."""
    main = "\n".join(line["text"] for line in lines if line["source"] == source)
    beside = "\n".join(line["text"] for line in lines if line["source"] != source)
    return main, beside or None


def _picture(services: Services, result: dict[str, Any]) -> bytes | None:
    try:
        _, path = services.artifacts.get(result["overlay"] or "")
        return path.read_bytes()
    except (WorkerError, OSError):
        return None  # swept meanwhile: the report says that the picture is left out
