"""Which engine reads a request: the provider's fast or accurate model, or the local one; and what to say of it.

Owns the rule of the modes. Reads nothing itself.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from sam2_mcp_worker.engines.ports import TextReader, VisionModel, Wanted
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.tiling import TileLimit, claude_tiles
from sam2_mcp_worker.pipelines.claude_reader import ClaudeReader
from sam2_mcp_worker.services import Services
from sam2_mcp_worker.settings import Settings

Mode = Literal["auto", "fast", "accurate"]
LOCAL = "local OCR"
# What a cursor of a past call says about the engine that it began with.
CursorFits = Callable[[TextReader], bool]


@dataclass(frozen=True, slots=True)
class ReadingChoice:
    """The reader of one request.

    `engine` is its name for people. `regions_missing` says why nobody looks for regions, None when somebody does or
    none were asked for. `notes` are for the result. `labels` are those that are looked for.
    """

    reader: TextReader
    engine: str
    regions_missing: WorkerError | None = None
    notes: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


def vision_tiles(settings: Settings) -> TileLimit:
    """How large a tile for the provider may be: plan with it to count the tiles of a call before choosing."""
    return claude_tiles(settings.claude_tile_side_px, settings.claude_tile_tokens)


def choose_model(settings: Settings, mode: Mode, tile_count: int) -> VisionModel:
    """The rule of the modes. `tile_count` is that of the whole call, all pictures and pages together."""
    if mode != "auto":
        return mode
    return "fast" if tile_count > settings.vision_fast_above_tiles else "accurate"


def choose_reading(
    services: Services, mode: Mode, tile_count: int, wanted: Wanted, *, cursor_fits: CursorFits | None = None
) -> ReadingChoice:
    """The reader for a request of `tile_count` tiles (counted with `vision_tiles`).

    The provider when there is one and the model that the mode asks for is not in trouble, else the local engine with
    the reason in `notes`. A request goes on with the engine that it began with: `cursor_fits` tells whether its cursor
    belongs to a reader.
    """
    if services.vision is None:
        return _local(services, mode, wanted, None)
    model = choose_model(services.settings, mode, tile_count)
    trouble = services.vision.trouble_with(model)
    local, provider = _local(services, mode, wanted, trouble), _provider(services, model, wanted)
    preferred, other = (provider, local) if trouble is None else (local, provider)
    if cursor_fits is not None and not cursor_fits(preferred.reader) and cursor_fits(other.reader):
        return other
    return preferred


def _provider(services: Services, model: VisionModel, wanted: Wanted) -> ReadingChoice:
    settings = services.settings
    name = settings.claude_fast_model if model == "fast" else settings.claude_accurate_model
    return ReadingChoice(ClaudeReader(services, model, wanted), f"{name} ({model})", labels=wanted.labels)


def _local(services: Services, mode: Mode, wanted: Wanted, trouble: WorkerError | None) -> ReadingChoice:
    missing = trouble or services.vision_missing or _began_locally()
    notes = []
    if services.vision is not None and trouble is None:
        notes.append(_began_locally().public_text)
    elif trouble is not None:
        notes.append(f"read by the local engine, since the vision provider cannot be used now: {trouble.public_text}")
    elif mode != "auto":
        notes.append(f"mode '{mode}' is one of the vision provider's, and there is none: the local engine was used")
    return ReadingChoice(services.reader, LOCAL, missing if wanted.labels else None, tuple(notes))


def _began_locally() -> WorkerError:
    return WorkerError(
        "not_available",
        "this request began with the local engine, when the vision provider could not be used, and goes on with it",
        next_step="call again without the cursor: the provider can be used now",
    )
