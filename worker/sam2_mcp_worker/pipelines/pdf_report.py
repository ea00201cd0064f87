"""The HTML report of a PDF inspection: one artifact that grows with the job, rewritten when something was settled."""

from __future__ import annotations

import asyncio
import datetime
import logging
from typing import Any

from sam2_mcp_worker.artifacts import INSPECTED, Artifact
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job
from sam2_mcp_worker.pipelines.page_readers import PageChoice
from sam2_mcp_worker.pipelines.report import MAX_PICTURE_BYTES, render_report
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile

# Of the time kept free for the answer: the rest is for packing and sending it.
MARGIN_SHARE = 0.4

logger = logging.getLogger(__name__)


async def update_report(
    services: Services, job: Job, stored: StoredFile, choice: PageChoice, deadline: Deadline
) -> Artifact | None:
    """The report as of now, under the same address over all calls of a job; None when it cannot be written.

    Waits for the writing until the deadline and a part of the margin behind it; a report that takes longer is written
    on, and what is returned is its address. The call's pages never depend on it.
    """
    handle = job.notes.setdefault("report_handle", services.artifacts.new_handle())
    limit = Deadline(deadline.at_s + deadline.margin_s * MARGIN_SHARE, deadline.clock)
    while not (_is_fresh_enough(job) and services.artifacts.holds(handle)):
        writing: asyncio.Task[None] | None = job.notes.get("report_task")
        if writing is None or writing.done():
            writing = job.notes["report_task"] = services.in_background(_update(services, job, stored, choice, handle))
        await asyncio.wait({writing}, timeout=limit.remaining_s())
        if job.notes.get("report_failed"):
            return None
        if not writing.done():
            break
    known: Artifact | None = job.notes.get("report")
    return known or Artifact(handle, _report_name(stored), "text/html", 0)


def _is_fresh_enough(job: Job) -> bool:
    """Whether the last report will do: it has everything, or at least half of what there is and more is to come.

    The report of 120 pages takes a second of a core; written anew for each of eight calls it would cost the readers
    more than all their pages' overlays. It states its own coverage, so an older one hides nothing.
    """
    written: int = job.notes.get("report_settled", -1)
    return written == job.coverage.settled or (not job.coverage.complete and 2 * written > job.coverage.settled)


async def _update(services: Services, job: Job, stored: StoredFile, choice: PageChoice, handle: str) -> None:
    """Write the report, and once more if the job became complete meanwhile: nobody may call again for that one."""
    try:
        while not _is_fresh_enough(job) or not services.artifacts.holds(handle):
            settled = job.coverage.settled
            job.notes["report"] = await asyncio.to_thread(_write, services, job, stored, choice, handle)
            job.notes.update(report_settled=settled, report_failed=False)
    except Exception as error:  # the report is beside the result: whatever is wrong with it must not cost the pages
        logger.warning("report not written: %s", type(error).__name__, exc_info=not isinstance(error, OSError))
        job.notes["report_failed"] = True


def _write(services: Services, job: Job, stored: StoredFile, choice: PageChoice, handle: str) -> Artifact:
    coverage = job.coverage
    done, failed = dict(coverage.done), dict(coverage.failed)
    not_looked = choice.regions_missing.reason if choice.regions_missing is not None else ""
    rows = [_row(number, done.get(number), failed.get(number), not_looked) for number in coverage.items]
    inspection = {
        "source_name": stored.name,
        "created_at": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
        "engine": choice.engine,
        "coverage": {
            "total": len(coverage.items),
            "done": len(done),
            "failed": sorted(failed),
            "unreached": [number for number in coverage.items if number not in done and number not in failed],
        },
        "pages": rows,
    }
    job.notes["texts"] = services.artifacts.put(
        plain_texts(stored.name, rows).encode("utf-8", "replace"),
        name=f"{stored.name.rsplit('.', 1)[0]}-text.txt",
        mime_type="text/plain",
        handle=job.notes.setdefault("texts_handle", services.artifacts.new_handle()),
        facts={INSPECTED: stored.handle},
    )
    html = render_report(inspection, _pictures(services, done))
    return services.artifacts.put(
        html.encode("utf-8", "replace"),
        name=_report_name(stored),
        mime_type="text/html",
        handle=handle,
        facts={INSPECTED: stored.handle},
    )


def _report_name(stored: StoredFile) -> str:
    return f"{stored.name.rsplit('.', 1)[0]}-report.html"


def _pictures(services: Services, done: dict[int, dict[str, Any]]) -> dict[int, bytes]:
    """Overlay pictures in page order, as many as the report inlines."""
    pictures: dict[int, bytes] = {}
    room = MAX_PICTURE_BYTES
    for number in sorted(done):
        picture = _picture(services, done[number])
        if picture is None:
            continue
        room -= len(picture)
        if room < 0:
            break
        pictures[number] = picture
    return pictures


def _row(number: int, result: dict[str, Any] | None, error: WorkerError | None, not_looked: str) -> dict[str, Any]:
    """A page as the report wants it; `not_looked` says why nobody looks for regions, when some were asked for."""
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
        "regions": None,
        "regions_reason": "",
    }
    if error is not None:
        row.update(status="failed", reason=error.reason)
    elif result is not None:
        text, ocr_text = page_texts(result["source"], result["lines"])
        row.update({name: result[name] for name in row if name in result})
        row.update(status="done", text=text, ocr_text=ocr_text, undetected_ink=len(result["undetected_ink"]))
        if result["regions"] is None:
            row["regions_reason"] = not_looked
    return row


def plain_texts(name: str, rows: list[dict[str, Any]]) -> str:
    """All pages' texts as one, for people and search; what was not read is said where it would stand."""
    parts = [f"Text of {name}\n"]
    for row in rows:
        about = f"failed: {row['reason']}" if row["status"] == "failed" else row["status"]
        parts.append(f"\n--- page {row['page_number']} ({row['source'] if row['status'] == 'done' else about}) ---\n")
        parts += [f"{text}\n" for text in (row["text"], row["ocr_text"]) if text]
    return "".join(parts)


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
