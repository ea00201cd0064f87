"""Holds every figure of an advertisement against those of the evidence: reads all files, then compares.

Owns the order of work. What a figure is and when two are the same is checks/figures.py's and figure_compare.py's.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from sam2_mcp_worker.artifacts import Artifact
from sam2_mcp_worker.checks.figure_compare import FigureFinding
from sam2_mcp_worker.checks.findings import Finding
from sam2_mcp_worker.checks.findings import Verdict as RuleVerdict
from sam2_mcp_worker.checks.verdict import VerdictLabel, label_of
from sam2_mcp_worker.deadline import Deadline, current_deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.jobs import Job, Progress
from sam2_mcp_worker.media.figure_comparison import (
    MAX_ADVERTISED,
    MAX_EVIDENCE,
    Comparison,
    FileText,
    bounded,
    comparison_json,
    findings_from,
)
from sam2_mcp_worker.pipelines.document_reading import open_document
from sam2_mcp_worker.pipelines.figure_delivery import (
    Delivery,
    Numbered,
    Place,
    deliver,
    from_cursor,
    in_order,
    to_cursor,
)
from sam2_mcp_worker.pipelines.figure_report import write_figure_report
from sam2_mcp_worker.pipelines.figure_rows import finding_chars
from sam2_mcp_worker.pipelines.figure_sources import (
    FailedFile,
    OpenFile,
    ReadFile,
    open_evidence,
    read_file,
    shown_source,
)
from sam2_mcp_worker.pipelines.read_documents import ReadRequest
from sam2_mcp_worker.pipelines.reading_choice import Mode
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Usage
from sam2_mcp_worker.uploads import StoredFile

TOOL = "check_figures"
# Raise it whenever findings or the cursors that count them mean something else.
RESULT_VERSION = 1
# Reading ends so much before the call's end, at most this share of it: comparing and the report need their time.
COMPARE_S = 4.0
COMPARE_SHARE = 0.25
# Opening a file takes tenths of a second; what hangs is killed after a step's time, ten of them after minutes.
OPEN_S = 5.0
# 2,000 figures against 20,000 take 20 to 40 s on a quiet core; longer is no comparison any more.
COMPARE_LIMIT_S = 120.0
RULE = "figures.evidence"
VERDICTS: dict[str, RuleVerdict] = {"match": "met", "mismatch": "not_met", "cannot_compare": "cannot_tell"}
# Of a result's characters, what is not figures: files, coverage, notes, label.
REST_CHARS = 1500
FILE_CHARS = 600


@dataclass(frozen=True, slots=True)
class Request:
    """The arguments of one call. `pages` are the advertisement's; `password` opens any of the PDFs that needs one."""

    source: str = ""
    text: str = field(default="", repr=False)
    evidence: tuple[str, ...] = ()
    pages: str = ""
    password: str = field(default="", repr=False)
    mode: Mode = "auto"
    cursor: str = ""


@dataclass(frozen=True, slots=True)
class FigureCheck:
    """What one call delivers. `findings` is None while files are being read, `delivery` what of them is in this result.

    `spent` is by the number of the file, the advertisement being 1.
    """

    advertisement: ReadFile
    evidence: tuple[ReadFile | FailedFile, ...]
    findings: tuple[FigureFinding, ...] | None
    delivery: Delivery[Numbered] | None
    label: VerdictLabel
    report: Artifact | None
    spent: dict[int, Usage]
    cursor: str | None


async def check_figures(services: Services, request: Request, progress: Progress | None = None) -> FigureCheck:
    """Read, or go on reading, until the current deadline; compare when everything is read.

    Raises:
        WorkerError: the advertisement or the cursor is wrong, or nothing of the advertisement can be read.
    """
    deadline = current_deadline()
    opened = await _open(services, request, _until(deadline))
    key = cache_key(TOOL, RESULT_VERSION, [one.key for one in opened])
    place = from_cursor(request.cursor, TOOL, key, len(opened))
    read = await _read_all(services, opened, place, deadline, retry=not request.cursor.strip(), progress=progress)
    if not _all_read(read):
        return _unfinished(read, key, place)
    comparison = await asyncio.to_thread(_comparison, read)
    read = [_with_unread(one, text) for one, text in zip(read, comparison.files, strict=True)]
    found = await _compared(services, comparison, deadline)
    if found is None:
        return _unfinished(read, key, place)
    advertisement, evidence = _parted(read)
    label = _label(services, comparison, found)
    room = services.settings.result_max_chars - REST_CHARS - FILE_CHARS * len(read)
    delivery = deliver(found, place, room, finding_chars)
    report = await write_figure_report(services, advertisement, evidence, found, label, deadline)
    told = Place(_began(read), delivery.told, delivery.mark)
    cursor = None if delivery.complete else to_cursor(TOOL, key, told)
    return FigureCheck(advertisement, evidence, found, delivery, label, report, _spent(read), cursor)


def _unfinished(read: Sequence[ReadFile | FailedFile], key: str, place: Place) -> FigureCheck:
    """What to tell while files are read or compared: how far that is."""
    advertisement, evidence = _parted(read)
    label = VerdictLabel("none", ("the files are still being read",))
    cursor = to_cursor(TOOL, key, Place(_began(read), place.told, place.mark))
    return FigureCheck(advertisement, evidence, None, None, label, None, _spent(read), cursor)


def _parted(read: Sequence[ReadFile | FailedFile]) -> tuple[ReadFile, tuple[ReadFile | FailedFile, ...]]:
    advertisement, *evidence = read
    assert isinstance(advertisement, ReadFile)  # a failed one has raised
    return advertisement, tuple(evidence)


