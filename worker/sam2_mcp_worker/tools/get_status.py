"""get_status: what is loaded, what costs money, limits, queue."""

from __future__ import annotations

from typing import Annotated, Any

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from sam2_mcp_worker.execution.pool import PoolStats
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.tools.reply import reply
from sam2_mcp_worker.version import worker_version

DESCRIPTION = """\
Tells what this server can do right now: whether it is ready, which engines read text and cut masks, \
which tools are not available and why, whether anything costs money, the limits on files, pages and \
time, and how much work is waiting. Call it once at the start, or when another tool reports that \
something is not available. It takes no arguments, reads no file and answers at once."""


class Engine(BaseModel):
    """An engine behind the tools."""

    task: str
    identity: str
    languages: Annotated[list[str] | None, Field(description="Languages that it reads, for readers of text")] = None
    costs_money: bool
    leaves_machine: Annotated[bool, Field(description="Whether pictures are sent to another machine")]


class NotAvailable(BaseModel):
    """A tool that cannot work here, and what would mend that."""

    tool: str
    reason: str
    mend: str


class Queue(BaseModel):
    """A pool of child processes."""

    name: str
    processes: int
    ready: int
    busy: int
    queued: Annotated[int, Field(description="Pieces of work that wait for a process")]
    restarts: Annotated[int, Field(description="Processes replaced since the start, after a crash, a timeout or bloat")]
    resident_mb: Annotated[int, Field(description="Resident memory of its processes, MiB")]


class Limits(BaseModel):
    """Limits in force."""

    call_budget_s: float
    max_upload_bytes: int
    max_picture_pixels: int
    max_pages: int
    max_video_s: float
    max_track_frames: int
    result_max_chars: int
    retention_h: float


class Status(BaseModel):
    """The state of the worker."""

    version: str
    ready: bool
    not_ready_because: list[str] | None = None
    engines: list[Engine]
    not_available: Annotated[list[NotAvailable] | None, Field(description="Tools that cannot work here")] = None
    limits: Limits
    queues: list[Queue]
    jobs_running: Annotated[int, Field(description="Inspections at work, those in the background included")]


def _queue(stats: PoolStats) -> Queue:
    resident = sum(child.rss_bytes for child in stats.children)
    return Queue(
        name=stats.name,
        processes=stats.size,
        ready=stats.ready,
        busy=stats.busy,
        queued=stats.queued,
        restarts=stats.restarts,
        resident_mb=round(resident / 2**20),
    )


def _engine(task: str, identity: str, languages: list[str] | None = None) -> Engine:
    return Engine(task=task, identity=identity, languages=languages, costs_money=False, leaves_machine=False)


def _engines(services: Services, not_available: list[NotAvailable]) -> list[Engine]:
    """Those that work, or are still loading."""
    engines = [_engine("read_text", services.reader.identity, list(services.settings.ocr_languages))]
    if services.segmenter is not None:
        engines.append(_engine("segment_image", services.segmenter.identity))
    if services.tracker is not None:
        engines.append(_engine("track_video", services.tracker.identity))
    lost = {row.tool for row in not_available}
    return [engine for engine in engines if engine.task not in lost]


def _not_available(services: Services) -> list[NotAvailable]:
    """Tools without an engine, and those whose child process cannot start (wrong weights, for instance)."""
    found = [("segment_image", services.segmenter_missing), ("track_video", services.tracker_missing)]
    rows = [NotAvailable(tool=tool, reason=error.what, mend=error.next_step) for tool, error in found if error]
    tools = {"sam": ["segment_image", "track_video"], "redact": ["redact_media"]}
    for pool in services.pools:
        start_error = pool.stats().start_error
        known = {row.tool for row in rows}
        rows += [
            NotAvailable(tool=tool, reason=start_error, mend="the operator looks into `sam2-mcp-worker doctor`")
            for tool in tools.get(pool.name, [])
            if start_error and tool not in known
        ]
    return rows


def current_status(services: Services) -> Status:
    """The state right now; reads nothing from disk."""
    settings = services.settings
    trouble = services.trouble()
    not_available = _not_available(services)
    return Status(
        version=worker_version(),
        ready=not trouble,
        not_ready_because=trouble or None,
        engines=_engines(services, not_available),
        not_available=not_available or None,
        limits=Limits(**{name: getattr(settings, name) for name in Limits.model_fields}),
        queues=[_queue(pool.stats()) for pool in services.pools],
        jobs_running=services.jobs.running,
    )


def register(server: MCPServer[Any], services: Services) -> None:
    """Add the tool to the server."""

    async def get_status() -> Annotated[CallToolResult, Status]:
        return reply(current_status(services))

    server.add_tool(
        get_status,
        title="Status of the vision server",
        description=DESCRIPTION,
        annotations=ToolAnnotations(
            read_only_hint=True, destructive_hint=False, idempotent_hint=True, open_world_hint=False
        ),
    )
