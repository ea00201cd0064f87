"""get_status: what is loaded, what costs money, limits, queue."""

from __future__ import annotations

from typing import Annotated, Any, Literal

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ToolAnnotations
from pydantic import BaseModel, Field

from sam2_mcp_worker.engines.ports import VisionModel
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.execution.pool import PoolStats
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.spending import Unit, Usage
from sam2_mcp_worker.tools.reply import reply
from sam2_mcp_worker.tools.usage import USD_DIGITS
from sam2_mcp_worker.version import worker_version

DESCRIPTION = """\
Tells what this server can do right now: whether it is ready, which engines read text, find regions, cut masks and \
hear speech, what is not available and why, what costs money, what leaves this machine and what today has cost, the \
limits on files, pages and time, and how much work waits. Call it once at the start, or when a tool says that \
something is not available. It takes no arguments and answers at once."""

READS_AND_FINDS = "read_text, inspect_image, inspect_pdf, inspect_video, check_phrases, check_figures"
REGIONS = "regions of inspect_image, inspect_pdf and inspect_video"
WHAT_LEAVES = (
    "tiles of images, of sampled video frames and of PDF pages (without a text layer, or when labels are asked for), "
    "with the labels"
)
SOUND_LEAVES = "the stretches of a recording in which somebody speaks"
TEXTS_LEAVE = "sentences of a document in which check_phrases has not found a phrase, and that phrase"


class Engine(BaseModel):
    """An engine behind the tools."""

    task: str
    identity: str
    languages: Annotated[list[str] | None, Field(description="Languages that it reads, for readers of text")] = None
    quality: Annotated[str | None, Field(description="`low`: not for verdicts about single words")] = None
    costs_money: bool
    leaves_machine: Annotated[bool, Field(description="Whether pictures or sound are sent to another machine")]


class NotAvailable(BaseModel):
    """A tool that cannot work here, and what would mend that."""

    tool: str
    reason: str
    mend: str


class VisionModelState(BaseModel):
    """One of the provider's two models."""

    mode: Literal["fast", "accurate"]
    id: str
    state: Annotated[str, Field(description="`verified` by the provider, not verified, or why it cannot be used")]


class Spending(BaseModel):
    """What a provider cost since 0:00 UTC. A request whose worst case would pass the cap is not sent."""

    requests: int
    input_tokens: int
    output_tokens: int
    usd: float
    reserved_usd: Annotated[float, Field(description="Worst case of the requests under way")]
    cap_usd: float


class RecentCost(BaseModel):
    """What one of the last calls that cost something cost for each tile, page, frame or piece, on average."""

    unit: Unit
    count: Annotated[int, Field(description="Of these, as many cost something")]
    input_tokens_each: int
    output_tokens_each: int
    usd_each: float


class Vision(BaseModel):
    """The vision provider: it costs money, and pictures leave this machine."""

    sends_to: Annotated[str, Field(description="Host that pictures are sent to")]
    what_leaves: str
    models: list[VisionModelState]
    auto_is_fast_above_tiles: Annotated[
        int, Field(description="Mode `auto` takes the fast model when a call has more tiles than this")
    ]
    in_flight: Annotated[int, Field(description="Requests under way")]
    waiting: Annotated[int, Field(description="Requests that wait for their turn")]
    max_in_flight: int
    today: Spending
    recent: Annotated[list[RecentCost], Field(description="The last calls that cost something, the newest last")]
    trouble: Annotated[str | None, Field(description="Why it is not asked now; the local engine reads on")] = None


class Speech(BaseModel):
    """The speech endpoint: it costs money, and sound leaves this machine."""

    sends_to: Annotated[str, Field(description="Host that sound is sent to")]
    what_leaves: str
    model: str
    state: Annotated[str, Field(description="`not asked yet`, `works`, or why it cannot be used")]
    in_flight: Annotated[int, Field(description="Requests under way")]
    waiting: Annotated[int, Field(description="Requests that wait for their turn")]
    max_in_flight: int
    today: Spending
    trouble: Annotated[str | None, Field(description="Why it is not asked now")] = None


