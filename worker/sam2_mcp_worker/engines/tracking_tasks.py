"""The tracking tasks of the child process that holds SAM 2; sam_child adds them to its own.

Owns the sessions of all trackings, bounded in bytes: the longest unused go first, and whoever steps one that is gone is
told so and restores it. Runs in a child only: the server process imports nothing from here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam2_mcp_worker.disk import storage_errors
from sam2_mcp_worker.engines.embedding_cache import EmbeddingCache
from sam2_mcp_worker.engines.mask_output import write_mask
from sam2_mcp_worker.engines.sam2 import Sam2Predictor
from sam2_mcp_worker.engines.sam2_memory import TrackSession, load_session, save_session, state_lost
from sam2_mcp_worker.engines.sam2_tracker import Sam2Tracker
from sam2_mcp_worker.engines.sam_predictor import MaskLogits, prompt_from_params
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.pixels import PixelFile


@dataclass(frozen=True, slots=True)
class _Tracking:
    tracker: Sam2Tracker
    identity: str
    sessions: EmbeddingCache[TrackSession]
    max_bytes: int


_tracking: _Tracking | None = None


def setup(predictor: Sam2Predictor, config: dict[str, Any]) -> None:
    """Track with the predictor's network; `config` as `sam_child.setup` takes it."""
    tracker = Sam2Tracker(predictor.network, predictor.encoder, threads=int(config["threads"]))
    use(tracker, predictor.identity, int(config["track_memory_bytes"]))


def use(tracker: Sam2Tracker, identity: str, max_bytes: int) -> None:
    """Track with this tracker; `identity` of its weights, `max_bytes` for all sessions."""
    global _tracking
    _tracking = _Tracking(tracker, identity, EmbeddingCache(max_bytes), max_bytes)


def track_start(params: dict[str, Any]) -> dict[str, Any]:
    """Begin `session` on the frame of `pixels` with `prompts` at `quality`; mask PNGs go into `mask_dir`.

    Raises:
        WorkerError: `track_too_large` when the memory of so many objects does not fit at all.
    """
    tracking = _loaded()
    pixels = PixelFile.from_params(params["pixels"])
    prompts = [prompt_from_params(prompt) for prompt in params["prompts"]]
    session, found = tracking.tracker.start(pixels.map_rgb(), prompts, params["quality"])
    masks = _masks(found, pixels, Path(params["mask_dir"]))
    _keep(params["session"], session)
    return masks


def track_step(params: dict[str, Any]) -> dict[str, Any]:
    """The masks in the next frame of `session`.

    Raises:
        WorkerError: `track_state_lost`.
    """
    tracking, name = _loaded(), params["session"]
    pixels = PixelFile.from_params(params["pixels"])
    rgb, session = pixels.map_rgb(), _session(name)
    try:
        return _masks(tracking.tracker.step(session, rgb), pixels, Path(params["mask_dir"]))
    except BaseException:
        # It may be a frame further than its caller will believe: whoever steps it again has to restore it.
        tracking.sessions.discard(name)
        raise


def track_save(params: dict[str, Any]) -> dict[str, Any]:
    """Write `session` to `path`.

    Raises:
        WorkerError: `track_state_lost`, `no_space`, `storage_failed`.
    """
    session = _session(params["session"])
    with storage_errors():
        save_session(session, Path(params["path"]), identity=_loaded().identity)
    return {}


def track_restore(params: dict[str, Any]) -> dict[str, Any]:
    """Take up under `session` what was saved to `path`.

    Raises:
        WorkerError: `track_state_lost`, `track_too_large`.
    """
    tracking = _loaded()
    _keep(params["session"], load_session(Path(params["path"]), tracking.identity, tracking.tracker.shapes()))
    return {}


def track_prepare(params: dict[str, Any]) -> dict[str, Any]:
    """Open what `quality` needs, unless that is done."""
    _loaded().tracker.prepare(params["quality"])
    return {}


def track_drop(params: dict[str, Any]) -> dict[str, Any]:
    """Forget `session`, if it is known."""
    _loaded().sessions.discard(params["session"])
    return {}


TASKS: dict[str, Callable[[dict[str, Any]], dict[str, Any]]] = {
    "track_start": track_start,
    "track_step": track_step,
    "track_save": track_save,
    "track_restore": track_restore,
    "track_prepare": track_prepare,
    "track_drop": track_drop,
}


def _loaded() -> _Tracking:
    if _tracking is None:
        raise WorkerError("engine_not_ready", "the tracking child was asked before it was set up")
    return _tracking


def _session(name: str) -> TrackSession:
    session = _loaded().sessions.get(name)
    if session is None:
        raise state_lost("it is not in the engine")
    return session


def _keep(name: str, session: TrackSession) -> None:
    tracking = _loaded()
    tracking.sessions.put(name, session)
    if name not in tracking.sessions:
        raise WorkerError(
            "track_too_large",
            f"the memory of {len(session.objects)} objects takes {session.nbytes // 2**10} KiB",
            rule=f"SAM2_MCP_TRACK_MEMORY_BYTES allows {tracking.max_bytes // 2**10} KiB for all trackings",
            next_step="track fewer objects in one call, or raise the setting",
        )


def _masks(found: Sequence[MaskLogits], pixels: PixelFile, folder: Path) -> dict[str, Any]:
    size_px = (pixels.width_px, pixels.height_px)
    return {"masks": [write_mask(logits, size_px, folder / f"mask-{secrets.token_hex(8)}.png") for logits in found]}
