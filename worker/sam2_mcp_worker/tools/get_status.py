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
Tells what this server can do right now: whether it is ready, which engines read text and in which \
languages, whether anything costs money, the limits on files, pages and time, and how much work is \
waiting. Call it once at the start, or when another tool reports that something is not available. It \
takes no arguments, reads no file and answers at once."""


class Engine(BaseModel):
    """An engine behind the tools."""

    task: str
    identity: str
    languages: list[str]
    costs_money: bool
    leaves_machine: Annotated[bool, Field(description="Whether pictures are sent to another machine")]


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
    result_max_chars: int
    retention_h: float


class Status(BaseModel):
    """The state of the worker."""

    version: str
    ready: bool
    not_ready_because: list[str] | None = None
    engines: list[Engine]
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


def current_status(services: Services) -> Status:
    """The state right now; reads nothing from disk."""
    settings = services.settings
    trouble = services.trouble()
    return Status(
        version=worker_version(),
        ready=not trouble,
        not_ready_because=trouble or None,
        engines=[
            Engine(
                task="read_text",
                identity=services.reader.identity,
                languages=list(settings.ocr_languages),
                costs_money=False,
                leaves_machine=False,
            )
        ],
        limits=Limits(**{name: getattr(settings, name) for name in Limits.model_fields}),
        queues=[_queue(services.ocr_pool.stats()), _queue(services.decoders.stats())],
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