class Embeddings(BaseModel):
    """The embeddings endpoint: it costs money, and texts leave this machine."""

    sends_to: Annotated[str, Field(description="Host that texts are sent to")]
    what_leaves: str
    model: str
    today: Spending
    trouble: Annotated[str | None, Field(description="Why it is not asked now")] = None


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
    vision: Annotated[Vision | None, Field(description="Absent where no provider is set up: nothing leaves then")] = (
        None
    )
    speech: Annotated[Speech | None, Field(description="Absent where no sound can leave")] = None
    embeddings: Annotated[Embeddings | None, Field(description="Absent where no text can leave")] = None
    not_available: Annotated[
        list[NotAvailable] | None, Field(description="Tools, or parts of them, that cannot work here")
    ] = None
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
    if services.vision is not None and services.vision.trouble is None:
        models: tuple[VisionModel, VisionModel] = ("fast", "accurate")
        engines += [
            Engine(
                task=READS_AND_FINDS, identity=services.vision.identity(model), costs_money=True, leaves_machine=True
            )
            for model in models
        ]
    if services.segmenter is not None:
        engines.append(_engine("segment_image", services.segmenter.identity))
    if services.tracker is not None:
        engines.append(_engine("track_video", services.tracker.identity))
    engines += [
        Engine(
            task="transcribe_audio",
            identity=one.identity,
            quality=one.quality,
            costs_money=one.costs_money,
            leaves_machine=bool(one.where),
        )
        for one in services.transcribers
        if one.trouble is None
    ]
    lost = {row.tool for row in not_available}
    return [engine for engine in engines if engine.task not in lost]


def _not_available(services: Services) -> list[NotAvailable]:
    """Tools without an engine, and those whose child process cannot start (wrong weights, for instance)."""
    found = [("segment_image", services.segmenter_missing), ("track_video", services.tracker_missing)]
    vision = services.vision_missing if services.vision is None else services.vision.trouble
    found.append((REGIONS, vision))
    found.append(("transcribe_audio", _speech_missing(services)))
    rows = [NotAvailable(tool=tool, reason=error.what, mend=error.next_step) for tool, error in found if error]
    tools = {
        "sam": ["segment_image", "track_video"],
        "redact": ["redact_media"],
        "scan": ["inspect_video", "transcribe_audio"],
    }
    for pool in services.pools:
        start_error = pool.stats().start_error
        known = {row.tool for row in rows}
        rows += [
            NotAvailable(tool=tool, reason=start_error, mend="the operator looks into `sam2-mcp-worker doctor`")
            for tool in tools.get(pool.name, [])
            if start_error and tool not in known
        ]
    return rows


def _speech_missing(services: Services) -> WorkerError | None:
    """Why nobody can hear just now."""
    troubles = [one.trouble for one in services.transcribers]
    if not troubles:
        return services.speech_missing
    return troubles[0] if all(troubles) else None


def _recent(unit: Unit, count: int, usage: Usage) -> RecentCost:
    return RecentCost(
        unit=unit,
        count=count,
        input_tokens_each=round(usage.input_tokens / count),
        output_tokens_each=round(usage.output_tokens / count),
        usd_each=round(usage.usd / count, USD_DIGITS),
    )


def _vision(services: Services) -> Vision | None:
    if services.vision is None:
        return None
    told = services.vision.status()
    return Vision(
        sends_to=told["sends_to"],
        what_leaves=WHAT_LEAVES,
        models=[VisionModelState(mode=mode, **state) for mode, state in told["models"].items()],
        auto_is_fast_above_tiles=services.settings.vision_fast_above_tiles,
        in_flight=told["in_flight"],
        waiting=told["waiting"] + services.vision_turns.waiting,
        max_in_flight=told["max_in_flight"],
        today=Spending(**told["today"]),
        recent=[_recent(*cost) for cost in services.recent_costs],
        trouble=told["trouble"],
    )


def _speech(services: Services) -> Speech | None:
    paid = next((one for one in services.transcribers if one.costs_money), None)
    if paid is None:
        return None
    told = paid.status()
    return Speech(**{**told, "today": Spending(**told["today"])}, what_leaves=SOUND_LEAVES)


def _embeddings(services: Services) -> Embeddings | None:
    if services.embedder is None:
        return None
    told = services.embedder.status()
    return Embeddings(**{**told, "today": Spending(**told["today"])}, what_leaves=TEXTS_LEAVE)


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
        vision=_vision(services),
        speech=_speech(services),
        embeddings=_embeddings(services),
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