def _until(deadline: Deadline) -> Deadline:
    """When reading ends."""
    return Deadline(deadline.at_s - min(COMPARE_S, COMPARE_SHARE * deadline.remaining_s()), deadline.clock)


async def _open(services: Services, request: Request, until: Deadline) -> list[OpenFile | FailedFile]:
    """The advertisement, then the evidence."""
    advertisement = ReadRequest(request.source, request.text, request.pages, request.password, request.mode)
    evidence = [ReadRequest(source, "", "", request.password, request.mode) for source in request.evidence]
    # The advertisement first, by itself: where it is wrong nothing else is worth opening.
    first = await open_document(services, advertisement)
    return [first, *await asyncio.gather(*(_open_in_time(services, one, first.file, until) for one in evidence))]


async def _open_in_time(
    services: Services, request: ReadRequest, advertisement: StoredFile | None, until: Deadline
) -> OpenFile | FailedFile:
    """An evidence file; one that hangs whoever opens it costs that file, not the call."""
    try:
        async with asyncio.timeout(max(OPEN_S, until.remaining_s())):
            return await open_evidence(services, request, advertisement)
    except TimeoutError:
        late = WorkerError("deadline", "it could not be opened in time", next_step="repeat the call without cursor")
        return FailedFile(shown_source(request.source), late)


async def _read_all(
    services: Services,
    opened: Sequence[OpenFile | FailedFile],
    place: Place,
    deadline: Deadline,
    *,
    retry: bool,
    progress: Progress | None,
) -> list[ReadFile | FailedFile]:
    until = _until(deadline)
    counts: dict[int, tuple[int, int]] = {}

    async def read(number: int, one: OpenFile | FailedFile) -> ReadFile | FailedFile:
        if isinstance(one, FailedFile):
            return one

        async def told(settled: int, total: int) -> None:
            counts[number] = (settled, total)
            if progress is not None:
                await progress(*(sum(column) for column in zip(*counts.values(), strict=True)))

        try:
            return await read_file(
                services, one, until, began_with=place.began_with[number], retry=retry, progress=told
            )
        except WorkerError as error:
            if number == 0:
                raise
            return FailedFile(one.name, error, one.key)

    return list(await asyncio.gather(*(read(number, one) for number, one in enumerate(opened))))


def _all_read(read: Sequence[ReadFile | FailedFile]) -> bool:
    return all(isinstance(one, FailedFile) or one.whole for one in read)


async def _compared(services: Services, comparison: Comparison, deadline: Deadline) -> tuple[FigureFinding, ...] | None:
    """All findings, mismatches first; None where the comparing goes on behind the deadline, for the next call."""
    text = await asyncio.to_thread(comparison_json, comparison)
    key = cache_key(TOOL, RESULT_VERSION, hashlib.sha256(text.encode("utf-8")).hexdigest())

    async def compute() -> dict[str, Any]:
        return await services.decoders.run("compare_figures", {"comparison": text}, timeout_s=COMPARE_LIMIT_S, job=key)

    async def start(job: Job) -> None:
        result = await services.cache.get_or_compute(key, compute)
        job.coverage.mark_done(1, in_order(await asyncio.to_thread(findings_from, result["findings"])))

    async with services.jobs.join(key, (1,), start) as job:
        await job.wait(deadline)
        job.raise_error()
        found: tuple[FigureFinding, ...] | None = job.coverage.done.get(1)
        return found


def _comparison(read: Sequence[ReadFile | FailedFile]) -> Comparison:
    """What of the files is compared; a file that cannot be read is one of which nothing was read."""
    texts = [
        FileText(one.name, None, (), one.error.reason)
        if isinstance(one, FailedFile)
        else FileText(one.name, one.reading, one.tables, one.unread)
        for one in read
    ]
    advertisement, _ = bounded(texts[0], MAX_ADVERTISED)
    evidence, left = [], MAX_EVIDENCE
    for text in texts[1:]:
        kept, used = bounded(text, left)
        evidence.append(kept)
        left -= used
    return Comparison(advertisement, tuple(evidence))


def _with_unread(one: ReadFile | FailedFile, text: FileText) -> ReadFile | FailedFile:
    """The file with what was left out of it for its size."""
    return one if isinstance(one, FailedFile) else replace(one, unread=text.unread)


def _label(services: Services, comparison: Comparison, findings: Sequence[FigureFinding]) -> VerdictLabel:
    """Without evidence nothing was judged; of what was not read nothing is approved."""
    if not comparison.evidence:
        return VerdictLabel("none", ("no evidence was given",))
    complete = not any(one.unread for one in comparison.files)
    return label_of(map(as_finding, findings), complete, services.rule_pack.verdict)


def as_finding(one: FigureFinding) -> Finding:
    """In the shape that verdicts follow from; a house rule, as no law names a file."""
    place = one.figure.place
    return Finding(
        kind="figure_mismatch",
        rule=RULE,
        verdict=VERDICTS[one.state],
        what=one.reason,
        basis="house",
        page=place.page,
        box_xyxy=place.box_xyxy,
        start_s=place.start_s,
        end_s=place.end_s,
    )


def _began(read: Sequence[ReadFile | FailedFile]) -> tuple[str, ...]:
    """Who began to read each file."""
    documents = (one.document if isinstance(one, ReadFile) else None for one in read)
    return tuple(document.began_with if document is not None else "" for document in documents)


def _spent(read: Sequence[ReadFile | FailedFile]) -> dict[int, Usage]:
    return {
        number: sum(one.document.spent.values(), Usage())
        for number, one in enumerate(read, start=1)
        if isinstance(one, ReadFile) and one.document is not None and one.document.spent
    }
