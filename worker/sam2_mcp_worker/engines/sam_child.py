"""The work of the child process that holds a network of the SAM family: embed pictures, decode masks.

Owns the loaded network and the cache of embeddings; one task at a time, on the main thread. Which network it is, the
configuration says. Runs in a child only: the server process imports nothing from here.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2

from sam2_mcp_worker.engines.embed_windows import (
    first_window,
    has_windows,
    inside_window,
    runs_out,
    whole,
    wider_window,
)
from sam2_mcp_worker.engines.embedding_cache import EmbeddingCache
from sam2_mcp_worker.engines.mask_output import describe_mask
from sam2_mcp_worker.engines.mask_wire import box_from_json, mask_to_json
from sam2_mcp_worker.engines.ports import Box, Quality
from sam2_mcp_worker.engines.sam_predictor import Embedding, MaskPredictor, prompt_from_params
from sam2_mcp_worker.errors import WorkerError
from sam2_mcp_worker.media.masks import cut_mask
from sam2_mcp_worker.media.pixels import PixelFile

Task = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class _Engine:
    predictor: MaskPredictor
    cache: EmbeddingCache[Embedding]


@dataclass(frozen=True, slots=True)
class _Picture:
    """A picture of a task, under the name by which its embeddings are kept."""

    pixels: PixelFile
    content_key: str
    quality: Quality

    @property
    def size_px(self) -> tuple[int, int]:
        return self.pixels.width_px, self.pixels.height_px


_engine: _Engine | None = None


def setup(config: dict[str, Any]) -> None:
    """Load the network; see `segmenter.child_config` for the keys.

    Raises:
        WorkerError: what of its files or packages is missing or wrong, and the mend.
    """
    global _engine
    threads = int(config["threads"])
    cv2.setNumThreads(threads)
    predictor = _load_sam2(config) if config["engine"] == "sam2" else _load_onnx(config["onnx"], threads)
    _engine = _Engine(predictor, EmbeddingCache(int(config["embedding_cache_bytes"])))


def encode(params: dict[str, Any]) -> dict[str, Any]:
    """Embed the picture of `pixels`, unless it is cached under `content_key` and `quality`.

    A huge picture is not: `masks` embeds the window around each prompt, and all of it only where that does not do.
    """
    picture = _picture(params)
    known = _key(picture, whole(picture.size_px)) in _loaded().cache
    if not known and not has_windows(picture.size_px):
        _embed(picture, whole(picture.size_px))
    return {"cached": known}


def masks(params: dict[str, Any]) -> dict[str, Any]:
    """The masks of `prompts` on the picture; PNGs go into `mask_dir`, which must be there.

    A prompt that is small in a huge picture is looked at in a window. Where its object runs out of that, the answer is
    `{"window": ...}`, the wider one to ask for next: one embedding a task, so that deadlines are kept between.
    """
    picture = _picture(params)
    folder = Path(params["mask_dir"])
    return {"masks": [_mask(picture, prompt, folder) for prompt in params["prompts"]]}


# The tracking tasks of SAM 2 are added by `setup`, so that the ONNX engine needs no torch.
TASKS: dict[str, Task] = {"encode": encode, "masks": masks}


def _load_onnx(config: dict[str, Any], threads: int) -> MaskPredictor:
    from sam2_mcp_worker.engines.sam_onnx import OnnxPredictor

    return OnnxPredictor(
        Path(config["encoder"]),
        config["encoder_sha256"],
        Path(config["decoder"]),
        config["decoder_sha256"],
        threads=threads,
    )


def _load_sam2(config: dict[str, Any]) -> MaskPredictor:
    """Imports torch, on the main thread and before the child says that it is ready."""
    try:
        from sam2_mcp_worker.engines import tracking_tasks
        from sam2_mcp_worker.engines.sam2 import load_predictor
    except ModuleNotFoundError as error:
        if error.name and error.name.startswith("sam2_mcp_worker"):
            raise
        raise WorkerError(
            "sam_not_installed",
            f"SAM 2 needs the package {error.name}, which is not installed",
            next_step="install sam2-mcp[worker,sam], or set SAM2_MCP_SEGMENTER=onnx",
            private=str(error),
        ) from error
    predictor = load_predictor(config["sam2"], threads=int(config["threads"]))
    tracking_tasks.setup(predictor, config)
    TASKS.update(tracking_tasks.TASKS)
    return predictor


def _loaded() -> _Engine:
    if _engine is None:
        raise WorkerError("engine_not_ready", "the segmentation child was asked before it was set up")
    return _engine


def _picture(params: dict[str, Any]) -> _Picture:
    return _Picture(PixelFile.from_params(params["pixels"]), params["content_key"], params["quality"])


def _key(picture: _Picture, window: Box) -> tuple[str, Quality, Box]:
    return picture.content_key, picture.quality, window


def _embed(picture: _Picture, window: Box) -> Embedding:
    """The embedding of a window, from the cache or made now."""
    engine = _loaded()
    key = _key(picture, window)
    embedding = engine.cache.get(key)
    if embedding is None:
        x0, y0, x1, y1 = window
        rgb = picture.pixels.map_rgb()[y0:y1, x0:x1]
        embedding = engine.predictor.encode(rgb, picture.quality)
        engine.cache.put(key, embedding)
    return embedding


def _mask(picture: _Picture, params: dict[str, Any], folder: Path) -> dict[str, Any]:
    """One object in its window; `window` of the prompt's parameters, or the first one to try."""
    prompt = prompt_from_params(params)
    window = box_from_json(params.get("window")) or first_window(prompt, picture.size_px)
    [logits] = _loaded().predictor.decode(_embed(picture, window), [inside_window(prompt, window)])
    mask = cut_mask(logits.logits, window, logits.extent_xy)
    if runs_out(mask.box_xyxy_px, window, picture.size_px):
        return {"window": wider_window(window, prompt, picture.size_px)}
    path = folder / f"mask-{secrets.token_hex(8)}.png"
    return mask_to_json(describe_mask(mask, logits.predicted_iou, picture.size_px, path))
