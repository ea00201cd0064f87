"""Advertisement and evidence, from a source to the figures that stand in it: documents, their tables, and table files.

Owns what a file is read as, and what of it was not read. What the figures mean together is check_figures.py's matter.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Literal

from sam2_mcp_worker.checks.reading import Reading
from sam2_mcp_worker.checks.tables import Table
from sam2_mcp_worker.cursors import number_ranges
from sam2_mcp_worker.deadline import Deadline
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.fanout import Coverage, fan_out
from sam2_mcp_worker.jobs import JOB_LIMIT_S, Job, Progress
from sam2_mcp_worker.media.file_kinds import KIND_HEAD_BYTES, kind_of
from sam2_mcp_worker.pipelines.document_reading import open_stored
from sam2_mcp_worker.pipelines.find_tables import find_tables
from sam2_mcp_worker.pipelines.page_documents import PdfDocument
from sam2_mcp_worker.pipelines.page_tables import may_hold_tables, with_tables
from sam2_mcp_worker.pipelines.read_documents import NOT_REACHED, Document, ReadDocument, ReadRequest
from sam2_mcp_worker.result_cache import cache_key
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.uploads import StoredFile, clean_name

# Raise it whenever tables of files are read otherwise.
TABLE_FILES_VERSION = 1
# Of what was not read, so much is said of one file: an error has 500 characters in all.
MAX_UNREAD_CHARS = 300
TableTask = Literal["csv_table", "workbook_tables"]


@dataclass(frozen=True, slots=True)
class TableFile:
    """A file of separated values or a workbook."""

    stored: StoredFile
    task: TableTask

    @property
    def name(self) -> str:
        """Of the file."""
        return self.stored.name

    @property
    def key(self) -> str:
        """What identifies it in cursors."""
        return cache_key(self.task, TABLE_FILES_VERSION, self.stored.sha256)


@dataclass(frozen=True, slots=True)
class ReadFile:
    """What was read of one file by now.

    `tables` are those of the file, `reading` what stands outside of them. `unread` says what of it was not read ("" =
    nothing), `whole` is False while going on may bring more.
    """

    name: str
    kind: str
    reading: Reading | None
    tables: tuple[Table, ...]
    coverage: Coverage[int, Any]
    unread: str
    whole: bool
    notes: tuple[str, ...] = ()
    document: ReadDocument | None = None


@dataclass(frozen=True, slots=True)
class FailedFile:
    """Evidence that cannot be read at all, and why."""

    name: str
    error: WorkerError
    key: str = field(default="failed")


OpenFile = Document | TableFile


async def open_evidence(
    services: Services, request: ReadRequest, advertisement: StoredFile | None
) -> OpenFile | FailedFile:
    """An evidence file; one that cannot be opened is no error of the call: the others still say what they say."""
    try:
        stored = await services.sources.resolve(request.source)
        if advertisement is not None and stored.sha256 == advertisement.sha256:
            return FailedFile(stored.name, _the_same())
        opened = await _table_file(stored) or await open_stored(services, stored, request)
    except WorkerError as error:
        return FailedFile(shown_source(request.source), error)
    if not isinstance(opened, TableFile) and opened.kind in ("sound", "video"):
        return FailedFile(opened.name, _no_evidence(opened.kind))
    return opened


def _the_same() -> WorkerError:
    """Every figure of a file is in that file."""
    return WorkerError(
        "evidence_is_advertisement",
        "it is the advertisement itself",
        rule="a document is no evidence of what it says",
        next_step="give the documents that were filed",
    )


def _no_evidence(kind: str) -> WorkerError:
    return WorkerError(
        "evidence_unsupported",
        f"it is {kind}",
        rule="evidence is PDF, CSV, XLSX, text or a picture",
        next_step="give the document that the figure was filed in",
    )


async def read_file(
    services: Services,
    opened: OpenFile,
    deadline: Deadline,
    *,
    began_with: str,
    retry: bool,
    progress: Progress | None = None,
) -> ReadFile:
    """What of it is read by the deadline.

    Raises:
        WorkerError: nothing of it can be read.
    """
    if isinstance(opened, TableFile):
        return await _read_tables(services, opened, deadline, retry=retry)
    read = await opened.read(deadline, began_with=began_with, retry=retry, progress=progress)
    reading, notes, found_all = read.reading, read.notes, True
    tables: tuple[Table, ...] = ()
    if isinstance(opened, PdfDocument) and read.complete:
        found = await _rulings(services, opened, read, deadline)
        reading, tables = await asyncio.to_thread(with_tables, reading, found.done, opened.name)
        notes, found_all = (*notes, *_without_rulings(found)), found.complete
    elif opened.kind == "image":
        reading, tables = await asyncio.to_thread(with_tables, reading, {}, opened.name)
    return ReadFile(
        name=opened.name,
        kind=opened.kind,
        reading=reading,
        tables=tables,
        coverage=read.coverage,
        unread=_unread(read),
        whole=read.complete and found_all,
        notes=notes,
        document=read,
    )


async def _rulings(
    services: Services, opened: PdfDocument, read: ReadDocument, deadline: Deadline
) -> Coverage[int, Any]:
    pages = [page.number for page in read.reading.pages if may_hold_tables(page)]
    return await find_tables(services, opened.pages.pdf, opened.pages.document_key, pages, deadline)


def _without_rulings(found: Coverage[int, Any]) -> Iterator[str]:
    """Pages whose lines stand for themselves: a header may be missing from what a number is about."""
    if found.failed:
        reason = next(iter(found.failed.values())).reason
        yield f"the rulings of {_pages(sorted(found.failed))} could not be looked at ({reason})"


async def _read_tables(services: Services, opened: TableFile, deadline: Deadline, *, retry: bool) -> ReadFile:
    """Ten large workbooks take longer than one call: what is not read by the deadline goes on for the next."""

    async def compute() -> dict[str, Any]:
        params = {"path": str(opened.stored.path)}
        timeout_s = services.settings.step_timeout_s
        return await services.decoders.run(opened.task, params, timeout_s=timeout_s, job=opened.key)

    async def tables_of_file(_: int) -> dict[str, Any]:
        found: dict[str, Any] = await services.cache.get_or_compute(opened.key, compute)
        return found

    async def start(job: Job) -> None:
        # What failed is kept with the job: a request that goes on does not begin it anew, and so comes to an end.
        await fan_out(job.coverage, tables_of_file, deadline=Deadline.after(JOB_LIMIT_S), limit=1)

    async with services.jobs.join(opened.key, (1,), start, retry=retry) as job:
        await job.wait(deadline)
        if 1 in job.coverage.failed:
            raise job.coverage.failed[1]
        result: dict[str, Any] | None = job.coverage.done.get(1)
    tables = tuple(_table(opened.name, table) for table in result["tables"]) if result is not None else ()
    return ReadFile(
        name=opened.name,
        kind="csv" if opened.task == "csv_table" else "xlsx",
        reading=None,
        tables=tables,
        coverage=Coverage((1,), {1: None} if result is not None else {}),
        unread=result["unread"][:MAX_UNREAD_CHARS] if result is not None else NOT_REACHED,
        whole=result is not None,
        notes=tuple(result["notes"]) if result is not None else (),
    )


def _table(name: str, table: dict[str, Any]) -> Table:
    return Table(
        name,
        tuple(tuple(row) for row in table["rows"]),
        sheet=table["sheet"],
        first_row=table.get("first_row", 1),
        doubtful=frozenset((row, column) for row, column in table["doubtful"]),
    )


async def _table_file(stored: StoredFile) -> TableFile | None:
    kind = kind_of(await asyncio.to_thread(_head, stored), stored.name)
    if kind == "csv":
        return TableFile(stored, "csv_table")
    return TableFile(stored, "workbook_tables") if kind == "office" else None


def _head(stored: StoredFile) -> bytes:
    with stored.path.open("rb") as file:
        return file.read(KIND_HEAD_BYTES)


def _unread(read: ReadDocument) -> str:
    return "; ".join(_unread_parts(read.reading))[:MAX_UNREAD_CHARS]


def _unread_parts(reading: Reading) -> Iterator[str]:
    undone: dict[str, list[int]] = {}
    for page in reading.pages:
        if page.status != "done":
            words = "could not be read" if page.status == "failed" else page.reason
            undone.setdefault(words, []).append(page.number)
    for words, numbers in undone.items():
        yield f"{_pages(numbers)} {words}"
    unread = [page.number for page in reading.pages if page.status == "done" and page.unread]
    if unread:
        yield f"{_pages(unread)}: parts that look like text and could not be read"


def _pages(numbers: list[int]) -> str:
    return f"page{'s' if len(numbers) > 1 else ''} {number_ranges(numbers)}"


def shown_source(source: str) -> str:
    """A name for a source that did not open: never the content that somebody may have pasted."""
    last = source.strip().replace("\\", "/").rsplit("/", 1)[-1].split("?", 1)[0].rsplit("@", 1)[-1]
    return clean_name(last)[:60]
